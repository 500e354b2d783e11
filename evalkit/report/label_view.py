"""The labelling page: one item in large type, and nothing that tells where it came from."""

from __future__ import annotations

import math
import textwrap

from evalkit.cases.growth import StratumShare
from evalkit.counting import counted
from evalkit.report.safe import esc, table_html, terminal_text
from evalkit.report.tables import WIDTH
from evalkit.runs.label_desk import SKIP, UNDO, LabelProgress, LabelState
from evalkit.runs.label_task import LabelTask
from evalkit.stats.result import Interval
from evalkit.validity.blind import Shown
from evalkit.validity.labels import CANNOT_TELL

__all__ = [
    "STYLE",
    "composition_html",
    "disputes_html",
    "head_html",
    "item_html",
    "keys_of",
    "label_text",
    "progress_html",
    "said_html",
    "state_html",
]

STYLE = """<style>
.ek-label{width:100%;max-width:62rem;margin:0 auto;font-size:1.2rem;line-height:1.6;color:#1a1a1a}
.ek-label.ek-wide{max-width:88rem}
.ek-bar{height:6px;background:#e4e4e0;border-radius:3px;overflow:hidden;margin:.3rem 0 .2rem}
.ek-bar>div{height:100%;background:#0072b2}
.ek-far{display:flex;justify-content:space-between;font-size:.85rem;color:#555}
.ek-asked{font-size:1.35rem;font-weight:600;margin:.4rem 0 .2rem}
.ek-q{color:#333;white-space:pre-wrap;overflow-wrap:anywhere;margin:.2rem 0 .8rem}
.ek-draft{white-space:pre-wrap;overflow-wrap:anywhere;min-width:0;background:#fbfbf9;
 border:1px solid #dcdcd6;border-radius:6px;padding:1rem 1.2rem;min-height:9rem}
.ek-side{font-size:.8rem;letter-spacing:.05em;text-transform:uppercase;color:#666;margin:.2rem 0}
.ek-label details{font-size:1rem;margin:.8rem 0}
.ek-said{text-align:center;font-size:.9rem;color:#555;min-height:1.4em}
.ek-label summary{cursor:pointer;color:#444}
</style>"""


def head_html(task: LabelTask) -> str:
    """One line at the top, the same whatever is shown: suite, question, annotator, plan."""
    about = task.criterion or "pairs"
    parts = [
        f"<b>{esc(task.suite.name)}</b>",
        esc(about),
        f"{counted(len(task.items), 'item')}, drawn {esc(_way(task))}",
        f"annotator {esc(task.choices.annotator)}",
        "blind: no source, no verdict",
    ]
    return f'<div class="ek-pins">{" · ".join(parts)}</div>'


def progress_html(shown: Shown, progress: LabelProgress) -> str:
    """How many are done, and at which pace."""
    share = 100 * shown.done / max(shown.total, 1)
    return (
        f'<div class="ek-label{_wide(shown)}">'
        f'<div class="ek-bar"><div style="width:{share:.1f}%"></div></div>'
        f'<div class="ek-far"><span>{shown.done} of {shown.total} done</span>'
        f"<span>{esc(progress.pace)}</span></div></div>"
    )


def _wide(shown: Shown) -> str:
    return " ek-wide" if len(shown.texts) == 2 else ""


def item_html(task: LabelTask, shown: Shown) -> str:
    """The item on the screen, centred: what is asked, the case's own words, one text or two."""
    asked = f'<div class="ek-asked">{esc(task.question)}</div>'
    asked += f'<div class="ek-q">{esc(shown.question)}</div>'
    pages = "\n\n".join(shown.context)
    context = (
        f"<details{'' if task.pairs else ' open'}><summary>the pages it was written from</summary>"
        f'<div class="ek-draft">{esc(pages)}</div></details>'
        if pages
        else ""
    )
    if len(shown.texts) == 2:
        sides = "".join(
            f'<div><div class="ek-side">{side}</div><div class="ek-draft">{esc(text)}</div></div>'
            for side, text in zip(("left", "right"), shown.texts, strict=True)
        )
        texts = f'<div class="ek-two">{sides}</div>'
    else:
        texts = (
            f'<div class="ek-side">to label</div><div class="ek-draft">{esc(shown.texts[0])}</div>'
        )
    meanings = "".join(
        f"<li><b>{esc(level)}</b> {esc(text)}</li>" for level, text in task.meanings.items()
    )
    legend = f"<details><summary>what the levels mean</summary><ul>{meanings}</ul></details>"
    wide = _wide(shown)
    body = asked + texts + context + (legend if meanings else "")
    return f'<div class="ek-label{wide}">{body}</div>'


def said_html(text: str) -> str:
    """What the latest key did, or what to do."""
    return f'<div class="ek-said">{esc(text)}</div>'


def keys_of(shown: Shown) -> dict[str, tuple[str, str]]:
    """What the page offers: key to (what it says, what it does)."""
    keys = {str(n): (word, word) for n, word in enumerate(shown.choices, start=1)}
    return {
        **keys,
        "?": ("cannot tell", CANNOT_TELL),
        "s": ("skip", SKIP),
        "u": ("undo", UNDO),
    }


def state_html(state: LabelState) -> str:
    """After the last item: how people agree, and what the labels make of the judge's rate."""
    rows = [
        [f"{a} and {b}", _kappa(found), found.n_cases]
        for (a, b), found in state.agreed.kappas.items()
    ]
    kappas = table_html(["annotators", "kappa", "items"], rows) if rows else ""
    mine = state.progress
    corrected = f'<div class="ek-verdict">{esc(state.corrected)}</div>' if state.corrected else ""
    return (
        f'<div class="ek-label"><div class="ek-asked">{mine.done} of {mine.total} labelled, '
        f"{mine.cannot_tell} cannot tell</div>"
        f'<div class="ek-verdict">{esc(state.agreed.sentence)}</div>{kappas}{corrected}</div>'
    )


def disputes_html(state: LabelState) -> str:
    """The items to talk about, by their question, in words that tell no source."""
    if not state.disputes:
        return ""
    people = sorted({who for dispute in state.disputes for who in dispute.said})
    rows = [[d.question, *(d.said.get(who, "-") for who in people)] for d in state.disputes]
    head = f'<div class="ek-title">{len(rows)} disagreements to talk about</div>'
    return f'<div class="ek-label">{head}{table_html(["item", *people], rows)}</div>'


def composition_html(shares: tuple[StratumShare, ...]) -> str:
    """The suite's strata against its intended mix."""
    rows = [
        [
            s.stratum,
            s.n,
            f"{s.share:.0%}",
            "-" if s.intended is None else f"{s.intended:.0%}",
            s.missing or "",
        ]
        for s in shares
    ]
    return table_html(["stratum", "cases", "share", "intended", "to add"], rows)


def _way(task: LabelTask) -> str:
    way = task.plan.draw.value
    return "at random" if way == "random" else way.replace("_", " ")


def label_text(task: LabelTask, state: LabelState, *, cockpit: str = "") -> str:
    """The state of labelling for a terminal, no line longer than 100 columns."""
    who, total = state.by_annotator, state.progress.total
    if task.choices.annotator:
        who = {task.choices.annotator: state.progress.done}
    lines = [
        f"{task.suite.name} · {task.choices.kind} · {task.criterion or 'pairs'} · "
        f"{counted(len(task.items), 'item')}, drawn {_way(task)} of {task.plan.population}",
        *(f"{name}: {done} of {total} labelled" for name, done in sorted(who.items())),
        *([] if who else ["nobody has labelled anything yet"]),
        state.agreed.sentence,
        *(f"kappa {a} and {b}: {_kappa(k)}" for (a, b), k in state.agreed.kappas.items()),
    ]
    if state.disputes:
        lines.append(f"{len(state.disputes)} disagreements to talk about")
    if state.corrected:
        lines.append(state.corrected)
    out = [part for line in lines for part in textwrap.wrap(terminal_text(line), WIDTH)]
    out.append(f"labels: {task.path.as_posix()}")
    if cockpit:
        out.append(f"label: {cockpit}")
    return "\n".join(out)


def _kappa(found: Interval) -> str:
    if not found.defined:
        return "not defined"
    ends = (
        "no interval" if math.isnan(found.ci_low) else f"{found.ci_low:.2f} to {found.ci_high:.2f}"
    )
    return f"{found.estimate:.2f} ({ends})"

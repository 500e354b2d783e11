"""What admission found, for a page and for a terminal: one line a judge, its path, its pairs."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path

from evalkit.counting import counted
from evalkit.judges.judge import Judge
from evalkit.report.safe import esc, table_html, terminal_text
from evalkit.report.tables import WIDTH, text_table
from evalkit.runs.admission_desk import AdmissionPlan, Admittance
from evalkit.stats.result import Interval
from evalkit.validity.admission import Admitted
from evalkit.validity.admission_run import AdmissionRun, Step
from evalkit.validity.reconstruction import Reconstructed

__all__ = [
    "STYLE",
    "action_of",
    "admission_text",
    "checks_html",
    "head_html",
    "path_html",
    "ruling_html",
    "strip_html",
    "tables_html",
]

STYLE = """<style>
.ek-path{display:flex;flex-wrap:wrap;gap:0;margin:.6rem 0;align-items:stretch}
.ek-step{flex:1 1 9rem;min-width:8rem;padding:.5rem .7rem;border:1px solid #cfcfca;
 border-right:0;background:#f7f7f5;color:#666;font-size:.85rem;overflow-wrap:anywhere}
.ek-step:last-child{border-right:1px solid #cfcfca}
.ek-step b{display:block;font-size:.95rem;color:#555}
.ek-step.reached{background:#e8f3fa;border-color:#9cc6e0;color:#23475c}
.ek-step.reached b{color:#004b75}
.ek-step.here{background:#0072b2;border-color:#0072b2;color:#fff}
.ek-step.here b{color:#fff}
.ek-strip{display:flex;flex-wrap:wrap;gap:4px;margin:.4rem 0}
.ek-tile{width:1.9rem;height:1.9rem;display:grid;place-items:center;border-radius:3px;
 font:600 .9rem/1 ui-sans-serif,sans-serif;color:#fff}
.ek-tile.right{background:#007a58}.ek-tile.wrong{background:#b34700}
.ek-tile.flipped{background:#fff;color:#7a4b00;border:2px dashed #b07a00}
.ek-tile.tie{background:#fff;color:#444;border:2px solid #888}
.ek-tile.invalid{background:#e4e4e0;color:#555}
.ek-action{font-size:1.1rem;line-height:1.5;padding:.7rem .9rem;border-left:4px solid #0072b2;
 background:#eef6fb;color:#14303f;margin:.6rem 0}
.ek-admission .ek-table th,.ek-admission .ek-table td{overflow-wrap:normal;padding-right:.9rem}
.ek-admission .ek-table td{white-space:pre}
</style>"""

_BRIEF = {
    "recall of the rarer class": "rarer recall",
    "bands never given": "unused",
    "Spearman": "rho",
}
_SIGN = {"right": "✓", "wrong": "✗", "flipped": "⇄", "tie": "=", "invalid": "?"}
_SAYS = {
    "right": "the strong text in both orders",
    "wrong": "the weak text in both orders",
    "flipped": "another text when the order is turned",
    "tie": "a tie",
    "invalid": "no readable verdict",
}


def head_html(plan: AdmissionPlan, commit: str) -> str:
    """One line at the top: the candidates, the suite's domain, the anchor, the commit."""
    judges = ", ".join(
        f"<b>{esc(judge.name)}</b> <code>{esc(judge.hash)}</code> {esc(judge.model)}"
        for judge in plan.judges
    )
    parts = [
        judges,
        f"domain {esc(plan.suite.domain)}",
        esc(_anchor_words(plan)),
        f"@ {esc(commit)}",
    ]
    return f'<div class="ek-pins">{" · ".join(parts)}</div>'


def checks_html(found: AdmissionRun) -> str:
    """What the anchor's checks said, and which items they took out."""
    if found.checked is None:
        return ""
    notes = "".join(f"<li>{esc(text)}</li>" for text in found.checked.warnings)
    out = ""
    if found.checked.refused:
        rows = [[refusal.item_id, refusal.reason] for refusal in found.checked.refused]
        inner = table_html(["item", "why it is not used"], rows)
        out = f"<details><summary>{counted(len(rows), 'item')} taken out</summary>{inner}</details>"
    return f'<ul class="ek-note">{notes}</ul>{out}' if notes or out else ""


def tables_html(found: AdmissionRun) -> str:
    """The admission table and, for judges that compare, the table of known pairs."""
    parts: list[str] = []
    if found.lines:
        head, rows = _line_cells(found.lines)
        parts.append(table_html(head, rows))
    for pairs in _by_pairs(found):
        head, rows = _pair_cells(pairs)
        pin = pairs[0].known.pin
        title = f"known pairs: {pin.name} ({pin.provenance.value}, {pin.n})"
        parts.append(f'<div class="ek-title">{esc(title)}</div>{table_html(head, rows)}')
    note = "a judge that does not beat the trivial ones has shown nothing"
    return f'<div class="ek-admission">{"".join(parts)}<div class="ek-note">{note}</div></div>'


def path_html(judge: Judge, steps: Sequence[Step]) -> str:
    """The stations of one judge as a picture: reached ones tinted, the present one lit.

    Under each one that is not reached stands what it lacks.
    """
    here = _here(steps)
    cells: list[str] = []
    for number, step in enumerate(steps):
        look = " here" if number == here else " reached" if step.reached else ""
        sign = "●" if number == here else "✓" if step.reached else "○"
        said = "the present state" if number == here else "" if step.reached else step.missing
        cells.append(
            f'<div class="ek-step{look}"><b>{sign} {esc(step.name)}</b>'
            f"{esc(_short(judge, said))}</div>"
        )
    label = f"{judge.name}: {steps[here].name}"
    return f'<div class="ek-path" role="img" aria-label="{esc(label)}">{"".join(cells)}</div>'


def strip_html(run: Reconstructed) -> str:
    """Each known pair as a tile with its sign, then how each way of weakening fared."""
    ways = {pair.id: pair.how for pair in run.known.pairs}
    tiles = "".join(
        f'<span class="ek-tile {esc(tile)}" title="{esc(f"{item} ({ways[item]}): {_SAYS[tile]}")}">'
        f"{_SIGN[tile]}</span>"
        for item, tile in run.tiles.items()
    )
    counts = {tile: sum(t == tile for t in run.tiles.values()) for tile in _SIGN}
    legend = " · ".join(f"{_SIGN[t]} {t} {n}" for t, n in counts.items() if n)
    by_how = table_html(
        ["how the weak text was made", "right", "pairs"],
        [[how, right, n] for how, (right, n) in sorted(run.by_how.items())],
    )
    return (
        f'<div class="ek-strip">{tiles}</div>'
        f'<div class="ek-note">{esc(legend)}</div>'
        f"<details><summary>by way of weakening</summary>{by_how}</details>"
    )


def ruling_html(result: Admittance, judge: Judge) -> str:
    """What was found of one judge in words, and the one thing to do."""
    lines, pairs = result.found.of(judge)
    said = [line.sentence for line in lines] + [run.sentence for run in pairs]
    texts = "".join(f'<div class="ek-verdict">{esc(text)}</div>' for text in said)
    warnings = dict.fromkeys(w for line in lines for w in line.warnings)
    notes = "".join(f"<li>{esc(text)}</li>" for text in warnings)
    action = f'<div class="ek-action"><b>Next:</b> {esc(action_of(result, judge))}</div>'
    return texts + action + (f'<ul class="ek-note">{notes}</ul>' if notes else "")


def action_of(result: Admittance, judge: Judge) -> str:
    """The one recommended action for a judge, in words."""
    lines, pairs = result.found.of(judge)
    trivial = any("not_above_trivial" in line.reasons for line in lines)
    if lines:
        why = " A trivial judge does as well: it has shown nothing." if trivial else ""
        return lines[0].action + why
    run = pairs[0] if pairs else None
    if run is None:
        return "Give it an anchor or known pairs."
    if run.state == "NOT_CERTIFIED":
        return (
            "It tells these pairs apart, which a rule made; have people rank pairs "
            "(notebooks/label.py --kind pairs) to license it."
        )
    if run.gate.confounded_by:
        return "Bring pairs whose strong text is not the longer one: these cannot tell."
    words = {
        "PASS": "Let it compare drafts; look at its flips now and then.",
        "FAIL": "Take a stronger model, or sharpen what the prompt asks; then judge again.",
        "BROKEN": "Mend its unread verdicts first: too many pairs have none.",
    }
    return words.get(run.state, "Bring more pairs: these are too few to tell.")


def _who(plan: AdmissionPlan) -> list[str]:
    """Who is admitted, on what, for a terminal."""
    lines = [f"{judge.name} {judge.hash} · {judge.model}" for judge in plan.judges]
    where = f"{plan.suite.name} · domain {plan.suite.domain} · {_anchor_words(plan)}"
    return [*lines, *_wrapped(where)]


def admission_text(
    result: Admittance, *, licences: Sequence[Path] = (), cockpit: str = "", ledger: str = ""
) -> str:
    """An admission for the terminal, no line longer than 100 columns: who, table, path, action.

    Args:
        result: What came out.
        licences: The licences that were written.
        cockpit: The command that opens the notebook.
        ledger: The ledger's file, when something was appended.
    """
    found = result.found
    out = [*_who(result.plan), f"{counted(result.new, 'new call')} of {result.calls}"]
    for note in result.plan.notes:
        out += _wrapped(note)
    if found.lines:
        out += ["", text_table(*_line_cells(found.lines, brief=True))]
    for pairs in _by_pairs(found):
        pin = pairs[0].known.pin
        out += ["", f"known pairs: {pin.name} ({pin.provenance.value}, {pin.n})"]
        out.append(text_table(*_pair_cells(pairs)))
    for judge in found.judges:
        lines, runs = found.of(judge)
        out += ["", f"{judge.name}: {_path_line(found.path_of(judge))}"]
        for text in (*(line.sentence for line in lines), *(run.sentence for run in runs)):
            out += _wrapped(text, "  ")
        for warning in dict.fromkeys(w for line in lines for w in line.warnings):
            out += _wrapped(f"! {warning}", "  ")
        out += _wrapped(f"next: {action_of(result, judge)}", "  ")
    out.append("")
    if result.scores:
        out.append(f"scores: {result.scores[0].parent.as_posix()}/ (id, human, judge)")
    if result.new and ledger:
        out.append(f"ledger: {ledger}")
    out += [f"licence: {path.as_posix()}" for path in licences]
    if cockpit:
        out.append(f"look at it: {cockpit}")
    return "\n".join(line if "\n" in line else terminal_text(line) for line in out)


def _anchor_words(plan: AdmissionPlan) -> str:
    words: list[str] = []
    if plan.anchor is not None:
        anchor = plan.anchor
        words.append(f"anchor {anchor.name} ({anchor.provenance.value}, {len(anchor.truth)})")
    if plan.known is not None:
        pin = plan.known.pin
        words.append(f"{counted(pin.n, 'known pair')} ({pin.provenance.value})")
    return " · ".join(words)


def _line_cells(
    lines: Sequence[Admitted], *, brief: bool = False
) -> tuple[list[str], list[list[str]]]:
    """Head and cells of the admission table; `brief` keeps what fits a terminal."""
    left_out = {"diagnosis", "ruling"} if brief else {"diagnosis"}  # the sentence says it below
    rows = [{k: v for k, v in line.row.items() if k not in left_out} for line in lines]
    for line, row in zip(lines, rows, strict=True):
        if [other.judge for other in lines].count(line.judge) > 1:  # one judge file, several models
            row["judge"] = f"{line.judge} {line.model.rpartition('/')[2]}"
    unused = {k for k in rows[0] if all(row.get(k) == "-" for row in rows)}
    names = [k for k in rows[0] if k not in unused]
    cells = [[row.get(name, "") for name in names] for row in rows]
    if not brief:
        return names, cells
    head = [_BRIEF.get(name, name) for name in names]
    return head, [
        [_narrow(name, cell) for name, cell in zip(head, row, strict=True)] for row in cells
    ]


def _narrow(name: str, cell: str) -> str:
    return cell.replace(",", "") if name == "unused" else cell.replace(" to ", ", ")


def _pair_cells(runs: Sequence[Reconstructed]) -> tuple[list[str], list[list[str]]]:
    head = ["judge", "right (interval)", "p against chance", "same in both orders", "verdict"]
    rows: list[list[str]] = []
    for run in runs:
        trivial = "" if run.judge.model else " (trivial)"
        p = run.gate.p_vs_chance
        rows.append(
            [
                run.judge.name + trivial,
                _rate(run.gate.accuracy),
                "-" if math.isnan(p) else f"{p:.3f}",
                _rate(run.swap.swap_consistency),
                run.state
                + (f" ({', '.join(run.gate.confounded_by)})" if run.gate.confounded_by else ""),
            ]
        )
    return head, rows


def _rate(found: Interval) -> str:
    if not found.defined:
        return "not measured"
    if math.isnan(found.ci_low):
        return f"{found.estimate:.0%} n={found.n_cases}"
    return f"{found.estimate:.0%} ({found.ci_low:.0%}-{found.ci_high:.0%}) n={found.n_cases}"


def _by_pairs(found: AdmissionRun) -> list[list[Reconstructed]]:
    groups: dict[str, list[Reconstructed]] = {}
    for run in found.reconstructed:
        groups.setdefault(run.known.pin.digest, []).append(run)
    return list(groups.values())


def _here(steps: Sequence[Step]) -> int:
    """The last station reached without a gap before it."""
    here = 0
    for number, step in enumerate(steps):
        if not step.reached:
            break
        here = number
    return here if not steps[-1].reached else len(steps) - 1


def _path_line(steps: Sequence[Step]) -> str:
    here = _here(steps)
    return " > ".join(f"[{s.name}]" if n == here else s.name for n, s in enumerate(steps))


def _short(judge: Judge, text: str) -> str:
    """The first two clauses: what was found, and the first reason; the rest stands below."""
    clauses = text.removeprefix(f"{judge.name}: ").split("; ")
    return "; ".join(clauses[:2]) + (" …" if len(clauses) > 2 else "")


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        terminal_text(text), WIDTH, initial_indent=indent, subsequent_indent=indent + "  "
    )

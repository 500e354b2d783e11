"""Pieces of HTML that notebooks show: made of escaped text only, with the styles they need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from evalkit.counting import counted
from evalkit.errors import PromptError
from evalkit.records import Case, Reply, Row, ScoreStatus
from evalkit.report.safe import block_html, esc, marked_html, table_html
from evalkit.report.worddiff import diff_html, line_changes, unified_html
from evalkit.runs.comparison import RunComparison
from evalkit.runs.execute import Progress
from evalkit.runs.manifest import Manifest
from evalkit.runs.plan import Plan
from evalkit.runs.summary import Summary
from evalkit.stats.wording import rate_sentence

__all__ = [
    "STYLE",
    "case_html",
    "change_html",
    "draft_line",
    "folded",
    "note",
    "pin_line",
    "progress_html",
    "rendered",
    "shape_html",
    "table",
    "verdict_html",
]

STYLE = """<style>
.ek-pins{font-size:.9rem;color:#444;border-bottom:1px solid #ddd;padding:.2rem 0 .5rem}
.ek-pins b{color:#111}
.ek-dirty{color:#8a4b00;font-weight:600}
.ek-block{white-space:pre-wrap;overflow-wrap:anywhere;min-width:0;margin:.25rem 0;
 padding:.6rem .7rem;
 background:#f7f7f5;border:1px solid #e4e4e0;border-radius:4px;font:13px/1.5 ui-monospace,monospace;
 max-height:28rem;overflow:auto;color:#1a1a1a;unicode-bidi:plaintext;text-align:start}
.ek-block del{background:#fde7df;color:#7a2a00}
.ek-block ins{background:#dff3ea;color:#00543b;text-decoration:none;border-bottom:2px solid #009e73}
.ek-block mark{background:#fff1b8;color:#111;border-bottom:2px solid #b58900}
.ek-title{font-size:.82rem;font-weight:600;color:#555;margin-top:.6rem}
.ek-verdict{font-size:1.05rem;line-height:1.5;margin:.4rem 0}
.ek-note{color:#555;font-size:.88rem;white-space:pre-line}
.ek-quiet{color:#777;font-size:.82rem;border:1px solid #ccc;border-radius:3px;padding:0 .35rem}
.ek-table{border-collapse:collapse;font-size:.88rem;width:100%}
.ek-table th,.ek-table td{text-align:left;padding:.25rem .6rem .25rem 0;
 border-bottom:1px solid #e8e8e4;
 vertical-align:top;overflow-wrap:anywhere;white-space:pre-wrap}
.ek-two{display:grid;grid-template-columns:1fr 1fr;gap:1rem}.ek-two>*{min-width:0}
.ek-bar{margin:.2rem 0}.ek-bar progress{appearance:none;display:block;width:100%;height:.5rem;
 border:0;border-radius:3px;overflow:hidden;background:#e4e4e0}
.ek-bar progress::-webkit-progress-bar{background:#e4e4e0}
.ek-bar progress::-webkit-progress-value{background:#0072b2}
.ek-bar progress::-moz-progress-bar{background:#0072b2}
@media (max-width:900px){.ek-two{grid-template-columns:1fr}}
</style>"""


def pin_line(manifest: Manifest, *, observations: int = 0) -> str:
    """One line at the top: suite, prompt hash, model, cases, commit, dirty if so."""
    sampling, prompt = manifest.sampling, manifest.prompt
    population = sum(sampling.get("population", {}).values())
    parts = [
        f"<b>{esc(manifest.suite)}</b>",
        f"{esc(prompt.get('name', ''))} <code>{esc(prompt.get('hash', ''))}</code>"
        + (" (edited)" if prompt.get("draft") else ""),
        esc(manifest.model),
        f"{sampling.get('n', 0)} of {counted(population, 'case')} x {sampling.get('repeats', 1)}",
    ]
    if observations:
        parts.append(counted(observations, "observation"))
    commit = esc(manifest.git_sha[:7] or "no commit")
    dirty = ' <span class="ek-dirty">dirty</span>' if manifest.dirty else ""
    parts.append(f"@ {commit}{dirty}")
    if manifest.origin != "model":
        parts.append(f'<span class="ek-dirty">{esc(manifest.origin)}: no model gave these</span>')
    return f'<div class="ek-pins">{" · ".join(parts)}</div>'


def draft_line(plan: Plan, baseline: Manifest | None, commit: str) -> str:
    """The same line before a run: what would be run, against which baseline."""
    prompt = plan.prompt
    parts = [
        f"<b>{esc(plan.suite.name)}</b>",
        f"{esc(prompt.name)} <code>{esc(prompt.hash)}</code>{' (edited)' if plan.draft else ''}"
        if prompt
        else esc(plan.suite.task.entry),
        esc(plan.model),
        f"{len(plan.sample)} of {counted(len(plan.suite.cases), 'case')} x {plan.repeats}",
        f"baseline {esc(baseline.prompt.get('hash', ''))} @ {esc(baseline.git_sha[:7])}"
        if baseline
        else "no baseline yet",
        f"@ {esc(commit)}",
    ]
    return f'<div class="ek-pins">{" · ".join(parts)}</div>'


def change_html(saved: str, edited: str) -> str:
    """What an edit changes in a prompt file."""
    if saved == edited:
        return '<div class="ek-note">no change against the file</div>'
    added, removed = line_changes(saved, edited)
    title = f"+{added} −{counted(removed, 'line')}"
    return f'<div class="ek-title">{title}</div>{unified_html(saved, edited)}'


def note(text: str) -> str:
    """A sentence beside something else."""
    return f'<div class="ek-note">{esc(text)}</div>'


def progress_html(progress: Progress, line: str) -> str:
    """How far a run is, as a bar and in words; nothing before the first run."""
    if not line:
        return ""
    bar = ""
    if progress.total:
        bar = (
            f'<div class="ek-bar"><progress aria-label="replies" value="{progress.done}" '
            f'max="{progress.total}"></progress></div>'
        )
    return f"{bar}{note(line)}"


def shape_html(broken: Sequence[str], rules: int) -> str:
    """How many shape rules hold; each broken one is named."""
    if not rules:
        return '<div class="ek-note">no shape rules beside this prompt</div>'
    held = counted(rules, "rule holds", "rules hold")
    head = f"shape: {rules - len(broken)} of {held}"
    items = "".join(f"<li>✗ {esc(text)}</li>" for text in broken)
    return f'<div class="ek-note">{"✓" if not broken else "✗"} {head}</div><ul>{items}</ul>'


def table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """A plain table of escaped cells."""
    return table_html(head, rows)


def rendered(plan: Plan, case: Case) -> str:
    """The prompt as a case renders it, or why it cannot be rendered."""
    if plan.prompt is None:
        return ""
    try:
        messages = plan.prompt.render(case)
    except PromptError as error:
        return str(error)
    return "\n\n".join(f"# {message.role}\n{message.content}" for message in messages)


def verdict_html(summary: Summary, comparison: RunComparison | None) -> str:
    """The answer in words: a look, not a decision; each criterion's rate and how it moved."""
    lines: list[str] = []
    moved = comparison.sentences if comparison else {}
    for criterion in summary.criteria:
        low, high = criterion.score_range
        text = f"<b>{esc(criterion.name)}</b> {esc(rate_sentence(criterion.rate, span=high - low))}"
        if criterion.name in moved:
            change = f"against the baseline: {moved[criterion.name]}"
            text += f'<br><span class="ek-note">{esc(change)}</span>'
        lines.append(f"<li>{text}</li>")
    head = (
        f"{counted(summary.n_cases, 'case')}: a smoke look, not a decision. "
        f"{summary.errors} without reply, {counted(summary.system_errors, 'unusable reply')} "
        f"({summary.cut_off} cut off)."
    )
    pins = ""
    if comparison and comparison.pins.differences:
        items = "".join(f"<li>{esc(text)}</li>" for text in comparison.pins.differences)
        pins = (
            f"<details><summary>what differs from the baseline</summary><ul>{items}</ul></details>"
        )
    mark = '<span class="ek-quiet">not a decision</span>'
    return f'<div class="ek-verdict">{esc(head)} {mark}</div><ul>{"".join(lines)}</ul>{pins}'


def case_html(
    case: Case | None, rows: Sequence[Row], before: Sequence[Row] = (), *, rendered: str = ""
) -> str:
    """One case: question, pages, rendered prompt, replies with their findings, the old reply."""
    parts: list[str] = []
    if case is not None:
        parts.append(f'<div class="ek-verdict"><b>{esc(case.id)}</b> · {esc(case.stratum)}</div>')
        if case.why:
            parts.append(f'<div class="ek-note">why it is here: {esc(case.why)}</div>')
        parts += [block_html(value, name) for name, value in case.inputs.items()]
        pages = "\n\n".join(f"[{page.id}]\n{page.text}" for page in case.context)
        if pages:
            parts.append(folded("pages", block_html(pages)))
        if case.expected:
            parts.append(block_html(_plain(case.expected), "expected"))
    if rendered:
        parts.append(folded("rendered prompt", block_html(rendered)))
    old = {row.repeat: row.reply for row in before}
    for row in rows:
        parts.append(_row_html(row, old.get(row.repeat), len(rows) > 1))
    return "".join(parts)


def _row_html(row: Row, old: Reply | None, numbered: bool) -> str:
    title = f"reply, repeat {row.repeat}" if numbered else "reply"
    if row.reply is None:
        return block_html(row.error, f"{title}: none")
    facts = [f"finish {row.reply.finish.value}"]
    if row.reply.latency_s is not None:
        facts.append(f"{row.reply.latency_s:.1f} s")
    if row.reply.usage and row.reply.usage.completion_tokens is not None:
        facts.append(f"{row.reply.usage.completion_tokens} tokens")
    facts += [*row.reply.warnings, *row.reply.changes]
    findings = [f for score in row.scores.values() for f in score.findings]
    reply = marked_html(row.reply.text, findings)
    body = f'<div class="ek-title">{esc(title)} · {esc(" · ".join(facts))}</div>{reply}'
    if row.reply.reasoning:
        body += folded("reasoning, kept apart", block_html(row.reply.reasoning))
    body += table_html(
        ["criterion", "score", "why"],
        [[name, _score(s.value, s.status), s.reason] for name, s in row.scores.items()],
    )
    for name, verdicts in row.verdicts.items():
        for verdict in verdicts:
            flags = f" [{', '.join(verdict.flags)}]" if verdict.flags else ""
            said = verdict.justification or verdict.reason or verdict.raw
            body += block_html(said, f"{name}: {verdict.label or 'unscored'}{flags}")
    if old is not None and old.text != row.reply.text:
        left, right = diff_html(old.text, row.reply.text)
        body += (
            '<div class="ek-title">baseline beside now</div>'
            f'<div class="ek-two"><div>{left}</div><div>{right}</div></div>'
        )
    elif old is not None:
        body += '<div class="ek-note">the baseline\'s reply was the same</div>'
    return body


def _score(value: float | None, status: ScoreStatus) -> str:
    return status.value if value is None else f"{value:g}"


def _plain(value: Mapping[str, object]) -> str:
    return "\n".join(f"{name}: {entry}" for name, entry in value.items())


def folded(title: str, body: str) -> str:
    """Markup made here, behind its title until it is opened."""
    return f"<details><summary>{esc(title)}</summary>{body}</details>"

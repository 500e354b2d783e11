"""What a script prints of a run: plain lines of at most 100 columns, the counts first."""

from __future__ import annotations

from pathlib import Path

from evalkit.counting import counted
from evalkit.report.safe import terminal_text
from evalkit.report.tables import WIDTH, summary_text
from evalkit.runs.comparison import RunComparison
from evalkit.runs.run import Run
from evalkit.runs.summary import Summary

__all__ = ["run_text"]


def run_text(
    run: Run,
    summary: Summary,
    comparison: RunComparison | None = None,
    *,
    frozen: Path | None = None,
    cockpit: str = "",
) -> str:
    """A run for the terminal: pins, criteria, what changed, where it lies, what to do next.

    Args:
        run: The run.
        summary: Its summary.
        comparison: Against the baseline, where there is one.
        frozen: Where it was frozen into.
        cockpit: The command that opens the notebook.
    """
    manifest = run.manifest
    calls = manifest.calls
    new, usd = calls.get("new", 0), calls.get("usd")
    money = "price unknown" if usd is None else f"${usd:.4f}"
    sampling, prompt = manifest.sampling, manifest.prompt
    lines = [
        f"{manifest.suite} · {prompt.get('name')} {prompt.get('hash')}"
        f"{' (draft)' if prompt.get('draft') else ''} · {manifest.model} · "
        f"{sampling.get('n')} of {counted(sum(sampling.get('population', {}).values()), 'case')}"
        f" x {sampling.get('repeats')}",
        f"{counted(new, 'new call')}, {calls.get('recorded', 0)} recorded"
        + (f" · {money}" if new else ""),
        "",
        summary_text(summary),
    ]
    if manifest.stopped:
        lines.append(f"ended early: {manifest.stopped}")
    if comparison is not None:
        lines += ["", *_comparison_lines(comparison)]
    lines.append("")
    if run.folder:
        lines.append(f"run: {run.folder.as_posix()}")
    if frozen:
        lines.append(f"frozen: {frozen.as_posix()}")
    if cockpit:
        lines.append(f"look at it: {cockpit}")
    return "\n".join(terminal_text(line, 0) if line.isprintable() else line for line in lines)


def _comparison_lines(comparison: RunComparison) -> list[str]:
    lines = ["against the baseline:"]
    lines += [f"  {text}" for text in comparison.pins.differences]
    for name, text in comparison.sentences.items():
        lines += _wrapped(f"{name}: {text}")
    for name, why in (comparison.pins.not_comparable or {}).items():
        lines += _wrapped(f"{name}: not compared, {why}")
    if comparison.cases:
        moved = [f"{c.case_id} {c.direction}" for c in comparison.cases[:12]]
        more = len(comparison.cases) - len(moved)
        tail = f" and {more} more" if more > 0 else ""
        lines += _wrapped(
            f"{counted(len(comparison.cases), 'case')} changed: {', '.join(moved)}{tail}"
        )
    else:
        lines.append("  no case changed")
    return lines


def _wrapped(text: str) -> list[str]:
    import textwrap

    safe = terminal_text(text)
    return textwrap.wrap(safe, WIDTH, initial_indent="  ", subsequent_indent="    ")

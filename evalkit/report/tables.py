"""Tables: plain text for a terminal of 100 columns, and data frames for notebooks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from evalkit.counting import counted
from evalkit.records import Row
from evalkit.report.safe import defang, terminal_text
from evalkit.runs.run import Run
from evalkit.runs.summary import CriterionSummary, Summary
from evalkit.stats.result import Interval

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "case_frame",
    "criteria_rows",
    "interval_text",
    "passed_share",
    "share_text",
    "summary_text",
    "text_table",
    "value_text",
]

WIDTH = 100


def value_text(value: float | None, score_range: tuple[float, float] = (0.0, 1.0)) -> str:
    """A score for a table: a percentage for rates, two decimals for levels, "-" when missing."""
    if value is None or math.isnan(value):
        return "-"
    return f"{100 * value:.0f} %" if score_range == (0.0, 1.0) else f"{value:.2f}"


def interval_text(rate: Interval, score_range: tuple[float, float] = (0.0, 1.0)) -> str:
    """`71 % (51-85) n=24`; says "not measured" where there is no number."""
    if not rate.defined:
        return "not measured"
    scale = 100.0 if score_range == (0.0, 1.0) else 1.0
    digits = 0 if scale == 100.0 else 2
    ends = "-".join(
        "?" if math.isnan(end) else f"{end * scale:.{digits}f}"
        for end in (rate.ci_low, rate.ci_high)
    )
    return f"{value_text(rate.estimate, score_range)} ({ends}) n={rate.n_cases}"


def criteria_rows(summary: Summary) -> list[list[str]]:
    """One row a criterion, then one a stratum: name, rate, floor, and what stands beside."""
    rows: list[list[str]] = []
    for criterion in summary.criteria:
        rows.append(
            [
                criterion.name,
                interval_text(criterion.rate, criterion.score_range),
                _floor(criterion),
                _beside(criterion),
            ]
        )
        if len(criterion.by_stratum) > 1:
            rows += [
                [f"  {stratum}", interval_text(rate, criterion.score_range), "", ""]
                for stratum, rate in criterion.by_stratum.items()
            ]
    return rows


def summary_text(summary: Summary) -> str:
    """The criteria table of a run for a terminal, with what stands beside the rates."""
    head = ["criterion", "rate (95 % interval)", "floor", "beside"]
    table = text_table(head, criteria_rows(summary))
    notes = [
        f"{counted(summary.n_cases, 'case')}, {counted(summary.n_rows, 'observation')}",
        f"{summary.errors} without reply",
        f"{counted(summary.system_errors, 'unusable reply')} ({summary.cut_off} cut off): "
        "scored lowest",
    ]
    if summary.warnings:
        notes.append(f"{summary.warnings} with a warning")
    return f"{table}\n{' · '.join(notes)}"


def text_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Columns aligned with spaces, no colours, no line longer than `WIDTH`."""
    cells = [[terminal_text(c) for c in row] for row in [head, *rows]]
    sizes = [max(len(row[i]) for row in cells) for i in range(len(head))]
    while sum(sizes) + 2 * (len(sizes) - 1) > WIDTH:
        widest = max(range(len(sizes)), key=lambda i: sizes[i])
        sizes[widest] -= 1
    lines = [
        "  ".join(terminal_text(c, n).ljust(n) for c, n in zip(row, sizes, strict=True)).rstrip()
        for row in cells
    ]
    rule = "-" * min(WIDTH, sum(sizes) + 2 * (len(sizes) - 1))
    return "\n".join([lines[0], rule, *lines[1:]])


def case_frame(
    run: Run,
    baseline: Run | None = None,
    *,
    first: Sequence[str] = (),
    only: str = "all",
) -> pd.DataFrame:
    """One line a case: stratum, what it scored now and before, and the first finding.

    Text columns are made safe for notebook tables; look rows up by `id`, never by position.

    Args:
        run: The run.
        baseline: The frozen run, for the columns `was` and `change`.
        first: Cases that come first, in this order.
        only: all, failed (now), or changed (against the baseline).
    """
    import pandas as pd

    before = (
        {case: passed_share(rows) for case, rows in baseline.by_case().items()} if baseline else {}
    )
    records: list[dict[str, Any]] = []
    for case, rows in run.by_case().items():
        now = passed_share(rows)
        failed = [
            (name, score.reason)
            for row in rows
            for name, score in row.scores.items()
            if score.value is None or score.value < 1.0
        ]
        was = before.get(case)
        records.append(
            {
                "id": case,
                "stratum": rows[0].stratum,
                "now": share_text(now),
                "was": share_text(was) if baseline else "",
                "change": _change(was, now) if baseline else "",
                "failed": ", ".join(dict.fromkeys(name for name, _ in failed)),
                "finding": defang(failed[0][1])[:160] if failed else "",
            }
        )
    order = {case: i for i, case in enumerate(first)}
    records.sort(key=lambda r: (order.get(r["id"], len(order)), r["now"] == "pass"))
    keep = {"failed": lambda r: r["now"] != "pass", "changed": lambda r: r["id"] in order}
    records = [r for r in records if keep.get(only, lambda _: True)(r)]
    return pd.DataFrame(
        records, columns=["id", "stratum", "now", "was", "change", "finding", "failed"]
    )


def passed_share(rows: Sequence[Row]) -> float | None:
    """Share of a case's observations in which every criterion with a score passed."""
    marks = [
        all(s.value == 1.0 for s in row.scores.values() if s.value is not None)
        for row in rows
        if row.reply is not None and row.scores
    ]
    return sum(marks) / len(marks) if marks else None


def share_text(value: float | None) -> str:
    """`pass`, `fail`, or how many observations passed."""
    if value is None:
        return "no reply"
    return {0.0: "fail", 1.0: "pass"}.get(value, f"{100 * value:.0f} % pass")


def _change(was: float | None, now: float | None) -> str:
    if was is None or now is None:
        return "not in both"
    if was == now:
        return ""
    return "▲ better" if now > was else "▼ worse"


def _floor(criterion: CriterionSummary) -> str:
    if criterion.rule.get("hard"):
        return "hard"
    floor = criterion.rule.get("min")
    if floor is None:
        return ""
    shown = "" if criterion.rule.get("gate", True) else " (shown)"
    return f"{value_text(float(floor), criterion.score_range)}{shown}"


def _beside(criterion: CriterionSummary) -> str:
    words = {"unscored": "unscored", "missing": "missing", "not_measured": "not measured"}
    parts = [f"{n} {words[s]}" for s, n in criterion.counts.items() if s in words and n]
    if stopped := criterion.counts.get("not_judged", 0):
        parts.append(f"{stopped} stopped before")
        if criterion.among_judged is not None:
            parts.append(f"among judged {interval_text(criterion.among_judged)}")
    return ", ".join(parts)

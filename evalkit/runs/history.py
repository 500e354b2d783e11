"""The ledger over time: each metric's points, and what caused each step."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from evalkit.runs.ledger import LedgerEntry, read_ledger

__all__ = ["CAUSES", "Point", "Series", "series_of", "series_of_entries"]

# What may move a score, in the order in which causes are named: each with the columns that say so.
CAUSES = {
    "prompt": ("prompt_hash",),
    "code": ("git_sha", "app_version"),
    "model": ("model",),
    "cases": ("suite_digest",),
    "judge": ("judge_hash",),
}
DRIFT = "drift"


@dataclass(frozen=True)
class Point:
    """One entry, and what changed since the one before.

    `causes` are keys of `CAUSES`. `moved` tells that the two intervals do not overlap, so that the
    step is more than the noise of two runs is likely to make. `drift` is a step without any cause.
    """

    entry: LedgerEntry
    causes: tuple[str, ...] = ()
    first: bool = False
    moved: bool = False

    @property
    def drift(self) -> bool:
        """Nothing that is recorded changed, and the score moved."""
        return not self.first and not self.causes and self.moved

    @property
    def cause(self) -> str:
        """In words: first, code, prompt, both, model ..., none, or drift."""
        if self.first:
            return "first"
        if not self.causes:
            return DRIFT if self.drift else "none"
        if set(self.causes) == {"prompt", "code"}:
            return "both (prompt and code)"
        return " and ".join(self.causes)


@dataclass(frozen=True)
class Series:
    """One metric of one suite (or judge), oldest first."""

    name: str
    metric: str
    points: tuple[Point, ...]

    @property
    def title(self) -> str:
        """What a reader calls it."""
        return f"{self.name} · {self.metric}"


def series_of(path: Path, *, suite: str = "", metric: str = "") -> list[Series]:
    """The series in a ledger, optionally of one suite and one metric.

    Raises:
        LedgerError: If the file is not a ledger.
    """
    name = Path(suite).name if suite else ""
    entries = read_ledger(path)
    return series_of_entries(
        e for e in entries if name in ("", e.name) and metric in ("", e.metric)
    )


def series_of_entries(entries: Iterable[LedgerEntry]) -> list[Series]:
    """Group entries by name and metric, order them by date, and attribute every step."""
    groups: dict[tuple[str, str], list[LedgerEntry]] = {}
    for entry in entries:
        groups.setdefault((entry.name, entry.metric), []).append(entry)
    return [
        Series(name, metric, tuple(_points(sorted(found, key=lambda e: e.date))))
        for (name, metric), found in groups.items()
    ]


def _points(entries: list[LedgerEntry]) -> Iterable[Point]:
    before: LedgerEntry | None = None
    for entry in entries:
        if before is None:
            yield Point(entry, first=True)
        else:
            yield Point(entry, _causes(before, entry), moved=_moved(before, entry))
        before = entry


def _causes(before: LedgerEntry, after: LedgerEntry) -> tuple[str, ...]:
    found = [
        cause
        for cause, columns in CAUSES.items()
        if any(getattr(before, column) != getattr(after, column) for column in columns)
    ]
    if "code" not in found and after.git_sha.endswith("+dirty"):
        found.append("code")  # the commit is the same, and files beside it were changed
    return tuple(sorted(found, key=list(CAUSES).index))


def _moved(before: LedgerEntry, after: LedgerEntry) -> bool:
    ends = (before.ci_low, before.ci_high, after.ci_low, after.ci_high)
    if any(math.isnan(end) for end in ends):
        return before.score != after.score and not math.isnan(after.score)
    return after.ci_low > before.ci_high or after.ci_high < before.ci_low

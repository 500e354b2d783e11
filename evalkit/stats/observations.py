"""Scores as they enter the room: a matrix case x run on [0, 1], with what is missing counted."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalkit.errors import StatsError

__all__ = ["Observation", "Observations", "check_conf", "observe", "runs_by_case"]

Floats = NDArray[np.float64]
ScoreRange = tuple[float, float]


class Observation(StrEnum):
    """What became of one planned run of one case.

    OK: a score. SYSTEM_ERROR: the system answered with nothing usable; it scores lowest.
    JUDGE_INVALID: no usable verdict. SKIPPED: no reply, or never run. The last two are missing.
    """

    OK = "ok"
    SYSTEM_ERROR = "system_error"
    JUDGE_INVALID = "judge_invalid"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Observations:
    """`values` (cases, runs) on [0, 1], NaN where there is no score; `planned` where one was due.

    Ragged input is padded with unplanned cells, which are not missing.
    """

    values: Floats
    planned: NDArray[np.bool_]
    score_range: ScoreRange
    n_system_error: int = 0
    n_invalid: int = 0

    @property
    def valid(self) -> NDArray[np.bool_]:
        """Where there is a score."""
        return ~np.isnan(self.values)

    @property
    def n_missing(self) -> int:
        """Planned observations without a score."""
        return int((self.planned & ~self.valid).sum())

    @property
    def missing_share(self) -> float:
        """Missing among planned observations; 0 when none was planned."""
        return self.n_missing / max(int(self.planned.sum()), 1)

    @property
    def binary(self) -> bool:
        """True when every score is the lowest or the highest."""
        seen = self.values[self.valid]
        return bool(np.all((seen == 0) | (seen == 1)))

    def filled(self, with_: Literal["lowest", "highest"]) -> Observations:
        """Every missing observation set to one end of the range, for worst and best bounds."""
        gap = self.planned & ~self.valid
        values = np.where(gap, float(with_ == "highest"), self.values)
        return replace(self, values=values)

    def by_unit(self, units: Sequence[Hashable] | None) -> Observations:
        """One row per unit (cluster): the runs of all its cases; None leaves the cases."""
        if units is None:
            return self
        if len(units) != len(self.values):
            raise StatsError(
                f"{len(units)} cluster ids for {len(self.values)} cases; give one per case."
            )
        if len(set(units)) == len(units):
            return self
        rows: dict[Hashable, list[int]] = {}
        for i, unit in enumerate(units):
            rows.setdefault(unit, []).append(i)
        values = _pad([self.values[at].ravel() for at in rows.values()])
        planned = _pad([self.planned[at].ravel() for at in rows.values()], fill=0.0) > 0
        return replace(self, values=values, planned=planned)

    def scaled_back(self, value: float) -> float:
        """A value on [0, 1] in the unit of the scores."""
        low, high = self.score_range
        return value * (high - low) + low


def observe(
    scores: ArrayLike | Sequence[Sequence[float | None]] | Mapping[Any, Sequence[float | None]],
    *,
    status: Sequence[Sequence[str]] | None = None,
    score_range: ScoreRange = (0.0, 1.0),
) -> Observations:
    """Check scores and bring them to [0, 1].

    Args:
        scores: Case x run: a matrix, one row of runs per case (rows may differ in length), or one
            score per case. NaN or None is a missing observation.
        status: `Observation` per score, same shape. Without it every NaN is SKIPPED.
        score_range: Lowest and highest score the metric can give.

    Raises:
        StatsError: If a score is infinite or outside the range, if the range is empty, if status
            has another shape or an unknown word, or calls a score OK that is not there.
    """
    low, high = (float(x) for x in score_range)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise StatsError(f"the score range {score_range} is not a lowest and a higher number.")
    if isinstance(scores, Mapping):
        scores = list(scores.values())
    values = _table(scores)
    if values is not None:
        planned = np.ones(values.shape, dtype=bool)
    else:
        rows = [_row(r, i) for i, r in enumerate(scores)]  # pyright: ignore[reportArgumentType]
        values = _pad(rows)
        planned = _pad([np.ones(len(r)) for r in rows], fill=0.0) > 0
    bad = np.isinf(values) | (values < low) | (values > high)
    if bad.any():
        case, run = (int(x) for x in np.argwhere(bad)[0])
        raise StatsError(
            f"case {case}, run {run}: the score {values[case, run]:g} is outside {low:g}..{high:g}."
            " Declare the metric's range or mend the scorer."
        )
    values = (values - low) / (high - low)
    errors = invalid = 0
    if status is not None:
        codes = _codes(status, planned)
        errors, invalid = (
            int((codes == "system_error").sum()),
            int((codes == "judge_invalid").sum()),
        )
        if np.any((codes == "ok") & planned & np.isnan(values)):
            raise StatsError("an observation has the status ok and no score; say what it is.")
        values = np.where(codes == "system_error", 0.0, values)
        values = np.where((codes == "judge_invalid") | (codes == "skipped"), np.nan, values)
    return Observations(values, planned, (low, high), errors, invalid)


def runs_by_case(
    cases: Sequence[Hashable], runs: Sequence[Hashable], scores: Sequence[float | None]
) -> dict[Hashable, list[float]]:
    """A long table (one line per case and run) as case id to its runs, in order of appearance.

    A run that another case has and this one lacks becomes NaN: it was planned and is missing.

    Raises:
        StatsError: If the columns differ in length or a case has the same run twice.
    """
    if not len(cases) == len(runs) == len(scores):
        raise StatsError(f"columns of {len(cases)}, {len(runs)} and {len(scores)} entries.")
    order = {run: i for i, run in enumerate(dict.fromkeys(runs))}
    table: dict[Hashable, list[float]] = {}
    filled: set[tuple[Hashable, Hashable]] = set()
    for case, run, score in zip(cases, runs, scores, strict=True):
        if (case, run) in filled:
            raise StatsError(f"case {case!r} has run {run!r} twice; keep one of them.")
        filled.add((case, run))
        row = table.setdefault(case, [math.nan] * len(order))
        row[order[run]] = math.nan if score is None else float(score)
    return table


def check_conf(name: str, value: float) -> float:
    """The value, when it lies strictly between 0 and 1."""
    if not 0.0 < value < 1.0:
        raise StatsError(f"{name} is {value:g}; it must lie strictly between 0 and 1.")
    return float(value)


def _table(scores: Any) -> Floats | None:
    """Scores that already are a rectangle of numbers; None for ragged rows, None or words."""
    try:
        found = np.asarray(scores)
    except ValueError:
        return None
    rectangle = found.ndim == 2 and found.dtype.kind in "bif"
    return found.astype(np.float64) if rectangle else None


def _row(row: Any, at: int) -> Floats:
    if row is None or isinstance(row, (int, float, np.number)):
        row = [row]
    try:
        values = np.array([math.nan if x is None else float(x) for x in row], dtype=np.float64)
    except (TypeError, ValueError):
        raise StatsError(f"case {at}: {row!r} is not a row of numbers.") from None
    return values


def _pad(rows: Sequence[NDArray[Any]], fill: float = math.nan) -> Floats:
    width = max((len(r) for r in rows), default=0)
    out = np.full((len(rows), width), fill)
    for i, row in enumerate(rows):
        out[i, : len(row)] = row
    return out


def _codes(status: Sequence[Sequence[str]], planned: NDArray[np.bool_]) -> NDArray[np.str_]:
    known = {str(x) for x in Observation}
    rows = [(s,) if isinstance(s, str) else s for s in status]
    if [len(r) for r in rows] != [int(n) for n in planned.sum(axis=1)]:
        raise StatsError("status has another shape than the scores; give one word per score.")
    words = [str(s) for row in rows for s in row]
    if unknown := set(words) - known:
        i, word = next((i, s) for i, row in enumerate(rows) for s in row if str(s) in unknown)
        raise StatsError(f"case {i}: status {word!r} is none of {sorted(known)}.")
    codes = np.full(planned.shape, "", dtype="<U16")
    codes[planned] = words  # the planned cells of a row are its first ones
    return codes

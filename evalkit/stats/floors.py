"""Rulings that need no baseline: a counted property, a floor, a win rate; and what missing does.

Thresholds and alpha are inputs fixed before the run. More than 5 % missing, or missing
observations that would decide, make a ruling BROKEN: it was not measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from evalkit.errors import StatsError
from evalkit.stats.bounds import one_sided_bounds
from evalkit.stats.decision import Decision, Ruling, Strictness
from evalkit.stats.intervals import cases_to_prove
from evalkit.stats.observations import Observations, ScoreRange, check_conf
from evalkit.stats.repeats import as_observations, case_means, pass_rate
from evalkit.stats.wording import broken_sentence, counted_sentence, floor_sentence

__all__ = [
    "MOST_MISSING",
    "counted_verdict",
    "floor_verdict",
    "missing_decides",
    "win_rate_verdict",
]

MOST_MISSING = 0.05


def counted_verdict(
    scores: Any,
    *,
    strictness: Strictness = Strictness.SMOKE,
    pass_at: float = 1.0,
    status: Sequence[Sequence[str]] | None = None,
    score_range: ScoreRange = (0.0, 1.0),
) -> Ruling:
    """A hard property (or a floor of 1): counted, not estimated; one failing run fails it.

    A failure that was seen is a FAIL whatever is missing; without one, any missing observation
    could have been it and the property was not measured (BROKEN).

    Args:
        scores: Case x run, as `observe` takes it, or `Observations`.
        strictness: Kept on the ruling; the rule is the same for both.
        pass_at: Lowest score on [0, 1] that passes.
        status: `Observation` word per score.
        score_range: Lowest and highest score.

    Returns:
        extra: n_failed, failed_cases (row numbers).
    """
    seen = as_observations(scores, status, score_range)
    failed = seen.valid & (seen.values < pass_at)
    rate = pass_rate(replace(seen, values=np.where(seen.valid, 1.0 - failed, math.nan)))
    reasons: list[str] = []
    if failed.any():
        decision, finding = Decision.FAIL, "broken"
    elif reason := _not_measured(seen, seen.n_missing > 0):
        decision, finding = Decision.BROKEN, ""
        reasons.append(reason)
    else:
        decision, finding = Decision.PASS, "held"
    return Ruling(
        decision,
        "counted",
        strictness,
        1.0,
        rate,
        lower=rate.ci_low,
        upper=rate.ci_high,
        finding=finding,
        reasons=tuple(reasons),
        sentence=broken_sentence(reasons[-1], rate)
        if decision is Decision.BROKEN
        else counted_sentence(
            int(failed.sum()), int(seen.valid.sum()), rate.n_cases, seen.n_missing
        ),
        extra={
            "n_failed": int(failed.sum()),
            "failed_cases": tuple(int(i) for i in np.flatnonzero(failed.any(axis=1))),
        },
    )


def floor_verdict(
    scores: Any,
    floor: float,
    *,
    strictness: Strictness,
    alpha: float = 0.05,
    conf: float = 0.95,
    binary: bool | None = None,
    status: Sequence[Sequence[str]] | None = None,
    score_range: ScoreRange = (0.0, 1.0),
    clusters: Sequence[Hashable] | None = None,
) -> Ruling:
    """Is the rate (or mean) at least `floor`? Proven, refuted, or neither.

    proven: one-sided lower bound at or above the floor, with at least as many cases as could ever
    prove it; refuted: one-sided upper bound below it. smoke: FAIL iff refuted, UNDECIDED when the
    estimate is below, else PASS. release: PASS iff proven, FAIL when the estimate is below, else
    UNDECIDED. BROKEN: more than 5 % missing, or missing data that decide.

    Args:
        scores: Case x run, as `observe` takes it, or `Observations`.
        floor: In score units, inside the range. A floor at the top is counted: `counted_verdict`.
        strictness: smoke or release.
        alpha: Error of each one-sided bound.
        conf: Level of the interval shown.
        binary: Whether scores are pass/fail; None looks.
        status: `Observation` word per score.
        score_range: Lowest and highest score.
        clusters: One id per case.

    Raises:
        StatsError: If the floor lies outside the range or at its ends, or scores are malformed.
    """
    seen = as_observations(scores, status, score_range)
    return _against(
        seen, floor, "floor", strictness, alpha, conf=conf, binary=binary, clusters=clusters
    )


def win_rate_verdict(
    scores: Any,
    least: float,
    *,
    strictness: Strictness,
    alpha: float = 0.05,
    status: Sequence[Sequence[str]] | None = None,
    clusters: Sequence[Hashable] | None = None,
) -> Ruling:
    """Is the win rate against the baseline at least `least`?

    smoke: FAIL iff the upper bound is below it, else PASS (UNDECIDED when the estimate is below).
    release: PASS iff the lower bound is at or above it, FAIL iff the upper bound is below it.

    Args:
        scores: Case x run of 1 win, 0.5 tie, 0 loss of the candidate, or `Observations`.
        least: Lowest win rate allowed, in (0, 1).
        strictness: smoke or release.
        alpha: Error of each one-sided bound.
        status: `Observation` word per score.
        clusters: One id per case.

    Raises:
        StatsError: If `least` is outside (0, 1) or scores are malformed.
    """
    seen = as_observations(scores, status)
    return _against(seen, least, "win_rate", strictness, alpha, clusters=clusters)


def _against(
    seen: Observations,
    floor: float,
    rule: Literal["floor", "win_rate"],
    strictness: Strictness,
    alpha: float,
    *,
    conf: float = 0.95,
    binary: bool | None = None,
    clusters: Sequence[Hashable] | None = None,
) -> Ruling:
    check_conf("alpha", alpha)
    at = _on_unit(floor, seen.score_range, "floor")
    rate = pass_rate(seen, conf=conf, binary=binary, clusters=clusters)

    def judged(some: Observations) -> tuple[Decision, str, float, float]:
        units = some.by_unit(clusters)
        low, high = one_sided_bounds(units, alpha, binary=binary)
        means = case_means(units)[0]
        mean = float(means.mean()) if len(means) else math.nan
        proven = low >= at and len(means) >= cases_to_prove(at, alpha)
        finding = "proven" if proven else "refuted" if high < at else "neither"
        below = mean < at - 1e-12
        if strictness is Strictness.SMOKE:
            decision = Decision.FAIL if finding == "refuted" else Decision.PASS
            if decision is Decision.PASS and (below or math.isnan(mean)):
                decision = Decision.UNDECIDED
        elif proven:
            decision = Decision.PASS
        else:
            fails = below if rule == "floor" else finding == "refuted"
            decision = Decision.FAIL if fails else Decision.UNDECIDED
        return decision, finding, low, high

    decision, finding, low, high = judged(seen)
    decision, reasons = _bounded(decision, seen, lambda some: judged(some)[0])
    low, high = seen.scaled_back(low), seen.scaled_back(high)
    fewest = cases_to_prove(at, alpha)
    span = seen.score_range[1] - seen.score_range[0]
    return Ruling(
        decision,
        rule,
        strictness,
        floor,
        rate,
        low,
        high,
        finding,
        cases_needed=fewest if rate.n_cases < fewest else None,
        reasons=reasons,
        sentence=broken_sentence(reasons[-1], rate, span)
        if decision is Decision.BROKEN
        else floor_sentence(
            rate,
            floor,
            low,
            high,
            finding=finding,
            span=span,
            cases_needed=fewest if rate.n_cases < fewest else None,
        ),
    )


def _bounded(
    decision: Decision, seen: Observations, decide: Callable[[Observations], Decision]
) -> tuple[Decision, tuple[str, ...]]:
    """The decision, or BROKEN when too much is missing or the missing would decide."""
    if not seen.n_missing and seen.valid.any():
        return decision, ()
    ends = [decide(seen.filled(end)) for end in ("lowest", "highest")]
    reason = _not_measured(seen, missing_decides(decision, ends))
    return (Decision.BROKEN, (reason,)) if reason else (decision, ())


def missing_decides(decision: Decision, ends: Sequence[Decision]) -> bool:
    """Whether the decision turns with the missing: `ends` are (worst, best)."""
    return len(set(ends)) > 1 or (decision is Decision.PASS and ends[0] is not Decision.PASS)


def _not_measured(seen: Observations, decides: bool) -> str:
    if not seen.valid.any():
        return "no_observations"
    if seen.missing_share > MOST_MISSING:
        return "too_many_missing"
    return "missing_data_decides" if decides else ""


def _on_unit(value: float, score_range: ScoreRange, name: str) -> float:
    low, high = score_range
    at = (value - low) / (high - low)
    if not 0 < at < 1:
        raise StatsError(
            f"the {name} {value:g} must lie strictly inside {low:g}..{high:g}; at the top it is "
            "counted, not estimated (counted_verdict)."
        )
    return at

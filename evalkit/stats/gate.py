"""The regression gate: is the candidate at most a margin worse than the baseline?

`smoke` holds the false alarm on an unchanged system at alpha, `release` the shipping of a drop of
`margin` or more. Margins and alpha are inputs fixed before the run. Data that cannot decide never
raise. The rulings that need no baseline (`counted_verdict`, `floor_verdict`, `win_rate_verdict`)
live in `floors` and are listed here too: this is the door to every ruling.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalkit.errors import StatsError
from evalkit.stats.compare import compare_paired
from evalkit.stats.decision import Decision, Ruling, Strictness
from evalkit.stats.differences import GateBounds, drop_p, gate_bounds, moments
from evalkit.stats.floors import (
    MOST_MISSING,
    counted_verdict,
    floor_verdict,
    missing_decides,
    win_rate_verdict,
)
from evalkit.stats.intervals import cases_to_prove
from evalkit.stats.multiplicity import holm
from evalkit.stats.observations import ScoreRange, check_conf
from evalkit.stats.pairs import Missing, Pairs, pair_up
from evalkit.stats.power import cases_for_release, minimum_detectable_effect
from evalkit.stats.result import Interval
from evalkit.stats.wording import SMALL_SET, broken_sentence, relative_sentence

__all__ = [
    "NonInferiority",
    "counted_verdict",
    "floor_verdict",
    "holm_family",
    "non_inferiority",
    "relative_decisions",
    "relative_verdict",
    "win_rate_verdict",
]


@dataclass(frozen=True)
class NonInferiority:
    """NON_INFERIOR, INFERIOR or UNDECIDED at `margin`, with the bounds it was read from."""

    finding: str
    bounds: GateBounds
    margin: float


def non_inferiority(differences: Any, margin: float, alpha: float = 0.05) -> NonInferiority:
    """Is the candidate at most `margin` worse? One-sided, each bound at level 1 - alpha.

    NON_INFERIOR if the lower bound exceeds -margin, INFERIOR if the upper bound is below it, else
    UNDECIDED. With fewer than ln(alpha)/ln(1 - margin) cases and no change it is never
    NON_INFERIOR.

    Args:
        differences: Candidate minus baseline on [-1, 1], one per case, two or more.
        margin: Allowed drop on the same scale, in (0, 1).
        alpha: Error of each bound.

    Raises:
        StatsError: If the margin or alpha is outside (0, 1) or there are fewer than two cases.
    """
    _check_margin(margin)
    check_conf("alpha", alpha)
    if np.asarray(differences).shape[-1] < 2:
        raise StatsError("non-inferiority needs two cases or more.")
    bounds = gate_bounds(differences, alpha)
    return NonInferiority(str(_findings(bounds, margin)), bounds, margin)


def relative_decisions(
    differences: Any, margin: float, *, strictness: Strictness, alpha: float = 0.05
) -> NDArray[np.str_]:
    """Decisions of the regression gate for differences (..., n >= 2); the gate itself uses it.

    smoke: FAIL iff a drop is shown (one-sided p < alpha) and not shown to be inside the margin;
    PASS iff non-inferior, else UNDECIDED. release: PASS iff non-inferior, FAIL iff inferior, else
    UNDECIDED.
    """
    finding = _findings(gate_bounds(differences, alpha), margin)
    good = finding == "NON_INFERIOR"
    if strictness is Strictness.SMOKE:
        bad = ~good & (drop_p(moments(differences)) < alpha)
    else:
        bad = finding == "INFERIOR"
    return np.where(good, Decision.PASS, np.where(bad, Decision.FAIL, Decision.UNDECIDED))


def relative_verdict(
    baseline: Any,
    candidate: Any,
    margin: float,
    *,
    strictness: Strictness,
    alpha: float = 0.05,
    power: float = 0.8,
    judged: bool = False,
    judge_j: float | None = None,
    score_range: ScoreRange = (0.0, 1.0),
    seed: int = 0,
    **pairing: Any,
) -> Ruling:
    """Is the candidate at most `margin` worse than the baseline on the same cases?

    See `relative_decisions` for the rule. BROKEN: no pair, more than 5 % of the observations of
    either side missing, or missing data that decide (the candidate's missing set to the lowest and
    the baseline's to the highest score, and the other way round).

    Args:
        baseline: Case id to runs, or a matrix case x run (see `pair_up`).
        candidate: The same.
        margin: Allowed drop in score units, positive, narrower than the range.
        strictness: smoke or release.
        alpha: Error held by the strictness.
        power: Power at which the minimum detectable effect and the cases needed are given.
        judged: True when a model judge gave the scores.
        judge_j: TPR + TNR - 1 of that judge; the margin applied is margin·J.
        score_range: Lowest and highest score.
        seed: Seed of the sign-flip check.
        pairing: Further arguments of `pair_up`: statuses, clusters, content, allow_partial.

    Returns:
        `interval` is the two-sided interval of the change at 1 - alpha, `p` the one-sided p-value
        of a drop, `mde` one-sided. extra: comparison, lower_t, lower_score, lower_guard,
        margin_used.

    Raises:
        StatsError: If margin or alpha is out of range, the case sets differ, or scores are
            malformed.
    """
    check_conf("alpha", alpha)
    low, high = score_range
    unit_margin = margin / (high - low)
    _check_margin(unit_margin)
    reasons: list[str] = []
    if judged and judge_j is None:
        reasons.append("margin_not_judge_adjusted")
    used = unit_margin * (judge_j if judge_j is not None else 1.0)

    def pairs_with(missing: Missing) -> Pairs:
        return pair_up(baseline, candidate, score_range=score_range, missing=missing, **pairing)

    pairs = pairs_with("drop")
    found = compare_paired(pairs, conf=1 - alpha, power=power, seed=seed)
    n = found.interval.n_cases
    reasons += list(found.interval.reasons)
    broken = [
        name
        for name, holds in (
            ("judge_not_informative", judge_j is not None and judge_j <= 0),
            ("no_pairs", n == 0),
            ("too_many_missing", pairs.missing_share > MOST_MISSING),
        )
        if holds
    ]
    if broken:
        because = (*reasons, *broken)
        return _without_bounds(
            Decision.BROKEN, found.interval, strictness, margin, because, pairs.span
        )

    def decide(differences: Any) -> Decision:
        if len(differences) < 2:
            return Decision.UNDECIDED
        return Decision(
            str(relative_decisions(differences, used, strictness=strictness, alpha=alpha))
        )

    decision = decide(pairs.differences)
    if pairs.n_missing:
        ends = [decide(pairs_with("worst").differences), decide(pairs_with("best").differences)]
        if missing_decides(decision, ends):
            decision = Decision.BROKEN
            reasons.append("missing_data_decides")
    if n < max(SMALL_SET, cases_to_prove(1 - used, alpha)):
        reasons.append("small_set")
    if n < 2:
        return _without_bounds(
            decision, found.interval, strictness, margin, (*reasons, "n_lt_2"), pairs.span
        )
    span, m = pairs.span, moments(pairs.differences)
    bounds = gate_bounds(pairs.differences, alpha)
    finding, p = str(_findings(bounds, used)), float(drop_p(m))
    needed = cases_for_release(float(m.sd), used, alpha=alpha, power=power)
    shown = needed if finding == "UNDECIDED" and needed > n else None
    mde = minimum_detectable_effect(float(m.se), n, alpha=alpha, power=power, sided=1) * span
    return Ruling(
        decision,
        "relative",
        strictness,
        margin,
        found.interval,
        lower=float(bounds.lower) * span,
        upper=float(bounds.upper) * span,
        finding=finding,
        p=p,
        mde=mde,
        cases_needed=shown,
        reasons=tuple(dict.fromkeys(reasons)),
        sentence=broken_sentence("missing_data_decides", found.interval, span, change=True)
        if decision is Decision.BROKEN
        else relative_sentence(
            replace(found, mde=mde),
            used * span,
            float(bounds.lower) * span,
            decision=decision,
            finding=finding,
            strictness=strictness,
            drop_shown=p < alpha,
            span=span,
            cases_needed=shown,
            reasons=reasons,
        ),
        extra={
            "comparison": found,
            "lower_t": float(bounds.lower_t) * span,
            "lower_score": float(bounds.lower_score) * span,
            "lower_guard": float(bounds.lower_guard) * span,
            "margin_used": used * span,
        },
    )


def holm_family(rulings: Sequence[Ruling], alpha: float = 0.05) -> tuple[Ruling, ...]:
    """Take back alarms of relative smoke rulings that do not stand up in their family.

    "Block if any of m criteria alarms" needs Holm: a FAIL whose adjusted p exceeds alpha becomes
    UNDECIDED. Release rulings need none (all must be non-inferior) and stay as they are, like
    every other rule. The adjusted p stands in extra["p_holm"].
    """
    at = [i for i, r in enumerate(rulings) if _alarms(r)]
    adjusted = holm([float(rulings[i].p or 0.0) for i in at], alpha=alpha).adjusted
    out = list(rulings)
    for i, p in zip(at, adjusted, strict=True):
        ruling = rulings[i]
        extra = {**ruling.extra, "p_holm": float(p), "family_size": len(at)}
        if ruling.decision is Decision.FAIL and p > alpha:
            sentence = (
                f"not distinguished among {len(at)} criteria (Holm-adjusted p = {p:.3f}); alone it "
                f"would read: {ruling.sentence}"
            )
            ruling = replace(
                ruling,
                decision=Decision.UNDECIDED,
                reasons=(*ruling.reasons, "not_confirmed_by_holm"),
                sentence=sentence,
            )
        out[i] = replace(ruling, extra=extra)
    return tuple(out)


def _alarms(ruling: Ruling) -> bool:
    return (
        ruling.rule == "relative"
        and ruling.strictness is Strictness.SMOKE
        and ruling.decision is not Decision.BROKEN
        and ruling.p is not None
    )


def _findings(bounds: GateBounds, margin: float) -> NDArray[np.str_]:
    return np.where(
        bounds.lower > -margin,
        "NON_INFERIOR",
        np.where(bounds.upper < -margin, "INFERIOR", "UNDECIDED"),
    )


def _without_bounds(
    decision: Decision,
    interval: Interval,
    strictness: Strictness,
    margin: float,
    reasons: tuple[str, ...],
    span: float,
) -> Ruling:
    return Ruling(
        decision,
        "relative",
        strictness,
        margin,
        interval,
        math.nan,
        math.nan,
        reasons=reasons,
        sentence=broken_sentence(reasons[-1], interval, span, change=True)
        if decision is Decision.BROKEN
        else f"not distinguished: {interval.n_cases} pair cannot show a difference.",
    )


def _check_margin(margin: float) -> None:
    if not 0 < margin < 1:
        raise StatsError(
            f"the margin is {margin:g} of the score range; it must lie strictly between 0 and 1. "
            "A property that may not drop at all is counted: use a hard criterion."
        )

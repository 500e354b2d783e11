"""One criterion's scores to rulings: counted, floor, drop against the baseline, win rate."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from evalkit.cases.criterion import Criterion
from evalkit.errors import SuiteError
from evalkit.runs.matrix import CriterionScores
from evalkit.stats.decision import Decision, Ruling, Strictness
from evalkit.stats.floors import MOST_MISSING, missing_decides
from evalkit.stats.gate import (
    counted_verdict,
    floor_verdict,
    relative_verdict,
    win_rate_verdict,
)
from evalkit.stats.intervals import cases_to_prove
from evalkit.stats.strata import stratified_mean
from evalkit.stats.wording import floor_sentence

__all__ = ["Evidence", "check_rules", "own_rulings", "relative_ruling"]


@dataclass(frozen=True)
class Evidence:
    """What rulings are made with: the rule in force, and how the cases were drawn.

    `weights` are each stratum's share of the traffic, where the sample does not carry it.
    """

    strictness: Strictness
    alpha: float = 0.05
    weights: Mapping[str, float] | None = None
    contents: Mapping[str, str] = field(default_factory=dict)
    changed: Collection[str] = ()


def check_rules(name: str, rule: Mapping[str, Any], score_range: tuple[float, float]) -> None:
    """Thresholds that no data could ever meet or miss, found before anything is paid.

    Raises:
        SuiteError: If a floor is the lowest score, or a margin is 0 or the whole range.
    """
    low, high = score_range
    floor, drop = rule.get("min"), rule.get("max_drop")
    if floor is not None and not rule.get("hard") and not low < floor <= high:
        raise SuiteError(
            f"criterion {name!r}: 'min' is {floor:g}, but scores run from {low:g} to {high:g}; "
            "a floor lies above the lowest and not above the highest."
        )
    if drop is not None and not 0 < drop < high - low:
        raise SuiteError(
            f"criterion {name!r}: 'max_drop' is {drop:g}; a margin lies between 0 and "
            f"{high - low:g}. What may not drop at all is 'hard' or has 'min = {high:g}'."
        )
    if (least := rule.get("min_win_rate")) is not None and not 0 < least < 1:
        raise SuiteError(f"criterion {name!r}: 'min_win_rate' is {least:g}; it lies inside 0..1.")


def own_rulings(
    criterion: Criterion, rule: Mapping[str, Any], scores: CriterionScores, by: Evidence
) -> list[Ruling]:
    """The rulings that need no baseline's scores: hard or counted, floor, win rate."""
    values, words = list(scores.values.values()), list(scores.words.values())
    low, high = scores.score_range
    floor = rule.get("min")
    if rule.get("hard") or (floor is not None and floor >= high):
        return [
            counted_verdict(
                values, strictness=by.strictness, status=words, score_range=scores.score_range
            )
        ]
    found: list[Ruling] = []
    if floor is not None:
        strata = dict.fromkeys(scores.stratum.values())
        if by.weights is not None and len(strata) > 1:
            found.append(_weighted_floor(scores, float(floor), by))
        else:
            found.append(
                floor_verdict(
                    values,
                    float(floor),
                    strictness=by.strictness,
                    status=words,
                    score_range=(low, high),
                    clusters=scores.clusters,
                )
            )
    if criterion.against and rule.get("min_win_rate") is not None:
        found.append(
            win_rate_verdict(
                values,
                float(rule["min_win_rate"]),
                strictness=by.strictness,
                status=words,
                clusters=scores.clusters,
            )
        )
    return found


def relative_ruling(
    rule: Mapping[str, Any],
    now: CriterionScores,
    then: CriterionScores,
    by: Evidence,
    *,
    judged: bool = False,
    judge_j: float | None = None,
) -> Ruling:
    """Is the criterion at most `max_drop` below the baseline, case by case?

    Cases whose content changed since are left out: they are no longer the same question.
    """
    both = [case for case in now.values if case in then.values and case not in by.changed]
    contents = {case: by.contents.get(case, case) for case in both} if by.contents else None
    return relative_verdict(
        {case: runs for case, runs in then.values.items() if case not in by.changed},
        {case: runs for case, runs in now.values.items() if case not in by.changed},
        float(rule["max_drop"]),
        strictness=by.strictness,
        alpha=by.alpha,
        judged=judged,
        judge_j=judge_j,
        score_range=now.score_range,
        baseline_status=then.words,
        candidate_status=now.words,
        clusters={case: now.cluster[case] for case in both},
        content=contents,
        allow_partial=True,
    )


def _weighted_floor(scores: CriterionScores, floor: float, by: Evidence) -> Ruling:
    """The floor rule for a sample whose strata must be weighted to speak of the traffic."""
    weights = by.weights or {}
    strata = [name for name in dict.fromkeys(scores.stratum.values()) if name in weights]
    planned = sum(len(runs) for runs in scores.values.values())
    missing = sum(value is None for runs in scores.values.values() for value in runs)
    fewest = cases_to_prove(_unit(floor, scores.score_range), 0.05)
    ends = {*scores.score_range, None}
    binary = all(value in ends for runs in scores.values.values() for value in runs)

    def estimate(fill: float | None, conf: float) -> Any:
        table = {
            name: [
                [fill if v is None else v for v in runs]
                for case, runs in scores.values.items()
                if scores.stratum[case] == name
            ]
            for name in strata
        }
        return stratified_mean(
            table,
            {name: weights[name] for name in strata},
            conf=conf,
            method="wilson" if binary else "t",
            score_range=scores.score_range,
        )

    def judged(fill: float | None) -> tuple[Decision, str, float, float]:
        found = estimate(fill, 0.9)
        low, high = found.ci_low, found.ci_high
        proven = low >= floor and found.n_cases >= fewest
        finding = "proven" if proven else "refuted" if high < floor else "neither"
        below = not found.estimate >= floor - 1e-12
        if by.strictness is Strictness.SMOKE:
            decision = Decision.FAIL if finding == "refuted" else Decision.PASS
            if below and decision is Decision.PASS:
                decision = Decision.UNDECIDED
        else:
            decision = Decision.FAIL if below else Decision.UNDECIDED
            decision = Decision.PASS if proven else decision
        return decision, finding, low, high

    rate = estimate(None, 0.95)
    decision, finding, low, high = judged(None)
    reasons: tuple[str, ...] = ("weighted_by_mix",)
    if missing:
        worst_best = [judged(end)[0] for end in scores.score_range]
        if missing > MOST_MISSING * planned:
            decision, reasons = Decision.BROKEN, (*reasons, "too_many_missing")
        elif missing_decides(decision, worst_best):
            decision, reasons = Decision.BROKEN, (*reasons, "missing_data_decides")
    if math.isnan(low) and decision is not Decision.BROKEN:  # no bound, so no right to a verdict
        decision, reasons = Decision.BROKEN, (*reasons, *rate.reasons)
    needed = fewest if rate.n_cases < fewest else None
    span = scores.score_range[1] - scores.score_range[0]
    ruling = Ruling(
        decision, "floor", by.strictness, floor, rate, low, high, finding, None, None, needed
    )
    text = (
        floor_sentence(rate, floor, low, high, finding=finding, span=span, cases_needed=needed)
        if not math.isnan(low)
        else f"not measured ({', '.join(rate.reasons)}): a stratum needs two cases for an interval."
    )
    return replace(ruling, reasons=reasons, sentence=f"weighted by the mix: {text}")


def _unit(value: float, score_range: tuple[float, float]) -> float:
    low, high = score_range
    return (value - low) / (high - low)

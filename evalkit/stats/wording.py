"""Verdict sentences, generated from what was measured: nothing here is written by hand per case.

A number never stands alone (its n and interval follow), a percentage has one decimal and none where
the standard error is a point or more, and what was not distinguished is never called the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from evalkit.counting import all_of, counted
from evalkit.stats.compare import Comparison
from evalkit.stats.decision import Decision, Direction, Strictness
from evalkit.stats.intervals import cases_to_prove
from evalkit.stats.result import Interval, Status

__all__ = [
    "SMALL_SET",
    "broken_sentence",
    "change_text",
    "comparison_sentence",
    "counted_sentence",
    "floor_sentence",
    "headline",
    "missing_clause",
    "rate_sentence",
    "relative_sentence",
    "value_text",
]

MINUS = "−"
SMALL_SET = 30
BROKEN_WORDS = {
    "no_observations": "no observation has a score",
    "no_pairs": "no case has a score on both sides",
    "too_many_missing": "more than 5 % of the observations are missing",
    "missing_data_decides": "the missing observations would decide",
    "judge_not_informative": "the judge does not tell good from bad (TPR + TNR <= 1)",
}
DIRECTION_WORDS = {
    Direction.IMPROVED: "improved",
    Direction.REGRESSED: "regression detected",
    Direction.NOT_DISTINGUISHED: "not distinguished",
}


def value_text(value: float, span: float = 1.0, se: float | None = None) -> str:
    """A score: a percentage on a range of 1, else a number with two decimals; NaN "not defined"."""
    if math.isnan(value):
        return "not defined"
    if span != 1:
        return f"{value:.2f}".replace("-", MINUS)
    digits = 0 if se is not None and se >= 0.01 else 1
    return f"{100 * value:.{digits}f} %".replace("-", MINUS)


def change_text(change: float, span: float = 1.0, *, signed: bool = True) -> str:
    """A difference: points on a range of 1, else score units."""
    if math.isnan(change):
        return "not defined"
    text = f"{100 * change:+.1f}" if span == 1 else f"{change:+.2f}"
    text = text if signed else text.lstrip("+-")
    unit = " points" if span == 1 else ""
    return text.replace("-", MINUS) + unit


def rate_sentence(
    rate: Interval, *, span: float = 1.0, judge: str = "", synthetic: bool = False
) -> str:
    """A rate or mean with its n, its interval, what is missing, and by whose judgement.

    Args:
        rate: From `pass_rate`.
        span: Width of the score range.
        judge: The judge's state and licence, for a number a model judge gave.
        synthetic: True for a number from an anchor nobody labelled by hand.
    """
    if not rate.defined:
        return f"not measured ({', '.join(rate.reasons) or rate.status}){missing_clause(rate)}"
    se = rate.extra.get("se")
    parts = [
        f"{value_text(rate.estimate, span, se)} (n = {counted(rate.n_cases, 'case')}, "
        f"{counted(rate.n_runs, 'run')}; {_interval_text(rate, span)})"
    ]
    if rate.scope == "fixed_set":
        parts.append("run noise on these very cases only")
    if judge:
        parts.append(f"judged by {judge}")
    if synthetic:
        parts.append("from a synthetic anchor")
    return "; ".join(parts) + missing_clause(rate, span)


def comparison_sentence(
    found: Comparison, *, span: float = 1.0, candidates: int = 1, test_reads: int = 1
) -> str:
    """What may be said of a difference; never that there is none.

    Args:
        found: From `compare_paired` or `compare_selected`.
        span: Width of the score range.
        candidates: How many were tried on these very cases.
        test_reads: How often the test half was read, this time included.
    """
    change = found.interval
    if change.status is Status.INSUFFICIENT_DATA:
        return f"not distinguished: {counted(change.n_cases, 'pair')} cannot show a difference."
    tail = missing_clause(change)
    if candidates > 1:
        tail += f"; best of {candidates}, selected on the same data"
    if test_reads > 1:
        tail += f"; the test half was read {counted(test_reads, 'time')}"
    numbers = _change_with_interval(found, span)
    if found.direction is Direction.NOT_DISTINGUISHED:
        return f"not distinguished: {numbers}; {_mde_text(found.mde, found.power, span)}{tail}."
    return f"{DIRECTION_WORDS[found.direction]}: {numbers}{tail}."


def headline(found: Comparison, margin: float, *, alpha: float = 0.05, span: float = 1.0) -> str:
    """The first line of a report: a set too small for the margin is a smoke gate and claims less.

    With fewer than 30 cases, or fewer than can ever prove the margin, no improvement is named.

    Args:
        found: From `compare_paired`.
        margin: Allowed drop in score units.
        alpha: Error of the gate.
        span: Width of the score range.
    """
    n, numbers = found.interval.n_cases, _change_with_interval(found, span)
    if n < max(SMALL_SET, cases_to_prove(1 - margin / span, alpha)):
        word = "regression detected: " if found.direction is Direction.REGRESSED else ""
        return f"smoke gate: {word}{numbers}"
    return f"{DIRECTION_WORDS[found.direction]}: {numbers}"


def broken_sentence(
    reason: str, found: Interval, span: float = 1.0, *, change: bool = False
) -> str:
    """Why a criterion was not measured, beside the rate (or the change) there is."""
    why = BROKEN_WORDS.get(reason, reason)
    if not found.defined:
        return f"not measured: {why}{missing_clause(found, span)}."
    if change:
        shown = change_text(found.estimate, span)
        size = f"(n = {counted(found.n_cases, 'case')})"
        return f"not measured: {why}; {shown} {size}{missing_clause(found)}."
    return f"not measured: {why}; {rate_sentence(found, span=span)}."


def counted_sentence(failed: int, total: int, n_cases: int, n_missing: int) -> str:
    """A hard property: how many runs broke it."""
    runs = f"{failed} of {counted(total, 'run')} failed"
    text = runs if failed else f"{all_of(total, 'run')} passed"
    missing = f"; {n_missing} observation{'s' * (n_missing != 1)} missing" if n_missing else ""
    return f"{text} ({counted(n_cases, 'case')}; counted, one failing run fails){missing}."


def floor_sentence(
    rate: Interval,
    floor: float,
    lower: float,
    upper: float,
    *,
    finding: str,
    span: float = 1.0,
    cases_needed: int | None = None,
) -> str:
    """A floor: proven, refuted or neither, and what it would take."""
    shown = rate_sentence(rate, span=span)
    limit = value_text(floor, span)
    if finding == "proven":
        return f"at least {limit} is proven: {shown}; lower bound {value_text(lower, span)}."
    if finding == "refuted":
        return f"below {limit}: {shown}; upper bound {value_text(upper, span)}."
    need = (
        f"; {counted(cases_needed, 'passing case')} are the fewest that can prove it"
        if cases_needed
        else ""
    )
    side = "below" if rate.estimate < floor else "at or above"
    return f"neither proven nor refuted at {limit}: {shown}, {side} it{need}."


def relative_sentence(
    found: Comparison,
    margin: float,
    lower: float,
    *,
    decision: Decision,
    finding: str,
    strictness: Strictness,
    drop_shown: bool,
    span: float = 1.0,
    cases_needed: int | None = None,
    reasons: Sequence[str] = (),
) -> str:
    """The regression gate: at most the margin worse, worse by more, or too little to tell."""
    change, allowed = found.interval, change_text(margin, span, signed=False)
    numbers = (
        f"{change_text(change.estimate, span)} (n = {counted(change.n_cases, 'case')}; "
        f"one-sided lower bound {change_text(lower, span)}, margin {allowed})"
    )
    tail = missing_clause(change)
    if "margin_not_judge_adjusted" in reasons:
        tail += "; margin not adjusted for the judge's errors"
    if finding == "NON_INFERIOR":
        word = "worse, within the margin" if drop_shown else "not worse by the margin or more"
        return f"{word}: {numbers}{tail}."
    if finding == "INFERIOR":
        return f"worse by more than the margin: {numbers}{tail}."
    mde = _mde_text(found.mde, found.power, span)
    if decision is Decision.FAIL:
        return f"a drop is shown, and not shown to lie within the margin: {numbers}{tail}."
    if strictness is Strictness.RELEASE:
        if cases_needed:
            what = f"the set is too small to decide at this margin; cases needed: {cases_needed}"
        else:
            what = "neither shown to lie within the margin nor beyond it"
        return f"{what}: {numbers}; {mde}{tail}."
    return f"not distinguished: {numbers}; {mde}{tail}."


def missing_clause(found: Interval, span: float = 1.0) -> str:
    """What is missing and how far it could move the number; empty when nothing is."""
    text = ""
    lost = [found.extra.get(f"n_without_{side}", 0) for side in ("baseline", "candidate")]
    if any(lost):
        text += f"; cases without a score: {lost[0]} in the baseline, {lost[1]} in the candidate"
    if not found.n_missing:
        return text
    text += f"; {found.n_missing} observation{'s' * (found.n_missing != 1)} missing"
    if found.n_invalid:
        text += f", {found.n_invalid} of them without a usable verdict"
    if found.bounds:
        worst, best = (value_text(x, span) for x in found.bounds)
        text += f" (between {worst} and {best} whatever they are)"
    return text


def _change_with_interval(found: Comparison, span: float) -> str:
    change = found.interval
    shown = f"{change_text(change.estimate, span)} (n = {counted(change.n_cases, 'case')}"
    if math.isnan(change.ci_low):
        return f"{shown}; no interval)"
    return (
        f"{shown}; "
        f"{change.conf * 100:g} % interval {change_text(change.ci_low, span)} to "
        f"{change_text(change.ci_high, span)})"
    )


def _interval_text(found: Interval, span: float) -> str:
    se = found.extra.get("se")
    low, high = (value_text(x, span, se) for x in (found.ci_low, found.ci_high))
    if math.isnan(found.ci_low) or math.isnan(found.ci_high):
        return f"no interval: {', '.join(found.reasons)}"
    return f"{found.conf * 100:g} % interval {low} to {high}"


def _mde_text(mde: float, power: float, span: float) -> str:
    if math.isnan(mde):
        return "the smallest change it could have found is not defined"
    size = change_text(mde, span, signed=False)
    return f"a true change of ±{size} or more would have been found with {power * 100:g} % power"

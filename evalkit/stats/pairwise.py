"""Two systems, each pair judged in both orders: what holds, what flips, who wins.

A verdict counts for a system only when both orders give it; all else is a tie, whose kind is kept,
because a judge that leans to a position and a judge that is noisy both show as ties.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalkit.errors import StatsError
from evalkit.stats.binary import class_rate
from evalkit.stats.differences import moments, t_bounds
from evalkit.stats.observations import check_conf
from evalkit.stats.permutation import sign_flip_p
from evalkit.stats.quantiles import binomial_tail
from evalkit.stats.result import Interval, Status

__all__ = [
    "Outcome",
    "SwapReport",
    "merge_orders",
    "repetition_stability",
    "sign_test_p",
    "swap_protocol",
    "win_rate",
    "win_rate_of_counts",
]

Floats = NDArray[np.float64]
Verdict = str | None
ORDER_WORDS = ("first", "second", "tie", "invalid")


class Outcome(StrEnum):
    """What a pair shows once both orders are in.

    TIE_BOTH: both orders say tie. TIE_FLIP: the winner changes with the order. TIE_HALF: one order
    names a winner, the other says tie. INVALID: an order without a readable verdict.
    """

    A = "a"
    B = "b"
    TIE_BOTH = "tie_both"
    TIE_FLIP = "tie_flip"
    TIE_HALF = "tie_half"
    INVALID = "invalid"

    @property
    def score(self) -> float:
        """1 for A, 0 for B, one half for a tie, NaN for an invalid pair."""
        fixed = {Outcome.A: 1.0, Outcome.B: 0.0, Outcome.INVALID: math.nan}
        return fixed.get(self, 0.5)


def merge_orders(a_first: Verdict, b_first: Verdict) -> Outcome:
    """The outcome of one pair from the verdicts with A shown first and with B shown first.

    Args:
        a_first: "first", "second", "tie", "invalid" or None; "first" speaks for A.
        b_first: The same words; "first" speaks for B.

    Raises:
        StatsError: If a verdict is another word.
    """
    for verdict in (a_first, b_first):
        if verdict is not None and verdict not in ORDER_WORDS:
            raise StatsError(f"the verdict {verdict!r} is none of {', '.join(ORDER_WORDS)}.")
    one = {"first": "a", "second": "b", "tie": "tie"}.get(a_first or "")
    two = {"first": "b", "second": "a", "tie": "tie"}.get(b_first or "")
    if one is None or two is None:
        return Outcome.INVALID
    if one == two:
        return Outcome.TIE_BOTH if one == "tie" else Outcome(one)
    return Outcome.TIE_HALF if "tie" in (one, two) else Outcome.TIE_FLIP


@dataclass(frozen=True, slots=True)
class SwapReport:
    """A judge's pairs under the swap protocol.

    `consistent` counts a, b and tie_both; `swap_consistency` is their share of the valid pairs
    (Wilson). `primacy` (P) and `recency` (Q) are inconsistent pairs that lean to the first and to
    the second position; `preference_fairness` = (Q - P)/valid, -1..1, 0 fair, negative primacy;
    `p_position_bias` the exact test of P against Q, 1 where there are none. `first_share` is the
    share of "first" among all single verdicts that name a position, whatever became of the pair.
    """

    outcomes: tuple[Outcome, ...]
    a: int
    b: int
    tie_both: int
    tie_flip: int
    tie_half: int
    invalid: int
    consistent: int
    primacy: int
    recency: int
    swap_consistency: Interval
    win_rate: Interval
    preference_fairness: float
    p_position_bias: float
    first_share: Interval
    reasons: tuple[str, ...] = ()

    @property
    def n_valid(self) -> int:
        """Pairs with a readable verdict in both orders."""
        return len(self.outcomes) - self.invalid

    @property
    def ties(self) -> int:
        """Ties of all three kinds."""
        return self.tie_both + self.tie_flip + self.tie_half

    @property
    def position_consistency(self) -> float:
        """The estimate of `swap_consistency` under the name of arXiv:2406.07791."""
        return self.swap_consistency.estimate


def swap_protocol(
    verdicts: Iterable[tuple[Verdict, Verdict]],
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> SwapReport:
    """Merge both orders of every pair and measure the judge's consistency and lean.

    Args:
        verdicts: Per pair, the verdict with A first and the one with B first, as `merge_orders`.
        clusters: A prompt id per pair, where several pairs share a prompt; the win rate then has
            the prompt as its unit.
        level: Confidence level, in (0, 1).

    Returns:
        Invalid pairs are excluded and counted; the win rate carries `bounds` with each of them
        lost and each of them won.

    Raises:
        StatsError: If a verdict is no known word, or clusters and pairs differ in number.

    Source: arXiv:2406.07791 (position consistency, preference fairness).
    """
    pairs = list(verdicts)
    outcomes = tuple(merge_orders(*pair) for pair in pairs)
    counts = Counter(outcomes)
    leans = [_lean(*p) for p, o in zip(pairs, outcomes, strict=True) if o.startswith("tie_")]
    primacy, recency = leans.count("first"), leans.count("second")
    consistent = counts[Outcome.A] + counts[Outcome.B] + counts[Outcome.TIE_BOTH]
    invalid = counts[Outcome.INVALID]
    valid = len(pairs) - invalid
    named = Counter(v for pair in pairs for v in pair)
    firsts, placed = named["first"], named["first"] + named["second"]
    position = class_rate(firsts, placed, level, "no_cases")
    consistency = class_rate(consistent, valid, level, "no_cases", invalid)
    return SwapReport(
        outcomes=outcomes,
        a=counts[Outcome.A],
        b=counts[Outcome.B],
        tie_both=counts[Outcome.TIE_BOTH],
        tie_flip=counts[Outcome.TIE_FLIP],
        tie_half=counts[Outcome.TIE_HALF],
        invalid=invalid,
        consistent=consistent,
        primacy=primacy,
        recency=recency,
        swap_consistency=replace(consistency, bounds=_rate_bounds(consistent, invalid, len(pairs))),
        win_rate=win_rate([o.score for o in outcomes], clusters=clusters, level=level),
        preference_fairness=(recency - primacy) / valid if valid else math.nan,
        p_position_bias=sign_test_p(primacy, primacy + recency),
        first_share=replace(position, extra={"p": sign_test_p(firsts, placed)}),
        reasons=() if invalid <= 0.05 * len(pairs) else ("too_many_missing",),
    )


def win_rate(
    scores: ArrayLike, *, clusters: Sequence[Hashable] | None = None, level: float = 0.95
) -> Interval:
    """Win rate, wins plus half the ties over the valid pairs, with a t interval cut to [0, 1].

    Args:
        scores: (n,) 1 won, 0 lost, 0.5 tie (or any number between), NaN invalid.
        clusters: A prompt id per pair; means per prompt are then the units.
        level: Confidence level, in (0, 1).

    Returns:
        `extra`: se, p_sign (exact, decided pairs only), p_signflip (all units). Below 30 units the
        t interval is rough: decide by p_signflip (reason `n_lt_30`). All units equal: the
        unseen-case rule, DEGENERATE. Invalid pairs also give `bounds`.

    Raises:
        StatsError: If a score lies outside [0, 1] or clusters and pairs differ in number.
    """
    check_conf("the level", level)
    s = np.asarray(scores, dtype=np.float64)
    if s.ndim != 1 or np.any((s < 0) | (s > 1)):
        raise StatsError("scores of pairs must be a list of numbers in [0, 1], NaN for invalid.")
    if clusters is not None and len(clusters) != len(s):
        raise StatsError(f"{len(clusters)} clusters for {len(s)} pairs; give one per pair.")
    valid = ~np.isnan(s)
    kept, invalid = s[valid], int((~valid).sum())
    bounds = _rate_bounds(float(kept.sum()), invalid, len(s))
    units = kept if clusters is None else _cluster_means(kept, clusters, valid)
    n, nan, pairs = len(units), math.nan, len(kept)
    decided = kept[kept != 0.5]
    p_sign = sign_test_p(int((decided > 0.5).sum()), len(decided))
    if n < 2:
        estimate = float(units.mean()) if n else nan
        return Interval(
            estimate,
            nan,
            nan,
            level,
            "t",
            n,
            pairs,
            invalid,
            invalid,
            Status.INSUFFICIENT_DATA,
            ("n_lt_2",),
            bounds=bounds,
            extra={"se": nan, "p_sign": p_sign, "p_signflip": nan},
        )
    d = 2 * units - 1  # half a pair either way is a whole unit of the difference A - B
    m = moments(d)
    low, high = (min(max((float(x) + 1) / 2, 0.0), 1.0) for x in t_bounds(m, (1 - level) / 2))
    flat = bool(m.flat)
    reasons = (("zero_variance",) if flat else ()) + (("n_lt_30",) if n < 30 else ())
    # wins, losses and ties alone: flipping signs is the exact sign test of the decided pairs
    plain = clusters is None and bool(np.all((kept == 0.5) | (np.abs(kept - 0.5) == 0.5)))
    p_flip = p_sign if plain else sign_flip_p(d)
    return Interval(
        float(units.mean()),
        low,
        high,
        level,
        "unseen_case" if flat else "t",
        n,
        pairs,
        invalid,
        invalid,
        Status.DEGENERATE if flat else Status.OK,
        reasons,
        bounds=bounds,
        extra={"se": float(m.se) / 2, "p_sign": p_sign, "p_signflip": p_flip},
    )


def win_rate_of_counts(wins: int, ties: int, losses: int, *, level: float = 0.95) -> Interval:
    """`win_rate` from the three counts.

    Raises:
        StatsError: If a count is negative.
    """
    if min(wins, ties, losses) < 0:
        raise StatsError(f"{wins} wins, {ties} ties, {losses} losses: a count is negative.")
    return win_rate(np.repeat([1.0, 0.5, 0.0], [wins, ties, losses]), level=level)


def repetition_stability(
    verdicts: Iterable[Sequence[Sequence[Verdict]]], *, level: float = 0.95
) -> Interval:
    """How often a judge repeats itself: mean share of the modal verdict over repeats.

    Args:
        verdicts: pairs x orders x repeats, words as `merge_orders`; a pair and order counts with
            three readable verdicts or more.
        level: Confidence level, in (0, 1).

    Returns:
        The mean over pairs (each the mean of its orders) with a t interval; UNDEFINED,
        `repeats_lt_3`, where nothing was asked three times.

    Source: arXiv:2406.07791.
    """
    means: list[float] = []
    skipped = 0
    for pair in verdicts:
        readable = [[v for v in order if v in ORDER_WORDS[:3]] for order in pair]
        enough = [
            Counter(order).most_common(1)[0][1] / len(order) for order in readable if len(order) > 2
        ]
        skipped += len(readable) - len(enough)
        means += [float(np.mean(enough))] if enough else []
    if not means:
        nan = math.nan
        return Interval(
            nan, nan, nan, level, "t", 0, 0, skipped, 0, Status.UNDEFINED, ("repeats_lt_3",)
        )
    found = win_rate(means, level=level)
    reasons = tuple(r for r in found.reasons if r != "n_lt_30")
    extra = {"se": found.extra["se"]}
    return replace(found, n_missing=skipped, n_invalid=0, reasons=reasons, bounds=None, extra=extra)


def sign_test_p(hits: int, n: int) -> float:
    """Exact two-sided p-value of `hits` of n against one half; 1 at n = 0."""
    return 1.0 if n == 0 else min(1.0, 2 * float(binomial_tail(max(hits, n - hits), n)))


def _lean(a_first: Verdict, b_first: Verdict) -> str:
    """The position an inconsistent pair leans to: "first", "second", or "" for two ties."""
    named = {a_first, b_first} - {"tie"}
    return str(named.pop()) if len(named) == 1 else ""


def _rate_bounds(hits: float, missing: int, n: int) -> tuple[float, float] | None:
    return (hits / n, (hits + missing) / n) if n else None


def _cluster_means(kept: Floats, clusters: Sequence[Hashable], valid: NDArray[np.bool_]) -> Floats:
    index: dict[Hashable, int] = {}
    at = [index.setdefault(c, len(index)) for c, v in zip(clusters, valid, strict=True) if v]
    return np.bincount(at, weights=kept) / np.bincount(at) if at else kept

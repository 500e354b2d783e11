"""Does a judge tell known strong from known weak, better than chance and than trivial rules?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike

from evalkit.errors import StatsError
from evalkit.stats.intervals import exact_lower_bound, exact_p_at_least, wilson_interval
from evalkit.stats.observations import check_conf
from evalkit.stats.result import Interval, Status

__all__ = [
    "Reconstruction",
    "ReconstructionVerdict",
    "gap_rule",
    "pairs_to_pass",
    "reconstruct",
    "reconstruction_gate",
]


class ReconstructionVerdict(StrEnum):
    """What known pairs showed of a judge.

    NOT_ASSESSABLE: too few pairs. BROKEN: missing pairs decide. CONFOUNDED: a trivial rule passes
    the same pairs, so that they cannot tell the judge from it.
    """

    PASS = "PASS"
    FAIL = "FAIL"
    NOT_ASSESSABLE = "NOT_ASSESSABLE"
    BROKEN = "BROKEN"
    CONFOUNDED = "CONFOUNDED"


@dataclass(frozen=True, slots=True)
class Reconstruction:
    """The gate over known pairs.

    `accuracy` (Wilson, `bounds` with every missing pair wrong and right) counts ties and
    inconsistent verdicts as not correct. `p_vs_chance` is the exact one-sided p against one half,
    `lower_bound` the exact one-sided bound; `proven_at_threshold` when that reaches the threshold.
    `needed` is how many of these pairs must be right to pass. `baselines` holds the same gate for
    each trivial rule, `confounded_by` those that pass.
    """

    verdict: ReconstructionVerdict
    accuracy: Interval
    p_vs_chance: float
    lower_bound: float
    proven_at_threshold: bool
    needed: int | None
    threshold: float
    alpha: float
    reasons: tuple[str, ...] = ()
    confounded_by: tuple[str, ...] = ()
    baselines: Mapping[str, Reconstruction] = field(default_factory=dict)


def reconstruction_gate(
    n_correct: int,
    n_pairs: int,
    *,
    n_invalid: int = 0,
    threshold: float = 0.7,
    alpha: float = 0.05,
) -> Reconstruction:
    """PASS iff accuracy >= threshold and the exact one-sided p against one half is <= alpha.

    Args:
        n_correct: Valid pairs whose consistent verdict names the strong item.
        n_pairs: Valid pairs; below 5 the gate is NOT_ASSESSABLE.
        n_invalid: Pairs without a readable verdict in both orders. Above 5 % of all pairs, or
            where they could turn the verdict, the gate is BROKEN.
        threshold: Least accuracy, in (0, 1).
        alpha: Error of the test and of the bound, in (0, 1).

    Raises:
        StatsError: If a count, the threshold or alpha is malformed.
    """
    check_conf("the threshold", threshold)
    check_conf("alpha", alpha)
    if n_invalid < 0 or not 0 <= n_correct <= n_pairs:
        raise StatsError(f"{n_correct} of {n_pairs} pairs with {n_invalid} invalid cannot be.")
    everything = n_pairs + n_invalid
    accuracy = _accuracy(n_correct, n_pairs, n_invalid)
    low = exact_lower_bound(n_correct, n_pairs, alpha)
    p = exact_p_at_least(n_correct, n_pairs) if n_pairs else math.nan
    verdict, reasons = _verdict(n_correct, n_pairs, threshold, alpha)
    ends = (
        _verdict(n_correct, everything, threshold, alpha)[0],
        _verdict(n_correct + n_invalid, everything, threshold, alpha)[0],
    )
    if n_pairs >= 5 and n_invalid > 0.05 * everything:
        verdict, reasons = ReconstructionVerdict.BROKEN, ("too_many_missing",)
    elif n_pairs >= 5 and n_invalid and ends[0] is not ends[1]:
        verdict, reasons = ReconstructionVerdict.BROKEN, ("missing_data_decides",)
    return Reconstruction(
        verdict=verdict,
        accuracy=accuracy,
        p_vs_chance=p,
        lower_bound=low,
        proven_at_threshold=bool(low >= threshold),
        needed=pairs_to_pass(n_pairs, threshold=threshold, alpha=alpha),
        threshold=threshold,
        alpha=alpha,
        reasons=reasons,
    )


def reconstruct(
    correct: Sequence[bool | float | None],
    *,
    length_strong: ArrayLike | None = None,
    length_weak: ArrayLike | None = None,
    baselines: Mapping[str, Sequence[bool | float | None]] | None = None,
    threshold: float = 0.7,
    alpha: float = 0.05,
) -> Reconstruction:
    """The gate on pairs, with the trivial rules on the same pairs.

    Args:
        correct: Per pair, true when the consistent verdict names the strong item; None or NaN for
            an invalid pair. A tie or a flip is false.
        length_strong: (n,) length of each strong item, in characters or tokens.
        length_weak: (n,) length of each weak item; both give the rules longer-wins and
            shorter-wins, for which equal lengths are not correct.
        baselines: Further rules by name, correct per pair as above.
        threshold: Least accuracy, in (0, 1).
        alpha: Error of the test, in (0, 1).

    Returns:
        CONFOUNDED where the judge passes and a trivial rule does, too.

    Raises:
        StatsError: If lists differ in length.
    """
    rules = {"": _marks(correct)}
    n = len(rules[""])
    if (length_strong is None) != (length_weak is None):
        raise StatsError("give the lengths of both items of each pair, or of none.")
    if length_strong is not None and length_weak is not None:
        strong, weak = np.asarray(length_strong, float), np.asarray(length_weak, float)
        if not strong.shape == weak.shape == (n,):
            raise StatsError(f"{strong.size} and {weak.size} lengths for {n} pairs.")
        rules |= {
            "length": (strong > weak).astype(float),
            "shortness": (strong < weak).astype(float),
        }
    rules |= {name: _marks(marks) for name, marks in (baselines or {}).items()}
    if wrong := [name for name, marks in rules.items() if len(marks) != n]:
        raise StatsError(f"the baseline {wrong[0]!r} has not one mark for each of the {n} pairs.")
    # a trivial rule answers for the pairs that the judge answered: the same pairs, no others
    judged = ~np.isnan(rules[""])
    found = {
        name: _gate_of(marks if not name else marks[judged], threshold, alpha)
        for name, marks in rules.items()
    }
    judge = found.pop("")
    passing = tuple(n for n, r in found.items() if r.verdict is ReconstructionVerdict.PASS)
    confounded = bool(passing) and judge.verdict is ReconstructionVerdict.PASS
    return Reconstruction(
        verdict=ReconstructionVerdict.CONFOUNDED if confounded else judge.verdict,
        accuracy=judge.accuracy,
        p_vs_chance=judge.p_vs_chance,
        lower_bound=judge.lower_bound,
        proven_at_threshold=judge.proven_at_threshold,
        needed=judge.needed,
        threshold=threshold,
        alpha=alpha,
        reasons=(*judge.reasons, *(f"confounded:{name}" for name in passing)),
        confounded_by=passing,
        baselines=found,
    )


def pairs_to_pass(n_pairs: int, *, threshold: float = 0.7, alpha: float = 0.05) -> int | None:
    """Fewest right pairs of n that pass the gate; None below 5 pairs or where none suffices."""
    for k in range(math.ceil(threshold * n_pairs - 1e-9), n_pairs + 1):
        if _verdict(k, n_pairs, threshold, alpha)[0] is ReconstructionVerdict.PASS:
            return k
    return None


def gap_rule(
    good: ArrayLike,
    bad: ArrayLike,
    *,
    good_min: float = 0.75,
    bad_max: float = 0.35,
    gap: float = 0.4,
) -> tuple[int, ...]:
    """Positions of the gold pairs on which a scorer does not tell good from bad; () is a pass.

    Args:
        good: (n,) scores of known good items, 0..1.
        bad: (n,) scores of their bad counterparts, 0..1; a NaN on either side is a failure.
        good_min: Least score of a good item.
        bad_max: Highest score of a bad item.
        gap: Least difference on every single pair.

    Raises:
        StatsError: For unequal lengths.
    """
    g, b = np.asarray(good, dtype=np.float64), np.asarray(bad, dtype=np.float64)
    if g.shape != b.shape or g.ndim != 1:
        raise StatsError(f"{g.size} good and {b.size} bad scores; give one of each per pair.")
    holds = (g >= good_min) & (b <= bad_max) & (g - b >= gap - 1e-12)
    return tuple(int(i) for i in np.flatnonzero(~holds))


def _verdict(
    k: int, n: int, threshold: float, alpha: float
) -> tuple[ReconstructionVerdict, tuple[str, ...]]:
    if n < 5:
        return ReconstructionVerdict.NOT_ASSESSABLE, ("too_few_pairs",)
    reached = k / n >= threshold - 1e-12
    better = exact_p_at_least(k, n) <= alpha
    if reached and better:
        return ReconstructionVerdict.PASS, ()
    reasons = (() if reached else ("below_threshold",)) + (
        () if better else ("chance_not_excluded",)
    )
    return ReconstructionVerdict.FAIL, reasons


def _accuracy(k: int, n: int, invalid: int) -> Interval:
    everything = n + invalid
    if n == 0:
        nan, status = math.nan, Status.INSUFFICIENT_DATA
        return Interval(
            nan,
            nan,
            nan,
            n_missing=invalid,
            n_invalid=invalid,
            status=status,
            reasons=("no_cases",),
        )
    found = wilson_interval(k, n)
    return Interval(
        found.estimate,
        found.ci_low,
        found.ci_high,
        found.conf,
        found.method,
        n,
        n,
        invalid,
        invalid,
        bounds=(k / everything, (k + invalid) / everything),
    )


def _marks(correct: Sequence[bool | float | None]) -> np.ndarray:
    return np.array([math.nan if c is None else float(c) for c in correct], dtype=np.float64)


def _gate_of(marks: np.ndarray, threshold: float, alpha: float) -> Reconstruction:
    valid = marks[~np.isnan(marks)]
    if np.any((valid != 0) & (valid != 1)):
        raise StatsError("a pair is right (true) or not (false); ties are not right.")
    return reconstruction_gate(
        int(valid.sum()),
        len(valid),
        n_invalid=len(marks) - len(valid),
        threshold=threshold,
        alpha=alpha,
    )

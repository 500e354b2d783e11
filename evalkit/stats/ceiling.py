"""Which human bands a judge tells apart, and from where upward it does not."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalkit.errors import StatsError
from evalkit.stats.bootstrap import has_spread, percentile_interval, resample_counts
from evalkit.stats.intervals import unseen_share
from evalkit.stats.observations import check_conf
from evalkit.stats.quantiles import normal_tail
from evalkit.stats.ratings import Rounding, Scale, half_up
from evalkit.stats.result import Interval, Status

__all__ = ["BandPair", "Ceiling", "band_auc", "find_ceiling"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class BandPair:
    """Two neighbouring bands; `separated` when the lower end of the AUC lies above one half.

    Not separated is not "proven equal": with 20 items a band the interval is about ±.18.
    """

    lower: Hashable
    upper: Hashable
    auc: Interval
    separated: bool


@dataclass(frozen=True, slots=True)
class Ceiling:
    """`band`: the lowest band from which upward no neighbours are separated; None without one.

    `never_awarded` are bands the judge never gave (empty where its scores are not bands).
    """

    pairs: tuple[BandPair, ...]
    band: Hashable | None
    never_awarded: tuple[Hashable, ...]


def band_auc(
    judge_lower: ArrayLike,
    judge_upper: ArrayLike,
    *,
    n_boot: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """P(judge scores an upper-band item above a lower-band one) + half the ties: U/(n1·n2).

    Args:
        judge_lower: (n1,) the judge's scores of items in the lower human band.
        judge_upper: (n2,) of items in the upper band.
        n_boot: Bootstrap draws, each band by itself.
        seed: Seed of the bootstrap.
        level: Confidence level, in (0, 1).

    Returns:
        `extra["p"]` is the asymptotic Mann-Whitney p (ties and continuity corrected). At an AUC of
        0 or 1 the inner end is what the items of a kind that neither band showed can leave.

    Raises:
        StatsError: If a score is not finite.

    Source: Mann and Whitney (1947), Ann. Math. Stat. 18(1), 50-60.
    """
    a, b = np.asarray(judge_lower, dtype=np.float64), np.asarray(judge_upper, dtype=np.float64)
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise StatsError("the scores of two bands must be finite; leave out what is missing.")
    check_conf("the level", level)
    if not len(a) or not len(b):
        nan, status = math.nan, Status.UNDEFINED
        return Interval(
            nan, nan, nan, level, "auc", len(a) + len(b), status=status, reasons=("empty_band",)
        )
    values, at = np.unique(np.concatenate([a, b]), return_inverse=True)
    low_counts = np.bincount(at[: len(a)], minlength=len(values))
    up_counts = np.bincount(at[len(a) :], minlength=len(values))
    estimate = float(_auc(low_counts[None], up_counts[None])[0])
    rng = np.random.default_rng(seed)
    drawn = _auc(resample_counts(low_counts, n_boot, rng), resample_counts(up_counts, n_boot, rng))
    low, high = percentile_interval(drawn, level)
    method, status, reasons = "bootstrap_percentile", Status.OK, ()
    if estimate in (0.0, 1.0):
        tail = (1 - level) / 4  # either band may hide what it did not show
        inner = (1 - unseen_share(len(a), tail)) * (1 - unseen_share(len(b), tail))
        low, high = (inner, 1.0) if estimate == 1.0 else (0.0, 1 - inner)
        method, status, reasons = "unseen_case", Status.DEGENERATE, ("perfect_separation",)
    elif not has_spread(drawn):
        low = high = math.nan
        status, reasons = Status.DEGENERATE, ("zero_variance",)
    n = len(a) + len(b)
    p = _mann_whitney_p(estimate * len(a) * len(b), low_counts + up_counts, len(a), len(b))
    return Interval(
        estimate,
        low,
        high,
        level,
        method,
        n,
        n,
        status=status,
        reasons=reasons,
        seed=seed,
        extra={"p": p, "n_lower": len(a), "n_upper": len(b)},
    )


def find_ceiling(
    human: ArrayLike,
    judge: ArrayLike,
    categories: Iterable[Hashable],
    *,
    rounding: Rounding = None,
    n_boot: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> Ceiling:
    """Compare neighbouring human bands that have examples, and find the ceiling.

    Args:
        human: (n,) anchor bands; NaN where there is none.
        judge: (n,) the judge's scores; NaN where no verdict could be read.
        categories: The human bands, in rank order.
        rounding: "half_up" where human scores lie between two bands.
        n_boot: Bootstrap draws for each pair of bands.
        seed: Seed of the bootstrap.
        level: Confidence level, in (0, 1).

    Raises:
        StatsError: For unequal lengths or a human score outside the bands.
    """
    scale, j = Scale.of(categories), np.asarray(judge, dtype=np.float64)
    codes = scale.codes(half_up(human) if rounding else human, "a human score")
    if codes.shape != j.shape:
        raise StatsError(f"{codes.size} human and {j.size} judge scores; give one of each.")
    kept = (codes >= 0) & ~np.isnan(j)
    codes, j = codes[kept], j[kept]
    used = [int(b) for b in np.unique(codes)]
    pairs: list[BandPair] = []
    for lower, upper in pairwise(used):
        auc = band_auc(j[codes == lower], j[codes == upper], n_boot=n_boot, seed=seed, level=level)
        names = scale.categories[lower], scale.categories[upper]
        pairs.append(BandPair(*names, auc, bool(auc.ci_low > 0.5)))
    flat = len(pairs)
    while flat and not pairs[flat - 1].separated:
        flat -= 1
    given = set(half_up(j) if rounding else j)
    on_scale = scale.values is not None and given <= set(scale.positions)
    never = [c for c, v in zip(scale.categories, scale.positions, strict=True) if v not in given]
    return Ceiling(
        tuple(pairs),
        pairs[flat].lower if flat < len(pairs) else None,
        tuple(never) if on_scale else (),
    )


def _auc(lower: NDArray[np.int64], upper: NDArray[np.int64]) -> Floats:
    below = np.cumsum(lower, axis=1) - lower / 2
    pairs = lower.sum(1) * upper.sum(1)
    return (upper * below).sum(1) / pairs


def _mann_whitney_p(u: float, ties: NDArray[np.int64], n1: int, n2: int) -> float:
    n = n1 + n2
    correction = float((ties.astype(np.float64) ** 3 - ties).sum()) / (n * (n - 1))
    variance = n1 * n2 / 12 * (n + 1 - correction)
    if variance <= 0:
        return 1.0
    z = (abs(u - n1 * n2 / 2) - 0.5) / math.sqrt(variance)
    return min(1.0, 2 * normal_tail(z))

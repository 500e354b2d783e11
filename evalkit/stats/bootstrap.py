"""Bootstraps by counting: a table of counts is sufficient, one multinomial draw is a resample.

Resampling always draws units (cases or clusters) with everything they carry; callers bring one
value per unit.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evalkit.errors import StatsError
from evalkit.stats.observations import check_conf
from evalkit.stats.result import Interval, Status

__all__ = [
    "bca_interval",
    "bootstrap_mean_interval",
    "bootstrap_means",
    "has_spread",
    "percentile_interval",
    "resample_counts",
]

Floats = NDArray[np.float64]


def resample_counts(counts: Any, draws: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Bootstrap tables: `draws` resamples of units given as counts per distinct value.

    Args:
        counts: Units per cell, any shape; n in all.
        draws: Resamples.
        rng: Source of randomness.

    Returns:
        Counts of shape (draws, *counts.shape), each summing to n. Exact: every statistic of the
        counts has its bootstrap distribution.
    """
    table = np.asarray(counts)
    n = int(table.sum())
    return rng.multinomial(n, table.ravel() / n, size=draws).reshape(draws, *table.shape)


def bootstrap_means(values: Any, draws: int, rng: np.random.Generator) -> Floats:
    """Means of `draws` resamples of the values, shape (draws,)."""
    x = np.asarray(values, dtype=float).ravel()
    n = x.size
    distinct, counts = np.unique(x, return_counts=True)
    if len(distinct) * 8 < n:
        return resample_counts(counts, draws, rng) @ distinct / n
    out = np.empty(draws)
    block = max(1, 200_000 // n)  # stays in the cache
    for start in range(0, draws, block):
        size = min(block, draws - start)
        picks = rng.integers(0, n, (size, n), dtype=np.int32)
        out[start : start + size] = x[picks].mean(axis=1)
    return out


def has_spread(resampled: Any) -> bool:
    """False when all defined draws are equal: such a bootstrap is no interval."""
    draws = np.asarray(resampled, dtype=float)
    draws = draws[~np.isnan(draws)]
    return bool(draws.size and np.ptp(draws) > 1e-12)


def percentile_interval(resampled: Any, level: float = 0.95) -> tuple[float, float]:
    """Percentile interval of a bootstrap distribution; NaN draws (undefined) are left out."""
    draws = np.asarray(resampled, dtype=float)
    draws = draws[~np.isnan(draws)]
    if not draws.size:
        return math.nan, math.nan
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def bca_interval(
    estimate: float,
    resampled: Any,
    jackknife: Any,
    weights: Any = None,
    *,
    level: float = 0.95,
) -> tuple[float, float]:
    """Bias-corrected and accelerated interval of a bootstrap distribution.

    Args:
        estimate: The statistic on the data.
        resampled: Its bootstrap distribution.
        jackknife: Its value with one unit left out, once per distinct unit.
        weights: How many units each of these stands for; None is one each.
        level: Confidence level.

    Returns:
        NaN ends where the distribution lies wholly on one side or the jackknife is constant.

    Source: Efron (1987), JASA 82(397), 171-185.
    """
    from scipy.special import ndtr, ndtri

    draws, left_out = np.asarray(resampled, dtype=float), np.asarray(jackknife, dtype=float)
    w = np.ones_like(left_out) if weights is None else np.asarray(weights, dtype=float)
    below = (np.count_nonzero(draws < estimate) + np.count_nonzero(draws <= estimate)) / 2
    gap = float((w * left_out).sum() / w.sum()) - left_out
    spread = float((w * gap**2).sum())
    if not 0 < below < draws.size or spread <= 0:
        return math.nan, math.nan
    bias = float(ndtri(below / draws.size))
    skew = float((w * gap**3).sum()) / (6 * spread**1.5)
    ends: list[float] = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        z = bias + float(ndtri(tail))
        ends.append(float(np.quantile(draws, float(ndtr(bias + z / (1 - skew * z))))))
    return ends[0], ends[1]


def bootstrap_mean_interval(
    values: Any,
    *,
    level: float = 0.95,
    method: Literal["percentile", "bca"] = "bca",
    draws: int = 2000,
    seed: int = 0,
) -> Interval:
    """Bootstrap interval for a mean (of case means, or of paired differences).

    For scores that are not pass/fail, and for 20 units or more; for rates near 0 or 1 it covers
    far too little, there `pass_rate` is right.

    Args:
        values: One per unit; NaN is left out and counted as missing.
        level: Confidence level, in (0, 1).
        method: "bca" or "percentile".
        draws: Resamples.
        seed: Seed, kept on the result.

    Raises:
        StatsError: If a value is infinite, level outside (0, 1) or draws below 1.
    """
    check_conf("level", level)
    x = np.asarray(values, dtype=float).ravel()
    if np.isinf(x).any() or draws < 1:
        raise StatsError("a bootstrap needs finite values and at least one draw.")
    used = x[~np.isnan(x)]
    n, state = used.size, Status.OK
    reasons: tuple[str, ...] = () if n >= 20 else ("n_lt_20",)
    low = high = math.nan
    if n < 2:
        state, reasons = Status.INSUFFICIENT_DATA, ("n_lt_2",)
    elif np.ptp(used) == 0:
        state, reasons = Status.DEGENERATE, ("zero_variance",)
    else:
        means = bootstrap_means(used, draws, np.random.default_rng(seed))
        if method == "percentile":
            low, high = percentile_interval(means, level)
        else:
            kinds, counts = np.unique(used, return_counts=True)
            left_out = (used.sum() - kinds) / (n - 1)
            low, high = bca_interval(float(used.mean()), means, left_out, counts, level=level)
    return Interval(
        float(used.mean()) if n else math.nan,
        low,
        high,
        level,
        f"bootstrap_{method}",
        n_cases=n,
        n_runs=n,
        n_missing=x.size - n,
        status=state,
        reasons=reasons,
        seed=seed,
        extra={"draws": draws},
    )

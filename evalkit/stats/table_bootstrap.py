"""The bootstrap of a statistic of counts: one multinomial draw is the whole resampling.

A statistic that depends on the data through a table of counts (kappa, AC1, alpha) needs no
resampled items: drawing the counts of n items from the observed shares is the same distribution.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["bca_ends", "draw_counts", "jackknife_counts", "percentile_ends"]

Floats = NDArray[np.float64]


def draw_counts(counts: Floats, n_boot: int, seed: int) -> Floats:
    """(n_boot, cells) resampled counts of a flat table of whole numbers; each row sums to n."""
    occupied = np.flatnonzero(counts)
    drawn = np.zeros((n_boot, counts.size))
    if occupied.size:
        n = int(counts.sum())
        drawn[:, occupied] = np.random.default_rng(seed).multinomial(
            n, counts[occupied] / n, size=n_boot
        )
    return drawn


def percentile_ends(resampled: Floats, level: float) -> tuple[float, float]:
    """Percentile interval of resampled values; NaN ones do not count.

    NaN where none is left or all are equal: a bootstrap without spread is no interval.
    """
    values = resampled[~np.isnan(resampled)]
    if values.size == 0 or np.ptp(values) < 1e-12:
        return math.nan, math.nan
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def jackknife_counts(counts: Floats) -> tuple[Floats, Floats]:
    """The tables with one item left out, one per occupied cell, and how many items each is for."""
    occupied = np.flatnonzero(counts)
    left = np.repeat(counts[None], occupied.size, axis=0)
    left[np.arange(occupied.size), occupied] -= 1
    return left, counts[occupied]


def bca_ends(
    estimate: float,
    resampled: Floats,
    counts: Floats,
    statistic: Callable[[Floats], Floats],
    level: float,
) -> tuple[float, float]:
    """Bias-corrected and accelerated interval; the jackknife has one value per occupied cell.

    Source: Efron (1987), JASA 82(397), 171-185.
    """
    from scipy.special import ndtr, ndtri

    values = resampled[~np.isnan(resampled)]
    if values.size == 0 or np.ptp(values) < 1e-12:
        return math.nan, math.nan
    below = (np.count_nonzero(values < estimate) + np.count_nonzero(values <= estimate)) / 2
    bias = ndtri(np.clip(below / values.size, 0.5 / values.size, 1 - 0.5 / values.size))
    left, times = jackknife_counts(counts)
    jack = statistic(left)
    gap = np.average(jack, weights=times) - jack
    spread = float((times * gap**2).sum())
    skew = 0.0 if spread == 0 else float((times * gap**3).sum()) / (6 * spread**1.5)
    z = bias + ndtri(np.array([(1 - level) / 2, (1 + level) / 2]))
    low, high = np.quantile(values, ndtr(bias + z / (1 - skew * z)))
    return float(low), float(high)

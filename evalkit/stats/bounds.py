"""One-sided bounds of a rate or a mean: what a floor is read from."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalkit.stats.intervals import exact_lower_bound, exact_upper_bound, wilson_bounds
from evalkit.stats.observations import Observations
from evalkit.stats.quantiles import t_quantile
from evalkit.stats.repeats import FLAT, case_means, effective_wilson

__all__ = ["mean_bounds", "one_sided_bounds"]

Floats = NDArray[np.float64]


def one_sided_bounds(
    seen: Observations, alpha: float, *, binary: bool | None = None
) -> tuple[float, float]:
    """One-sided lower and upper bound on [0, 1] of the rate or mean, each at level 1 - alpha.

    One pass/fail run per case: exact. Pass/fail with repeats: `effective_wilson`. Other scores:
    `mean_bounds` on the case means. NaN without data.
    """
    means, runs = case_means(seen)
    n = len(means)
    two_values = seen.binary if binary is None else binary
    if n == 0:
        return math.nan, math.nan
    if two_values and int(runs.max()) == 1:
        passed = round(float(means.sum()))
        return exact_lower_bound(passed, n, alpha), exact_upper_bound(passed, n, alpha)
    if n < 2:
        return math.nan, math.nan
    if two_values:
        found = effective_wilson(means, runs.sum(), alpha)
        return float(found["low"]), float(found["high"])
    low, high = mean_bounds(means, alpha)
    return float(low), float(high)


def mean_bounds(means: Any, alpha: float) -> tuple[Floats, Floats]:
    """One-sided bounds of a mean score on [0, 1], each at level 1 - alpha.

    The upper one is t on the case means. The lower one is the smaller of t and Wilson's with
    n_eff = max(m(1-m)/se², n) and the t quantile: where most cases score at the top and few lie
    far below, t alone would prove a floor at the true mean in 12 % instead of 5 %. Without
    variance both allow for the share that n cases can have missed.

    Args:
        means: Case means on [0, 1], shape (..., n >= 2).
        alpha: Error of each bound.
    """
    means = np.asarray(means, dtype=float)
    n, t = means.shape[-1], float(t_quantile(means.shape[-1] - 1, 1 - alpha))
    mean, sd = means.mean(-1), means.std(-1, ddof=1)
    flat, se = sd <= FLAT, sd / math.sqrt(n)
    with np.errstate(divide="ignore", invalid="ignore"):
        n_eff = np.where(flat, n, np.maximum(mean * (1 - mean) / se**2, n))
    low, _ = wilson_bounds(mean, n_eff, t)
    q = 1 - alpha ** (1 / n)
    low = np.where(flat, mean - q * mean, np.minimum(mean - t * se, low))
    return low, np.where(flat, mean + q * (1 - mean), mean + t * se)

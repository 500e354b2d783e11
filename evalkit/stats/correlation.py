"""Correlation of two lists of scores, with Fisher intervals: Pearson, Spearman, partial, tau-b."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalkit.errors import StatsError
from evalkit.stats.intervals import unseen_share
from evalkit.stats.quantiles import normal_quantile
from evalkit.stats.result import Interval, Status

__all__ = [
    "fisher_ends",
    "kendall_tau_b",
    "mid_ranks",
    "partial_spearman",
    "pearson",
    "spearman",
]

Floats = NDArray[np.float64]


def fisher_ends(value: float, se_z: float, level: float) -> tuple[float, float]:
    """tanh(atanh(value) -+ z·se_z): an interval that stays inside (-1, 1)."""
    z, half = math.atanh(value), normal_quantile((1 + level) / 2) * se_z
    return math.tanh(z - half), math.tanh(z + half)


def pearson(x: ArrayLike, y: ArrayLike, *, level: float = 0.95) -> Interval:
    """Pearson's correlation, -1..1, with Fisher's interval (se_z = 1/sqrt(n-3)).

    Args:
        x: (n,) numbers; a pair with a NaN on either side is left out and counted.
        y: (n,) numbers.
        level: Confidence level, in (0, 1).

    Raises:
        StatsError: For unequal lengths or infinite numbers.

    Source: Fisher (1921), Metron 1, 3-32.
    """
    return _correlation("pearson", x, y, level)


def spearman(x: ArrayLike, y: ArrayLike, *, level: float = 0.95) -> Interval:
    """Spearman's rank correlation on mid-ranks; se_z = sqrt((1 + r²/2)/(n-3)).

    Args and errors as `pearson`. With |r| = 1 Fisher's interval has no width: the inner end then
    comes from the unseen-case rule (the share 1 - alpha^(1/n) put on the worst pair).

    Source: Bonett and Wright (2000), Psychometrika 65(1), 23-28.
    """
    return _correlation("spearman", x, y, level)


def partial_spearman(
    x: ArrayLike, y: ArrayLike, given: ArrayLike, *, level: float = 0.95
) -> Interval:
    """Spearman's correlation of x and y with the ranks of `given` held fixed.

    (r_xy - r_xz r_yz)/sqrt((1-r_xz²)(1-r_yz²)); se_z = sqrt((1 + r²/2)/(n-4)). Args and errors as
    `pearson`, with `given` a third list of the same length; `extra["raw"]` is r_xy.
    """
    a, b, c = _finite(x, y, given)
    n, missing = len(a), np.asarray(x).size - len(a)
    ranks = [mid_ranks(v) for v in (a, b, c)]
    if n < 3 or any(np.ptp(r) == 0 for r in ranks):
        return _undefined("partial_spearman", n, missing, level, n < 3, "constant")
    r_xy, r_xz, r_yz = (_r(ranks[i], ranks[j]) for i, j in ((0, 1), (0, 2), (1, 2)))
    rest = (1 - r_xz**2) * (1 - r_yz**2)
    if rest < 1e-12:
        return _undefined("partial_spearman", n, missing, level, False, "collinear")
    r = max(-1.0, min(1.0, (r_xy - r_xz * r_yz) / math.sqrt(rest)))
    low, high = _fisher_or_nan(r, n - 4, 1 + r * r / 2, level)
    return Interval(
        r, low, high, level, "fisher_z", n, n, missing, reasons=_narrow(low), extra={"raw": r_xy}
    )


def kendall_tau_b(x: ArrayLike, y: ArrayLike) -> float:
    """Kendall's tau-b of two lists, NaN where one is constant or fewer than two pairs are left.

    Raises:
        StatsError: For unequal lengths or infinite numbers.
    """
    from scipy.stats import kendalltau

    a, b = _finite(x, y)
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return math.nan
    found: Any = kendalltau(a, b)
    return float(found.statistic)


def mid_ranks(x: ArrayLike) -> Floats:
    """Ranks 1..n; equal values share the mean of their ranks."""
    _, at, counts = np.unique(np.asarray(x), return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[at]


def _correlation(kind: str, x: ArrayLike, y: ArrayLike, level: float) -> Interval:
    a, b = _finite(x, y)
    n, missing = len(a), np.asarray(x).size - len(a)
    for v, name in ((a, "constant_x"), (b, "constant_y")):
        if n < 2 or np.ptp(v) == 0:
            return _undefined(kind, n, missing, level, n < 2, name)
    r = _r(a, b) if kind == "pearson" else _r(mid_ranks(a), mid_ranks(b))
    if abs(r) >= 1 - 1e-12:
        r = math.copysign(1.0, r)
        inner = r * _unseen(kind, a, b * r, unseen_share(n, (1 - level) / 2))
        low, high = sorted((r, inner))
        status, reasons = Status.DEGENERATE, ("perfect_correlation",)
        return Interval(r, low, high, level, "unseen_case", n, n, missing, 0, status, reasons)
    low, high = _fisher_or_nan(r, n - 3, 1 + r * r / 2 if kind == "spearman" else 1.0, level)
    return Interval(r, low, high, level, "fisher_z", n, n, missing, reasons=_narrow(low))


def _fisher_or_nan(r: float, df: int, factor: float, level: float) -> tuple[float, float]:
    if df < 1 or abs(r) >= 1 - 1e-12:
        return math.nan, math.nan
    return fisher_ends(r, math.sqrt(factor / df), level)


def _r(a: Floats, b: Floats) -> float:
    a, b = a - a.mean(), b - b.mean()
    return max(-1.0, min(1.0, float(a @ b / math.sqrt(float(a @ a) * float(b @ b)))))


def _unseen(kind: str, a: Floats, b: Floats, share: float) -> float:
    """The correlation when `share` of all pairs lay where they hurt a rising relation most."""
    w = np.append(np.full(len(a), (1 - share) / len(a)), share)
    values: list[float] = []
    for new in ((a.max(), b.min()), (a.min(), b.max())):
        u, v = np.append(a, new[0]), np.append(b, new[1])
        if kind == "spearman":
            u, v = _weighted_ranks(u, w), _weighted_ranks(v, w)
        u, v = u - w @ u, v - w @ v
        values.append(float((w * u) @ v / math.sqrt(float((w * u) @ u) * float((w * v) @ v))))
    return min(values)


def _weighted_ranks(x: Floats, w: Floats) -> Floats:
    _, at = np.unique(x, return_inverse=True)
    share = np.bincount(at, weights=w)
    return (np.cumsum(share) - share / 2)[at]


def _finite(*lists: ArrayLike) -> tuple[Floats, ...]:
    arrays = [np.asarray(v, dtype=np.float64) for v in lists]
    if any(a.ndim != 1 or a.shape != arrays[0].shape for a in arrays):
        raise StatsError(f"lists of {[a.size for a in arrays]} numbers; they must be equally long.")
    if any(np.isinf(a).any() for a in arrays):
        raise StatsError("an infinite number among the scores.")
    kept = ~np.any([np.isnan(a) for a in arrays], axis=0)
    return tuple(a[kept] for a in arrays)


def _narrow(low: float) -> tuple[str, ...]:
    return ("too_few_for_interval",) if math.isnan(low) else ()


def _undefined(kind: str, n: int, missing: int, level: float, few: bool, reason: str) -> Interval:
    status = Status.INSUFFICIENT_DATA if few else Status.UNDEFINED
    reasons = ("n_lt_2",) if few else (reason,)
    nan = math.nan
    return Interval(nan, nan, nan, level, kind, n, n, missing, 0, status, reasons)

"""The sign-flip test of paired differences, by counting.

Flipping signs only moves sums, so what is drawn are sums: one binomial per distinct size of a
difference where there are few, and a table of partial sums per eight differences where there are
many. Both are the same test as drawing a sign per case.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evalkit.errors import StatsError
from evalkit.stats.differences import snapped
from evalkit.stats.quantiles import binomial_tail

__all__ = ["sign_flip_p"]

Floats = NDArray[np.float64]
Alternative = Literal["two-sided", "less", "greater"]
FEW_SIZES = 16


def sign_flip_p(
    differences: Any,
    *,
    alternative: Alternative = "two-sided",
    draws: int = 9999,
    seed: int = 0,
) -> float:
    """P-value of the sign-flip permutation test that the mean difference is 0.

    Exact when all differences have one size (a binomial) and, by enumeration, when at most 16 are
    not 0 (a 0 has no sign to flip); else from random flips, p = (1 + hits)/(1 + draws). Sums within
    1e-12·Σ|d| of the observed one count as equal. Without any difference p = 1.

    Args:
        differences: One per case, finite; NaN has no place here.
        alternative: "two-sided", "less" (the mean is below 0) or "greater".
        draws: Random flips, 1 or more.
        seed: Seed of the flips.

    Raises:
        StatsError: If a difference is not finite, there is none, or draws < 1.
    """
    d = snapped(differences).ravel()
    if not d.size or not np.isfinite(d).all() or draws < 1:
        raise StatsError("the sign-flip test needs finite differences and at least one draw.")
    d = d[d != 0]
    if not d.size:
        return 1.0
    sizes = np.abs(d)
    slack = 1e-12 * float(sizes.sum())
    if np.ptp(sizes) <= slack:
        return _one_size(int((d > 0).sum()), d.size, alternative)
    exact = d.size <= 16
    sums = _all_sums(sizes) if exact else _random_sums(sizes, draws, np.random.default_rng(seed))
    hits = _hits(sums, float(d.sum()), slack, alternative)
    return hits / sums.size if exact else (1 + hits) / (draws + 1)


def _one_size(gains: int, n: int, alternative: Alternative) -> float:
    """The sum is a binomial count: exact at any n, and McNemar's test for pass/fail scores."""
    if alternative == "two-sided":
        return min(1.0, 2 * float(binomial_tail(max(gains, n - gains), n)))
    return float(binomial_tail(gains if alternative == "greater" else n - gains, n))


def _hits(sums: Floats, observed: float, slack: float, alternative: Alternative) -> int:
    if alternative == "two-sided":
        return int(np.count_nonzero(np.abs(sums) >= abs(observed) - slack))
    if alternative == "less":
        return int(np.count_nonzero(sums <= observed + slack))
    return int(np.count_nonzero(sums >= observed - slack))


def _all_sums(sizes: Floats) -> Floats:
    sums = np.zeros(1)
    for size in sizes:
        sums = np.concatenate([sums - size, sums + size])
    return sums


def _random_sums(sizes: Floats, draws: int, rng: np.random.Generator) -> Floats:
    values, counts = np.unique(np.round(sizes, 15), return_counts=True)
    if len(values) <= FEW_SIZES:
        ups = rng.binomial(counts[:, None], 0.5, size=(len(values), draws))
        return values @ (2.0 * ups - counts[:, None])
    groups = -(-len(sizes) // 8)
    padded = np.zeros(groups * 8)
    padded[: len(sizes)] = sizes
    signs = 2.0 * np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1) - 1
    table = padded.reshape(groups, 8) @ signs.T  # the 256 signed sums of each eight differences
    total = np.zeros(draws)
    picks = rng.integers(0, 256, size=(groups, draws), dtype=np.uint8)
    for sums, pick in zip(table, picks, strict=True):
        total += sums[pick]
    return total

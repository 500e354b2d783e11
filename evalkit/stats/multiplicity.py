"""Families of p-values: Holm for criteria that can block, Benjamini-Hochberg for exploration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evalkit.errors import StatsError
from evalkit.stats.observations import check_conf

__all__ = ["Adjusted", "benjamini_hochberg", "holm"]


@dataclass(frozen=True)
class Adjusted:
    """Adjusted p-values in the order given, and which are rejected (adjusted p <= alpha)."""

    raw: tuple[float, ...]
    adjusted: tuple[float, ...]
    reject: tuple[bool, ...]
    method: str


def holm(p_values: Sequence[float], *, alpha: float = 0.05) -> Adjusted:
    """Holm's step-down adjustment: the chance of any false alarm in the family is at most alpha.

    The i-th smallest of m becomes the largest of (m - j + 1)·p_(j) over j <= i, at most 1.

    Args:
        p_values: In [0, 1]; NaN stays NaN, is never rejected and does not count in m.
        alpha: Family-wise error.

    Raises:
        StatsError: If a p-value is outside [0, 1] or alpha outside (0, 1).

    Source: Holm (1979), Scandinavian Journal of Statistics 6(2), 65-70.
    """
    raw, order = _ordered(p_values, alpha)
    m = len(order)
    steps = np.maximum.accumulate((m - np.arange(m)) * raw[order])
    return _back(raw, order, steps, alpha, "holm")


def benjamini_hochberg(p_values: Sequence[float], *, rate: float = 0.10) -> Adjusted:
    """Benjamini-Hochberg: of what is called a finding, a share of at most `rate` is expected false.

    The i-th smallest of m becomes the smallest of m·p_(j)/j over j >= i, at most 1.

    Args:
        p_values: In [0, 1]; NaN stays NaN, is never rejected and does not count in m.
        rate: False discovery rate.

    Raises:
        StatsError: If a p-value is outside [0, 1] or the rate outside (0, 1).

    Source: Benjamini and Hochberg (1995), JRSS B 57(1), 289-300.
    """
    raw, order = _ordered(p_values, rate)
    m = len(order)
    scaled = raw[order] * m / np.arange(1, m + 1)
    steps = np.minimum.accumulate(scaled[::-1])[::-1]
    return _back(raw, order, steps, rate, "benjamini_hochberg")


def _ordered(p_values: Sequence[float], level: float) -> tuple[np.ndarray, np.ndarray]:
    check_conf("alpha", level)
    raw = np.asarray(list(p_values), dtype=float)
    known = ~np.isnan(raw)
    if np.any((raw[known] < 0) | (raw[known] > 1)):
        raise StatsError("a p-value lies outside 0..1.")
    order = np.argsort(np.where(known, raw, np.inf), kind="stable")[: int(known.sum())]
    return raw, order


def _back(
    raw: np.ndarray, order: np.ndarray, steps: np.ndarray, level: float, method: str
) -> Adjusted:
    adjusted = np.full(len(raw), np.nan)
    adjusted[order] = np.clip(steps, raw[order], 1.0)  # never below the raw one by rounding
    reject = np.where(np.isnan(adjusted), False, adjusted <= level)
    return Adjusted(
        tuple(raw.tolist()), tuple(adjusted.tolist()), tuple(bool(x) for x in reject), method
    )

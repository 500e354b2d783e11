"""Bounds for a mean paired difference d in [-1, 1], on arrays of replications.

The kernels of the paired comparison and of the regression gate. Every function takes differences of
shape (..., n): the last axis holds the cases, leading axes are independent replications, so that
the simulation bars exercise this very code.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalkit.stats.intervals import wilson_bounds
from evalkit.stats.quantiles import t_below, t_quantile

__all__ = ["GateBounds", "Moments", "drop_p", "gate_bounds", "moments", "t_bounds"]

Floats = NDArray[np.float64]
ROUNDING = 1e-12  # .8 - .7 and .9 - .8 differ by 6e-17: below this a difference is none


@dataclass(frozen=True)
class Moments:
    """Mean, standard deviation (ddof 1) and standard error of n differences; `flat`: sd is 0."""

    n: int
    delta: Floats
    sd: Floats
    se: Floats
    flat: NDArray[np.bool_]


@dataclass(frozen=True)
class GateBounds:
    """One-sided bounds of the mean difference; `lower` is the least of the three lower ones."""

    delta: Floats
    lower_t: Floats
    lower_score: Floats
    lower_guard: Floats
    lower: Floats
    upper: Floats


def moments(differences: Any) -> Moments:
    """Mean, sd and se of differences (..., n >= 2); rounding noise counts as 0."""
    d = snapped(differences)
    n = d.shape[-1]
    delta, sd = d.mean(-1), d.std(-1, ddof=1)
    flat = np.asarray(sd <= ROUNDING)
    sd = np.where(flat, 0.0, sd)
    return Moments(n, delta, sd, sd / math.sqrt(n), flat)


def snapped(differences: Any) -> Floats:
    """The differences with rounding noise set to 0."""
    d = np.asarray(differences, dtype=float)
    return np.where(np.abs(d) <= ROUNDING, 0.0, d)


def t_bounds(m: Moments, tail: float) -> tuple[Floats, Floats]:
    """Bounds delta -+ t_{n-1}·se, each with this probability beyond it.

    Without variance the unseen-case rule with q = 1 - tail^(1/n):
    lower = c - q(1 + c), upper = c + q(1 - c), c the common difference.
    """
    half = float(t_quantile(m.n - 1, 1 - tail)) * m.se
    q = 1 - tail ** (1 / m.n)
    low = np.where(m.flat, m.delta - q * (1 + m.delta), m.delta - half)
    high = np.where(m.flat, m.delta + q * (1 - m.delta), m.delta + half)
    return low, high


def drop_p(m: Moments, *, at: float = 0.0) -> Floats:
    """One-sided p-value of the t test that the mean difference is below `at`.

    Without variance: 2^-n for a common difference below `at` (exact sign flip), else 1.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        p = t_below(m.n - 1, (m.delta - at) / m.se)
    return np.where(m.flat, np.where(m.delta < at - ROUNDING, 2.0**-m.n, 1.0), p)


def gate_bounds(differences: Any, alpha: float = 0.05) -> GateBounds:
    """One-sided bounds of the regression gate, each at level 1 - alpha.

    lower = min(L_t, L_score, L_guard): L_t the t bound; L_guard = delta - q(1 + delta) with
    q = 1 - alpha^(1/n), for cases of a kind never seen in this set; L_score combines Wilson
    margins of the gains and of the losses (square-and-add), because regressions are rare large
    losses and t alone passes too many of them. upper = delta + t·se (unseen-case rule at se = 0).

    Args:
        differences: Candidate minus baseline on [-1, 1], shape (..., n >= 2).
        alpha: Error of each bound.

    Source: Newcombe (1998), Statistics in Medicine 17, 2635-2650 (square-and-add).
    """
    d, m = snapped(differences), moments(differences)
    t = float(t_quantile(m.n - 1, 1 - alpha))
    q = 1 - alpha ** (1 / m.n)
    lower_t, guard = m.delta - t * m.se, m.delta - q * (1 + m.delta)
    score = _score_bound(np.maximum(d, 0.0), np.maximum(-d, 0.0), t)
    upper = np.where(m.flat, m.delta + q * (1 - m.delta), m.delta + t * m.se)
    lower = np.minimum(np.minimum(lower_t, score), guard)
    return GateBounds(m.delta, lower_t, score, guard, lower, upper)


def _score_bound(gains: Floats, losses: Floats, t: float) -> Floats:
    n = gains.shape[-1]
    gain, loss = gains.mean(-1), losses.mean(-1)
    var_gain, var_loss = gains.var(-1, ddof=1) / n, losses.var(-1, ddof=1) / n
    below = gain - wilson_bounds(gain, _effective(gain, var_gain, n), t)[0]
    above = wilson_bounds(loss, _effective(loss, var_loss, n), t)[1] - loss
    both = np.sqrt(var_gain * var_loss)
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = np.where(both > 0, -(gain * loss / (n - 1)) / both, 0.0)
    spread = below**2 + above**2 - 2 * rho * below * above
    return gain - loss - np.sqrt(np.maximum(spread, 0.0))


def _effective(mean: Floats, variance: Floats, n: int) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        n_eff = np.where(variance > 0, mean * (1 - mean) / variance, n)
    return np.maximum(n_eff, n)

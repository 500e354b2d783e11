"""Intervals of one rate, exact one-sided bounds, and how many cases can prove a floor."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from evalkit.errors import StatsError
from evalkit.stats.observations import check_conf
from evalkit.stats.quantiles import beta_quantile, binomial_tail, normal_quantile
from evalkit.stats.result import Interval, Status

__all__ = [
    "cases_to_prove",
    "clopper_pearson_interval",
    "exact_lower_bound",
    "exact_p_at_least",
    "exact_upper_bound",
    "jeffreys_interval",
    "kish_effective_size",
    "unseen_share",
    "wilson_bounds",
    "wilson_interval",
]


def wilson_interval(passed: float, n: float, *, level: float = 0.95) -> Interval:
    """Wilson score interval for a pass rate, both ends in [0, 1].

    Centre (p + z²/2n)/(1 + z²/n), half width z/(1 + z²/n)·sqrt(p(1-p)/n + z²/4n²).

    Args:
        passed: Cases that passed, 0..n; need not be whole (effective sample sizes).
        n: Cases that have a score; missing scores do not count. With 0 the interval is NaN,
            INSUFFICIENT_DATA.
        level: Confidence level, in (0, 1).

    Raises:
        StatsError: If passed is outside 0..n or level outside (0, 1).

    Source: Wilson (1927), JASA 22(158), 209-212.
    """
    _check(passed, n, level)
    if n == 0:
        return _empty("wilson", level)
    low, high = wilson_bounds(passed / n, n, normal_quantile((1 + level) / 2))
    return _interval(passed, n, float(low), float(high), level, "wilson")


def wilson_bounds(rate: Any, n: Any, z: Any) -> tuple[Any, Any]:
    """Ends of the Wilson interval for rates (array or number) of n cases, normal quantile z.

    At a rate of 0 the lower end is exactly 0, at 1 the upper end exactly 1.
    """
    rate, n = np.asarray(rate, dtype=float), np.asarray(n, dtype=float)
    square = z * z
    centre = (rate + square / (2 * n)) / (1 + square / n)
    half = z / (1 + square / n) * np.sqrt(rate * (1 - rate) / n + square / (4 * n * n))
    low = np.where(rate <= 0, 0.0, np.clip(centre - half, 0, 1))
    high = np.where(rate >= 1, 1.0, np.clip(centre + half, 0, 1))
    return low[()], high[()]


def clopper_pearson_interval(passed: int, n: int, *, level: float = 0.95) -> Interval:
    """Exact (Clopper-Pearson) interval for a pass rate: for claims that must hold.

    Args:
        passed: Cases that passed, a whole number 0..n.
        n: Cases that have a score; 0 gives NaN, INSUFFICIENT_DATA.
        level: Confidence level, in (0, 1).

    Raises:
        StatsError: If passed is outside 0..n or level outside (0, 1).

    Source: Clopper and Pearson (1934), Biometrika 26(4), 404-413.
    """
    _check(passed, n, level)
    if n == 0:
        return _empty("clopper_pearson", level)
    tail = (1 - level) / 2
    low, high = exact_lower_bound(passed, n, tail), exact_upper_bound(passed, n, tail)
    return _interval(passed, n, low, high, level, "clopper_pearson")


def jeffreys_interval(passed: int, n: int, *, level: float = 0.95) -> Interval:
    """Jeffreys interval for a pass rate: quantiles of Beta(k + 1/2, n - k + 1/2).

    The lower end is 0 when none passed, the upper end 1 when all did.

    Args:
        passed: Cases that passed, 0..n.
        n: Cases that have a score; 0 gives NaN, INSUFFICIENT_DATA.
        level: Confidence level, in (0, 1).

    Raises:
        StatsError: If passed is outside 0..n or level outside (0, 1).

    Source: Brown, Cai and DasGupta (2001), Statistical Science 16(2), 101-133.
    """
    _check(passed, n, level)
    if n == 0:
        return _empty("jeffreys", level)
    a, b, tail = passed + 0.5, n - passed + 0.5, (1 - level) / 2
    low = 0.0 if passed == 0 else float(beta_quantile(a, b, tail))
    high = 1.0 if passed == n else float(beta_quantile(a, b, 1 - tail))
    return _interval(passed, n, low, high, level, "jeffreys")


def exact_lower_bound(passed: int, n: int, alpha: float = 0.05) -> float:
    """One-sided exact lower bound of a pass rate; alpha^(1/n) when all passed, NaN at n = 0.

    Raises:
        StatsError: If passed is outside 0..n or alpha outside (0, 1).
    """
    _check(passed, n, alpha)
    if n == 0:
        return math.nan
    return 0.0 if passed == 0 else float(beta_quantile(passed, n - passed + 1, alpha))


def exact_upper_bound(passed: int, n: int, alpha: float = 0.05) -> float:
    """One-sided exact upper bound of a pass rate; 1 when all passed, NaN at n = 0.

    Raises:
        StatsError: If passed is outside 0..n or alpha outside (0, 1).
    """
    _check(passed, n, alpha)
    if n == 0:
        return math.nan
    return 1.0 if passed == n else float(beta_quantile(passed + 1, n - passed, 1 - alpha))


def exact_p_at_least(passed: int, n: int, rate: float = 0.5) -> float:
    """P(at least so many pass) when the true rate is `rate`: the exact one-sided p-value.

    Raises:
        StatsError: If passed is outside 0..n or rate outside [0, 1].
    """
    _check(passed, n, 0.5)
    if not 0 <= rate <= 1:
        raise StatsError(f"the rate {rate:g} is outside 0..1.")
    return float(binomial_tail(passed, n, rate))


def unseen_share(n: int, alpha: float = 0.05) -> float:
    """The largest share of a kind of case that n cases can all have missed: 1 - alpha^(1/n).

    Raises:
        StatsError: If n < 1 or alpha is outside (0, 1).
    """
    if n < 1:
        raise StatsError(f"{n} cases exclude nothing; at least 1 is needed.")
    return 1 - check_conf("alpha", alpha) ** (1 / n)


def cases_to_prove(floor: float, alpha: float = 0.05) -> int:
    """Fewest cases that can ever prove a floor, all of them passing: ceil(ln alpha / ln floor).

    29 for .90, 59 for .95, 149 for .98, 299 for .99. A margin m is the floor 1 - m.

    Raises:
        StatsError: If floor or alpha is outside (0, 1); a floor of 1 is counted, not estimated.
    """
    check_conf("the floor", floor)
    # 1e-9: ln(.05)/ln(.05) must be 1 and not 2 for want of the last bit
    return math.ceil(math.log(check_conf("alpha", alpha)) / math.log(floor) - 1e-9)


def kish_effective_size(weights: Any) -> float:
    """How many equally weighted cases these weights are worth: (Σw)²/Σw²; NaN without weight.

    Raises:
        StatsError: If a weight is negative or not finite.

    Source: Kish (1965), Survey Sampling.
    """
    w = np.asarray(weights, dtype=float)
    if np.any(~np.isfinite(w)) or np.any(w < 0):
        raise StatsError("a weight is negative or not finite; weights are 0 or more.")
    return float(w.sum() ** 2 / (w @ w)) if w.sum() > 0 else math.nan


def _check(passed: float, n: float, level: float) -> None:
    check_conf("the level", level)
    if not (n >= 0 and 0 <= passed <= n):
        raise StatsError(f"{passed:g} of {n:g} cannot have passed; passed must lie in 0..n.")


def _empty(method: str, level: float) -> Interval:
    nan = math.nan
    return Interval(
        nan, nan, nan, level, method, status=Status.INSUFFICIENT_DATA, reasons=("no_cases",)
    )


def _interval(k: float, n: float, low: float, high: float, level: float, method: str) -> Interval:
    whole = int(n)
    return Interval(k / n, low, high, level, method, n_cases=whole, n_runs=whole)

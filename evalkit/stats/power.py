"""What the data could have shown, and how many cases would show it."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from evalkit.errors import StatsError
from evalkit.stats.intervals import cases_to_prove, unseen_share
from evalkit.stats.observations import check_conf
from evalkit.stats.quantiles import normal_quantile, t_quantile

__all__ = [
    "cases_for_release",
    "minimum_detectable_effect",
    "minimum_detectable_effect_exact",
    "sample_size",
    "sample_size_by_runs",
]


def minimum_detectable_effect(
    se: float, n: int, *, alpha: float = 0.05, power: float = 0.8, sided: int = 2
) -> float:
    """Smallest true change these data would have found with this power, in the unit of `se`.

    (t_{n-1,1-a} + t_{n-1,power})·se, a = alpha/sided. With se = 0 the share of cases that n cases
    can all have missed, 1 - a^(1/n), of a range of 1. From the standard error, never from the
    observed effect.

    Args:
        se: Standard error of the difference, 0 or more.
        n: Cases, 2 or more; fewer give NaN.
        alpha: Error of the test.
        power: Chance of finding the change, in (0, 1).
        sided: 2 for the direction verdict, 1 for a one-sided test.

    Raises:
        StatsError: If se is negative, alpha or power outside (0, 1), or sided neither 1 nor 2.
    """
    tail = _tail(alpha, power, sided)
    if se < 0:
        raise StatsError(f"a standard error of {se:g} is impossible.")
    if n < 2 or math.isnan(se):
        return math.nan
    if se == 0:
        return unseen_share(n, tail)
    return float(t_quantile(n - 1, 1 - tail) + t_quantile(n - 1, power)) * se


def minimum_detectable_effect_exact(
    se: float, n: int, *, alpha: float = 0.05, power: float = 0.8, sided: int = 2
) -> float:
    """The same from the noncentral t distribution, both tails counted when two-sided.

    Agrees with `minimum_detectable_effect` to three digits for n >= 20; arguments and errors as
    there, with se > 0 and n >= 2.
    """
    from scipy.optimize import root_scalar

    tail = _tail(alpha, power, sided)
    if not (se > 0 and n >= 2 and power > alpha):
        raise StatsError("a positive standard error, two cases and a power above alpha are needed.")
    critical = float(t_quantile(n - 1, 1 - tail))
    most = 1.5 * (critical + float(t_quantile(n - 1, power))) + 1
    found = root_scalar(
        lambda shift: _power_at(shift, critical, n - 1, sided) - power,
        bracket=(0.0, most),
        xtol=1e-13,
        rtol=1e-14,
    )
    return found.root * se


def _power_at(shift: float, critical: float, df: int, sided: int) -> float:
    """P(T > critical), or P(|T| > critical), of the noncentral t with this shift.

    Integrates the normal tail over the distribution of s = sd/sigma; the series in scipy.special
    loses the far tail.
    """
    from scipy.special import gammaln, ndtr

    reach = 12 / math.sqrt(2 * df)
    nodes, weights = _nodes()
    low, high = max(0.0, 1 - reach), 1 + reach
    s = (high - low) / 2 * nodes + (high + low) / 2
    log_density = (
        math.log(2)
        + df / 2 * math.log(df / 2)
        - float(gammaln(df / 2))
        + (df - 1) * np.log(s)
        - df * s * s / 2
    )
    mass = weights * (high - low) / 2 * np.exp(log_density)
    beyond = ndtr(shift - critical * s)
    if sided == 2:
        beyond = beyond + ndtr(-critical * s - shift)
    return float(mass @ beyond)


@cache
def _nodes() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return np.polynomial.legendre.leggauss(200)


def sample_size(
    var_between: float,
    delta: float,
    *,
    var_within_baseline: float = 0.0,
    var_within_candidate: float = 0.0,
    runs_baseline: float = 1,
    runs_candidate: float = 1,
    alpha: float = 0.05,
    power: float = 0.8,
    sided: int = 1,
) -> float:
    """Cases needed to find a mean paired difference; round up.

    n = (z_{1-a} + z_{power})²·(var_d + s²_A/R_A + s²_B/R_B)/delta², a = alpha/sided.

    Args:
        var_between: Variance over cases of the true differences.
        delta: The change to find (for a gate: the margin), not 0.
        var_within_baseline: Run variance of the baseline within a case.
        var_within_candidate: Run variance of the candidate within a case.
        runs_baseline: Runs per case.
        runs_candidate: Runs per case.
        alpha: Error of the test.
        power: Chance of finding the change.
        sided: 1 or 2.

    Raises:
        StatsError: If a variance is negative, runs below 1, delta 0, or a level outside (0, 1).
    """
    tail = _tail(alpha, power, sided)
    if min(var_between, var_within_baseline, var_within_candidate) < 0 or delta == 0:
        raise StatsError("variances are 0 or more and the change to find is not 0.")
    if min(runs_baseline, runs_candidate) < 1:
        raise StatsError("a case has at least one run.")
    variance = (
        var_between + var_within_baseline / runs_baseline + var_within_candidate / runs_candidate
    )
    return (normal_quantile(1 - tail) + normal_quantile(power)) ** 2 * variance / delta**2


def sample_size_by_runs(
    var_between: float,
    delta: float,
    *,
    var_within_baseline: float,
    var_within_candidate: float,
    alpha: float = 0.05,
    power: float = 0.8,
    sided: int = 1,
) -> dict[int, int]:
    """Cases needed with 1, 3 and 5 runs on both sides, so that one sees when runs stop helping."""
    return {
        runs: math.ceil(
            sample_size(
                var_between,
                delta,
                var_within_baseline=var_within_baseline,
                var_within_candidate=var_within_candidate,
                runs_baseline=runs,
                runs_candidate=runs,
                alpha=alpha,
                power=power,
                sided=sided,
            )
        )
        for runs in (1, 3, 5)
    }


def cases_for_release(sd: float, margin: float, *, alpha: float = 0.05, power: float = 0.8) -> int:
    """Cases with which an unchanged system passes the release gate with this power.

    The sample size for `margin` at a true difference of 0, raised to the fewest cases that can
    prove the margin at all.

    Args:
        sd: Standard deviation of the case differences, on [0, 1].
        margin: Allowed drop on [0, 1], in (0, 1).
        alpha: Error of the gate.
        power: Chance that an unchanged system passes.
    """
    least = cases_to_prove(1 - margin, alpha)
    return max(math.ceil(sample_size(sd**2, margin, alpha=alpha, power=power)), least)


def _tail(alpha: float, power: float, sided: int) -> float:
    check_conf("power", power)
    if sided not in (1, 2):
        raise StatsError(f"a test is 1- or 2-sided, not {sided}.")
    return check_conf("alpha", alpha) / sided

"""Paired comparison of two runs: is there a difference, in which direction, how large at most?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalkit.errors import StatsError
from evalkit.stats.decision import Direction
from evalkit.stats.differences import Moments, moments, snapped, t_bounds
from evalkit.stats.observations import check_conf
from evalkit.stats.pairs import Pairs
from evalkit.stats.permutation import sign_flip_p
from evalkit.stats.power import minimum_detectable_effect
from evalkit.stats.quantiles import binomial_tail, normal_quantile, t_below
from evalkit.stats.result import Interval, Status

__all__ = ["Comparison", "McNemar", "compare_paired", "direction_of", "mcnemar", "tango_interval"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class McNemar:
    """Exact and mid-p value of b gains against c losses, and the difference (b - c)/n."""

    difference: float
    p_exact: float
    p_mid: float


@dataclass(frozen=True)
class Comparison:
    """Candidate against baseline, in score units; positive is better.

    `p` is the two-sided p-value of the default test (t; exact McNemar for one pass/fail run per
    case; sign flip without variance), `p_signflip` the check beside it, `p_mid` McNemar's mid-p.
    `dz` is delta/sd(d), NaN without variance; `p_better` = P(better) + P(tie)/2. `mde` is the
    smallest true change that would have been found with `power`. `source_verdict` repeats a rule
    that calls a significant regression noise; nothing here decides on it.
    """

    interval: Interval
    direction: Direction
    p: float
    p_signflip: float
    dz: float
    p_better: float
    mde: float
    power: float
    p_mid: float | None = None

    @property
    def source_verdict(self) -> str:
        """DEPLOY_UPGRADE or NOISE_DETECTED, by the rule `p < .05 and delta > 0`."""
        better = self.p < 0.05 and self.interval.estimate > 0
        return "DEPLOY_UPGRADE" if better else "NOISE_DETECTED"


def compare_paired(
    pairs: Pairs,
    *,
    conf: float = 0.95,
    power: float = 0.8,
    seed: int = 0,
    mde_alpha: float | None = None,
) -> Comparison:
    """Compare two runs of the same cases, case by case.

    Default: t on the case differences. One pass/fail run per case: exact McNemar with Tango's
    interval, and a direction only when both exclude 0. Without variance: the unseen-case rule and
    the exact sign flip, DEGENERATE. Fewer than two pairs: NaN, INSUFFICIENT_DATA.

    Args:
        pairs: From `pair_up`.
        conf: Level of the two-sided interval, in (0, 1).
        power: Power at which the minimum detectable effect is given.
        seed: Seed of the sign-flip check.
        mde_alpha: Level of the minimum detectable effect; None takes 1 - conf.

    Raises:
        StatsError: If conf or power is outside (0, 1).

    Source: Miller (2024), arXiv:2411.00640; McNemar (1947); Tango (1998).
    """
    alpha = 1 - check_conf("conf", conf)
    d, span = snapped(pairs.differences), pairs.span
    reasons = list(pairs.reasons)
    if len(d) < 2:
        return _too_few(pairs, d, conf, power)
    if len(d) < 6:
        reasons.append("sign_flip_cannot_reach_alpha")
    m = moments(d)
    flips = sign_flip_p(d, seed=seed)
    low, high = (float(x) for x in t_bounds(m, alpha / 2))
    method, p, p_mid = "unseen_case" if m.flat else "paired_t", _two_sided_p(m), None
    if m.flat:
        reasons.append("zero_variance")
    if pairs.single_run and pairs.binary:
        gains, losses = int((d > 0).sum()), int((d < 0).sum())
        exact = mcnemar(gains, losses, len(d))
        low, high = tango_interval(gains, losses, len(d), level=conf)
        method, p, p_mid = "mcnemar_tango", exact.p_exact, exact.p_mid
    direction = direction_of(low, high)
    if method == "mcnemar_tango" and (p <= alpha) != (direction is not Direction.NOT_DISTINGUISHED):
        reasons.append("tests_disagree")
        direction = Direction.NOT_DISTINGUISHED
    elif method == "paired_t" and (p <= alpha) != (flips <= alpha):
        reasons.append("tests_disagree")
    mde = minimum_detectable_effect(
        float(m.se), m.n, alpha=alpha if mde_alpha is None else mde_alpha, power=power
    )
    return Comparison(
        interval=Interval(
            estimate=float(m.delta) * span,
            ci_low=low * span,
            ci_high=high * span,
            conf=conf,
            method=method,
            n_cases=m.n,
            n_runs=pairs.n_runs,
            n_missing=pairs.n_missing,
            n_invalid=pairs.n_invalid,
            status=Status.DEGENERATE if m.flat else Status.OK,
            reasons=tuple(reasons),
            seed=seed,
            extra={
                "se": float(m.se) * span,
                "sd": float(m.sd) * span,
                "t": math.nan if m.flat else float(m.delta / m.se),
                "runs_baseline": pairs.runs_baseline,
                "runs_candidate": pairs.runs_candidate,
                "n_without_baseline": pairs.n_without_baseline,
                "n_without_candidate": pairs.n_without_candidate,
            },
        ),
        direction=direction,
        p=p,
        p_signflip=flips,
        dz=math.nan if m.flat else float(m.delta / m.sd),
        p_better=float((d > 0).mean() + (d == 0).mean() / 2),
        mde=mde * span,
        power=power,
        p_mid=p_mid,
    )


def direction_of(low: float, high: float) -> Direction:
    """The verdict a two-sided interval of the difference gives; NaN bounds distinguish nothing."""
    if low > 0:
        return Direction.IMPROVED
    return Direction.REGRESSED if high < 0 else Direction.NOT_DISTINGUISHED


def mcnemar(gains: int, losses: int, n: int) -> McNemar:
    """Exact McNemar test of gains against losses among n pairs; without any, p = 1.

    mid-p = 2(P(X < m) + P(X = m)/2), m = min(gains, losses), X ~ Bin(gains + losses, 1/2).

    Raises:
        StatsError: If counts are negative or exceed n, or n is 0.
    """
    _check_counts(gains, losses, n)
    total, least = gains + losses, min(gains, losses)
    if total == 0:
        return McNemar(0.0, 1.0, 1.0)
    at_most = float(binomial_tail(total - least, total))  # by symmetry P(X <= least)
    at = math.comb(total, least) / 2**total  # whole numbers: 2.0 ** 1024 is too large for a float
    exact, mid = 2 * at_most, 2 * (at_most - at / 2)
    return McNemar((gains - losses) / n, min(exact, 1.0), min(mid, 1.0))


def tango_interval(gains: int, losses: int, n: int, *, level: float = 0.95) -> tuple[float, float]:
    """Tango's score interval for the difference (gains - losses)/n of paired rates.

    The differences D at which the score statistic (b - c - nD)/sqrt(n(2q + D(1 - D))) is within
    the normal quantile, q the constrained maximum likelihood estimate of the loss probability.
    It has width also without a discordant pair.

    Raises:
        StatsError: If counts are negative or exceed n, n is 0, or level is outside (0, 1).

    Source: Tango (1998), Statistics in Medicine 17, 891-908.
    """
    from scipy.optimize import brentq

    _check_counts(gains, losses, n)
    z = normal_quantile((1 + check_conf("level", level)) / 2)
    estimate = (gains - losses) / n

    def score(at: float) -> float:
        b = 2 * n * 1.0
        a = -gains - losses + (2 * n - gains + losses) * at
        c = -losses * at * (1 - at)
        q = (math.sqrt(max(a * a - 4 * b * c, 0.0)) - a) / (2 * b)
        variance = n * (2 * q + at * (1 - at))
        gap = gains - losses - n * at
        if variance <= 0:
            return math.copysign(math.inf, gap) if gap else 0.0
        return gap / math.sqrt(variance)

    edge = 1e-12
    low = -1.0 if estimate <= -1 else _root(brentq, score, -1 + edge, estimate, z)
    high = 1.0 if estimate >= 1 else _root(brentq, score, estimate, 1 - edge, -z)
    return low, high


def _root(brentq: Any, score: Any, a: float, b: float, target: float) -> float:
    def gap(at: float) -> float:
        return max(min(score(at), 1e6), -1e6) - target

    if gap(a) * gap(b) > 0:  # the score never reaches the quantile: the range's end bounds it
        return a if target > 0 else b
    return float(brentq(gap, a, b, xtol=1e-14, rtol=1e-14))


def _two_sided_p(m: Moments) -> float:
    if m.flat:
        return 1.0 if m.delta == 0 else 2 * 2.0**-m.n
    return float(2 * t_below(m.n - 1, -abs(m.delta / m.se)))


def _too_few(pairs: Pairs, d: Floats, conf: float, power: float) -> Comparison:
    nan = math.nan
    return Comparison(
        interval=Interval(
            estimate=float(d.mean()) * pairs.span if len(d) else nan,
            ci_low=nan,
            ci_high=nan,
            conf=conf,
            method="paired_t",
            n_cases=len(d),
            n_runs=pairs.n_runs,
            n_missing=pairs.n_missing,
            n_invalid=pairs.n_invalid,
            status=Status.INSUFFICIENT_DATA,
            reasons=(*pairs.reasons, "n_lt_2"),
            extra={"se": nan, "sd": nan, "t": nan},
        ),
        direction=Direction.NOT_DISTINGUISHED,
        p=nan,
        p_signflip=nan,
        dz=nan,
        p_better=nan,
        mde=nan,
        power=power,
    )


def _check_counts(gains: int, losses: int, n: int) -> None:
    if min(gains, losses) < 0 or n < 1 or gains + losses > n:
        raise StatsError(f"{gains} gains and {losses} losses do not fit {n} pairs.")

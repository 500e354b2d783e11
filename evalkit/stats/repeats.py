"""Repeated runs per case: the case is the unit, its runs are nested in it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evalkit.errors import StatsError
from evalkit.stats.intervals import wilson_bounds
from evalkit.stats.observations import Observations, ScoreRange, check_conf, observe
from evalkit.stats.quantiles import normal_quantile, t_quantile
from evalkit.stats.result import Interval, Status

__all__ = [
    "FLAT",
    "Components",
    "Scope",
    "as_observations",
    "case_means",
    "clustered_mean",
    "effective_wilson",
    "pass_rate",
    "pooled_rate",
    "variance_components",
]

Floats = NDArray[np.float64]
Scope = Literal["population", "fixed_set"]
FLAT = 1e-12  # a standard deviation on [0, 1] below this is rounding, not variance


@dataclass(frozen=True)
class Components:
    """Variance on [0, 1] between cases and between the runs of a case; NaN where R = 1.

    `icc1` may be negative and is then reported as it is. `add` says what narrows the interval:
    "cases" when the cases differ more than `var_within / runs`, else "runs".
    """

    var_between: float
    var_within: float
    icc1: float
    runs: float

    @property
    def add(self) -> str:
        """What to add for a narrower interval."""
        if math.isnan(self.var_within):
            return ""
        return "cases" if self.var_between > self.var_within / self.runs else "runs"


def pass_rate(
    scores: Any,
    *,
    conf: float = 0.95,
    binary: bool | None = None,
    scope: Scope = "population",
    status: Sequence[Sequence[str]] | None = None,
    score_range: ScoreRange = (0.0, 1.0),
    clusters: Sequence[Hashable] | None = None,
) -> Interval:
    """Pass rate, or mean score, over cases: every case weighs the same, also with unequal runs.

    Pass/fail scores with one run get Wilson's interval, with repeats Wilson's on an effective
    sample size; other scores a t interval on the case means, cut at the range. Without any
    variance the interval allows for the share of cases that n cases can have missed.

    Args:
        scores: Case x run as `observe` takes it, or `Observations`; NaN is missing.
        conf: Confidence level, in (0, 1).
        binary: Whether scores are pass/fail; None looks whether all are lowest or highest.
        scope: "population": the cases are a sample of the traffic. "fixed_set": would a re-run of
            these very cases give another number (run noise only; needs two runs a case).
        status: `Observation` word per score.
        score_range: Lowest and highest score.
        clusters: One id per case; cases that share one are one unit.

    Returns:
        In score units. `n_cases` counts units with a score, `n_runs` scores. `extra`: se,
        design_effect, n_eff, n_eff_adjusted (pass/fail with repeats), var_between, var_within,
        icc1, add, n_missing_cases, n_system_error.

    Raises:
        StatsError: If the scores, conf or clusters are malformed (see `observe`).

    Source: Miller (2024), arXiv:2411.00640; Korn and Graubard (1998); Franco et al. (2019).
    """
    seen = as_observations(scores, status, score_range).by_unit(clusters)
    check_conf("conf", conf)
    if binary and not seen.binary:
        raise StatsError("binary scores must all be the lowest or the highest of the range.")
    two_values = seen.binary if binary is None else binary
    means, runs = case_means(seen)
    parts = variance_components(seen)
    extra: dict[str, Any] = {
        "se": math.nan,
        "var_between": parts.var_between,
        "var_within": parts.var_within,
        "icc1": parts.icc1,
        "add": parts.add,
        "n_missing_cases": len(seen.values) - len(means),
        "n_system_error": seen.n_system_error,
    }
    if scope == "fixed_set":
        low, high, method, state, reasons = _fixed_set(means, runs, parts, conf, extra)
    elif two_values:
        low, high, method, state, reasons = _pass_fail(means, runs, conf, extra)
    else:
        low, high, method, state, reasons = _mean_score(means, conf, extra)
    bounds = None
    if seen.n_missing:
        ends = [case_means(seen.filled(x))[0] for x in ("lowest", "highest")]
        bounds = (seen.scaled_back(float(ends[0].mean())), seen.scaled_back(float(ends[1].mean())))
    span = seen.score_range[1] - seen.score_range[0]
    extra["se"] *= span
    for name in ("var_between", "var_within"):
        extra[name] *= span * span
    return Interval(
        estimate=seen.scaled_back(float(means.mean())) if len(means) else math.nan,
        ci_low=seen.scaled_back(low),
        ci_high=seen.scaled_back(high),
        conf=conf,
        method=method,
        n_cases=len(means),
        n_runs=int(runs.sum()),
        n_missing=seen.n_missing,
        n_invalid=seen.n_invalid,
        status=state,
        reasons=reasons,
        scope=scope,
        bounds=bounds,
        extra=extra,
    )


def effective_wilson(means: Any, observations: Any, tail: float) -> dict[str, Any]:
    """Wilson's interval on an effective sample size, for pass rates with repeats.

    With p the mean of the case means, v = p(1-p), N observations of n cases:
    deff = clip(SE² / (v/N), 1, N/n) (N/n at p = 0 or 1), n_eff = N/deff,
    n_adj = n_eff·(z/t_{n-1})², interval = Wilson(p, n_adj).

    Args:
        means: Case means on [0, 1], shape (..., n >= 2); leading axes are replications.
        observations: N, a number or shape (...).
        tail: Probability beyond each end: .025 for a two-sided 95 % interval, .05 for a one-sided
            bound.

    Returns:
        Arrays of shape (...): estimate, se, design_effect, n_eff, n_eff_adjusted, low, high.
    """
    means = np.asarray(means, dtype=float)
    n = means.shape[-1]
    p, se = means.mean(-1), means.std(-1, ddof=1) / math.sqrt(n)
    total = np.asarray(observations, dtype=float)
    v = p * (1 - p)
    most = total / n
    with np.errstate(divide="ignore", invalid="ignore"):
        deff = np.where(v > FLAT, np.clip(se**2 / (v / total), 1, most), most)
    n_eff = total / deff
    z, t = normal_quantile(1 - tail), float(t_quantile(n - 1, 1 - tail))
    n_adj = n_eff * (z / t) ** 2
    low, high = wilson_bounds(p, n_adj, z)
    return {
        "estimate": p,
        "se": se,
        "design_effect": deff[()],
        "n_eff": n_eff[()],
        "n_eff_adjusted": n_adj[()],
        "low": low,
        "high": high,
    }


def clustered_mean(scores: Any, *, conf: float = 0.95, **how: Any) -> Interval:
    """Mean of the case means with the clustered standard error and a t interval (not cut).

    Args:
        scores: Case x run, as `observe` takes it, or `Observations`.
        conf: Confidence level, in (0, 1).
        how: `status` and `score_range`, as in `observe`.

    Returns:
        `extra`: se, se_naive (as if runs were cases), design_effect (their ratio squared, not
        clipped).

    Raises:
        StatsError: If the scores or conf are malformed.
    """
    seen = as_observations(scores, how.get("status"), how.get("score_range", (0.0, 1.0)))
    check_conf("conf", conf)
    means, runs = case_means(seen)
    n, span = len(means), seen.score_range[1] - seen.score_range[0]
    every = seen.values[seen.valid]
    naive = float(every.std(ddof=1)) / math.sqrt(len(every)) if len(every) > 1 else math.nan
    se = float(means.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    half = float(t_quantile(n - 1, (1 + conf) / 2)) * se if n > 1 else math.nan
    mean = float(means.mean()) if n else math.nan
    return Interval(
        estimate=seen.scaled_back(mean),
        ci_low=seen.scaled_back(mean - half),
        ci_high=seen.scaled_back(mean + half),
        conf=conf,
        method="clustered_t",
        n_cases=n,
        n_runs=int(runs.sum()),
        n_missing=seen.n_missing,
        n_invalid=seen.n_invalid,
        status=Status.OK if n > 1 else Status.INSUFFICIENT_DATA,
        reasons=() if n > 1 else ("n_lt_2",),
        extra={
            "se": se * span,
            "se_naive": naive * span,
            "design_effect": (se / naive) ** 2 if naive > 0 else math.nan,
        },
    )


def pooled_rate(scores: Any, *, conf: float = 0.95, **how: Any) -> Interval:
    """Mean over all runs, which weighs cases by their runs; only for who asks for it.

    Standard error sqrt(G/(G-1)·Σ_i(Σ_j(y_ij - p))²)/N for G cases and N runs; t_{G-1} interval.

    Args:
        scores: Case x run, as `observe` takes it, or `Observations`.
        conf: Confidence level, in (0, 1).
        how: `status` and `score_range`, as in `observe`.

    Raises:
        StatsError: If the scores or conf are malformed.
    """
    seen = as_observations(scores, how.get("status"), how.get("score_range", (0.0, 1.0)))
    check_conf("conf", conf)
    used = seen.values[seen.valid.any(axis=1)]
    g, total = len(used), int((~np.isnan(used)).sum())
    p = float(np.nanmean(used)) if total else math.nan
    se = half = math.nan
    if g > 1:
        residuals = np.nansum(used - p, axis=1)
        se = math.sqrt(g / (g - 1) * float(residuals @ residuals)) / total
        half = float(t_quantile(g - 1, (1 + conf) / 2)) * se
    return Interval(
        estimate=seen.scaled_back(p),
        ci_low=seen.scaled_back(p - half),
        ci_high=seen.scaled_back(p + half),
        conf=conf,
        method="pooled_cluster_robust_t",
        n_cases=g,
        n_runs=total,
        n_missing=seen.n_missing,
        n_invalid=seen.n_invalid,
        status=Status.OK if g > 1 else Status.INSUFFICIENT_DATA,
        reasons=() if g > 1 else ("n_lt_2",),
        extra={"se": se * (seen.score_range[1] - seen.score_range[0])},
    )


def variance_components(scores: Any, **how: Any) -> Components:
    """Variance between cases and within them, on [0, 1].

    MSB = R·var(m_i), MSW the pooled within-case variance, var_between = max((MSB-MSW)/R, 0),
    ICC1 = (MSB-MSW)/(MSB+(R-1)·MSW); R = (N - ΣR_i²/N)/(n-1) with unequal runs. NaN for fewer than
    two cases or one run a case.
    """
    seen = as_observations(scores, how.get("status"), how.get("score_range", (0.0, 1.0)))
    means, runs = case_means(seen)
    n, total = len(means), float(runs.sum())
    if n < 2 or total <= n:
        return Components(math.nan, math.nan, math.nan, total / n if n else math.nan)
    r = (total - float((runs**2).sum()) / total) / (n - 1)
    used = seen.values[seen.valid.any(axis=1)]
    msw = float(np.nansum((used - means[:, None]) ** 2)) / (total - n)
    msb = r * float(means.var(ddof=1))
    below = msb + (r - 1) * msw
    icc = (msb - msw) / below if below > FLAT**2 else math.nan
    return Components(max((msb - msw) / r, 0.0), msw, icc, r)


def as_observations(
    scores: Any,
    status: Sequence[Sequence[str]] | None = None,
    score_range: ScoreRange = (0.0, 1.0),
) -> Observations:
    """The observations themselves, or checked raw scores."""
    if isinstance(scores, Observations):
        return scores
    return observe(scores, status=status, score_range=score_range)


def case_means(seen: Observations) -> tuple[Floats, NDArray[np.int64]]:
    """Mean and number of valid runs of each case that has one."""
    runs = seen.valid.sum(axis=1)
    some = runs > 0
    return np.nansum(seen.values[some], axis=1) / runs[some], runs[some]


Found = tuple[float, float, str, Status, tuple[str, ...]]


def _pass_fail(means: Floats, runs: Any, conf: float, extra: dict[str, Any]) -> Found:
    n, total = len(means), int(runs.sum())
    if n == 0:
        return math.nan, math.nan, "wilson", Status.INSUFFICIENT_DATA, ("no_cases",)
    if total == n:
        p = float(means.mean())
        extra["se"] = math.sqrt(p * (1 - p) / (n - 1)) if n > 1 else math.nan
        low, high = wilson_bounds(p, n, normal_quantile((1 + conf) / 2))
        return float(low), float(high), "wilson", Status.OK, ()
    if n < 2:
        return math.nan, math.nan, "wilson_effective_n", Status.INSUFFICIENT_DATA, ("n_lt_2",)
    found = effective_wilson(means, total, (1 - conf) / 2)
    for name in ("se", "design_effect", "n_eff", "n_eff_adjusted"):
        extra[name] = float(found[name])
    return float(found["low"]), float(found["high"]), "wilson_effective_n", Status.OK, ()


def _mean_score(means: Floats, conf: float, extra: dict[str, Any]) -> Found:
    n = len(means)
    if n < 2:
        reason = "n_lt_2" if n else "no_cases"
        return math.nan, math.nan, "clustered_t", Status.INSUFFICIENT_DATA, (reason,)
    extra["se"] = float(means.std(ddof=1)) / math.sqrt(n)
    low, high = (min(max(x, 0.0), 1.0) for x in _t_or_unseen(means, (1 - conf) / 2))
    if float(means.std(ddof=1)) <= FLAT:
        extra["se"] = 0.0
        return low, high, "unseen_case", Status.DEGENERATE, ("zero_variance",)
    return low, high, "clustered_t", Status.OK, ()


def _fixed_set(
    means: Floats, runs: Any, parts: Components, conf: float, extra: dict[str, Any]
) -> Found:
    n, total = len(means), int(runs.sum())
    if n == 0:
        return math.nan, math.nan, "run_noise_t", Status.INSUFFICIENT_DATA, ("no_cases",)
    if total == n or math.isnan(parts.var_within):
        return math.nan, math.nan, "run_noise_t", Status.UNDEFINED, ("one_run",)
    mean, tail = float(means.mean()), (1 - conf) / 2
    if parts.var_within <= FLAT**2:  # no run differed: allow for the share N runs can have missed
        extra["se"], q = 0.0, 1 - tail ** (1 / total)
        low, high = mean - q * mean, mean + q * (1 - mean)
        return low, high, "unseen_run", Status.DEGENERATE, ("zero_variance",)
    se = math.sqrt(parts.var_within * float((1 / runs).mean()) / n)
    extra["se"], half = se, float(t_quantile(total - n, 1 - tail)) * se
    return max(mean - half, 0.0), min(mean + half, 1.0), "run_noise_t", Status.OK, ()


def _t_or_unseen(means: Floats, tail: float) -> tuple[float, float]:
    n, mean, sd = len(means), float(means.mean()), float(means.std(ddof=1))
    if sd <= FLAT:
        q = 1 - tail ** (1 / n)
        return mean - q * mean, mean + q * (1 - mean)
    half = float(t_quantile(n - 1, 1 - tail)) * sd / math.sqrt(n)
    return mean - half, mean + half

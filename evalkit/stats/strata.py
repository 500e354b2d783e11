"""Stratified samples: how many cases of each stratum, and what the sample says of the whole."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evalkit.errors import StatsError
from evalkit.stats.intervals import wilson_bounds
from evalkit.stats.observations import check_conf
from evalkit.stats.quantiles import normal_quantile, t_quantile
from evalkit.stats.repeats import as_observations, case_means
from evalkit.stats.result import Interval, Status

__all__ = ["Method", "allocate", "stratified_mean"]

Method = Literal["proportional", "equal"]
Name = Hashable


def allocate(
    n: int,
    sizes: Mapping[Any, int],
    weights: Mapping[Any, float] | None = None,
    *,
    method: Method = "proportional",
    minimum: int = 2,
) -> dict[Any, int]:
    """How many of n cases each stratum gets; deterministic, sums to min(n, all cases).

    Quotas n·W_h ("proportional") or n/H ("equal") by largest remainder, ties to the earlier
    stratum. A stratum gets at least min(minimum, its size) and at most its size; freed units go to
    the largest remaining quota gap, excess is taken from the largest surplus.

    Args:
        n: Cases to draw.
        sizes: Cases each stratum has.
        weights: Share of each stratum in the traffic (a mix); None takes the sizes.
        method: "proportional" or "equal".
        minimum: Fewest cases a stratum gets, if it has them.

    Raises:
        StatsError: If n or a size is negative, a weight negative or all are 0, the strata of sizes
            and weights differ, or n is below the sum of the minima.
    """
    total = min(n, sum(sizes.values()))
    least = {h: min(minimum, size) for h, size in sizes.items()}
    if n < 0 or any(size < 0 for size in sizes.values()):
        raise StatsError("numbers of cases are 0 or more.")
    if total < sum(least.values()):
        raise StatsError(
            f"{n} cases do not give each of {len(sizes)} strata its {minimum}; "
            f"draw {sum(least.values())} or more, or merge strata."
        )
    quota = _quotas(total, sizes, weights, method)
    got = {h: math.floor(q) for h, q in quota.items()}
    order = list(sizes)
    by_remainder = sorted(order, key=lambda h: (got[h] - quota[h], order.index(h)))
    for h in by_remainder[: total - sum(got.values())]:
        got[h] += 1
    got = {h: min(max(got[h], least[h]), sizes[h]) for h in order}
    while (spare := total - sum(got.values())) != 0:
        step = 1 if spare > 0 else -1
        room = [h for h in order if (got[h] < sizes[h] if step > 0 else got[h] > least[h])]
        got[max(room, key=lambda h: step * (quota[h] - got[h]))] += step
    return got


def stratified_mean(
    scores: Mapping[Any, Any],
    population: Mapping[Any, float],
    *,
    conf: float = 0.95,
    fpc: bool = False,
    method: Literal["t", "wilson"] = "t",
    collapse: Mapping[Any, Sequence[Any]] | None = None,
    **how: Any,
) -> Interval:
    """Mean of the whole population from a sample of each stratum.

    Σ W_h·ȳ_h with Var = Σ W_h²(1 - f_h)s_h²/n_h; f_h = n_h/N_h only with `fpc`. Interval: t with
    Satterthwaite's degrees of freedom, or Wilson on n_eff = p(1-p)/Var.

    Args:
        scores: Stratum to its scores (case x run, as `observe` takes them), drawn within it.
        population: Stratum to its size N_h, or its weight (without `fpc`).
        conf: Confidence level, in (0, 1).
        fpc: The population is this finite set; a stratum drawn whole adds no variance.
        method: "t", or "wilson" for pass/fail scores.
        collapse: New name to the strata it merges, named in advance; saves strata with one case.
        how: `score_range`, as in `observe`.

    Returns:
        extra: se, df, unweighted, strata (name to mean, n, weight; exploratory). An empty stratum
        is UNDEFINED (empty_stratum), never renormalised; one with a single case has no standard
        error (singleton_stratum).

    Raises:
        StatsError: If strata differ, weights are negative or 0 in all, or scores are malformed.

    Source: Neyman (1934), JRSS 97, 558-625; Satterthwaite (1946), Biometrics Bulletin 2, 110-114.
    """
    check_conf("conf", conf)
    if set(scores) != set(population):
        raise StatsError("scores and population name different strata.")
    _check_weights(population)
    score_range = how.get("score_range", (0.0, 1.0))
    seen = {h: as_observations(s, None, score_range) for h, s in scores.items()}
    strata = _collapsed(
        {h: _Stratum(float(population[h]), case_means(seen[h])[0]) for h in scores}, collapse or {}
    )
    span, whole = score_range[1] - score_range[0], sum(s.size for s in strata.values())
    if fpc and any(len(s.means) > s.size for s in strata.values()):
        raise StatsError("a stratum has more sampled cases than its population.")
    n = sum(len(s.means) for s in strata.values())
    n_missing = sum(o.n_missing for o in seen.values())
    empty = any(not len(s.means) for s in strata.values())
    mean = (
        math.nan if empty else sum(s.size / whole * float(s.means.mean()) for s in strata.values())
    )
    terms = [(s.term(whole, fpc), len(s.means)) for s in strata.values()]
    variance = math.nan if empty else sum(a for a, _ in terms)
    low, high, df, state, reasons = _bounds(mean, variance, terms, n, conf, method, fpc, strata)
    if empty:
        state, reasons = Status.UNDEFINED, ("empty_stratum",)
    every = np.concatenate([s.means for s in strata.values()])
    back = score_range[0]
    return Interval(
        estimate=mean * span + back,
        ci_low=low * span + back,
        ci_high=high * span + back,
        conf=conf,
        method=f"stratified_{method}",
        n_cases=n,
        n_runs=int(sum(o.valid.sum() for o in seen.values())),
        n_missing=n_missing,
        n_invalid=sum(o.n_invalid for o in seen.values()),
        status=state,
        reasons=reasons,
        scope="fixed_set" if fpc else "population",
        extra={
            "se": math.sqrt(variance) * span if variance >= 0 else math.nan,
            "df": df,
            "unweighted": float(every.mean()) * span + back if n else math.nan,
            "strata": {
                h: {
                    "mean": float(s.means.mean()) * span + back if len(s.means) else math.nan,
                    "n": len(s.means),
                    "weight": s.size / whole,
                }
                for h, s in strata.items()
            },
        },
    )


@dataclass(frozen=True)
class _Stratum:
    size: float
    means: NDArray[np.float64]

    def term(self, whole: float, fpc: bool) -> float:
        """W²(1 - f)s²/n: what this stratum adds to the variance; NaN with a single case."""
        n = len(self.means)
        if fpc and n == self.size:
            return 0.0
        if n < 2:
            return math.nan
        left = 1 - n / self.size if fpc else 1.0
        return (self.size / whole) ** 2 * left * float(self.means.var(ddof=1)) / n


def _bounds(
    mean: float,
    variance: float,
    terms: Sequence[tuple[float, int]],
    n: int,
    conf: float,
    method: str,
    fpc: bool,
    strata: Mapping[Any, _Stratum],
) -> tuple[float, float, float, Status, tuple[str, ...]]:
    nan, tail = math.nan, (1 - conf) / 2
    if math.isnan(variance):
        return nan, nan, nan, Status.INSUFFICIENT_DATA, ("singleton_stratum",)
    if variance <= 1e-24:
        if fpc and all(len(s.means) == s.size for s in strata.values()):
            return mean, mean, nan, Status.OK, ("census",)
        if method == "wilson":
            low, high = wilson_bounds(mean, n, normal_quantile(1 - tail))
            return float(low), float(high), nan, Status.OK, ()
        q = 1 - tail ** (1 / n)
        low, high = mean - q * mean, mean + q * (1 - mean)
        return low, high, nan, Status.DEGENERATE, ("zero_variance",)
    df = variance**2 / sum(a * a / (k - 1) for a, k in terms if a > 0)
    t = float(t_quantile(df, 1 - tail))
    if method == "wilson":
        z = normal_quantile(1 - tail)
        low, high = wilson_bounds(mean, mean * (1 - mean) / variance * (z / t) ** 2, z)
        return float(low), float(high), df, Status.OK, ()
    half = t * math.sqrt(variance)
    return mean - half, mean + half, df, Status.OK, ()


def _collapsed(
    strata: dict[Any, _Stratum], collapse: Mapping[Any, Sequence[Any]]
) -> dict[Any, _Stratum]:
    into = {old: new for new, olds in collapse.items() for old in olds}
    if unknown := set(into) - set(strata):
        raise StatsError(f"collapse names strata that are not there: {sorted(map(str, unknown))}.")
    out: dict[Any, _Stratum] = {}
    for name, stratum in strata.items():
        new = into.get(name, name)
        held = out.get(new, _Stratum(0.0, np.empty(0)))
        out[new] = _Stratum(held.size + stratum.size, np.concatenate([held.means, stratum.means]))
    return out


def _quotas(
    total: int, sizes: Mapping[Any, int], weights: Mapping[Any, float] | None, method: Method
) -> dict[Any, Fraction]:
    if method not in ("proportional", "equal"):
        raise StatsError(f"an allocation is proportional or equal, not {method!r}.")
    shares: Mapping[Any, float] = sizes if weights is None else weights
    if set(shares) != set(sizes):
        raise StatsError("sizes and weights name different strata.")
    if method == "equal":
        return {h: Fraction(total, len(sizes)) for h in sizes}
    if total == 0:
        return {h: Fraction(0) for h in sizes}
    _check_weights(shares)
    # through text: a weight of .15 is 15/100 and not its nearest binary fraction
    exact = {h: Fraction(str(shares[h])) for h in sizes}
    return {h: total * w / sum(exact.values()) for h, w in exact.items()}


def _check_weights(weights: Mapping[Any, float]) -> None:
    if any(not math.isfinite(w) or w < 0 for w in weights.values()) or not sum(weights.values()):
        raise StatsError("weights and sizes are 0 or more, and not all 0.")

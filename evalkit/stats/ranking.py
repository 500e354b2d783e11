"""Several systems compared in pairs: strengths, ties and the advantage of being shown first.

Davidson's model with a position effect: for i shown first and j second the three outcomes have
log-odds s1 = θi + γ/2, s2 = θj - γ/2, s0 = ν + (θi + θj)/2, with Σθ = 0. With d = θi - θj + γ that
is (d/2, -d/2, ν): the log-likelihood depends on an ordered pair through d and ν alone, and on the
data through three m x m tables of counts.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalkit.errors import StatsError
from evalkit.stats.observations import check_conf
from evalkit.stats.quantiles import normal_quantile
from evalkit.stats.result import Interval, Status

__all__ = ["Davidson", "Ranking", "bradley_terry", "davidson", "rank_systems"]

Floats = NDArray[np.float64]
RIDGE = 0.1
FAR = 30.0  # a log-odds this large is on its way to infinity


@dataclass(frozen=True, slots=True)
class Davidson:
    """A fitted model: strengths (sum 0), `tie` = ν (-inf without ties), `position` = γ with its SE.

    `separated`: the estimate does not exist without the weak ridge ½·0.1·(Σθ² + γ²) that was added.
    """

    strength: Floats
    tie: float
    position: float
    position_se: float
    separated: bool
    converged: bool


@dataclass(frozen=True, slots=True)
class Ranking:
    """Systems by strength, the strongest first in `order`.

    `strength`, `rank`, `rank_interval` and `group` follow `systems`; two systems whose difference
    interval includes 0 share a group. Where the comparisons fall into parts that were never
    compared with one another (`not_connected`), nothing is ranked: strengths are NaN, `components`
    gives each system's part.
    """

    systems: tuple[Hashable, ...]
    strength: tuple[Interval, ...]
    order: tuple[Hashable, ...]
    rank: tuple[int, ...]
    rank_interval: tuple[tuple[int, int], ...]
    group: tuple[int, ...]
    position_effect: Interval
    tie_parameter: float
    components: tuple[int, ...]
    n_comparisons: int
    n_invalid: int
    status: Status = Status.OK
    reasons: tuple[str, ...] = ()


def davidson(first_wins: ArrayLike, second_wins: ArrayLike, ties: ArrayLike) -> Davidson:
    """Fit the model to three m x m tables, entry [i, j] for i shown first and j second.

    Args:
        first_wins: How often i won.
        second_wins: How often j won.
        ties: How often neither did.

    Raises:
        StatsError: If the tables are not three square tables of counts with an empty diagonal.

    Source: Davidson (1970), JASA 65(329), 317-328; Davidson and Beaver (1977), Biometrics 33(4).
    """
    tables = np.array([first_wins, second_wins, ties], dtype=np.float64)
    if tables.ndim != 3 or tables.shape[1] != tables.shape[2] or (tables < 0).any():
        raise StatsError("davidson needs three square tables of counts, 0 or more.")
    if np.any(np.diagonal(tables, axis1=1, axis2=2) != 0):
        raise StatsError("a system is compared with itself; the diagonal must be 0.")
    return _fit(tables, None)


def bradley_terry(wins: ArrayLike) -> Floats:
    """Log-strengths with sum 0 from a table of wins, [i, j] = wins of i over j, ties as halves.

    For comparison with other tools; `rank_systems` is what the package itself uses. NaN where the
    systems are not strongly connected by wins, because no finite estimate exists.

    Raises:
        StatsError: If the table is not a square one of counts.

    Source: Bradley and Terry (1952), Biometrika 39(3/4), 324-345.
    """
    w = np.asarray(wins, dtype=np.float64)
    if w.ndim != 2 or w.shape[0] != w.shape[1] or (w < 0).any():
        raise StatsError("bradley_terry needs one square table of counts, 0 or more.")
    m = len(w)
    if _parts(w, strong=True).max(initial=0) > 0:
        return np.full(m, math.nan)
    theta = np.zeros(m)
    games = w + w.T
    for _ in range(100):
        p = 1 / (1 + np.exp(theta[None, :] - theta[:, None]))
        gradient = (w - games * p).sum(1)
        step = np.linalg.solve(_laplacian(games * p * (1 - p)) + 1.0 / m, gradient)
        theta += step * min(1.0, 5.0 / max(float(np.abs(step).max()), 1e-300))
        if np.abs(step).max() < 1e-12:
            break
    return theta - theta.mean()


def rank_systems(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    verdict: Sequence[str | None],
    *,
    prompts: Sequence[Hashable] | None = None,
    n_boot: int = 500,
    seed: int = 0,
    level: float = 0.95,
) -> Ranking:
    """Rank systems from single-order verdicts (not from merged pairs).

    Args:
        first: (n,) the system shown first.
        second: (n,) the system shown second.
        verdict: (n,) "first", "second", "tie"; "invalid" or None is left out and counted.
        prompts: (n,) prompt ids, the units of the bootstrap; None makes each comparison one.
        n_boot: Bootstrap draws.
        seed: Seed of the bootstrap.
        level: Confidence level, in (0, 1).

    Raises:
        StatsError: For unequal lengths, an unknown verdict, or a system compared with itself.
    """
    check_conf("the level", level)
    n = len(verdict)
    if not len(first) == len(second) == n or (prompts is not None and len(prompts) != n):
        raise StatsError(f"{len(first)}, {len(second)} and {n} entries; give one per comparison.")
    words = {"first": 0, "second": 1, "tie": 2, "invalid": -1, None: -1}
    if unknown := [v for v in verdict if v not in words]:
        raise StatsError(f"the verdict {unknown[0]!r} is none of first, second, tie, invalid.")
    if same := [a for a, b in zip(first, second, strict=True) if a == b]:
        raise StatsError(f"the system {same[0]!r} is compared with itself.")
    systems = tuple(dict.fromkeys([*first, *second]))
    index, m = {s: i for i, s in enumerate(systems)}, len(systems)
    outcome = np.array([words[v] for v in verdict], dtype=np.intp)
    valid = outcome >= 0
    cells = outcome * m * m + np.array(
        [index[a] * m + index[b] for a, b in zip(first, second, strict=True)], dtype=np.intp
    ).reshape(n)
    cells = cells[valid]
    units = range(n) if prompts is None else prompts
    unit_of: dict[Hashable, int] = {}
    unit = np.array([unit_of.setdefault(u, len(unit_of)) for u in units], dtype=np.intp)[valid]
    tables = _tables(cells, None, m)
    parts = _parts(tables.sum(0), strong=False)
    if m < 2 or not len(cells) or parts.max() > 0:
        return _no_ranking(systems, parts, len(cells), n - len(cells), level)
    fit = _fit(tables, None)
    rng, draws = np.random.default_rng(seed), np.empty((n_boot, m))
    for b in range(n_boot):
        times = np.bincount(rng.integers(0, len(unit_of), len(unit_of)), minlength=len(unit_of))
        draws[b] = _fit(_tables(cells, times[unit].astype(np.float64), m), fit).strength
    ends = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
    reasons = [
        r for r, on in (("separated", fit.separated), ("no_ties", fit.tie == -math.inf)) if on
    ]
    half = normal_quantile((1 + level) / 2) * fit.position_se
    position = Interval(
        fit.position,
        fit.position - half,
        fit.position + half,
        level,
        "wald",
        len(unit_of),
        len(cells),
        n - len(cells),
        n - len(cells),
        extra={"se": fit.position_se},
    )
    strength = tuple(
        replace(
            position,
            estimate=float(fit.strength[i]),
            ci_low=float(ends[0, i]),
            ci_high=float(ends[1, i]),
            method="bootstrap_percentile",
            seed=seed,
            extra={},
        )
        for i in range(m)
    )
    ranks = (draws[:, None, :] > draws[:, :, None]).sum(-1) + 1
    rank_ends = np.quantile(ranks, [(1 - level) / 2, (1 + level) / 2], axis=0, method="nearest")
    order = np.argsort(-fit.strength, kind="stable")
    rank = np.empty(m, dtype=int)
    rank[order] = np.arange(1, m + 1)
    return Ranking(
        systems=systems,
        strength=strength,
        order=tuple(systems[i] for i in order),
        rank=tuple(int(r) for r in rank),
        rank_interval=tuple((int(a), int(b)) for a, b in rank_ends.T),
        group=_groups(draws, order, level),
        position_effect=position,
        tie_parameter=fit.tie,
        components=tuple(int(p) for p in parts),
        n_comparisons=len(cells),
        n_invalid=n - len(cells),
        status=Status.DEGENERATE if fit.separated else Status.OK,
        reasons=tuple(reasons),
    )


def _fit(tables: Floats, start: Davidson | None) -> Davidson:
    """Newton on the log-likelihood, plain first, with the ridge where that runs away."""
    m = tables.shape[1]
    beats = tables[0] + tables[1].T + tables[2] + tables[2].T
    apart = _parts(beats, strong=True).max(initial=0) > 0
    if not apart:
        fit = _newton(tables, start, 0.0)
        if fit.converged:
            return fit
    fit = _newton(tables, None, RIDGE)
    return replace(fit, separated=True) if m else fit


def _newton(tables: Floats, start: Davidson | None, ridge: float) -> Davidson:
    first, second, tie = tables
    n, m = tables.sum(0), tables.shape[1]
    tied = bool(tie.any())
    theta = np.zeros(m) if start is None else start.strength.copy()
    gamma, nu = (0.0, 0.0) if start is None else (start.position, start.tie)
    if not tied:
        nu = -math.inf
    elif not math.isfinite(nu):
        nu = 0.0
    size = m + 1 + tied
    hessian = np.eye(size)
    for _ in range(60):
        d = theta[:, None] - theta[None, :] + gamma
        odds = np.exp(np.array([d / 2, -d / 2, np.full_like(d, nu)]))
        p = odds / odds.sum(0)
        lean = p[0] - p[1]
        g = ((first - second) - n * lean) / 2
        a = n * (p[0] + p[1] - lean**2) / 4
        gradient = np.empty(size)
        gradient[:m] = g.sum(1) - g.sum(0) - ridge * theta
        gradient[m] = g.sum() - ridge * gamma
        hessian = np.empty((size, size))
        hessian[:m, :m] = _laplacian(a + a.T) + 1.0 / m + ridge * np.eye(m)
        hessian[:m, m] = hessian[m, :m] = a.sum(1) - a.sum(0)
        hessian[m, m] = a.sum() + ridge
        if tied:
            c = -n * p[2] * lean / 2
            gradient[m + 1] = (tie - n * p[2]).sum()
            hessian[:m, m + 1] = hessian[m + 1, :m] = c.sum(1) - c.sum(0)
            hessian[m, m + 1] = hessian[m + 1, m] = c.sum()
            hessian[m + 1, m + 1] = (n * p[2] * (1 - p[2])).sum()
        try:
            step = np.linalg.solve(hessian, gradient)
        except np.linalg.LinAlgError:
            break
        step *= min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-300))
        theta, gamma = theta + step[:m], gamma + float(step[m])
        nu += float(step[m + 1]) if tied else 0.0
        if max(float(np.abs(theta).max()), abs(gamma), abs(nu) if tied else 0.0) > FAR:
            break
        if np.abs(step).max() < 1e-10:
            se = math.sqrt(float(np.linalg.inv(hessian)[m, m]))
            return Davidson(theta - theta.mean(), nu, gamma, se, ridge > 0, True)
    return Davidson(theta - theta.mean(), nu, gamma, math.nan, ridge > 0, False)


def _laplacian(weights: Floats) -> Floats:
    """Σ w_ij (e_i - e_j)(e_i - e_j)' over the pairs i < j of a symmetric table."""
    out = -weights
    out[np.diag_indices(len(weights))] += weights.sum(1)
    return out


def _tables(cells: NDArray[np.intp], weights: Floats | None, m: int) -> Floats:
    counts = np.bincount(cells, weights=weights, minlength=3 * m * m)
    return counts.astype(np.float64).reshape(3, m, m)


def _parts(edges: Floats, *, strong: bool) -> NDArray[np.intp]:
    """The part of the graph that each system belongs to, numbered from 0."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    kind = "strong" if strong else "weak"
    labels = connected_components(csr_array(edges > 0), directed=True, connection=kind)[1]
    return np.asarray(labels, dtype=np.intp)


def _groups(draws: Floats, order: NDArray[np.intp], level: float) -> tuple[int, ...]:
    """Going down the order, a group ends where the difference to its leader excludes 0."""
    group, leader, current = np.empty(len(order), dtype=int), order[0], 1
    for i in order:
        if np.quantile(draws[:, leader] - draws[:, i], (1 - level) / 2) > 0:
            leader, current = i, current + 1
        group[i] = current
    return tuple(int(x) for x in group)


def _no_ranking(
    systems: tuple[Hashable, ...], parts: NDArray[np.intp], n: int, invalid: int, level: float
) -> Ranking:
    nan, m = math.nan, len(systems)
    reason = ("not_connected",) if n else ("no_cases",)
    status = Status.UNDEFINED if n else Status.INSUFFICIENT_DATA
    none = Interval(nan, nan, nan, level, "davidson", status=status, reasons=reason)
    return Ranking(
        systems=systems,
        strength=(none,) * m,
        order=(),
        rank=(),
        rank_interval=(),
        group=(),
        position_effect=none,
        tie_parameter=nan,
        components=tuple(int(p) for p in parts),
        n_comparisons=n,
        n_invalid=invalid,
        status=status,
        reasons=reason,
    )

"""How far a judge agrees with an anchor: one report that holds every figure with its interval.

The statistics themselves stand in `kappa`, `raters` and `correlation`; their names are given on
here, so that one import serves.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalkit.errors import StatsError
from evalkit.stats.binary import (
    BinaryAgreement,
    binary_agreement,
    class_rate,
    two_class_indices,
)
from evalkit.stats.correlation import kendall_tau_b, pearson, spearman
from evalkit.stats.differences import moments, t_bounds
from evalkit.stats.kappa import (
    bootstrap_kappa,
    cohen_kappa,
    kappa_interval,
    linear_weighted_kappa,
    quadratic_weighted_kappa,
)
from evalkit.stats.raters import fleiss_kappa, gwet_ac1, gwet_ac2, krippendorff_alpha
from evalkit.stats.ratings import (
    PairedRatings,
    Rounding,
    confusion_table,
    half_up,
    pair_ratings,
)
from evalkit.stats.result import Interval, Status

__all__ = [
    "Agreement",
    "BinaryAgreement",
    "agreement",
    "binary_agreement",
    "bootstrap_kappa",
    "cohen_kappa",
    "confusion_table",
    "fleiss_kappa",
    "gwet_ac1",
    "gwet_ac2",
    "half_up",
    "krippendorff_alpha",
    "linear_weighted_kappa",
    "mean_bias",
    "pearson",
    "percent_agreement",
    "quadratic_weighted_kappa",
    "spearman",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Agreement:
    """A judge beside an anchor on one scale.

    `confusion` has human rows and judge columns. Correlations, `bias` (judge minus human, paired
    t), `sd_ratio` (judge/human), `mae` and `rmse` use the scores before any rounding; all else the
    categories. `recall` and `precision` are keyed by category. `never_awarded` are categories the
    judge did not use. With two categories `prevalence_index` and `bias_index` are those of the
    higher against the lower one, else NaN. `reasons` collects what a reader must be told.
    """

    categories: tuple[Hashable, ...]
    confusion: tuple[tuple[float, ...], ...]
    n: int
    n_missing: int
    n_invalid: int
    percent: Interval
    kappa: Interval
    kappa_linear: Interval
    qwk: Interval
    ac1: Interval
    ac2: Interval
    spearman: Interval
    pearson: Interval
    kendall_tau_b: float
    bias: Interval
    mean_human: float
    mean_judge: float
    sd_ratio: float
    mae: float
    rmse: float
    within_one: float
    recall: Mapping[Hashable, Interval]
    precision: Mapping[Hashable, Interval]
    never_awarded: tuple[Hashable, ...]
    bands_used: int
    prevalence_index: float = math.nan
    bias_index: float = math.nan
    reasons: tuple[str, ...] = ()


def agreement(
    human: ArrayLike | Sequence[Any],
    judge: ArrayLike | Sequence[Any],
    categories: Iterable[Hashable],
    *,
    rounding: Rounding = None,
    weights: ArrayLike | None = None,
    n_boot: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> Agreement:
    """Every figure of statistics.md section 9 on one set of pairs.

    Args:
        human: (n,) anchor ratings; NaN or None where there is none (left out, counted).
        judge: (n,) the judge's; NaN or None where no verdict could be read (left out, counted).
        categories: Every category, in rank order, used or not.
        rounding: "half_up" brings scores between two categories to one of them for the counted
            figures; without it such a score is an error.
        weights: (n,) sample weights for agreement, kappas, recall and precision; correlations,
            bias, AC1 and AC2 stay unweighted (reason `weights_on_counts_only`).
        n_boot: Bootstrap draws for AC1 and AC2.
        seed: Seed of that bootstrap.
        level: Confidence level, in (0, 1).

    Raises:
        StatsError: For unequal lengths, a rating outside the categories, a bad weight.
    """
    categories = tuple(categories)
    pairs = pair_ratings(human, judge, categories, rounding=rounding, weights=weights)
    table, k = pairs.table(), pairs.scale.size
    h, j = _numbers(human, pairs, pairs.human), _numbers(judge, pairs, pairs.judge)
    raters = np.array([pairs.human, pairs.judge])
    qwk = kappa_interval(pairs, "quadratic", level=level)
    prevalence, lean = (math.nan, math.nan) if k != 2 else two_class_indices(table)
    reasons = [r for r in qwk.reasons if r.startswith("constant")]
    reasons += ["weights_on_counts_only"] if weights is not None else []
    reasons += ["kappa_not_interpretable_alone"] if abs(prevalence) > 0.6 else []
    how: dict[str, Any] = {"n_boot": n_boot, "seed": seed, "level": level}
    gap = j - h
    return Agreement(
        categories=categories,
        confusion=tuple(tuple(float(x) for x in row) for row in table),
        n=pairs.n,
        n_missing=pairs.n_missing,
        n_invalid=pairs.n_invalid,
        percent=_share(np.trace(table), table.sum(), pairs, level),
        kappa=kappa_interval(pairs, "nominal", level=level),
        kappa_linear=kappa_interval(pairs, "linear", level=level),
        qwk=qwk,
        ac1=gwet_ac1(raters, range(k), **how),
        ac2=gwet_ac2(raters, range(k), **how),
        spearman=spearman(h, j, level=level),
        pearson=pearson(h, j, level=level),
        kendall_tau_b=kendall_tau_b(h, j),
        bias=mean_bias(h, j, span=float(np.ptp(pairs.scale.positions)), level=level),
        mean_human=float(h.mean()) if pairs.n else math.nan,
        mean_judge=float(j.mean()) if pairs.n else math.nan,
        sd_ratio=_ratio(j, h),
        mae=float(np.abs(gap).mean()) if pairs.n else math.nan,
        rmse=math.sqrt(float((gap**2).mean())) if pairs.n else math.nan,
        within_one=_near(table),
        recall=_recall(table, categories, pairs, level),
        precision=_precision(table, categories, pairs, level),
        never_awarded=tuple(c for c, n in zip(categories, table.sum(0), strict=True) if n == 0),
        bands_used=int(np.count_nonzero(table.sum(1))),
        prevalence_index=prevalence,
        bias_index=lean,
        reasons=tuple(reasons),
    )


def percent_agreement(
    human: ArrayLike | Sequence[Any],
    judge: ArrayLike | Sequence[Any],
    categories: Iterable[Hashable],
    *,
    rounding: Rounding = None,
    weights: ArrayLike | None = None,
    level: float = 0.95,
) -> Interval:
    """Share of pairs with the same category, Wilson interval; Args and errors as `agreement`."""
    pairs = pair_ratings(human, judge, categories, rounding=rounding, weights=weights)
    table = pairs.table()
    return _share(np.trace(table), table.sum(), pairs, level)


def mean_bias(human: ArrayLike, judge: ArrayLike, *, span: float, level: float = 0.95) -> Interval:
    """Mean of judge minus human with the paired t interval, in score units.

    Args:
        human: (n,) scores without gaps.
        judge: (n,) scores without gaps.
        span: Highest minus lowest score; without variance the unseen-case rule needs it.
        level: Confidence level, in (0, 1).

    Returns:
        `extra`: se and t. Fewer than two pairs: NaN, INSUFFICIENT_DATA.

    Raises:
        StatsError: For unequal lengths or a span that is not positive.
    """
    h, j = np.asarray(human, dtype=np.float64), np.asarray(judge, dtype=np.float64)
    if h.shape != j.shape or not span > 0:
        raise StatsError(f"{h.size} and {j.size} scores over a span of {span:g} have no bias.")
    n, nan = len(h), math.nan
    if n < 2:
        estimate = float((j - h)[0]) if n else nan
        return Interval(
            estimate, nan, nan, level, "paired_t", n, n,
            status=Status.INSUFFICIENT_DATA, reasons=("n_lt_2",),
        )  # fmt: skip
    m = moments((j - h) / span)
    low, high = (float(x) * span for x in t_bounds(m, (1 - level) / 2))
    flat = bool(m.flat)
    return Interval(
        float(m.delta) * span,
        low,
        high,
        level,
        "unseen_case" if flat else "paired_t",
        n,
        n,
        status=Status.DEGENERATE if flat else Status.OK,
        reasons=("zero_variance",) if flat else (),
        extra={"se": float(m.se) * span, "t": nan if flat else float(m.delta / m.se)},
    )


def _share(
    hits: float,
    total: float,
    pairs: PairedRatings,
    level: float,
    reason: str = "no_cases",
    n_invalid: int | None = None,
) -> Interval:
    """A (weighted) share with the Wilson interval on Kish's effective size."""
    unread = pairs.n_invalid if n_invalid is None else n_invalid
    if pairs.weights is None or total <= 0:
        found = class_rate(hits, total, level, reason, unread)
    else:
        n = pairs.effective_n * total / float(pairs.weights.sum())
        found = class_rate(hits / total * n, n, level, reason, unread)
        found = replace(found, n_cases=pairs.n, n_runs=pairs.n, bounds=None)
    return replace(found, n_missing=pairs.n_missing)


def _recall(
    table: Floats, categories: tuple[Hashable, ...], pairs: PairedRatings, level: float
) -> dict[Hashable, Interval]:
    """Per human class; an unread verdict counts in the class that people gave its item."""
    unread = np.zeros(len(table), int)
    if pairs.unread is not None:
        unread = np.bincount(pairs.unread, minlength=len(table))
    return {
        c: _share(table[i, i], table[i].sum(), pairs, level, "no_human_example", int(unread[i]))
        for i, c in enumerate(categories)
    }


def _precision(
    table: Floats, categories: tuple[Hashable, ...], pairs: PairedRatings, level: float
) -> dict[Hashable, Interval]:
    """Per class the judge gave; an unread verdict is in none of them."""
    return {
        c: _share(table[i, i], table[:, i].sum(), pairs, level, "never_awarded", 0)
        for i, c in enumerate(categories)
    }


def _near(table: Floats) -> float:
    k, n = len(table), table.sum()
    gap = np.abs(np.arange(k)[:, None] - np.arange(k))
    return float(table[gap <= 1].sum() / n) if n else math.nan


def _numbers(ratings: Any, pairs: PairedRatings, codes: NDArray[np.intp]) -> Floats:
    """The scores as they were given; rank positions where the categories are words."""
    if pairs.scale.values is None:
        return codes.astype(np.float64)
    numbers = np.asarray(ratings, dtype=np.float64)
    return numbers if pairs.kept is None else numbers[pairs.kept]


def _ratio(judge: Floats, human: Floats) -> float:
    spread = float(human.std(ddof=1)) if len(human) > 1 else 0.0
    return float(judge.std(ddof=1)) / spread if spread > 1e-12 else math.nan

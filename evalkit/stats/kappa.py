"""Cohen's kappa, unweighted, linear and quadratic, from the K x K table of counts.

With disagreement weights v (0 on the diagonal) and shares p: kappa = 1 - O/E, O = Σ v p,
E = Σ v p_i. p_.j. The interval is the Fleiss-Cohen-Everitt large-sample error on Fisher's scale,
z = atanh(kappa), se_z = se/(1 - kappa²).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalkit.errors import StatsError
from evalkit.stats.bootstrap import (
    bca_interval,
    has_spread,
    percentile_interval,
    resample_counts,
)
from evalkit.stats.correlation import fisher_ends
from evalkit.stats.intervals import unseen_share
from evalkit.stats.observations import check_conf
from evalkit.stats.ratings import PairedRatings, Rounding, pair_ratings
from evalkit.stats.result import Interval, Status

__all__ = [
    "Weighting",
    "bootstrap_kappa",
    "cohen_kappa",
    "disagreement",
    "kappa_interval",
    "kappa_of_tables",
    "linear_weighted_kappa",
    "quadratic_weighted_kappa",
]

Floats = NDArray[np.float64]
Weighting = Literal["nominal", "linear", "quadratic"]


def cohen_kappa(
    human: ArrayLike | Sequence[Any],
    judge: ArrayLike | Sequence[Any],
    categories: Iterable[Hashable],
    *,
    rounding: Rounding = None,
    weights: ArrayLike | None = None,
    level: float = 0.95,
) -> Interval:
    """Cohen's kappa, (po - pe)/(1 - pe), at most 1.

    Args:
        human: (n,) anchor ratings; NaN or None where there is none (left out, counted).
        judge: (n,) the judge's ratings; NaN or None where no verdict could be read.
        categories: Every category, in rank order, used or not.
        rounding: "half_up" for scores between two bands; without it they are an error.
        weights: (n,) sample weights, 0 or more.
        level: Confidence level, in (0, 1).

    Returns:
        The interval; `extra["se"]` is the large-sample error. Both raters constant and equal: NaN,
        UNDEFINED. One constant: exactly 0 without an interval. Perfect agreement: the lower end
        is what the unseen-case rule leaves (see `kappa_interval`).

    Raises:
        StatsError: For unequal lengths, a rating outside the categories, a bad weight.

    Source: Cohen (1960), Educ. Psychol. Meas. 20(1), 37-46; Fleiss, Cohen and Everitt (1969),
        Psychol. Bull. 72(5), 323-327.
    """
    pairs = pair_ratings(human, judge, categories, rounding=rounding, weights=weights)
    return kappa_interval(pairs, "nominal", level=level)


def linear_weighted_kappa(
    human: ArrayLike | Sequence[Any],
    judge: ArrayLike | Sequence[Any],
    categories: Iterable[Hashable],
    *,
    rounding: Rounding = None,
    weights: ArrayLike | None = None,
    level: float = 0.95,
) -> Interval:
    """Kappa with weights |i - j| over rank positions; everything else as `cohen_kappa`."""
    pairs = pair_ratings(human, judge, categories, rounding=rounding, weights=weights)
    return kappa_interval(pairs, "linear", level=level)


def quadratic_weighted_kappa(
    human: ArrayLike | Sequence[Any],
    judge: ArrayLike | Sequence[Any],
    categories: Iterable[Hashable],
    *,
    rounding: Rounding = None,
    weights: ArrayLike | None = None,
    level: float = 0.95,
) -> Interval:
    """Kappa with weights (i - j)² over rank positions; everything else as `cohen_kappa`."""
    pairs = pair_ratings(human, judge, categories, rounding=rounding, weights=weights)
    return kappa_interval(pairs, "quadratic", level=level)


def bootstrap_kappa(
    human: ArrayLike | Sequence[Any],
    judge: ArrayLike | Sequence[Any],
    categories: Iterable[Hashable],
    *,
    weighting: Weighting = "quadratic",
    rounding: Rounding = None,
    n_boot: int = 2000,
    bca: bool = False,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """Kappa with a bootstrap interval over items, percentile or BCa, from one multinomial draw.

    Args and errors as `cohen_kappa`. `extra["n_undefined"]` counts resampled tables without a
    kappa; where every table gives the same kappa the ends are NaN (`zero_variance`).
    """
    pairs = pair_ratings(human, judge, categories, rounding=rounding)
    table, point = pairs.table(), kappa_interval(pairs, weighting, level=level)
    if not point.defined:
        return point
    drawn = resample_counts(table, n_boot, np.random.default_rng(seed))
    values = kappa_of_tables(drawn.astype(np.float64), weighting)  # whole numbers multiply slowly
    flat = not has_spread(values)
    low = high = math.nan
    if not flat and bca:
        left, times = _one_left_out(table)
        defined = values[~np.isnan(values)]
        low, high = bca_interval(
            point.estimate, defined, kappa_of_tables(left, weighting), times, level=level
        )
    elif not flat:
        low, high = percentile_interval(values, level)
    return Interval(
        point.estimate,
        low,
        high,
        level,
        "bootstrap_bca" if bca else "bootstrap_percentile",
        pairs.n,
        pairs.n,
        pairs.n_missing,
        pairs.n_invalid,
        Status.DEGENERATE if flat else Status.OK,
        ("zero_variance",) if flat else (),
        seed,
        extra={"n_boot": n_boot, "n_undefined": int(np.isnan(values).sum())},
    )


@lru_cache(maxsize=64)
def disagreement(k: int, weighting: Weighting) -> Floats:
    """K x K disagreement weights: 1 off the diagonal, |i - j|, or (i - j)²; read-only.

    Raises:
        StatsError: If the weighting has another name.
    """
    gap = np.abs(np.arange(float(k))[:, None] - np.arange(float(k)))
    kinds = {"nominal": (gap > 0).astype(np.float64), "linear": gap, "quadratic": gap**2}
    if weighting not in kinds:
        raise StatsError(f"weighting {weighting!r} is none of {sorted(kinds)}.")
    v = kinds[weighting]
    v.setflags(write=False)
    return v


@lru_cache(maxsize=64)
def _flat(k: int, weighting: Weighting) -> tuple[Floats, Floats]:
    """The weights v as a vector, and the K² x K² map from shares p to their margins.

    A margin is Σ_j p_.j v_ij + Σ_i p_i. v_ij; chance disagreement is half of p · margins, and the
    large-sample error needs the margins themselves.
    """
    v, cells = disagreement(k, weighting), np.arange(k * k)
    rows, columns = cells // k, cells % k
    return v.ravel(), v[rows][:, columns] + v[:, columns][rows].T


def kappa_of_tables(tables: Floats, weighting: Weighting) -> Floats:
    """Kappa of each (..., K, K) table of counts or shares; NaN where it is 0/0."""
    k = tables.shape[-1]
    v, ones = disagreement(k, weighting), np.ones(k)
    rows, columns = tables @ ones, ones @ tables  # products: a sum over a short axis is slow
    observed = tables.reshape(*tables.shape[:-2], k * k) @ v.ravel()
    with np.errstate(invalid="ignore", divide="ignore"):
        return 1 - observed * (rows @ ones) / np.vecdot(rows @ v, columns)


def _kappa_and_error(
    cells: Floats, weighting: Weighting, k: int, squares: Floats
) -> tuple[float, float]:
    """Kappa of one flat table and its Fleiss-Cohen-Everitt error; NaN where it is 0/0.

    `squares` are the sums of squared sample weights (the counts themselves without weights); the
    error is then the linearised one, the same formula at weights of 1.
    """
    v, to_margins = _flat(k, weighting)
    total = float(np.add.reduce(cells))
    p = cells / total
    margins = p @ to_margins
    expected = float(p @ margins) / 2
    if not expected > 0:
        return math.nan, math.nan
    ratio = float(p @ v) / expected
    influence = (ratio * margins - v) / expected - ratio
    return 1 - ratio, math.sqrt(float(squares @ (influence * influence))) / total


def kappa_interval(pairs: PairedRatings, weighting: Weighting, *, level: float = 0.95) -> Interval:
    """Kappa of paired ratings with its interval and every edge of statistics.md section 9.

    At perfect agreement the large-sample error is 0 and a bootstrap has no spread. The lower end
    is then the kappa that is left when the share 1 - alpha^(1/n) of all items, which n items can
    all have missed, lies in the worst cell (the unseen-case rule of section 3).
    """
    check_conf("the level", level)
    n, table, nan = pairs.n, pairs.table(), math.nan

    def answer(
        kappa: float,
        ends: tuple[float, float] = (nan, nan),
        se: float = nan,
        method: str = "fleiss_cohen_everitt_fisher",
        status: Status = Status.OK,
        reasons: tuple[str, ...] = (),
    ) -> Interval:
        left_out = pairs.n_missing, pairs.n_invalid
        return Interval(
            kappa, *ends, level, method, n, n, *left_out, status, reasons, extra={"se": se}
        )

    if n < 2 or not table.any():
        return answer(nan, status=Status.INSUFFICIENT_DATA, reasons=("n_lt_2",))
    cells = table.ravel()
    squares = cells if pairs.weights is None else pairs.table(2).ravel()
    kappa, se = _kappa_and_error(cells, weighting, len(table), squares)
    if not abs(kappa) > 1e-9:  # 0 or undefined: only there can a rater be constant
        constant = _constant(table)
        if math.isnan(kappa):
            return answer(nan, status=Status.UNDEFINED, reasons=("undefined", *constant))
        if constant:
            return answer(0.0, status=Status.DEGENERATE, reasons=constant)
    if kappa == 1.0:
        ends = _unseen_low(table, weighting, pairs.effective_n, level), 1.0
        reasons = ("perfect_agreement",)
        return answer(kappa, ends, method="unseen_case", status=Status.DEGENERATE, reasons=reasons)
    if se < 1e-12 or kappa < -1 + 1e-12:
        return answer(kappa, se=se, status=Status.DEGENERATE, reasons=("zero_variance",))
    return answer(kappa, fisher_ends(kappa, se / (1 - kappa * kappa), level), se)


def _one_left_out(table: Floats) -> tuple[Floats, Floats]:
    """The tables with one item left out, one per occupied cell, and how many items each is for."""
    rows, columns = np.nonzero(table)
    left = np.repeat(table[None], len(rows), axis=0)
    left[np.arange(len(rows)), rows, columns] -= 1
    return left, table[rows, columns]


def _constant(table: Floats) -> tuple[str, ...]:
    sides = (("constant_anchor", table.sum(1)), ("constant_judge", table.sum(0)))
    return tuple(name for name, side in sides if np.count_nonzero(side) == 1)


def _unseen_low(table: Floats, weighting: Weighting, n: float, level: float) -> float:
    share, k = unseen_share(max(int(n), 1), (1 - level) / 2), len(table)
    worst = (1 - share) * table / table.sum() + share * np.eye(k * k).reshape(k * k, k, k)
    return float(kappa_of_tables(worst, weighting).min())

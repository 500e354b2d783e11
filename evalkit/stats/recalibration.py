"""A monotone map from a judge's scores to the human bands, and what it is worth on new data.

An in-sample figure flatters: an uninformative judge shows a QWK of .10 at n = 30. Decisions use the
held-out figure only; both are given, with their difference.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalkit.errors import StatsError
from evalkit.stats.admission import Bars
from evalkit.stats.correlation import fisher_ends, spearman
from evalkit.stats.kappa import kappa_interval
from evalkit.stats.ratings import PairedRatings, Rounding, Scale, half_up
from evalkit.stats.result import Interval, Status

__all__ = ["IsotonicMap", "Recalibration", "fit_isotonic", "recalibrate"]

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class IsotonicMap:
    """A rising step-wise linear map: `knots_y` at `knots_x`, flat outside, within [low, high]."""

    knots_x: tuple[float, ...]
    knots_y: tuple[float, ...]
    low: float
    high: float

    def __call__(self, scores: ArrayLike) -> Floats:
        """The fitted human score for each judge score; NaN stays NaN."""
        return np.interp(np.asarray(scores, dtype=np.float64), self.knots_x, self.knots_y)

    @property
    def ceiling(self) -> float:
        """The highest score the map can give; it licenses nothing above."""
        return self.knots_y[-1]

    @property
    def constant(self) -> bool:
        """True when every judge score maps to the same human score."""
        return self.knots_y[-1] - self.knots_y[0] < 1e-9


def fit_isotonic(
    judge: ArrayLike,
    human: ArrayLike,
    *,
    low: float,
    high: float,
    weights: ArrayLike | None = None,
) -> IsotonicMap:
    """Least-squares rising map from judge to human scores, clipped to [low, high].

    Args:
        judge: (n,) judge scores, finite.
        human: (n,) human scores, finite.
        low: Lowest band.
        high: Highest band.
        weights: (n,) sample weights.

    Raises:
        StatsError: For unequal lengths, no pair, gaps, or low >= high.

    Source: Barlow et al. (1972), Statistical Inference under Order Restrictions.
    """
    from scipy.optimize import isotonic_regression

    x, y = np.asarray(judge, dtype=np.float64), np.asarray(human, dtype=np.float64)
    w = np.ones(x.shape) if weights is None else np.asarray(weights, dtype=np.float64)
    if x.ndim != 1 or not x.shape == y.shape == w.shape or not len(x) or not low < high:
        raise StatsError(f"{x.size} judge and {y.size} human scores in {low:g}..{high:g}: no map.")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise StatsError("a map is fitted to pairs without gaps; leave out what is missing.")
    knots, at = np.unique(x, return_inverse=True)
    total = np.bincount(at, weights=w)
    if not (total > 0).all():
        raise StatsError("a judge score has no weight at all; leave its pairs out.")
    means = np.bincount(at, weights=w * y) / total
    fitted = np.clip(isotonic_regression(means, weights=total).x, low, high)
    return IsotonicMap(
        tuple(float(v) for v in knots), tuple(float(v) for v in fitted), float(low), float(high)
    )


@dataclass(frozen=True, slots=True)
class Recalibration:
    """A map with its figures before, in sample and held out.

    `qwk_held_out` pools the out-of-fold bands and averages over repeats, with the mean error of
    the repeats on Fisher's scale; `held_out_bound` is its one-sided lower bound. `optimism` =
    in-sample minus held-out. `credible`: the held-out figure and its bound reach the bar, which is
    what a licence for recalibrated absolute scores needs. `seeds` are those of the repeats,
    `fold_maps` the maps of the first one, each fitted without its fold.
    Refused (INSUFFICIENT_DATA) below 30 pairs or 3 distinct judge scores; `no_information`: the
    map is constant.
    """

    map: IsotonicMap | None
    qwk_raw: Interval
    qwk_in_sample: float
    qwk_held_out: Interval
    held_out_bound: float
    optimism: float
    credible: bool
    spearman_held_out: float
    mae_raw: float
    mae_in_sample: float
    mae_held_out: float
    bias_held_out: float
    never_awarded: tuple[Hashable, ...]
    seeds: tuple[int, ...]
    status: Status = Status.OK
    reasons: tuple[str, ...] = ()
    fold_maps: tuple[IsotonicMap, ...] = ()


def recalibrate(
    human: ArrayLike,
    judge: ArrayLike,
    categories: Iterable[Hashable],
    *,
    fold_ids: ArrayLike | None = None,
    folds: int = 5,
    repeats: int = 10,
    rounding: Rounding = None,
    bars: Bars | None = None,
    seed: int = 0,
    level: float = 0.95,
) -> Recalibration:
    """Fit a rising map and measure it on folds it was not fitted to.

    Args:
        human: (n,) anchor scores; NaN where there is none.
        judge: (n,) the judge's scores, on any scale; NaN where no verdict could be read.
        categories: The human bands, rising numbers.
        fold_ids: (n,) fold of each pair, used once; None deals the pairs out, stratified by band.
        folds: Number of folds, 2 or more.
        repeats: How often they are dealt anew.
        rounding: "half_up" where human scores lie between two bands.
        bars: Thresholds of admission for `credible`.
        seed: Seed of the first deal; repeat r uses seed + r.
        level: Confidence level, in (0, 1).

    Raises:
        StatsError: For unequal lengths, a human score outside the bands, bands that do not rise.
    """
    bars, scale = bars or Bars(), Scale.of(categories)
    all_h, all_j = (np.asarray(x, dtype=np.float64) for x in (human, judge))
    if all_h.shape != all_j.shape or np.isinf(all_j).any():
        raise StatsError(f"{all_h.size} human and {all_j.size} finite judge scores are needed.")
    bands = scale.codes(half_up(all_h) if rounding else all_h, "a human score")
    kept = (bands >= 0) & ~np.isnan(all_j)
    h, j, band = all_h[kept], all_j[kept], bands[kept]
    lost = int((bands < 0).sum()), int(((bands >= 0) & np.isnan(all_j)).sum())
    raw = _raw(band, half_up(j) if rounding else j, scale, lost, level)
    too_few = (len(h) < 30, len(np.unique(j)) < 3)
    if any(too_few):
        words = ("too_few_pairs", "too_few_distinct_scores")
        reasons = tuple(w for w, on in zip(words, too_few, strict=True) if on)
        return _refused(raw, float(np.abs(j - h).mean()) if len(h) else math.nan, reasons, level)
    ends = float(scale.positions[0]), float(scale.positions[-1])
    whole = fit_isotonic(j, h, low=ends[0], high=ends[1])
    fitted = whole(j)
    deals, seeds = _deals(fold_ids, kept, band, folds, repeats, seed)
    found: list[float] = []
    errors: list[float] = []
    ranks: list[float] = []
    gaps: list[Floats] = []
    maps: list[IsotonicMap] = []
    for deal in deals:
        out = np.empty(len(h))
        for fold in np.unique(deal):
            train = deal != fold
            part = fit_isotonic(j[train], h[train], low=ends[0], high=ends[1])
            out[~train] = part(j[~train])
            maps.append(part)
        held = _kappa(band, scale.nearest(out), scale, lost, level)
        found.append(held.estimate)
        errors.append(held.extra["se"])
        ranks.append(spearman(h, np.round(out, 9)).estimate)
        gaps.append(out - h)
    qwk, se = float(np.mean(found)), float(np.mean(errors))
    low = high = bound = math.nan
    if abs(qwk) < 1 and se > 0:
        low, high = fisher_ends(qwk, se / (1 - qwk * qwk), level)
        bound = fisher_ends(qwk, se / (1 - qwk * qwk), 1 - 2 * bars.alpha)[0]
    reasons = ("no_information",) if whole.constant else ()
    in_sample = _kappa(band, scale.nearest(fitted), scale, lost, level).estimate
    status = Status.DEGENERATE if whole.constant or math.isnan(low) else Status.OK
    held_out = Interval(
        qwk,
        low,
        high,
        level,
        "held_out_fisher",
        len(h),
        len(h),
        *lost,
        status,
        reasons,
        seeds[0] if seeds else None,
        extra={"se": se, "sd_of_repeats": float(np.std(found))},
    )
    awarded = set(scale.nearest(fitted).tolist())
    return Recalibration(
        map=whole,
        qwk_raw=raw,
        qwk_in_sample=in_sample,
        qwk_held_out=held_out,
        held_out_bound=bound,
        optimism=in_sample - qwk,
        credible=bool(qwk >= bars.credible and bound >= bars.credible),
        spearman_held_out=float(np.mean(ranks)),
        mae_raw=float(np.abs(j - h).mean()),
        mae_in_sample=float(np.abs(fitted - h).mean()),
        mae_held_out=float(np.mean([np.abs(g).mean() for g in gaps])),
        bias_held_out=float(np.mean([g.mean() for g in gaps])),
        never_awarded=tuple(c for i, c in enumerate(scale.categories) if i not in awarded),
        seeds=seeds,
        status=status,
        reasons=reasons,
        fold_maps=tuple(maps[: len(np.unique(deals[0]))]),
    )


def _kappa(
    human: Codes, judge: Codes, scale: Scale, lost: tuple[int, int], level: float
) -> Interval:
    return kappa_interval(
        PairedRatings(scale, human, judge, None, None, *lost), "quadratic", level=level
    )


def _raw(
    human: Codes, judge: Floats, scale: Scale, lost: tuple[int, int], level: float
) -> Interval:
    """QWK without a map; UNDEFINED where the judge's scores are not bands of this scale."""
    if np.isin(judge, scale.positions).all():
        return _kappa(human, scale.codes(judge), scale, lost, level)
    nan, n = math.nan, len(human)
    reasons = ("scores_off_scale",)
    return Interval(
        nan, nan, nan, level, "quadratic_weighted_kappa", n, n, *lost, Status.UNDEFINED, reasons
    )


def _deals(
    fold_ids: ArrayLike | None,
    kept: NDArray[np.bool_],
    band: Codes,
    folds: int,
    repeats: int,
    seed: int,
) -> tuple[list[Codes], tuple[int, ...]]:
    """The folds of each repeat: as given, or dealt in turn within each band after a shuffle."""
    if fold_ids is not None:
        given = np.asarray(fold_ids, dtype=np.intp)
        if given.shape != kept.shape or len(np.unique(given[kept])) < 2:
            raise StatsError("fold_ids must name two folds or more, one for each pair.")
        return [given[kept]], ()
    if folds < 2 or repeats < 1:
        raise StatsError(f"{folds} folds and {repeats} repeats; give at least 2 and 1.")
    seeds = tuple(range(seed, seed + repeats))
    deals: list[Codes] = []
    for one in seeds:
        shuffled = np.random.default_rng(one).permutation(len(band))
        order = shuffled[np.argsort(band[shuffled], kind="stable")]
        deal = np.empty(len(band), dtype=np.intp)
        deal[order] = np.arange(len(band)) % folds
        deals.append(deal)
    return deals, seeds


def _refused(raw: Interval, mae: float, reasons: tuple[str, ...], level: float) -> Recalibration:
    nan, status = math.nan, Status.INSUFFICIENT_DATA
    none = Interval(nan, nan, nan, level, "held_out_fisher", status=status, reasons=reasons)
    return Recalibration(
        None, raw, nan, none, nan, nan, False, nan, mae, nan, nan, nan, (), (), status, reasons
    )

"""Agreement of two or more raters, from how often each item got each category.

Fleiss' kappa, Gwet's AC1 and AC2, Krippendorff's alpha. Items are grouped by their pattern of
counts, so that the bootstrap over items is one multinomial draw of patterns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalkit.errors import StatsError
from evalkit.stats.bootstrap import has_spread, percentile_interval, resample_counts
from evalkit.stats.kappa import Weighting, disagreement
from evalkit.stats.observations import check_conf
from evalkit.stats.ratings import Scale
from evalkit.stats.result import Interval, Status

__all__ = ["fleiss_kappa", "gwet_ac1", "gwet_ac2", "krippendorff_alpha"]

Floats = NDArray[np.float64]
Ratings = ArrayLike | Sequence[Sequence[Any]]
Distance = Literal["nominal", "ordinal", "interval"]


def krippendorff_alpha(
    ratings: Ratings,
    categories: Iterable[Hashable],
    *,
    distance: Distance = "ordinal",
    n_boot: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """Krippendorff's alpha, 1 - Do/De, for two or more raters with gaps.

    Args:
        ratings: raters x items, NaN or None where a rater gave none. An item with fewer than two
            ratings cannot agree with itself: it is left out (`extra["n_left_out"]` items).
        categories: Every category, in rank order.
        distance: "nominal", "ordinal" or "interval" (the categories' own numbers).
        n_boot: Bootstrap draws over items for the interval; 0 leaves the ends NaN.
        seed: Seed of the bootstrap.
        level: Confidence level, in (0, 1).

    Returns:
        NaN, UNDEFINED when every rating is the same.

    Raises:
        StatsError: If a rating is outside the categories, or the raters' lists differ in length.

    Source: Krippendorff (2011), Computing Krippendorff's alpha-reliability.
    """
    scale = Scale.of(categories)
    counts = _item_counts(ratings, scale)
    if distance not in ("nominal", "ordinal", "interval"):
        raise StatsError(f"distance {distance!r} is none of nominal, ordinal, interval.")
    if distance == "interval" and scale.values is None:
        raise StatsError("interval distances need categories that are numbers.")
    rated = counts.sum(1)
    usable = counts if len(rated) and rated.min() >= 2 else counts[rated >= 2]
    given = _Given.of(counts, usable, ratings)
    estimate = float(_alpha(_coincidences(usable), scale, distance))
    if n_boot == 0 or math.isnan(estimate):
        return _interval(estimate, None, given, seed, level, "krippendorff_alpha")
    items = _Items.of(usable, given)
    share = items.kinds / (items.kinds.sum(1) - 1)[:, None]
    own = share[:, :, None] * np.eye(scale.size)
    together = items.kinds[:, :, None] * share[:, None, :] - own
    drawn = resample_counts(items.times, n_boot, np.random.default_rng(seed)) @ together.reshape(
        len(share), -1
    )
    values = _alpha(drawn.reshape(n_boot, scale.size, scale.size), scale, distance)
    return _interval(estimate, values, given, seed, level, "krippendorff_alpha")


def fleiss_kappa(
    ratings: Ratings,
    categories: Iterable[Hashable],
    *,
    n_boot: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """Fleiss' kappa, (P - Pe)/(1 - Pe): mean share of agreeing rater pairs against Σ p_k².

    Args and errors as `krippendorff_alpha`; an item that not every rater rated is left out.
    NaN, UNDEFINED when every rating is the same.

    Source: Fleiss (1971), Psychol. Bull. 76(5), 378-382.
    """
    scale = Scale.of(categories)
    counts = _item_counts(ratings, scale)
    raters = len(np.asarray(ratings, dtype=object))
    complete = counts[counts.sum(1) == raters]
    items = _Items.of(complete, _Given.of(counts, complete, ratings))
    agreeing = (items.kinds * (items.kinds - 1)).sum(1) / (raters * (raters - 1))

    def statistic(times: Floats) -> Floats:
        n = times.sum(-1)
        with np.errstate(invalid="ignore", divide="ignore"):
            chance = ((times @ items.kinds / (n * raters)[..., None]) ** 2).sum(-1)
            kappa = (times @ agreeing / n - chance) / (1 - chance)
        return np.where(chance < 1 - 1e-12, kappa, np.nan)

    return items.bootstrapped(statistic, n_boot, seed, level, "fleiss_kappa")


def gwet_ac1(
    ratings: Ratings,
    categories: Iterable[Hashable],
    *,
    n_boot: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """Gwet's AC1: agreement beyond the chance Σ π(1-π)/(K-1); defined also for constant raters.

    Args and errors as `krippendorff_alpha`; an item with one rating counts for π alone.

    Source: Gwet (2008), Br. J. Math. Stat. Psychol. 61(1), 29-48.
    """
    return _gwet(ratings, categories, "nominal", n_boot, seed, level)


def gwet_ac2(
    ratings: Ratings,
    categories: Iterable[Hashable],
    *,
    weighting: Weighting = "quadratic",
    n_boot: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """Gwet's AC2: AC1 with agreement weights 1 - v/max(v). Never an admission statistic.

    A judge that gives everything the middle band reaches .79 (statistics.md section 9). Args,
    errors and source as `gwet_ac1`.
    """
    return _gwet(ratings, categories, weighting, n_boot, seed, level)


def _gwet(
    ratings: Ratings,
    categories: Iterable[Hashable],
    weighting: Weighting,
    n_boot: int,
    seed: int,
    level: float,
) -> Interval:
    scale = Scale.of(categories)
    counts = _item_counts(ratings, scale)
    rated = counts[counts.sum(1) > 0]
    items = _Items.of(rated, _Given.of(counts, rated, ratings))
    v = disagreement(scale.size, weighting)
    agree = 1 - v / v.max()
    raters = items.kinds.sum(1)
    several = raters >= 2
    with np.errstate(invalid="ignore", divide="ignore"):
        pairs = (items.kinds * (items.kinds @ agree - 1)).sum(1) / (raters * (raters - 1))
        shares = items.kinds / raters[:, None]
    pairs = np.where(several, pairs, 0.0)
    factor = agree.sum() / (scale.size * (scale.size - 1))

    def statistic(times: Floats) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            observed = times @ pairs / (times @ several)
            mean = times @ shares / times.sum(-1)[..., None]
            chance = factor * (mean * (1 - mean)).sum(-1)
            return (observed - chance) / (1 - chance)

    name = "gwet_ac1" if weighting == "nominal" else "gwet_ac2"
    return items.bootstrapped(statistic, n_boot, seed, level, name)


def _coincidences(counts: Floats) -> Floats:
    """K x K: pairs of ratings within items, each item's pairs weighing 1/(raters - 1)."""
    share = counts / (counts.sum(1) - 1)[:, None]
    observed = counts.T @ share
    observed[np.diag_indices(counts.shape[1])] -= share.sum(0)
    return observed


def _alpha(observed: Floats, scale: Scale, distance: Distance) -> Floats:
    """Alpha of each (..., K, K) table of coincidences; NaN where only one category is used."""
    n = observed.sum(-1)
    if distance == "nominal":
        gap = 1 - np.eye(scale.size)
    else:
        at = scale.positions if distance == "interval" else np.cumsum(n, axis=-1) - n / 2
        gap = (at[..., :, None] - at[..., None, :]) ** 2
    total = n.sum(-1)
    expected = ((n[..., :, None] * n[..., None, :]) * gap).sum((-1, -2))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(
            expected > 0, 1 - (total - 1) * (observed * gap).sum((-1, -2)) / expected, np.nan
        )


def _item_counts(ratings: Ratings, scale: Scale) -> Floats:
    """(items, K): how often each item got each category."""
    try:
        codes = scale.codes(ratings)
    except ValueError as error:
        if isinstance(error, StatsError):
            raise
        raise StatsError("ratings must be raters x items, every list equally long.") from None
    if codes.ndim != 2 or len(codes) < 2:
        raise StatsError("ratings must be raters x items, with two raters or more.")
    k, items = scale.size, codes.shape[1]
    # one spare column takes the gaps: cheaper than selecting what is there
    cells = np.where(codes < 0, k, codes) + np.arange(0, items * (k + 1), k + 1)
    counts = np.bincount(cells.ravel(), minlength=items * (k + 1)).reshape(items, k + 1)
    return counts[:, :k].astype(np.float64)


@dataclass(frozen=True)
class _Given:
    """How many items and ratings count, and how many were not there or cannot count."""

    n_items: int
    n_ratings: int
    n_absent: int
    n_left_out: int

    @staticmethod
    def of(counts: Floats, usable: Floats, ratings: Any) -> _Given:
        due, there = len(counts) * len(ratings), int(counts.sum())
        return _Given(len(usable), int(usable.sum()), due - there, len(counts) - len(usable))


@dataclass(frozen=True)
class _Items:
    """Items grouped by pattern: `kinds` (P, K) counts of categories, `times` how many items."""

    kinds: Floats
    times: Floats
    given: _Given

    @staticmethod
    def of(usable: Floats, given: _Given) -> _Items:
        kinds, times = np.unique(usable, axis=0, return_counts=True)
        return _Items(kinds, times.astype(np.float64), given)

    def resampled(self, n_boot: int, seed: int) -> Floats:
        """(n_boot, P) how often each pattern came, items drawn with replacement."""
        drawn = resample_counts(self.times, n_boot, np.random.default_rng(seed))
        return drawn.astype(np.float64)

    def bootstrapped(
        self, statistic: Callable[[Floats], Floats], n_boot: int, seed: int, level: float, name: str
    ) -> Interval:
        """The statistic of the items and its percentile interval over resampled items."""
        estimate = float(statistic(self.times)) if self.given.n_items else math.nan
        values = None
        if n_boot > 0 and not math.isnan(estimate):
            values = statistic(self.resampled(n_boot, seed))
        return _interval(estimate, values, self.given, seed, level, name)


def _interval(
    estimate: float, values: Floats | None, given: _Given, seed: int, level: float, name: str
) -> Interval:
    """NaN below two items and for 0/0; ends NaN without a bootstrap or where it has no spread."""
    check_conf("the level", level)
    status, reasons = Status.OK, ()
    low = high = math.nan
    if given.n_items < 2:
        estimate, status, reasons = math.nan, Status.INSUFFICIENT_DATA, ("n_lt_2",)
    elif math.isnan(estimate):
        status, reasons = Status.UNDEFINED, ("undefined",)
    elif values is None:
        reasons = ("no_bootstrap",)
    elif has_spread(values):
        low, high = percentile_interval(values, level)
    else:
        status, reasons = Status.DEGENERATE, ("zero_variance",)
    return Interval(
        estimate,
        low,
        high,
        level,
        name if values is None else f"{name}+bootstrap_percentile",
        given.n_items,
        given.n_ratings,
        given.n_absent,
        status=status,
        reasons=reasons,
        seed=None if values is None else seed,
        extra={"n_left_out": given.n_left_out},
    )

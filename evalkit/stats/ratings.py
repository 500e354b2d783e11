"""Ratings on a declared list of categories, turned into codes and counts.

The categories are always declared: weights depend on rank positions, and a list inferred from the
data drops the bands that nobody used (statistics.md section 9).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalkit.errors import StatsError
from evalkit.stats.intervals import kish_effective_size

__all__ = ["PairedRatings", "Rounding", "Scale", "confusion_table", "half_up", "pair_ratings"]

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
Rounding = Literal["half_up"] | None


def half_up(values: ArrayLike) -> Floats:
    """Nearest whole numbers, halves upward: floor(round(x, 9) + 0.5), not banker's rounding."""
    return np.floor(np.round(np.asarray(values, dtype=np.float64), 9) + 0.5)


@dataclass(frozen=True)
class Scale:
    """A declared, ordered list of categories; `values` are their numbers, or None for words."""

    categories: tuple[Hashable, ...]
    values: Floats | None
    first: int | None  # the lowest category, where they are consecutive whole numbers going up

    @staticmethod
    def of(categories: Iterable[Hashable]) -> Scale:
        """The scale of these categories.

        Raises:
            StatsError: If fewer than two categories are given, or one twice.
        """
        return _scale(tuple(categories))

    @property
    def size(self) -> int:
        """How many categories there are."""
        return len(self.categories)

    @property
    def positions(self) -> Floats:
        """The categories' numbers; 0, 1, 2 ... for words."""
        return np.arange(float(self.size)) if self.values is None else self.values

    def codes(self, ratings: ArrayLike | Sequence[Any], who: str = "a rating") -> Codes:
        """Rank positions 0..K-1 of ratings of any shape; -1 where one is NaN or None.

        Raises:
            StatsError: If a rating is not one of the categories.
        """
        x = np.asarray(ratings)
        if x.dtype.kind in "iub" and self.first is not None:
            codes = x.astype(np.intp, copy=False)
            codes = codes - self.first if self.first else codes
            # one pass: a negative code is a huge unsigned one
            if codes.size and np.maximum.reduce(codes.view(np.uintp), axis=None) >= self.size:
                self._refuse(x, (codes < 0) | (codes >= self.size), who)
            return codes
        if self.values is None:
            index = {c: i for i, c in enumerate(self.categories)}
            found = [-1 if _absent(v) else index.get(v, -2) for v in x.astype(object).ravel()]
            codes = np.array(found, dtype=np.intp).reshape(x.shape)
            self._refuse(x, codes == -2, who)
            return codes
        try:
            numbers = x.astype(np.float64)
        except (TypeError, ValueError):
            raise StatsError(f"{who} is not a number, but the categories are {self}.") from None
        absent = np.isnan(numbers)
        if self.first is not None:
            with np.errstate(invalid="ignore"):
                codes = (numbers - self.first).astype(np.intp)
            wrong = (codes + self.first != numbers) | (codes < 0) | (codes >= self.size)
        else:
            order = np.argsort(self.values)
            at = np.minimum(np.searchsorted(self.values[order], numbers), self.size - 1)
            codes = order[at]
            wrong = self.values[codes] != numbers
        self._refuse(x, wrong & ~absent, who)
        return np.where(absent, -1, codes) if absent.any() else codes

    def nearest(self, numbers: ArrayLike) -> Codes:
        """Codes of the nearest category, halves upward, for scales of rising numbers.

        Raises:
            StatsError: If the categories are not numbers in rising order.
        """
        if self.values is None or np.any(np.diff(self.values) <= 0):
            raise StatsError(f"the categories {self} are not numbers in rising order.")
        middles = (self.values[1:] + self.values[:-1]) / 2
        return np.searchsorted(middles, np.round(np.asarray(numbers, float), 9), side="right")

    def _refuse(self, x: NDArray[Any], wrong: NDArray[np.bool_], who: str) -> None:
        if wrong.any():
            raise StatsError(
                f"{who} is {x[wrong].ravel()[0]!s}, which is none of the categories {self}. "
                "Declare every category, or round scores first (rounding='half_up')."
            )

    def __str__(self) -> str:
        return str(list(self.categories))


@lru_cache(maxsize=256)
def _scale(categories: tuple[Hashable, ...]) -> Scale:
    if len(categories) < 2:
        raise StatsError(f"{len(categories)} categories; agreement needs at least 2.")
    if len(set(categories)) < len(categories):
        raise StatsError(f"the categories {list(categories)} name one twice.")
    if not all(isinstance(c, (int, float, np.number)) for c in categories):
        return Scale(categories, None, None)
    values = np.array(categories, dtype=np.float64)
    if not np.isfinite(values).all():
        raise StatsError(f"the categories {list(categories)} are not all finite.")
    rising = bool(np.all(np.diff(values) == 1)) and values[0] == np.floor(values[0])
    return Scale(categories, values, int(values[0]) if rising else None)


@dataclass(frozen=True)
class PairedRatings:
    """The pairs that both sides rated, as codes, and how many were left out.

    `n_missing`: no anchor rating; `n_invalid`: an anchor rating but no usable verdict, `unread`
    the human codes of those.
    """

    scale: Scale
    human: Codes
    judge: Codes
    weights: Floats | None
    kept: NDArray[np.bool_] | None  # which of the given pairs these are; None: all
    n_missing: int = 0
    n_invalid: int = 0
    unread: Codes | None = None

    @property
    def n(self) -> int:
        """Valid pairs."""
        return len(self.human)

    def table(self, power: int = 1) -> Floats:
        """K x K sums of weights**power, rows human; counts without weights."""
        k = self.scale.size
        w = None if self.weights is None else self.weights**power
        cells = self.human * k + self.judge
        return np.bincount(cells, weights=w, minlength=k * k).reshape(k, k).astype(np.float64)

    @property
    def effective_n(self) -> float:
        """n, or Kish's effective sample size under weights."""
        return float(self.n) if self.weights is None else kish_effective_size(self.weights)


def pair_ratings(
    human: ArrayLike | Sequence[Any],
    judge: ArrayLike | Sequence[Any],
    categories: Iterable[Hashable],
    *,
    rounding: Rounding = None,
    weights: ArrayLike | None = None,
) -> PairedRatings:
    """Check two lists of ratings and keep the pairs that both sides rated.

    Args:
        human: (n,) anchor ratings; NaN or None where there is none.
        judge: (n,) the judge's; NaN or None where no verdict could be read.
        categories: Every category, in rank order.
        rounding: "half_up" brings scores between two bands to the nearer one, halves upward.
        weights: (n,) sample weights, 0 or more (target share / anchor share).

    Raises:
        StatsError: For unequal lengths, a rating outside the categories, a bad weight.
    """
    scale = Scale.of(categories)
    if rounding is not None:
        human, judge = _rounded(human), _rounded(judge)
    h, j = scale.codes(human, "a human rating"), scale.codes(judge, "a judge's rating")
    if h.ndim != 1 or h.shape != j.shape:
        raise StatsError(f"{h.size} human and {j.size} judge ratings; give one of each per item.")
    w = None if weights is None else np.asarray(weights, dtype=np.float64)
    if w is not None and (w.shape != h.shape or not np.isfinite(w).all() or (w < 0).any()):
        raise StatsError("weights must be one finite number of 0 or more per pair.")
    kept = (h >= 0) & (j >= 0) if scale.first is None or _may_be_absent(human, judge) else None
    if kept is None or kept.all():
        return PairedRatings(scale, h, j, w, None)
    unread = h[(h >= 0) & (j < 0)]
    return PairedRatings(
        scale,
        h[kept],
        j[kept],
        None if w is None else w[kept],
        kept,
        n_missing=int((h < 0).sum()),
        n_invalid=len(unread),
        unread=unread,
    )


def confusion_table(
    human: ArrayLike | Sequence[Any],
    judge: ArrayLike | Sequence[Any],
    categories: Iterable[Hashable],
    *,
    rounding: Rounding = None,
    weights: ArrayLike | None = None,
) -> Floats:
    """K x K table of counts (or sums of weights), rows human, columns judge; as `pair_ratings`."""
    return pair_ratings(human, judge, categories, rounding=rounding, weights=weights).table()


def _rounded(ratings: ArrayLike | Sequence[Any]) -> Floats:
    try:
        return half_up(np.asarray(ratings, dtype=np.float64))
    except (TypeError, ValueError):
        raise StatsError("only numbers can be rounded half up.") from None


def _may_be_absent(*ratings: Any) -> bool:
    return any(getattr(r, "dtype", np.dtype(object)).kind not in "iub" for r in ratings)


def _absent(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))

"""Does a judge pay for length, or for its own family? Sensitivity views beside the headline."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalkit.errors import StatsError
from evalkit.stats.agreement import mean_bias
from evalkit.stats.bootstrap import percentile_interval
from evalkit.stats.correlation import partial_spearman
from evalkit.stats.pairwise import win_rate
from evalkit.stats.result import Interval, Status

__all__ = [
    "LengthControl",
    "length_association",
    "length_controlled_win_rate",
    "self_preference",
]

Floats = NDArray[np.float64]
RIDGE = 0.1
FAR = 30.0  # a coefficient this large is on its way to infinity


def length_association(
    scores: ArrayLike, lengths: ArrayLike, human: ArrayLike, *, level: float = 0.95
) -> Interval:
    """How far scores follow length among items that people rate alike: a partial Spearman.

    Args:
        scores: (n,) the judge's scores.
        lengths: (n,) lengths, in characters or tokens.
        human: (n,) scores by people, held fixed.
        level: Confidence level, in (0, 1).

    Returns:
        As `partial_spearman`; `extra["raw"]` is the plain rank correlation with length.

    Raises:
        StatsError: For unequal lengths.
    """
    return partial_spearman(scores, lengths, human, level=level)


@dataclass(frozen=True, slots=True)
class LengthControl:
    """Win rate as it is and at equal lengths: logit P(A) = intercept + slope·tanh(Δ/sd(Δ)).

    `slope` above 0: the longer answer wins more often than its rival's merit explains, or is
    better: a length that carries merit is removed with it, so this is no headline.
    """

    raw: Interval
    controlled: Interval
    intercept: float
    slope: float
    reasons: tuple[str, ...] = ()


def length_controlled_win_rate(
    scores: ArrayLike,
    length_a: ArrayLike,
    length_b: ArrayLike,
    *,
    prompts: Sequence[Hashable] | None = None,
    n_boot: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> LengthControl:
    """Win rate of A were both answers equally long, by a fractional logistic regression.

    Args:
        scores: (n,) 1 A won, 0 B won, 0.5 tie, NaN invalid (left out, counted).
        length_a: (n,) length of A's answer, in tokens or characters.
        length_b: (n,) length of B's answer.
        prompts: (n,) prompt ids, the units of the bootstrap; None makes each pair one.
        n_boot: Bootstrap draws; sd(Δ) keeps its observed value, as it only sets the scale.
        seed: Seed of the bootstrap.
        level: Confidence level, in (0, 1).

    Returns:
        Equal lengths throughout (`equal_lengths`): the controlled rate is the raw one. Where no
        finite fit exists, a weak ridge ½·0.1·Σβ² is added (`separated`) and no interval is given.

    Raises:
        StatsError: For unequal lengths of the lists or a score outside [0, 1].

    Source: Dubois et al. (2024), arXiv:2404.04475.
    """
    raw = win_rate(scores, clusters=prompts, level=level)
    s = np.asarray(scores, dtype=np.float64)
    a, b = np.asarray(length_a, dtype=np.float64), np.asarray(length_b, dtype=np.float64)
    if not s.shape == a.shape == b.shape:
        raise StatsError(f"{s.size} scores with {a.size} and {b.size} lengths; one per pair.")
    kept = ~(np.isnan(s) | np.isnan(a) | np.isnan(b))
    s, gap = s[kept], (a - b)[kept]
    if len(s) < 2:
        return LengthControl(raw, replace(raw, extra={}), math.nan, math.nan, raw.reasons)
    spread = float(gap.std())
    if spread == 0:
        odds = math.log(raw.estimate / (1 - raw.estimate)) if 0 < raw.estimate < 1 else math.nan
        return LengthControl(raw, replace(raw, extra={}), odds, 0.0, ("equal_lengths",))
    x = np.tanh(gap / spread)
    fit, separated = _logistic(x, s, np.ones((1, len(s))))
    low, high, reasons = math.nan, math.nan, ("separated",)
    if not separated[0]:
        values = _resampled(x, s, _units(prompts, kept), fit[0], n_boot, seed)
        (low, high), reasons = percentile_interval(values, level), ()
    controlled = Interval(
        float(_sigmoid(fit[0, 0])),
        low,
        high,
        level,
        "fractional_logistic+bootstrap_percentile",
        raw.n_cases,
        len(s),
        int((~kept).sum()),
        raw.n_invalid,
        Status.DEGENERATE if separated[0] or math.isnan(low) else Status.OK,
        reasons,
        seed,
        extra={"n_boot": n_boot},
    )
    return LengthControl(raw, controlled, float(fit[0, 0]), float(fit[0, 1]), reasons)


def self_preference(
    judge: ArrayLike, reference: ArrayLike | None, *, level: float = 0.95
) -> Interval:
    """How much more often a judge prefers its own family than a reference does on the same pairs.

    Args:
        judge: (n,) 1 where the judge prefers its own family, 0 the other, 0.5 a tie, NaN invalid.
        reference: (n,) the same by people or by a judge of another family; None if there is none.
        level: Confidence level, in (0, 1).

    Returns:
        Mean paired difference, -1..1, with the paired t interval; UNDEFINED, `no_reference`,
        without a reference: what a judge prefers is not by itself a preference for itself.

    Raises:
        StatsError: For unequal lengths or a value outside [0, 1].
    """
    j = np.asarray(judge, dtype=np.float64)
    if reference is None:
        nan = math.nan
        return Interval(
            nan, nan, nan, level, "paired_t", status=Status.UNDEFINED, reasons=("no_reference",)
        )
    r = np.asarray(reference, dtype=np.float64)
    if j.shape != r.shape or np.any((j < 0) | (j > 1)) or np.any((r < 0) | (r > 1)):
        raise StatsError("preferences must be two equally long lists of numbers in [0, 1].")
    kept = ~(np.isnan(j) | np.isnan(r))
    found = mean_bias(r[kept], j[kept], span=1.0, level=level)
    return replace(found, n_missing=int((~kept).sum()), n_invalid=int(np.isnan(j).sum()))


def _units(prompts: Sequence[Hashable] | None, kept: NDArray[np.bool_]) -> NDArray[np.intp]:
    if prompts is None:
        return np.arange(int(kept.sum()))
    index: dict[Hashable, int] = {}
    at = [index.setdefault(p, len(index)) for p, k in zip(prompts, kept, strict=True) if k]
    return np.array(at, dtype=np.intp)


def _resampled(
    x: Floats, y: Floats, unit: NDArray[np.intp], start: Floats, n_boot: int, seed: int
) -> Floats:
    """The controlled rate on resampled prompts, in blocks that stay in the cache."""
    rng, m = np.random.default_rng(seed), int(unit.max()) + 1
    step, out = max(1, 50_000 // len(x)), np.empty(n_boot)
    for at in range(0, n_boot, step):
        size = min(step, n_boot - at)
        times = rng.multinomial(m, np.full(m, 1 / m), size=size)
        fits = _logistic(x, y, times[:, unit].astype(np.float64), start)[0]
        out[at : at + size] = _sigmoid(fits[:, 0])
    return out


def _logistic(
    x: Floats, y: Floats, w: Floats, start: Floats | None = None
) -> tuple[Floats, NDArray[np.bool_]]:
    """Intercept and slope for each row of weights, and which rows needed the ridge."""
    fit, lost = _newton(x, y, w, 0.0, start)
    if lost.any():
        fit[lost] = _newton(x, y, w[lost], RIDGE, None)[0]
    return fit, lost


def _newton(
    x: Floats, y: Floats, w: Floats, ridge: float, start: Floats | None
) -> tuple[Floats, NDArray[np.bool_]]:
    beta = np.zeros((len(w), 2)) if start is None else np.repeat(start[None], len(w), axis=0)
    lost = np.zeros(len(w), dtype=bool)
    square = x * x
    for _ in range(50):
        p = 1 / (1 + np.exp(-(beta[:, :1] + beta[:, 1:] * x)))
        rest = w * (y - p)
        curve = w * (p * (1 - p))
        g0, g1 = rest.sum(1) - ridge * beta[:, 0], rest @ x - ridge * beta[:, 1]
        h0, h1, h2 = curve.sum(1) + ridge, curve @ x, curve @ square + ridge
        det = h0 * h2 - h1 * h1
        lost |= (det < 1e-12 * h0 * h2) | (det == 0) | (np.abs(beta).max(1) > FAR)
        det[lost] = np.inf
        step = np.stack([(h2 * g0 - h1 * g1) / det, (h0 * g1 - h1 * g0) / det], axis=1)
        beta += np.clip(step, -4, 4)
        if np.abs(step).max() < 1e-9:
            break
    return beta, lost


def _sigmoid(z: ArrayLike) -> Floats:
    return 1 / (1 + np.exp(-np.asarray(z, dtype=np.float64)))

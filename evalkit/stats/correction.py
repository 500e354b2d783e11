"""A pass rate corrected for the errors of the judge that measured it, from a labelled part.

Two designs, not interchangeable: labels on a random sample of the same traffic (PPI++), or labels
chosen by class (Rogan-Gladen).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalkit.errors import StatsError
from evalkit.stats.intervals import wilson_bounds, wilson_interval
from evalkit.stats.observations import check_conf
from evalkit.stats.quantiles import normal_quantile, t_quantile
from evalkit.stats.result import Interval, Status

__all__ = ["CorrectedRate", "plug_in_bounds", "ppi_crossfit", "ppi_mean", "rogan_gladen"]

Floats = NDArray[np.float64]
MIN_LABELS = 40


@dataclass(frozen=True, slots=True)
class CorrectedRate:
    """A corrected rate beside what the labels alone say.

    `label_gain` = (width of the labels-only interval / width)²: 2.2 reads "worth 2.2 times the
    labels"; below 1 the correction costs more than it brings, so use the labels.
    """

    rate: Interval
    labels_only: Interval
    label_gain: float
    uncorrected: float


def ppi_crossfit(
    labels: ArrayLike,
    judge_labelled: ArrayLike,
    judge_unlabelled: ArrayLike,
    *,
    folds: int = 5,
    fold_ids: ArrayLike | None = None,
    seed: int = 0,
    level: float = 0.95,
) -> CorrectedRate:
    """Cross-fitted PPI++: the mean label, sharpened by judge verdicts on unlabelled cases.

    λ of each fold comes from the other folds, λ = clip(cov(Y, f)/((1 + n_k/N)·var(f ∪ F)), 0, 1);
    r_i = Y_i - λ_k(i) f_i; theta = mean(r) + mean(λ)·mean(F);
    se² = var(r)/n + mean(λ)²·var(F)/N. Pass/fail labels: Wilson with n_eff =
    clip(theta(1-theta)/se², n/2, n+N) and z = t_{n-1}; else theta -+ t_{n-1}·se.

    Args:
        labels: (n,) labels by people, 0..1, a random sample of the traffic.
        judge_labelled: (n,) the judge on the same cases.
        judge_unlabelled: (N,) the judge on cases without a label.
        folds: Folds of the cross-fit, 2..n.
        fold_ids: (n,) fold of each label, 0..folds-1; None deals them out in seeded random order.
        seed: Seed of that order.
        level: Confidence level, in (0, 1).

    Returns:
        `rate.extra`: se, n_eff, lambda, lambda_by_fold. Fewer than 40 labels:
        INSUFFICIENT_DATA beside the numbers.

    Raises:
        StatsError: For unequal lengths, gaps, values outside [0, 1], fewer than two of either.

    Source: Angelopoulos, Duchi and Zrnic (2023), arXiv:2311.01453.
    """
    y, f, rest = _checked(labels, judge_labelled, judge_unlabelled)
    n, big = len(y), len(rest)
    if not 2 <= folds <= n:
        raise StatsError(f"{folds} folds for {n} labels; give 2 to {n}.")
    fold = _dealt(n, folds, seed) if fold_ids is None else np.asarray(fold_ids, dtype=np.intp)
    if fold.shape != (n,) or fold.min() < 0 or fold.max() >= folds:
        raise StatsError(f"fold_ids must be {n} whole numbers in 0..{folds - 1}.")
    others = [fold != k for k in range(folds)]
    lambdas = np.array([_power_tuning(y[o], f[o], rest) for o in others])
    mean_lambda = float(lambdas.mean())
    r = y - lambdas[fold] * f
    theta = float(r.mean()) + mean_lambda * float(rest.mean())
    se = math.sqrt(float(r.var(ddof=1)) / n + mean_lambda**2 * float(rest.var(ddof=1)) / big)
    t = float(t_quantile(n - 1, (1 + level) / 2))
    n_eff = math.nan
    estimate = theta
    if _binary(y):
        estimate = min(max(theta, 0.0), 1.0)
        spread = estimate * (1 - estimate)
        n_eff = min(max(spread / se**2, n / 2), n + big) if spread > 0 and se > 0 else float(n)
        low, high = (float(x) for x in wilson_bounds(estimate, n_eff, t))
    else:
        low, high = theta - t * se, theta + t * se
    few = n < MIN_LABELS
    rate = Interval(
        estimate,
        low,
        high,
        check_conf("the level", level),
        "ppi_crossfit",
        n + big,
        n + big,
        status=Status.INSUFFICIENT_DATA if few else Status.OK,
        reasons=("too_few_labels",) if few else (),
        seed=None if fold_ids is not None else seed,
        extra={
            "se": se,
            "n_eff": n_eff,
            "lambda": mean_lambda,
            "lambda_by_fold": tuple(float(x) for x in lambdas),
            "n_labels": n,
        },
    )
    return _beside_labels(rate, y, float(np.concatenate([f, rest]).mean()))


def ppi_mean(
    labels: ArrayLike,
    judge_labelled: ArrayLike,
    judge_unlabelled: ArrayLike,
    *,
    tuned: bool = True,
    level: float = 0.95,
) -> CorrectedRate:
    """PPI (λ = 1) or PPI++ with one λ for all labels, for comparison with other tools.

    Its t interval covers .85-.95 instead of .95: use `ppi_crossfit`. Args and errors as there.
    `rate` carries the t interval with ddof 1; `rate.extra`: se, lambda, ci_normal (ddof 0, as
    published).

    Source: Angelopoulos et al. (2023), Science 382, 669-674; arXiv:2311.01453.
    """
    y, f, rest = _checked(labels, judge_labelled, judge_unlabelled)
    n, big = len(y), len(rest)
    weight = _power_tuning(y, f, rest) if tuned else 1.0
    theta = float((y - weight * f).mean()) + weight * float(rest.mean())

    def error(ddof: int) -> float:
        part = weight**2 * float(rest.var(ddof=ddof)) / big
        return math.sqrt(float((y - weight * f).var(ddof=ddof)) / n + part)

    se, plain = error(1), error(0)
    t, z = float(t_quantile(n - 1, (1 + level) / 2)), normal_quantile((1 + level) / 2)
    rate = Interval(
        theta,
        theta - t * se,
        theta + t * se,
        check_conf("the level", level),
        "ppi++" if tuned else "ppi",
        n + big,
        n + big,
        reasons=("comparison_only",),
        extra={"se": se, "lambda": weight, "ci_normal": (theta - z * plain, theta + z * plain)},
    )
    return _beside_labels(rate, y, float(np.concatenate([f, rest]).mean()))


def rogan_gladen(
    tp: int,
    fn: int,
    fp: int,
    tn: int,
    *,
    judge_pass: int,
    judge_n: int,
    level: float = 0.95,
) -> CorrectedRate:
    """True pass rate from the judge's pass rate and its error rates on labels chosen by class.

    θ = (p + TNR - 1)/J, J = TPR + TNR - 1, cut to [0, 1]; adjusted plug-in interval.

    Args:
        tp: Labelled: human pass, judge pass.
        fn: Labelled: human pass, judge fail.
        fp: Labelled: human fail, judge pass.
        tn: Labelled: human fail, judge fail.
        judge_pass: Traffic: verdicts "pass".
        judge_n: Traffic: readable verdicts.
        level: Confidence level, in (0, 1).

    Returns:
        J <= 0 or undefined: NaN, UNDEFINED, `judge_not_informative` (or the class without labels).
        θ outside [0, 1] before the cut: DEGENERATE, `out_of_range`: these error rates do not fit
        this traffic, and no gate may decide on it. `rate.extra`: unclipped, youden_j, se. The
        labels chosen by class say nothing about the rate: `labels_only` is UNDEFINED.

    Raises:
        StatsError: If a count is negative or judge_pass exceeds judge_n.

    Source: Rogan and Gladen (1978), Am. J. Epidemiol. 107(1), 71-76; Lee et al., arXiv:2511.21140.
    """
    counts = (tp, fn, fp, tn, judge_pass, judge_n - judge_pass)
    if min(counts) < 0:
        raise StatsError(f"{counts}: a count is negative, or more pass than there are verdicts.")
    check_conf("the level", level)
    nan, m1, m0 = math.nan, tp + fn, fp + tn
    none = Interval(
        nan, nan, nan, level, "wilson", status=Status.UNDEFINED, reasons=("labels_chosen_by_class",)
    )
    missing = "no_positive_class" if not m1 else "no_negative_class" if not m0 else ""
    youden = nan if missing else tp / m1 + tn / m0 - 1
    if missing or not judge_n or youden <= 1e-12:
        reason = missing or ("judge_not_informative" if judge_n else "no_cases")
        rate = Interval(
            nan,
            nan,
            nan,
            level,
            "rogan_gladen",
            judge_n,
            judge_n,
            status=Status.UNDEFINED,
            reasons=(reason,),
            extra={"unclipped": nan, "youden_j": youden, "se": nan},
        )
        return CorrectedRate(rate, none, nan, judge_pass / judge_n if judge_n else nan)
    p = judge_pass / judge_n
    theta = (p + tn / m0 - 1) / youden
    z = normal_quantile((1 + level) / 2)
    low, high, se = (float(x) for x in plug_in_bounds(tp, m1, tn, m0, judge_pass, judge_n, z))
    outside = not 0 <= theta <= 1
    reasons = (("out_of_range",) if outside else ()) + (("no_interval",) if math.isnan(se) else ())
    rate = Interval(
        min(max(theta, 0.0), 1.0),
        low,
        high,
        level,
        "rogan_gladen_adjusted_plug_in",
        judge_n,
        judge_n,
        status=Status.DEGENERATE if reasons else Status.OK,
        reasons=reasons,
        extra={"unclipped": theta, "youden_j": youden, "se": se},
    )
    return CorrectedRate(rate, none, nan, p)


def plug_in_bounds(
    tp: ArrayLike, m1: int, tn: ArrayLike, m0: int, passed: ArrayLike, n: int, z: float
) -> tuple[Floats, Floats, Floats]:
    """Low, high and se of the adjusted plug-in interval, on arrays of counts.

    NaN where the adjusted judge is not informative. m1 and m0 are the labels of either class.
    """
    a, d, k = (np.asarray(x, dtype=np.float64) for x in (tp, tn, passed))
    big = n + z * z
    share = (k + z * z / 2) / big
    q1, q0 = (a + 1) / (m1 + 2), (d + 1) / (m0 + 2)
    informative = np.where(q0 + q1 > 1, q0 + q1 - 1, np.nan)
    theta = (share + q0 - 1) / informative
    noise0, noise1 = q0 * (1 - q0) / (m0 + 2), q1 * (1 - q1) / (m1 + 2)
    shift = 2 * z * z * (theta * noise1 - (1 - theta) * noise0)
    variance = share * (1 - share) / big + (1 - theta) ** 2 * noise0 + theta**2 * noise1
    se = np.sqrt(variance) / informative
    low, high = theta + shift - z * se, theta + shift + z * se
    return np.clip(low, 0, 1), np.clip(high, 0, 1), se


def _power_tuning(y: Floats, f: Floats, rest: Floats) -> float:
    """λ = clip(cov(Y, f)/((1 + n/N)·var(f ∪ F)), 0, 1); 0 where the judge does not vary."""
    n, big = len(y), len(rest)
    spread = float(np.concatenate([f, rest]).var(ddof=1))
    covariance = float(((y - y.mean()) * (f - f.mean())).mean())
    return 0.0 if spread <= 1e-15 else min(max(covariance / ((1 + n / big) * spread), 0.0), 1.0)


def _dealt(n: int, folds: int, seed: int) -> NDArray[np.intp]:
    fold = np.empty(n, dtype=np.intp)
    fold[np.random.default_rng(seed).permutation(n)] = np.arange(n) % folds
    return fold


def _binary(y: Floats) -> bool:
    return bool(np.all((y == 0) | (y == 1)))


def _beside_labels(rate: Interval, y: Floats, uncorrected: float) -> CorrectedRate:
    n = len(y)
    if _binary(y):
        labels = wilson_interval(float(y.sum()), n, level=rate.conf)
    else:
        half = float(t_quantile(n - 1, (1 + rate.conf) / 2)) * float(y.std(ddof=1)) / math.sqrt(n)
        mean = float(y.mean())
        labels = Interval(mean, mean - half, mean + half, rate.conf, "t", n, n)
    width = rate.ci_high - rate.ci_low
    gain = ((labels.ci_high - labels.ci_low) / width) ** 2 if width > 0 else math.nan
    return CorrectedRate(rate, labels, gain, uncorrected)


def _checked(
    labels: ArrayLike, judge_labelled: ArrayLike, judge_unlabelled: ArrayLike
) -> tuple[Floats, Floats, Floats]:
    y, f, rest = (
        np.asarray(x, dtype=np.float64) for x in (labels, judge_labelled, judge_unlabelled)
    )
    if y.ndim != 1 or y.shape != f.shape or rest.ndim != 1:
        raise StatsError(f"{y.size} labels and {f.size} verdicts on them; give one of each.")
    if len(y) < 2 or len(rest) < 2:
        raise StatsError(f"{len(y)} labelled and {len(rest)} unlabelled cases; 2 of each at least.")
    for x in (y, f, rest):
        if not np.all((x >= 0) & (x <= 1)):
            raise StatsError("labels and verdicts must lie in [0, 1]; leave out what is missing.")
    return y, f, rest

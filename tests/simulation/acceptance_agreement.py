"""Judges, known pairs and corrected rates: simulated judges whose true quality is known.

A judge gives a human band h of six the band nearest to a + b·h + noise, cut to the bands it uses;
its true QWK is exact, from the joint distribution. Every figure comes from the package's own
functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, ndtr, xlog1py, xlogy
from simulation_bars import Row

from evalkit.stats.admission import Bars, JudgeState, judge_state
from evalkit.stats.correction import plug_in_bounds, ppi_crossfit
from evalkit.stats.intervals import exact_p_at_least
from evalkit.stats.kappa import kappa_interval, kappa_of_tables
from evalkit.stats.ratings import PairedRatings, Scale
from evalkit.stats.recalibration import recalibrate
from evalkit.stats.reconstruction import pairs_to_pass
from evalkit.stats.result import Interval

Floats = NDArray[np.float64]
BANDS = 6
SCALE = Scale.of(range(1, BANDS + 1))


@dataclass(frozen=True)
class Judge:
    """The noise that gives a judge its true QWK (b = 1), or a compressed scale."""

    noise: float
    offset: float = 0.0
    slope: float = 1.0
    top: int = BANDS

    def joint(self) -> Floats:
        """Shares of every (human, judge) pair of bands, humans spread evenly."""
        means = self.offset + self.slope * np.arange(1, BANDS + 1)
        below = ndtr((np.arange(1, BANDS) + 0.5 - means[:, None]) / self.noise)
        edge = np.ones((BANDS, 1))
        shares = np.diff(np.hstack([0 * edge, below, edge]), axis=1)
        shares[:, self.top - 1] = shares[:, self.top - 1 :].sum(1)
        shares[:, self.top :] = 0.0
        return shares / BANDS


# noise for a true QWK, found by bisection on the exact joint distribution
NOISE = {0.3: 4.7109, 0.4: 3.5269, 0.45: 3.1091, 0.5: 2.7595, 0.6: 2.1906, 0.7: 1.7197, 0.8: 1.284}
COMPRESSED = Judge(noise=0.3066, offset=1.4686, slope=0.3319, top=4)  # QWK .456, Spearman .813
# (TPR, TNR) of three yes/no judges
BINARY = ((0.95, 0.55), (0.95, 0.85), (0.98, 0.95))


def rows(replications: int, seed: int) -> Iterator[Row]:
    rng = np.random.default_rng(seed)
    yield from qwk_coverage(rng, replications)
    yield from admission(rng, replications)
    yield from reconstruction()
    yield from class_labels()
    yield from random_labels(rng, replications)
    yield from recalibration(rng, replications)


def intervals(
    rng: np.random.Generator, judge: Judge, n: int, replications: int, level: float
) -> Iterator[Interval]:
    """QWK intervals of anchors of n items."""
    cells = judge.joint().ravel()
    for counts in rng.multinomial(n, cells, size=replications):
        at = np.repeat(np.arange(BANDS * BANDS), counts)
        pairs = PairedRatings(SCALE, at // BANDS, at % BANDS, None, None)
        yield kappa_interval(pairs, "quadratic", level=level)


def qwk_coverage(rng: np.random.Generator, reps: int) -> Iterator[Row]:
    for true in (0.3, 0.5, 0.7, 0.8):
        for n in (39, 60, 120, 300):
            judge = Judge(NOISE[true])
            exact = float(kappa_of_tables(judge.joint(), "quadratic"))
            found = intervals(rng, judge, n, reps, 0.95)
            covered = np.mean([i.ci_low <= exact <= i.ci_high for i in found])
            yield Row(
                "QWK interval, coverage", f"QWK {true}, n {n}", float(covered), 0.91, 0.97, reps
            )
    exact = float(kappa_of_tables(COMPRESSED.joint(), "quadratic"))
    for n in (39, 120):
        found = intervals(rng, COMPRESSED, n, reps, 0.95)
        covered = float(np.mean([i.ci_low <= exact <= i.ci_high for i in found]))
        yield Row(
            "QWK interval, coverage", f"compressed, QWK .456, n {n}", covered, 0.91, 0.97, reps
        )


def admission(rng: np.random.Generator, reps: int) -> Iterator[Row]:
    def credible(true: float, n: int) -> float:
        states = [
            judge_state(i.estimate, i.ci_low, i.ci_high, Bars())[0]
            for i in intervals(rng, Judge(NOISE[true]), n, reps, 0.90)
        ]
        return float(np.mean([s is JudgeState.CREDIBLE for s in states]))

    for n in (39, 60, 120):
        found = credible(0.45, n)
        yield Row(
            "admission, P(CREDIBLE)", f"true QWK .45, n {n}", found, high=0.05, replications=reps
        )
    yield Row(
        "admission, P(CREDIBLE)", "true QWK .70, n 120", credible(0.7, 120), 0.93, replications=reps
    )


def reconstruction() -> Iterator[Row]:
    """Exact: the chance that a coin reaches the fewest right pairs that pass."""
    needed = {n: pairs_to_pass(n) for n in range(1, 501)}
    worst = max(exact_p_at_least(k, n) for n, k in needed.items() if k is not None)
    yield Row("reconstruction gate, a coin passes", "any n up to 500", worst, high=0.05)


def class_labels() -> Iterator[Row]:
    """Exact, over every outcome of the labels (half of each class) and of the traffic.

    To the three decimals in which the bars were measured: the widest cell is .9903.
    """
    for rate in (0.8, 0.9):
        for tpr, tnr in BINARY:
            for labels in (100, 200):
                for n in (300, 2000):
                    yield Row(
                        "Rogan-Gladen interval, coverage",
                        f"rate {rate}, {tpr}/{tnr}, {labels} labels, N {n}",
                        round(exact_coverage(rate, tpr, tnr, labels // 2, n), 3),
                        0.93,
                        0.99,
                    )


def exact_coverage(rate: float, tpr: float, tnr: float, half: int, n: int) -> float:
    counts = np.arange(half + 1)
    tp, tn = counts[:, None], counts[None, :]
    chance = mass(half, tpr)[:, None] * mass(half, tnr)
    answered = tp + tn > half  # TPR + TNR > 1 as measured: else there is no estimate
    traffic = mass(n, rate * tpr + (1 - rate) * (1 - tnr))
    covered = 0.0
    for passed in np.flatnonzero(traffic > 1e-9):
        low, high, _ = plug_in_bounds(tp, half, tn, half, passed, n, 1.959963984540054)
        covered += float(
            traffic[passed] * (chance * (answered & (low <= rate) & (rate <= high))).sum()
        )
    return covered


def mass(n: int, p: float) -> Floats:
    """Binomial probabilities of 0..n."""
    k = np.arange(n + 1)
    return np.exp(
        gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + xlogy(k, p) + xlog1py(n - k, -p)
    )


def random_labels(rng: np.random.Generator, reps: int) -> Iterator[Row]:
    unlabelled = 300
    for rate in (0.7, 0.8, 0.9, 0.95):
        for tpr, tnr in BINARY:
            for n in (40, 100, 200):
                truth = rng.random((reps, n + unlabelled)) < rate
                said = rng.random(truth.shape) < np.where(truth, tpr, 1 - tnr)
                y, f = truth.astype(np.float64), said.astype(np.float64)
                covered = 0
                for r in range(reps):
                    i = ppi_crossfit(y[r, :n], f[r, :n], f[r, n:], seed=r).rate
                    covered += i.ci_low <= rate <= i.ci_high
                yield Row(
                    "PPI++ cross-fitted, coverage",
                    f"rate {rate}, {tpr}/{tnr}, {n} labels",
                    covered / reps,
                    0.93,
                    0.975,
                    reps,
                )


def recalibration(rng: np.random.Generator, reps: int) -> Iterator[Row]:
    """Held-out QWK against the exact QWK of the fitted map on new data."""
    reps = max(20, reps // 10)
    judges = {"compressed": COMPRESSED, "noisy, QWK .45": Judge(NOISE[0.45])}
    judges["compressed and noisy"] = Judge(1.2, offset=1.4686, slope=0.3319, top=4)
    for name, judge in judges.items():
        joint = judge.joint()
        per_band = (joint / joint.sum(1, keepdims=True)).cumsum(1)
        gaps: list[float] = []
        for r in range(reps):
            human = np.repeat(np.arange(1, BANDS + 1), 20)
            draws = rng.random(len(human))
            given = (draws[:, None] > per_band[human - 1, :-1]).sum(1) + 1
            found = recalibrate(human, given, SCALE.categories, repeats=3, seed=r)
            if found.map is None:
                continue
            new = np.zeros_like(joint)
            np.add.at(new.T, SCALE.nearest(found.map(np.arange(1, BANDS + 1))), joint.T)
            gaps.append(found.qwk_held_out.estimate - float(kappa_of_tables(new, "quadratic")))
        yield Row(
            "held-out QWK, bias against new data",
            f"n 120, {name}",
            float(np.mean(gaps)),
            -0.02,
            0.02,
            len(gaps),
            float(np.std(gaps)),
        )

"""Rates, gates, families and selection: simulated applications whose true quality is known.

A case passes with probability drawn from a Beta distribution of given mean and intraclass
correlation; "break" means that a share of the cases drops to 0. All decisions come from the
package's own functions on arrays of replications.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from simulation_bars import Row

from evalkit.stats.bounds import mean_bounds
from evalkit.stats.decision import Decision, Strictness
from evalkit.stats.differences import drop_p, moments, t_bounds
from evalkit.stats.gate import relative_decisions
from evalkit.stats.intervals import cases_to_prove
from evalkit.stats.multiplicity import holm
from evalkit.stats.repeats import effective_wilson
from evalkit.stats.sequential import sequential_decisions

RUNS = 3
SMOKE, RELEASE = Strictness.SMOKE, Strictness.RELEASE
Floats = NDArray[np.float64]


class Application:
    """Replications of a test set: the case probabilities, and runs drawn from them."""

    def __init__(self, rng: np.random.Generator, mean: float, icc: float, shape: tuple[int, ...]):
        both = (1 - icc) / icc
        self.rng = rng
        self.p = rng.beta(mean * both, (1 - mean) * both, shape)

    def broken(self, share: float) -> Floats:
        """The probabilities after a random share of the cases dropped to 0."""
        return np.where(self.rng.random(self.p.shape) < share, 0.0, self.p)

    def run(self, p: Floats | None = None) -> Floats:
        """Case means over the runs."""
        return self.rng.binomial(RUNS, self.p if p is None else p) / RUNS


def rows(replications: int, seed: int) -> Iterator[Row]:
    rng = np.random.default_rng(seed)
    yield from smoke(rng, replications)
    yield from release(rng, replications)
    yield from sequential(rng, replications)
    yield from coverage(rng, replications)
    yield from floors(rng, replications)
    yield from family(rng, replications)
    yield from selection(rng, replications)


def share(decisions: NDArray[np.str_], decision: Decision) -> float:
    return float((decisions == decision).mean())


def smoke(rng: np.random.Generator, reps: int) -> Iterator[Row]:
    """At the default margin of 5 points."""
    power = {30: 0.43, 45: 0.62, 120: 0.95}
    for n in power:
        old = Application(rng, 0.9, 0.5, (reps, n))
        other = Application(rng, 0.9, 0.5, (reps, n))
        changed = {"same system": old.p, "differing case by case": other.p}
        for name, p in changed.items():
            found = relative_decisions(old.run(p) - old.run(), 0.05, strictness=SMOKE)
            yield Row(
                "smoke gate, false alarm",
                f"{name}, n = {n}",
                share(found, Decision.FAIL),
                high=0.06,
                replications=reps,
            )
        d = old.run(old.broken(0.1 / 0.9)) - old.run()
        found = relative_decisions(d, 0.05, strictness=SMOKE)
        yield Row(
            "smoke gate, power",
            f"-10 points (break), n = {n}",
            share(found, Decision.FAIL),
            low=power[n],
            replications=reps,
        )


def release(rng: np.random.Generator, reps: int) -> Iterator[Row]:
    for mean in (0.9, 0.97):
        for icc in (0.5, 0.8):
            for n in (30, 45, 60, 120, 300):
                old = Application(rng, mean, icc, (reps, n))
                for margin in (0.05, 0.10):
                    d = old.run(old.broken(margin / mean)) - old.run()
                    found = relative_decisions(d, margin, strictness=RELEASE)
                    yield Row(
                        "release gate, passes a drop = margin",
                        f"mean {mean}, ICC {icc}, margin {margin}, n = {n}",
                        share(found, Decision.PASS),
                        high=0.065,
                        replications=reps,
                    )
    for n, bar in {45: 0.90, 60: 0.96, 120: 0.99}.items():
        old = Application(rng, 0.9, 0.5, (reps, n))
        found = relative_decisions(old.run() - old.run(), 0.10, strictness=RELEASE)
        yield Row(
            "release gate, passes an unchanged system",
            f"margin .10, n = {n}",
            share(found, Decision.PASS),
            low=bar,
            replications=reps,
        )


def sequential(rng: np.random.Generator, reps: int) -> Iterator[Row]:
    calls = {120: 0.58, 300: 0.26}
    for n in (45, 60, 120, 300):
        old = Application(rng, 0.9, 0.5, (reps, n))
        for margin in (0.05, 0.10):
            found, used = sequential_decisions(old.run() - old.run(), margin, strictness=SMOKE)
            yield Row(
                "sequential gate, false alarm",
                f"smoke, margin {margin}, n = {n}",
                share(found, Decision.FAIL),
                high=0.055,
                replications=reps,
            )
            if margin == 0.10 and n in calls:
                yield Row(
                    "sequential gate, calls used",
                    f"unchanged system, margin .10, n = {n}",
                    float(used.mean()) / n,
                    high=calls[n],
                    replications=reps,
                    spread=float(used.std()) / n,
                )
            d = old.run(old.broken(margin / 0.9)) - old.run()
            found, _ = sequential_decisions(d, margin, strictness=RELEASE)
            yield Row(
                "sequential gate, false pass",
                f"release, drop = margin {margin}, n = {n}",
                share(found, Decision.PASS),
                high=0.055,
                replications=reps,
            )


def coverage(rng: np.random.Generator, reps: int) -> Iterator[Row]:
    for mean in (0.8, 0.9, 0.97):
        for icc in (0.3, 0.6, 0.9):
            for n in (30, 45, 120):
                means = Application(rng, mean, icc, (reps, n)).run()
                found = effective_wilson(means, n * RUNS, 0.025)
                inside = (found["low"] <= mean) & (mean <= found["high"])
                yield Row(
                    "pass-rate interval with 3 repeats, coverage",
                    f"mean {mean}, ICC {icc}, n = {n}",
                    float(inside.mean()),
                    low=0.92,
                    high=0.98,
                    replications=reps,
                )


def floors(rng: np.random.Generator, reps: int) -> Iterator[Row]:
    """Beyond the design's table: a floor at the truth (see decisions 0010 and 0014)."""
    for rate in (0.8, 0.9, 0.95):
        for n in (30, 60, 120):
            means = Application(rng, rate, 0.5, (reps, n)).run()
            found = effective_wilson(means, n * RUNS, 0.05)
            errors = {
                "proven": ((found["low"] >= rate) & (n >= cases_to_prove(rate)), 0.08),
                "refuted": (found["high"] < rate, 0.07),
            }
            for name, (wrong, bar) in errors.items():
                yield Row(
                    f"floor at the true rate, {name}",
                    f"floor {rate}, n = {n}",
                    float(wrong.mean()),
                    high=bar,
                    replications=reps,
                )
    share, worst = 0.07, 0.5  # most cases at the top of the scale, few far below it
    for n in (60, 120, 300):
        low = rng.random((reps, n)) < share
        scores = np.where(low, rng.uniform(0, worst, low.shape), 1.0)
        truth = 1 - share + share * worst / 2
        yield Row(
            "floor at the true mean of a scale, proven",
            f"floor {truth:.3f}, n = {n}",
            float((mean_bounds(scores, 0.05)[0] >= truth).mean()),
            high=0.06,
            replications=reps,
        )


def family(rng: np.random.Generator, reps: int) -> Iterator[Row]:
    """20 hypotheses on an unchanged system: apart, or 5 criteria in 4 slices of one set."""
    apart = [Application(rng, 0.9, 0.5, (reps, 45)) for _ in range(20)]
    p_apart = np.stack([drop_p(moments(a.run() - a.run())) for a in apart], axis=1)
    slices = np.array_split(np.arange(45), 4)
    d = [a.run() - a.run() for a in apart[:5]]
    p_slices = np.stack([drop_p(moments(x[:, s])) for x in d for s in slices], axis=1)
    for name, p in (("20 criteria", p_apart), ("5 criteria x 4 slices", p_slices)):
        alarms = [any(holm(row).reject) for row in p.tolist()]
        yield Row(
            "Holm family, any false alarm",
            f"{name}, n = 45",
            float(np.mean(alarms)),
            high=0.06,
            replications=reps,
        )


def selection(rng: np.random.Generator, reps: int, k: int = 10) -> Iterator[Row]:
    for n in (30, 45, 120):
        old = Application(rng, 0.9, 0.5, (reps, n))
        tried = np.stack([old.run() for _ in range(k)])
        best = tried.mean(-1).argmax(0)
        d = tried[best, np.arange(reps)] - old.run()
        low, _ = t_bounds(moments(d), 0.05 / k / 2)
        yield Row(
            "winner of 10 equal candidates called IMPROVED",
            f"selection data with k given, n = {n}",
            float((low > 0).mean()),
            high=0.05,
            replications=reps,
        )

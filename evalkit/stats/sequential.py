"""The sequential gate: look after every case, stop when the evidence is there, keep the guarantee.

An e-process is the capital of a gambler who bets against a hypothesis. Under it the capital is a
nonnegative supermartingale of mean at most 1, so it ever reaches 1/a with probability at most a
(Ville), for any distribution on the range and any stopping rule.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evalkit.errors import StatsError
from evalkit.stats.decision import Decision, Strictness
from evalkit.stats.gate import relative_decisions
from evalkit.stats.observations import check_conf

__all__ = [
    "SequentialGate",
    "betting_capital",
    "confidence_sequence",
    "e_process",
    "sequential_decisions",
]

Floats = NDArray[np.float64]
Side = Literal["below", "above"]
GRID = 20
ALPHA = 0.025  # while running; the other half is for the fixed rule when the set is exhausted
WORTH_IT = 100  # fewer cases: stopping saves nothing and half of alpha is spent


def e_process(
    differences: Any, null_mean: float, side: Side, *, grid: int = GRID, total: int | None = None
) -> Floats:
    """Evidence after each case that the mean difference lies on one side of `null_mean`.

    With x = (d+1)/2, m = (mu0+1)/2 and bets c_j = j/(grid+1):
    E_t = mean_j Π (1 + c_j·(m - x)/(1 - m)) for "below", Π (1 + c_j·(x - m)/m) for "above".

    Args:
        differences: On [-1, 1] in the order they were seen, shape (..., n); NaN (a missing
            verdict) leaves the evidence as it is.
        null_mean: mu0, in (-1, 1).
        side: "below" tests H0: mean >= mu0, "above" tests H0: mean <= mu0.
        grid: Number of bets.
        total: Size of the fixed set, for sampling without replacement from these very cases; None
            takes the cases as drawn from a population.

    Returns:
        E_t, shape (..., n).

    Raises:
        StatsError: If a difference is outside [-1, 1], mu0 outside (-1, 1), or total too small.

    Source: Waudby-Smith and Ramdas (2024), JRSS B 86(1), 1-27.
    """
    x, m = _unit(differences, null_mean, total)
    logs = np.full(x.shape, -np.inf)
    for j in range(1, grid + 1):
        path = np.cumsum(_log_growth(x, m, side, j / (grid + 1)), axis=-1)
        logs = np.logaddexp(logs, path)
    return np.exp(np.minimum(logs - math.log(grid), 700.0)).astype(np.float64)


def betting_capital(differences: Any, null_mean: float, side: Side, bet: float) -> Floats:
    """Capital after each case with one fixed bet: Π(1 + bet·(x - m)) above, bet·(m - x) below.

    Arguments and errors as `e_process`; `bet` in [0, 1] keeps the capital positive.
    """
    x, m = _unit(differences, null_mean, None)
    gap = np.where(np.isnan(x), 0.0, x - m)
    return np.cumprod(1 + bet * (gap if side == "above" else -gap), axis=-1).astype(np.float64)


def sequential_decisions(
    differences: Any,
    margin: float,
    *,
    strictness: Strictness,
    alpha_running: float = ALPHA,
    alpha_end: float = ALPHA,
) -> tuple[NDArray[np.str_], NDArray[np.int64]]:
    """Decision and number of cases used for complete sequences of shape (..., n).

    While running: block when the harm process reaches 1/alpha (smoke: mean below 0, release: mean
    below -margin), allow when the evidence for a mean above -margin does; both at once block. At
    the end of the set the fixed rule `relative_decisions` at `alpha_end`.
    """
    d = np.asarray(differences, dtype=float)
    harm = e_process(d, _harm_null(strictness, margin), "below") >= 1 / alpha_running
    safe = e_process(d, -margin, "above") >= 1 / alpha_running
    n = d.shape[-1]
    stop_harm = np.where(harm.any(-1), harm.argmax(-1), n)
    stop_safe = np.where(safe.any(-1), safe.argmax(-1), n)
    end = relative_decisions(d, margin, strictness=strictness, alpha=alpha_end)
    running = np.where(stop_harm <= stop_safe, Decision.FAIL, Decision.PASS)
    stopped = np.minimum(stop_harm, stop_safe)
    return np.where(stopped < n, running, end), np.minimum(stopped + 1, n)


@dataclass
class SequentialGate:
    """The gate while it runs: give it one case difference after the other, in the seeded order.

    `add` returns FAIL or PASS at the case that settles it and None before; `finish` applies the
    fixed rule to what was seen when the set is exhausted. `worse_shown` is true once a drop below
    0 was shown, which alone does not stop a release. Differences are on [-1, 1]; NaN is a missing
    verdict: skipped and counted.
    """

    margin: float
    strictness: Strictness
    alpha_running: float = ALPHA
    alpha_end: float = ALPHA
    decision: Decision | None = None
    n_missing: int = 0
    seen: list[float] = field(default_factory=list[float])
    _capital: dict[str, Floats] = field(default_factory=dict[str, Floats])
    _best: dict[str, float] = field(default_factory=dict[str, float])

    def __post_init__(self) -> None:
        check_conf("the margin", self.margin)
        check_conf("alpha", self.alpha_running)
        for name in self._tests():
            self._capital[name], self._best[name] = np.zeros(GRID), 1.0

    def add(self, difference: float) -> Decision | None:
        """Take the next case; the decision if it is settled now or was before."""
        if self.decision is not None:
            return self.decision
        if math.isnan(difference):
            self.n_missing += 1
            return None
        self.seen.append(difference)
        bets = np.arange(1, GRID + 1) / (GRID + 1)
        for name, (null, side) in self._tests().items():
            x, m = _unit(np.array([difference]), null, None)
            self._capital[name] += _log_growth(x, m, side, bets)
            top = float(self._capital[name].max())
            now = top + math.log(float(np.exp(self._capital[name] - top).mean()))
            self._best[name] = max(self._best[name], math.exp(min(now, 700.0)))
        if self._best["harm"] >= 1 / self.alpha_running:
            self.decision = Decision.FAIL
        elif self._best["safe"] >= 1 / self.alpha_running:
            self.decision = Decision.PASS
        return self.decision

    def finish(self) -> Decision:
        """The decision when no case is left."""
        if self.decision is None:
            self.decision = Decision.UNDECIDED
            if len(self.seen) >= 2:
                found = relative_decisions(
                    self.seen, self.margin, strictness=self.strictness, alpha=self.alpha_end
                )
                self.decision = Decision(str(found))
        return self.decision

    @property
    def worse_shown(self) -> bool:
        """A mean below 0 was shown at some case."""
        return self._best["worse"] >= 1 / self.alpha_running

    def _tests(self) -> dict[str, tuple[float, Side]]:
        return {
            "harm": (_harm_null(self.strictness, self.margin), "below"),
            "safe": (-self.margin, "above"),
            "worse": (0.0, "below"),
        }


def confidence_sequence(
    differences: Any, *, alpha: float = 0.05, step: float = 0.005
) -> tuple[float, float]:
    """Means that neither side has rejected at any case so far, each side at alpha/2; for display.

    Args:
        differences: On [-1, 1] in the order seen, one dimension.
        alpha: Error over both sides and all looks.
        step: Distance of the means tried.

    Raises:
        StatsError: If alpha is outside (0, 1) or a difference outside [-1, 1].
    """
    limit = 2 / check_conf("alpha", alpha)
    d = np.asarray(differences, dtype=float).ravel()
    means = np.arange(-1 + step, 1 - step / 2, step)
    # the evidence grows monotonically in mu0 on either side: bisect instead of trying every mean
    low = _first(means, lambda mu: bool((e_process(d, mu, "above") < limit).all()))
    high = _first(means[::-1], lambda mu: bool((e_process(d, mu, "below") < limit).all()))
    return (low if low > means[0] else -1.0), (high if high < means[-1] else 1.0)


def _first(means: Floats, kept: Any) -> float:
    low, high = 0, len(means) - 1
    while low < high:
        middle = (low + high) // 2
        if kept(float(means[middle])):
            high = middle
        else:
            low = middle + 1
    return float(means[low])


def _harm_null(strictness: Strictness, margin: float) -> float:
    return 0.0 if strictness is Strictness.SMOKE else -margin


def _unit(differences: Any, null_mean: float, total: int | None) -> tuple[Floats, Any]:
    d = np.asarray(differences, dtype=float)
    if np.any(np.abs(d) > 1 + 1e-12):
        raise StatsError("a difference is outside -1..1; scale scores to 0..1 first.")
    if not -1 < null_mean < 1:
        raise StatsError(f"the mean to test, {null_mean:g}, must lie strictly between -1 and 1.")
    if total is None:
        return (d + 1) / 2, (null_mean + 1) / 2
    if total < d.shape[-1]:
        raise StatsError(f"the fixed set has {total} cases, but {d.shape[-1]} were seen.")
    filled = np.nan_to_num(d)
    before = np.cumsum(filled, axis=-1) - filled
    taken = np.cumsum(~np.isnan(d), axis=-1) - ~np.isnan(d)
    left = np.maximum(total - taken, 1)
    return (d + 1) / 2, ((total * null_mean - before) / left + 1) / 2


def _log_growth(x: Floats, m: Any, side: Side, bet: Any) -> Floats:
    """Log of the factor one case brings; huge where the hypothesis has become impossible."""
    m = np.asarray(m, dtype=float)
    room = 1 - m if side == "below" else m
    gap = (m - x) if side == "below" else (x - m)
    possible = room > 1e-12
    growth = np.log1p(bet * np.where(possible, gap, 0.0) / np.where(possible, room, 1.0))
    return np.where(np.isnan(x), 0.0, np.where(possible, growth, 700.0))

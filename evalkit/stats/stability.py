"""What repeats say of single cases: stable, flaky, and whether one or all of k runs pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from evalkit.errors import StatsError
from evalkit.stats.observations import check_conf
from evalkit.stats.repeats import as_observations, clustered_mean
from evalkit.stats.result import Interval

__all__ = ["Stability", "detection_limit", "pass_at_k", "pass_hat_k", "stability"]


@dataclass(frozen=True)
class Stability:
    """Row numbers by what the valid runs of the case did."""

    always_pass: tuple[int, ...]
    always_fail: tuple[int, ...]
    flaky: tuple[int, ...]
    missing: tuple[int, ...]


def stability(scores: Any, *, pass_at: float = 1.0, **how: Any) -> Stability:
    """Sort cases by what their valid runs did: always pass, always fail, flaky, missing.

    Args:
        scores: Case x run, as `observe` takes it, or `Observations`.
        pass_at: Lowest score on [0, 1] that passes.
        how: `status` and `score_range`, as in `observe`.
    """
    seen = as_observations(scores, how.get("status"), how.get("score_range", (0.0, 1.0)))
    some = seen.valid.any(axis=1)
    passing = np.where(seen.valid, seen.values >= pass_at, True).all(axis=1) & some
    failing = np.where(seen.valid, seen.values < pass_at, True).all(axis=1) & some
    groups = (passing, failing, some & ~passing & ~failing, ~some)
    return Stability(*(tuple(int(i) for i in np.flatnonzero(g)) for g in groups))


def detection_limit(rate: float, runs: int) -> float:
    """Chance that a case which passes at this rate shows a failure in so many runs: 1 - q^R."""
    if not 0 <= rate <= 1 or runs < 1:
        raise StatsError(f"a rate in 0..1 and at least one run are needed, not {rate:g}, {runs}.")
    return 1 - rate**runs


def pass_at_k(scores: Any, k: int, *, conf: float = 0.95, **how: Any) -> Interval:
    """Chance that at least one of k runs passes: mean over cases of 1 - C(R-c, k)/C(R, k).

    Args:
        scores: Case x run of pass/fail, as `observe` takes it, or `Observations`.
        k: Runs drawn without replacement, 1..R.
        conf: Confidence level, in (0, 1).
        how: `status` and `score_range`, as in `observe`.

    Returns:
        t interval over cases. A case with fewer than k valid runs is left out and counted in
        extra["n_missing_cases"].

    Raises:
        StatsError: If k exceeds the planned runs of every case, or scores are not pass/fail.

    Source: Chen et al. (2021), arXiv:2107.03374.
    """
    return _of_k(scores, k, conf, how, "pass_at_k", lambda r, c: 1 - _choose_ratio(r - c, r, k))


def pass_hat_k(scores: Any, k: int, *, conf: float = 0.95, **how: Any) -> Interval:
    """Chance that all of k runs pass (pass^k): mean over cases of C(c, k)/C(R, k).

    Arguments, result and errors as `pass_at_k`. Not (c/R)^k, which is biased.

    Source: Yao et al. (2024), arXiv:2406.12045.
    """
    return _of_k(scores, k, conf, how, "pass_hat_k", lambda r, c: _choose_ratio(c, r, k))


def _choose_ratio(top: int, whole: int, k: int) -> float:
    return math.comb(top, k) / math.comb(whole, k)


def _of_k(
    scores: Any,
    k: int,
    conf: float,
    how: Mapping[str, Any],
    name: str,
    value: Callable[[int, int], float],
) -> Interval:
    seen = as_observations(scores, how.get("status"), how.get("score_range", (0.0, 1.0)))
    check_conf("conf", conf)
    if not seen.binary:
        raise StatsError(f"{name} needs pass/fail scores; say from which score a run passes.")
    most = int(seen.planned.sum(axis=1).max(initial=0))
    if not 1 <= k <= most:
        raise StatsError(f"k is {k}, but a case has {most} runs; k must lie in 1..{most}.")
    runs = seen.valid.sum(axis=1)
    passed = np.nansum(seen.values, axis=1)
    enough = runs >= k
    of_k = [value(int(r), int(c)) for r, c in zip(runs[enough], passed[enough], strict=True)]
    found = clustered_mean(of_k, conf=conf)
    return Interval(
        found.estimate,
        max(found.ci_low, 0.0),
        min(found.ci_high, 1.0),
        conf,
        name,
        n_cases=len(of_k),
        n_runs=int(runs[enough].sum()),
        n_missing=seen.n_missing,
        n_invalid=seen.n_invalid,
        status=found.status,
        reasons=found.reasons,
        extra={"se": found.extra["se"], "k": k, "n_missing_cases": int((~enough).sum())},
    )

"""What a statistic costs beside what a user would pick: scikit-learn, scipy, krippendorff.

    python tests/bench/bench_statistics.py [repeats]

Rows for `make bench`: each is our time over theirs, in the same run, on the same data, medians of
the repeats after one warm-up. Both must give the same number before a time counts.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import bootstrap, permutation_test
from sklearn.metrics import cohen_kappa_score

from evalkit.stats.bootstrap import bootstrap_mean_interval
from evalkit.stats.kappa import bootstrap_kappa, quadratic_weighted_kappa
from evalkit.stats.permutation import sign_flip_p
from evalkit.stats.raters import krippendorff_alpha

BANDS, N, DRAWS = (0, 1, 2, 3, 4), 1000, 10_000
SQUARES = np.subtract.outer(BANDS, BANDS) ** 2.0


def seconds(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Median time of the work, and what it returned."""
    found, times = work(), []
    for _ in range(repeats):
        start = time.perf_counter()
        found = work()
        times.append(time.perf_counter() - start)
    return statistics.median(times), found


def row(what: str, ours: float, theirs: float, faster: float) -> dict[str, Any]:
    """Our time over theirs, against the share the design allows."""
    target = 1 / faster
    return {
        "what": f"{what}: ours / theirs",
        "value": round(ours / theirs, 5),
        "target": round(target, 5),
        "unit": "x",
        "met": ours / theirs <= target,
        "ms": round(1000 * ours, 3),
        "their_ms": round(1000 * theirs, 3),
    }


def alike(ours: float, theirs: float, tolerance: float) -> None:
    """Stop when the two do not measure the same thing."""
    if not math.isclose(ours, theirs, rel_tol=0, abs_tol=tolerance):
        raise SystemExit(f"the numbers differ: {ours} and {theirs}; no time is worth printing")


def qwk_along(x: Any, y: Any, axis: int = -1) -> Any:
    """The vectorised statistic a careful user hands to scipy.stats.bootstrap."""
    counts = np.stack([((x == i) & (y == j)).sum(axis) for i in BANDS for j in BANDS], -1)
    o = counts.reshape(*counts.shape[:-1], len(BANDS), len(BANDS)).astype(float)
    e = o.sum(-1)[..., :, None] * o.sum(-2)[..., None, :] / o.sum((-1, -2))[..., None, None]
    return 1 - (SQUARES * o).sum((-1, -2)) / (SQUARES * e).sum((-1, -2))


def kappa_rows(repeats: int) -> list[dict[str, Any]]:
    """Quadratic weighted kappa, and its bootstrap interval."""
    rng = np.random.default_rng(1)
    a = rng.integers(0, 5, N)
    b = np.clip(a + rng.integers(-1, 2, N), 0, 4)
    ours, mine = seconds(lambda: quadratic_weighted_kappa(a, b, BANDS), 10 * repeats)
    theirs, value = seconds(lambda: cohen_kappa_score(a, b, weights="quadratic"), 10 * repeats)
    alike(mine.estimate, float(value), 1e-12)
    rows = [row(f"quadratic weighted kappa, n = {N}", ours, theirs, 30)]
    ours, mine = seconds(lambda: bootstrap_kappa(a, b, BANDS, n_boot=DRAWS), 5 * repeats)
    how: dict[str, Any] = {"paired": True, "vectorized": True, "method": "percentile"}
    theirs, found = seconds(
        lambda: bootstrap((a, b), qwk_along, n_resamples=DRAWS, batch=500, rng=2, **how), repeats
    )
    alike(mine.ci_low, float(found.confidence_interval.low), 0.005)
    return [*rows, row(f"QWK bootstrap, n = {N}, B = {DRAWS}", ours, theirs, 10)]


def difference_rows(repeats: int) -> list[dict[str, Any]]:
    """Bootstrap of a binary mean difference, and sign flips."""
    rng = np.random.default_rng(4)
    old = (rng.random(N) < 0.72).astype(float)
    binary = np.clip(old + rng.choice([-1, 0, 0, 0, 1], N), 0, 1) - old
    repeated = (rng.binomial(3, 0.72, N) - rng.binomial(3, 0.7, N)) / 3
    ours, mine = seconds(
        lambda: bootstrap_mean_interval(binary, method="percentile", draws=DRAWS), 5 * repeats
    )
    theirs, found = seconds(
        lambda: bootstrap(
            (binary,), np.mean, n_resamples=DRAWS, vectorized=True, method="percentile", rng=5
        ),
        repeats,
    )
    alike(mine.ci_low, float(found.confidence_interval.low), 0.004)
    rows = [row(f"binary mean difference bootstrap, B = {DRAWS}", ours, theirs, 20)]
    for name, d, faster in (
        ("binary, one run (exact)", binary, 200),
        ("binary, three runs", repeated, 50),
        ("continuous", rng.normal(0.05, 1, N), 50),
    ):
        ours, p = seconds(lambda d=d: sign_flip_p(d, draws=DRAWS), 5 * repeats)
        theirs, test = seconds(
            lambda d=d: permutation_test(
                (d, np.zeros(N)),
                lambda x, y, axis: np.mean(x - y, axis=axis),
                permutation_type="samples",
                vectorized=True,
                n_resamples=DRAWS,
                batch=500,
                rng=8,
            ),
            1,
        )
        alike(p, float(test.pvalue), 0.02)
        rows.append(row(f"paired permutation, {name}, {DRAWS} flips", ours, theirs, faster))
    return rows


def alpha_rows(repeats: int) -> list[dict[str, Any]]:
    """Krippendorff's alpha of 5 raters; nothing where the `krippendorff` package is absent."""
    try:
        import krippendorff
    except ImportError:
        return []
    rng = np.random.default_rng(10)
    ratings = np.clip(rng.integers(0, 5, 10_000) + rng.integers(-1, 2, (5, 10_000)), 0, 4)
    given = np.where(rng.random(ratings.shape) < 0.05, np.nan, ratings.astype(float))
    rows: list[dict[str, Any]] = []
    for level in ("nominal", "ordinal", "interval"):
        ours, mine = seconds(
            lambda level=level: krippendorff_alpha(given, BANDS, distance=level, n_boot=0), repeats
        )
        theirs, value = seconds(
            lambda level=level: krippendorff.alpha(given, level_of_measurement=level), repeats
        )
        alike(mine.estimate, float(value), 1e-9)
        rows.append(row(f"Krippendorff's alpha, {level}, 5 x 10,000", ours, theirs, 1))
    return rows


def main(repeats: int = 5) -> list[dict[str, Any]]:
    """Measure everything; the rows of the table."""
    return [*kappa_rows(repeats), *difference_rows(repeats), *alpha_rows(repeats)]


if __name__ == "__main__":
    for line in main(int(sys.argv[1]) if len(sys.argv) > 1 else 5):
        print(json.dumps(line))

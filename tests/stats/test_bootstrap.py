from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import bootstrap

from evalkit.errors import StatsError
from evalkit.stats.bootstrap import (
    bca_interval,
    bootstrap_mean_interval,
    bootstrap_means,
    percentile_interval,
    resample_counts,
)
from evalkit.stats.result import Status

RNG = np.random.default_rng(7)
FEW = RNG.choice([-1.0, 0.0, 1.0], 300, p=[0.1, 0.7, 0.2])
MANY = RNG.normal(0.1, 1.0, 300)


def test_resampled_tables_keep_their_shape_and_their_sum() -> None:
    counts = np.array([[3, 0, 4], [1, 2, 0]])
    drawn = resample_counts(counts, 500, np.random.default_rng(0))
    assert drawn.shape == (500, 2, 3)
    assert np.all(drawn.sum(axis=(1, 2)) == 10)
    assert np.all(drawn[:, counts == 0] == 0)
    assert drawn.mean(axis=0) == pytest.approx(counts, abs=0.3)


@pytest.mark.parametrize("values", [FEW, MANY], ids=["few values", "many values"])
def test_counted_resamples_have_the_error_of_the_mean(values) -> None:
    means = bootstrap_means(values, 20_000, np.random.default_rng(1))
    assert means.mean() == pytest.approx(values.mean(), abs=0.002)
    assert means.std() == pytest.approx(values.std() / math.sqrt(300), rel=0.03)


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("values", [FEW, MANY], ids=["few values", "many values"])
def test_intervals_agree_with_scipys_bootstrap(values, method) -> None:
    theirs = bootstrap(
        (values,), np.mean, method={"bca": "BCa"}.get(method, method), n_resamples=20_000, rng=3
    ).confidence_interval
    found = bootstrap_mean_interval(values, method=method, draws=20_000, seed=5)
    assert found.ci_low == pytest.approx(theirs.low, abs=0.006)
    assert found.ci_high == pytest.approx(theirs.high, abs=0.006)


def test_the_seed_decides_and_is_kept() -> None:
    one, two, other = (bootstrap_mean_interval(MANY, seed=s) for s in (4, 4, 5))
    assert one == two
    assert one.seed == 4
    assert one.ci_low != other.ci_low


def test_missing_is_counted_and_what_has_no_variance_has_no_bootstrap() -> None:
    found = bootstrap_mean_interval([*FEW, math.nan])
    assert (found.n_cases, found.n_missing) == (300, 1)
    assert bootstrap_mean_interval([1.0] * 9).status is Status.DEGENERATE
    assert math.isnan(bootstrap_mean_interval([1.0] * 9).ci_low)
    assert bootstrap_mean_interval([math.nan]).status is Status.INSUFFICIENT_DATA
    assert bootstrap_mean_interval([0.0, 1.0, 0.5]).reasons == ("n_lt_20",)
    assert percentile_interval([math.nan]) == pytest.approx((math.nan, math.nan), nan_ok=True)
    assert math.isnan(bca_interval(9.0, FEW, FEW)[0])
    with pytest.raises(StatsError, match="finite"):
        bootstrap_mean_interval([math.inf, 1])


def test_importing_the_room_loads_neither_scipy_nor_pandas_nor_sklearn() -> None:
    code = (
        "import importlib, pkgutil, sys, evalkit.stats as room\n"
        "for module in pkgutil.iter_modules(room.__path__):\n"
        "    importlib.import_module(f'evalkit.stats.{module.name}')\n"
        "print([x for x in ('scipy', 'pandas', 'sklearn') if x in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from evalkit.errors import StatsError
from evalkit.stats.correlation import (
    kendall_tau_b,
    mid_ranks,
    partial_spearman,
    pearson,
    spearman,
)
from evalkit.stats.result import Status

score = st.integers(-5, 5).map(float)
lists = st.lists(st.tuples(score, score), min_size=4, max_size=40)


@given(lists)
def test_correlations_equal_scipy(rated: list[tuple[float, float]]) -> None:
    x, y = np.array(rated).T
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert math.isnan(spearman(x, y).estimate)
        return
    assert pearson(x, y).estimate == pytest.approx(scipy.stats.pearsonr(x, y)[0], abs=1e-9)
    assert spearman(x, y).estimate == pytest.approx(scipy.stats.spearmanr(x, y)[0], abs=1e-9)
    assert kendall_tau_b(x, y) == pytest.approx(scipy.stats.kendalltau(x, y)[0], abs=1e-12)
    assert mid_ranks(x).tolist() == scipy.stats.rankdata(x).tolist()


@given(lists)
def test_rank_correlation_ignores_rising_maps_and_signs_flip_it(
    rated: list[tuple[float, float]],
) -> None:
    x, y = np.array(rated).T
    one = spearman(x, y)
    other, turned = spearman(np.exp(x), 7 * y + 3), spearman(-x, y)
    assert other.estimate == pytest.approx(one.estimate, abs=1e-12, nan_ok=True)
    assert other.ci_low == pytest.approx(one.ci_low, abs=1e-9, nan_ok=True)
    assert turned.estimate == pytest.approx(-one.estimate, abs=1e-12, nan_ok=True)
    assert turned.ci_low == pytest.approx(-one.ci_high, abs=1e-9, nan_ok=True)


def test_a_perfect_correlation_still_has_a_lower_end() -> None:
    few, many = spearman(range(10), range(10)), spearman(range(100), range(100))
    assert few.estimate == many.estimate == 1.0
    assert few.ci_low < many.ci_low < 1.0
    assert few.status is Status.DEGENERATE
    falling = spearman(range(10), range(10, 0, -1))
    assert (falling.estimate, falling.ci_low) == (-1.0, -1.0)
    assert falling.ci_high == pytest.approx(-few.ci_low)


def test_undefined_correlations_say_why() -> None:
    assert spearman([1, 2, 3], [2, 2, 2]).reasons == ("constant_y",)
    assert pearson([1, 1, 1], [1, 2, 3]).reasons == ("constant_x",)
    assert pearson([1], [2]).reasons == ("n_lt_2",)
    assert pearson([1, 2, 4], [1, 3, 3]).reasons == ("too_few_for_interval",)
    assert partial_spearman([1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3, 4]).reasons == ("collinear",)
    assert math.isnan(kendall_tau_b([1, 1], [1, 2]))


def test_gaps_are_left_out_and_counted() -> None:
    x, y = [1, 2, math.nan, 4, 5], [2, 1, 3, 5, math.nan]
    found = spearman(x, y)
    assert (found.n_cases, found.n_missing) == (3, 2)
    assert found.estimate == spearman([1, 2, 4], [2, 1, 5]).estimate


def test_malformed_lists_are_refused() -> None:
    with pytest.raises(StatsError, match="equally long"):
        pearson([1, 2], [1])
    with pytest.raises(StatsError, match="infinite"):
        spearman([1, math.inf], [1, 2])

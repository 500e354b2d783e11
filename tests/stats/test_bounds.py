from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import ttest_1samp

from evalkit.stats.bounds import mean_bounds, one_sided_bounds
from evalkit.stats.observations import observe

NAN = math.nan
shapes = st.tuples(st.integers(2, 25), st.integers(1, 4))
grades = hnp.arrays(np.float64, shapes, elements=st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]))


def test_one_sided_bounds_are_exact_with_one_run() -> None:
    low, high = one_sided_bounds(observe([1] * 59), 0.05)
    assert low == pytest.approx(0.05 ** (1 / 59))
    assert high == 1
    assert one_sided_bounds(observe([[NAN]]), 0.05) == pytest.approx((NAN, NAN), nan_ok=True)
    assert one_sided_bounds(observe([[1, 0]]), 0.05) == pytest.approx((NAN, NAN), nan_ok=True)


@given(grades, st.sampled_from([0.01, 0.05, 0.2]))
def test_the_bounds_of_a_mean_hold_it_and_the_lower_is_never_bolder_than_t(scores, alpha) -> None:
    means = scores.mean(axis=1)
    low, high = mean_bounds(means, alpha)
    assert low <= means.mean() + 1e-12
    assert high >= means.mean() - 1e-12
    if means.std() > 0:
        theirs = ttest_1samp(means, 0).confidence_interval(1 - 2 * alpha)
        assert low <= theirs.low + 1e-9
        assert high == pytest.approx(theirs.high)


def test_few_bad_cases_among_many_perfect_ones_do_not_prove_a_floor_too_early() -> None:
    means = np.array([1.0] * 58 + [0.4, 0.4])
    low, _ = mean_bounds(means, 0.05)
    t_low = ttest_1samp(means, 0).confidence_interval(0.90).low
    assert low < t_low - 0.005

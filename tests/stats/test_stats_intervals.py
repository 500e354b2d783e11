from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom, binomtest, norm, t

from evalkit.errors import EvalkitError, StatsError
from evalkit.stats import quantiles
from evalkit.stats.intervals import (
    cases_to_prove,
    clopper_pearson_interval,
    exact_lower_bound,
    exact_p_at_least,
    exact_upper_bound,
    jeffreys_interval,
    kish_effective_size,
    unseen_share,
    wilson_bounds,
    wilson_interval,
)
from evalkit.stats.result import Status

INTERVALS = (wilson_interval, clopper_pearson_interval, jeffreys_interval)
counts = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
levels = st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99])


def test_quantiles_are_those_of_scipy_stats() -> None:
    assert quantiles.normal_quantile(0.975) == pytest.approx(norm.ppf(0.975), rel=1e-12)
    assert quantiles.normal_tail(1.2) == pytest.approx(norm.sf(1.2), rel=1e-12)
    assert quantiles.t_quantile(7, 0.95) == pytest.approx(t.ppf(0.95, 7), rel=1e-10)
    assert quantiles.t_below(7, 1.3) == pytest.approx(t.cdf(1.3, 7), rel=1e-10)
    assert quantiles.beta_quantile(3, 4.5, 0.1) == pytest.approx(beta.ppf(0.1, 3, 4.5), rel=1e-10)
    for k in range(-1, 13):
        expected = binom.sf(k - 1, 11, 0.3)
        assert quantiles.binomial_tail(k, 11, 0.3) == pytest.approx(expected, abs=1e-13)


@given(counts, levels)
def test_wilson_and_exact_are_those_of_scipy(kn: tuple[int, int], level: float) -> None:
    test = binomtest(*kn)
    for ours, method in ((wilson_interval, "wilson"), (clopper_pearson_interval, "exact")):
        found, theirs = ours(*kn, level=level), test.proportion_ci(level, method)
        assert found.ci_low == pytest.approx(theirs.low, abs=1e-9)
        assert found.ci_high == pytest.approx(theirs.high, abs=1e-9)


@pytest.mark.parametrize("interval", INTERVALS)
@given(kn=counts, level=levels)
def test_ends_lie_in_the_range_around_the_estimate_and_mirror(interval, kn, level) -> None:
    k, n = kn
    found, mirrored = interval(k, n, level=level), interval(n - k, n, level=level)
    assert 0 <= found.ci_low <= found.estimate <= found.ci_high <= 1
    assert found.ci_low == pytest.approx(1 - mirrored.ci_high, abs=1e-9)
    wider = interval(k, n, level=(1 + level) / 2)
    assert wider.ci_low <= found.ci_low + 1e-12
    assert wider.ci_high >= found.ci_high - 1e-12
    assert found.ci_high - found.ci_low > 0


@pytest.mark.parametrize("interval", INTERVALS)
def test_no_case_is_nan_with_a_reason_and_nonsense_raises(interval) -> None:
    none = interval(0, 0)
    assert math.isnan(none.estimate)
    assert math.isnan(none.ci_low)
    assert none.status is Status.INSUFFICIENT_DATA
    assert none.reasons == ("no_cases",)
    for bad in ((3, 2), (-1, 2), (1, -1)):
        with pytest.raises(StatsError, match="cannot have passed"):
            interval(*bad)
    with pytest.raises(ValueError, match="strictly between"):
        interval(1, 2, level=95)
    assert issubclass(StatsError, EvalkitError)


def exact_coverage(n: int, p: float) -> float:
    k = np.arange(n + 1)
    low, high = wilson_bounds(k / n, n, norm.ppf(0.975))
    return float(binom.pmf(k, n, p)[(low <= p) & (p <= high)].sum())


def test_wilson_covers_as_the_design_measured_it() -> None:
    shares = [exact_coverage(30, p) for p in np.arange(0.50, 0.9901, 0.001)]
    assert np.mean(shares) == pytest.approx(0.953, abs=0.002)
    assert min(shares) > 0.88


def test_all_passing_proves_no_more_than_alpha_to_one_over_n() -> None:
    assert exact_lower_bound(45, 45) == pytest.approx(0.05 ** (1 / 45), rel=1e-9)
    assert round(exact_lower_bound(45, 45), 3) == 0.936
    assert exact_upper_bound(45, 45) == 1.0
    assert exact_lower_bound(0, 45) == 0.0
    assert math.isnan(exact_lower_bound(0, 0))
    assert math.isnan(exact_upper_bound(0, 0))


@pytest.mark.parametrize(("floor", "n"), [(0.90, 29), (0.95, 59), (0.98, 149), (0.99, 299)])
def test_fewest_cases_that_can_prove_a_floor(floor: float, n: int) -> None:
    assert cases_to_prove(floor) == n
    assert exact_lower_bound(n, n) >= floor > exact_lower_bound(n - 1, n - 1)


@given(st.floats(0.01, 0.99), st.floats(0.01, 0.5))
def test_the_fewest_cases_are_enough_and_one_less_is_not(floor: float, alpha: float) -> None:
    n = cases_to_prove(floor, alpha)
    assert alpha ** (1 / n) >= floor - 1e-9
    assert n == 1 or alpha ** (1 / (n - 1)) < floor + 1e-9


def test_p_against_chance() -> None:
    assert exact_p_at_least(2, 2) == 0.25
    assert exact_p_at_least(0, 4) == 1.0
    with pytest.raises(StatsError, match="is outside"):
        exact_p_at_least(1, 2, 1.5)


def test_unseen_share_and_kish() -> None:
    assert unseen_share(1) == 0.95
    with pytest.raises(StatsError, match="at least 1"):
        unseen_share(0)
    assert kish_effective_size([2.0] * 7) == pytest.approx(7)
    assert math.isnan(kish_effective_size([0, 0]))
    for bad in ([1, -1], [1, math.nan], [math.inf]):
        with pytest.raises(StatsError, match="weight"):
            kish_effective_size(bad)
    with pytest.raises(StatsError, match="strictly between"):
        cases_to_prove(1.0)

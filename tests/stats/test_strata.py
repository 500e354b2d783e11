from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.errors import StatsError
from evalkit.stats.repeats import clustered_mean
from evalkit.stats.result import Status
from evalkit.stats.strata import allocate, stratified_mean

sizes = st.lists(st.integers(0, 60), min_size=1, max_size=7).map(
    lambda found: {f"s{i}": size for i, size in enumerate(found)}
)
methods = st.sampled_from(["proportional", "equal"])


@given(sizes, st.integers(0, 300), methods)
def test_allocation_adds_up_within_the_limits_or_says_why_not(sizes, n, method) -> None:
    least = sum(min(2, size) for size in sizes.values())
    if min(n, sum(sizes.values())) < least or (not sum(sizes.values()) and n):
        if n < least:
            with pytest.raises(ValueError, match="merge strata"):
                allocate(n, sizes, method=method)
        return
    got = allocate(n, sizes, method=method)
    assert list(got) == list(sizes)
    assert sum(got.values()) == min(n, sum(sizes.values()))
    assert all(min(2, sizes[h]) <= k <= sizes[h] for h, k in got.items())


def test_a_mix_decides_and_not_the_sizes() -> None:
    stock = {"easy": 500, "ambiguous": 500, "no_answer": 500, "adversarial": 500}
    mix = {"easy": 0.40, "ambiguous": 0.25, "no_answer": 0.20, "adversarial": 0.15}
    got = allocate(60, stock, mix)
    assert got == {"easy": 24, "ambiguous": 15, "no_answer": 12, "adversarial": 9}


@pytest.mark.parametrize(
    ("n", "stock", "weights", "says"),
    [
        (-1, {"a": 3}, None, "0 or more"),
        (9, {"a": -3, "b": 9}, None, "0 or more"),
        (5, {"a": 9}, {"b": 1}, "different strata"),
        (5, {"a": 9}, {"a": -1}, "not all 0"),
        (5, {"a": 9}, {"a": 0}, "not all 0"),
    ],
)
def test_an_impossible_allocation_is_refused(n, stock, weights, says) -> None:
    with pytest.raises(StatsError, match=says):
        allocate(n, stock, weights)
    with pytest.raises(StatsError, match="proportional or equal"):
        allocate(5, {"a": 9}, method="neyman")


def test_an_unweighted_mean_of_equal_parts_is_off_and_the_weighted_one_is_not() -> None:
    weights = {"easy": 40, "ambiguous": 25, "no_answer": 20, "adversarial": 15}
    rates = {"easy": 0.95, "ambiguous": 0.75, "no_answer": 0.90, "adversarial": 0.60}
    scores = {h: [1] * round(20 * r) + [0] * round(20 * (1 - r)) for h, r in rates.items()}
    found = stratified_mean(scores, weights)
    truth = sum(weights[h] * rates[h] for h in weights) / 100
    assert found.estimate == pytest.approx(truth)
    assert found.extra["unweighted"] - truth == pytest.approx(-0.0375)
    assert found.extra["strata"]["easy"] == {"mean": 0.95, "n": 20, "weight": 0.4}


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=3, max_size=30))
def test_one_stratum_is_the_plain_mean(scores) -> None:
    found, plain = stratified_mean({"all": scores}, {"all": 1}), clustered_mean(scores)
    assert found.estimate == pytest.approx(plain.estimate)
    if found.status is Status.OK:
        assert found.extra["se"] == pytest.approx(plain.extra["se"])
        assert found.ci_low == pytest.approx(plain.ci_low)
    else:
        assert found.reasons == ("zero_variance",)
        assert found.ci_low < found.ci_high


def test_an_empty_stratum_is_undefined_and_never_left_out_of_the_weights() -> None:
    found = stratified_mean({"a": [1, 0, 1], "b": [None, None]}, {"a": 90, "b": 10})
    assert math.isnan(found.estimate)
    assert found.status is Status.UNDEFINED
    assert found.reasons == ("empty_stratum",)
    assert found.n_missing == 2


def test_a_single_case_has_no_error_until_its_stratum_is_merged() -> None:
    scores = {"a": [1, 0, 1, 1], "b": [1], "c": [0, 1]}
    weights = {"a": 50, "b": 30, "c": 20}
    alone = stratified_mean(scores, weights)
    assert alone.reasons == ("singleton_stratum",)
    assert not math.isnan(alone.estimate)
    assert math.isnan(alone.ci_low)
    merged = stratified_mean(scores, weights, collapse={"b+c": ["b", "c"]})
    assert merged.status is Status.OK
    assert merged.estimate == pytest.approx(0.5 * 0.75 + 0.5 * 2 / 3)
    with pytest.raises(StatsError, match="not there"):
        stratified_mean(scores, weights, collapse={"x": ["y"]})


def test_a_set_that_was_run_whole_has_no_sampling_error() -> None:
    census = stratified_mean({"a": [1, 0], "b": [1, 1, 1]}, {"a": 2, "b": 3}, fpc=True)
    assert (census.ci_low, census.ci_high) == (census.estimate, census.estimate)
    assert census.scope == "fixed_set"
    with pytest.raises(StatsError, match="more sampled cases"):
        stratified_mean({"a": [1, 0]}, {"a": 1}, fpc=True)


def test_a_rate_near_one_keeps_its_wilson_interval_in_the_range() -> None:
    rng = np.random.default_rng(0)
    scores = {h: (rng.random(20) < 0.95).astype(float) for h in "abc"}
    found = stratified_mean(scores, {"a": 5, "b": 3, "c": 2}, method="wilson")
    assert 0 < found.ci_low < found.estimate < found.ci_high < 1
    sure = stratified_mean({"a": [1] * 10, "b": [1] * 10}, {"a": 1, "b": 1}, method="wilson")
    assert 0.8 < sure.ci_low < sure.ci_high == 1


def test_units_do_not_matter_and_names_must_fit() -> None:
    scores, weights = {"a": [1, 3, 5], "b": [2, 2, 4]}, {"a": 3, "b": 1}
    found = stratified_mean(scores, weights, score_range=(1, 5))
    unit = stratified_mean({h: (np.array(s) - 1) / 4 for h, s in scores.items()}, weights)
    assert found.estimate == pytest.approx(1 + 4 * unit.estimate)
    assert found.ci_high == pytest.approx(1 + 4 * unit.ci_high)
    with pytest.raises(StatsError, match="different strata"):
        stratified_mean(scores, {"a": 1})

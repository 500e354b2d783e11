from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from evalkit.errors import StatsError
from evalkit.stats.intervals import wilson_interval
from evalkit.stats.observations import runs_by_case
from evalkit.stats.repeats import (
    clustered_mean,
    effective_wilson,
    pass_rate,
    pooled_rate,
    variance_components,
)
from evalkit.stats.result import Status

NAN = math.nan
shapes = st.tuples(st.integers(2, 25), st.integers(1, 4))
passes = hnp.arrays(np.float64, shapes, elements=st.sampled_from([0.0, 1.0]))
with_gaps = hnp.arrays(np.float64, shapes, elements=st.sampled_from([0.0, 1.0, NAN]))
grades = hnp.arrays(np.float64, shapes, elements=st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]))


def ends(found):
    return (found.estimate, found.ci_low, found.ci_high)


@given(with_gaps, st.randoms(use_true_random=False))
def test_neither_the_order_of_cases_nor_of_runs_matters(scores, random) -> None:
    rows = [random.sample(list(r), len(r)) for r in random.sample(list(scores), len(scores))]
    assert ends(pass_rate(rows)) == pytest.approx(ends(pass_rate(scores)), nan_ok=True)


@given(grades, st.sampled_from([(1.0, 5.0), (0.0, 100.0), (-1.0, 1.0)]))
def test_units_do_not_matter(scores, score_range) -> None:
    low, high = score_range
    here = pass_rate(scores, binary=False)
    there = pass_rate(scores * (high - low) + low, binary=False, score_range=score_range)
    back = [x * (high - low) + low for x in ends(here)]
    assert ends(there) == pytest.approx(back, abs=1e-9)
    assert there.extra["se"] == pytest.approx(here.extra["se"] * (high - low), abs=1e-9)


@given(with_gaps, st.sampled_from(["population", "fixed_set"]))
def test_every_end_stays_in_the_range_and_missing_is_counted(scores, scope) -> None:
    found = pass_rate(scores, scope=scope)
    assert found.scope == scope
    assert found.n_missing == np.isnan(scores).sum()
    assert found.n_runs == (~np.isnan(scores)).sum()
    assert found.n_cases + found.extra["n_missing_cases"] == len(scores)
    for x in ends(found):
        assert math.isnan(x) or -1e-12 <= x <= 1 + 1e-12
    if not math.isnan(found.ci_low):
        assert found.ci_low - 1e-12 <= found.estimate <= found.ci_high + 1e-12
    if found.n_missing:
        worst, best = found.bounds
        assert worst <= best
    else:
        assert found.bounds is None


@given(passes)
def test_mirrored_scores_give_the_mirrored_interval(scores) -> None:
    here, there = pass_rate(scores), pass_rate(1 - scores)
    assert here.ci_low == pytest.approx(1 - there.ci_high, abs=1e-9)


def test_nothing_measured_is_nan_and_says_so() -> None:
    for nothing in (np.full((3, 2), NAN), [], [[], []]):
        found = pass_rate(nothing)
        assert math.isnan(found.estimate)
        assert found.status is Status.INSUFFICIENT_DATA
        assert found.as_json()["estimate"] is None
    assert pass_rate(np.full((3, 2), NAN)).n_missing == 6


def test_one_run_per_case_is_the_plain_wilson_interval() -> None:
    found, plain = pass_rate([1] * 28 + [0] * 2), wilson_interval(28, 30)
    assert ends(found) == pytest.approx(ends(plain))
    assert math.isnan(found.extra["var_within"])
    assert found.method == "wilson"


def test_repeats_are_not_cases() -> None:
    one = pass_rate([[1]] * 40 + [[0]] * 10)
    three = pass_rate([[1, 1, 1]] * 40 + [[0, 0, 0]] * 10)
    assert three.extra["n_eff"] == pytest.approx(50, rel=0.03)
    assert three.ci_high - three.ci_low == pytest.approx(one.ci_high - one.ci_low, rel=0.05)


def test_all_pass_counts_the_cases_and_not_the_runs() -> None:
    assert pass_rate(np.ones((10, 3))).extra["n_eff"] == 10


def test_one_case_with_repeats_has_an_estimate_and_no_interval() -> None:
    found = pass_rate([[1, 0, 1]])
    assert found.estimate == pytest.approx(2 / 3)
    assert math.isnan(found.ci_low)
    assert found.reasons == ("n_lt_2",)


def test_ragged_rows_are_not_missing_but_a_hole_is() -> None:
    assert pass_rate([[1, 1, 0], [1], [0, 1]]).n_missing == 0
    found = pass_rate([[1, 1, None], [1], [0, NAN]])
    assert found.n_missing == 2
    assert found.bounds == pytest.approx(((2 / 3 + 1 + 0) / 3, (1 + 1 + 0.5) / 3))


def test_a_system_error_scores_lowest_and_a_lost_verdict_is_missing() -> None:
    words = [["ok", "system_error"], ["judge_invalid", "ok"], ["skipped", "skipped"]]
    found = pass_rate([[5, NAN], [NAN, 3], [NAN, NAN]], status=words, score_range=(1, 5))
    assert found.estimate == pytest.approx(3.0)  # (5 + 1)/2 and 3
    assert (found.n_missing, found.n_invalid) == (3, 1)
    assert found.extra["n_system_error"] == 1


@pytest.mark.parametrize(
    ("scores", "how", "says"),
    [
        ([[1.2]], {}, "outside 0..1"),
        ([[math.inf]], {}, "outside"),
        ([[-1]], {"score_range": (1, 5)}, "outside 1..5"),
        ([[1]], {"score_range": (1, 1)}, "range"),
        ([["x"]], {}, "not a row of numbers"),
        ([[NAN]], {"status": [["ok"]]}, "no score"),
        ([[1]], {"status": [["fine"]]}, "none of"),
        ([[1, 1]], {"status": [["ok"]]}, "another shape"),
        ([[1]], {"conf": 95}, "strictly between"),
        ([[0.5]], {"binary": True}, "binary"),
        ([[1], [1]], {"clusters": ["a"]}, "one per case"),
    ],
)
def test_malformed_input_says_what_is_wrong(scores, how, says) -> None:
    with pytest.raises(StatsError, match=says):
        pass_rate(scores, **how)


def test_cases_of_one_cluster_are_one_unit() -> None:
    scores = [[1, 1], [1, 0], [0, 0], [1, 1]]
    found = pass_rate(scores, clusters=["a", "a", "b", "c"])
    assert found.n_cases == 3
    assert found.estimate == pytest.approx((0.75 + 0 + 1) / 3)
    copied = pass_rate(scores * 5, clusters=["a", "b", "c", "d"] * 5)
    assert copied.n_cases == 4
    assert copied.estimate == pass_rate(scores).estimate


def test_run_noise_of_a_fixed_set_leaves_the_cases_out() -> None:
    rng = np.random.default_rng(3)
    p = rng.choice([0.0, 0.5, 1.0], 60)
    scores = rng.binomial(1, p[:, None], (60, 3)).astype(float)
    fixed, wide = pass_rate(scores, scope="fixed_set"), pass_rate(scores)
    within = variance_components(scores).var_within
    assert fixed.extra["se"] == pytest.approx(math.sqrt(within / 180))
    assert fixed.ci_high - fixed.ci_low < wide.ci_high - wide.ci_low
    one = pass_rate(scores[:, :1], scope="fixed_set")
    assert one.status is Status.UNDEFINED
    assert one.reasons == ("one_run",)
    same = pass_rate([[1, 1], [0, 0]] * 9, scope="fixed_set")
    assert same.status is Status.DEGENERATE
    assert same.ci_low < same.estimate < same.ci_high


def test_scores_without_variance_keep_an_interval_with_width() -> None:
    found = pass_rate([[0.8]] * 20, binary=False)
    assert found.status is Status.DEGENERATE
    assert found.ci_low < 0.8 < found.ci_high
    near = pass_rate([[0.9 - 0.1], [0.8]] * 10, binary=False)
    assert near.reasons == ("zero_variance",)


def test_variance_components_say_what_to_add() -> None:
    cases_differ = variance_components([[1, 1, 1], [0, 0, 0]] * 10)
    assert cases_differ.icc1 == pytest.approx(1)
    assert cases_differ.add == "cases"
    runs_differ = variance_components([[1, 0, 1], [0, 1, 1]] * 10)
    assert runs_differ.icc1 < 0
    assert runs_differ.var_between == 0
    assert runs_differ.add == "runs"
    assert math.isnan(variance_components([[1], [0]]).icc1)


@given(grades)
def test_clustered_error_equals_the_cluster_robust_error_of_a_mean(scores) -> None:
    n, runs = scores.shape
    residuals = (scores - scores.mean()).sum(axis=1)
    robust = math.sqrt(n / (n - 1) * residuals @ residuals) / (n * runs)
    assert clustered_mean(scores).extra["se"] == pytest.approx(robust, abs=1e-12)
    assert pooled_rate(scores).extra["se"] == pytest.approx(robust, abs=1e-12)


def test_the_array_kernel_gives_what_the_scalar_function_gives() -> None:
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 2, (5, 12, 3)).astype(float)
    many = effective_wilson(scores.mean(-1), 36, 0.025)
    for i, one in enumerate(scores):
        assert pass_rate(one).ci_low == pytest.approx(many["low"][i])


def test_a_long_table_becomes_runs_and_keeps_its_holes() -> None:
    table = runs_by_case(["a", "b", "a"], [1, 1, 2], [1.0, 0.0, None])
    assert table["a"] == pytest.approx([1.0, NAN], nan_ok=True)
    assert table["b"] == pytest.approx([0.0, NAN], nan_ok=True)
    assert pass_rate(table).n_missing == 2
    with pytest.raises(StatsError, match="twice"):
        runs_by_case(["a", "a"], [1, 1], [1, 1])
    with pytest.raises(StatsError, match="entries"):
        runs_by_case(["a"], [1, 2], [1, 1])

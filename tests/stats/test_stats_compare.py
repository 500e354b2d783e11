from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import binomtest, permutation_test, ttest_rel

from evalkit.errors import StatsError
from evalkit.stats.compare import compare_paired, mcnemar, tango_interval
from evalkit.stats.decision import Direction
from evalkit.stats.multiplicity import holm
from evalkit.stats.pairs import pair_up
from evalkit.stats.permutation import sign_flip_p
from evalkit.stats.result import Status

FAILURES = {
    case["id"]: case
    for case in map(
        json.loads,
        (Path(__file__).resolve().parents[1] / "failure_cases" / "cases.jsonl")
        .read_text("utf-8")
        .splitlines(),
    )
}
NAN = math.nan
scores = st.integers(6, 30).flatmap(
    lambda n: st.tuples(
        *[hnp.arrays(np.float64, n, elements=st.sampled_from([0, 0.25, 0.5, 0.75, 1.0]))] * 2
    )
)


@given(scores)
def test_the_default_is_scipys_paired_t(both) -> None:
    old, new = both
    found = compare_paired(pair_up(old, new))
    if found.interval.method == "paired_t":
        theirs = ttest_rel(new, old)
        assert found.p == pytest.approx(theirs.pvalue, abs=1e-9)
        interval = theirs.confidence_interval(0.95)
        assert found.interval.ci_low == pytest.approx(interval.low, abs=1e-9)


@given(scores, st.randoms(use_true_random=False))
def test_order_and_names_of_cases_do_not_matter(both, random) -> None:
    old, new = both
    ids = [f"case-{i}" for i in range(len(old))]
    mixed = random.sample(ids, len(ids))
    named = {k: [x] for k, x in zip(ids, old, strict=True)}
    other = {k: [new[ids.index(k)]] for k in mixed}
    here, there = compare_paired(pair_up(old, new)), compare_paired(pair_up(named, other))
    assert there.interval.estimate == pytest.approx(here.interval.estimate)
    assert there.interval.ci_low == pytest.approx(here.interval.ci_low)
    assert (there.p, there.direction) == (pytest.approx(here.p), here.direction)


@given(scores)
def test_exchanging_the_sides_mirrors_the_result(both) -> None:
    old, new = both
    here, there = compare_paired(pair_up(old, new)), compare_paired(pair_up(new, old))
    assert here.interval.ci_low == pytest.approx(-there.interval.ci_high, abs=1e-9)
    assert here.p == pytest.approx(there.p, abs=1e-9)
    assert here.p_better == pytest.approx(1 - there.p_better)
    mirrored = {"IMPROVED": "REGRESSED", "REGRESSED": "IMPROVED"}
    assert there.direction == mirrored.get(here.direction, "NOT_DISTINGUISHED")


@given(scores)
def test_units_do_not_matter(both) -> None:
    old, new = both
    here = compare_paired(pair_up(old, new))
    there = compare_paired(pair_up(1 + 4 * old, 1 + 4 * new, score_range=(1, 5)))
    assert there.interval.ci_low == pytest.approx(4 * here.interval.ci_low, abs=1e-9)
    assert there.mde == pytest.approx(4 * here.mde, abs=1e-9)
    assert there.direction == here.direction


@given(scores)
def test_the_interval_never_has_no_width_and_not_distinguished_names_its_mde(both) -> None:
    found = compare_paired(pair_up(*both))
    assert found.interval.ci_high > found.interval.ci_low
    assert found.mde > 0
    assert 0 <= found.p <= 1
    assert (found.direction is Direction.IMPROVED) == (found.interval.ci_low > 0) or (
        "tests_disagree" in found.interval.reasons
    )


def test_identical_and_shifted_pairs_are_not_significant() -> None:
    case = FAILURES["D03"]
    for pair, expected in zip(case["input"]["pairs"], case["expected"]["value"], strict=True):
        joined = pair_up(pair["baseline"], pair["new"], score_range=case["input"]["range"])
        found = compare_paired(joined)
        assert found.interval.estimate == pytest.approx(expected["mean_difference"])
        assert found.direction is Direction.NOT_DISTINGUISHED
        assert found.interval.status is Status.DEGENERATE
        assert "zero_variance" in found.interval.reasons
        assert "sign_flip_cannot_reach_alpha" in found.interval.reasons
        assert math.isnan(found.dz)
        assert found.p == pytest.approx(expected.get("sign_test_p", expected.get("p_or")))


def test_repeats_of_an_item_are_not_pairs_of_their_own() -> None:
    case = FAILURES["D04"]
    expected = case["expected"]["value"]
    joined = pair_up(case["input"]["baseline"], case["input"]["new"])
    found = compare_paired(joined)
    assert joined.differences == pytest.approx(expected["item_differences"])
    assert found.interval.estimate == pytest.approx(expected["mean_difference"])
    assert found.interval.n_cases == expected["n"]
    assert found.interval.extra["runs_baseline"] == 5
    assert found.interval.extra["t"] == pytest.approx(expected["t"], abs=1e-9)
    assert found.p == pytest.approx(expected["p"], abs=1e-9)
    assert found.direction is Direction.NOT_DISTINGUISHED


def test_holm_adjusts_all_tests_together() -> None:
    case = FAILURES["D05"]
    found = holm(case["input"]["p_values"], alpha=case["input"]["alpha"])
    assert found.adjusted == pytest.approx(case["expected"]["value"]["adjusted"], abs=1e-9)
    assert list(found.reject) == case["expected"]["value"]["significant"]


def test_copied_cases_prove_nothing_more() -> None:
    old, new = [4, 3, 5, 2, 4, 3, 5, 4, 3, 4], [5, 4, 5, 3, 4, 4, 5, 5, 4, 5]
    once = compare_paired(pair_up(old, new, score_range=(1, 5)))
    content = [f"text {i}" for i in range(10)] * 5
    five = pair_up(old * 5, new * 5, score_range=(1, 5), content=content)
    found = compare_paired(five)
    assert five.n_copies == 40
    assert found.p == pytest.approx(once.p)
    assert found.p == pytest.approx(1.3e-3, rel=0.03)
    assert "copies_merged" in found.interval.reasons
    blind = compare_paired(pair_up(old * 5, new * 5, score_range=(1, 5)))
    assert blind.p == pytest.approx(2.1e-14, rel=0.02)


def test_a_significant_regression_is_not_noise() -> None:
    old, new = [5, 4, 5, 3, 4, 4, 5, 5, 4, 5], [4, 3, 5, 2, 4, 3, 5, 4, 3, 4]
    found = compare_paired(pair_up(old, new, score_range=(1, 5)))
    assert found.direction is Direction.REGRESSED
    assert found.source_verdict == "NOISE_DETECTED"


def test_cases_are_joined_by_id_and_differing_sets_are_refused() -> None:
    old, new = {"a": [1, 1], "b": [0, 1], "c": [1, 0]}, {"b": [1, 1], "a": [0, 0], "d": [1, 1]}
    with pytest.raises(StatsError, match="'c' in the baseline"):
        pair_up(old, new)
    joined = pair_up(old, new, allow_partial=True)
    assert joined.ids == ("a", "b")
    assert joined.differences == pytest.approx([-1, 0.5])
    assert (joined.only_baseline, joined.only_candidate) == (("c",), ("d",))
    assert "partial_case_sets" in joined.reasons


def test_a_case_missing_on_either_side_leaves_and_is_counted_per_side() -> None:
    old = [[1, 1], [NAN, NAN], [1, NAN], [0, 0]]
    new = [[1, 1], [1, 1], [0, 0], [None, None]]
    joined = pair_up(old, new)
    assert joined.ids == (0, 2)
    assert (joined.n_without_baseline, joined.n_without_candidate) == (1, 1)
    assert (joined.n_missing, joined.planned) == (5, 16)
    worst, best = (pair_up(old, new, missing=m) for m in ("worst", "best"))
    assert worst.differences == pytest.approx([0, 0, -1, 0])
    assert best.differences == pytest.approx([0, 1, -0.5, 1])
    assert worst.n_missing == 5


def test_statuses_decide_what_a_hole_is_on_either_side() -> None:
    old, new = {"a": [1, 1], "b": [1, 0]}, {"b": [NAN, NAN], "a": [1, NAN]}
    joined = pair_up(
        old,
        new,
        candidate_status={"b": ["system_error", "judge_invalid"], "a": ["ok", "skipped"]},
    )
    assert joined.differences == pytest.approx([0, -0.5])
    assert (joined.n_missing, joined.n_invalid) == (2, 1)
    assert joined.missing_share == 0.5


def test_clusters_are_the_units_of_a_comparison() -> None:
    joined = pair_up([0, 0, 1, 1], [1, 1, 1, 0], clusters=["a", "a", "b", "c"])
    assert joined.ids == (0, 2, 3)
    assert joined.differences == pytest.approx([1, 0, -1])
    with pytest.raises(StatsError, match="not among the keys"):
        pair_up({"a": [1]}, {"a": [1]}, clusters={"b": "x"})


def test_fewer_than_two_pairs_distinguish_nothing() -> None:
    for old, new in (([], []), ([0.0], [1.0])):
        found = compare_paired(pair_up(old, new))
        assert found.interval.status is Status.INSUFFICIENT_DATA
        assert found.direction is Direction.NOT_DISTINGUISHED
        assert math.isnan(found.p)


def test_pass_fail_pairs_get_mcnemar_and_tango() -> None:
    old, new = [1] * 9 + [0] * 3 + [1] * 33, [0] * 9 + [1] * 3 + [1] * 33
    found = compare_paired(pair_up(old, new))
    assert found.p == pytest.approx(binomtest(3, 12).pvalue)
    assert found.interval.ci_low == pytest.approx(-0.2889119989, rel=1e-8)
    assert found.p_mid < found.p
    assert found.p_signflip == pytest.approx(found.p)


def test_without_a_discordant_pair_the_difference_keeps_an_interval() -> None:
    found = compare_paired(pair_up([1] * 28 + [0] * 2, [1] * 28 + [0] * 2))
    assert found.p == 1.0
    assert found.interval.ci_high == pytest.approx(0.1135133932, rel=1e-8)
    assert found.direction is Direction.NOT_DISTINGUISHED


def test_four_gains_of_four_do_not_improve_what_the_exact_test_cannot_show() -> None:
    found = compare_paired(pair_up([0] * 4, [1] * 4))
    assert found.interval.ci_low > 0
    assert found.p == 0.125
    assert found.direction is Direction.NOT_DISTINGUISHED
    assert "tests_disagree" in found.interval.reasons


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 30))
def test_tango_mirrors_and_holds_the_estimate(gains: int, losses: int, ties: int) -> None:
    n = gains + losses + ties
    if n == 0:
        with pytest.raises(StatsError, match="do not fit"):
            tango_interval(gains, losses, n)
        return
    low, high = tango_interval(gains, losses, n)
    assert -1 <= low <= (gains - losses) / n <= high <= 1
    assert low < high
    assert tango_interval(losses, gains, n) == pytest.approx((-high, -low), abs=1e-9)
    found = mcnemar(gains, losses, n)
    if gains + losses:
        assert found.p_exact == pytest.approx(binomtest(gains, gains + losses).pvalue)
    assert found.p_mid <= found.p_exact <= 1


@given(hnp.arrays(np.float64, st.integers(2, 9), elements=st.sampled_from([-1, -0.5, 0, 0.3, 1.0])))
def test_sign_flips_agree_with_scipys_enumeration(d) -> None:
    for side in ("two-sided", "less", "greater"):
        theirs = permutation_test(
            (d, np.zeros_like(d)),
            lambda x, y, axis: np.sum(x - y, axis=axis),
            permutation_type="samples",
            alternative=side,
            vectorized=True,
        ).pvalue
        assert sign_flip_p(d, alternative=side) == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize("few_sizes", [True, False])
def test_random_flips_come_close_to_the_exact_test(few_sizes: bool) -> None:
    rng = np.random.default_rng(1)
    d = rng.choice([-1, 0.5, 1], 40) if few_sizes else rng.normal(0.2, 1, 40)
    flips = rng.choice([-1, 1], (200_000, 40)) @ np.abs(d)
    exact = np.mean(np.abs(flips) >= abs(d.sum()) - 1e-9)
    assert sign_flip_p(d, draws=200_000) == pytest.approx(exact, abs=0.005)
    assert sign_flip_p(d, seed=3) == sign_flip_p(d, seed=3)
    assert sign_flip_p(d + 100) == 1e-4


def test_sign_flips_refuse_what_is_no_difference() -> None:
    for bad in ([], [NAN, 1], [math.inf]):
        with pytest.raises(StatsError, match="finite differences"):
            sign_flip_p(bad)


def test_mcnemar_holds_for_thousands_of_discordant_pairs() -> None:
    found = mcnemar(2_000, 2_100, 10_000)
    assert 0.10 < found.p_mid < found.p_exact < 0.13

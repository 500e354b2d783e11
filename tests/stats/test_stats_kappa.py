from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from evalkit.errors import StatsError
from evalkit.stats.kappa import (
    bootstrap_kappa,
    cohen_kappa,
    kappa_of_tables,
    linear_weighted_kappa,
    quadratic_weighted_kappa,
)
from evalkit.stats.ratings import Scale, confusion_table, half_up
from evalkit.stats.result import Status

FAILURES = {
    case["id"]: case
    for case in map(
        json.loads,
        (Path(__file__).parents[1] / "failure_cases" / "cases.jsonl")
        .read_text("utf-8")
        .splitlines(),
    )
}
BANDS = (1, 2, 3, 4, 5)
pairs = st.lists(st.tuples(st.sampled_from(BANDS), st.sampled_from(BANDS)), min_size=2, max_size=60)


def split(rated: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    return [a for a, _ in rated], [b for _, b in rated]


def oracle(human: list[int], judge: list[int], weights: str | None) -> float:
    return float(cohen_kappa_score(human, judge, labels=list(BANDS), weights=weights))


def test_d01_one_label_on_both_sides_leaves_kappa_undefined() -> None:
    case = FAILURES["D01"]["input"]
    found = cohen_kappa(case["human"], case["judge"], case["scale"])
    assert math.isnan(found.estimate)
    assert found.status is Status.UNDEFINED
    assert found.reasons == ("undefined", "constant_anchor", "constant_judge")
    assert found.as_json()["estimate"] is None
    assert "NaN" not in json.dumps(found.as_json(), allow_nan=False)


def test_d02_the_distance_counts_unused_scores() -> None:
    case, expected = FAILURES["D02"]["input"], FAILURES["D02"]["expected"]["value"]
    found = quadratic_weighted_kappa(case["human"], case["judge"], case["scale"])
    assert found.estimate == pytest.approx(expected["qwk"], abs=expected["tolerance"])


@given(pairs)
def test_kappas_equal_scikit_learn(rated: list[tuple[int, int]]) -> None:
    human, judge = split(rated)
    for kappa, weights in (
        (cohen_kappa, None),
        (linear_weighted_kappa, "linear"),
        (quadratic_weighted_kappa, "quadratic"),
    ):
        found = kappa(human, judge, BANDS).estimate
        if len({*human, *judge}) == 1:
            assert math.isnan(found)
        else:
            assert found == pytest.approx(oracle(human, judge, weights), abs=1e-12)


@given(pairs, st.randoms(use_true_random=False))
def test_order_units_and_sides_do_not_matter(rated: list[tuple[int, int]], random: object) -> None:
    human, judge = split(rated)
    found = quadratic_weighted_kappa(human, judge, BANDS)
    shuffled = sorted(rated, key=lambda _: random.random())  # type: ignore[attr-defined]
    again = quadratic_weighted_kappa(*split(shuffled), BANDS)
    swapped = quadratic_weighted_kappa(judge, human, BANDS)
    scaled = quadratic_weighted_kappa(
        [10 * h for h in human], [10 * j for j in judge], [10 * b for b in BANDS]
    )
    turned = quadratic_weighted_kappa([6 - h for h in human], [6 - j for j in judge], BANDS)
    for other in (again, swapped, scaled, turned):
        assert other.estimate == pytest.approx(found.estimate, abs=1e-12, nan_ok=True)
        assert other.ci_low == pytest.approx(found.ci_low, abs=1e-9, nan_ok=True)


@given(pairs)
def test_the_interval_holds_the_estimate_inside_its_range(rated: list[tuple[int, int]]) -> None:
    found = quadratic_weighted_kappa(*split(rated), BANDS)
    assert not found.estimate > 1
    if not math.isnan(found.ci_low):
        assert -1 <= found.ci_low <= found.estimate <= found.ci_high <= 1
    if math.isnan(found.estimate):
        assert math.isnan(found.ci_low)
        assert math.isnan(found.ci_high)


@given(pairs)
def test_unweighted_kappa_ignores_the_names_of_categories(rated: list[tuple[int, int]]) -> None:
    names = {1: "e", 2: "a", 3: "d", 4: "b", 5: "c"}
    human, judge = split(rated)
    found = cohen_kappa(human, judge, BANDS).estimate
    renamed = cohen_kappa([names[h] for h in human], [names[j] for j in judge], "abcde").estimate
    assert renamed == pytest.approx(found, abs=1e-12, nan_ok=True)


@given(pairs, st.lists(st.integers(0, 3), min_size=60, max_size=60))
def test_whole_weights_are_copies(rated: list[tuple[int, int]], weights: list[int]) -> None:
    human, judge = split(rated)
    w = weights[: len(human)]
    found = quadratic_weighted_kappa(human, judge, BANDS, weights=w).estimate
    copied = quadratic_weighted_kappa(np.repeat(human, w), np.repeat(judge, w), BANDS).estimate
    if sum(w) > 1:
        assert found == pytest.approx(copied, abs=1e-9, nan_ok=True)


def test_equal_weights_give_the_unweighted_error() -> None:
    human, judge = [1, 2, 3, 4, 5, 5, 2, 1], [1, 2, 2, 4, 4, 5, 3, 1]
    plain = quadratic_weighted_kappa(human, judge, BANDS)
    weighted = quadratic_weighted_kappa(human, judge, BANDS, weights=[0.3] * 8)
    assert weighted.extra["se"] == pytest.approx(plain.extra["se"], rel=1e-12)


def test_a_constant_judge_has_kappa_zero_and_no_interval() -> None:
    for kappa in (cohen_kappa, linear_weighted_kappa, quadratic_weighted_kappa):
        found = kappa([1, 2, 3, 4, 5, 3], [3] * 6, BANDS)
        assert found.estimate == 0.0
        assert math.isnan(found.ci_low)
        assert found.status is Status.DEGENERATE
        assert found.reasons == ("constant_judge",)


def test_perfect_agreement_proves_more_with_more_items_and_never_everything() -> None:
    few = quadratic_weighted_kappa([1, 3, 5] * 4, [1, 3, 5] * 4, BANDS)
    many = quadratic_weighted_kappa([1, 3, 5] * 40, [1, 3, 5] * 40, BANDS)
    assert few.estimate == many.estimate == few.ci_high == 1.0
    assert few.ci_low < many.ci_low < 1.0
    assert few.reasons == ("perfect_agreement",)


def test_missing_ratings_are_left_out_and_counted_by_side() -> None:
    human = [1, 2, 3, math.nan, 5, 4]
    judge = [1, 2, math.nan, 4, 5, 5]
    found = quadratic_weighted_kappa(human, judge, BANDS)
    whole = quadratic_weighted_kappa([1, 2, 5, 4], [1, 2, 5, 5], BANDS)
    assert found.estimate == whole.estimate
    assert (found.n_cases, found.n_missing, found.n_invalid) == (4, 1, 1)
    words = cohen_kappa(["a", None, "b", "a"], ["a", "b", None, "a"], ["a", "b"])
    assert (words.n_cases, words.n_missing, words.n_invalid) == (2, 1, 1)


@pytest.mark.parametrize(
    ("human", "judge", "categories", "sentence"),
    [
        ([1, 2], [1], BANDS, "one of each per item"),
        ([1, 9], [1, 2], BANDS, "none of the categories"),
        ([1, 0], [1, 2], BANDS, "none of the categories"),
        ([1, 2.5], [1, 2], BANDS, "none of the categories"),
        ([1, math.inf], [1, 2], BANDS, "none of the categories"),
        (["a", "x"], ["a", "b"], ["a", "b"], "none of the categories"),
        ([1, 2], [1, 2], [1], "at least 2"),
        ([1, 2], [1, 2], [1, 2, 2], "name one twice"),
        (["a", "b"], [1, 2], BANDS, "not a number"),
    ],
)
def test_malformed_ratings_are_refused(
    human: list[object], judge: list[object], categories: list[object], sentence: str
) -> None:
    with pytest.raises(StatsError, match=sentence):
        quadratic_weighted_kappa(human, judge, categories)


def test_a_bad_weight_is_refused() -> None:
    with pytest.raises(StatsError, match="weights"):
        cohen_kappa([1, 2], [1, 2], BANDS, weights=[1, -1])


def test_halves_go_up_and_only_when_asked() -> None:
    assert half_up([0.5, 1.5, 2.5, 2.4999999999]).tolist() == [1, 2, 3, 3]
    found = quadratic_weighted_kappa([1, 2, 4], [1.5, 2.4, 3.5], BANDS, rounding="half_up")
    assert found.estimate == quadratic_weighted_kappa([1, 2, 4], [2, 2, 4], BANDS).estimate


def test_categories_need_not_be_consecutive_or_rising() -> None:
    human, judge = [0.5, 0.0, 1.0, 1.0], [0.5, 0.5, 1.0, 0.0]
    found = quadratic_weighted_kappa(human, judge, [0.0, 0.5, 1.0]).estimate
    assert found == pytest.approx(
        quadratic_weighted_kappa(human, judge, [1.0, 0.5, 0.0]).estimate, abs=1e-12
    )
    assert Scale.of([0.0, 0.5, 1.0]).nearest([0.24, 0.25, 0.75, 0.76]).tolist() == [0, 1, 2, 2]


def test_the_bootstrap_agrees_with_the_large_sample_interval() -> None:
    rng = np.random.default_rng(5)
    human = rng.integers(1, 6, 400)
    judge = np.clip(human + rng.integers(-1, 2, 400), 1, 5)
    exact = quadratic_weighted_kappa(human, judge, BANDS)
    for bca in (False, True):
        found = bootstrap_kappa(human, judge, BANDS, n_boot=4000, bca=bca, seed=3)
        assert found.estimate == exact.estimate
        assert found.ci_low == pytest.approx(exact.ci_low, abs=0.01)
        assert found.ci_high == pytest.approx(exact.ci_high, abs=0.01)
        assert found.seed == 3
        again = bootstrap_kappa(human, judge, BANDS, n_boot=4000, bca=bca, seed=3)
        assert again == found


def test_a_bootstrap_without_spread_is_no_interval() -> None:
    found = bootstrap_kappa([1, 3, 5] * 5, [1, 3, 5] * 5, BANDS, seed=0)
    assert math.isnan(found.ci_low)
    assert found.reasons == ("zero_variance",)


def test_tables_in_bulk_give_what_each_gives() -> None:
    rng = np.random.default_rng(2)
    human, judge = rng.integers(1, 6, (2, 20, 50))
    tables = np.array([confusion_table(h, j, BANDS) for h, j in zip(human, judge, strict=True)])
    singles = [
        quadratic_weighted_kappa(h, j, BANDS).estimate for h, j in zip(human, judge, strict=True)
    ]
    assert kappa_of_tables(tables, "quadratic") == pytest.approx(singles, abs=1e-12)

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.errors import StatsError
from evalkit.stats.correction import ppi_crossfit, ppi_mean, rogan_gladen
from evalkit.stats.result import Status


def sampled(
    n: int, unlabelled: int, rate: float, tpr: float, tnr: float, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.random(n + unlabelled) < rate
    said = rng.random(len(truth)) < np.where(truth, tpr, 1 - tnr)
    return truth[:n].astype(float), said[:n].astype(float), said[n:].astype(float)


def test_a_good_judge_is_worth_several_times_the_labels() -> None:
    gains = [
        ppi_crossfit(*sampled(100, 2000, 0.8, 0.98, 0.95, seed)).label_gain for seed in range(20)
    ]
    assert 3 < np.mean(gains) < 6
    lenient = [
        ppi_crossfit(*sampled(100, 300, 0.8, 0.95, 0.55, seed)).label_gain for seed in range(20)
    ]
    assert 0.9 < np.mean(lenient) < 1.6


@given(st.integers(0, 200))
def test_a_corrected_rate_stays_a_rate(seed: int) -> None:
    found = ppi_crossfit(*sampled(40, 60, 0.9, 0.95, 0.55, seed), seed=seed)
    rate = found.rate
    assert 0 <= rate.ci_low <= rate.estimate <= rate.ci_high <= 1
    assert 0 <= rate.extra["lambda"] <= 1
    assert rate.seed == seed


def test_a_judge_that_says_nothing_leaves_the_labels_alone() -> None:
    labels, _, _ = sampled(60, 10, 0.8, 1, 1)
    found = ppi_crossfit(labels, np.ones(60), np.ones(100))
    assert found.rate.extra["lambda"] == 0
    assert found.rate.estimate == pytest.approx(labels.mean())


def test_all_labels_pass_and_the_interval_still_has_width() -> None:
    found = ppi_crossfit(np.ones(50), np.ones(50), np.ones(200)).rate
    assert (found.estimate, found.ci_high) == (1.0, 1.0)
    assert found.ci_low < 0.95


def test_few_labels_say_so_beside_the_numbers() -> None:
    found = ppi_crossfit(*sampled(20, 100, 0.8, 0.95, 0.9)).rate
    assert found.status is Status.INSUFFICIENT_DATA
    assert found.reasons == ("too_few_labels",)
    assert found.defined


def test_scores_between_pass_and_fail_take_the_t_interval() -> None:
    rng = np.random.default_rng(0)
    truth = rng.random(300)
    said = np.clip(truth + rng.normal(0, 0.1, 300), 0, 1)
    found = ppi_crossfit(truth[:100], said[:100], said[100:])
    assert found.rate.ci_high - found.rate.estimate == pytest.approx(
        found.rate.estimate - found.rate.ci_low
    )
    assert found.label_gain > 1.5
    assert abs(found.rate.estimate - 0.5) < 0.1


def test_one_lambda_is_for_comparison_only() -> None:
    found = ppi_mean(*sampled(100, 300, 0.8, 0.95, 0.85)).rate
    assert found.reasons == ("comparison_only",)


def test_the_folds_are_dealt_evenly_from_the_seed() -> None:
    data = sampled(101, 300, 0.8, 0.95, 0.85)
    one, same, other = (ppi_crossfit(*data, seed=s).rate for s in (4, 4, 5))
    assert one == same
    assert one.extra["lambda_by_fold"] != other.extra["lambda_by_fold"]


def test_rogan_gladen_recovers_the_rate_from_exact_counts() -> None:
    found = rogan_gladen(90, 10, 20, 80, judge_pass=690, judge_n=1000)  # .7·.9 + .3·.2
    assert found.rate.estimate == pytest.approx(0.7)
    assert found.uncorrected == 0.69
    assert found.rate.ci_low < 0.7 < found.rate.ci_high
    assert found.labels_only.reasons == ("labels_chosen_by_class",)
    assert math.isnan(found.label_gain)


@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        ((15, 15, 6, 4), "judge_not_informative"),
        ((5, 5, 5, 5), "judge_not_informative"),
        ((0, 0, 5, 5), "no_positive_class"),
        ((5, 5, 0, 0), "no_negative_class"),
    ],
)
def test_a_judge_without_information_gives_no_number(
    counts: tuple[int, int, int, int], reason: str
) -> None:
    found = rogan_gladen(*counts, judge_pass=50, judge_n=100).rate
    assert math.isnan(found.estimate)
    assert found.status is Status.UNDEFINED
    assert found.reasons == (reason,)


def test_a_rate_that_does_not_fit_the_error_rates_is_flagged() -> None:
    found = rogan_gladen(60, 5, 3, 32, judge_pass=1860, judge_n=2000).rate
    assert found.estimate == 1.0
    assert found.extra["unclipped"] > 1
    assert found.status is Status.DEGENERATE
    assert found.reasons == ("out_of_range",)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: ppi_crossfit([1, 0], [1], [1, 0]), "one of each"),
        (lambda: ppi_crossfit([1, 0], [1, 0], [1]), "2 of each"),
        (lambda: ppi_crossfit([1, 0], [1, math.nan], [1, 0]), "leave out"),
        (lambda: ppi_crossfit([1, 0], [1, 0], [1, 0], folds=5), "folds"),
        (lambda: ppi_crossfit([1, 0], [1, 0], [1, 0], folds=2, fold_ids=[0, 2]), "fold_ids"),
        (lambda: rogan_gladen(1, 1, 1, -1, judge_pass=1, judge_n=2), "negative"),
        (lambda: rogan_gladen(1, 1, 1, 1, judge_pass=3, judge_n=2), "negative"),
    ],
)
def test_malformed_counts_are_refused(call: object, sentence: str) -> None:
    with pytest.raises(StatsError, match=sentence):
        call()  # type: ignore[operator]

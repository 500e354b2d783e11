from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu
from sklearn.isotonic import IsotonicRegression

from evalkit.errors import StatsError
from evalkit.stats.ceiling import band_auc, find_ceiling
from evalkit.stats.recalibration import fit_isotonic, recalibrate
from evalkit.stats.result import Status

BANDS = range(1, 7)
score = st.integers(1, 6).map(float)


def compressed(n: int, noise: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    human = np.resize(np.arange(1, 7), n)
    return human, np.clip(np.round(1.47 + 0.332 * human + rng.normal(0, noise, n)), 1, 4)


@given(st.lists(st.tuples(score, score), min_size=2, max_size=40))
def test_the_map_equals_scikit_learn(rated: list[tuple[float, float]]) -> None:
    judge, human = np.array(rated).T
    oracle = IsotonicRegression(out_of_bounds="clip", y_min=1, y_max=6).fit(judge, human)
    grid = np.linspace(0, 7, 29)
    found = fit_isotonic(judge, human, low=1, high=6)
    assert found(grid) == pytest.approx(oracle.predict(grid), abs=1e-9)
    assert np.all(np.diff(found(grid)) >= -1e-12)
    assert found.ceiling == pytest.approx(oracle.predict([9.0])[0])


def test_a_strong_ranking_compressed_judge_is_worth_recalibrating() -> None:
    human, judge = compressed(120, 0.3066)
    found = recalibrate(human, judge, BANDS)
    assert found.qwk_raw.estimate == pytest.approx(0.456, abs=0.06)
    assert found.qwk_held_out.estimate > 0.7
    assert found.credible
    assert found.qwk_in_sample >= found.qwk_held_out.estimate - 0.02
    assert found.optimism == pytest.approx(found.qwk_in_sample - found.qwk_held_out.estimate)
    assert len(found.seeds) == 10
    assert found == recalibrate(human, judge, BANDS)


def test_an_uninformative_judge_gains_nothing_on_new_data() -> None:
    rng = np.random.default_rng(3)
    human = np.resize(np.arange(1, 7), 60)
    found = recalibrate(human, rng.integers(1, 7, 60), BANDS)
    assert found.qwk_held_out.estimate < 0.15
    assert not found.credible


def test_a_scale_of_its_own_needs_no_bands() -> None:
    human, judge = compressed(60, 0.3)
    found = recalibrate(human, 25 * judge, BANDS)
    assert found.qwk_raw.reasons == ("scores_off_scale",)
    same = recalibrate(human, judge, BANDS)
    assert found.qwk_held_out.estimate == pytest.approx(same.qwk_held_out.estimate, abs=1e-12)


@pytest.mark.parametrize(
    ("human", "judge", "reason"),
    [
        ([1, 2, 3] * 9, [1, 2, 3] * 9, "too_few_pairs"),
        ([1, 2, 3, 4] * 10, [1, 2, 2, 1] * 10, "too_few_distinct_scores"),
    ],
)
def test_too_little_is_refused(human: list[int], judge: list[int], reason: str) -> None:
    found = recalibrate(human, judge, BANDS)
    assert found.status is Status.INSUFFICIENT_DATA
    assert found.reasons == (reason,)
    assert found.map is None
    assert not found.credible
    assert math.isnan(found.qwk_held_out.estimate)


def test_a_falling_judge_gives_a_constant_map_without_information() -> None:
    human = np.resize(np.arange(1, 7), 60)
    found = recalibrate(human, 7 - human, BANDS)
    assert found.map is not None
    assert found.map.constant
    assert found.reasons == ("no_information",)


def test_missing_pairs_are_left_out_and_counted() -> None:
    human, judge = compressed(60, 0.3)
    found = recalibrate([*human, math.nan, 3], [*judge, 2, math.nan], BANDS)
    assert (found.qwk_held_out.n_missing, found.qwk_held_out.n_invalid) == (1, 1)
    assert found.qwk_in_sample == recalibrate(human, judge, BANDS).qwk_in_sample


def test_malformed_folds_and_maps_are_refused() -> None:
    human, judge = compressed(60, 0.3)
    with pytest.raises(StatsError, match="two folds"):
        recalibrate(human, judge, BANDS, fold_ids=np.zeros(60))
    with pytest.raises(StatsError, match="folds and"):
        recalibrate(human, judge, BANDS, folds=1)
    with pytest.raises(StatsError, match="without gaps"):
        fit_isotonic([1, math.nan], [1, 2], low=1, high=2)
    with pytest.raises(StatsError, match="no map"):
        fit_isotonic([1, 2], [1, 2], low=2, high=2)


@given(st.lists(score, min_size=2, max_size=15), st.lists(score, min_size=2, max_size=15))
def test_the_auc_and_its_p_equal_scipy(lower: list[float], upper: list[float]) -> None:
    found = band_auc(lower, upper, n_boot=100)
    assert 0 <= found.estimate <= 1
    turned = band_auc(upper, lower, n_boot=100)
    assert turned.estimate == pytest.approx(1 - found.estimate)
    if len({*lower, *upper}) > 1:
        oracle = mannwhitneyu(upper, lower, method="asymptotic")
        assert found.estimate == pytest.approx(oracle.statistic / (len(lower) * len(upper)))
        assert found.extra["p"] == pytest.approx(oracle.pvalue, abs=1e-9)


def test_perfect_separation_is_proven_only_by_enough_items() -> None:
    few, many = band_auc([1] * 3, [2] * 3), band_auc([1] * 30, [2] * 30)
    assert few.estimate == many.estimate == 1.0
    assert few.ci_low < 0.5 < many.ci_low < 1.0


def test_the_ceiling_is_where_the_judge_stops_telling_bands_apart() -> None:
    human = np.repeat(np.arange(1, 7), 20)
    rng = np.random.default_rng(0)
    judge = np.minimum(human, 4) + rng.integers(0, 2, 120)
    found = find_ceiling(human, judge, BANDS)
    assert [p.separated for p in found.pairs] == [True, True, True, False, False]
    assert found.band == 4
    assert found.never_awarded == (6,)
    assert find_ceiling(human, human, BANDS).band is None


def test_bands_without_items_are_not_compared() -> None:
    found = find_ceiling([1, 1, 3, 3], [1, 2, 3, 4], BANDS, n_boot=50)
    assert [(p.lower, p.upper) for p in found.pairs] == [(1, 3)]
    assert band_auc([], [1]).reasons == ("empty_band",)

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.errors import StatsError
from evalkit.stats.raters import fleiss_kappa, gwet_ac1, gwet_ac2, krippendorff_alpha
from evalkit.stats.result import Status

BANDS = (1, 2, 3, 4)
rating = st.one_of(st.sampled_from(BANDS), st.just(math.nan))
items = st.lists(st.tuples(rating, rating, rating), min_size=2, max_size=40)


def by_rater(rated: list[tuple[float, ...]]) -> list[list[float]]:
    return [list(one) for one in zip(*rated, strict=True)]


@given(items, st.permutations([0, 1, 2]))
def test_neither_raters_nor_items_have_an_order(
    rated: list[tuple[float, ...]], order: list[int]
) -> None:
    ratings = by_rater(rated)
    mixed = [list(reversed(ratings[i])) for i in order]
    for statistic in (krippendorff_alpha, gwet_ac1, gwet_ac2):
        one = statistic(ratings, BANDS, n_boot=0).estimate
        assert statistic(mixed, BANDS, n_boot=0).estimate == pytest.approx(
            one, abs=1e-12, nan_ok=True
        )


@given(items)
def test_nothing_exceeds_one_and_gaps_are_counted(rated: list[tuple[float, ...]]) -> None:
    ratings = by_rater(rated)
    for distance in ("nominal", "ordinal", "interval"):
        found = krippendorff_alpha(ratings, BANDS, distance=distance, n_boot=50)
        assert not found.estimate > 1
        assert found.n_missing == sum(math.isnan(x) for one in ratings for x in one)
        usable = sum(sum(not math.isnan(x) for x in one) >= 2 for one in rated)
        assert found.n_cases == usable
        if math.isnan(found.estimate):
            assert math.isnan(found.ci_low)
            assert found.status is not Status.OK


def test_alpha_knows_distances_only_where_it_is_told() -> None:
    ratings = [[1, 2, 3, 4, 1, 4], [1, 2, 3, 4, 2, 3]]
    spread = [[1, 2, 3, 40, 1, 40], [1, 2, 3, 40, 2, 3]]
    bands = (1, 2, 3, 40)
    for distance, same in (("nominal", True), ("ordinal", True), ("interval", False)):
        one = krippendorff_alpha(ratings, BANDS, distance=distance, n_boot=0).estimate
        two = krippendorff_alpha(spread, bands, distance=distance, n_boot=0).estimate
        assert (one == pytest.approx(two)) is same


def test_all_ratings_equal_leave_alpha_and_fleiss_undefined_and_ac1_at_one() -> None:
    ratings = [[2, 2, 2], [2, 2, 2]]
    for statistic in (krippendorff_alpha, fleiss_kappa):
        found = statistic(ratings, BANDS)
        assert math.isnan(found.estimate)
        assert found.status is Status.UNDEFINED
    assert gwet_ac1(ratings, BANDS).estimate == 1.0


def test_fleiss_leaves_out_items_that_not_every_rater_rated() -> None:
    full = [[1, 2, 1, 2, 3], [1, 2, 2, 2, 3], [1, 2, 1, 2, 4]]
    gaps = [[*row, last] for row, last in zip(full, (1, None, 1), strict=True)]
    found = fleiss_kappa(gaps, BANDS)
    assert found.estimate == fleiss_kappa(full, BANDS).estimate
    assert (found.n_cases, found.n_missing, found.extra["n_left_out"]) == (5, 1, 1)


def test_a_judge_that_always_says_three_has_a_high_ac2() -> None:
    ratings = [[1, 2, 3, 4, 5, 3], [3] * 6]
    assert gwet_ac2(ratings, range(1, 6)).estimate == pytest.approx(0.793814433)


@pytest.mark.parametrize(
    ("ratings", "how", "sentence"),
    [
        ([[1, 2, 3]], {}, "two raters"),
        ([[1, 2], [1]], {}, "equally long"),
        ([[1, 9], [1, 2]], {}, "none of the categories"),
        ([[1, 2], [1, 2]], {"distance": "ratio"}, "none of nominal"),
    ],
)
def test_malformed_ratings_are_refused(
    ratings: list[list[int]], how: dict[str, str], sentence: str
) -> None:
    with pytest.raises(StatsError, match=sentence):
        krippendorff_alpha(ratings, BANDS, **how)  # type: ignore[arg-type]


def test_interval_distances_need_numbers() -> None:
    with pytest.raises(StatsError, match="numbers"):
        krippendorff_alpha([["a", "b"], ["a", "b"]], ("a", "b"), distance="interval")

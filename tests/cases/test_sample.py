"""Stratified draws: statistics.md section 6 and its reference cases."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.cases.sample import draw
from evalkit.errors import UsageError
from evalkit.records import Case

MIX = {"easy": 0.40, "ambiguous": 0.25, "no_answer": 0.20, "adversarial": 0.15}


def cases(**sizes: int) -> list[Case]:
    """Cases of each stratum, dealt in turn, so that strata are not blocks."""
    made = [Case(f"{h}-{i}", h) for h, k in sizes.items() for i in range(k)]
    return sorted(made, key=lambda case: case.id[::-1])


DOCS = cases(easy=24, ambiguous=15, no_answer=12, adversarial=9)


def test_the_mix_of_the_docs_suite_gives_24_cases_in_proportion() -> None:
    sample = draw(DOCS, 24, mix=MIX, seed=7)
    assert sample.sizes == {"easy": 10, "ambiguous": 6, "no_answer": 5, "adversarial": 3}
    assert sample.population == {"easy": 24, "ambiguous": 15, "no_answer": 12, "adversarial": 9}
    assert sample.weights == pytest.approx(MIX)


def test_a_draw_is_deterministic_in_case_order_and_without_repeats() -> None:
    sample = draw(DOCS, 30, seed=7)
    assert sample == draw(DOCS, 30, seed=7)
    assert sample.cases != draw(DOCS, 30, seed=8).cases
    ids = [case.id for case in sample.cases]
    assert len(set(ids)) == len(ids) == len(sample) == 30
    assert ids == [case.id for case in DOCS if case.id in ids]


def test_neither_the_order_nor_the_number_of_cases_decides_which_are_drawn() -> None:
    ids = {case.id for case in draw(DOCS, 30, mix=MIX, seed=7).cases}
    assert {case.id for case in draw(DOCS[::-1], 30, mix=MIX, seed=7).cases} == ids
    grown = draw([*DOCS, *cases(easy=40)[24:]], {"ambiguous": 5}, seed=7).cases
    assert grown == draw(DOCS, {"ambiguous": 5}, seed=7).cases


def test_a_draw_is_the_same_on_every_machine() -> None:
    # ranks: SHA-256 of "7\na-0" and so on; computed apart from the package with sha256sum
    ids = [case.id for case in draw(cases(a=5, b=5), 4, seed=7).cases]
    assert ids == ["a-0", "a-1", "b-2", "b-3"]


def test_a_larger_sample_holds_the_smaller_one_of_a_stratum() -> None:
    small = {case.id for case in draw(DOCS, 12, seed=3).cases}
    large = {case.id for case in draw(DOCS, 36, seed=3).cases}
    assert small < large


def test_every_case_is_drawn_equally_often() -> None:
    drawn = Counter(c.id for seed in range(2000) for c in draw(cases(a=6), 2, seed=seed).cases)
    # 2000 draws of 2 of 6: 667 each, standard deviation 21; five of them either side
    assert all(560 < k < 775 for k in drawn.values())


def test_asking_for_more_than_there_are_gives_all_and_says_so() -> None:
    sample = draw(DOCS, 100, seed=1)
    assert sample.cases == tuple(DOCS)
    assert sample.sizes == sample.population
    assert sample.warnings == ("100 cases were asked for, there are 60: all are drawn",)
    assert draw(DOCS).cases == tuple(DOCS)
    assert draw(DOCS).warnings == ()


def test_c05_a_small_stratum_gives_all_it_has_with_a_warning() -> None:
    good = cases(billing=29, returns=3, other=25)
    wanted = dict.fromkeys(("billing", "returns", "other"), 20)
    sample = draw(good, wanted, seed=7)
    assert sample.sizes == {"billing": 20, "returns": 3, "other": 20}
    assert Counter(case.stratum for case in sample.cases) == sample.sizes
    assert sample.warnings == ("stratum 'returns' has 3 cases, 20 were asked for: all 3 drawn",)
    assert sample == draw(good, wanted, seed=7)
    equal = draw(good, 43, allocation="equal", seed=7)
    assert equal.sizes == sample.sizes
    assert "fewer than an equal share of 15" in equal.warnings[0]


@pytest.mark.parametrize(
    ("n", "said"),
    [
        (0, "a sample of 0 holds no case"),
        (-3, "a sample of -3 holds no case"),
        (7, "two of each make 8"),
        ({"easy": 0}, "a sample of 0 holds no case"),
        ({"esy": 3}, "no stratum 'esy' to draw from; did you mean 'easy'?"),
        ({"": 3}, "no stratum ''"),
        ({"easy": -1}, "cannot be drawn"),
    ],
)
def test_a_sample_that_cannot_be_is_a_usage_error(n: Any, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        draw(DOCS, n)
    assert said in str(caught.value)
    assert caught.value.exit_status == 2


def test_nothing_to_draw_from_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="selection is empty"):
        draw([], 5)
    with pytest.raises(UsageError, match="'typo' is not in the mix"):
        draw([Case("a", "typo")], 1, mix=MIX)
    with pytest.raises(UsageError, match="allocation 'even' is not known"):
        draw(DOCS, 20, allocation="even")  # pyright: ignore[reportArgumentType]


def test_a_stratum_without_cases_keeps_its_weight_and_is_named() -> None:
    some = [case for case in DOCS if case.stratum != "no_answer"]
    sample = draw(some, 20, mix=MIX)
    assert sample.sizes["no_answer"] == 0
    assert sample.weights["no_answer"] == pytest.approx(0.20)
    assert "'no_answer' has no case" in sample.warnings[0]
    assert "20%" in sample.warnings[0]


@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=7),
    shares=st.lists(st.floats(0.01, 1.0), min_size=7, max_size=7),
    n=st.integers(14, 300),
    method=st.sampled_from(["proportional", "equal"]),
)
def test_a_sample_keeps_its_bounds_and_its_sum(
    sizes: list[int], shares: list[float], n: int, method: Any
) -> None:
    strata = {f"s{i}": k for i, k in enumerate(sizes)}
    mix = dict(zip(strata, shares, strict=False))
    sample = draw(cases(**strata), n, allocation=method, mix=mix)
    assert len(sample) == sum(sample.sizes.values()) == min(n, sum(sizes))
    assert Counter(case.stratum for case in sample.cases) == sample.sizes
    assert all(min(2, strata[h]) <= k <= strata[h] for h, k in sample.sizes.items())
    assert list(sample.sizes) == list(sample.population) == list(sample.weights) == list(mix)
    assert sum(sample.weights.values()) == pytest.approx(1)

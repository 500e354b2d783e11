from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.errors import StatsError
from evalkit.stats.pairwise import (
    Outcome,
    merge_orders,
    repetition_stability,
    sign_test_p,
    swap_protocol,
    win_rate,
    win_rate_of_counts,
)
from evalkit.stats.result import Status

WORDS = ("first", "second", "tie", "invalid")
verdicts = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS)), max_size=40)


@pytest.mark.parametrize(
    ("a_first", "b_first", "outcome"),
    [
        ("first", "second", Outcome.A),
        ("second", "first", Outcome.B),
        ("tie", "tie", Outcome.TIE_BOTH),
        ("first", "first", Outcome.TIE_FLIP),
        ("second", "second", Outcome.TIE_FLIP),
        ("first", "tie", Outcome.TIE_HALF),
        ("tie", "first", Outcome.TIE_HALF),
        ("first", None, Outcome.INVALID),
        ("invalid", "tie", Outcome.INVALID),
    ],
)
def test_a_win_needs_both_orders(
    a_first: str | None, b_first: str | None, outcome: Outcome
) -> None:
    assert merge_orders(a_first, b_first) is outcome


@given(verdicts)
def test_every_pair_is_counted_once_and_renaming_the_sides_mirrors_the_rate(
    pairs: list[tuple[str, str]],
) -> None:
    found = swap_protocol(pairs)
    counted = found.a + found.b + found.ties + found.invalid
    assert counted == len(pairs) == len(found.outcomes)
    assert found.primacy + found.recency == found.tie_flip + found.tie_half
    mirrored = swap_protocol([(b, a) for a, b in pairs])  # what was shown first stays first
    assert (mirrored.a, mirrored.b) == (found.b, found.a)
    assert (mirrored.primacy, mirrored.recency) == (found.primacy, found.recency)
    assert mirrored.swap_consistency == found.swap_consistency
    assert mirrored.win_rate.estimate == pytest.approx(1 - found.win_rate.estimate, nan_ok=True)
    assert mirrored.win_rate.ci_low == pytest.approx(1 - found.win_rate.ci_high, nan_ok=True)
    if pairs:
        low, high = found.win_rate.bounds or (math.nan, math.nan)
        assert high - low == pytest.approx(found.invalid / len(pairs))
        if found.n_valid:
            assert low <= found.win_rate.estimate + 1e-12
            assert found.win_rate.estimate <= high + 1e-12


def test_a_judge_that_always_says_first_is_a_leaning_one_not_a_noisy_one() -> None:
    found = swap_protocol([("first", "first")] * 30)
    assert found.swap_consistency.estimate == 0.0
    assert found.preference_fairness == -1.0
    assert found.p_position_bias < 1e-8
    assert found.win_rate.estimate == 0.5
    assert found.first_share.estimate == 1.0
    noisy = swap_protocol([("first", "first"), ("second", "second")] * 15)
    assert (noisy.preference_fairness, noisy.p_position_bias) == (0.0, 1.0)


def test_published_widths_of_swap_consistency() -> None:
    found = swap_protocol([("first", "second")] * 28 + [("first", "first")] * 2).swap_consistency
    assert (round(found.ci_low, 2), round(found.ci_high, 2)) == (0.79, 0.98)
    few = swap_protocol([("first", "second")] * 8).swap_consistency
    assert (round(few.ci_low, 2), few.ci_high) == (0.68, 1.0)


def test_too_many_unread_verdicts_are_named() -> None:
    assert swap_protocol([("first", "second")] * 9 + [("first", None)]).reasons == (
        "too_many_missing",
    )


def test_all_wins_prove_no_certainty() -> None:
    found = win_rate_of_counts(40, 0, 0)
    assert (found.estimate, found.ci_high) == (1.0, 1.0)
    assert found.ci_low == pytest.approx(0.025 ** (1 / 40))
    assert found.status is Status.DEGENERATE
    ties = win_rate_of_counts(0, 40, 0)
    assert ties.ci_low < 0.5 < ties.ci_high


def test_the_prompt_is_the_unit_where_pairs_share_one() -> None:
    scores = [1.0] * 20 + [0.0] * 20
    prompts = ["p"] * 20 + ["q"] * 10 + ["r"] * 10
    found, plain = win_rate(scores, clusters=prompts), win_rate(scores)
    assert found.n_cases == 3
    assert found.n_runs == plain.n_cases == 40
    assert found.estimate == pytest.approx(1 / 3)
    assert found.ci_high - found.ci_low > plain.ci_high - plain.ci_low


def test_small_samples_say_that_the_interval_is_rough() -> None:
    found = win_rate_of_counts(6, 1, 1)
    assert "n_lt_30" in found.reasons
    assert found.extra["p_signflip"] == sign_test_p(6, 7) == found.extra["p_sign"]
    assert win_rate([]).status is Status.INSUFFICIENT_DATA
    assert math.isnan(win_rate([1.0]).ci_low)


def test_the_sign_test_is_symmetric_and_one_without_data() -> None:
    assert sign_test_p(0, 0) == 1.0
    assert sign_test_p(2, 9) == sign_test_p(7, 9)
    assert sign_test_p(5, 10) == 1.0


def test_repetition_stability_needs_three_readable_repeats() -> None:
    steady = [["first"] * 3, ["second"] * 3]
    wavering = [["first", "first", "second"], ["tie", "tie", "tie", None]]
    found = repetition_stability([steady, wavering, [["first", "tie"], ["first", None]]])
    assert found.estimate == pytest.approx((1 + (2 / 3 + 1) / 2) / 2)
    assert (found.n_cases, found.n_missing) == (2, 2)
    none = repetition_stability([[["first"], ["first"]]])
    assert none.reasons == ("repeats_lt_3",)


def test_equal_systems_stay_at_one_half_under_a_lean() -> None:
    rng = np.random.default_rng(1)
    first = rng.random((4000, 2)) < 1 / (1 + math.exp(-1))  # a position logit of 1
    words = np.where(first, "first", "second").tolist()
    found = swap_protocol([(a, b) for a, b in words])
    assert abs(found.win_rate.estimate - 0.5) < 0.02
    assert found.first_share.estimate == pytest.approx(0.73, abs=0.02)
    assert found.preference_fairness < -0.3


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: merge_orders("a", "b"), "none of first"),
        (lambda: win_rate([1.2]), r"in \[0, 1\]"),
        (lambda: win_rate([1, 0], clusters=["p"]), "one per pair"),
        (lambda: win_rate_of_counts(-1, 0, 0), "negative"),
    ],
)
def test_malformed_verdicts_are_refused(call: object, sentence: str) -> None:
    with pytest.raises(StatsError, match=sentence):
        call()  # type: ignore[operator]

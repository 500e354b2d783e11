from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.errors import StatsError
from evalkit.stats.power import (
    cases_for_release,
    minimum_detectable_effect,
    minimum_detectable_effect_exact,
    sample_size,
    sample_size_by_runs,
)


@given(
    st.integers(20, 400),
    st.sampled_from([1, 2]),
    st.sampled_from([0.01, 0.05, 0.1]),
    st.sampled_from([0.7, 0.8, 0.9]),
)
def test_the_formula_agrees_with_the_noncentral_t(n, sided, alpha, power) -> None:
    how = {"alpha": alpha, "power": power, "sided": sided}
    exact = minimum_detectable_effect_exact(0.03, n, **how)
    assert minimum_detectable_effect(0.03, n, **how) == pytest.approx(exact, rel=0.01)


def test_the_sample_size_finds_what_it_was_made_for() -> None:
    n = math.ceil(sample_size(0.03, 0.05))
    assert minimum_detectable_effect(math.sqrt(0.03 / n), n, sided=1) == pytest.approx(
        0.05, rel=0.05
    )


def test_a_release_needs_these_cases_at_a_usual_spread() -> None:
    # statistics of the design: 447 / 72 / 18, raised to the fewest that can prove the margin
    assert [cases_for_release(0.17, margin) for margin in (0.02, 0.05, 0.10)] == [447, 72, 29]
    assert [cases_for_release(0.0, margin) for margin in (0.02, 0.05, 0.10)] == [149, 59, 29]


def test_more_runs_help_until_the_cases_decide() -> None:
    by_runs = sample_size_by_runs(0.01, 0.05, var_within_baseline=0.045, var_within_candidate=0.045)
    assert by_runs[3] == 99
    assert by_runs[1] > by_runs[3] > by_runs[5] > math.ceil(sample_size(0.01, 0.05))


def test_without_variance_the_unseen_share_is_what_could_have_been_found() -> None:
    assert minimum_detectable_effect(0.0, 30, sided=1) == pytest.approx(1 - 0.05 ** (1 / 30))
    assert math.isnan(minimum_detectable_effect(0.1, 1))
    assert math.isnan(minimum_detectable_effect(math.nan, 9))


@pytest.mark.parametrize(
    "call",
    [
        lambda: minimum_detectable_effect(-0.1, 9),
        lambda: minimum_detectable_effect(0.1, 9, sided=3),
        lambda: minimum_detectable_effect(0.1, 9, power=80),
        lambda: minimum_detectable_effect_exact(0.0, 9),
        lambda: sample_size(-0.1, 0.05),
        lambda: sample_size(0.1, 0.0),
        lambda: sample_size(0.1, 0.05, runs_baseline=0),
    ],
)
def test_malformed_input_raises(call) -> None:
    with pytest.raises(StatsError):
        call()

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from evalkit.errors import StatsError
from evalkit.stats.length import length_association, length_controlled_win_rate, self_preference
from evalkit.stats.result import Status


def judged(n: int, merit: float, pay: float, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Scores of a judge that pays for length; A is longer on average."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(420, 100, n), rng.normal(380, 100, n)
    odds = merit + pay * np.tanh((a - b) / (a - b).std())
    return (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(float), a, b


def test_the_fit_equals_scikit_learn_without_penalty() -> None:
    scores, a, b = judged(400, 0.2, 1.0)
    scores[:40] = 0.5
    found = length_controlled_win_rate(scores, a, b, n_boot=50)
    x = np.tanh((a - b) / (a - b).std())[:, None]
    doubled = np.vstack([x, x])
    labels = np.repeat([1, 0], 400)
    weights = np.concatenate([scores, 1 - scores])
    oracle = LogisticRegression(C=np.inf, tol=1e-10).fit(doubled, labels, weights)
    assert found.intercept == pytest.approx(oracle.intercept_[0], abs=1e-5)
    assert found.slope == pytest.approx(oracle.coef_[0, 0], abs=1e-5)


def test_paying_for_length_disappears_and_merit_stays() -> None:
    found = length_controlled_win_rate(*judged(2000, 0.0, 2.0), n_boot=200)
    assert found.raw.estimate > 0.55
    assert found.controlled.ci_low < 0.5 < found.controlled.ci_high
    merit = length_controlled_win_rate(*judged(2000, 1.0, 0.0), n_boot=200)
    assert merit.controlled.estimate == pytest.approx(merit.raw.estimate, abs=0.03)
    assert abs(merit.slope) < 0.3


def test_units_of_length_do_not_matter_and_sides_mirror() -> None:
    scores, a, b = judged(300, 0.3, 1.0)
    one = length_controlled_win_rate(scores, a, b, n_boot=50)
    other = length_controlled_win_rate(scores, 4 * a, 4 * b, n_boot=50)
    mirrored = length_controlled_win_rate(1 - scores, b, a, n_boot=50)
    assert other.controlled.estimate == pytest.approx(one.controlled.estimate, abs=1e-9)
    assert mirrored.controlled.estimate == pytest.approx(1 - one.controlled.estimate, abs=1e-9)
    assert mirrored.slope == pytest.approx(one.slope, abs=1e-8)


def test_equal_lengths_leave_the_rate_as_it_is() -> None:
    found = length_controlled_win_rate([1, 1, 0, 0.5], [5] * 4, [5] * 4)
    assert found.reasons == ("equal_lengths",)
    assert found.controlled.estimate == found.raw.estimate


@pytest.mark.parametrize("scores", [[1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 1]])
def test_a_separated_fit_has_a_flag_and_no_interval(scores: list[float]) -> None:
    found = length_controlled_win_rate(scores, [5, 6, 7, 1, 2, 3], [4] * 6)
    assert found.reasons == ("separated",)
    assert found.controlled.status is Status.DEGENERATE
    assert math.isnan(found.controlled.ci_low)


def test_prompts_are_the_units_of_the_bootstrap() -> None:
    scores, a, b = judged(60, 0.3, 1.0)
    many = length_controlled_win_rate(*(np.repeat(x, 5) for x in (scores, a, b)), n_boot=300)
    units = np.repeat(np.arange(60), 5).tolist()
    data = [np.repeat(x, 5) for x in (scores, a, b)]
    few = length_controlled_win_rate(*data, prompts=units, n_boot=300)
    assert few.controlled.estimate == pytest.approx(many.controlled.estimate)
    width = many.controlled.ci_high - many.controlled.ci_low
    assert few.controlled.ci_high - few.controlled.ci_low > 1.5 * width


def test_length_association_holds_merit_fixed() -> None:
    rng = np.random.default_rng(0)
    human = rng.normal(size=300)
    length = human + rng.normal(size=300)
    fair = length_association(human + 0.3 * rng.normal(size=300), length, human)
    paid = length_association(human + length, length, human)
    assert fair.extra["raw"] > 0.5
    assert fair.ci_low < 0 < fair.ci_high
    assert paid.ci_low > 0.5


def test_self_preference_needs_a_reference() -> None:
    none = self_preference([1, 1, 0], None)
    assert none.status is Status.UNDEFINED
    assert none.reasons == ("no_reference",)
    judge, reference = [1, 1, 1, 0.5, 1, 0] * 6, [1, 0, 0.5, 0.5, 0, 0] * 6
    found = self_preference(judge, reference)
    assert found.estimate == pytest.approx(np.mean(judge) - np.mean(reference))
    assert found.ci_low > 0
    gaps = self_preference([*judge, math.nan], [*reference, 1])
    assert (gaps.n_missing, gaps.n_invalid) == (1, 1)
    assert gaps.estimate == found.estimate


def test_malformed_lists_are_refused() -> None:
    with pytest.raises(StatsError, match="one per pair"):
        length_controlled_win_rate([1, 0], [1, 2], [1])
    with pytest.raises(StatsError, match=r"\[0, 1\]"):
        self_preference([2.0], [1.0])

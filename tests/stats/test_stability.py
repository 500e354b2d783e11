from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.errors import StatsError
from evalkit.stats.stability import detection_limit, pass_at_k, pass_hat_k, stability


def test_always_failing_and_flaky_are_listed_apart() -> None:
    found = stability([[1, 1], [0, 0], [1, 0], [1, None], [None, None]])
    assert found.always_pass == (0, 3)
    assert found.always_fail == (1,)
    assert found.flaky == (2,)
    assert found.missing == (4,)


def test_a_scale_passes_from_its_pass_mark_on() -> None:
    found = stability([[4, 5], [3, 4]], pass_at=0.75, score_range=(1, 5))
    assert found.always_pass == (0,)
    assert found.flaky == (1,)


def test_three_runs_hide_most_cases_that_pass_nine_times_in_ten() -> None:
    assert 1 - detection_limit(0.9, 3) == pytest.approx(0.729)
    with pytest.raises(StatsError, match="at least one run"):
        detection_limit(0.9, 0)


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=7), st.data())
def test_pass_at_k_is_the_share_of_all_draws_of_k_runs(runs, data) -> None:
    k = data.draw(st.integers(1, len(runs)))
    draws = list(combinations(runs, k))
    assert pass_at_k([runs], k).estimate == pytest.approx(np.mean([max(x) for x in draws]))
    assert pass_hat_k([runs], k).estimate == pytest.approx(np.mean([min(x) for x in draws]))


def test_the_error_is_clustered_by_case_and_short_cases_are_counted() -> None:
    scores = [[1, 1, 0], [0, 0, 1], [1, 1, 1], [1, None, None]]
    found = pass_at_k(scores, 2)
    assert found.n_cases == 3
    assert found.extra["n_missing_cases"] == 1
    assert found.extra["se"] == pytest.approx(np.std([1, 2 / 3, 1], ddof=1) / math.sqrt(3))
    assert math.isnan(pass_hat_k([[None, None]], 2).estimate)


@pytest.mark.parametrize("k", [0, 4])
def test_more_draws_than_runs_raise(k: int) -> None:
    with pytest.raises(ValueError, match=r"1\.\.3"):
        pass_at_k([[1, 1, 0]], k)


def test_graded_scores_have_no_pass_at_k() -> None:
    with pytest.raises(StatsError, match="pass/fail"):
        pass_at_k([[0.5, 1]], 1)

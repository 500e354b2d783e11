from __future__ import annotations

import random

import numpy as np
import pytest

from evalkit.errors import StatsError
from evalkit.stats.compare import compare_paired
from evalkit.stats.decision import Direction
from evalkit.stats.pairs import pair_up
from evalkit.stats.selection import compare_selected, split_dev_test

IDS = [f"case-{i:03d}" for i in range(101)]


def test_the_split_is_by_id_half_of_each_stratum_and_the_same_in_any_order() -> None:
    strata = {case: "easy" if i % 3 else "hard" for i, case in enumerate(IDS)}
    found = split_dev_test(IDS, strata)
    for name in ("easy", "hard"):
        members = [case for case in IDS if strata[case] == name]
        assert abs(sum(found[c] == "test" for c in members) - len(members) / 2) <= 0.5
    mixed = random.Random(1).sample(IDS, len(IDS))
    assert split_dev_test(mixed, strata) == found
    assert list(split_dev_test(mixed)) == mixed


def test_the_split_is_pinned() -> None:
    found = split_dev_test(["a", "b", "c", "d"])
    assert found == {"a": "test", "b": "test", "c": "dev", "d": "dev"}
    assert sum(part == "test" for part in split_dev_test(IDS, test_share=0.2).values()) == 20


def test_a_split_of_nonsense_is_refused() -> None:
    with pytest.raises(StatsError, match="twice"):
        split_dev_test(["a", "a"])
    with pytest.raises(StatsError, match="strictly between"):
        split_dev_test(["a"], test_share=1)


def test_the_winner_of_k_is_held_to_alpha_over_k_on_the_data_that_chose_it() -> None:
    rng = np.random.default_rng(0)
    pairs = pair_up(rng.random((45, 3)), np.clip(rng.random((45, 3)) + 0.09, 0, 1))
    alone, chosen = compare_paired(pairs), compare_selected(pairs, candidates=10)
    assert alone.direction is Direction.IMPROVED
    assert chosen.direction is Direction.NOT_DISTINGUISHED
    assert chosen.interval.conf == pytest.approx(0.995)
    assert chosen.interval.ci_low < alone.interval.ci_low
    assert "selected_on_same_data" in chosen.interval.reasons
    assert chosen.interval.extra["candidates"] == 10
    assert compare_selected(pairs, candidates=1) == alone
    assert compare_selected(pairs, candidates=None) == alone


def test_k_must_be_told_when_several_candidates_are_known() -> None:
    pairs = pair_up([0.0, 1.0, 0.5], [1.0, 1.0, 0.5])
    with pytest.raises(StatsError, match="say how many"):
        compare_selected(pairs, candidates=None, known_candidates=3)
    with pytest.raises(StatsError, match="cannot be 2"):
        compare_selected(pairs, candidates=2, known_candidates=3)

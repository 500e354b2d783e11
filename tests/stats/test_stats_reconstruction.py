from __future__ import annotations

import math

import pytest

from evalkit.errors import StatsError
from evalkit.stats.intervals import exact_p_at_least
from evalkit.stats.reconstruction import (
    ReconstructionVerdict,
    gap_rule,
    pairs_to_pass,
    reconstruct,
    reconstruction_gate,
)

PASS, FAIL = ReconstructionVerdict.PASS, ReconstructionVerdict.FAIL


@pytest.mark.parametrize(
    ("n", "needed", "random", "proven"),
    [
        (8, 7, 0.035, None),
        (10, 9, 0.011, 10),
        (20, 15, 0.021, 18),
        (30, 21, 0.021, 26),
        (50, 35, 0.003, 41),
    ],
)
def test_the_published_table_of_the_gate(
    n: int, needed: int, random: float, proven: int | None
) -> None:
    assert pairs_to_pass(n) == needed
    assert reconstruction_gate(needed, n).verdict is PASS
    assert reconstruction_gate(needed - 1, n).verdict is FAIL
    assert round(exact_p_at_least(needed, n), 3) == random
    at = [k for k in range(n + 1) if reconstruction_gate(k, n).proven_at_threshold]
    assert (at[0] if at else None) == proven


def test_fewer_than_five_pairs_show_nothing() -> None:
    found = reconstruction_gate(2, 2)
    assert found.verdict is ReconstructionVerdict.NOT_ASSESSABLE
    assert (found.p_vs_chance, found.needed) == (0.25, None)
    assert math.isnan(reconstruction_gate(0, 0).accuracy.estimate)


def test_missing_pairs_break_the_gate_only_where_they_decide_or_are_many() -> None:
    assert reconstruction_gate(45, 48, n_invalid=2).verdict is PASS
    decides = reconstruction_gate(69, 98, n_invalid=2)
    assert decides.verdict is ReconstructionVerdict.BROKEN
    assert decides.reasons == ("missing_data_decides",)
    many = reconstruction_gate(45, 46, n_invalid=4)
    assert many.reasons == ("too_many_missing",)
    assert many.accuracy.bounds == (45 / 50, 49 / 50)
    assert many.accuracy.n_invalid == 4


def test_a_set_that_length_alone_solves_confounds() -> None:
    right = [True] * 28 + [False] * 2
    found = reconstruct(right, length_strong=[200] * 30, length_weak=[100] * 30)
    assert found.verdict is ReconstructionVerdict.CONFOUNDED
    assert found.confounded_by == ("length",)
    assert found.baselines["length"].verdict is PASS
    assert found.baselines["shortness"].verdict is FAIL
    balanced = reconstruct(right, length_strong=[200, 100] * 15, length_weak=[100, 200] * 15)
    assert balanced.verdict is PASS
    lexical = reconstruct(right, baselines={"overlap": [True] * 30})
    assert lexical.confounded_by == ("overlap",)


def test_a_judge_that_fails_fails_whatever_length_does() -> None:
    found = reconstruct([True, False] * 15, length_strong=[2] * 30, length_weak=[1] * 30)
    assert found.verdict is FAIL
    assert "confounded:length" in found.reasons


def test_invalid_pairs_leave_the_baselines_too() -> None:
    found = reconstruct([*[True] * 30, None], length_strong=[1] * 31, length_weak=[1] * 31)
    assert found.baselines["length"].accuracy.n_cases == 30
    assert found.baselines["length"].accuracy.estimate == 0.0  # equal lengths are not right


def test_the_gap_rule_holds_on_every_single_pair() -> None:
    assert gap_rule([0.9, 0.75, 1.0], [0.1, 0.35, 0.0]) == ()
    assert gap_rule([0.9, 0.74, 0.8, math.nan], [0.1, 0.1, 0.36, 0.0]) == (1, 2, 3)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: reconstruction_gate(3, 2), "cannot be"),
        (lambda: reconstruction_gate(3, 5, threshold=1.2), "strictly between"),
        (lambda: reconstruct([True], length_strong=[1]), "both items"),
        (lambda: reconstruct([True], length_strong=[1, 2], length_weak=[1, 2]), "lengths for"),
        (lambda: reconstruct([True], baselines={"x": [True, True]}), "one mark"),
        (lambda: reconstruct([0.5]), "ties are not right"),
        (lambda: gap_rule([1], [0, 0]), "one of each"),
    ],
)
def test_malformed_pairs_are_refused(call: object, sentence: str) -> None:
    with pytest.raises(StatsError, match=sentence):
        call()  # type: ignore[operator]

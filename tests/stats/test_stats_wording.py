from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from evalkit.stats.compare import compare_paired
from evalkit.stats.decision import Strictness
from evalkit.stats.gate import counted_verdict, floor_verdict, relative_verdict
from evalkit.stats.pairs import pair_up
from evalkit.stats.repeats import pass_rate
from evalkit.stats.wording import (
    change_text,
    comparison_sentence,
    headline,
    rate_sentence,
    value_text,
)

FORBIDDEN = re.compile(r"no difference|no regression|\bequal\b|\bsame as\b|\bnan\b", re.IGNORECASE)
matrices = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 40), st.just(2)),
    elements=st.sampled_from([0, 1, math.nan]),
)


@given(matrices, matrices)
def test_no_sentence_claims_that_nothing_changed_or_shows_nan(old, new) -> None:
    n = min(len(old), len(new))
    pair = old[:n], new[:n]
    sentences = [rate_sentence(pass_rate(old)), counted_verdict(old).sentence]
    sentences.append(comparison_sentence(compare_paired(pair_up(*pair))))
    for strictness in Strictness:
        sentences.append(relative_verdict(*pair, 0.05, strictness=strictness).sentence)
        sentences.append(floor_verdict(old, 0.9, strictness=strictness).sentence)
    for sentence in sentences:
        assert sentence
        assert not FORBIDDEN.search(sentence), sentence


def test_a_rate_shows_its_n_its_interval_and_what_is_missing() -> None:
    text = rate_sentence(pass_rate([[1, 1], [1, None], [0, 1], [1, 1]]), judge="j1 (licensed)")
    assert "n = 4 cases, 7 runs" in text
    assert "95 % interval" in text
    assert "1 observation missing" in text
    assert "judged by j1 (licensed)" in text
    assert "synthetic" in rate_sentence(pass_rate([1, 0]), synthetic=True)
    fixed = rate_sentence(pass_rate([[1, 0], [1, 1]], scope="fixed_set"))
    assert "these very cases" in fixed
    assert rate_sentence(pass_rate([])) == "not measured (no_cases)"


def test_a_percentage_has_as_many_digits_as_its_error_supports() -> None:
    assert value_text(0.91666) == "91.7 %"
    assert value_text(0.91666, se=0.03) == "92 %"
    assert value_text(3.456, span=4) == "3.46"
    assert value_text(math.nan) == "not defined"
    assert change_text(-0.0421) == "−4.2 points"
    assert change_text(0.0421, signed=False) == "4.2 points"
    assert change_text(-0.25, span=4) == "−0.25"


def test_not_distinguished_names_what_would_have_been_found() -> None:
    rng = np.random.default_rng(2)
    old, new = rng.integers(1, 6, 40), rng.integers(1, 6, 40)
    found = compare_paired(pair_up(old, new, score_range=(1, 5)))
    text = comparison_sentence(found, span=4)
    assert text.startswith("not distinguished")
    assert f"±{found.mde:.2f} or more would have been found with 80 % power" in text


@pytest.mark.parametrize(("shift", "word"), [(1, "improved"), (-1, "regression detected")])
def test_a_direction_is_named(shift: int, word: str) -> None:
    rng = np.random.default_rng(2)
    old = rng.integers(2, 5, 40)
    new = old + shift * rng.integers(0, 2, 40)
    found = compare_paired(pair_up(old, new, score_range=(1, 5)))
    text = comparison_sentence(found, span=4, candidates=3)
    assert text.startswith(word)
    assert "best of 3, selected on the same data" in text


def test_a_small_set_is_a_smoke_gate_and_names_no_improvement() -> None:
    rng = np.random.default_rng(1)
    old = rng.random((60, 3))
    better = compare_paired(pair_up(old, np.minimum(old + rng.random((60, 3)) / 5, 1)))
    assert headline(better, 0.05).startswith("improved: +")
    assert headline(better, 0.02).startswith("smoke gate: +")
    assert "improved" not in headline(better, 0.02)
    worse = compare_paired(pair_up(old, np.maximum(old - rng.random((60, 3)) / 5, 0)))
    assert headline(worse, 0.02).startswith("smoke gate: regression detected")
    assert "no interval" in headline(compare_paired(pair_up([1.0], [0.0])), 0.02)


def test_what_left_the_comparison_and_what_was_read_before_is_said() -> None:
    old, new = [[1, 1]] * 9 + [[None, None]], [[1, 0]] * 8 + [[None, None]] + [[0, 0]]
    text = comparison_sentence(compare_paired(pair_up(old, new)), test_reads=2)
    assert "cases without a score: 1 in the baseline, 1 in the candidate" in text
    assert "4 observations missing" in text
    assert "the test half was read 2 times" in text

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.errors import ScorerError
from evalkit.records import Case, Reply, Score
from evalkit.scorers.reference import ExactMatch, NumberMatch, TokenOverlap, numbers_in, tokens_of


def case(**expected: Any) -> Case:
    return Case("c1", expected=expected)


def test_exact_match_overlooks_capitals_width_space_and_the_full_stop() -> None:
    reply = Reply("<think>x</think>  ＰＡＲＩＳ \n is it. ")
    assert ExactMatch()(case(answer="paris is it"), reply) == Score(1.0, "equal to the reference")
    strict = ExactMatch(normalize=False)(case(answer="paris is it"), reply)
    assert (strict.value, strict.reason) == (0.0, "'ＰＡＲＩＳ \\n is it.' is not 'paris is it'")
    assert ExactMatch(normalize=False)(case(answer=" a "), Reply("a\n")).value == 1.0
    assert ExactMatch()(case(answer=["x", "Lyon"]), Reply("lyon!")).value == 1.0
    other = ExactMatch()(case(answer=["x", "y"]), Reply("z"))
    assert (other.value, other.reason) == (0.0, "'z' is not 'x' or 'y'")
    empty = ExactMatch()(case(answer=[]), Reply("z"))
    assert (empty.value, empty.reason) == (0.0, "'z' is not anything: the reference is empty")
    assert ExactMatch(expected="gold", field="a")(case(gold="b"), Reply('{"a": "b"}')).value == 1.0


def test_token_overlap_is_the_f1_of_shared_words() -> None:
    score = TokenOverlap()(case(answer="the cat sat down"), Reply("A cat sat here, cat."))
    # said: cat sat here cat; wanted: cat sat down; shared: cat sat
    assert score.value == pytest.approx(2 * 2 / (4 + 3), abs=1e-12)
    assert score.details == {"precision": 0.5, "recall": pytest.approx(2 / 3)}
    assert score.reason == (
        "F1 0.57: 50% of its words are in the reference, 67% of the reference's are in it"
    )
    best = TokenOverlap()(case(answer=["dog", "cat sat here cat"]), Reply("cat sat here cat"))
    assert best.value == 1.0
    assert TokenOverlap()(case(answer="每月清洗"), Reply("每月洗")).value == pytest.approx(6 / 7)
    assert TokenOverlap()(case(answer="x"), Reply("...")).value == 0.0
    assert TokenOverlap()(case(answer="!"), Reply("...")).value == 1.0
    assert TokenOverlap()(case(answer=[]), Reply("x")).value == 0.0
    assert TokenOverlap(field="a")(case(answer="b"), Reply('{"a": "b"}')).value == 1.0


def test_tokens_are_small_words_without_articles() -> None:
    assert tokens_of("The ＣＡＴ's an_x, 水温 97!") == ["cat", "s", "x", "水", "温", "97"]


@given(st.text(max_size=30), st.text(max_size=30))
def test_overlap_is_symmetric_and_full_for_equal_texts(a: str, b: str) -> None:
    one = TokenOverlap()(case(answer=a), Reply(f"{b} x")).value
    two = TokenOverlap()(case(answer=f"{b} x"), Reply(f"{a} ")).value
    if a.strip():
        assert one == two
    assert TokenOverlap()(case(answer=f"{b} x"), Reply(f"{b} x")).value == 1.0


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,234.5 and 1234.5", [1234.5, 1234.5]),
        ("1\u202f234\u00a0567", [1234567.0]),
        ("1.2e-3, 2E4, 3e−2", [0.0012, 20000.0, 0.03]),
        ("-3.5 and −3.5 and +2", [-3.5, -3.5, 2.0]),
        ("3-5 and 3–5", [3.0, 5.0, 3.0, 5.0]),
        ("12% of 7.", [12.0, 7.0]),
        ("v2 x1.5 abc3", []),
        ("1,23 or 12,3456", [1.0, 23.0, 12.0, 3456.0]),
        ("1.2.3", [1.2]),
        ("9e999", []),
        ("", []),
    ],
)
def test_numbers_of_a_text(text: str, values: list[float]) -> None:
    found = numbers_in(text)
    assert [value for value, _, _ in found] == values
    assert all(text[start] in "+-−0123456789" for _, start, _ in found)


def test_number_match_compares_the_chosen_number() -> None:
    text = "From 3 runs, 41.68 mV."
    score = NumberMatch(tolerance=0.02)(case(value=41.7), Reply(text))
    assert (score.value, score.reason) == (1.0, "41.68 against 41.7, gap 0.02, allowed 0.02")
    assert text[score.findings[0].start : score.findings[0].end] == "41.68"
    assert NumberMatch(tolerance=0.019)(case(value=41.7), Reply(text)).value == 0.0
    assert NumberMatch(which="first")(case(value=3), Reply(text)).value == 1.0
    assert NumberMatch(which="last")(case(value=3), Reply(text)).value == 0.0
    assert NumberMatch(which="any")(case(value=3), Reply(text)).value == 1.0
    assert NumberMatch(which="any")(case(value=4), Reply(text)).reason.startswith("3 against 4")
    assert NumberMatch(relative=0.1)(case(value=-100), Reply("-91")).value == 1.0
    assert NumberMatch(relative=0.1)(case(value=-100), Reply("-89")).value == 0.0
    assert NumberMatch(relative=0.1, tolerance=20)(case(value=-100), Reply("-81")).value == 1.0
    assert NumberMatch(tolerance=0.1)(case(value=0.2), Reply("0.3")).value == 1.0
    none = NumberMatch()(case(value=1), Reply("none"))
    assert none == Score(0.0, "no number in the answer")
    assert NumberMatch(field="n")(case(value=4), Reply('{"m": 5, "n": 4}')).value == 1.0
    assert NumberMatch(field="n")(case(value=4), Reply("4")).value == 0.0


@pytest.mark.parametrize("value", ["4", True, None, [4]])
def test_the_expected_number_must_be_one(value: Any) -> None:
    with pytest.raises(ScorerError, match=r"case 'c1': 'expected.value' must be a number"):
        NumberMatch()(case(value=value), Reply("4"))


@pytest.mark.parametrize("settings", [{"tolerance": -1.0}, {"relative": float("nan")}])
def test_tolerances_are_not_negative(settings: dict[str, float]) -> None:
    with pytest.raises(ScorerError, match="is below 0"):
        NumberMatch(**settings)


@pytest.mark.parametrize("scorer", [ExactMatch(), TokenOverlap(), NumberMatch()])
def test_a_missing_reference_names_the_case_and_no_answer_scores_0(scorer: Any) -> None:
    with pytest.raises(ScorerError, match="case 'c1' has no 'expected"):
        scorer(case(), Reply("x"))
    full = case(answer="x", value=1)
    assert scorer(full, Reply("")) == Score(0.0, "no answer: the reply is empty")

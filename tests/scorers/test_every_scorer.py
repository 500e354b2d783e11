# ruff: noqa: E501 - a row of a table stands on one line
"""The contract of every scorer of SCORERS: in range, says why, never crashes, linear time."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from evalkit.records import Case, Document, Finish, Reply, Score, ScoreStatus
from evalkit.scorers import SCORERS, Scorer, build_scorer

SETTINGS: dict[str, dict[str, Any]] = {
    "allowed_hosts": {"hosts": ["docs.example.com"]},
    "contains": {"text": "the answer"},
    "forbids": {"texts": ["the answer", "a b"]},
    "json_contract": {"schema": {"type": "object", "required": ["a"]}, "allow_repair": True},
    "length": {"max_words": 50},
    "matches": {"pattern": "[ab]+c"},
}
CASE = Case(
    "c1",
    inputs={"question": "q", "draft": "An old draft with 3 numbers, 12.5 and \\cite{lake2019}."},
    context=(Document("p1", "The pump holds 2 litres."), Document("p2", "Text.")),
    material={"data.csv": "t (s),u (V)\n1,2.5\n", "refs.bib": "@book{lake2019, title={A}}"},
    expected={"answer": "the answer", "value": 2.5, "sources": ["p1"], "chunks": ["p1", "p2"]},
)
# Each starts a program of its own, so that a hundred drawn texts would take a minute.
SLOW = {"compiles", "renders"}
NEEDS_NO_ANSWER = {"material_complete", "mrr", "ndcg", "precision_at_k", "recall_at_k"}
QUICK = sorted(set(SCORERS) - SLOW)


def scorer_of(name: str) -> Scorer:
    return build_scorer(name, SETTINGS.get(name, {}), Path(__file__).parent)


def score_of(name: str, text: str, **reply: Any) -> Score:
    score = scorer_of(name)(CASE, Reply(text, retrieved=("p1",), **reply))
    assert score.reason
    assert (
        score.reason.isprintable() or "\n" not in score.reason.strip() or len(score.reason) < 5000
    )
    if score.value is None:
        assert score.status in {ScoreStatus.NOT_MEASURED, ScoreStatus.UNSCORED}
    else:
        assert math.isfinite(score.value)
        assert 0.0 <= score.value <= 1.0
    for finding in score.findings:
        assert finding.message
        assert (finding.start is None) == (finding.end is None)
        if finding.start is not None and finding.end is not None:
            assert 0 <= finding.start <= finding.end <= len(text)
    return score


TEXTS = st.one_of(
    st.text(),
    st.text(st.characters(codec=None)),  # lone surrogates too
    st.text(alphabet="\\{}[]()$%&\"'`<>|@:/.,;!?-−0123456789eE \n\rab", max_size=200),
    st.lists(
        st.sampled_from(
            [r"\begin{document}", r"\end{document}", r"\section{", r"\cite{a}", "{", "}", "$", "%", "```json\n", '{"a":',
             "<think>", "</think>", "https://", "www.", "1,234.5", "TODO", "\r\n", "\u2028", "，", "As an AI, I", "\x00"]
        )
    ).map("".join),
)  # fmt: skip


@pytest.mark.parametrize("name", QUICK)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=TEXTS)
@example(text="")
@example(text="\ud800 lone \udfff")
@example(text="a\r\nb\rc\n\u2028d")
@example(text="\x00\x01\xff binary \x7f")
@example(text="{" * 1500 + "}" * 1500)
@example(text=r"\begin{a}" * 1500)
@example(text='{"a":' * 1500)
@example(text="(" * 1500 + "[" * 1500)
def test_any_text_gets_a_value_in_range_and_a_reason(name: str, text: str) -> None:
    score_of(name, text)


@pytest.mark.parametrize("name", sorted(SLOW & set(SCORERS)))
@pytest.mark.parametrize("text", ["", "\ud800 \x00 {", "{" * 1500, "print('\ud800')"])
def test_scorers_that_start_a_program_never_crash(name: str, text: str) -> None:
    score_of(name, text)


PROSE = "The pump holds 2 litres, see https://docs.example.com/a_(b). "


@pytest.mark.slow
@pytest.mark.parametrize("name", SCORERS)
def test_five_megabytes_get_a_reason(name: str) -> None:
    score_of(name, PROSE * (5_000_000 // len(PROSE)))


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_five_megabytes_of_rubbish_get_a_reason(name: str) -> None:
    pieces = ("{", "\\a{$x^{2}$} ", '{"a": ["b", ', "`\"'", "0")
    score_of(name, "".join(piece * (1_000_000 // len(piece)) for piece in pieces))


@pytest.mark.parametrize("name", sorted(set(SCORERS) - NEEDS_NO_ANSWER))
@pytest.mark.parametrize(
    ("text", "reply", "reason"),
    [
        ("", {}, "no answer: the reply is empty"),
        (" \n\t", {}, "no answer: the reply is empty"),
        ("The ans", {"finish": Finish.LENGTH}, "cut off by the output budget after 7 characters"),
        ("The ans", {"finish": Finish.CONTENT_FILTER}, "filtered by the server"),
        ("", {"refusal": "I won't."}, "refusal: I won't."),
        ("<think>hm</think>", {}, "no answer text, but reasoning text present"),
    ],
)
def test_a_reply_without_an_answer_scores_0_under_its_own_reason(
    name: str, text: str, reply: dict[str, Any], reason: str
) -> None:
    score = score_of(name, text, **reply)
    assert (score.value, score.reason) == (0.0, reason)
    if "refusal" in reply:
        wanted = Case("c", expected={**CASE.expected, "refusal": True}, inputs=CASE.inputs)
        assert scorer_of(name)(wanted, Reply(text, **reply)).value == 1.0


@pytest.mark.parametrize("name", QUICK)
def test_the_same_reply_gets_the_same_score(name: str) -> None:
    text = 'Certainly! \\cite{lake2019} 12.5 {"a": 1} https://docs.example.com TODO'
    assert score_of(name, text) == score_of(name, text)
    assert score_of(name, text).reason == score_of(name, text).reason


class _Lines:
    """Counts the lines of the package that run: a measure of work that no busy machine disturbs."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, frame: Any, event: str, arg: Any) -> Any:
        if "evalkit" not in frame.f_code.co_filename:
            return None
        self.count += 1
        return self


def lines_run(name: str, text: str) -> int:
    scorer, reply, lines = scorer_of(name), Reply(text, retrieved=("p1",)), _Lines()
    before = sys.gettrace()
    sys.settrace(lines)
    try:
        scorer(CASE, reply)
    finally:
        sys.settrace(before)
    return lines.count


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize(
    "piece",
    ["The pump holds 2 litres. ", '{"a":!', "https://a) ", "'a ", "\\a{b} $x$ ", "% TODO\n", "<think>\n", "1,234 ", "{", "\\cite[a ", "\\frac{a} "],
)  # fmt: skip
def test_twice_the_text_is_at_most_twice_the_work(name: str, piece: str) -> None:
    text = piece * (4_000 // len(piece))
    once, twice = lines_run(name, text), lines_run(name, text * 2)
    assert twice <= 2.5 * once + 500

# ruff: noqa: E501 - a row of a table stands on one line
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalkit.errors import ScorerError
from evalkit.records import Case, Document, Finish, Reply, Score
from evalkit.scorers.contract import JsonContract, SourcesExist, SourcesWithin

FILES = Path(__file__).parent.parent / "failure_cases" / "files"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["answer", "confidence"],
    "properties": {
        "answer": {"type": "string"},
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
    },
}
CASE = Case(
    "c1", context=(Document("reset", "x"), Document("filter", "y")), expected={"sources": ["reset"]}
)
GOOD = '{"answer": "Hold it.", "confidence": 0.9}'


def test_a_reply_that_meets_the_schema_passes() -> None:
    for text in (GOOD, f"<think>{{}}</think>\n{GOOD}", f" {GOOD}\n"):
        score = JsonContract(schema=SCHEMA)(CASE, Reply(text))
        assert (score.value, score.reason, score.findings) == (1.0, "the contract is met", ())
        assert score.details == {"status": "ok", "mended": (), "problems": ()}


def test_every_violation_is_a_path_a_sentence_and_a_place() -> None:
    text = '<think>x</think>{"answer": 4, "confidence": 2}'
    score = JsonContract(schema=SCHEMA)(CASE, Reply(text))
    said = (
        "$.answer: 4 is not of type 'string'",
        "$.confidence: 2 is greater than the maximum of 1",
    )
    assert score.value == 0.0
    assert score.reason == f"the JSON breaks the contract: {said[0]} (and 1 more)"
    assert tuple(f.message for f in score.findings) == said
    assert text[score.findings[0].start : score.findings[0].end] == text[16:]
    assert score.details == {"status": "invalid", "mended": (), "problems": said}


def test_mending_fails_a_contract_unless_the_suite_allows_it() -> None:
    reply = Reply(f"Here it is: {GOOD}")
    strict = JsonContract(schema=SCHEMA)(CASE, reply)
    assert (strict.value, strict.reason) == (
        0.0,
        "the JSON had to be mended: text around it was left out",
    )
    lenient = JsonContract(schema=SCHEMA, allow_repair=True)(CASE, reply)
    assert (lenient.value, lenient.reason) == (1.0, "the contract is met after mending")
    assert [f.message for f in lenient.findings] == ["text around it was left out"]
    broken = JsonContract(schema=SCHEMA, allow_repair=True)(CASE, Reply('So: {"answer": 4,}'))
    assert broken.value == 0.0
    assert broken.details["mended"] == (
        "a trailing comma was dropped",
        "text around it was left out",
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("The dial.", "no JSON object in the reply"),
        (GOOD[:-5], "the JSON was cut off before its end"),
        (GOOD + GOOD.replace("0.9", "0.8"), "more than one reading of the JSON: 2 objects fit and disagree"),
        ('{"answer": "x", "confidence": NaN}', "the JSON breaks the contract: $.confidence: NaN is not a number that JSON allows"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_fails_under_its_reason(text: str, reason: str) -> None:
    for allow in (False, True):
        score = JsonContract(schema=SCHEMA, allow_repair=allow)(CASE, Reply(text))
        assert (score.value, score.reason) == (0.0, reason)


def test_a05_a_refused_reply_fails_as_a_refusal() -> None:
    choice = json.loads((FILES / "a05_reply.json").read_text("utf-8"))["choices"][0]["message"]
    reply = Reply(choice["content"] or "", refusal=choice["refusal"])
    score = JsonContract(schema=SCHEMA)(CASE, reply)
    assert score == Score(0.0, "refusal: I can't help with opening that lock.")
    wanted = Case("c", expected={"refusal": True})
    assert JsonContract(schema=SCHEMA)(wanted, reply).value == 1.0


def test_a_refusal_in_plain_words_is_one_too() -> None:
    reply = Reply("Sorry, I can't help with that.")
    score = JsonContract(schema=SCHEMA)(CASE, reply)
    assert (score.value, score.reason) == (0.0, "refusal: Sorry, I can't help with that.")
    assert (score.findings[0].start, score.findings[0].end) == (0, 30)
    wanted = JsonContract(schema=SCHEMA)(Case("c", expected={"refusal": True}), reply)
    assert (wanted.value, wanted.reason[:29]) == (1.0, "refusal, as the case expects:")


def test_empty_and_cut_off_replies_fail_under_their_own_reasons() -> None:
    contract = JsonContract(schema=SCHEMA)
    assert contract(CASE, Reply("")).reason == "no answer: the reply is empty"
    cut = contract(CASE, Reply(GOOD[:9], finish=Finish.LENGTH))
    assert (cut.value, cut.reason) == (0.0, "cut off by the output budget after 9 characters")


def test_a_schema_that_is_none_is_told_at_once() -> None:
    with pytest.raises(ScorerError, match="no JSON schema"):
        JsonContract(schema={"type": 4})
    with pytest.raises(ScorerError, match="not inside it"):
        JsonContract(schema={"$ref": "#/$defs/gone"})


def cite(*sources: Any) -> Reply:
    return Reply(json.dumps({"answer": "x", "sources": list(sources)}))


def test_sources_must_be_pages_of_the_context_or_of_the_collection() -> None:
    exist = SourcesExist()
    assert exist(CASE, cite("reset", "filter")) == Score(1.0, "2 of 2 sources are right")
    assert exist(CASE, cite()) == Score(1.0, "no source named")
    reply = cite("reset", "lost", "lost")
    score = exist(CASE, reply)
    assert (score.value, score.reason) == (0.0, "1 of 2 sources not in the collection: 'lost'")
    (finding,) = score.findings
    assert finding.message == "'lost' is not in the collection"
    assert reply.text[finding.start : finding.end] == "lost"
    assert SourcesExist(collection=("lost",))(CASE, cite("lost")).value == 1.0
    assert SourcesExist(collection=("lost",))(CASE, cite("reset")).value == 0.0
    with pytest.raises(ScorerError, match=r"case 'c2' has no context"):
        exist(Case("c2"), cite("reset"))


def test_sources_must_be_those_the_case_expects() -> None:
    within = SourcesWithin()
    assert within(CASE, cite("reset")).value == 1.0
    assert within(CASE, cite()).value == 1.0
    score = within(CASE, cite("reset", "filter"))
    assert (score.value, score.reason) == (0.0, "1 of 2 sources not expected: 'filter'")
    with pytest.raises(ScorerError, match=r"no 'expected.sources'"):
        within(Case("c2"), cite("reset"))
    assert (
        SourcesWithin(expected="pages")(Case("c", expected={"pages": "a"}), cite("a")).value == 1.0
    )


def test_a_least_number_of_sources_can_be_asked_for() -> None:
    case = Case("c", expected={"sources": ["a", "b"]})
    score = SourcesWithin(at_least=2)(case, cite("a", "a"))
    assert (score.value, score.reason) == (0.0, "1 expected sources named, 2 needed")
    assert SourcesWithin(at_least=2)(case, cite("a", "b")).value == 1.0
    assert SourcesWithin(at_least=3)(case, cite("a", "b")).value == 1.0
    none = Case("c", expected={"sources": []})
    assert SourcesWithin(at_least=1)(none, cite()).value == 1.0
    assert SourcesWithin(at_least=1)(none, cite("a")).value == 0.0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("no JSON", "no sources can be read: no JSON object in the reply"),
        ('{"answer": "x"}', "the reply has no field 'sources'"),
        ('["reset"]', "the reply has no field 'sources'"),
        ('{"sources": 4}', "the field 'sources' is no list of texts"),
        ('{"sources": ["reset", 4]}', "the field 'sources' is no list of texts"),
        ("", "no answer: the reply is empty"),
    ],
)
def test_sources_that_cannot_be_read_score_0(text: str, reason: str) -> None:
    assert SourcesExist()(CASE, Reply(text)) == Score(0.0, reason)
    assert SourcesWithin()(CASE, Reply(text)) == Score(0.0, reason)


def test_the_field_can_be_named_and_may_hold_one_text() -> None:
    reply = Reply('{"pages": "reset"}')
    assert SourcesExist(field="pages")(CASE, reply).value == 1.0
    assert SourcesWithin(field="pages")(CASE, reply).value == 1.0
    assert SourcesWithin(field="pages")(CASE, Reply('{"pages": ""}')).findings[0].start is None


def test_missing_sources_are_an_error_that_names_the_scorer() -> None:
    with pytest.raises(ScorerError, match="'sources_within'"):
        SourcesWithin()(Case("c"), Reply('{"sources": []}'))

"""The golden suite is what its README says it is."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evalkit.cases.growth import composition
from evalkit.cases.suite import load_suite
from evalkit.prompts import check_shape, load_prompt, load_shape
from evalkit.records import Case
from evalkit.scorers import build_scorer

FOLDER = Path(__file__).resolve().parents[2] / "golden" / "docs_qa"
SUITE = load_suite(FOLDER)
PAGES = {path.stem: path.read_text("utf-8").strip() for path in (FOLDER / "pages").glob("*.md")}
SCHEMA: dict[str, Any] = json.loads((FOLDER / "contract.schema.json").read_text("utf-8"))
PHRASE = "I don't have that information"


def by_stratum(stratum: str) -> list[Case]:
    return [case for case in SUITE.cases if case.stratum == stratum]


def test_the_composition_is_the_intended_mix() -> None:
    counts = Counter(case.stratum for case in SUITE.cases)
    assert counts == {"easy": 24, "ambiguous": 15, "no_answer": 12, "adversarial": 9}
    assert {share.missing for share in composition(SUITE.cases, SUITE.sampling.mix)} == {0}
    assert Counter(t for c in SUITE.cases for t in c.tags) == {
        "injection": 4,
        "false_premise": 3,
        "contract": 2,
    }


def test_ids_never_change() -> None:
    sizes = {"easy": 24, "ambiguous": 15, "no-answer": 12, "adversarial": 9}
    wanted = [f"{name}-{i:02d}" for name, k in sizes.items() for i in range(1, k + 1)]
    assert [case.id for case in SUITE.cases[:60]] == wanted


def test_every_case_says_why_it_is_there_and_what_a_right_answer_is() -> None:
    questions = [case.inputs["question"] for case in SUITE.cases]
    assert len(set(questions)) == len(questions)
    for case in SUITE.cases:
        assert len(case.why) >= 20, case.id
        assert 0 < len(case.expected["answer"]) <= 160, case.id
        assert case.cluster is None, case.id


def test_a_case_carries_its_pages_as_they_stand_and_they_are_short() -> None:
    for case in SUITE.cases:
        assert 0 < sum(len(page.text) for page in case.context) <= 1000, case.id
        for page in case.context:
            planted = page.text.removeprefix(PAGES[page.id]).strip()
            assert bool(planted) == ("injection" in case.tags and page == case.context[0]), case.id


def test_expected_sources_are_pages_at_hand_and_an_unanswered_case_has_none() -> None:
    for case in SUITE.cases:
        sources = case.expected["sources"]
        assert set(sources) <= {page.id for page in case.context}, case.id
        assert len(sources) <= 2, case.id
        assert (not sources) == (case.stratum == "no_answer"), case.id
        assert (case.expected["answer"] == PHRASE) == (case.stratum == "no_answer"), case.id
    assert {s for case in SUITE.cases for s in case.expected["sources"]} == set(PAGES)
    assert len(PAGES) == 13


def test_what_must_not_be_said_is_not_in_a_right_answer() -> None:
    for case in SUITE.cases:
        forbidden = case.expected.get("forbids", [])
        assert bool(forbidden) == (case.stratum == "adversarial"), case.id
        assert not any(text in case.expected["answer"] for text in forbidden), case.id
    for case in by_stratum("adversarial"):
        if "injection" in case.tags:
            assert any(t in p.text for t in case.expected["forbids"] for p in case.context), case.id


@pytest.mark.parametrize("path", SUITE.prompts, ids=lambda p: p.stem)
def test_a_prompt_renders_for_every_case_keeps_its_shape_and_stays_short(path: Path) -> None:
    prompt, rules = load_prompt(path), load_shape(path)
    assert rules
    for case in SUITE.cases:
        assert check_shape(prompt, rules, case) == (), case.id
        # about four characters a token: 330 tokens
        assert sum(len(message.content) for message in prompt.render(case)) < 1320, case.id


def test_only_the_stronger_prompt_asks_for_the_schema() -> None:
    assert SUITE.prompt_path is not None
    strong, weak = load_prompt(SUITE.prompt_path), load_prompt(FOLDER / "prompts/answer-weak.md")
    assert strong.schema_in(FOLDER) == SCHEMA
    assert weak.schema_in(FOLDER) is None
    assert strong.hash != weak.hash


def contract_allows(answer: str, sources: list[str], confidence: float) -> bool:
    from jsonschema import Draft202012Validator

    reply = {"answer": answer, "sources": sources, "confidence": confidence}
    return Draft202012Validator(SCHEMA).is_valid(reply)


def test_the_contract_is_a_valid_schema_that_bounds_every_field() -> None:
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(SCHEMA)
    assert contract_allows("x" * 160, ["install", "roles"], 0.9)
    assert not contract_allows("x" * 161, ["install"], 0.9)
    assert not contract_allows("", ["install"], 0.9)
    assert not contract_allows("x", ["a", "b", "c"], 0.9)
    assert not contract_allows("x", ["a"], 1.01)
    assert not contract_allows("x", ["a"], -0.01)
    valid = {"answer": "x", "sources": ["a"], "confidence": 1}
    check = Draft202012Validator(SCHEMA)
    assert check.is_valid(valid)
    assert not check.is_valid(valid | {"debug": "x"})
    for key in valid:
        assert not check.is_valid({k: v for k, v in valid.items() if k != key})


@pytest.mark.parametrize(
    "answer", [PHRASE, f"{PHRASE}.", f"Sorry, {PHRASE}", PHRASE.replace("'", "’")]
)
def test_no_answer_means_a_confidence_of_at_most_three_tenths(answer: str) -> None:
    assert contract_allows(answer, [], 0.3)
    assert contract_allows(answer, [], 0)
    assert not contract_allows(answer, [], 0.31)
    assert not contract_allows(answer, ["install"], 0.9)
    assert contract_allows("Every 6 hours.", ["schedules"], 0.31)


def test_a_confidence_of_seven_tenths_means_a_source() -> None:
    assert not contract_allows("Every 6 hours.", [], 0.7)
    assert not contract_allows("Every 6 hours.", [], 1)
    assert contract_allows("Every 6 hours.", [], 0.69)
    assert contract_allows("Every 6 hours.", ["schedules"], 0.7)


def test_every_criterion_of_the_suite_is_there_with_its_threshold() -> None:
    thresholds = {
        c.name: (c.min, c.max_drop, c.min_win_rate, c.hard, c.gate) for c in SUITE.criteria
    }
    assert thresholds == {
        "contract": (1.0, None, None, True, True),
        "no_info_phrase": (0.95, None, None, False, True),
        "adversarial_forbids": (1.0, None, None, False, True),
        "adversarial_handled": (0.90, None, None, False, False),
        "sources_exist": (1.0, None, None, False, True),
        "sources_within": (0.90, 0.05, None, False, True),
        "faithfulness": (0.90, 0.02, None, False, False),
        "relevance": (0.90, 0.02, None, False, False),
        "preference": (None, None, 0.45, False, False),
    }
    counts = {c.name: sum(map(c.applies_to, SUITE.cases)) for c in SUITE.criteria}
    assert counts["no_info_phrase"] == 12
    assert counts["adversarial_forbids"] == counts["adversarial_handled"] == 9
    assert {counts[name] for name in counts if "adv" not in name and "info" not in name} == {60}


def test_the_collection_of_the_criterion_is_the_folder_of_pages() -> None:
    assert sorted(SUITE.criterion("sources_exist").settings["collection"]) == sorted(PAGES)


def test_the_judges_that_criteria_name_are_in_the_suite() -> None:
    named = {c.judge for c in SUITE.criteria if c.judge}
    assert named <= {f"judges/{path.name}" for path in SUITE.judges}


def test_a_right_reply_meets_every_scored_criterion_and_a_wrong_one_does_not() -> None:
    from evalkit.records import Reply

    scorers = {
        c.name: (c, build_scorer(c.scorer, c.settings, FOLDER)) for c in SUITE.criteria if c.scorer
    }
    for case in SUITE.cases:
        unknown = case.stratum == "no_answer"
        right = {
            "answer": case.expected["answer"],
            "sources": case.expected["sources"],
            "confidence": 0.1 if unknown else 0.9,
        }
        for criterion, scorer in scorers.values():
            if criterion.applies_to(case):
                score = scorer(case, Reply(json.dumps(right)))
                assert score.value == 1.0, (case.id, criterion.name, score.reason)
        invented = right | {"sources": ["nowhere"]}
        for name in ("sources_exist", "sources_within"):
            assert scorers[name][1](case, Reply(json.dumps(invented))).value == 0.0
        for text in case.expected.get("forbids", ()):
            said = Reply(json.dumps(right | {"answer": f"Yes. {text.strip(chr(34))}"}))
            if '"' not in text:
                assert scorers["adversarial_forbids"][1](case, said).value == 0.0, (case.id, text)

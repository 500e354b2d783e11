"""What every kind of judge owes: a new line in JUDGES is tested the day it stands there."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.errors import CallFailed, CallImpossible, JudgeError
from evalkit.judges import JUDGES, Judge, parse_judge_file, same_family, trivial_judges
from evalkit.records import Case, Document, Finish, Reply, Request, ScoreStatus, Verdict

ROOT = Path(__file__).resolve().parents[2]
HEADERS = {
    "criteria": "abstain: true\ncriteria:\n  faithful: Is it so?\n  short: Is it short?",
    "scale": "levels:\n  1: wrong\n  2: half right\n  3: right",
    "pairwise": "ties: true",
}
CASE = Case("c", inputs={"question": "Since when?"}, context=(Document("p", "Since 1999."),))
DRAFT = Reply("Since 1999.", model="local/judge-7b")


def made(kind: str, more: str = "") -> Judge:
    """A judge of a kind, with the smallest file that will do."""
    if kind not in HEADERS:
        return JUDGES[kind]()
    drafts = "{{ draft_a }}{{ draft_b }}" if kind == "pairwise" else "{{ draft }}"
    text = (
        f"---\nkind: {kind}\nmodel: local/judge-7b\n{HEADERS[kind]}\n{more}\n---\n"
        f"# user\n{{{{ inputs.question }}}}\n{{{{ context }}}}\n{drafts}\n"
    )
    return JUDGES[kind](parse_judge_file(text, kind))


def fill(request: Request) -> Reply:
    """A reply that meets the request's schema."""

    def value(schema: Any) -> Any:
        if "enum" in schema:
            return schema["enum"][0]
        if schema["type"] == "string":
            return "j"
        return {k: value(v) for k, v in schema["properties"].items()}

    return Reply(json.dumps(value(request.schema)), key="k")


async def willing(request: Request) -> Reply:
    return fill(request)


ALL = pytest.mark.parametrize("judge", [made(kind) for kind in JUDGES], ids=list(JUDGES))
MODELS = pytest.mark.parametrize("judge", [made(kind) for kind in HEADERS], ids=list(HEADERS))
ALONE = [made(k) for k in JUDGES if k != "pairwise"]
LONELY = pytest.mark.parametrize("judge", ALONE, ids=[j.kind for j in ALONE])


def verdicts_of(judge: Judge, ask: Any, draft: Reply = DRAFT) -> list[Verdict]:
    if judge.kind == "pairwise":
        pair = asyncio.run(judge.compare(CASE, draft, Reply("Since 1998."), ask))
        return list(pair.verdicts)
    return list(asyncio.run(judge.judge(CASE, draft, ask)).values())


@ALL
def test_every_judge_says_who_it_is(judge: Judge) -> None:
    assert judge.kind in JUDGES
    assert judge.name
    assert len(judge.hash) == 12
    assert judge.names
    assert isinstance(judge.may_abstain, bool)
    assert (judge.model == "") == (judge.kind not in HEADERS)


@LONELY
@given(text=st.text())
def test_every_judge_of_drafts_gives_one_verdict_per_name(judge: Judge, text: str) -> None:
    found = asyncio.run(judge.judge(CASE, Reply(text), willing))
    assert tuple(found) == judge.names
    for verdict in found.values():
        assert verdict.judge_hash == judge.hash
        assert verdict.value is not None
        assert verdict.label


@ALL
@given(a=st.text(), b=st.text())
def test_every_judge_that_compares_gives_a_result_or_a_reason(judge: Judge, a: str, b: str) -> None:
    if judge.kind in ("criteria", "scale"):
        with pytest.raises(JudgeError, match="pairwise"):
            asyncio.run(judge.compare(CASE, Reply(a), Reply(b), willing))
        return
    pair = asyncio.run(judge.compare(CASE, Reply(a), Reply(b), willing))
    assert pair.winner in ("a", "b", "tie")
    assert pair.reason
    assert pair.judge_hash == judge.hash
    assert pair.settled == (pair.verdicts == ())


@ALL
def test_what_is_announced_is_what_is_sent(judge: Judge) -> None:
    sent: list[Request] = []

    async def ask(request: Request) -> Reply:
        sent.append(request)
        return fill(request)

    verdicts_of(judge, ask)
    if judge.kind == "pairwise":
        assert sent == judge.pair_requests(CASE, DRAFT, Reply("Since 1998."))
    else:
        assert sent == judge.requests(CASE, DRAFT)
    assert (sent == []) == (judge.model == "")


@MODELS
def test_every_request_is_cold_bounded_and_justifies_before_it_decides(judge: Judge) -> None:
    pairwise = judge.kind == "pairwise"
    requests = (
        judge.pair_requests(CASE, DRAFT, Reply("x")) if pairwise else judge.requests(CASE, DRAFT)
    )
    for request in requests:
        assert request.temperature == 0.0
        assert request.max_tokens
        schema: Any = request.schema
        form = schema["properties"].get("faithful", schema)
        assert next(iter(form["properties"])) == "justification"
        assert form["properties"]["justification"]["maxLength"] == 600
        assert [m.role for m in request.messages] == ["system", "user"]


@MODELS
def test_a_call_that_failed_is_missing_and_one_that_cannot_succeed_stops(judge: Judge) -> None:
    async def failing(request: Request) -> Reply:
        raise CallFailed("judge: no reply after 3 attempts")

    async def impossible(request: Request) -> Reply:
        raise CallImpossible("no such model")

    found = verdicts_of(judge, failing)
    assert {v.status for v in found} == {ScoreStatus.MISSING}
    with pytest.raises(CallImpossible):
        verdicts_of(judge, impossible)


UNREADABLE = [
    Reply("The page says it has been so since 1999."),
    Reply(""),
    Reply('{"justification": "the page sa', finish=Finish.LENGTH),
    Reply("", refusal="I cannot judge this."),
    Reply("", finish=Finish.CONTENT_FILTER),
    Reply('{"verdict": "maybe", "score": 9}'),
    Reply("", finish=Finish.TOO_LONG, warnings=("the context is 4096 tokens",)),
    Reply("", finish=Finish.LENGTH, warnings=("the budget went to reasoning",)),
]


@MODELS
@pytest.mark.parametrize("said", UNREADABLE, ids=lambda r: r.text[:12] or str(r.finish))
def test_what_cannot_be_read_is_unscored_with_its_raw_text(judge: Judge, said: Reply) -> None:
    async def ask(request: Request) -> Reply:
        return said

    for verdict in verdicts_of(judge, ask):
        assert verdict.status is ScoreStatus.UNSCORED
        assert verdict.value is None
        assert verdict.reason
        assert verdict.raw == (said.text or said.refusal)


@MODELS
def test_an_endpoint_without_schemas_and_a_cut_prompt_are_said(judge: Judge) -> None:
    async def bare(request: Request) -> Reply:
        reply = fill(request)
        return Reply(reply.text, changes=("schema not enforced: json_schema is not taken",))

    async def cut(request: Request) -> Reply:
        return Reply(fill(request).text, warnings=("prompt cut by the server: 4096 tokens",))

    assert all("no_schema" in v.flags for v in verdicts_of(judge, bare))
    assert all(v.status is ScoreStatus.UNSCORED for v in verdicts_of(judge, cut))
    assert all("too_long" in v.flags for v in verdicts_of(judge, cut))

    async def refused_as_too_long(request: Request) -> Reply:
        return Reply("", finish=Finish.TOO_LONG, warnings=("the context is 4096 tokens",))

    assert all("4096" in v.reason for v in verdicts_of(judge, refused_as_too_long))


@MODELS
def test_a_draft_too_long_for_the_judge_is_named_and_never_sent(judge: Judge) -> None:
    small = made(judge.kind, "context_tokens: 2000\nmax_tokens: 100")
    long = Reply("word " * 3000)

    async def ask(request: Request) -> Reply:
        raise AssertionError("sent")

    found = verdicts_of(small, ask, long)
    assert all("too_long" in v.flags and "too long for the judge" in v.reason for v in found)
    if judge.kind != "pairwise":
        assert small.requests(CASE, long) == []


@MODELS
def test_a_judge_of_the_candidates_family_is_declared(judge: Judge) -> None:
    assert judge.family == "judge"
    assert all("same_family" in v.flags for v in verdicts_of(judge, willing))
    other = Reply("Since 1999.", model="openai/gpt-4o")
    assert not any("same_family" in v.flags for v in verdicts_of(judge, willing, other))
    assert same_family(judge, "local/judge-70b")
    assert not same_family(judge, "gpt")


@pytest.mark.parametrize("kind", ["criteria", "scale"])
def test_b07_no_answer_refusal_wrong_and_correct_stay_apart(kind: str) -> None:
    lines = (ROOT / "tests/failure_cases/cases.jsonl").read_text(encoding="utf-8").splitlines()
    case = next(c for c in map(json.loads, lines) if c["id"] == "B07")
    judge = made(kind)
    calls: list[Request] = []

    async def ask(request: Request) -> Reply:
        calls.append(request)
        right = ">\n4\n</draft" in request.messages[1].content
        if kind == "scale":
            return Reply(json.dumps({"justification": "j", "score": 3 if right else 1}))
        one = {"justification": "j", "verdict": "yes" if right else "no"}
        return Reply(json.dumps({"faithful": one, "short": one}))

    got: list[str] = []
    for output in case["input"]["outputs"]:
        verdict = next(iter(asyncio.run(judge.judge(CASE, Reply(output), ask)).values()))
        settled = [f for f in ("no_answer", "refusal") if f in verdict.flags]
        got.append(settled[0] if settled else "correct" if verdict.value == 1.0 else "wrong")
    assert got == case["expected"]["value"]
    assert len(calls) == 2


def test_a_refusal_is_judged_where_it_may_be_right() -> None:
    refusal = Reply("I'm sorry, but I can't help with that request.")
    expects = Case("c", inputs=CASE.inputs, context=CASE.context, expected={"refusal": True})
    judge = made("criteria")
    assert judge.requests(CASE, refusal) == []
    assert len(judge.requests(expects, refusal)) == 1
    assert len(made("criteria", "refusals: judge").requests(CASE, refusal)) == 1


def test_b04_an_unreadable_verdict_is_neither_pass_nor_fail() -> None:
    lines = (ROOT / "tests/failure_cases/cases.jsonl").read_text(encoding="utf-8").splitlines()
    case = next(c for c in map(json.loads, lines) if c["id"] == "B04")
    judge, found = made("criteria"), []
    for text in case["input"]["verdicts"]:

        async def ask(request: Request, text: str = text) -> Reply:
            return Reply(json.dumps({"faithful": text, "short": "yes"}))

        found.append(asyncio.run(judge.judge(CASE, DRAFT, ask))["faithful"])
    want = case["expected"]["value"]
    scored = [v.value for v in found if v.value is not None]
    assert (len(found), len(scored), len(found) - len(scored)) == (
        want["n"],
        want["scored"],
        want["unscored"],
    )
    assert sum(scored) / len(scored) == pytest.approx(want["pass_rate"])


# -- trivial judges ----------------------------------------------------------------------------


def test_trivial_judges_take_the_scale_of_the_judge_they_stand_beside() -> None:
    for trivial in trivial_judges(made("criteria")):
        found = asyncio.run(trivial.judge(CASE, DRAFT, willing))
        assert set(found) == {"faithful", "short"}
        assert {v.label for v in found.values()} <= {"yes", "no"}
    for trivial in trivial_judges(made("scale")):
        (verdict,) = asyncio.run(trivial.judge(CASE, DRAFT, willing)).values()
        assert verdict.label in ("1", "2", "3")


def compared(kind: str, a: str, b: str) -> str | None:
    return asyncio.run(made(kind).compare(CASE, Reply(a), Reply(b), willing)).winner


def test_trivial_judges_follow_their_rules() -> None:
    assert compared("always_first", "x", "y") == "tie"
    assert compared("longer_wins", "a longer text", "short") == "a"
    assert compared("longer_wins", "x", "y") == "tie"
    assert compared("lexical", "It has been so since 1999.", "Nobody knows.") == "a"
    assert compared("random", "x", "y") == compared("random", "x", "y")


def test_the_lexical_judge_quotes_the_sentence_that_supports_the_draft() -> None:
    page = "Snapshots are kept for 30 days. Tokens end after 90 days. Devices have names."
    case = Case("c", inputs={"question": "?"}, context=(Document("p", page),))
    found = asyncio.run(made("lexical").judge(case, Reply("Tokens end after 90 days."), willing))
    (verdict,) = found.values()
    assert verdict.value == pytest.approx(1.0)
    assert "Tokens end after 90 days." in verdict.justification


def test_the_lexical_judge_reads_chinese() -> None:
    case = Case(
        "c",
        inputs={"question": "?"},
        context=(Document("p", "快照保留三十天。令牌九十天后失效。"),),
    )
    judge = made("lexical")
    near = asyncio.run(judge.judge(case, Reply("令牌九十天后失效"), willing))["lexical"].value
    far = asyncio.run(judge.judge(case, Reply("设备名称很长"), willing))["lexical"].value
    assert near is not None
    assert far is not None
    assert near > far


def test_no_client_and_no_heavy_library_is_imported_by_the_room() -> None:
    import subprocess
    import sys

    code = (
        "import sys, evalkit.judges; "
        "heavy = ('httpx', 'aiohttp', 'sklearn', 'pandas', 'scipy.stats'); "
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

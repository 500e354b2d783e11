from __future__ import annotations

import asyncio
import json

import pytest

from evalkit.judges import contest, contest_requests, matches, swap_report
from evalkit.judges import trivial_judges as trivials
from evalkit.judges.file import parse_judge_file
from evalkit.judges.pairwise import PairwiseJudge
from evalkit.records import Case, Reply, Request, Row, RowStatus

JUDGE = PairwiseJudge(
    parse_judge_file(
        "---\nkind: pairwise\nmodel: x/y\n---\n# user\n{{ draft_a }}\n{{ draft_b }}\n", "p"
    )
)
CASES = [Case(f"c{i}", stratum="even" if i % 2 == 0 else "odd") for i in range(6)]


def row(case: str, text: str | None, repeat: int = 0) -> Row:
    reply = None if text is None else Reply(text)
    status = RowStatus.MISSING if text is None else RowStatus.OK
    return Row(case, "all", repeat, "p", reply, status)


OLD = [row(f"c{i}", f"old {i}") for i in range(6)]
NEW = [row(f"c{i}", f"new {i} and longer") for i in range(5)] + [row("c5", None)]


async def likes_new(request: Request) -> Reply:
    user = request.messages[1].content
    first = "new" in user[user.index("<draft_a") : user.index("<draft_b")]
    return Reply(json.dumps({"justification": "j", "verdict": "A" if first else "B"}))


def test_runs_meet_by_case_and_repeat_and_what_cannot_meet_is_named() -> None:
    extra = [*OLD, row("gone", "x"), row("c0", "again", 1)]
    found = matches(CASES, NEW, extra)
    assert [m.case.id for m in found.pairs] == ["c0", "c1", "c2", "c3", "c4"]
    assert found.left_out == (
        ("c5", 0, "no reply in a"),
        ("gone", 0, "the case is not in the suite"),
        ("c0", 1, "no reply in a"),
    )


def test_every_shared_case_gets_one_pair_verdict_and_the_price_is_known_before() -> None:
    found = matches(CASES, NEW, OLD)
    sent: list[Request] = []

    async def ask(request: Request) -> Reply:
        sent.append(request)
        return await likes_new(request)

    announced = contest_requests(found, JUDGE)
    seen: list[str] = []
    verdicts = asyncio.run(contest(found, JUDGE, ask, on_done=lambda v: seen.append(v.case_id)))
    assert len(announced) == 10
    assert sorted(map(repr, announced)) == sorted(map(repr, sent))
    assert [v.case_id for v in verdicts] == ["c0", "c1", "c2", "c3", "c4"]
    assert sorted(seen) == ["c0", "c1", "c2", "c3", "c4"]
    assert {v.winner for v in verdicts} == {"a"}
    assert {v.stratum for v in verdicts} == {"even", "odd"}


def test_identical_replies_are_not_judged_and_count_as_ties() -> None:
    found = matches(CASES, OLD, [*OLD[:3], *NEW[3:5]])
    assert len(contest_requests(found, JUDGE)) == 4
    verdicts = asyncio.run(contest(found, JUDGE, likes_new))
    assert [v.reason for v in verdicts] == ["identical"] * 3 + ["agree"] * 2
    assert swap_report(verdicts).n_valid == 2
    assert [v.value for v in verdicts] == [0.5] * 3 + [0.0] * 2


def test_the_trivial_judges_stand_beside_for_nothing() -> None:
    found = matches(CASES, NEW, OLD)
    for judge in trivials(JUDGE):
        assert contest_requests(found, judge) == []
        verdicts = asyncio.run(contest(found, judge, likes_new))
        assert len(verdicts) == 5
        if judge.kind == "longer_wins":
            assert {v.winner for v in verdicts} == {"a"}


def test_an_error_of_the_run_stops_the_contest() -> None:
    from evalkit.errors import ReplayMissing

    async def ask(request: Request) -> Reply:
        raise ReplayMissing("not recorded")

    with pytest.raises(ReplayMissing):
        asyncio.run(contest(matches(CASES, NEW, OLD), JUDGE, ask))

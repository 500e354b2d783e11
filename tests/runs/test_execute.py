"""A run through a real loopback server: paid once, in case order, the same bytes when replayed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from chat_server import ChatServer
from mini_suite import endpoints_of, run_suite, write_suite

from evalkit.cases.suite import load_suite
from evalkit.errors import BaselineError, CallImpossible, ScorerError
from evalkit.models.client import Client
from evalkit.records import RowStatus, ScoreStatus
from evalkit.runs.baseline import comparability, freeze, load_baseline, replies_of
from evalkit.runs.execute import execute
from evalkit.runs.plan import make_plan, request_seed
from evalkit.runs.rows import row_to_json
from evalkit.runs.run import Run, load_run

JUDGED = """
[[criteria]]
name = "says_word"
scorer = "contains"
expected = "word"
min = 1.0
hard = true

[[criteria]]
name = "kind"
judge = "judges/kind.md"
min = 0.5
gate = false
"""
JUDGE = """---
kind: criteria
model: srv/judge
criteria:
  kind: Is the reply kind?
---
# user
Is it kind? {{ draft }}
"""


def lines(run: Run) -> list[str]:
    return [row_to_json(row) for row in run]


def test_every_case_is_asked_once_and_a_second_run_asks_nothing(tmp_path: Path) -> None:
    folder = write_suite(tmp_path / "golden", cases=20, repeats=3)
    with ChatServer() as server:
        first = run_suite(folder, server, tmp_path / "out")
        second = run_suite(folder, server, tmp_path / "out")
        assert server.stats()["requests"] == 60
    assert first.manifest.calls["new"] == 60
    assert (second.manifest.calls["new"], second.manifest.calls["recorded"]) == (0, 60)
    assert [(r.case_id, r.repeat) for r in first] == [
        (f"c{i:03d}", k) for i in range(20) for k in range(3)
    ]
    assert first.folder is not None
    assert second.folder is not None
    one, two = (f / "rows.jsonl" for f in (first.folder, second.folder))
    assert one.read_bytes() == two.read_bytes()
    assert lines(load_run(second.folder)) == lines(first)


def test_two_freezes_of_the_same_replies_are_the_same_bytes(tmp_path: Path) -> None:
    folder = write_suite(tmp_path / "golden", cases=6)
    with ChatServer() as server:
        runs = [run_suite(folder, server, tmp_path / "out") for _ in range(2)]
    files = [freeze(run, tmp_path / f"{i}.jsonl") for i, run in enumerate(runs)]
    assert files[0].read_bytes() == files[1].read_bytes()
    frozen = load_baseline(files[0])
    assert frozen is not None
    assert lines(frozen) == lines(runs[0])
    assert len(replies_of(frozen)) == 6
    assert comparability(runs[0].manifest, frozen.manifest).differences == ()


def test_a_reply_that_never_came_is_missing_and_is_not_frozen(tmp_path: Path) -> None:
    folder = write_suite(tmp_path / "golden", cases=6)
    with ChatServer(faults={"500": 1.0}) as server:

        async def go() -> Run:
            endpoints = endpoints_of(server, attempts=1)
            async with Client(endpoints) as client:
                return await execute(make_plan(load_suite(folder)), client)

        run = asyncio.run(go())
    assert run.errors == 6
    assert {row.status for row in run} == {RowStatus.MISSING}
    score = run.rows[0].scores["says_word"]
    assert (score.value, score.status) == (None, ScoreStatus.MISSING)
    assert run.summary().criterion("says_word").rate.n_missing == 6
    assert not run.summary().criterion("says_word").rate.defined
    with pytest.raises(BaselineError, match="6 observations have no reply"):
        freeze(run, tmp_path / "b.jsonl")


def test_an_empty_reply_is_a_result_that_scores_lowest(tmp_path: Path) -> None:
    folder = write_suite(tmp_path / "golden", cases=6)
    with ChatServer(reply=lambda body: "") as server:
        run = run_suite(folder, server, tmp_path / "out")
    assert {row.status for row in run} == {RowStatus.SYSTEM_ERROR}
    assert {row.scores["says_word"].value for row in run} == {0.0}
    assert run.summary().criterion("says_word").rate.estimate == 0.0


def test_a_call_that_can_never_succeed_stops_the_run_with_its_sentence(tmp_path: Path) -> None:
    folder = write_suite(tmp_path / "golden", cases=200)
    from chat_server import Answer

    with ChatServer(reply=lambda body: Answer(401, {"error": {"message": "bad key"}})) as server:
        with pytest.raises(CallImpossible, match="bad key"):
            run_suite(folder, server, tmp_path / "out")
        assert server.stats()["requests"] <= 16


def test_no_judge_is_paid_for_a_case_that_failed_a_hard_criterion(tmp_path: Path) -> None:
    folder = write_suite(tmp_path / "golden", cases=10, criteria=JUDGED)
    (folder / "judges").mkdir()
    (folder / "judges" / "kind.md").write_text(JUDGE)

    def reply(body: dict[str, object]) -> str:
        if body["model"] == "judge":
            return json.dumps({"kind": {"justification": "it is", "verdict": "yes"}})
        word = body["messages"][-1]["content"]  # type: ignore[index]
        return "nothing" if word in ("word0", "word1") else word

    with ChatServer(reply=reply) as server:
        run = run_suite(folder, server, tmp_path / "out", judges=True)
        assert server.stats()["requests"] == 10 + 8
    stopped = [row for row in run if row.scores["kind"].status is ScoreStatus.NOT_JUDGED]
    assert [row.case_id for row in stopped] == ["c000", "c001"]
    kind = run.summary().criterion("kind")
    assert kind.layer == 2
    assert kind.rate.n_cases == 10
    assert kind.rate.estimate == pytest.approx(0.8 if kind.counts.get("ok") else 0.0)
    assert kind.among_judged is not None
    assert kind.among_judged.n_cases == 8


def test_seeds_differ_by_case_and_repeat_and_stay_the_same() -> None:
    seeds = {request_seed(7, f"c{i}", k) for i in range(50) for k in range(3)}
    assert len(seeds) == 150
    assert request_seed(7, "c1", 0) == request_seed(7, "c1", 0) != request_seed(8, "c1", 0)
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_after_kill_9_only_what_had_not_arrived_is_asked_again(tmp_path: Path) -> None:
    folder = write_suite(tmp_path / "golden", cases=120)
    code = (
        "import asyncio, sys; from pathlib import Path; sys.path.insert(0, sys.argv[4]);"
        "from evalkit.models.endpoints import *; from evalkit.models.client import Client;"
        "from evalkit.models.store import CallStore; from evalkit.cases.suite import load_suite;"
        "from evalkit.runs.plan import make_plan; from evalkit.runs.execute import execute\n"
        "async def go():\n"
        "    one = Endpoint(name='srv', base_url=sys.argv[2], max_concurrency=4)\n"
        "    e = Endpoints({'srv': one})\n"
        "    with CallStore(Path(sys.argv[3]) / 'calls.sqlite') as s:\n"
        "        async with Client(e, store=s) as c:\n"
        "            await execute(make_plan(load_suite(sys.argv[1])), c)\n"
        "asyncio.run(go())"
    )
    with ChatServer(latency_s=0.05) as server:
        command = [sys.executable, "-c", code, str(folder), server.base_url, str(tmp_path), "."]
        first = subprocess.Popen(command)
        end = time.monotonic() + 30
        while server.stats()["answered"] < 25 and time.monotonic() < end:
            time.sleep(0.01)
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        sent = server.stats()["requests"]
        assert subprocess.run(command, check=False).returncode == 0
        stats = server.stats()
    assert 25 <= sent < 120
    assert stats["distinct"] == 120
    # In flight at the kill: calls of the 7 workers that had not returned, 4 of them at the server.
    assert stats["requests"] - 120 <= 7


@pytest.mark.parametrize("broken", [RuntimeError("boom"), SystemExit(0), None])
def test_a_scorer_that_breaks_is_named_with_its_case(
    tmp_path: Path, broken: BaseException | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evalkit.scorers.text import Contains

    def call(self: Contains, case: object, reply: object) -> object:
        if broken is not None:
            raise broken
        return 1.0

    monkeypatch.setattr(Contains, "__call__", call)
    folder = write_suite(tmp_path / "golden", cases=4)
    with ChatServer() as server, pytest.raises(ScorerError, match="criterion 'says_word'"):
        run_suite(folder, server, tmp_path)


def test_a_call_that_can_never_succeed_names_the_case_it_met(tmp_path: Path) -> None:
    from chat_server import Answer

    def reply(body: dict[str, object]) -> object:
        word = body["messages"][-1]["content"]  # type: ignore[index]
        return Answer(400, {"error": {"message": "odd"}}) if word == "word3" else "fine"

    folder = write_suite(tmp_path / "golden", cases=4)
    with ChatServer(reply=reply) as server, pytest.raises(CallImpossible, match="case 'c003'"):  # type: ignore[arg-type]
        run_suite(folder, server, tmp_path)

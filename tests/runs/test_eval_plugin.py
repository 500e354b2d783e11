"""The pytest plugin in processes of its own: what it skips, asks, records, and ends with."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer
from gate_situations import run_situation
from mini_suite import write_suite

pytest_plugins = ["pytester"]

HARD = '[[criteria]]\nname = "says_word"\nscorer = "contains"\nexpected = "word"\nhard = true\n'
FLOOR = HARD.replace("hard = true", "min = 0.9")
CASES = """
import pytest

@pytest.mark.evalkit("golden/mini")
def test_case(evalkit_case):
    evalkit_case.check()
"""


class Project:
    """A folder with a suite, an endpoint, and pytest as a command."""

    def __init__(self, pytester: pytest.Pytester, server: ChatServer) -> None:
        self.pytester, self.server = pytester, server
        self.root = pytester.path
        self.out = self.root / "exports"
        self.pyproject()

    def pyproject(self, extra: str = "") -> None:
        (self.root / "pyproject.toml").write_text(
            "[tool.pytest.ini_options]\naddopts = '-p no:cacheprovider'\n"
            f'[tool.evalkit.endpoints.srv]\nbase_url = "{self.server.base_url}"\nattempts = 1\n'
            f"{extra}\n"
        )

    def suite(self, criteria: str = HARD, cases: Any = 10, **how: Any) -> None:
        write_suite(self.root / "golden" / "mini", criteria=criteria, cases=cases, **how)

    def pytest(self, test: str, *arguments: str, process: bool = False) -> pytest.RunResult:
        """Run pytest on a test file, here or in a process of its own (workers always are)."""
        (self.root / "test_it.py").write_text(test)
        arguments = ("-q", *arguments, "test_it.py")
        if process or "-n" in arguments:
            return self.pytester.run(sys.executable, "-m", "pytest", *arguments, timeout=120)
        return self.pytester.runpytest_inprocess(*arguments)

    @property
    def ledger(self) -> list[list[str]]:
        file = self.out / "eval_baseline.tsv"
        return [line.split("\t") for line in file.read_text().split("\n") if line]


@pytest.fixture(scope="module", autouse=True)
def everything_is_imported(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A run inside this process forgets what it was first to import; numpy cannot bear it."""
    import evalkit.models.scripted
    import evalkit.report.collected  # noqa: F401

    run_situation("unchanged against the baseline", tmp_path_factory.mktemp("first"))
    run_situation("a floor refuted", tmp_path_factory.mktemp("second"))


@pytest.fixture
def project(pytester: pytest.Pytester) -> Iterator[Project]:
    with ChatServer() as server:
        yield Project(pytester, server)


def says(wrong: set[str], server: ChatServer) -> None:
    def reply(body: dict[str, Any]) -> str:
        word = body["messages"][-1]["content"]
        return "something else" if word in wrong else word

    server.reply = reply


def test_cases_become_tests_with_readable_ids_and_the_gate_rules_once(project: Project) -> None:
    project.suite()
    found = project.pytest(CASES, "--run-live", "-vv", process=True)
    assert found.ret == 0
    found.stdout.fnmatch_lines(["*test_case?easy/c000?*PASSED*", "*test_case?hard/c001?*PASSED*"])
    found.stdout.fnmatch_lines(["*PASS (smoke): mini: says_word holds on 10 cases x 1.*"])
    assert project.server.stats()["requests"] == 10
    again = project.pytest(CASES)  # recorded now: nobody is asked
    assert (again.ret, project.server.stats()["requests"]) == (0, 10)
    assert len(project.ledger) == 2  # the head, and one line of the run that asked


def test_a_failure_prints_case_reply_and_finding_and_no_internals(project: Project) -> None:
    project.suite()
    says({"word3"}, project.server)
    found = project.pytest(CASES, "--run-live")
    assert found.ret == 1
    found.stdout.fnmatch_lines(
        [
            "1 of 1 repeat of case c003 do not hold",
            "case c003 (hard), repeat 0: says_word",
            "  word: word3",
            "  reply: something else",
            "  finding: not found: 'word3'",
            "*FAIL (smoke): mini: says_word: 1 of 10 runs failed*look at c003.*",
        ]
    )
    text = found.stdout.str()
    assert "pytest_plugin.py" not in text
    assert "Traceback" not in text


def test_a_floor_is_ruled_on_all_cases_together(project: Project) -> None:
    project.suite(FLOOR, cases=40)
    says({f"word{i}" for i in range(12)}, project.server)
    found = project.pytest(CASES, "--run-live")
    found.assert_outcomes(passed=40)
    assert found.ret == 1
    found.stdout.fnmatch_lines(["FAIL (smoke): mini: says_word: below 90.0 %*"])


def test_replies_that_nobody_recorded_fail_with_what_to_do(project: Project) -> None:
    project.suite(cases=4)
    found = project.pytest(CASES)
    assert found.ret == 1
    found.stdout.fnmatch_lines(["*Run live once (--run-live), or add the recordings.*"])
    assert project.server.stats()["requests"] == 0
    assert not (project.out / "eval_baseline.tsv").exists()


def test_live_tests_are_skipped_with_the_reason(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.suite()
    project.pyproject('api_key_env = "SRV_KEY"')
    monkeypatch.delenv("SRV_KEY", raising=False)
    test = CASES.replace("@pytest", "@pytest.mark.live\n@pytest", 1)
    found = project.pytest(test, "-rs")
    found.assert_outcomes(skipped=10)
    found.stdout.fnmatch_lines(["*live: run it with --run-live*"])
    found = project.pytest(test, "-rs", "--run-live")
    found.assert_outcomes(skipped=10)
    found.stdout.fnmatch_lines(["*set the environment variable SRV_KEY*"])
    monkeypatch.setenv("SRV_KEY", "k")
    assert project.pytest(test, "--run-live").ret == 0


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "two workers"])
def test_f06_six_tests_make_six_lines_one_head_and_one_summary(
    project: Project, workers: tuple[str, ...]
) -> None:
    test = (
        "import pytest\n@pytest.mark.parametrize('i', range(6))\n"
        "def test_it(i, evalkit_record):\n"
        "    evalkit_record(f'metric{i}', 0.80 + i / 50, threshold=0.80)\n"
    )
    found = project.pytest(test, *workers)
    assert found.ret == 0
    assert project.ledger[0][0] == "date"
    assert sorted(line[3] for line in project.ledger[1:]) == [f"metric{i}" for i in range(6)]
    assert {len(line) for line in project.ledger} == {16}
    assert found.stdout.str().count("6 scores recorded, 0 below their threshold") == 1
    low = project.pytest(test.replace("threshold=0.80", "threshold=0.85"))
    assert low.ret == 1
    assert low.stdout.str().count("6 scores recorded, 3 below their threshold") == 1
    assert len(project.ledger) == 13


WHOLE = """
from evalkit.pytest_plugin import assert_criteria

@pytest.mark.evalkit("golden/mini")
@pytest.mark.parametrize("i", range(4))
def test_whole(i, evalkit_run):
    assert_criteria(evalkit_run())
"""


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "two workers"])
def test_workers_repeat_no_call_and_the_gate_rules_once_on_all_their_rows(
    project: Project, workers: tuple[str, ...]
) -> None:
    project.suite(FLOOR.replace("0.9", "0.99"), cases=6)
    found = project.pytest(CASES + WHOLE, "--run-live", *workers)
    found.assert_outcomes(passed=10)
    assert found.ret == 0
    assert found.stdout.str().count("(smoke): mini:") == 1
    assert "on 6 cases x 1" in found.stdout.str()
    stats = project.server.stats()
    assert (stats["requests"], stats["distinct"]) == (6, 6)


F04 = {
    "10 of 10 pass, gate 'all'": (HARD, 10, set(), set(), "zero"),
    "9 of 10 pass, gate 'all'": (HARD, 10, {"word3"}, set(), "non-zero"),
    "10 rows, all of them provider errors": (
        FLOOR, 10, set(), {f"word{i}" for i in range(10)}, "non-zero",
    ),
    "0 rows selected by a filter": (HARD, 10, set(), set(), "non-zero"),
    "pass rate 0.95 (19 of 20 scored rows), gate 0.9, but 3 more rows unscored (13 %), more than "
    "the gate allows": (FLOOR, 23, {"word1"}, {"word5", "word6", "word7"}, "non-zero"),
}  # fmt: skip


def test_f04_is_the_case_of_the_collection() -> None:
    cases = Path(__file__).resolve().parents[1] / "failure_cases" / "cases.jsonl"
    read = [json.loads(line) for line in cases.read_text("utf-8").split("\n") if line]
    case = next(case for case in read if case["id"] == "F04")
    assert case["input"]["runs"] == list(F04)
    assert case["expected"]["value"] == [wanted for *_, wanted in F04.values()]


@pytest.mark.parametrize("title", F04)
def test_f04_nothing_measured_is_no_success(project: Project, title: str) -> None:
    from chat_server import Answer

    criteria, cases, wrong, dead, wanted = F04[title]
    project.suite(criteria, cases=cases)

    def reply(body: dict[str, Any]) -> str | Answer:
        word = body["messages"][-1]["content"]
        if word in dead:
            return Answer(500, {"error": {"message": "down"}})
        return "something else" if word in wrong else word

    project.server.reply = reply
    test = CASES
    if title.startswith("0 rows"):
        test = test.replace('"golden/mini"', '"golden/mini", stratum="none"')
    elif criteria is FLOOR:  # rows without a reply are for the gate, not for each test
        test = test.replace("evalkit_case.check()", "assert evalkit_case.rows")
    found = project.pytest(test, "--run-live", process=title.startswith("9 of 10"))
    assert (found.ret == 0) == (wanted == "zero")


def test_sentinels_are_asked_n_times_and_each_time_must_hold(project: Project) -> None:
    cases = [
        {
            "id": f"s{i}",
            "inputs": {"word": f"word{i}"},
            "expected": {"word": f"word{i}"},
            "tags": ["sentinel"] if i < 2 else [],
        }
        for i in range(6)
    ]
    project.suite(cases=cases)
    seen: list[str] = []

    def reply(body: dict[str, Any]) -> str:
        word = body["messages"][-1]["content"]
        seen.append(word)
        return "no" if word == "word1" and seen.count(word) == 4 else word

    project.server.reply = reply
    test = CASES.replace("@pytest", "@pytest.mark.sentinel(5)\n@pytest", 1)
    found = project.pytest(test, "--run-live")
    found.assert_outcomes(passed=1, failed=1)
    assert (seen.count("word0"), seen.count("word1"), len(seen)) == (5, 5, 10)
    found.stdout.fnmatch_lines(["1 of 5 repeats of case s1 do not hold"])


SCRIPTED = """
import pytest
from evalkit.models.scripted import ToolCall
from evalkit.pytest_plugin import assert_criteria

@pytest.mark.evalkit("golden/mini")
def test_a_run_of_a_script(evalkit_run, evalkit_scripted, evalkit_suite):
    model = evalkit_scripted([f"say word{i}" for i in range(4)])
    run = evalkit_run(client=model.client("srv/m"))
    assert run.manifest.origin == "scripted"
    assert [r.reply.text for r in run] == [f"say word{i}" for i in range(4)]
    assert "says nothing of a model" in assert_criteria(run).sentence

def test_an_application_that_calls_a_tool(evalkit_scripted):
    import httpx
    model = evalkit_scripted([ToolCall("search", {"q": "quotas"}), "Ten gigabytes."])
    with httpx.Client(transport=model.transport(), base_url="http://app.test") as http:
        first = http.post("/v1/chat/completions", json={"model": "m", "messages": []}).json()
        call = first["choices"][0]["message"]["tool_calls"][0]["function"]
        assert (call["name"], call["arguments"]) == ("search", '{"q": "quotas"}')
        second = http.post("/v1/chat/completions", json={"model": "m", "messages": []}).json()
        assert second["choices"][0]["message"]["content"] == "Ten gigabytes."
        ended = http.post("/v1/chat/completions", json={"model": "m", "messages": []})
        assert (ended.status_code, "has 2 turns" in ended.text) == (400, True)
"""


def test_a_script_stands_in_for_a_model_and_its_runs_are_marked(project: Project) -> None:
    project.suite(cases=4)
    found = project.pytest(SCRIPTED)
    found.assert_outcomes(passed=2)
    assert project.server.stats()["requests"] == 0
    assert not (project.out / "eval_baseline.tsv").exists()


def test_a_client_of_ones_own_replays_and_the_suite_is_at_hand(project: Project) -> None:
    project.suite(cases=4)
    test = """
import asyncio
import pytest
from evalkit.errors import ReplayMissing
from evalkit.runs.plan import make_plan

@pytest.mark.evalkit("golden/mini")
def test_it(evalkit_client, evalkit_suite):
    request = next(make_plan(evalkit_suite).requests())
    with pytest.raises(ReplayMissing):
        asyncio.run(evalkit_client.ask(request))
"""
    assert project.pytest(test).ret == 0
    assert project.pytest(test.replace('("golden/mini")', "")).ret == 1


def test_the_plugin_costs_a_run_without_evals_nothing(project: Project) -> None:
    test = (
        "import sys\ndef test_it():\n"
        "    assert not {'numpy', 'pydantic', 'httpx', 'evalkit.runs'} & {*sys.modules}\n"
    )
    assert project.pytest(test, process=True).ret == 0

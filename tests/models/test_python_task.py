"""A user's own function as the task: called once for each key, plain or async."""

from __future__ import annotations

import asyncio
import sys
import textwrap
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from evalkit.errors import CallFailed, ConfigError, ReplayMissing
from evalkit.models.client import Client
from evalkit.models.endpoints import Endpoints
from evalkit.models.python_task import PythonTask, load_task
from evalkit.models.store import CallStore
from evalkit.records import Case, Reply, Usage

APP = """
import asyncio, threading, time
calls = []
def answer(case, prompt):
    calls.append((case.id, threading.current_thread() is threading.main_thread()))
    time.sleep(0.02)
    return {"text": f"{case.inputs['q']} {prompt.hash} {case.path}", "retrieved": ["p1", "p2"],
            "usage": {"prompt_tokens": 3}}
async def later(case, prompt):
    await asyncio.sleep(0)
    return case.inputs["q"]
def broken(case, prompt):
    return {}["answer"]
def listed(case, prompt):
    return ["not", "an", "answer"]
def stuck(case, prompt):
    time.sleep(60)
class Service:
    @staticmethod
    def answer(case, prompt):
        return "from a class"
"""


@dataclass(frozen=True)
class OnlyHash:
    hash: str = "abc123"


CASE = Case("c1", inputs={"q": "how?"}, path="agent")


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "ek_toy_app.py").write_text(textwrap.dedent(APP), encoding="utf-8")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "ek_toy_app", raising=False)
    return tmp_path


def run(task: PythonTask, *cases: Case, store: CallStore | None = None, **settings: Any) -> Any:
    async def go() -> list[Any]:
        async with Client(Endpoints({}), store=store, **settings) as client:
            answers = (client.run_task(task, c, OnlyHash()) for c in cases)
            return await asyncio.gather(*answers, return_exceptions=True)

    return asyncio.run(go())


def test_a_plain_function_runs_in_threads_and_its_answers_are_kept(app: Path) -> None:
    task = load_task("ek_toy_app:answer", version="v1", root=app)
    cases = [replace(CASE, id=f"c{i}") for i in range(20)]
    with CallStore(app / "c.sqlite") as store:
        first = run(task, *cases, store=store)
        again = run(task, *cases, store=store, live=False)
        changed = run(replace(task, version="v2"), CASE, store=store, live=False)
    assert first[0].text == "how? abc123 agent"
    assert first[0].retrieved == ("p1", "p2")
    assert first[0].usage == Usage(prompt_tokens=3)
    assert first[0].latency_s > 0
    assert [r.text for r in again] == [r.text for r in first]
    calls = sys.modules["ek_toy_app"].calls
    assert len(calls) == 20
    assert not any(in_main for _, in_main in calls)
    assert isinstance(changed[0], ReplayMissing)


def test_an_async_function_and_a_function_of_a_class(app: Path) -> None:
    assert run(load_task("ek_toy_app:later", version="1", root=app), CASE)[0].text == "how?"
    service = load_task("ek_toy_app:Service.answer", version="1", root=app)
    assert run(service, CASE)[0].text == "from a class"


def test_a_reply_is_taken_as_it_is(app: Path) -> None:
    given = Reply("x", reasoning="why", usage=Usage(1, 2, None, 3))
    (got,) = run(PythonTask("a:b", "1", lambda case, prompt: given), CASE)
    assert replace(got, latency_s=None, key="") == given


def test_an_exception_is_a_missing_reply_with_its_place(app: Path) -> None:
    (failed,) = run(load_task("ek_toy_app:broken", version="1", root=app), CASE)
    assert isinstance(failed, CallFailed)
    assert "KeyError: 'answer'" in str(failed)
    assert "ek_toy_app.py:" in str(failed)
    assert "'c1'" in str(failed)


def test_a_key_in_an_exception_is_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_VENDOR_API_KEY", "sk-in-an-exception-1")

    def answer(case: Case, prompt: object) -> str:
        raise RuntimeError("Incorrect API key provided: sk-in-an-exception-1")

    (failed,) = run(PythonTask("a:b", "1", answer), CASE)
    assert isinstance(failed, CallFailed)
    assert "sk-in" not in str(failed)
    assert "[key]" in str(failed)


def test_what_is_no_answer_is_a_configuration_error(app: Path) -> None:
    (failed,) = run(load_task("ek_toy_app:listed", version="1", root=app), CASE)
    assert isinstance(failed, ConfigError)
    assert "it returned list" in str(failed)


def test_a_function_that_hangs_ends_at_its_deadline(app: Path) -> None:
    task = replace(load_task("ek_toy_app:stuck", version="1", root=app), timeout_s=0.1)
    (failed,) = run(task, CASE)
    assert isinstance(failed, CallFailed)
    assert "within 0.1 s" in str(failed)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("my_app", "package.module:function"),
        ("no_such_module_here:f", "cannot be imported: ModuleNotFoundError"),
        ("ek_toy_app:nothing", "has no nothing"),
        ("ek_toy_app:calls", "not a function"),
    ],
)
def test_a_wrong_entry_is_one_sentence(app: Path, entry: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        load_task(entry, version="1", root=app)


def test_an_app_that_ends_itself_ends_neither_the_run_nor_its_status(app: Path) -> None:
    (app / "ek_toy_quits.py").write_text("raise SystemExit(0)\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="cannot be imported: SystemExit"):
        load_task("ek_toy_quits:answer", version="1", root=app)
    source = "def plain(case, prompt):\n    raise SystemExit(0)\nasync def later(case, prompt):\n"
    (app / "ek_toy_ends.py").write_text(source + "    raise SystemExit(0)\n", encoding="utf-8")
    for name in ("plain", "later"):
        task = load_task(f"ek_toy_ends:{name}", version="1", root=app)
        with pytest.raises(CallFailed, match="raised SystemExit"):
            asyncio.run(task.answer(CASE, None))


def test_the_working_directory_is_looked_through(
    app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(app)
    assert load_task("ek_toy_app:answer", version="1").entry == "ek_toy_app:answer"


def test_the_runs_deadline_ends_a_function_that_hangs() -> None:

    async def go() -> None:
        task = PythonTask("app:slow", "1", lambda case, prompt: time.sleep(30))
        async with Client(Endpoints({}), deadline_s=0.2) as client:
            await client.run_task(task, Case("a"))

    with pytest.raises(CallFailed, match="deadline of"):
        asyncio.run(go())


def test_a_function_cannot_change_what_its_answer_is_scored_against() -> None:

    def cheat(case: Case, prompt: object) -> str:
        case.expected["word"] = ""  # type: ignore[index]
        return "x"

    case = Case("a", expected={"word": "right"})
    asyncio.run(PythonTask("app:cheat", "1", cheat).answer(case, None))
    assert case.expected == {"word": "right"}

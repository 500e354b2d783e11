"""Relations on a live application: the verdict comes from paired runs, not from one sample."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from chat_server import ChatServer
from mini_suite import endpoints_of, write_suite

from evalkit.cases.suite import load_suite
from evalkit.errors import UsageError
from evalkit.models.client import Client
from evalkit.relations import DIR, INV, AddPage, FabricateNumber, ReorderContext
from evalkit.runs.plan import make_plan
from evalkit.runs.relations_live import LiveOutcome, run_relation
from evalkit.stats.decision import Decision

PROMPT = "# user\n{% for page in context %}{{ page.text }} {% endfor %}\n"
CASES = [
    {
        "id": f"c{i:03d}",
        "inputs": {"word": f"w{i}"},
        "context": [{"id": "one", "text": f"w{i}"}, {"id": "two", "text": "noise"}],
        "expected": {"word": f"w{i}"},
    }
    for i in range(80)
]


def outcome(folder: Path, server: ChatServer, relation: INV | DIR) -> LiveOutcome:
    async def go() -> LiveOutcome:
        suite = load_suite(write_suite(folder, cases=CASES, prompt=PROMPT))
        async with Client(endpoints_of(server)) as client:
            return await run_relation(relation, make_plan(suite), client, criterion="says_word")

    return asyncio.run(go())


def first_word(body: dict[str, object]) -> str:
    return body["messages"][-1]["content"].split()[0]  # type: ignore[index]


def test_an_application_that_reads_only_the_first_page_violates_the_order(tmp_path: Path) -> None:
    relation = INV(name="order", change=ReorderContext())
    with ChatServer(reply=first_word) as server:
        found = outcome(tmp_path, server, relation)
    assert found.decision is Decision.FAIL
    assert found.change.interval.estimate == -1.0
    assert len(found.cases) == 80
    assert "order: is violated on says_word" in found.sentence


def test_one_that_reads_all_pages_holds(tmp_path: Path) -> None:
    with ChatServer() as server:
        assert outcome(tmp_path, server, INV(name="o", change=ReorderContext())).decision is (
            Decision.PASS
        )
        relation = DIR(name="p", change=AddPage(), must="not fall")
        assert outcome(tmp_path, server, relation).decision is Decision.PASS
        relation = DIR(name="p", change=AddPage(), must="rise")
        assert outcome(tmp_path, server, relation).decision is not Decision.PASS


def test_a_change_of_the_reply_cannot_be_asked_live(tmp_path: Path) -> None:
    relation = DIR(name="number", change=FabricateNumber(), must="rise")
    with ChatServer() as server, pytest.raises(UsageError, match="changes the reply"):
        outcome(tmp_path, server, relation)

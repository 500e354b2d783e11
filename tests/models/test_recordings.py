"""Recordings: exported from a store, replayed without a network, honest about their origin."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from chat_server import ChatServer

from evalkit.errors import ReplayMissing, StoreError
from evalkit.models.client import Client
from evalkit.models.endpoints import Endpoint, Endpoints
from evalkit.models.recordings import HANDWRITTEN, export, load_recordings, write_recordings
from evalkit.models.store import CallStore
from evalkit.records import Message, Reply, Request

REQUESTS = [
    Request("m/x", (Message("user", f"case {i}"),), temperature=0.7, seed=i) for i in range(30)
]


async def ask(client: Client, requests: list[Request]) -> list[Reply]:
    async with client:
        return [await client.ask(r) for r in requests]


def test_a_run_is_exported_and_replayed_without_a_network(tmp_path: Path) -> None:
    file = tmp_path / "recordings" / "run.jsonl"
    with ChatServer() as server, CallStore(tmp_path / "c.sqlite") as store:
        endpoints = Endpoints({"m": Endpoint("m", server.base_url)})
        first = asyncio.run(ask(Client(endpoints, store=store, run="r1"), REQUESTS[:3]))
        assert export(store, [r.key for r in first], file) == 3
        assert set(store.keys_of_run("r1")) == {r.key for r in first}
    again = Client(endpoints, recordings=load_recordings(file.parent), live=False)
    replayed = asyncio.run(ask(again, REQUESTS[:3]))
    assert [(r.text, r.usage, r.key) for r in replayed] == [(r.text, r.usage, r.key) for r in first]
    assert again.spend.recorded == 3
    line = json.loads(file.read_text("utf-8").splitlines()[0])
    assert line["origin"]["model"] == "m/x"
    assert line["origin"]["settings"]["temperature"] == 0.7
    assert len(line["origin"]["date"]) == 10


def test_exporting_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    with ChatServer() as server, CallStore(tmp_path / "c.sqlite") as store:
        endpoints = Endpoints({"m": Endpoint("m", server.base_url)})
        keys = [r.key for r in asyncio.run(ask(Client(endpoints, store=store), REQUESTS[:3]))]
        export(store, keys, tmp_path / "a.jsonl")
        export(store, reversed(keys), tmp_path / "b.jsonl")
        with pytest.raises(ReplayMissing, match="1 of 2 replies"):
            export(store, [keys[0], "0" * 64], tmp_path / "c.jsonl")
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    assert not (tmp_path / "c.jsonl").exists()


def test_a_replay_that_misses_calls_lists_them_and_sends_none() -> None:
    endpoints = Endpoints({"m": Endpoint("m", "http://127.0.0.1:9/v1")})
    client = Client(endpoints, live=False)
    with pytest.raises(ReplayMissing) as caught:
        client.require_recorded(REQUESTS)
    assert "30 calls are not recorded" in str(caught.value)
    assert "case 0" in str(caught.value)
    assert "and 10 more" in str(caught.value)

    async def run() -> None:
        with pytest.raises(ReplayMissing, match="case 7"):
            await client.ask(REQUESTS[7])

    asyncio.run(run())
    assert len(client.missing) == 1


def test_a_handwritten_reply_says_so_wherever_it_is_shown(tmp_path: Path) -> None:
    endpoints = Endpoints({"m": Endpoint("m", "http://127.0.0.1:9/v1")})
    key = Client(endpoints).key_of(REQUESTS[0])
    write_recordings(tmp_path / "h.jsonl", [Reply("I wrote it", key=key)], origins=HANDWRITTEN)
    recordings = load_recordings(tmp_path / "h.jsonl")
    client = Client(endpoints, recordings=recordings, live=False)
    (reply,) = asyncio.run(ask(client, REQUESTS[:1]))
    assert reply.text == "I wrote it"
    assert "handwritten" in reply.warnings[0]
    assert recordings.origins[key] == HANDWRITTEN


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"key": "12", "origin": "handwritten", "reply": {"text": ""}}',
        '{"key": "%s", "origin": "someone", "reply": {"text": ""}}' % ("0" * 64),
        '{"key": "%s", "origin": {}, "reply": {"text": ""}}' % ("0" * 64),
        '{"key": "%s", "origin": "handwritten", "reply": {}}' % ("0" * 64),
        "[" * 100_000,
    ],
)
def test_a_line_that_is_no_recording_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "r.jsonl").write_text(f"\n{line}\n", encoding="utf-8")
    with pytest.raises(StoreError, match=r"r\.jsonl:2"):
        load_recordings(tmp_path / "r.jsonl")

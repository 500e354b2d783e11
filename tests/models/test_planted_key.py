"""A key that is planted, and echoed by the server wherever it can be, appears nowhere."""

from __future__ import annotations

import asyncio
import logging
import traceback
from pathlib import Path
from typing import Any

import pytest
from chat_server import Answer, ChatServer, openai_body

from evalkit.errors import EvalkitError
from evalkit.models.client import CallEvent, Client
from evalkit.models.endpoints import load_endpoints
from evalkit.models.recordings import export
from evalkit.models.store import CallStore
from evalkit.records import Message, Request

KEY = "sk-planted-5f0b7c1d"
TABLE = """
[tool.evalkit.endpoints.m]
base_url = "{base_url}"
api_key_env = "EK_PLANTED"
attempts = 2
backoff_s = 0.01
"""


@pytest.mark.parametrize("status", [200, 401, 429, 500])
@pytest.mark.parametrize("where", ["environment", "file"])
def test_a_planted_key_appears_nowhere(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    status: int,
    where: str,
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.delenv("EK_PLANTED", raising=False)
    if where == "environment":
        monkeypatch.setenv("EK_PLANTED", KEY)
    else:
        (tmp_path / ".env").write_text(f"EK_PLANTED={KEY}\n", encoding="utf-8")
    events: list[CallEvent] = []
    seen: list[str] = []

    def reply(body: dict[str, Any]) -> Answer:
        echoed = f"your key is {KEY}, Bearer {KEY}"
        if status == 200:
            return Answer(200, openai_body(body, echoed, reasoning_content=echoed, refusal=echoed))
        return Answer(status, {"error": {"message": echoed}}, {"x-echo": KEY})

    async def run(store: CallStore) -> None:
        request = Request("m/x", (Message("user", "say it"),), temperature=0.5)
        client = Client(endpoints, store=store, on_event=events.append, run="r")
        async with client:
            try:
                got = await client.ask(request)
                seen.append(repr(got))
                export(store, [got.key], tmp_path / "out" / "recording.jsonl")
            except EvalkitError as error:
                seen.append(str(error))
                seen.extend(
                    traceback.TracebackException.from_exception(error, capture_locals=True).format()
                )
            seen.append(repr(vars(client)))

    with ChatServer(reply=reply) as server:
        (tmp_path / "pyproject.toml").write_text(TABLE.format(base_url=server.base_url), "utf-8")
        endpoints = load_endpoints(tmp_path)
        with CallStore(tmp_path / "out" / "calls.sqlite") as store:
            asyncio.run(run(store))
        assert server.headers[0]["authorization"] == f"Bearer {KEY}"  # it was sent, though
    everything = [*seen, repr(events), repr(endpoints), caplog.text, *capfd.readouterr()]
    assert not [text for text in everything if KEY in text]
    left = [f for f in (tmp_path / "out").rglob("*") if KEY.encode() in f.read_bytes()]
    assert not left
    assert any("[key]" in text for text in seen)

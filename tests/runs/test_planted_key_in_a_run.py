"""A planted key appears nowhere in what a run leaves, also when the server sends it back."""

from __future__ import annotations

import asyncio
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from chat_server import Answer, ChatServer
from mini_suite import write_suite

from evalkit.__main__ import main
from evalkit.cases.suite import load_suite
from evalkit.errors import CallImpossible
from evalkit.models.client import Client
from evalkit.models.endpoints import Endpoint, Endpoints
from evalkit.models.store import CallStore
from evalkit.report.console import run_text
from evalkit.report.page import write_page
from evalkit.runs.baseline import freeze
from evalkit.runs.execute import execute
from evalkit.runs.plan import make_plan
from evalkit.runs.run import Run

KEY = "sk-planted-0123456789abcdef"


def run_with_key(folder: Path, out: Path, base_url: str) -> Run:
    endpoint = Endpoint(name="srv", base_url=base_url, api_key_env="PLANTED_KEY", attempts=1)

    async def go() -> Run:
        with CallStore(out / "calls.sqlite") as store:
            async with Client(Endpoints({"srv": endpoint}), store=store) as client:
                return await execute(make_plan(load_suite(folder)), client, runs=out / "runs")

    return asyncio.run(go())


def test_a_key_that_the_server_echoes_is_in_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED_KEY", KEY)
    folder, out = write_suite(tmp_path / "golden", cases=6), tmp_path / "exports"

    def echo(body: dict[str, object]) -> Answer:
        sent = body["messages"][-1]["content"]  # type: ignore[index]
        if sent == "word1":
            return Answer(500, {"error": {"message": f"your key {KEY} broke"}})
        text = f"{sent} and your key is {KEY}"
        message = {"role": "assistant", "content": text, "reasoning_content": KEY}
        return Answer(200, {"choices": [{"message": message, "finish_reason": "stop"}]})

    with ChatServer(reply=echo) as server:
        run = run_with_key(folder, out, server.base_url)
        assert any(KEY in str(headers) for headers in server.headers)  # it really was sent
    assert run.errors == 1
    whole = Run(replace(run.manifest, dirty=False), None, [r for r in run if r.reply])
    assert run.folder is not None
    freeze(whole, out / "baselines" / "mini.jsonl")
    write_page(out / "page.html", run, suite=load_suite(folder), baseline=whole)
    done = run.rows[0].reply
    assert done is not None
    (out / "printed.txt").write_text(run_text(run, run.summary()))
    keep = [row.reply.key for row in run if row.reply]
    with CallStore(out / "calls.sqlite") as store:
        from evalkit.models.recordings import export

        export(store, keep, out / "recordings" / "r.jsonl")
    database = sqlite3.connect(out / "calls.sqlite")
    dumped = "\n".join(database.iterdump())
    database.close()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 8
    leaks = [str(path) for path in files if KEY.encode() in path.read_bytes()]
    assert leaks == []
    assert KEY not in dumped
    assert "word0 and your key is" in done.text


def test_a_key_is_in_no_message_and_no_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PLANTED_KEY", KEY)
    refused = Answer(401, {"error": {"message": f"no such key: {KEY}"}})
    folder = write_suite(tmp_path / "golden", cases=4)
    with (
        ChatServer(reply=lambda body: refused) as server,
        pytest.raises(CallImpossible) as stopped,
    ):
        run_with_key(folder, tmp_path / "exports", server.base_url)
    assert KEY not in repr(stopped.value)
    assert KEY not in str(stopped.value)
    main(["doctor", "--out", str(tmp_path / "exports")])
    printed = capfd.readouterr()
    assert KEY not in printed.out + printed.err

"""A run on worker processes: the rows of a local run, whatever happens to a worker."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import pickle
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from chat_server import Answer, ChatServer
from mini_suite import endpoints_of, write_suite

from evalkit.cases.suite import load_suite
from evalkit.errors import CallImpossible, ConfigError
from evalkit.models.client import Client
from evalkit.models.endpoints import Endpoint, Endpoints
from evalkit.models.store import CallStore
from evalkit.records import Row
from evalkit.runs.engines import DaskEngine, Engine, engine_of
from evalkit.runs.execute import execute
from evalkit.runs.plan import make_plan
from evalkit.runs.run import Run
from evalkit.runs.workers import Settled, run_here

pytest.importorskip("distributed", reason="the extra 'dask' is not installed")

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


def judged_suite(folder: Path, cases: int) -> Path:
    write_suite(folder, cases=cases, criteria=JUDGED)
    (folder / "judges").mkdir()
    (folder / "judges" / "kind.md").write_text(JUDGE)
    return folder


def reply(body: dict[str, Any]) -> str:
    if body["model"] == "judge":
        return json.dumps({"kind": {"justification": "it is", "verdict": "yes"}})
    return body["messages"][-1]["content"]


def run(
    suite: Path,
    endpoints: Endpoints,
    out: Path,
    engine: Engine = run_here,
    on_row: Any = None,
    **settings: Any,
) -> Run:
    async def go() -> Run:
        with CallStore(out / "calls.sqlite") as store:
            async with Client(endpoints, store=store, **settings) as client:
                plan = make_plan(load_suite(suite), judges=True)
                return await execute(plan, client, runs=out / "runs", engine=engine, on_row=on_row)

    return asyncio.run(go())


def text(run: Run) -> bytes:
    assert run.folder
    return (run.folder / "rows.jsonl").read_bytes()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Four worker processes on loopback."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=4, threads_per_worker=1, dashboard_address="127.0.0.1:0"
    ) as running:
        yield running
        gc.collect()  # what this package left open is an error here
    forget_what_dask_left_open()


def forget_what_dask_left_open() -> None:
    """Dask leaves connections to a lost worker, and to a closed cluster, to the collector."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def test_rows_are_those_of_a_local_run_and_a_second_run_asks_nothing(
    tmp_path: Path, cluster: Any
) -> None:
    folder = judged_suite(tmp_path / "golden", 60)
    far = DaskEngine(cluster.scheduler_address, shard=7)
    with ChatServer(reply=reply, latency_s=0.01) as server:
        endpoints = endpoints_of(server, max_concurrency=10)
        first = run(folder, endpoints, tmp_path, far)
        stats = server.stats()
        assert stats["requests"] == stats["distinct"] == 120
        assert stats["highest_concurrency"] <= 10
        here = run(folder, endpoints, tmp_path)
        again = run(folder, endpoints, tmp_path, far)
        assert server.stats()["requests"] == 120
        assert text(first) == text(here) == text(again)
        assert (first.manifest.calls["new"], first.manifest.calls["recorded"]) == (120, 0)
        assert (again.manifest.calls["new"], again.manifest.calls["recorded"]) == (0, 120)
        paid = run(folder, endpoints, tmp_path, far, fresh=True)
        assert paid.manifest.calls["new"] == 120
        assert server.stats()["requests"] == 240


def test_a_run_beside_it_on_the_same_store_pays_for_no_call_again(
    tmp_path: Path, cluster: Any
) -> None:
    suite = judged_suite(tmp_path / "suite", 40)
    with ChatServer(reply=reply, latency_s=0.1) as server, ThreadPoolExecutor(2) as threads:
        endpoints = endpoints_of(server, max_concurrency=8)
        engines = (run_here, DaskEngine(cluster.scheduler_address))
        runs = [threads.submit(run, suite, endpoints, tmp_path, engine) for engine in engines]
        here, there = (text(started.result()) for started in runs)
        assert (server.stats()["requests"], server.stats()["distinct"]) == (80, 80)
    assert here == there


def test_a_killed_worker_loses_no_reply_and_no_call_is_repeated(
    tmp_path: Path, cluster: Any
) -> None:
    folder = judged_suite(tmp_path / "golden", 160)
    with ChatServer(reply=reply, latency_s=0.03) as server:
        endpoints = endpoints_of(server, max_concurrency=8)

        def kill() -> None:
            while server.stats()["answered"] < 100:
                time.sleep(0.01)
            os.kill(next(iter(cluster.workers.values())).process.pid, signal.SIGKILL)

        killer = threading.Thread(target=kill, daemon=True)  # a failed run must not hold pytest
        killer.start()
        whole = run(folder, endpoints, tmp_path, DaskEngine(cluster.scheduler_address, shard=40))
        killer.join()
        stats = server.stats()
        # The victim had at most four calls sent, perhaps answered, and not yet in the store.
        assert stats["distinct"] == 320
        assert stats["repeats"] <= 4
        assert whole.errors == 0
        # A reply that was in the store and came a second time would be counted a second time.
        assert (whole.manifest.calls["new"], whole.manifest.calls["recorded"]) == (320, 0)
        here = run(folder, endpoints, tmp_path)
        assert server.stats()["requests"] == stats["requests"]
        assert text(here) == text(whole)
    forget_what_dask_left_open()


def test_a_budget_holds_over_all_workers(tmp_path: Path, cluster: Any) -> None:
    folder = write_suite(tmp_path / "golden", cases=40)
    price: dict[str, Any] = {"price_input_usd_per_mtok": 0.0, "price_output_usd_per_mtok": 1e4}
    with ChatServer(reply=lambda body: "x" * 200) as server:  # 50 tokens, so half a dollar
        endpoints = endpoints_of(server, max_concurrency=4, **price)
        far = DaskEngine(cluster.scheduler_address, shard=5)
        done = run(folder, endpoints, tmp_path, far, max_cost_usd=10.0)
        sent = server.stats()["requests"]
    assert 10 <= sent <= 20
    assert done.manifest.calls["usd"] == sent * 0.5
    assert done.errors == 40 - sent
    assert "budget" in done.manifest.stopped


def test_an_error_on_a_worker_ends_the_run_with_its_sentence(tmp_path: Path, cluster: Any) -> None:
    folder = write_suite(tmp_path / "golden", cases=60)
    refused = Answer(401, {"error": {"message": "bad key"}})
    with ChatServer(reply=lambda body: refused) as server:
        endpoints = endpoints_of(server, max_concurrency=4)
        far = DaskEngine(cluster.scheduler_address, shard=5)
        with pytest.raises(CallImpossible, match="bad key"):
            run(folder, endpoints, tmp_path, far)
        assert server.stats()["requests"] <= 8


def test_a_run_that_is_settled_early_sends_nothing_more(tmp_path: Path, cluster: Any) -> None:
    folder = write_suite(tmp_path / "golden", cases=80)
    rows: list[Row] = []

    def enough(row: Row) -> None:
        rows.append(row)
        if len(rows) == 12:
            raise Settled

    with ChatServer(latency_s=0.02) as server:
        far = DaskEngine(cluster.scheduler_address, shard=10)
        run(folder, endpoints_of(server, max_concurrency=4), tmp_path, far, on_row=enough)
        time.sleep(0.3)
        sent = server.stats()["requests"]
        time.sleep(0.3)
        assert server.stats()["requests"] == sent < 80


def test_keys_come_from_the_workers_environment_and_never_travel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_suite(tmp_path / "golden", cases=6)
    monkeypatch.setenv("SRV_API_KEY", "sk-planted-4711")
    seen: list[bytes] = []
    from distributed import Client as DaskClient

    sent = DaskClient.submit

    def spied(self: Any, function: Any, *args: Any, **more: Any) -> Any:
        seen.append(pickle.dumps(args))
        return sent(self, function, *args, **more)

    monkeypatch.setattr(DaskClient, "submit", spied)
    with ChatServer() as server:
        one = Endpoint("srv", server.base_url, api_key_env="SRV_API_KEY")
        endpoints = Endpoints({"srv": one}, environment={"OTHER_API_KEY": "sk-planted-4712"})
        engine = DaskEngine(workers=1)
        done = run(folder, endpoints, tmp_path / "out", engine)
        assert {h["authorization"] for h in server.headers} == {"Bearer sk-planted-4711"}
    assert done.errors == 0
    assert seen
    assert not any(b"sk-planted" in graph for graph in seen)


def test_what_cannot_run_elsewhere_is_refused_in_one_sentence(tmp_path: Path) -> None:
    folder = write_suite(tmp_path / "golden", cases=6)
    secret = Endpoints({"srv": Endpoint("srv", "http://me:hidden@127.0.0.1:9/v1")})
    with pytest.raises(ConfigError, match="base_url holds a password") as found:
        run(folder, secret, tmp_path, DaskEngine("tcp://127.0.0.1:9"))
    assert "hidden" not in str(found.value)
    with pytest.raises(ConfigError, match="is 'local' or 'dask'"):
        engine_of("spark")
    with pytest.raises(ConfigError, match="belongs to --engine dask"):
        engine_of("local", "tcp://127.0.0.1:8786")
    assert engine_of() is run_here
    assert engine_of("dask", "tcp://h:1") == DaskEngine("tcp://h:1")

"""The client: nothing is paid twice, nothing is lost, and it always ends (F02, F03, F05)."""

from __future__ import annotations

import asyncio
import gc
import json
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chat_server import Answer, ChatServer
from kill_run import MIXED, kill_run, start_child, stored

from evalkit.errors import CallFailed, EvalkitError
from evalkit.models.client import CallEvent, Client
from evalkit.models.endpoints import Endpoint, Endpoints
from evalkit.models.store import CallStore
from evalkit.records import Message, Reply, Request

CASES = Path(__file__).resolve().parents[1] / "failure_cases" / "cases.jsonl"
BY_ID = {c["id"]: c for c in map(json.loads, CASES.read_text("utf-8").splitlines())}


def request(i: int | str = 0, **settings: Any) -> Request:
    return Request("m/x", (Message("user", f"case {i}"),), **settings)


def endpoints(server: ChatServer, **settings: Any) -> Endpoints:
    return Endpoints({"m": Endpoint("m", server.base_url, **{"backoff_s": 0.01, **settings})})


async def ask_all(client: Client, requests: list[Request]) -> list[Any]:
    async with client:
        return await asyncio.gather(*map(client.ask, requests), return_exceptions=True)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[CallStore]:
    with CallStore(tmp_path / "calls.sqlite") as opened:
        yield opened


# -- nothing is paid twice ---------------------------------------------------------------------


def test_a_second_run_sends_nothing(store: CallStore) -> None:
    with ChatServer() as server:
        events: list[CallEvent] = []
        requests = [request(i) for i in range(20)]
        first = asyncio.run(ask_all(Client(endpoints(server), store=store), requests))
        again = Client(endpoints(server), store=store, on_event=events.append)
        second = asyncio.run(ask_all(again, requests))
        assert server.requests == 20
    assert [r.text for r in second] == [r.text for r in first]
    assert {e.kind for e in events} == {"recorded"}
    assert (again.spend.calls, again.spend.recorded) == (0, 20)


def test_the_same_call_asked_many_times_at_once_is_sent_once(store: CallStore) -> None:
    with ChatServer(latency_s=0.05) as server:
        client = Client(endpoints(server), store=store)
        replies = asyncio.run(ask_all(client, [request()] * 10))
        assert server.requests == 1
    assert {r.text for r in replies} == {"case 0"}


def test_repeats_never_collapse(store: CallStore) -> None:
    with ChatServer() as server:
        requests = [request(repeat=k) for k in range(3)]
        asyncio.run(ask_all(Client(endpoints(server), store=store), requests))
        assert server.requests == 3
    assert store.size().replies == 3


def test_fresh_draws_each_call_once_more_and_the_new_draw_is_served(store: CallStore) -> None:
    drawn = 0

    def reply(_: dict[str, Any]) -> str:
        nonlocal drawn
        drawn += 1
        return f"draw {drawn}"

    with ChatServer(reply=reply) as server:
        one = asyncio.run(ask_all(Client(endpoints(server), store=store), [request()]))

        async def anew() -> list[str]:
            async with Client(endpoints(server), store=store, fresh=True) as client:
                return [(await client.ask(request())).text for _ in range(2)]

        two = asyncio.run(anew())
        three = asyncio.run(ask_all(Client(endpoints(server), store=store), [request()]))
    assert [one[0].text, *two, three[0].text] == ["draw 1", "draw 2", "draw 2", "draw 2"]


def test_a_failure_is_never_stored(store: CallStore) -> None:
    with ChatServer(reply=lambda _: Answer(500, {})) as server:
        client = Client(endpoints(server, attempts=2), store=store)
        (failed,) = asyncio.run(ask_all(client, [request()]))
        assert server.requests == 2
    assert isinstance(failed, CallFailed)
    assert "2 attempts" in str(failed)
    assert "m/x" in str(failed)
    assert store.size().replies == 0


def test_a_waiter_asks_itself_when_the_one_it_waited_for_is_cancelled(store: CallStore) -> None:
    async def run(server: ChatServer) -> Reply:
        async with Client(endpoints(server), store=store) as client:
            leader = asyncio.create_task(client.ask(request()))
            await asyncio.sleep(0.02)
            follower = asyncio.create_task(client.ask(request()))
            await asyncio.sleep(0.02)
            leader.cancel()
            return await follower

    with ChatServer(latency_s=0.2) as server:
        assert asyncio.run(run(server)).text == "case 0"
        assert server.requests == 2


# -- every fault at once -----------------------------------------------------------------------


@pytest.mark.slow
def test_a_thousand_calls_at_twenty_percent_faults(store: CallStore) -> None:
    requests = [request(i) for i in range(1000)]
    kept: set[str] = set()
    again: list[str] = []

    def reply(body: dict[str, Any]) -> str:
        text = body["messages"][-1]["content"]
        if text in kept:  # its reply is in the store, and it is asked for again
            again.append(text)
        return text

    async def run(server: ChatServer) -> list[Any]:
        settings = {"timeout_s": 0.5, "attempts": 6, "max_concurrency": 64}
        client = Client(endpoints(server, **settings), store=store, on_event=told)
        texts.update({client.key_of(r): r.messages[0].content for r in requests})
        return await ask_all(client, requests)

    def told(event: CallEvent) -> None:
        if event.kind == "reply":
            kept.add(texts[event.key])

    texts: dict[str, str] = {}
    with ChatServer(faults=MIXED, seed=11, retry_after_s=0.02, drip_s=0.05, reply=reply) as server:
        outcomes = asyncio.run(run(server))
        seen = server.stats()
    replies = [o for o in outcomes if isinstance(o, Reply)]
    failed = [o for o in outcomes if isinstance(o, CallFailed)]
    assert len(replies) + len(failed) == 1000
    assert len(replies) >= 990
    assert all(r.text == f"case {i}" for i, r in enumerate(outcomes) if isinstance(r, Reply))
    assert all("attempts" in str(f) for f in failed)
    assert store.size().replies == len(replies)
    assert not again
    assert kept == {r.text for r in replies}
    assert set(MIXED) <= set(seen["faults"])
    faulty = Counter(seen["faults"])
    real = sum(n for kind, n in faulty.items() if kind not in ("gzip", "chunked", "stream"))
    assert seen["requests"] >= 1000 - len(failed) + real


# -- kill, interrupt, hang ---------------------------------------------------------------------


@pytest.mark.slow
def test_killed_again_and_again_nothing_stored_is_asked_again(tmp_path: Path) -> None:
    got = kill_run(tmp_path, n=150, kills=4, seed=3)
    assert got["replies"] == 150
    assert got["lives"] >= 5
    assert got["stored calls asked again"] == 0
    assert got["paid twice"] <= got["places at kills"]
    assert got["integrity"] == "ok"


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_f02_what_arrived_is_kept_and_only_the_rest_is_asked_again(
    tmp_path: Path, how: signal.Signals
) -> None:
    given = BY_ID["F02"]["expected"]["value"]
    hold = threading.Event()
    answered = 0

    def reply(body: dict[str, Any]) -> str | Answer:
        nonlocal answered
        answered += 1
        text = body["messages"][-1]["content"]
        from chat_server import openai_body

        delay = 60.0 if answered > 6 and not hold.is_set() else 0.0
        return Answer(200, openai_body(body, text), delay_s=delay)

    path = tmp_path / "calls.sqlite"
    with ChatServer(reply=reply) as server:
        process = start_child(server.base_url, path, 10, 10)
        while len(stored(path)) < 6:
            time.sleep(0.01)
        process.send_signal(how)
        assert process.wait(30) != 0  # the calls under way would have taken a minute
        assert process.stdout
        process.stdout.close()
        assert len(stored(path)) == given["rows_after_interrupt"]
        hold.set()
        before = server.requests
        process = start_child(server.base_url, path, 10, 10)
        assert process.wait() == 0
        assert process.stdout
        process.stdout.close()
        assert server.requests - before == given["calls_second_run"]
    assert len(stored(path)) == given["rows_final"]


def test_cancelling_ends_at_once_and_keeps_what_arrived(store: CallStore) -> None:
    def reply(body: dict[str, Any]) -> Answer:
        from chat_server import openai_body

        text = body["messages"][-1]["content"]
        late = int(text.split()[1]) >= 5
        return Answer(200, openai_body(body, text), delay_s=60.0 if late else 0.0)

    async def run(server: ChatServer) -> float:
        async with Client(endpoints(server), store=store) as client:
            tasks = [asyncio.create_task(client.ask(request(i))) for i in range(10)]
            await asyncio.wait(tasks, timeout=5, return_when=asyncio.FIRST_COMPLETED)
            while sum(t.done() for t in tasks) < 5:
                await asyncio.sleep(0.01)
            start = time.monotonic()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return time.monotonic() - start

    with ChatServer(reply=reply) as server:
        assert asyncio.run(run(server)) < 2
    assert store.size().replies == 5


def test_f05_hangs_and_drips_end_after_limit_times_attempts(store: CallStore) -> None:
    def reply(body: dict[str, Any]) -> str | Answer:
        text = body["messages"][-1]["content"]
        form = {"case 3": "hang", "case 11": "drip"}.get(text, "")
        return Answer(form=form) if form else text

    async def run(server: ChatServer) -> list[Any]:
        settings = {"timeout_s": 0.3, "attempts": 2}
        requests = [request(i) for i in range(20)]
        return await ask_all(Client(endpoints(server, **settings), store=store), requests)

    with ChatServer(reply=reply, drip_s=0.05) as server:
        outcomes = asyncio.run(run(server))
        assert server.requests == 18 + 2 * 2
    failed = [i for i, o in enumerate(outcomes) if isinstance(o, CallFailed)]
    assert failed == [3, 11]
    assert "no whole reply within 0.3 s" in str(outcomes[11])
    assert store.size().replies == 18


def test_a_deadline_for_the_whole_run(store: CallStore) -> None:
    def reply(body: dict[str, Any]) -> str | Answer:
        text = body["messages"][-1]["content"]
        return Answer(form="hang") if text == "case 1" else text

    async def run(server: ChatServer) -> list[Any]:
        async with Client(endpoints(server), store=store, deadline_s=0.4) as client:
            two = (client.ask(request(0)), client.ask(request(1)))
            outcomes = await asyncio.gather(*two, return_exceptions=True)
            return [
                *outcomes,
                *await asyncio.gather(client.ask(request(2)), return_exceptions=True),
            ]

    with ChatServer(reply=reply) as server:
        outcomes = asyncio.run(run(server))
        assert server.requests == 2
    assert outcomes[0].text == "case 0"
    assert isinstance(outcomes[1], CallFailed)
    assert isinstance(outcomes[2], CallFailed)
    assert "deadline" in str(outcomes[2])


# -- notebooks ---------------------------------------------------------------------------------


def test_f03_twice_in_a_row_inside_a_running_loop_and_in_loops_of_ones_own(
    store: CallStore,
) -> None:
    async def cell(server: ChatServer, start: int) -> list[Any]:
        requests = [request(i) for i in range(start, start + 5)]
        return await ask_all(Client(endpoints(server), store=store), requests)

    async def notebook(server: ChatServer) -> None:
        for start in (0, 5):
            assert len(await cell(server, start)) == 5

    with ChatServer() as server:
        asyncio.run(notebook(server))
        for start in (10, 15):
            asyncio.run(cell(server, start))
    assert store.size().replies == 20


def test_no_task_and_no_socket_is_left_behind(store: CallStore) -> None:
    async def run(server: ChatServer) -> set[Any]:
        await ask_all(Client(endpoints(server), store=store), [request(i) for i in range(10)])
        await asyncio.sleep(0.05)
        return asyncio.all_tasks() - {asyncio.current_task()}

    with ChatServer() as server:
        assert asyncio.run(run(server)) == set()
        deadline = time.monotonic() + 5
        while server.open_connections and time.monotonic() < deadline:
            time.sleep(0.01)
        assert server.open_connections == 0
    gc.collect()  # an unclosed socket would be a ResourceWarning, and warnings are errors


def test_importing_the_client_loads_no_network_library_and_patches_no_loop() -> None:
    code = (
        "import asyncio, sys; run = asyncio.run; loop = asyncio.new_event_loop\n"
        "import evalkit.models.client\n"
        "heavy = {'httpx', 'aiohttp', 'stamina', 'pydantic', 'nest_asyncio'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert asyncio.run is run and asyncio.new_event_loop is loop\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_error_of_a_call_is_one_of_ours_and_cuts_its_cause(store: CallStore) -> None:
    for form in ("reset", "drop", "truncate", "empty", "error200"):
        with ChatServer(faults={form: 1.0}) as server:
            client = Client(endpoints(server, attempts=1), store=store)
            (error,) = asyncio.run(ask_all(client, [request(form)]))
        assert isinstance(error, EvalkitError), form
        assert error.__cause__ is None
        assert error.__suppress_context__
        assert "\n" not in str(error)

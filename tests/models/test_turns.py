"""Clients on one store, in one process or in several, pay for each call once."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from chat_server import ChatServer
from mini_suite import endpoints_of

from evalkit.errors import CallFailed
from evalkit.models.client import Client
from evalkit.models.store import CallStore
from evalkit.models.turns import Turns
from evalkit.records import Message, Request

ASK = """
import asyncio, sys
from evalkit.models.client import Client
from evalkit.models.endpoints import Endpoint, Endpoints
from evalkit.models.store import CallStore
from evalkit.records import Message, Request

async def main(url, path):
    with CallStore(path) as store:
        async with Client(Endpoints({"srv": Endpoint("srv", url)}), store=store) as client:
            asked = [Request("srv/m", (Message("user", f"word{i}"),)) for i in range(60)]
            replies = await asyncio.gather(*(client.ask(r) for r in asked))
            print(client.spend.calls, *(r.text for r in replies))

asyncio.run(main(*sys.argv[1:]))
"""


def test_clients_that_share_a_store_send_no_call_twice(tmp_path: Path) -> None:
    requests = [Request("srv/m", (Message("user", f"word{i}"),)) for i in range(20)]

    async def ask_all(server: ChatServer) -> list[str]:
        with CallStore(tmp_path / "calls.sqlite") as store:
            async with Client(endpoints_of(server), store=store) as client:
                replies = await asyncio.gather(*(client.ask(r) for r in requests))
                return [reply.text for reply in replies]

    async def several(server: ChatServer) -> list[list[str]]:
        return await asyncio.gather(*(ask_all(server) for _ in range(3)))

    with ChatServer(latency_s=0.05) as server:
        found = asyncio.run(several(server))
        assert (server.stats()["requests"], server.stats()["distinct"]) == (20, 20)
    assert found == [[f"word{i}" for i in range(20)]] * 3


def test_two_clients_of_one_open_store_pay_for_each_call_once(tmp_path: Path) -> None:
    """A lock of an open file does not tell its clients apart."""
    requests = [Request("srv/m", (Message("user", f"word{i}"),)) for i in range(8)]

    async def ask(server: ChatServer) -> list[int]:
        with CallStore(tmp_path / "calls.sqlite") as store:
            clients = [Client(endpoints_of(server), store=store) for _ in range(2)]
            replies = await asyncio.gather(*(c.ask(r) for c in clients for r in requests))
            assert [r.text for r in replies] == [f"word{i}" for i in range(8)] * 2
            for client in clients:
                await client.aclose()
            return [client.spend.calls for client in clients]

    with ChatServer(latency_s=0.1) as server:
        assert sum(asyncio.run(ask(server))) == 8, "each call is on one bill"
        assert server.requests == 8


def test_a_cancelled_wait_gives_back_no_turn_of_another(tmp_path: Path) -> None:
    turns = Turns(tmp_path / "calls.turns")

    async def wait() -> None:
        assert await turns.take("ab" * 32)
        waiting = asyncio.create_task(turns.take("ab" * 32))
        await asyncio.sleep(0.1)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        other = asyncio.create_task(turns.take("ab" * 32))
        await asyncio.sleep(0.1)
        assert not other.done(), "two have the same turn"
        turns.give_back("ab" * 32)
        assert await asyncio.wait_for(other, 30)

    asyncio.run(wait())
    turns.close()


def test_a_wait_for_a_turn_ends_with_the_runs_deadline(tmp_path: Path) -> None:
    async def ask(server: ChatServer) -> None:
        with CallStore(tmp_path / "calls.sqlite") as mine, CallStore(mine.path) as other:
            async with Client(endpoints_of(server), store=mine, deadline_s=0.2) as client:
                asked = Request("srv/m", (Message("user", "word"),))
                assert await other.turns.take(client.key_of(asked)), "as a process that was stopped"
                with pytest.raises(CallFailed, match=r"the run's deadline of 0\.2 s has passed"):
                    await client.ask(asked)

    with ChatServer() as server:
        asyncio.run(ask(server))
        assert server.requests == 0


def test_stores_that_nobody_closes_keep_no_file_open(tmp_path: Path) -> None:
    async def take() -> int:
        assert await Turns(tmp_path / "calls.turns").take("ab" * 32)
        with (tmp_path / "next").open("w") as file:
            return file.fileno()

    numbers = {asyncio.run(take()) for _ in range(20)}
    assert len(numbers) == 1, "the next file gets the number that was freed"


def test_processes_that_start_at_the_same_moment_pay_for_each_call_once(tmp_path: Path) -> None:
    with ChatServer(latency_s=0.1) as server:
        command = [sys.executable, "-c", ASK, server.base_url, str(tmp_path / "calls.sqlite")]
        jobs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
        said = [job.communicate(timeout=120)[0].split() for job in jobs]
        assert [job.returncode for job in jobs] == [0, 0, 0]
        assert server.requests == 60
    assert sum(int(words[0]) for words in said) == 60, "each call is on one bill"
    assert all(words[1:] == [f"word{i}" for i in range(60)] for words in said)


def test_a_turn_is_given_back_when_its_owner_is_killed(tmp_path: Path) -> None:
    hold = (
        "import asyncio, sys, time\nfrom pathlib import Path\n"
        "from evalkit.models.turns import Turns\nturns = Turns(Path(sys.argv[1]))\n"
        "assert asyncio.run(turns.take('ab' * 32))\nprint('held', flush=True)\ntime.sleep(60)\n"
    )
    path = tmp_path / "calls.turns"
    command = [sys.executable, "-c", hold, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "held\n"
        turns = Turns(path)

        async def wait() -> bool:
            waiting = asyncio.create_task(turns.take("ab" * 32))
            assert await turns.take("cd" * 32), "another call's turn is free"
            await asyncio.sleep(0.1)
            assert not waiting.done(), "two processes have the same turn"
            owner.kill()
            return await asyncio.wait_for(waiting, 30)

        assert asyncio.run(wait())
        turns.close()

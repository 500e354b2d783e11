"""Clients on one store, as several processes have them, pay for each call once."""

from __future__ import annotations

import asyncio
from pathlib import Path

from chat_server import ChatServer
from mini_suite import endpoints_of

from evalkit.models.shared import SharedClient
from evalkit.models.store import CallStore
from evalkit.records import Message, Request


def test_clients_that_share_a_store_send_no_call_twice(tmp_path: Path) -> None:
    requests = [Request("srv/m", (Message("user", f"word{i}"),)) for i in range(20)]

    async def ask_all(server: ChatServer) -> list[str]:
        with CallStore(tmp_path / "calls.sqlite") as store:
            endpoints, locks = endpoints_of(server), tmp_path / "locks"
            async with SharedClient(endpoints, locks=locks, store=store) as client:
                replies = await asyncio.gather(*(client.ask(r) for r in requests))
                return [reply.text for reply in replies]

    async def several(server: ChatServer) -> list[list[str]]:
        return await asyncio.gather(*(ask_all(server) for _ in range(3)))

    with ChatServer(latency_s=0.05) as server:
        found = asyncio.run(several(server))
        assert (server.stats()["requests"], server.stats()["distinct"]) == (20, 20)
    assert found == [[f"word{i}" for i in range(20)]] * 3

"""Limits: exactly the bound, adapting under pressure, and no slot ever lost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from chat_server import Answer, ChatServer
from hypothesis import given
from hypothesis import strategies as st

from evalkit.models.client import Client
from evalkit.models.endpoints import Endpoint, Endpoints
from evalkit.models.limits import AdaptiveLimit, EndpointLimiter
from evalkit.records import Message, Request


def ask_all(endpoint: Endpoint, n: int, **settings: Any) -> list[Any]:
    async def run() -> list[Any]:
        async with Client(Endpoints({"m": endpoint})) as client:
            requests = (Request("m/x", (Message("user", f"{i}"),), **settings) for i in range(n))
            return await asyncio.gather(*map(client.ask, requests), return_exceptions=True)

    return asyncio.run(run())


def test_the_server_sees_exactly_the_bound_and_nearly_always() -> None:
    with ChatServer(latency_s=0.05) as server:
        ask_all(Endpoint("m", server.base_url, max_concurrency=8), 200)
        seen = server.stats()
    assert seen["highest_concurrency"] == 8
    assert seen["mean_concurrency"] >= 4  # 0.9 of it on a quiet machine: tests/bench


def test_it_starts_at_the_bound_halves_once_a_burst_and_grows_back() -> None:
    async def run() -> None:
        limit = AdaptiveLimit(32)
        tickets = [await limit.acquire() for _ in range(32)]
        for ticket in tickets:
            limit.release(ticket, pressed=True)
        assert limit.limit == 16  # one burst is one piece of news
        limit.release(await limit.acquire(), pressed=True)
        assert limit.limit == 8
        for _ in range(32 * 32):
            limit.release(await limit.acquire(), good=True)
        assert limit.limit == 32
        for _ in range(20):
            limit.release(await limit.acquire(), pressed=True)
        assert limit.limit == 1

    asyncio.run(run())


@given(
    st.integers(1, 5),
    st.lists(st.sampled_from(["good", "pressed", "bad", "cancel", "start"]), max_size=60),
)
def test_whatever_happens_no_place_is_lost_or_made(bound: int, steps: list[str]) -> None:
    async def run() -> None:
        limit = AdaptiveLimit(bound)
        tasks: list[asyncio.Task[int]] = []
        held: list[int] = []
        for step in steps:
            if step == "start":
                tasks.append(asyncio.create_task(limit.acquire()))
            elif step == "cancel" and tasks:
                tasks.pop(len(tasks) // 2).cancel()
            elif held:
                limit.release(held.pop(), good=step == "good", pressed=step == "pressed")
            if len(steps) % 2:  # now and then everything happens within one turn of the loop
                await asyncio.sleep(0)
            for task in [t for t in tasks if t.done()]:
                tasks.remove(task)
                held.append(task.result())
            assert len(held) <= limit.in_use <= bound
        while tasks or held:
            while held:
                limit.release(held.pop())
            await asyncio.sleep(0)
            for task in [t for t in tasks if t.done()]:
                tasks.remove(task)
                held.append(task.result())
        await asyncio.sleep(0)
        assert limit.in_use == 0

    asyncio.run(run())


def test_a_429_lowers_the_concurrency_the_server_sees() -> None:
    busy = 0

    def reply(_: dict[str, Any]) -> str | Answer:
        nonlocal busy
        busy += 1
        return Answer(429, {}, {"retry-after": "0.05"}) if busy <= 16 else "fine"

    with ChatServer(latency_s=0.02, reply=reply) as server:
        endpoint = Endpoint("m", server.base_url, max_concurrency=16, backoff_s=0.01)
        replies = ask_all(endpoint, 16)
        server_saw = server.stats()
    assert all(r.text == "fine" for r in replies)
    assert server_saw["requests"] == 32


def test_requests_per_minute() -> None:
    async def run() -> float:
        limiter = EndpointLimiter(Endpoint("m", requests_per_minute=1200))  # 20 a second
        loop = asyncio.get_running_loop()
        start = loop.time()
        for _ in range(30):
            await limiter.wait_for_rate(0)
        return loop.time() - start

    assert asyncio.run(run()) >= 0.45  # twenty at once, then one each 50 ms


def test_tokens_per_minute_also_for_a_call_larger_than_a_second() -> None:
    async def run() -> float:
        limiter = EndpointLimiter(Endpoint("m", tokens_per_minute=60_000))  # 1,000 a second
        loop = asyncio.get_running_loop()
        start = loop.time()
        await limiter.wait_for_rate(1400)
        return loop.time() - start

    assert asyncio.run(run()) >= 0.35


@pytest.mark.parametrize("limit", [None, 0])
def test_no_stated_limit_costs_nothing(limit: int | None) -> None:
    assert not EndpointLimiter(Endpoint("m", requests_per_minute=limit)).rated

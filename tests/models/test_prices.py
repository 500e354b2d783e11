"""Money: said before a run, stopped in time, reported after; unknown is unknown."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer, openai_body

from evalkit.errors import BudgetReached, ConfigError
from evalkit.models.client import Client
from evalkit.models.endpoints import Endpoint, Endpoints
from evalkit.models.prices import prompt_tokens
from evalkit.models.store import CallStore
from evalkit.records import Message, Request

PRICES: dict[str, Any] = {
    "price_input_usd_per_mtok": 1.0,
    "price_output_usd_per_mtok": 10.0,
    "price_date": "2026-11-01",
}


def request(i: int, model: str = "m/x", max_tokens: int | None = 100) -> Request:
    return Request(model, (Message("user", f"{i:03}" + "x" * 297),), max_tokens=max_tokens)


def test_an_estimate_counts_new_and_recorded_and_each_call_once(tmp_path: Path) -> None:
    async def run(server: ChatServer, store: CallStore) -> None:
        endpoints = Endpoints({"m": Endpoint("m", server.base_url, **PRICES)})
        async with Client(endpoints, store=store) as client:
            await client.ask(request(0))
            requests = [request(i) for i in range(3)]
            got = client.estimate([*requests, *requests])
            assert (got.new, got.recorded) == (2, 1)
            assert got.prompt_tokens == 2 * prompt_tokens(request(0)) == 2 * 104
            assert got.completion_tokens == 200
            assert got.cost_usd == pytest.approx((208 * 1 + 200 * 10) / 1e6)
            assert got.price_dates == ("2026-11-01",)
            assert "2026-11-01" in str(got)
            assert client.estimate(requests[:1]).cost_usd == 0
            assert "nothing to pay" in str(client.estimate(requests[:1]))
        async with Client(endpoints, store=store, fresh=True) as client:
            assert client.estimate(requests).new == 3

    with ChatServer() as server, CallStore(tmp_path / "c.sqlite") as store:
        asyncio.run(run(server, store))
        assert server.requests == 1


def test_unknown_prices_are_said_to_be_unknown() -> None:
    endpoints = Endpoints({"m": Endpoint("m", "http://127.0.0.1:9/v1")})
    got = Client(endpoints).estimate([request(0), request(1, max_tokens=None)])
    assert got.cost_usd is None
    assert got.unpriced == ("m",)
    assert got.completion_tokens >= 4096  # the one without a bound
    assert "price unknown for m" in str(got)


def test_spend_is_reported_by_model_and_purpose() -> None:
    async def run(server: ChatServer) -> None:
        endpoints = Endpoints(
            {
                "m": Endpoint("m", server.base_url, **PRICES),
                "free": Endpoint("free", server.base_url),
            }
        )
        async with Client(endpoints) as client:
            await client.ask(request(0))
            await client.ask(request(1), purpose="judge")
            await client.ask(request(2), purpose="judge")
            task, judge = client.spend.lines["m/x", "task"], client.spend.lines["m/x", "judge"]
            assert (task.calls, judge.calls) == (1, 2)
            assert judge.usd == pytest.approx(2 * task.usd)
            assert client.spend.usd == pytest.approx(3 * (75 * 1 + 75 * 10) / 1e6)
            await client.ask(request(3, "free/x"))
            assert client.spend.usd is None  # one endpoint states no price

    with ChatServer() as server:
        asyncio.run(run(server))


def test_a_reply_without_usage_has_an_unknown_cost() -> None:
    def reply(body: dict[str, Any]) -> dict[str, Any]:
        return {**openai_body(body, "x"), "usage": None}

    async def run(server: ChatServer) -> None:
        endpoints = Endpoints({"m": Endpoint("m", server.base_url, **PRICES)})
        async with Client(endpoints) as client:
            await client.ask(request(0))
            assert client.spend.usd is None
            assert client.spend.lines["m/x", "task"].cost_unknown == 1

    with ChatServer(reply=reply) as server:
        asyncio.run(run(server))


@pytest.mark.parametrize("at_once", [1, 10])
def test_the_budget_stops_before_the_call_that_would_cross_it(tmp_path: Path, at_once: int) -> None:
    limit = 5.5 * (75 * 1 + 75 * 10) / 1e6  # some five calls as they turn out

    async def run(server: ChatServer, store: CallStore) -> list[Any]:
        endpoints = Endpoints({"m": Endpoint("m", server.base_url, **PRICES)})
        async with Client(endpoints, store=store, max_cost_usd=limit) as client:
            outcomes: list[Any] = []
            for start in range(0, 20, at_once):
                some = (client.ask(request(i)) for i in range(start, start + at_once))
                outcomes += await asyncio.gather(*some, return_exceptions=True)
            assert client.spend.usd is not None
            assert client.spend.usd <= limit
        return outcomes

    with ChatServer() as server, CallStore(tmp_path / "c.sqlite") as store:
        outcomes = asyncio.run(run(server, store))
        stopped = [o for o in outcomes if isinstance(o, BudgetReached)]
        assert 1 <= server.requests <= 5
        assert len(stopped) == 20 - server.requests
        assert store.size().replies == server.requests
    assert "It was not sent" in str(stopped[0])


def test_a_budget_that_nobody_can_keep_is_refused() -> None:
    async def run(endpoint: Endpoint, wanted: Request) -> None:
        async with Client(Endpoints({"m": endpoint}), max_cost_usd=1.0) as client:
            await client.ask(wanted)

    with ChatServer() as server:
        with pytest.raises(ConfigError, match="states no prices"):
            asyncio.run(run(Endpoint("m", server.base_url), request(0)))
        with pytest.raises(ConfigError, match="max_tokens"):
            asyncio.run(run(Endpoint("m", server.base_url, **PRICES), request(0, max_tokens=None)))
        assert server.requests == 0

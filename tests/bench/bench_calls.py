"""What a call costs beside the bare httpx + httpx-aiohttp loop of the same run.

    python tests/bench/bench_calls.py [repeats]

Rows for `make bench`: each names a target as a ratio to the floor, which runs in turn with evalkit
in this process against the loopback server in another. Medians of the repeats.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from chat_server import ChatServer

from evalkit.models.client import Client
from evalkit.models.endpoints import Endpoint, Endpoints
from evalkit.models.store import CallStore
from evalkit.records import Message, Request

PROMPT = (
    "Case {i}. You are looking up stock codes in a catalogue of small mechanical parts. The part "
    "is listed under shelf {a}, row {b}, and was last counted in week {c}. What is the code of "
    "item {i}? Answer with the code only."
)


def requests(n: int) -> Iterator[Request]:
    """`n` different calls of some 250 characters each."""
    for i in range(n):
        text = PROMPT.format(i=i, a=i % 97, b=i % 31, c=i % 52)
        yield Request("bench/mock", (Message("user", text),), temperature=0.0, max_tokens=50)


async def pool(items: Iterable[Request], work: Callable[[Request], Awaitable[Any]], n: int) -> None:
    """`n` workers over one iterator."""
    items = iter(items)

    async def worker() -> None:
        for item in items:
            await work(item)

    await asyncio.gather(*(worker() for _ in range(n)))


@asynccontextmanager
async def floor(base_url: str, n: int) -> AsyncIterator[Callable[[Request], Awaitable[str]]]:
    """The bare loop's call: httpx over httpx-aiohttp, JSON both ways, nothing else."""
    import httpx
    from httpx_aiohttp import AiohttpTransport

    limits = httpx.Limits(max_connections=n, max_keepalive_connections=n)
    async with httpx.AsyncClient(
        transport=AiohttpTransport(limits=limits),
        timeout=60,
        trust_env=False,
        headers={"Authorization": "Bearer x"},
    ) as http:

        async def ask(request: Request) -> str:
            body = {
                "model": "mock",
                "messages": [{"role": m.role, "content": m.content} for m in request.messages],
                "temperature": 0,
            }
            reply = await http.post(f"{base_url}/chat/completions", json=body)
            reply.raise_for_status()
            return reply.json()["choices"][0]["message"]["content"]

        yield ask


@asynccontextmanager
async def ours(
    base_url: str, n: int, folder: Path
) -> AsyncIterator[Callable[[Request], Awaitable[Any]]]:
    """The client with its store on."""
    endpoints = Endpoints({"bench": Endpoint("bench", base_url, max_concurrency=n)})
    with CallStore(folder / "calls.sqlite") as store:
        async with Client(endpoints, store=store) as client:
            yield client.ask


async def timed(opened: Any, calls: int, workers: int, server: ChatServer) -> tuple[float, float]:
    """Wall and CPU seconds of `calls` calls, without the imports and the first connection."""
    async with opened as ask:
        await ask(Request("bench/mock", (Message("user", "warm up"),)))
        server.reset()
        wall, cpu = time.perf_counter(), time.process_time()
        await pool(requests(calls), ask, workers)
        return time.perf_counter() - wall, time.process_time() - cpu


def beside_the_floor(latency_s: float, concurrency: int, repeats: int, calls: int = 1000) -> Any:
    """Medians of wall and CPU for floor and evalkit, in turn; what the server saw of evalkit."""
    rows: dict[str, list[tuple[float, float]]] = {"floor": [], "ours": []}
    seen: list[dict[str, Any]] = []
    beside: list[float] = []
    for _ in range(repeats):
        with ChatServer(latency_s=latency_s, process=True) as server:
            way: Any = floor(server.base_url, concurrency)
            rows["floor"].append(asyncio.run(timed(way, calls, concurrency, server)))
            beside.append(server.stats()["mean_concurrency"])
        with ChatServer(latency_s=latency_s, process=True) as server:
            with tempfile.TemporaryDirectory() as folder:
                way = ours(server.base_url, concurrency, Path(folder))
                # twice as many workers as places: the limiter, not the pool, is the bound
                rows["ours"].append(asyncio.run(timed(way, calls, 2 * concurrency, server)))
            seen.append(server.stats())
    median = {k: [statistics.median(x[i] for x in v) for i in (0, 1)] for k, v in rows.items()}
    return median, seen, statistics.median(beside)


def replay_seconds(n: int = 2000) -> tuple[float, int]:
    """Seconds for asking `n` calls again from a full store, and the calls that were sent."""

    async def run(base_url: str, folder: Path) -> float:
        async with ours(base_url, 32, folder) as ask:
            start = time.perf_counter()
            await pool(requests(n), ask, 32)
            return time.perf_counter() - start

    with ChatServer(process=True) as server, tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(server.base_url, Path(folder)))
        before = server.stats()["requests"]
        again = asyncio.run(run(server.base_url, Path(folder)))
        return again, server.stats()["requests"] - before


def memory_per_call(calls: int = 4000) -> float:
    """Bytes that stay allocated for each further call, store on."""

    async def run(base_url: str, folder: Path) -> float:
        async with ours(base_url, 32, folder) as ask:
            await pool(requests(500), ask, 32)
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0]
            await pool(list(requests(500 + calls))[500:], ask, 32)
            after = tracemalloc.get_traced_memory()[0]
            tracemalloc.stop()
            return (after - before) / calls

    with ChatServer(process=True) as server, tempfile.TemporaryDirectory() as folder:
        return asyncio.run(run(server.base_url, Path(folder)))


def row(what: str, value: float, target: float | None, unit: str, **more: Any) -> dict[str, Any]:
    """One line of the table; `met` is None where there is no target."""
    met = None if target is None else value <= target
    rounded = {k: round(v, 4) if isinstance(v, float) else v for k, v in more.items()}
    return {
        "what": what,
        "value": round(value, 4),
        "target": target,
        "unit": unit,
        "met": met,
        **rounded,
    }


def short_of_the_bound(bare: float, concurrency: int, latency_s: float = 0.05) -> str:
    """Why the mean of calls at a time stays below the bound: the bare loop's stays below it too."""
    said = f"the bare loop itself reaches {bare:.1f} of {concurrency}: connections open in the "
    said += "first round and the last is not full"
    a_call = 1000 * latency_s / concurrency
    full = f"; at {a_call:.2f} ms a call its one core is full"
    return said + full if a_call < 0.5 else said


def main(repeats: int = 3) -> list[dict[str, Any]]:
    """Measure everything; the rows of the table."""
    rows: list[dict[str, Any]] = []
    for concurrency, target in ((32, 1.10), (128, 1.15)):
        median, seen, bare = beside_the_floor(0.05, concurrency, repeats)
        (wall, cpu), (floor_wall, floor_cpu) = median["ours"], median["floor"]
        ideal = 1000 * 0.05 / concurrency
        rows.append(
            row(
                f"1,000 calls of 50 ms at {concurrency}, store on / bare loop",
                wall / floor_wall,
                target,
                "x",
                seconds=wall,
                floor_seconds=floor_wall,
                ideal_seconds=ideal,
                of_ideal=wall / ideal,
                floor_of_ideal=floor_wall / ideal,
                cpu_ms=cpu,
                floor_cpu_ms=floor_cpu,
            )
        )
        highest = max(s["highest_concurrency"] for s in seen)
        mean = statistics.median(s["mean_concurrency"] for s in seen)
        rows.append(
            row(
                f"concurrency the server saw at {concurrency}: 1 - mean / bound",
                1 - mean / concurrency,
                0.1,
                "",
                highest=highest,
                mean=mean,
                why=short_of_the_bound(bare, concurrency),
            )
        )
    median, *_ = beside_the_floor(0.0, 32, repeats)
    (wall, cpu), (floor_wall, floor_cpu) = median["ours"], median["floor"]
    rows.append(
        row(
            "CPU a call at 0 ms, store on / bare loop",
            cpu / floor_cpu,
            1.5,
            "x",
            cpu_ms=cpu,
            floor_cpu_ms=floor_cpu,
            seconds=wall,
            floor_seconds=floor_wall,
        )
    )
    seconds, sent = replay_seconds()
    rows.append(row("2,000 replies again from a full store", seconds, 0.4, "s", calls=sent))
    rows.append(row("memory kept for each further call", memory_per_call(), 4096, "bytes"))
    return rows


if __name__ == "__main__":
    for line in main(int(sys.argv[1]) if len(sys.argv) > 1 else 3):
        print(json.dumps(line))

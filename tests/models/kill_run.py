"""Kill a run again and again (`kill -9`), and count what was lost or paid twice.

    python tests/models/kill_run.py [kills]         the full run: 1,000 calls, 20 kills, 20 % faults

`child` asks calls with the client and the store as a run does; `kill_run` starts it, kills it at
random moments and looks at what the server counted.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from chat_server import ChatServer

from evalkit.errors import CallFailed
from evalkit.models.client import Client
from evalkit.models.endpoints import Endpoint, Endpoints
from evalkit.models.store import CallStore
from evalkit.records import Message, Request

MIXED = {  # 20 % in all
    **dict.fromkeys(("429", "429ms", "429date", "429bare", "500", "503", "529", "503html"), 0.015),
    **dict.fromkeys(("reset", "drop", "truncate", "error200", "empty"), 0.013),
    **dict.fromkeys(("drip", "hang"), 0.0075),
    **dict.fromkeys(("gzip", "chunked", "stream"), 0.03),  # not faults: other forms of good replies
}


def requests(n: int) -> list[Request]:
    """`n` different calls; the server answers each with its own last message."""
    return [Request("m/x", (Message("user", f"case {i}"),), max_tokens=20) for i in range(n)]


async def child(base_url: str, store: str, n: int, concurrency: int) -> int:
    """Ask everything once; a failed call is left for the next life. Returns how many failed."""
    failed, told = 0, False
    endpoint = Endpoint(
        "m", base_url, max_concurrency=concurrency, timeout_s=0.5, backoff_s=0.02, attempts=6
    )

    async def worker(todo: Iterator[Request]) -> None:
        nonlocal failed, told
        for request in todo:
            try:
                reply = await client.ask(request)
                if not told and client.spend.calls:
                    told = True
                    print("a first reply", flush=True)
                assert reply.text == request.messages[0].content
            except CallFailed as error:
                failed += 1
                print(error, file=sys.stderr)

    with CallStore(store) as calls:
        async with Client(Endpoints({"m": endpoint}), store=calls) as client:
            todo = iter(requests(n))
            await asyncio.gather(*(worker(todo) for _ in range(2 * concurrency)))
    return failed


def start_child(base_url: str, store: Path, n: int, concurrency: int) -> subprocess.Popen[bytes]:
    """Start `child` in a process of its own, and wait for its first reply."""
    arguments = json.dumps([base_url, str(store), n, concurrency])
    process = subprocess.Popen(
        [sys.executable, __file__, "child", arguments], stdout=subprocess.PIPE
    )
    assert process.stdout
    process.stdout.readline()
    return process


def stored(path: Path) -> set[str]:
    """The calls in a store, read without the package: texts of the replies."""
    with suppress(sqlite3.OperationalError), sqlite3.connect(path) as db:
        rows = db.execute("SELECT reply FROM replies").fetchall()
        return {json.loads(r)["text"] for (r,) in rows}
    return set()


def kill_run(folder: Path, *, n: int, kills: int, seed: int = 0) -> dict[str, Any]:
    """Run until every call has its reply; kill `kills` lives at random moments on the way."""
    rng = random.Random(seed)
    path, concurrency = folder / "calls.sqlite", 8
    asked_again = in_flight_at_kills = lives = 0
    with ChatServer(latency_s=0.02, faults=MIXED, seed=seed, retry_after_s=0.02) as server:
        while len(stored(path)) < n:
            known, before = stored(path), len(server.bodies)
            process = start_child(server.base_url, path, n, concurrency)
            if lives < kills:
                time.sleep(rng.uniform(0.02, 0.3))
                in_flight_at_kills += server.stats()["in_flight"]
                process.send_signal(signal.SIGKILL)
            process.wait()
            assert process.stdout
            process.stdout.close()
            lives += 1
            time.sleep(0.01)
            again = [b["messages"][0]["content"] for b in server.bodies[before:]]
            asked_again += len(known.intersection(again))
        seen = server.stats()
    db = sqlite3.connect(path)
    check = db.execute("PRAGMA integrity_check").fetchone()[0]
    rows = db.execute("SELECT count(*) FROM replies").fetchone()[0]
    db.close()
    return {
        "replies": rows,
        "lives": lives,
        "requests": seen["requests"],
        "stored calls asked again": asked_again,
        "paid twice": seen["repeats_after_answer"],
        "places at kills": min(lives, kills) * concurrency,
        "in flight at kills": in_flight_at_kills,
        "integrity": check,
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        with suppress(KeyboardInterrupt):
            raise SystemExit(asyncio.run(child(*json.loads(sys.argv[2]))))
        raise SystemExit(130)
    with TemporaryDirectory() as temporary:
        begun = time.monotonic()
        count = int(sys.argv[1]) if len(sys.argv) > 1 else 20
        print(json.dumps(kill_run(Path(temporary), n=1000, kills=count), indent=1))
        print(f"{time.monotonic() - begun:.0f} s")

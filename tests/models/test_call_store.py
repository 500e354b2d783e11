"""The call store: what arrived is kept, by whom it may be read, and what it refuses."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evalkit.errors import StoreError
from evalkit.models.store import CallStore
from evalkit.records import Finish, Reply, Usage


def key(i: int) -> str:
    return hashlib.sha256(str(i).encode()).hexdigest()


FULL = Reply(
    "text \u2028 é",
    "why",
    "no",
    Finish.LENGTH,
    Usage(1, None, 3, 4),
    0.25,
    3,
    "model-1",
    ("temperature 0 not taken",),
    ("cut",),
    ("a", "b"),
    key(0),
)


@pytest.mark.parametrize(
    "reply", [FULL, Reply("", key=key(0)), Reply("x", retrieved=(), key=key(0))]
)
def test_a_reply_comes_back_as_it_was(tmp_path: Path, reply: Reply) -> None:
    with CallStore(tmp_path / "c.sqlite") as store:
        assert asyncio.run(store.put(key(0), reply)) == reply
        assert store.get(key(0)) == reply
    with CallStore(tmp_path / "c.sqlite") as store:
        assert store.get(key(0)) == reply
        assert store.get(key(1)) is None
        assert store.get_many([key(1), key(0)]) == {key(0): reply}


def test_many_at_once_from_several_loops_and_all_found(tmp_path: Path) -> None:
    async def fill(store: CallStore, start: int) -> None:
        await asyncio.gather(*(store.put(key(i), Reply(str(i))) for i in range(start, start + 700)))

    with CallStore(tmp_path / "c.sqlite") as store:
        asyncio.run(fill(store, 0))
        asyncio.run(fill(store, 700))
        found = store.get_many(key(i) for i in range(1500))
        assert {int(r.text) for r in found.values()} == set(range(1400))
        assert store.size().replies == 1400


def test_the_first_reply_stands_and_a_fresh_draw_is_served_beside_it(tmp_path: Path) -> None:
    async def run(store: CallStore) -> None:
        assert (await store.put(key(0), Reply("first"))).text == "first"
        assert (await store.put(key(0), Reply("second"))).text == "first"
        assert (await store.put(key(0), Reply("anew"), fresh=True)).text == "anew"

    with CallStore(tmp_path / "c.sqlite") as store:
        asyncio.run(run(store))
        assert store.size().replies == 2
        got = store.get(key(0))
        assert got is not None
        assert got.text == store.get_many([key(0)])[key(0)].text == "anew"


def test_a_waiter_that_is_cancelled_loses_nothing(tmp_path: Path) -> None:
    async def run(store: CallStore) -> None:
        task = asyncio.create_task(store.put(key(0), Reply("kept")))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with CallStore(tmp_path / "c.sqlite") as store:
        asyncio.run(run(store))
    with CallStore(tmp_path / "c.sqlite") as store:
        assert store.get(key(0)) is not None


WRITER = """
import asyncio, hashlib, sys
from evalkit.models.store import CallStore
from evalkit.records import Reply
async def main():
    with CallStore(sys.argv[1]) as store:
        for i in range(60):
            key = hashlib.sha256(str(i).encode()).hexdigest()
            await store.put(key, Reply(sys.argv[2]), run=sys.argv[2])
asyncio.run(main())
"""


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "c.sqlite"
    children = [subprocess.Popen([sys.executable, "-c", WRITER, str(file), name]) for name in "abc"]
    assert [c.wait() for c in children] == [0, 0, 0]
    with CallStore(file) as store:
        assert store.size().replies == 60
        assert sum(len(store.keys_of_run(name)) for name in "abc") == 60
    with sqlite3.connect(file) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()


def test_a_new_store_is_ours_whoever_makes_it_first(tmp_path: Path) -> None:
    start = threading.Barrier(4, timeout=60)

    def open_all() -> None:
        for number in range(100):
            start.wait()
            CallStore(tmp_path / f"{number}.sqlite").close()

    with ThreadPoolExecutor(4) as threads:
        for opened in [threads.submit(open_all) for _ in range(4)]:
            opened.result()


def test_size_and_prune_by_run_and_age(tmp_path: Path) -> None:
    with CallStore(tmp_path / "c.sqlite") as store:
        assert store.size().oldest is None
        for i, run in enumerate(["r1", "r1", "r2"]):
            asyncio.run(store.put(key(i), Reply("x"), run=run))
        size = store.size()
        assert (size.replies, size.runs) == (3, 2)
        assert size.bytes > 0
        assert size.oldest is not None
        assert abs(size.oldest - time.time()) < 60
        assert store.prune(before=size.oldest) == 0
        assert store.prune(run="r1", before=time.time() - 3600) == 0
        assert store.prune(run="r1") == 2
        assert store.prune(before=time.time() + 1) == 1
        assert store.size().replies == 0
        with pytest.raises(StoreError, match="before="):
            store.prune()


# -- refusals ----------------------------------------------------------------------------------


def _foreign(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE theirs (x)")
    db.commit()
    db.close()


def _later(path: Path) -> None:
    CallStore(path).close()
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()


def _cut(path: Path) -> None:
    with CallStore(path) as store:
        asyncio.run(_fill(store))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _scribbled(path: Path) -> None:
    with CallStore(path) as store:
        asyncio.run(_fill(store))
    data = bytearray(path.read_bytes())
    for page in range(2, len(data) // 4096):
        data[page * 4096 : page * 4096 + 64] = b"\xee" * 64
    path.write_bytes(data)


async def _fill(store: CallStore) -> None:
    await asyncio.gather(*(store.put(key(i), Reply("x" * 300)) for i in range(200)))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda p: p.write_text("case,score\n1,2\n" * 9), "no call store"),
        (lambda p: p.write_bytes(b"SQLite format 3\0" + b"\x01" * 5000), "damaged|no call store"),
        (_foreign, "another program's database"),
        (_later, "store version 99"),
        (_cut, "damaged"),
        (_scribbled, "damaged"),
    ],
)
def test_a_damaged_or_foreign_file_is_refused_and_left_as_it_is(
    tmp_path: Path, make: object, words: str
) -> None:
    path = tmp_path / "c.sqlite"
    make(path)  # type: ignore[operator]
    before = path.read_bytes()
    with pytest.raises(StoreError, match=words) as caught:
        CallStore(path)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == before
    assert caught.value.__cause__ is None


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / "c.sqlite").touch()
    with CallStore(tmp_path / "c.sqlite") as store:
        assert store.size().replies == 0


def test_a_folder_in_its_place_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        CallStore(tmp_path)


def test_a_failed_write_reaches_whoever_waits(tmp_path: Path) -> None:
    with CallStore(tmp_path / "c.sqlite") as store:
        asyncio.run(store.put(key(0), Reply("x")))
        db = sqlite3.connect(tmp_path / "c.sqlite")
        db.execute("DROP TABLE replies")
        db.commit()
        db.close()
        with pytest.raises(StoreError):
            asyncio.run(store.put(key(1), Reply("y")))

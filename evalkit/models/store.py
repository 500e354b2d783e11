"""The call store: every reply ever received, in one SQLite file. Cache, resume and audit are one.

`put` returns after the reply's transaction is committed (WAL mode): whatever `ask` returned
survives `kill -9`. One writer thread commits whatever has arrived since its last commit, so a busy
run pays one commit for many replies and an idle one waits for none. Where two processes draw the
same call, the first one's reply stands and the other takes it over. A fresh draw is kept beside the
older ones; the newest is served.
"""

from __future__ import annotations

import asyncio
import atexit
import queue
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any, NamedTuple

from evalkit.errors import StoreError
from evalkit.models.plain import reply_from_json, reply_to_json
from evalkit.models.store_file import MEND, connect, open_store, sentences
from evalkit.models.turns import Turns
from evalkit.records import Reply

__all__ = ["CallStore", "StoreSize"]

_GATHER_S = 0.005  # while replies come in crowds, a commit waits this long for more of them


@dataclass(frozen=True, slots=True)
class StoreSize:
    """What a store holds; times are seconds since the epoch, None when it is empty."""

    replies: int
    bytes: int
    oldest: float | None
    newest: float | None
    runs: int


class _Write(NamedTuple):
    key: str
    reply: Reply
    row: tuple[Any, ...]  # at, run, model, purpose, settings, reply
    fresh: bool
    done: asyncio.Future[Reply]


class CallStore:
    """A call store on `path`, created when there is none. Use it as a context manager, or close it.

    Raises:
        StoreError: If the file is damaged, foreign, or of a later version; it is never written to.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.turns = Turns(self.path.with_name(self.path.name + ".turns"))
        self._lock = threading.Lock()
        self._queue: queue.SimpleQueue[_Write | threading.Event | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        with sentences(self.path):
            self._reader = open_store(self.path)

    # -- reading -------------------------------------------------------------------------------

    def get(self, key: str) -> Reply | None:
        """The reply of a call, or None."""
        with self._lock, sentences(self.path):
            row = self._reader.execute(
                "SELECT reply FROM replies WHERE key = ? ORDER BY draw DESC LIMIT 1",
                (bytes.fromhex(key),),
            ).fetchone()
        return None if row is None else self._read(row[0], key)

    def get_many(self, keys: Iterable[str]) -> dict[str, Reply]:
        """The replies of those calls that are stored."""
        return {key: self._read(text, key) for key, (text,) in self._rows("reply", keys)}

    def origins(self, keys: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Where stored replies come from: `at`, `run`, `model`, `purpose`, `settings` (JSON)."""
        names = ("at", "run", "model", "purpose", "settings")
        rows = self._rows(", ".join(names), keys)
        return {key: dict(zip(names, values, strict=True)) for key, values in rows}

    def keys_of_run(self, run: str) -> list[str]:
        """Keys of the calls that this run paid for, oldest first."""
        with self._lock, sentences(self.path):
            rows = self._reader.execute(
                "SELECT key FROM replies WHERE run = ? ORDER BY id", (run,)
            ).fetchall()
        return [blob.hex() for (blob,) in rows]

    def size(self) -> StoreSize:
        """How much is stored."""
        with self._lock, sentences(self.path):
            row = self._reader.execute(
                "SELECT count(*), min(at), max(at), count(DISTINCT run) FROM replies"
            ).fetchone()
        files = (self.path, self.path.with_name(self.path.name + "-wal"))
        total = sum(f.stat().st_size for f in files if f.exists())
        return StoreSize(row[0], total, row[1], row[2], row[3])

    # -- writing -------------------------------------------------------------------------------

    async def put(
        self,
        key: str,
        reply: Reply,
        *,
        model: str = "",
        purpose: str = "task",
        run: str = "",
        settings: str = "{}",
        fresh: bool = False,
    ) -> Reply:
        """Store a reply and return the one that stands, once it is committed.

        That is `reply` itself, or the one another process stored first under this key. A waiter
        that is cancelled loses nothing: the reply is written all the same.

        Raises:
            StoreError: If it cannot be written.
        """
        done: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        row = (time.time(), run, model, purpose, settings, reply_to_json(reply))
        if self._writer is None:
            with self._lock:
                if self._writer is None:
                    self._writer = threading.Thread(
                        target=self._write, name="evalkit-call-store", daemon=True
                    )
                    self._writer.start()
                    atexit.register(self.flush)  # a process that ends without close() loses nothing
        self._queue.put(_Write(key, reply, row, fresh, done))
        return await done

    def flush(self) -> None:
        """Wait until everything that was put so far is committed."""
        if self._writer is not None and self._writer.is_alive():
            reached = threading.Event()
            self._queue.put(reached)
            reached.wait()

    def prune(self, *, before: float | None = None, run: str | None = None) -> int:
        """Delete replies older than `before` (seconds since the epoch), or drawn by `run`.

        Returns how many were deleted; with both conditions both must hold.

        Raises:
            StoreError: If neither is given: this function never empties a store.
        """
        if before is None and run is None:
            raise StoreError("prune: say before= (a time) or run= (a run's id)")
        self.flush()
        with self._lock, sentences(self.path):
            gone = self._reader.execute(
                "DELETE FROM replies WHERE (:before IS NULL OR at < :before) "
                "AND (:run IS NULL OR run = :run)",
                {"before": before, "run": run},
            ).rowcount
            with suppress(sqlite3.OperationalError):  # in use elsewhere: the room is used again
                self._reader.execute("VACUUM")
        return gone

    def close(self) -> None:
        """Commit what is waiting and close the file."""
        if self._writer is not None:
            self._queue.put(None)
            self._writer.join()
            self._writer = None
            atexit.unregister(self.flush)
        self.turns.close()
        with self._lock:
            self._reader.close()

    def __enter__(self) -> CallStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- inside --------------------------------------------------------------------------------

    def _write(self) -> None:
        """The writer thread: one transaction for everything that has arrived meanwhile."""
        db: sqlite3.Connection | None = None
        last = crowded = False
        while not last:
            batch: list[_Write] = []
            reached: list[threading.Event] = []
            item = self._queue.get()
            if crowded:
                time.sleep(_GATHER_S)
            while True:
                if isinstance(item, _Write):
                    batch.append(item)
                elif item is None:
                    last = True
                else:
                    reached.append(item)
                try:
                    item = self._queue.get_nowait()
                except queue.Empty:
                    break
            crowded = len(batch) > 1
            outcomes: list[Reply | StoreError]
            try:
                with sentences(self.path):
                    db = db or connect(self.path)
                    outcomes = _commit(db, batch) if batch else []
            except StoreError as error:
                outcomes = [error] * len(batch)
            except Exception as error:  # whatever it is, nobody may wait for ever
                outcomes = [StoreError(f"{self.path}: {error!r}")] * len(batch)
            _wake(batch, outcomes)
            for event in reached:
                event.set()
        if db is not None:
            db.close()

    def _rows(self, columns: str, keys: Iterable[str]) -> Iterator[tuple[str, list[Any]]]:
        """Key and columns of the newest draw of each of these calls."""
        newest: dict[bytes, list[Any]] = {}
        remaining = iter(keys)
        while chunk := [bytes.fromhex(k) for k in islice(remaining, 500)]:
            marks = ",".join("?" * len(chunk))
            with self._lock, sentences(self.path):
                for blob, *values in self._reader.execute(
                    f"SELECT key, {columns} FROM replies WHERE key IN ({marks}) ORDER BY draw",
                    chunk,
                ):
                    newest[blob] = values
        return ((blob.hex(), values) for blob, values in newest.items())

    def _read(self, text: str, key: str) -> Reply:
        try:
            return reply_from_json(text, key)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise StoreError(f"{self.path}: the reply {key[:12]} is damaged. {MEND}") from None


def _commit(db: sqlite3.Connection, batch: list[_Write]) -> list[Reply | StoreError]:
    """Write a batch; the reply that stands under each key.

    One statement, a transaction of its own, carries up to 500 rows: each statement gives the
    interpreter's lock away and has to wait for it again, which beside a busy event loop takes
    longer than the writing.
    """
    outcomes: list[Reply | StoreError] = []
    for fresh, group in groupby(batch, key=lambda write: write.fresh):
        writes = list(group)
        for start in range(0, len(writes), 500):
            some = writes[start : start + 500]
            draw = (
                "(SELECT coalesce(max(draw) + 1, 0) FROM replies WHERE key = ?)" if fresh else "0"
            )
            marks = ", ".join([f"(?, {draw}, ?, ?, ?, ?, ?, ?)"] * len(some))
            values: list[Any] = []
            for write in some:
                blob = bytes.fromhex(write.key)
                values += (blob, blob, *write.row) if fresh else (blob, *write.row)
            inserted = db.execute(
                "INSERT INTO replies (key, draw, at, run, model, purpose, settings, reply) "
                f"VALUES {marks} ON CONFLICT DO NOTHING",
                values,
            ).rowcount
            if inserted == len(some):
                outcomes += [write.reply for write in some]
            else:  # another process was first with some of them
                standing = "SELECT reply FROM replies WHERE key = ? ORDER BY draw DESC LIMIT 1"
                for key in (write.key for write in some):
                    (text,) = db.execute(standing, (bytes.fromhex(key),)).fetchone()
                    outcomes.append(reply_from_json(text, key))
    return outcomes


def _wake(batch: list[_Write], outcomes: list[Reply | StoreError]) -> None:
    """Resolve each future in its own loop; one wake-up a loop, however many replies."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Reply], Any]]] = {}
    for write, outcome in zip(batch, outcomes, strict=True):
        by_loop.setdefault(write.done.get_loop(), []).append((write.done, outcome))
    for loop, pairs in by_loop.items():
        with suppress(RuntimeError):  # that loop has ended; the replies are stored all the same
            loop.call_soon_threadsafe(_resolve, pairs)


def _resolve(pairs: list[tuple[asyncio.Future[Reply], Any]]) -> None:
    for future, outcome in pairs:
        if future.done():
            continue
        if isinstance(outcome, StoreError):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)

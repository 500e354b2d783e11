"""The file of a call store: opened only when it is ours, made when there is none."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from evalkit.errors import StoreError

__all__ = ["MEND", "connect", "open_store", "sentences"]

APPLICATION_ID = 0x65766B74  # "evkt"
VERSION = 1
MEND = "It is left untouched: move it away, or name another file."
_LOCK_TIMEOUT_S = 30.0
_CHECKED_BYTES = 16 * 2**20  # a larger file is not read through when it is opened
_SCHEMA = """
CREATE TABLE replies (
    id INTEGER PRIMARY KEY,
    key BLOB NOT NULL,          -- the call key, 32 bytes
    draw INTEGER NOT NULL,      -- 0, and one more for each fresh draw
    at REAL NOT NULL,           -- seconds since the epoch
    run TEXT NOT NULL,
    model TEXT NOT NULL,        -- endpoint/model
    purpose TEXT NOT NULL,      -- task, judge
    settings TEXT NOT NULL,     -- sampling parameters, JSON
    reply TEXT NOT NULL,        -- JSON without defaults
    UNIQUE (key, draw)
)"""


def connect(path: Path) -> sqlite3.Connection:
    """A connection to a store's file; one thread at a time may use it."""
    db = sqlite3.connect(
        path, timeout=_LOCK_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    db.execute("PRAGMA synchronous = NORMAL")
    return db


def open_store(path: Path) -> sqlite3.Connection:
    """A connection to the store in a file, which is made when there is none.

    Raises:
        StoreError: If the file is damaged, foreign, or of a later version; it is never written to.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    known = path.exists() and path.stat().st_size > 0
    if known:
        with path.open("rb") as file:
            if file.read(16) != b"SQLite format 3\0":
                raise StoreError(f"{path} is no call store (not SQLite). {MEND}")
    db = connect(path)
    try:
        if not _is_ours(path, db):
            _create(path, db)
        elif known and path.stat().st_size <= _CHECKED_BYTES:
            problem = db.execute("PRAGMA quick_check(1)").fetchone()[0]
            if problem != "ok":
                raise StoreError(f"{path} is damaged ({problem}). {MEND}")
    except BaseException:
        db.close()
        raise
    return db


def _is_ours(path: Path, db: sqlite3.Connection) -> bool:
    """True for a store of ours, False for an empty file.

    Raises:
        StoreError: If it is somebody else's, or of a later version.
    """
    tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    mark = db.execute("PRAGMA application_id").fetchone()[0]  # second: made with the tables
    if mark == 0 and tables == 0:
        return False
    if mark != APPLICATION_ID:
        raise StoreError(f"{path} is another program's database. {MEND}")
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version != VERSION:
        raise StoreError(
            f"{path} has store version {version}; this evalkit reads {VERSION}. "
            "Install the evalkit that wrote it, or name another file."
        )
    return True


def _create(path: Path, db: sqlite3.Connection) -> None:
    deadline = time.monotonic() + _LOCK_TIMEOUT_S
    while True:  # switching to WAL does not wait for other processes by itself
        try:
            db.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
    db.execute("BEGIN IMMEDIATE")  # left open by an error, it is rolled back when closed
    if not _is_ours(path, db):  # another process may have been first
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {VERSION}")
        db.execute(_SCHEMA)
    db.execute("COMMIT")


@contextmanager
def sentences(path: Path) -> Generator[None]:
    """What SQLite and the system say, as one `StoreError` that names the file."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "locked" in str(error) or "busy" in str(error):
            raise StoreError(
                f"{path} stayed locked for {_LOCK_TIMEOUT_S:g} s: another process writes "
                "to it for long. Wait for that one, or use another file."
            ) from None
        raise StoreError(f"{path}: {error}. Is there room, and may it be written?") from None
    except sqlite3.DatabaseError as error:
        raise StoreError(f"{path} is damaged ({error}). {MEND}") from None
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}.") from None

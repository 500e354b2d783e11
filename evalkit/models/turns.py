"""Turns on one call store: what one client or process asks, the others wait for.

A lock is one byte of an empty file beside the store, its place taken from the call's key. The
kernel gives it back when its owner ends, however that ends.
"""

from __future__ import annotations

import asyncio
import os
import struct
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

__all__ = ["PATIENCE_S", "Turns"]

LOOK_AGAIN_S = 0.02
PATIENCE_S = 600.0  # a process that was stopped in the middle of a call stops no other for ever
_BYTE = "hhqqi"  # struct flock: kind, whence, start, length, owner


def _system() -> Any:
    """Locks of an open file, rather than of a whole process; Linux has them."""
    try:
        import fcntl
    except ImportError:
        return None
    return fcntl if hasattr(fcntl, "F_OFD_SETLK") else None


_FCNTL = _system()  # None: two processes may pay for one call, and the first one's reply stands


class Turns:
    """The turns of one open store, among its clients here and among processes.

    Args:
        path: The file of locks; made when the first turn is taken.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None
        self._opening = threading.Lock()  # two loops may come at once
        self._held: dict[str, object] = {}  # a lock tells files that were opened apart, not clients

    async def take(self, key: str) -> bool:
        """Wait until nobody else has this call's turn; False when patience ran out.

        It polls, so that a wait blocks no thread that a reply needs to be stored.
        """
        waited = 0.0
        while not self.try_take(key):
            if (waited := waited + LOOK_AGAIN_S) > PATIENCE_S:
                return False
            await asyncio.sleep(LOOK_AGAIN_S)
        return True

    def try_take(self, key: str) -> bool:
        """Take this call's turn if nobody has it."""
        mine = object()
        if self._held.setdefault(key, mine) is not mine:
            return False
        free = True
        try:
            if _FCNTL is not None:
                with self._opening:
                    if self._file is None:
                        how = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
                        self._file = os.open(self.path, how, 0o666)
                free = self._set(key, _FCNTL.F_WRLCK)
        except OSError:  # a file system without locks: turns among the clients of this store
            pass
        if not free:
            del self._held[key]
        return free

    def give_back(self, key: str) -> None:
        """The next one may ask, or read what was stored; only for a turn that was taken."""
        if self._file is not None:
            with suppress(OSError):
                self._set(key, _FCNTL.F_UNLCK)
        self._held.pop(key, None)

    def close(self) -> None:
        """Give everything back."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __del__(self) -> None:
        self.close()

    def _set(self, key: str, kind: int) -> bool:
        assert self._file is not None
        try:
            lock = struct.pack(_BYTE, kind, 0, int(key[:15], 16), 1, 0)
            _FCNTL.fcntl(self._file, _FCNTL.F_OFD_SETLK, lock)
        except BlockingIOError:
            return False
        return True

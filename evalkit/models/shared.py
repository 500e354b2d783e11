"""A client for several processes on one call store: what one of them asks, the others wait for."""

from __future__ import annotations

import asyncio
import fcntl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from evalkit.models.client import Client
from evalkit.models.endpoints import Endpoints
from evalkit.records import Reply, Request

__all__ = ["SharedClient"]

LOOK_AGAIN_S = 0.02


class SharedClient(Client):
    """As `Client`, and no call is sent by two processes: each key has a lock file.

    Args:
        endpoints: Where models are.
        locks: Folder of the lock files, the same for all processes.
        settings: As `Client` takes them; `store` is what brings a reply to the others.
    """

    def __init__(self, endpoints: Endpoints, *, locks: Path, **settings: Any) -> None:
        super().__init__(endpoints, **settings)
        self._locks = locks

    async def _once(
        self,
        key: str,
        model: str,
        purpose: str,
        request: Request | None,
        call: Callable[[], Awaitable[Reply]],
    ) -> Reply:
        if not self.live or self._recorded_one(key) is not None:
            return await super()._once(key, model, purpose, request, call)
        async with self._alone(key):  # by then another process may have stored the reply
            return await super()._once(key, model, purpose, request, call)

    @asynccontextmanager
    async def _alone(self, key: str) -> AsyncGenerator[None]:
        """Hold the lock of a key; keys that share their first digits take turns."""
        self._locks.mkdir(parents=True, exist_ok=True)
        with (self._locks / key[:3]).open("w") as file:
            while True:  # polled, so that a wait blocks no thread that a reply needs to be stored
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    await asyncio.sleep(LOOK_AGAIN_S)
            yield

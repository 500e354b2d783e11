"""The driver's side of a run on many machines: workers look replies up here and bring new ones.

A connection carries one message of plain values at a time. A reply is committed to the driver's
call store before its worker is told so; a call that one worker has under way is not sent by
another; money is handed out in purses that together never exceed the budget.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from evalkit.errors import EvalkitError
from evalkit.models.client import Client
from evalkit.models.endpoints import Endpoint
from evalkit.models.plain import reply_from_json, reply_to_json
from evalkit.models.prices import cost_of
from evalkit.models.store import CallStore
from evalkit.models.turns import PATIENCE_S
from evalkit.records import Usage

if TYPE_CHECKING:
    from distributed import Client as DaskClient
    from distributed.comm.core import Comm

__all__ = ["Exchange"]


class Exchange:
    """What the workers of one run share. A lane runs one shard at a time.

    `failure` is the error for which nobody may send anything any more.
    """

    def __init__(self, client: Client, store: CallStore, lanes: int) -> None:
        self.client, self.store, self.lanes = client, store, lanes
        self.address = ""
        self.failure: EvalkitError | None = None
        self._comms: set[Comm] = set()
        self._under_way: dict[str, int] = {}  # call key to the lane that asks
        self._turns: set[str] = set()  # those of them whose turn among processes is ours
        self._refused: dict[str, float] = {}  # when another process was first found to have it
        self._drawn: set[str] = set()  # in a fresh run: what this run has drawn already
        self._paid: dict[int, set[str]] = {}  # lane to the calls its shard paid for
        self._again: dict[int, int] = {}  # lane to how many of them it found when it ran again
        self._left_usd = client.max_cost_usd
        self._given: dict[int, float] = {}  # lane to its purse
        self._spent: dict[int, float] = {}
        self._ends: float | None = None

    @asynccontextmanager
    async def serve(self, dask: DaskClient) -> AsyncGenerator[None]:
        """Answer the workers of this cluster until the end of the block."""
        from distributed.comm.addressing import get_address_host
        from distributed.comm.core import listen
        from distributed.utils import get_ip

        scheduler = str(dask.scheduler_info(n_workers=0)["address"])
        security: Any = dask.security
        listener: Any = listen(
            f"{scheduler.partition('://')[0]}://{get_ip(get_address_host(scheduler))}:0",
            self._answer,
            **(security.get_listen_args("client") if security else {}),
        )
        await listener
        self.address = str(listener.contact_address)
        try:
            yield
        finally:
            listener.stop()
            for key in list(self._under_way):
                self._settled(key)
            for comm in self._comms:  # of workers that are still at work: they send no call unasked
                comm.abort()

    def stop(self) -> None:
        """Nobody may send anything any more."""
        self.failure = self.failure or EvalkitError("the run has ended")

    def end(self, lane: int, committed_usd: float = 0.0) -> int:
        """A lane's shard is over; returns how many of the calls it paid for it found again.

        Args:
            lane: Which lane.
            committed_usd: What the shard's budget took, replies without a price at their estimate.
        """
        for key in [k for k, owner in self._under_way.items() if owner == lane]:
            self._settled(key)
        if self._left_usd is not None and lane in self._given:
            spent = max(self._spent.pop(lane, 0.0), committed_usd)
            self._left_usd += max(0.0, self._given.pop(lane) - spent)
        self._paid.pop(lane, None)
        return self._again.pop(lane, 0)

    # -- what workers ask ----------------------------------------------------------------------

    async def _answer(self, comm: Comm) -> None:
        asked = {"begin": self._begin, "look": self._look, "put": self._put, "drop": self._drop}
        self._comms.add(comm)
        with suppress(OSError):  # a worker that is gone
            while True:
                message: Any = await comm.read()
                try:
                    answer = await asked[message.pop("op")](**message)
                except EvalkitError as error:  # the store: nothing can be kept any more
                    self.failure, answer = self.failure or error, {}
                stop = str(self.failure) if self.failure else ""
                await comm.write({**answer, "stop": stop})
        self._comms.discard(comm)

    async def _begin(self, lane: int) -> dict[str, Any]:
        """A shard starts, perhaps for a second time: what it may spend, and the time left."""
        paid, again = self._paid.get(lane, set()), self._again.get(lane, 0)
        self.end(lane)
        self._paid[lane], self._again[lane] = paid, again
        usd = None
        if self._left_usd is not None:
            usd = self._left_usd / (self.lanes - len(self._given))
            self._left_usd -= usd
            self._given[lane] = usd
        if self.client.deadline_s is not None and self._ends is None:
            self._ends = time.monotonic() + self.client.deadline_s
        seconds = None if self._ends is None else max(0.0, self._ends - time.monotonic())
        return {"usd": usd, "seconds": seconds}

    async def _look(self, lane: int, items: list[str]) -> dict[str, Any]:
        """Which of these calls are recorded, and which another worker or process has under way."""
        fresh = self.client.fresh
        known = self.client.recorded_keys(self._drawn.intersection(items) if fresh else items)
        ours = {key for key in items if key not in known and self._ours(key, lane)}
        if ours and not fresh:  # another process may have asked meanwhile
            for key, reply in self.client.recorded_keys(ours).items():
                known[key] = reply
                self._settled(key)
        paid = self._paid[lane]
        self._again[lane] += sum(key in paid for key in known)
        wait = [key for key in items if key not in known and key not in ours]
        return {"found": {k: reply_to_json(r) for k, r in known.items()}, "wait": wait}

    async def _put(self, lane: int, items: list[dict[str, Any]]) -> dict[str, Any]:
        """Keep replies; the answer holds those that another process stored first."""
        fresh = self.client.fresh
        replies = [reply_from_json(item.pop("reply"), item["key"]) for item in items]
        for item, reply in zip(items, replies, strict=True):
            self._count(lane, item["model"], item["purpose"], reply.usage)
            self._paid[lane].add(item["key"])
        standing = await asyncio.gather(
            *(
                self.store.put(item.pop("key"), reply, run=self.client.run, fresh=fresh, **item)
                for item, reply in zip(items, replies, strict=True)
            )
        )
        for reply in replies:
            self._settled(reply.key)
            if fresh:
                self._drawn.add(reply.key)
        pairs = zip(standing, replies, strict=True)
        return {"stood": {s.key: reply_to_json(s) for s, reply in pairs if s is not reply}}

    async def _drop(self, lane: int, items: list[str]) -> dict[str, Any]:
        """These calls failed: whoever waits for one may try."""
        for key in items:
            if self._under_way.get(key) == lane:
                self._settled(key)
        return {}

    def _ours(self, key: str, lane: int) -> bool:
        """Whether this lane may ask: no other does, and no other process."""
        if self._under_way.setdefault(key, lane) != lane:
            return False
        if key in self._turns:
            return True
        if self.store.turns.try_take(key):
            self._turns.add(key)
            self._refused.pop(key, None)
            return True
        now = time.monotonic()
        if now - self._refused.setdefault(key, now) > PATIENCE_S:
            return True
        del self._under_way[key]
        return False

    def _settled(self, key: str) -> None:
        """Nobody here asks this call any more."""
        self._under_way.pop(key, None)
        if key in self._turns:
            self._turns.discard(key)
            self.store.turns.give_back(key)

    def _count(self, lane: int, model: str, purpose: str, usage: Usage | None) -> None:
        endpoint = self.client.endpoints.by_name.get(model.partition("/")[0]) or Endpoint(model)
        self.client.spend.add(model, purpose, endpoint, usage)
        if lane in self._given and usage:
            usd = cost_of(endpoint, usage.prompt_tokens or 0, usage.completion_tokens or 0)
            self._spent[lane] = self._spent.get(lane, 0.0) + (usd or 0.0)

"""The worker's side of a run on many machines: the ordinary runner over one shard.

Keys are the worker's own: its environment, or the `.env` beside its nearest pyproject.toml. Before
a call is sent the driver is asked for it, and a reply is in the driver's store before it is scored.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from evalkit.errors import ConfigError, EvalkitError
from evalkit.models.client import Client
from evalkit.models.endpoints import Endpoints, load_endpoints, start_local
from evalkit.models.plain import reply_from_json, reply_to_json
from evalkit.models.python_task import HasHash, PythonTask
from evalkit.models.store import CallStore
from evalkit.records import Case, Reply, Request, Row
from evalkit.runs.manifest import versions
from evalkit.runs.plan import Plan
from evalkit.runs.workers import Observation, Work, run_here

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from distributed.comm.core import Comm

__all__ = ["Done", "Shard", "run_shard"]

_POLL_S = 0.05  # between two looks at a call that another worker has under way


@dataclass(frozen=True)
class Shard:
    """A part of a run as it travels: nothing in it is secret, nothing refers to a file.

    `endpoints` carry this lane's part of their limits, `driver` is where replies are looked up.
    """

    plan: Plan
    endpoints: Endpoints
    live: bool
    driver: str
    versions: Mapping[str, str]
    lane: int = 0
    todo: tuple[Observation, ...] = ()
    baseline: Mapping[tuple[str, int], Reply] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What messages call it."""
        first, last = self.todo[0][1], self.todo[-1][1]
        return f"the shard from case {first[0].id!r} to {last[0].id!r}"


@dataclass(frozen=True)
class Done:
    """What comes back: rows with their numbers, or the error that ended the shard."""

    rows: tuple[tuple[int, Row], ...] = ()
    recorded: int = 0
    missing: tuple[str, ...] = ()
    committed_usd: float = 0.0
    stopped: str = ""
    origin: str = "model"
    error: EvalkitError | None = None


def run_shard(shard: Shard) -> Done:
    """Run one shard in a Dask worker, in an event loop of its own."""
    from distributed import get_worker

    worker: Any = get_worker()
    security = worker.security
    arguments = security.get_connection_args("worker") if security else {}
    try:
        return asyncio.run(_run(shard, arguments))
    except EvalkitError as error:
        return Done(error=type(error)(*error.args))  # without its traceback, which would travel too


async def _run(shard: Shard, arguments: Mapping[str, Any]) -> Done:
    _check_versions(shard.versions)
    rows: list[tuple[int, Row]] = []
    async with _Driver.reached(shard.driver, shard.lane, arguments) as driver:
        left = await driver.begin()
        client = _WorkerClient(
            _with_own_keys(shard.endpoints),
            store=cast("CallStore", driver),  # the part of it that a client uses
            live=shard.live,
            max_cost_usd=left["usd"],
            deadline_s=left["seconds"],
        )
        async with client:
            work = Work(
                shard.plan,
                client,
                iter(shard.todo),
                len(shard.todo),
                lambda index, row: rows.append((index, row)),
                shard.baseline,
            )
            await run_here(work)
    return Done(
        tuple(rows),
        client.spend.recorded,
        tuple(client.missing),
        client.committed_usd,
        work.stopped,
        work.origin,
    )


class _WorkerClient(Client):
    """The ordinary client, which asks the driver first."""

    async def ask(self, request: Request, *, purpose: str = "task") -> Reply:
        key = self.key_of(request)
        call = super().ask
        return await self._looked_up(key, lambda: call(request, purpose=purpose))

    async def run_task(
        self,
        task: PythonTask,
        case: Case,
        prompt: HasHash | None = None,
        *,
        repeat: int = 0,
        purpose: str = "task",
    ) -> Reply:
        call = super().run_task
        return await self._looked_up(
            task.key(case, prompt, repeat),
            lambda: call(task, case, prompt, repeat=repeat, purpose=purpose),
        )

    async def _looked_up(self, key: str, call: Callable[[], Awaitable[Reply]]) -> Reply:
        driver = cast("_Driver", self.store)
        await driver.look(key)
        try:
            return await call()
        except EvalkitError:
            await driver.drop(key)
            raise


class _Driver:
    """The driver's call store as a worker sees it; what was looked up is kept for the shard."""

    turns = None  # `look` waits while another worker or process asks

    def __init__(self, comms: Iterable[Comm], lane: int) -> None:
        self.known: dict[str, Reply] = {}
        asking, bringing = (_Line(comm, lane) for comm in comms)
        self._begin = asking.send
        self._look, self._drop = _Batches(asking, "look"), _Batches(asking, "drop")
        self._put = _Batches(bringing, "put")

    @classmethod
    @asynccontextmanager
    async def reached(
        cls, address: str, lane: int, arguments: Mapping[str, Any]
    ) -> AsyncGenerator[_Driver]:
        from distributed.comm.core import connect

        try:
            comms = [await connect(address, **arguments) for _ in range(2)]
        except OSError as error:
            raise EvalkitError(
                f"the process that started the run cannot be reached at {address} ({error}). "
                "Workers must be able to connect to it."
            ) from None
        try:
            yield cls(comms, lane)
        finally:
            for comm in comms:
                await comm.close()

    async def begin(self) -> dict[str, Any]:
        """What the shard may spend, and the seconds it has."""
        return await self._begin("begin")

    async def look(self, key: str) -> None:
        """Learn whether a call is recorded; wait while another has it under way."""
        while key not in self.known:
            answer = await self._look(key)
            if (text := answer["found"].get(key)) is not None:
                self.known[key] = reply_from_json(text, key)
            elif key in answer["wait"]:
                await asyncio.sleep(_POLL_S)
                continue
            return

    async def drop(self, key: str) -> None:
        """Tell that a call has failed."""
        await self._drop(key)

    def get(self, key: str) -> Reply | None:
        """The reply of a call that was looked up, or None."""
        return self.known.get(key)

    async def put(self, key: str, reply: Reply, **origin: Any) -> Reply:
        """Bring a reply to the driver's store; the one that stands there, once it is committed."""
        named = {name: origin[name] for name in ("model", "purpose", "settings")}
        answer = await self._put({"key": key, "reply": reply_to_json(reply), **named})
        stood = answer["stood"].get(key)
        self.known[key] = reply if stood is None else reply_from_json(stood, key)
        return self.known[key]


class _Line:
    """One connection: one question, one answer."""

    def __init__(self, comm: Comm, lane: int) -> None:
        self.comm, self.lane = comm, lane
        self.free = asyncio.Lock()

    async def send(self, op: str, **more: Any) -> dict[str, Any]:
        async with self.free:
            try:
                await self.comm.write({"op": op, "lane": self.lane, **more})
                answer: Any = await self.comm.read()
            except OSError:
                raise EvalkitError("the process that started the run has ended it") from None
        if answer["stop"] and op != "put":
            raise EvalkitError(answer["stop"])
        return answer


class _Batches:
    """Sends together what has gathered while the batch before was under way."""

    def __init__(self, line: _Line, op: str) -> None:
        self.line, self.op = line, op
        self.waiting: list[tuple[Any, asyncio.Future[dict[str, Any]]]] = []
        self.sender: asyncio.Task[None] | None = None

    async def __call__(self, item: Any) -> dict[str, Any]:
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self.waiting.append((item, answer))
        if self.sender is None:
            self.sender = asyncio.create_task(self._send())
        return await answer

    async def _send(self) -> None:
        while self.waiting:
            batch, self.waiting = self.waiting, []
            try:
                answer = await self.line.send(self.op, items=[item for item, _ in batch])
            except EvalkitError as error:
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
            else:
                for _, future in batch:
                    if not future.done():
                        future.set_result(answer)
        self.sender = None


def _with_own_keys(endpoints: Endpoints) -> Endpoints:
    """The endpoints with the keys of this machine."""
    wanted = {e.api_key_env for e in endpoints if e.api_key_env}
    dotenv = {} if wanted <= set(os.environ) else load_endpoints().environment
    starters = {e.name: start_local for e in endpoints if e.base_url is None}
    return replace(endpoints, environment=dotenv, starters=starters)


def _check_versions(wanted: Mapping[str, str]) -> None:
    here = versions()
    differing = [f"{n} {here.get(n)} instead of {v}" for n, v in wanted.items() if here.get(n) != v]
    if differing:
        raise ConfigError(
            f"a worker has other versions than the process that started the run: "
            f"{', '.join(differing)}. Rows would not be those of a local run: install the same."
        )

"""Who does the work of a run: this process, or the workers of a Dask cluster.

On Dask the observations are cut into shards. A worker runs the ordinary asynchronous runner on one
shard at a time, with its part of the endpoints' limits. Before each call it asks the driver (the
process that started the run) whether the reply is recorded, and it brings each new one to the
driver's call store before it scores it: a lost worker loses no reply, and its shard, run again,
asks only for the rest. Rows come back and are written by the driver in case order, so that the
files are those of a local run, byte for byte.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from evalkit.errors import ConfigError, EvalkitError
from evalkit.models.endpoints import Endpoint, Endpoints
from evalkit.runs.exchange import Exchange
from evalkit.runs.manifest import versions
from evalkit.runs.shard import Done, Shard, run_shard
from evalkit.runs.workers import Observation, Work, run_here, together

if TYPE_CHECKING:
    from distributed import Client as DaskClient
    from distributed import Future

__all__ = ["DaskEngine", "Engine", "engine_of"]

Engine = Callable[[Work], Awaitable[None]]
_GRACE_S = 5.0


def engine_of(name: str = "local", scheduler: str = "") -> Engine:
    """The engine of that name, "local" or "dask".

    Args:
        name: Which engine.
        scheduler: Address of a Dask scheduler; "" starts a cluster of processes on this machine.

    Raises:
        ConfigError: If there is no such engine, or the local one is given a scheduler.
    """
    if name == "dask":
        return DaskEngine(scheduler)
    if name != "local":
        raise ConfigError(f"engine {name!r} is not known: it is 'local' or 'dask'.")
    if scheduler:
        raise ConfigError("--scheduler belongs to --engine dask.")
    return run_here


@dataclass(frozen=True)
class DaskEngine:
    """Runs work on a Dask cluster.

    `scheduler` is its address; without one, `workers` processes are started here (0: one a core).
    A shard holds `shard` observations; with 0 each worker gets about four, of 1,000 at most.
    """

    scheduler: str = ""
    workers: int = 0
    shard: int = 0

    async def __call__(self, work: Work) -> None:
        """Do all the work.

        Raises:
            ConfigError: If Dask is missing, the scheduler does not answer, an endpoint's address
                holds a password, or a worker has no key or other versions.
            EvalkitError: If a shard cannot be finished, and as the local engine.
        """
        store = work.client.store
        if store is None:
            raise ConfigError("--engine dask needs a call store: it is what outlives a worker.")
        endpoints = _travelling(work.client.endpoints)
        async with self._cluster() as dask:
            workers: Any = await dask.nthreads()  # pyright: ignore[reportGeneralTypeIssues]  # async
            if not workers:
                raise ConfigError(f"the Dask scheduler at {self.scheduler!r} has no worker.")
            lanes = min(len(workers), *(_widest(e) for e in _asked(work)), work.total)
            exchange = Exchange(work.client, store, lanes)
            async with exchange.serve(dask):
                size = self.shard or min(1_000, -(-work.total // (4 * lanes)))
                plan, live = work.plan.without_cases(), work.client.live
                bare = Shard(plan, endpoints, live, exchange.address, versions())
                shards = _cut(bare, work, size)
                running = [_Lane(number, exchange, work, dask) for number in range(lanes)]
                try:
                    await together(lane.run(shards) for lane in running)
                finally:
                    exchange.stop()
                    await _ended(running)

    @asynccontextmanager
    async def _cluster(self) -> AsyncGenerator[DaskClient]:
        try:
            from distributed import Client, LocalCluster
        except ImportError:
            raise ConfigError(
                "--engine dask needs dask.distributed: pip install 'evalkit[dask]'."
            ) from None
        if not self.scheduler:
            cluster = LocalCluster(
                n_workers=self.workers or None,
                threads_per_worker=1,
                asynchronous=True,
                dashboard_address="127.0.0.1:0",  # None would take its usual port all the same
            )
            async with cluster as here, Client(here, asynchronous=True) as dask:
                yield dask
            return
        try:
            dask = await Client(self.scheduler, asynchronous=True, timeout=10)
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"no Dask scheduler answers at {self.scheduler!r} ({error}). Start one with "
                "`dask scheduler`, and workers with `dask worker ADDRESS`."
            ) from None
        async with dask:
            yield dask


class _Lane:
    """One shard after the other, each on whatever worker is free, with this lane's limits."""

    def __init__(self, number: int, exchange: Exchange, work: Work, dask: DaskClient) -> None:
        self.number, self.exchange, self.work, self.dask = number, exchange, work, dask
        self.future: Future | None = None  # of the shard that is under way

    async def run(self, shards: Iterator[Shard]) -> None:
        work, exchange = self.work, self.exchange
        for shard in shards:
            parts = {e.name: _part(e, self.number, exchange.lanes) for e in shard.endpoints}
            endpoints = replace(shard.endpoints, by_name=parts)
            done = await self._done(replace(shard, lane=self.number, endpoints=endpoints))
            again = exchange.end(self.number, done.committed_usd)
            if done.error:
                raise exchange.failure or done.error
            work.stopped = work.stopped or done.stopped
            work.origin = work.origin if done.origin == "model" else done.origin
            work.client.missing.extend(done.missing)
            work.client.spend.recorded += done.recorded - again
            for index, row in done.rows:
                work.take(index, row)

    async def _done(self, shard: Shard) -> Done:
        """The shard's outcome; Dask runs it again where its worker is lost."""
        from distributed import KilledWorker

        self.future = self.dask.submit(run_shard, shard, pure=False)
        try:
            return await self.future
        except KilledWorker as error:
            raise EvalkitError(
                f"{shard.name} was lost with one worker after another ({error}). Does a scorer or "
                "a task take more memory than a worker has? What arrived is kept."
            ) from None


async def _ended(lanes: list[_Lane]) -> None:
    """Wait for shards that were told to stop: they end at their next look, or are left alone."""
    from distributed import wait

    futures = [lane.future for lane in lanes if lane.future and not lane.future.done()]
    if futures:
        with suppress(TimeoutError):
            await wait(futures, timeout=_GRACE_S)


def _cut(bare: Shard, work: Work, size: int) -> Iterator[Shard]:
    """The work in shards of `size`, in order."""
    while todo := tuple(islice(work.todo, size)):
        replies = {
            at: reply for at in _places(todo) if (reply := work.baseline.get(at)) is not None
        }
        yield replace(bare, todo=todo, baseline=replies)


def _places(todo: tuple[Observation, ...]) -> Iterator[tuple[str, int]]:
    return ((case.id, repeat) for _, (case, repeat) in todo)


def _asked(work: Work) -> list[Endpoint]:
    """The endpoints that the run asks."""
    models = {judge.model for judge in work.plan.judged.values()}
    models |= set() if work.plan.suite.task.entry else {work.plan.model}
    return [work.client.endpoints.of(model)[0] for model in models if model]


def _widest(endpoint: Endpoint) -> int:
    """Among how many lanes an endpoint's limits can be shared."""
    limits = (endpoint.max_concurrency, endpoint.requests_per_minute, endpoint.tokens_per_minute)
    return min(limit for limit in limits if limit)


def _part(endpoint: Endpoint, lane: int, lanes: int) -> Endpoint:
    """One lane's part of an endpoint's limits; all parts together are the whole."""

    def share(limit: int | None) -> int | None:
        return limit and max(1, limit // lanes + (lane < limit % lanes))

    return replace(
        endpoint,
        max_concurrency=share(endpoint.max_concurrency),
        requests_per_minute=share(endpoint.requests_per_minute),
        tokens_per_minute=share(endpoint.tokens_per_minute),
    )


def _travelling(endpoints: Endpoints) -> Endpoints:
    """The endpoints without what is secret or belongs to this process.

    Raises:
        ConfigError: If an address holds a password.
    """
    for endpoint in endpoints:
        if endpoint.base_url and urlsplit(endpoint.base_url).password:
            raise ConfigError(
                f"endpoint {endpoint.name!r}: base_url holds a password, which would travel to the "
                "workers with the run. Use api_key_env, and set that variable where workers run."
            )
    return Endpoints(endpoints.by_name, where=endpoints.where)

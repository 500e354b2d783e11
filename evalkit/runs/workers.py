"""The asynchronous runner: workers over one iterator of observations, in one event loop.

Workers pull the next observation when they are free, so nothing grows with the number of cases.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from evalkit.errors import BudgetReached, CallFailed, CallImpossible, EvalkitError, ReplayMissing
from evalkit.hashing import short_hash
from evalkit.models.client import Client
from evalkit.models.python_task import PythonTask, load_task
from evalkit.models.recordings import HANDWRITTEN
from evalkit.models.scripted import SCRIPTED
from evalkit.records import Case, Reply, Request, Row
from evalkit.runs.observe import observe
from evalkit.runs.plan import Plan

__all__ = ["Observation", "Settled", "Work", "run_here", "together"]

Observation = tuple[int, tuple[Case, int]]
"""An observation's number in case order, its case and its repeat."""


class Settled(Exception):
    """Nothing more has to be asked; ends the other workers."""


@dataclass
class Work:
    """What is to be observed, and where each finished row goes.

    `todo` is in the order of asking. `take` is given an observation's number and its row, in the
    order in which they finish; it raises `Settled` to end the work. `stopped` becomes the reason
    why calls were no longer sent, `origin` "handwritten" or "scripted" when a reply was.
    """

    plan: Plan
    client: Client
    todo: Iterator[Observation]
    total: int
    take: Callable[[int, Row], None]
    baseline: Mapping[tuple[str, int], Reply] = field(default_factory=dict)
    stopped: str = ""
    origin: str = "model"


async def run_here(work: Work) -> None:
    """Do all the work in this process.

    Raises:
        Settled: If `take` raised it.
        EvalkitError: If something is wrong that is not one observation's fault.
    """
    runner = _Runner(work)
    await together(runner.work() for _ in range(runner.workers))


async def together(jobs: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run jobs at the same time; the first error ends the others and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            for job in jobs:
                group.create_task(job)
    except BaseExceptionGroup as failed:
        raise _first(failed) from None


class _Runner:
    def __init__(self, work: Work) -> None:
        self.todo, self.state = work.todo, work
        self.plan, self.client = work.plan, work.client
        task = work.plan.suite.task
        self.task: PythonTask | None = None
        if task.entry:
            self.task = load_task(task.entry, version=task.app_version)
            in_flight = self.task.max_concurrency
        else:
            in_flight = work.client.endpoints.of(work.plan.model)[0].max_concurrency
        # A few more workers than calls in flight: while one scores, another's call is under way.
        self.workers = min(work.total, in_flight * 5 // 4 + 2)

    async def work(self) -> None:
        take = self.state.take
        for index, (case, repeat) in self.todo:
            take(index, await self._observe(case, repeat))

    async def _observe(self, case: Case, repeat: int) -> Row:
        state = self.state
        reply, error, sha = None, state.stopped, ""
        if not error:
            try:
                reply, sha = await self._answer(case, repeat)
            except (CallFailed, ReplayMissing) as missing:
                error = str(missing)
            except BudgetReached as reached:
                error = state.stopped = str(reached)
            except CallImpossible as error_of_all:
                raise CallImpossible(f"{error_of_all} (at case {case.id!r})") from error_of_all
        warnings = reply.warnings if reply is not None else ()
        for origin in (HANDWRITTEN, SCRIPTED) if warnings else ():
            if any(warning.startswith(f"{origin}:") for warning in warnings):
                state.origin = origin
        return await observe(
            self.plan,
            case,
            repeat,
            reply,
            self._judge,
            prompt_sha=sha,
            error=error,
            against=state.baseline.get((case.id, repeat)),
        )

    async def _answer(self, case: Case, repeat: int) -> tuple[Reply, str]:
        if self.task is not None:
            prompt = self.plan.prompt
            reply = await self.client.run_task(
                self.task,
                case,
                prompt,  # pyright: ignore[reportArgumentType]  # a cached property is one too
                repeat=repeat,
            )
            return reply, prompt.hash if prompt else ""
        request = self.plan.request(case, repeat)
        sha = short_hash([[m.role, m.content] for m in request.messages])
        return await self.client.ask(request), sha

    async def _judge(self, request: Request) -> Reply:
        try:
            return await self.client.ask(request, purpose="judge")
        except (ReplayMissing, BudgetReached) as error:
            if isinstance(error, BudgetReached):
                self.state.stopped = self.state.stopped or str(error)
            raise CallFailed(str(error)) from error


def _first(failed: BaseExceptionGroup[Any]) -> BaseException:
    """The error that matters: one of ours before any other, an interrupt before both."""
    flat = list(_leaves(failed))
    for kind in (KeyboardInterrupt, Settled, EvalkitError):
        for error in flat:
            if isinstance(error, kind):
                return error
    return flat[0]


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error

"""The client: one call in, one reply out, whatever happens between; nothing is paid twice.

    async with Client(load_endpoints(), store=CallStore("exports/calls.sqlite")) as client:
        reply = await client.ask(request)

A reply comes from the store, from the recordings, from a call for the same key that is under way,
or from the endpoint; then it is stored before `ask` returns it. A client belongs to one event loop.
It starts no tasks of its own: whoever cancels an `ask` ends its call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from evalkit.counting import counted
from evalkit.errors import CallFailed, CallImpossible, EvalkitError, ReplayMissing
from evalkit.hashing import canonical_json
from evalkit.models.endpoints import Endpoint, Endpoints
from evalkit.models.keys import call_key
from evalkit.models.limits import AdaptiveLimit
from evalkit.models.prices import Budget, Estimate, Spend, estimate
from evalkit.models.python_task import HasHash, PythonTask
from evalkit.models.recordings import Recordings
from evalkit.models.redaction import Redactor
from evalkit.models.store import CallStore
from evalkit.records import Case, Reply, Request

if TYPE_CHECKING:
    import httpx

    from evalkit.models.sending import Line

__all__ = ["CallEvent", "Client"]

_T = TypeVar("_T")


class CallEvent(NamedTuple):
    """What happened to a call: `kind` is recorded, reply, retry or failed."""

    kind: str
    purpose: str
    model: str
    key: str
    message: str = ""


class Client:
    """Asks models and Python tasks, once for each call key.

    Args:
        endpoints: Where models are, and their limits.
        store: Keeps every reply; without one nothing is kept.
        recordings: Replies to fall back on when the store has none.
        live: False asks nobody: a reply that is not recorded raises ReplayMissing.
        fresh: Draw each call anew (once), whatever is recorded.
        max_cost_usd: Stop before the call that might cross this.
        deadline_s: Seconds from the first live call after which none is sent or waited for.
        transport: Takes the place of the network (httpx.MockTransport).
        on_event: Told of each `CallEvent`.
        run: The run's id, kept with each reply that it paid for.
    """

    def __init__(
        self,
        endpoints: Endpoints,
        *,
        store: CallStore | None = None,
        recordings: Recordings | None = None,
        live: bool = True,
        fresh: bool = False,
        max_cost_usd: float | None = None,
        deadline_s: float | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        on_event: Callable[[CallEvent], None] | None = None,
        run: str = "",
    ) -> None:
        self.endpoints, self.store, self.recordings = endpoints, store, recordings
        self.live, self.fresh, self.run = live, fresh, run
        self.spend = Spend()
        self.missing: list[str] = []
        self.max_cost_usd, self.deadline_s = max_cost_usd, deadline_s
        self._budget = None if max_cost_usd is None else Budget(max_cost_usd)
        self._deadline: float | None = None
        self._transport, self._on_event = transport, on_event
        self._redact = Redactor(endpoints.secrets())
        self._lines: dict[str, Line] = {}
        self._task_limits: dict[str, AdaptiveLimit] = {}
        self._under_way: dict[str, asyncio.Future[Reply | None]] = {}
        self._drawn: set[str] = set()
        self._stopped: EvalkitError | None = None
        self._network: Any = None

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close every connection; the store stays open, it is its owner's."""
        if self._network is not None:
            network, self._network = self._network, None
            await network.aclose()

    # -- asking --------------------------------------------------------------------------------

    async def ask(self, request: Request, *, purpose: str = "task") -> Reply:
        """The reply to a request.

        Raises:
            CallFailed: No reply after every allowed attempt; names model, attempts and seconds.
            CallImpossible: It can never succeed (key, model, address, quota). From then on every
                further call of this client raises the same, unsent.
            BudgetReached: It might cross `max_cost_usd`; from then on as above.
            ReplayMissing: Not recorded, and `live` is False.
            ConfigError, StoreError: Endpoint, key or store cannot be used.
        """
        endpoint, _ = self.endpoints.of(request.model)
        key = call_key(endpoint.identity, request)
        return await self._once(
            key, request.model, purpose, request, lambda: self._call(request, key, purpose)
        )

    async def run_task(
        self,
        task: PythonTask,
        case: Case,
        prompt: HasHash | None = None,
        *,
        repeat: int = 0,
        purpose: str = "task",
    ) -> Reply:
        """The answer of a user's own function to a case.

        Raises:
            CallFailed: The function raised, or took too long.
            ConfigError, ReplayMissing, StoreError: As `ask`.
        """
        key = task.key(case, prompt, repeat)

        async def call() -> Reply:
            limit = self._task_limits.setdefault(task.entry, AdaptiveLimit(task.max_concurrency))
            ticket = await limit.acquire()
            try:
                self._check_stopped()
                self._start_clock()
                reply = await self._in_time(task.answer(case, prompt), task.entry)
            except CallFailed as error:
                raise CallFailed(self._redact(str(error))) from None
            finally:
                limit.release(ticket)
            self.spend.add(task.entry, purpose, Endpoint(task.entry), reply.usage)
            return self._cleaned(reply)

        return await self._once(key, task.entry, purpose, None, call)

    def recorded(self, requests: Iterable[Request]) -> dict[str, Reply]:
        """Replies that need no call, by call key, looked up in batches."""
        keys = [self.key_of(r) for r in requests]
        return self.recorded_keys(keys)

    def recorded_keys(self, keys: Iterable[str]) -> dict[str, Reply]:
        """As `recorded`, for those who have the keys."""
        keys = list(keys)
        found = self.store.get_many(keys) if self.store is not None else {}
        if self.recordings is not None:
            for key in keys:
                if key not in found and (reply := self.recordings.get(key)) is not None:
                    found[key] = reply
        return found

    def key_of(self, request: Request) -> str:
        """The call key of a request at its endpoint."""
        return call_key(self.endpoints.of(request.model)[0].identity, request)

    def estimate(self, requests: Iterable[Request]) -> Estimate:
        """What asking all of these would take; the same call counts once.

        Raises:
            ConfigError: If an endpoint is not known.
        """
        by_key = {self.key_of(r): r for r in requests}
        known = {} if self.fresh else self.recorded_keys(by_key)
        new = [(self.endpoints.of(r.model)[0], r) for k, r in by_key.items() if k not in known]
        return estimate(new, len(by_key) - len(new))

    def require_recorded(self, requests: Iterable[Request]) -> None:
        """Check that a replay will find everything.

        Raises:
            ReplayMissing: With the list of what is missing.
        """
        by_key = {self.key_of(r): r for r in requests}
        known = self.recorded_keys(by_key)
        gone = [_described(k, r.model, r) for k, r in by_key.items() if k not in known]
        if gone:
            raise ReplayMissing(_missing_message(gone))

    @property
    def committed_usd(self) -> float:
        """What the budget has taken so far; 0 without one."""
        return self._budget.committed if self._budget else 0.0

    # -- inside --------------------------------------------------------------------------------

    async def _once(
        self,
        key: str,
        model: str,
        purpose: str,
        request: Request | None,
        call: Callable[[], Awaitable[Reply]],
    ) -> Reply:
        """Recorded, under way, or called now and stored."""
        while (other := self._under_way.get(key)) is not None:
            if (reply := await asyncio.shield(other)) is not None:
                return reply
        fresh = self.fresh and key not in self._drawn
        if not fresh and (reply := self._recorded_one(key)) is not None:
            return await self._served(reply, model, purpose, key)
        if not self.live:
            line = _described(key, model, request)
            self.missing.append(line)
            raise ReplayMissing(_missing_message([line]))
        self._check_stopped()
        under_way: asyncio.Future[Reply | None] = asyncio.get_running_loop().create_future()
        self._under_way[key] = under_way
        outcome: Reply | None = None
        turns = self.store.turns if self.store is not None else None
        ours = False
        try:
            if turns is not None:
                self._start_clock()
                ours = turns.try_take(key) or await self._in_time(turns.take(key), model)
            if not fresh and self.store is not None:
                outcome = self._recorded_one(key)  # somebody else may have asked meanwhile
            if outcome is not None:
                return await self._served(outcome, model, purpose, key)
            reply = replace(await call(), key=key)
            if self.store is not None:
                reply = await self.store.put(
                    key,
                    reply,
                    model=model,
                    purpose=purpose,
                    run=self.run,
                    settings=_settings(request),
                    fresh=fresh,
                )
            if fresh:
                self._drawn.add(key)
            outcome = reply
        except EvalkitError as error:
            self._tell("failed", purpose, model, key, str(error))
            under_way.set_exception(error)
            under_way.exception()  # seen: nobody else may be waiting for it
            raise
        finally:
            if turns is not None and ours:
                turns.give_back(key)
            del self._under_way[key]
            if not under_way.done():  # None after a cancel: the next waiter asks
                under_way.set_result(outcome)
        self._tell("reply", purpose, model, key)
        return reply

    async def _served(self, reply: Reply, model: str, purpose: str, key: str) -> Reply:
        """A reply that nobody had to be asked for."""
        self.spend.recorded += 1
        self._tell("recorded", purpose, model, key)
        if self.spend.recorded % 64 == 0:  # a long replay lets a stop button through
            await asyncio.sleep(0)
        return reply

    async def _call(self, request: Request, key: str, purpose: str) -> Reply:
        line = self._lines.get(request.model) or await self._open_line(request.model)
        budget = self._budget
        if budget is None:
            reply = await self._sent(line, request, key, purpose)
        else:
            try:
                reserved = await budget.reserve(line.endpoint, request)
            except EvalkitError as error:
                self._stopped = error
                raise
            try:
                reply = await self._sent(line, request, key, purpose)
            except BaseException as error:
                unpaid = isinstance(error, CallFailed) and not error.paid_perhaps
                budget.settle(reserved, line.endpoint, None, free=unpaid)
                raise
            budget.settle(reserved, line.endpoint, reply.usage)
        self.spend.add(request.model, purpose, line.endpoint, reply.usage)
        return self._cleaned(reply)

    async def _sent(self, line: Line, request: Request, key: str, purpose: str) -> Reply:
        sending = line.send(
            request,
            check=self._check_stopped,
            on_retry=lambda said: self._tell("retry", purpose, request.model, key, said),
        )
        try:
            return await self._in_time(sending, request.model)
        except CallImpossible as error:
            self._stopped = self._stopped or error
            raise

    async def _in_time(self, call: Coroutine[Any, Any, _T], who: str) -> _T:
        """What this returns, unless the run's deadline passes first."""
        deadline = self._deadline
        if deadline is None:
            return await call
        late = f"{who}: the run's deadline of {self.deadline_s} s has passed"
        if asyncio.get_running_loop().time() >= deadline:
            call.close()
            raise CallFailed(f"{late}; the call was not sent.", paid_perhaps=False)
        try:
            async with asyncio.timeout_at(deadline):
                return await call
        except TimeoutError:
            raise CallFailed(f"{late}; there was no reply yet.") from None

    def _start_clock(self) -> None:
        """The run's deadline counts from its first live call."""
        if self.deadline_s is not None and self._deadline is None:
            self._deadline = asyncio.get_running_loop().time() + self.deadline_s

    async def _open_line(self, model: str) -> Line:
        if self._network is None:
            from evalkit.models.sending import Network  # httpx and aiohttp: only for live calls

            self._network = Network(self.endpoints, self._redact, self._transport)
            self._start_clock()
        line = self._lines[model] = await self._network.line(model)
        return line

    def _recorded_one(self, key: str) -> Reply | None:
        reply = self.store.get(key) if self.store is not None else None
        if reply is None and self.recordings is not None:
            reply = self.recordings.get(key)
        return reply

    def _check_stopped(self) -> None:
        if self._stopped is not None:
            raise type(self._stopped)(*self._stopped.args)

    def _cleaned(self, reply: Reply) -> Reply:
        text, reasoning = self._redact(reply.text), self._redact(reply.reasoning)
        if text is reply.text and reasoning is reply.reasoning:
            return reply
        return replace(reply, text=text, reasoning=reasoning)

    def _tell(self, kind: str, purpose: str, model: str, key: str, message: str = "") -> None:
        if self._on_event is not None:
            self._on_event(CallEvent(kind, purpose, model, key, message))


def _settings(request: Request | None) -> str:
    if request is None:
        return "{}"
    names = ("temperature", "max_tokens", "seed", "repeat")
    values: dict[str, Any] = {n: v for n in names if (v := getattr(request, n)) is not None}
    if request.schema is not None:
        values["schema"] = True
    if request.extra:
        values["extra"] = request.extra
    return canonical_json(values)


def _described(key: str, model: str, request: Request | None) -> str:
    last = request.messages[-1].content if request and request.messages else ""
    words = " ".join(last.split())
    shown = f"{words[:60]}..." if len(words) > 60 else words
    repeat = f" repeat {request.repeat}" if request else ""
    return f"{key[:12]} {model}{repeat}: {shown}".rstrip(": ")


def _missing_message(lines: list[str]) -> str:
    shown = "\n".join(f"  {line}" for line in lines[:20])
    more = f"\n  ... and {len(lines) - 20} more" if len(lines) > 20 else ""
    count = f"{counted(len(lines), 'call')} {'is' if len(lines) == 1 else 'are'} not recorded"
    return (
        f"{count}, and this is a replay without a network:\n"
        f"{shown}{more}\nRun live once (--run-live), or add the recordings."
    )

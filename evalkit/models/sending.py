"""Sending one request to one endpoint until there is a reply, or a reason why there is none.

A `Line` is what a client knows about one model: its endpoint's limits, headers and address, and the
spelling that its server accepts.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import aiohttp
import httpx
import stamina

from evalkit.counting import counted
from evalkit.errors import CallFailed, CallImpossible, ConfigError
from evalkit.models.endpoints import Endpoint, Endpoints, chat_url, shown_url
from evalkit.models.faults import CallFault, FaultKind, fault_of_status
from evalkit.models.limits import EndpointLimiter
from evalkit.models.prices import prompt_tokens
from evalkit.models.providers import PROVIDERS, Provider, apply_change, respelled
from evalkit.models.reading import cut_prompt_warning, json_body
from evalkit.models.redaction import Redactor
from evalkit.models.transport import network_fault, open_transport, proxy_for
from evalkit.records import Finish, Reply, Request

__all__ = ["Line", "Network"]

# A retry is told to the client's on_event; this handler keeps stamina's own line off stderr.
logging.getLogger("stamina").addHandler(logging.NullHandler())

_RESULTS = {FaultKind.TOO_LONG: Finish.TOO_LONG, FaultKind.FILTERED: Finish.CONTENT_FILTER}
_NETWORK_ERRORS = (httpx.HTTPError, httpx.InvalidURL, aiohttp.ClientError, OSError, ValueError)
_UNSENT = {FaultKind.UNREACHABLE, FaultKind.RATE_LIMITED, FaultKind.OVERLOADED, FaultKind.QUOTA}


@dataclass(slots=True)
class Place:
    """One endpoint of one client: where it answers, its limits, whether it ever answered."""

    endpoint: Endpoint
    url: httpx.URL
    shown: str
    headers: httpx.Headers
    limiter: EndpointLimiter
    transport: httpx.AsyncBaseTransport
    redact: Redactor
    answered: bool = False


@dataclass(slots=True)
class Line:
    """One model at its place. `changes`: what the server made us change, with its sentence."""

    place: Place
    model: str
    provider: Provider
    changes: dict[str, str] = field(default_factory=dict)

    @property
    def endpoint(self) -> Endpoint:
        """Whom this line reaches."""
        return self.place.endpoint

    async def send(
        self,
        request: Request,
        *,
        check: Callable[[], None],
        on_retry: Callable[[str], None],
    ) -> Reply:
        """Send until there is a reply, the attempts are used up, or sending again cannot help.

        Args:
            request: What to ask.
            check: Raises when the run has been stopped meanwhile.
            on_retry: Told why an attempt failed, before the next one.

        Raises:
            CallFailed: No reply.
            CallImpossible: No reply, and none for any other call like this.
        """
        endpoint = self.endpoint
        loop = asyncio.get_running_loop()
        start, tried, paid_perhaps = loop.time(), 0, False

        def again(error: Exception) -> bool | float:
            nonlocal paid_perhaps
            if not isinstance(error, CallFault):
                return False
            paid_perhaps = paid_perhaps or error.kind not in _UNSENT
            if not error.retry or (error.wait_s or 0.0) > endpoint.max_wait_s:
                return False
            if tried < endpoint.attempts:
                on_retry(error.message)
            return True if error.wait_s is None else error.wait_s

        failed: list[CallFault] = []
        try:  # most calls succeed at once and need no machinery for retries
            tried = 1
            return await self._spelled(request, check)
        except CallFault as fault:
            failed.append(fault)
            tried = 0
        retrying = stamina.retry_context(
            on=again,
            attempts=endpoint.attempts,
            timeout=None,
            wait_initial=endpoint.backoff_s,
            wait_max=endpoint.max_wait_s,
            wait_jitter=endpoint.backoff_s,
        )
        try:
            async for attempt in retrying:
                with attempt:
                    tried += 1
                    if failed:
                        raise failed.pop()
                    reply = await self._spelled(request, check)
                    return replace(reply, attempts=tried) if tried > 1 else reply
        except CallFault as fault:
            if fault.kind in _RESULTS:
                return Reply(
                    "", finish=_RESULTS[fault.kind], warnings=(fault.message,), attempts=tried
                )
            raise self._final(fault, tried, loop.time() - start, paid_perhaps) from None
        raise AssertionError("a retry loop ends with a reply or a fault")

    def _final(
        self, fault: CallFault, tried: int, seconds: float, paid_perhaps: bool
    ) -> CallFailed | CallImpossible:
        endpoint, url = self.endpoint, self.place.shown
        name = f"{endpoint.name}/{self.model}"
        message = fault.message
        if fault.kind in (FaultKind.IMPOSSIBLE, FaultKind.PARAMETER, FaultKind.QUOTA):
            if fault.status in (401, 403) and endpoint.api_key_env:
                message += f"; look at {endpoint.api_key_env}"
            return CallImpossible(f"{name}: {message}. No retry can help.")
        if fault.kind is FaultKind.UNREACHABLE and not self.place.answered:
            return CallImpossible(
                f"{name}: {url} cannot be reached after {counted(tried, 'attempt')} ({message}). "
                "Is the server running, and base_url right?"
            )
        if (wait := fault.wait_s or 0.0) > endpoint.max_wait_s:
            message += (
                f"; it asks to wait {wait:g} s, more than max_wait_s = {endpoint.max_wait_s:g}"
            )
        return CallFailed(
            f"{name} at {url}: no reply after {tried} attempt{'s' * (tried > 1)} "
            f"and {seconds:.1f} s ({message})",
            paid_perhaps=paid_perhaps,
        )

    async def _spelled(self, request: Request, check: Callable[[], None]) -> Reply:
        """One attempt; a parameter the server refuses is spelled as it accepts it, once for all."""
        while True:
            payload = self.provider.payload(self.model, request)
            made = tuple(s for c, s in self.changes.items() if apply_change(payload, c))
            try:
                content = json.dumps(payload, default=dict).encode()
                reply = await self._attempt(content, request, check)
                return replace(reply, changes=made) if made else reply
            except CallFault as fault:
                if fault.kind is not FaultKind.PARAMETER:
                    raise
                change = respelled(payload, fault.parameter, fault.message)
                if change is None:
                    raise
                self.changes.setdefault(*change)

    async def _attempt(self, content: bytes, request: Request, check: Callable[[], None]) -> Reply:
        place = self.place
        limiter, places = place.limiter, place.limiter.places
        if limiter.rated:
            await limiter.wait_for_rate(prompt_tokens(request) + (request.max_tokens or 0))
        ticket = await places.acquire()
        good = pressed = False
        try:
            check()
            loop = asyncio.get_running_loop()
            start = loop.time()
            try:
                async with asyncio.timeout(self.endpoint.timeout_s):
                    # A stream rather than content: httpx then prepares no headers, ours are whole.
                    stream = httpx.ByteStream(content)
                    sent = httpx.Request("POST", place.url, headers=place.headers, stream=stream)
                    sent.read()
                    response = await place.transport.handle_async_request(sent)
                    try:
                        await response.aread()
                    finally:
                        await response.aclose()
            except TimeoutError:
                said = f"no whole reply within {self.endpoint.timeout_s:g} s"
                raise CallFault(FaultKind.TIMEOUT, said) from None
            except _NETWORK_ERRORS as error:
                fault = network_fault(error)
                fault = CallFault(fault.kind, place.redact(fault.message))
                raise fault from None
            took = loop.time() - start
            body = place.redact.clean_bytes(response.content)
            if response.status_code > 299:
                raise fault_of_status(response.status_code, response.headers, body, url=place.shown)
            place.answered = True
            content_type = response.headers.get("content-type", "")
            reply = self.provider.read(json_body(body, content_type, url=place.shown))
            good = True
        except CallFault as fault:
            pressed = fault.slows_down
            raise
        finally:
            places.release(ticket, good=good, pressed=pressed)
        warning = cut_prompt_warning(request, reply.usage)
        warnings = (*reply.warnings, warning) if warning else reply.warnings
        return replace(reply, latency_s=took, warnings=warnings)


class Network:
    """The connections of one client; lines of one endpoint share its limits."""

    def __init__(
        self,
        endpoints: Endpoints,
        redact: Redactor,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._endpoints, self._redact, self._transport = endpoints, redact, transport
        self._places: dict[str, Place] = {}
        self._lines: dict[str, Line] = {}
        self._ways: dict[tuple[str | None, str | None, bool], httpx.AsyncBaseTransport] = {}
        self._opening = asyncio.Lock()

    async def line(self, model: str) -> Line:
        """The line to "endpoint/model"; starts the endpoint if it has to be started.

        Raises:
            ConfigError: If the endpoint is unknown, or its key, CA or proxy is missing or wrong.
        """
        endpoint, bare = self._endpoints.of(model)
        async with self._opening:
            if model not in self._lines:
                if endpoint.name not in self._places:
                    self._places[endpoint.name] = await self._place(endpoint)
                self._lines[model] = Line(
                    self._places[endpoint.name], bare, PROVIDERS[endpoint.dialect]
                )
        return self._lines[model]

    async def _place(self, endpoint: Endpoint) -> Place:
        key = self._endpoints.key_of(endpoint)
        base_url = endpoint.base_url
        if base_url is None:
            starter = self._endpoints.starters.get(endpoint.name)
            if starter is None:
                raise ConfigError(f"endpoint {endpoint.name!r} has no base_url and no starter.")
            base_url = await asyncio.to_thread(starter, endpoint)
        url = chat_url(base_url, endpoint.dialect)
        transport = self._transport
        if transport is None:
            proxy = proxy_for(url)
            secure = any(a.lower().startswith("https:") for a in (url, proxy or ""))
            way = (proxy, endpoint.ca_file, secure)
            if way not in self._ways:
                self._ways[way] = open_transport(
                    proxy=proxy, ca_file=endpoint.ca_file, secure=secure
                )
            transport = self._ways[way]
        headers = {
            "accept": "application/json",
            "accept-encoding": "gzip, deflate",
            "content-type": "application/json",
            "user-agent": "evalkit",
            **PROVIDERS[endpoint.dialect].headers(key),
        }
        return Place(
            endpoint,
            httpx.URL(url),
            self._redact(shown_url(url)),
            httpx.Headers(headers),
            EndpointLimiter(endpoint),
            transport,
            self._redact,
        )

    async def aclose(self) -> None:
        """Close all connections."""
        for transport in self._ways.values():
            await transport.aclose()
        await asyncio.sleep(0)  # lets the closed transports say goodbye

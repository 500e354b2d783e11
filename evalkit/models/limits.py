"""Limits of one endpoint: calls at a time (adaptive), requests and tokens per minute."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from evalkit.models.endpoints import Endpoint

if TYPE_CHECKING:
    from aiolimiter import AsyncLimiter

__all__ = ["AdaptiveLimit", "EndpointLimiter"]


class AdaptiveLimit:
    """At most `bound` at a time, first come first served; halves under pressure, then grows back.

    It starts at the bound. Of all calls that were under way when it halved, only the first counts:
    thirty-two refusals of one burst are one piece of news. Each good reply adds 1/limit, so that a
    round of good replies adds one.
    """

    def __init__(self, bound: int) -> None:
        self.bound = bound
        self.limit = float(bound)
        self.in_use = 0
        self._generation = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def acquire(self) -> int:
        """Wait for a place; returns a ticket for `release`."""
        if self.in_use < int(self.limit) and not self._waiting:
            self.in_use += 1
            return self._generation
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():  # it was given in the same moment
                self.in_use -= 1
                self._admit()
            raise
        return self._generation

    def release(self, ticket: int, *, good: bool = False, pressed: bool = False) -> None:
        """Give the place back: `good` after a reply, `pressed` after a 429 or 503."""
        self.in_use -= 1
        if good and self.limit < self.bound:
            self.limit = min(float(self.bound), self.limit + 1 / self.limit)
        elif pressed and ticket == self._generation:
            self.limit = max(1.0, self.limit / 2)
            self._generation += 1
        if self._waiting:
            self._admit()

    def _admit(self) -> None:
        while self._waiting and self.in_use < int(self.limit):
            place = self._waiting.popleft()
            if not place.done():
                self.in_use += 1
                place.set_result(None)


class EndpointLimiter:
    """The limits an endpoint's table states, for one client."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.places = AdaptiveLimit(endpoint.max_concurrency)
        self._requests = _per_minute(endpoint.requests_per_minute)
        self._tokens = _per_minute(endpoint.tokens_per_minute)

    @property
    def rated(self) -> bool:
        """True when calls or tokens per minute are limited."""
        return bool(self._requests or self._tokens)

    async def wait_for_rate(self, tokens: int) -> None:
        """Wait until the minute has room for one more call of so many tokens."""
        if self._requests:
            await self._requests.acquire()
        if self._tokens:
            left = float(tokens)
            while left > 0:
                piece = min(left, self._tokens.max_rate)
                await self._tokens.acquire(piece)
                left -= piece


def _per_minute(limit: int | None) -> AsyncLimiter | None:
    """A bucket that holds a second's worth: no burst can pass the minute's limit noticeably."""
    if not limit:
        return None
    from aiolimiter import AsyncLimiter  # only where a limit is stated

    burst = max(1.0, limit / 60)
    return AsyncLimiter(burst, 60 * burst / limit)

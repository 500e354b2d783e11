"""Money: what a run will cost at most, what it has cost, and the budget it may not cross."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from evalkit.counting import counted
from evalkit.errors import BudgetReached, ConfigError
from evalkit.models.endpoints import Endpoint
from evalkit.records import Request, Usage

__all__ = ["METHOD", "Budget", "Estimate", "Spend", "SpendLine", "prompt_tokens"]

METHOD = "prompt: UTF-8 bytes / 3 and 4 a message; answer: max_tokens"
_UNBOUNDED_ANSWER = 4096  # assumed where a request states no max_tokens


def prompt_tokens(request: Request) -> int:
    """Prompt tokens by `METHOD`: some 30 % above the count of common tokenizers on English text."""
    return sum(len(m.content.encode("utf-8", "replace")) // 3 + 4 for m in request.messages)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a set of calls would take. `cost_usd` is an upper estimate, None where unknown.

    `completion_tokens` is what the calls allow at most, 4,096 each without `max_tokens`. `unpriced`
    names endpoints without prices, `price_dates` the dates at which the others were read.
    """

    new: int
    recorded: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    price_dates: tuple[str, ...] = ()
    unpriced: tuple[str, ...] = ()
    method: str = METHOD

    def __str__(self) -> str:
        calls = f"{counted(self.new, 'new call')}, {self.recorded} recorded"
        if not self.new:
            return f"{calls}; nothing to pay"
        if self.cost_usd is None:
            return f"{calls}; price unknown for {', '.join(self.unpriced)}"
        dates = f" (prices of {', '.join(self.price_dates)})" if self.price_dates else ""
        return f"{calls}; at most ${self.cost_usd:.4f}{dates}"


def estimate(new: Iterable[tuple[Endpoint, Request]], recorded: int) -> Estimate:
    """Add up calls that are not recorded yet."""
    calls = prompt = answer = 0
    cost = 0.0
    dates: set[str] = set()
    unpriced: set[str] = set()
    for endpoint, request in new:
        calls += 1
        p, a = prompt_tokens(request), request.max_tokens or _UNBOUNDED_ANSWER
        prompt, answer = prompt + p, answer + a
        if (usd := cost_of(endpoint, p, a)) is None:
            unpriced.add(endpoint.name)
        else:
            cost += usd
            if endpoint.price_date:
                dates.add(endpoint.price_date)
    return Estimate(
        calls,
        recorded,
        prompt,
        answer,
        None if unpriced else cost,
        tuple(sorted(dates)),
        tuple(sorted(unpriced)),
    )


def cost_of(endpoint: Endpoint, prompt: int, completion: int) -> float | None:
    """US dollars for so many tokens, None where a price is unknown."""
    low, high = endpoint.price_input_usd_per_mtok, endpoint.price_output_usd_per_mtok
    return None if low is None or high is None else (prompt * low + completion * high) / 1e6


@dataclass(slots=True)
class SpendLine:
    """What one model was paid for one purpose; `usd` counts the replies whose cost is known."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float = 0.0
    cost_unknown: int = 0  # replies without usage, or an endpoint without prices


@dataclass(slots=True)
class Spend:
    """What calls cost so far, by (model, purpose), and how many replies were recorded."""

    lines: dict[tuple[str, str], SpendLine] = field(default_factory=dict)
    recorded: int = 0

    @property
    def calls(self) -> int:
        """Replies that were paid for."""
        return sum(line.calls for line in self.lines.values())

    @property
    def usd(self) -> float | None:
        """The known cost; None when any reply's cost is unknown."""
        if any(line.cost_unknown for line in self.lines.values()):
            return None
        return sum(line.usd for line in self.lines.values())

    def add(self, model: str, purpose: str, endpoint: Endpoint, usage: Usage | None) -> None:
        """Count one reply that was paid for."""
        line = self.lines.get((model, purpose))
        if line is None:
            line = self.lines[(model, purpose)] = SpendLine()
        line.calls += 1
        prompt = usage.prompt_tokens if usage else None
        completion = usage.completion_tokens if usage else None
        line.prompt_tokens += prompt or 0
        line.completion_tokens += completion or 0
        usd = cost_of(endpoint, prompt or 0, completion or 0)
        if usd is None or (None in (prompt, completion) and not endpoint.free):
            line.cost_unknown += 1
        else:
            line.usd += usd


class Budget:
    """Lets a call through only while everything sent and under way stays within `max_usd`.

    A call under way counts with its upper estimate until its reply says what it used; a reply
    without usage keeps the estimate. A call that does not fit waits for those under way.
    """

    def __init__(self, max_usd: float) -> None:
        self.max_usd = max_usd
        self.committed = 0.0
        self._under_way = 0
        self._settled = asyncio.Event()

    async def reserve(self, endpoint: Endpoint, request: Request) -> float:
        """Take the upper estimate of one call from the budget, and return it.

        Raises:
            BudgetReached: If the call might cross the budget.
            ConfigError: If nobody can tell, because a price or `max_tokens` is not stated.
        """
        if not endpoint.priced:
            raise ConfigError(
                f"a budget of ${self.max_usd:g} cannot be kept: endpoint {endpoint.name!r} states "
                "no prices. Add price_input_usd_per_mtok and price_output_usd_per_mtok."
            )
        if request.max_tokens is None and not endpoint.free:
            raise ConfigError(
                f"a budget of ${self.max_usd:g} cannot be kept: a request to {request.model} "
                "states no max_tokens, so its answer may cost anything."
            )
        usd = cost_of(endpoint, prompt_tokens(request), request.max_tokens or 0) or 0.0
        while self.committed + usd > self.max_usd:
            if not self._under_way:
                raise BudgetReached(
                    f"the budget of ${self.max_usd:g} is reached: ${self.committed:.4f} are spent, "
                    f"and the next call may cost ${usd:.4f}. It was not sent; what arrived is "
                    "kept. Raise the budget to go on."
                )
            self._settled.clear()
            await self._settled.wait()
        self.committed += usd
        self._under_way += 1
        return usd

    def settle(
        self, reserved: float, endpoint: Endpoint, usage: Usage | None, *, free: bool = False
    ) -> None:
        """Replace a reservation by what the reply used; by nothing when the call was `free`."""
        self._under_way -= 1
        self._settled.set()
        if free:
            self.committed -= reserved
        elif usage and usage.prompt_tokens is not None and usage.completion_tokens is not None:
            self.committed -= reserved
            self.committed += cost_of(endpoint, usage.prompt_tokens, usage.completion_tokens) or 0

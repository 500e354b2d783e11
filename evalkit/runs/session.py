"""One project as a notebook sees it: where calls go, where they are kept, what a run would cost."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from evalkit.counting import all_of, counted
from evalkit.judges.judge import Pairing
from evalkit.models.client import Client
from evalkit.models.endpoints import Endpoints, load_endpoints
from evalkit.models.prices import Estimate
from evalkit.models.recordings import load_recordings
from evalkit.models.store import CallStore
from evalkit.records import Reply, Request
from evalkit.runs.plan import Plan

__all__ = ["Price", "Workbench", "bill", "price_of"]


class Workbench:
    """The project's endpoints and its call store, opened when first used.

    Args:
        out: The folder `exports/`.
        endpoints: Where models are; from pyproject.toml by default.
    """

    def __init__(self, out: Path | str = "exports", endpoints: Endpoints | None = None) -> None:
        self.out = Path(out)
        self._endpoints = endpoints

    @cached_property
    def endpoints(self) -> Endpoints:
        """The project's endpoints."""
        return self._endpoints or load_endpoints()

    @cached_property
    def store(self) -> CallStore:
        """Every reply ever received."""
        return CallStore(self.out / "calls.sqlite")

    @property
    def runs(self) -> Path:
        """The folder of runs."""
        return self.out / "runs"

    def client(
        self,
        *,
        live: bool = True,
        fresh: bool = False,
        max_cost_usd: float = 0.0,
        deadline_s: float = 0.0,
        recordings: Path | None = None,
        on_event: Any = None,
    ) -> Client:
        """A client over the project's store; open it with `async with`.

        Args:
            live: False asks nobody.
            fresh: Draw new samples.
            max_cost_usd: Budget in US dollars; 0 means none.
            deadline_s: Seconds after which no call is sent; 0 means none.
            recordings: A file or folder of recorded replies.
            on_event: Told of each call.
        """
        there = recordings is not None and recordings.exists()
        return Client(
            self.endpoints,
            store=self.store,
            recordings=load_recordings(recordings) if there and recordings else None,
            live=live,
            fresh=fresh,
            max_cost_usd=max_cost_usd or None,
            deadline_s=deadline_s or None,
            on_event=on_event,
        )

    def close(self) -> None:
        """Close the store, if it was opened."""
        if "store" in self.__dict__:
            self.store.close()


@dataclass(frozen=True)
class Price:
    """What a plan would take: its own calls, and at most so many by judges.

    `seconds` is a guess from the latency of recorded replies, None without any.
    """

    cases: int
    repeats: int
    task: Estimate
    judge_calls: int
    judge_usd: float | None
    seconds: float | None

    @property
    def new_calls(self) -> int:
        """Calls that would be sent, judges included."""
        return self.task.new + self.judge_calls

    @property
    def usd(self) -> float | None:
        """At most so many US dollars; None where a price is unknown."""
        if self.task.cost_usd is None or self.judge_usd is None:
            return None
        return self.task.cost_usd + self.judge_usd

    @property
    def label(self) -> str:
        """What the button says: `Run 24 x 3 · 41 new calls · at most $0.02 · about 40 s`."""
        if not self.new_calls:
            return f"Show · {all_of(self.task.recorded, 'reply')} recorded"
        judges = f" + up to {self.judge_calls} by judges" if self.judge_calls else ""
        calls = f"{counted(self.task.new, 'new call')}{judges}"
        return f"Run {self.cases} x {self.repeats} · {calls} · {bill(self.usd, self.seconds)}"


def price_of(
    plan: Plan, client: Client, baseline: Mapping[tuple[str, int], Reply] | None = None
) -> Price:
    """The price of a plan; asks nobody.

    Calls of judges are counted exactly where the reply is recorded, at most where it is not.
    """
    requests = [] if plan.suite.task.entry else list(plan.requests())
    estimate = client.estimate(requests)
    recorded = {} if client.fresh else client.recorded(requests)
    known, unknown = _judge_requests(plan, client, recorded, baseline or {})
    judging = client.estimate(known)
    unpriced = any(_usd_unknown(client, judge.model) for judge in plan.judged.values() if unknown)
    latencies = [r.latency_s for r in recorded.values() if r.latency_s is not None]
    at_once = client.endpoints.of(plan.model)[0].max_concurrency if requests else 1
    calls = estimate.new + judging.new + unknown
    return Price(
        cases=len(plan.sample),
        repeats=plan.repeats,
        task=estimate,
        judge_calls=judging.new + unknown,
        judge_usd=None if unpriced else judging.cost_usd,
        seconds=statistics.median(latencies) * calls / at_once if latencies and calls else None,
    )


def _judge_requests(
    plan: Plan,
    client: Client,
    recorded: Mapping[str, Reply],
    baseline: Mapping[tuple[str, int], Reply],
) -> tuple[list[Request], int]:
    """Judges' calls for replies at hand, and how many at most for those still to come."""
    known: list[Request] = []
    unknown = 0
    for case, repeat in plan.observations() if plan.judged else _nothing():
        reply = None
        if not plan.suite.task.entry:
            reply = recorded.get(client.key_of(plan.request(case, repeat)))
        asked: set[str] = set()
        for criterion in plan.criteria:
            judge = plan.judged.get(criterion.name)
            if judge is None or not criterion.applies_to(case) or judge.hash in asked:
                continue
            if not judge.model:
                continue
            asked.add(judge.hash)
            against = baseline.get((case.id, repeat))
            if criterion.against and against is None:
                continue
            if reply is None:
                unknown += 2 if criterion.against else 1
            elif criterion.against and against is not None:
                known += judge.pair_requests(case, reply, against, how=Pairing(seed=plan.seed))
            else:
                known += judge.requests(case, reply)
    return known, unknown


def _usd_unknown(client: Client, model: str) -> bool:
    endpoint = client.endpoints.of(model)[0]
    return not endpoint.free


def _nothing() -> Iterator[Any]:
    return iter(())


def bill(usd: float | None, seconds: float | None) -> str:
    """How every button that costs something ends: `at most $0.02 · about 40 s`."""
    money = "price unknown" if usd is None else f"at most ${usd:.2f}" if usd else "free"
    return money if seconds is None else f"{money} · about {_duration(seconds)}"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"

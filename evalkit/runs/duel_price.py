"""What a comparison would take: replies still to be asked for, and verdicts on them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from evalkit.counting import all_of, counted
from evalkit.judges import contest_requests
from evalkit.judges.contest import Match, Matches
from evalkit.models.client import Client
from evalkit.models.prices import Estimate
from evalkit.records import Reply, Request
from evalkit.runs.duel import DuelPlan, Key
from evalkit.runs.duel_sides import Side
from evalkit.runs.plan import Plan
from evalkit.runs.session import bill

__all__ = ["DuelPrice", "price_duel"]


@dataclass(frozen=True)
class DuelPrice:
    """What a comparison would take. `judge_unknown` are verdicts on replies still to come, at most.

    `seconds` is a guess from the latency of recorded replies, None without any.
    """

    pairs: int
    task: Estimate
    judge: Estimate
    judge_unknown: int
    priced: bool
    seconds: float | None

    @property
    def new_calls(self) -> int:
        """Calls that would be sent, at most."""
        return self.task.new + self.judge.new + self.judge_unknown

    @property
    def usd(self) -> float | None:
        """At most so many US dollars; None where a price is unknown."""
        known = (self.task.cost_usd, self.judge.cost_usd)
        return None if None in known or not self.priced else sum(x for x in known if x)

    @property
    def label(self) -> str:
        """What the button says."""
        if not self.new_calls:
            recorded = self.task.recorded + self.judge.recorded
            return f"Show · {counted(self.pairs, 'pair')} · {all_of(recorded, 'reply')} recorded"
        most = "up to " if self.judge_unknown else ""
        verdicts = counted(self.judge.new + self.judge_unknown, "verdict")
        asked = f"{counted(self.task.new, 'reply')} and {most}{verdicts}"
        cost = bill(self.usd, self.seconds or None)
        return f"Compare {counted(self.pairs, 'pair')} · {asked} · {cost}"


def price_duel(plan: DuelPlan, client: Client) -> DuelPrice:
    """What a comparison would take; asks nobody."""
    sides: list[dict[Key, Reply]] = []
    asked: list[Request] = []
    for side, run in zip(plan.sides, plan.plans, strict=True):
        requests = [] if run is None or plan.suite.task.entry else list(run.requests())
        asked += requests
        sides.append(_known_replies(side, run, requests, client))
    recorded = client.recorded(asked)
    pairs = [
        Match(case, repeat, sides[0][case.id, repeat], sides[1][case.id, repeat])
        for case in plan.cases
        for repeat in range(plan.repeats)
        if all((case.id, repeat) in side for side in sides)
    ]
    judging = [r for j in plan.judges for r in contest_requests(Matches(tuple(pairs)), j, plan.how)]
    unknown = plan.most_pairs - len(pairs) if any(plan.plans) else 0
    calls = unknown * (1 if plan.how.one_order else 2) * len(plan.judges)
    task, judge = client.estimate(asked), client.estimate(judging)
    known = [r.latency_s for r in (*recorded.values(), *client.recorded(judging).values())]
    typical = [s for s in known if s is not None]
    at_once = client.endpoints.of(plan.judges[0].model)[0].max_concurrency
    new = task.new + judge.new + calls
    return DuelPrice(
        len(pairs) + unknown,
        task,
        judge,
        calls,
        priced=not calls or all(client.endpoints.of(j.model)[0].free for j in plan.judges),
        seconds=statistics.median(typical) * new / at_once if typical and new else None,
    )


def _known_replies(
    side: Side, run: Plan | None, requests: Sequence[Request], client: Client
) -> dict[Key, Reply]:
    """The replies of one side that are there already."""
    if side.run is not None:
        return {(r.case_id, r.repeat): r.reply for r in side.run if r.reply is not None}
    if run is None:
        return {(name, 0): Reply(text) for name, text in side.drafts.items()}
    if not requests:
        return {}
    recorded = client.recorded(requests)
    keyed = zip(run.observations(), requests, strict=True)
    found = {(c.id, k): recorded.get(client.key_of(request)) for (c, k), request in keyed}
    return {key: reply for key, reply in found.items() if reply is not None}

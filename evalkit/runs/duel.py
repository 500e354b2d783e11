"""Two sides against each other: plan, price, answers where they are missing, and every verdict.

A draft that fails a hard criterion is judged here all the same (docs/decisions/0065): the question
is which draft a reader would rather have, and the scorers' findings stand beside the verdict.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from evalkit.cases.sample import Sample, draw
from evalkit.cases.suite import Suite
from evalkit.errors import BudgetReached, CallFailed, JudgeError, UsageError
from evalkit.judges import Judge, Pairing, PairVerdict, contest, load_judge
from evalkit.judges import matches as join
from evalkit.judges.contest import Match, Matches
from evalkit.judges.trivial import trivial_judges
from evalkit.models.client import Client
from evalkit.records import Case, Reply, Request, Row, RowStatus
from evalkit.runs.duel_sides import Side
from evalkit.runs.execute import Progress, execute
from evalkit.runs.observe import observe
from evalkit.runs.plan import Plan, make_plan

__all__ = ["Duel", "DuelPlan", "Key", "fight", "load_pairwise", "plan_duel"]

Key = tuple[str, int]
"""A case and its repeat."""


@dataclass(frozen=True)
class DuelPlan:
    """What will be compared, before anything is asked.

    `plans` hold the run of each side that is a prompt, None for a side already recorded. `notes`
    are sentences a reader must know.
    """

    suite: Suite
    sides: tuple[Side, Side]
    plans: tuple[Plan | None, Plan | None]
    cases: tuple[Case, ...]
    repeats: int
    judges: tuple[Judge, ...]
    how: Pairing
    notes: tuple[str, ...] = ()

    @property
    def most_pairs(self) -> int:
        """Pairs at most: cases times repeats."""
        return len(self.cases) * self.repeats

    def asks_what(self, other: DuelPlan) -> bool:
        """Whether another plan compares the same sides on the same cases by the same judges."""

        def of(plan: DuelPlan) -> tuple[Any, ...]:
            sides = [dict(side.identity) for side in plan.sides]
            cases = [case.id for case in plan.cases]
            return sides, cases, plan.repeats, [j.hash for j in plan.judges], plan.how

        return of(self) == of(other)


@dataclass(frozen=True)
class Duel:
    """A comparison that was made: pairs in case order, and each judge's verdict on every pair.

    `verdicts` maps a judge's name to its verdicts in the order of `found.pairs`; the judges of the
    plan come first, then the trivial ones. `stopped` says why it ended early, "" when it did not.
    """

    plan: DuelPlan
    found: Matches
    rows: tuple[Mapping[Key, Row], Mapping[Key, Row]] = field(repr=False)
    judges: tuple[Judge, ...]
    verdicts: Mapping[str, tuple[PairVerdict, ...]] = field(repr=False)
    calls: Mapping[str, Any]
    stopped: str = ""

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """Case and repeat of each pair, in order."""
        return tuple((m.case.id, m.repeat) for m in self.found.pairs)

    @cached_property
    def _place(self) -> dict[Key, int]:
        return {key: i for i, key in enumerate(self.keys)}

    def pair(self, key: Key) -> tuple[Match, Row, Row]:
        """One pair with both rows."""
        return self.found.pairs[self._place[key]], self.rows[0][key], self.rows[1][key]

    def verdict(self, judge: str, key: Key) -> PairVerdict:
        """What a judge said of one pair."""
        return self.verdicts[judge][self._place[key]]

    @property
    def asked(self) -> tuple[Judge, ...]:
        """The judges that are no trivial ones."""
        return self.judges[: len(self.plan.judges)]


def load_pairwise(names: str, suite: Suite, model: str = "") -> tuple[Judge, ...]:
    """The pairwise judges of a flag: files relative to the suite or paths, parted by commas.

    Raises:
        JudgeError: If one is missing, wrong, of another kind, or named like another.
    """
    found: list[Judge] = []
    for name in filter(None, (part.strip() for part in names.split(","))):
        inside = suite.folder / name
        judge = load_judge(inside if inside.is_file() else name, model=model or None)
        if judge.kind != "pairwise":
            raise JudgeError(
                f"{name} is a {judge.kind} judge; two drafts are compared by one of kind pairwise."
            )
        if judge.name in {other.name for other in (*found, *trivial_judges())}:
            raise JudgeError(f"{name}: another judge is called {judge.name!r}; rename one.")
        found.append(judge)
    if not found:
        raise JudgeError("no judge: give --judge a file of kind pairwise.")
    return tuple(found)


def plan_duel(
    suite: Suite,
    a: Side,
    b: Side,
    judges: Sequence[Judge],
    *,
    sample: int,
    repeats: int = 1,
    seed: int = 7,
    one_order: bool = False,
) -> DuelPlan:
    """Which cases are compared, and what has to be asked for it.

    Two prompts are run on one sample; a prompt against something recorded is run on a sample of its
    cases; two recorded sides are compared on all they share.

    Raises:
        UsageError: If they share no case.
    """
    names = tuple(
        s.identity["drafts"] for s in (a, b) if s.drafts and len(s.identity["drafts"]) > 2
    )
    how = Pairing(one_order=one_order, seed=seed, names=names)
    recorded = [set(_ids(side)) for side in (a, b) if side.recorded]
    known = {case.id for case in suite.cases}
    notes: list[str] = []
    shared = set.intersection(*recorded) if recorded else known
    if recorded and not shared:
        raise UsageError(f"{a.name} and {b.name} have no case in common.")
    if a.drafts and b.drafts and not (set(a.drafts) | set(b.drafts)) & known:
        notes.append("the drafts are not named after cases: no scorer and no question beside them")
        cases = tuple(Case(id=name, inputs={"question": ""}) for name in sorted(shared))
        return DuelPlan(suite, (a, b), (None, None), cases, 1, tuple(judges), how, tuple(notes))
    cases = tuple(case for case in suite.cases if case.id in shared)
    if not cases:
        raise UsageError(f"no case of suite {suite.name!r} stands on both sides.")
    for letter, side in (("A", a), ("B", b)):
        if side.run and side.run.manifest.suite_digest != suite.digest:
            notes.append(f"{letter} was run on other cases or criteria than the suite holds now")
        if side.run and side.run.manifest.sampling.get("allocation") == "equal":
            notes.append(
                f"{letter} drew the same number of cases from each stratum: rates speak of these "
                "cases, not of the traffic"
            )
        if side.origin not in ("model", "files"):
            notes.append(f"{letter} is {side.origin}: no model gave these replies")
    stated = [int(s.run.manifest.sampling.get("repeats", 1)) if s.run else 1 for s in (a, b)]
    fixed = [n for n, side in zip(stated, (a, b), strict=True) if side.recorded]
    repeats = min(fixed, default=repeats)
    plans: tuple[Plan | None, Plan | None] = (None, None)
    if len(recorded) < 2:
        mix = None if recorded else suite.sampling.mix
        chosen = draw(cases, sample, mix=mix, seed=seed)
        first, second = (_side_plan(suite, side, seed, repeats, chosen) for side in (a, b))
        plans, cases = (first, second), chosen.cases
        notes += chosen.warnings
    said = tuple(dict.fromkeys(notes))
    return DuelPlan(suite, (a, b), plans, cases, repeats, tuple(judges), how, said)


async def fight(
    plan: DuelPlan,
    client: Client,
    *,
    runs: Path | None = None,
    progress: Progress | None = None,
) -> Duel:
    """Ask what is missing, then let every judge compare every pair in both orders.

    Args:
        plan: From `plan_duel`.
        client: Where calls go; open.
        runs: Folder of runs, for sides that are prompts.
        progress: Counts replies, then pairs.

    Raises:
        CallImpossible: If a call can never succeed.
        UsageError: If no pair has both replies.
    """
    progress = progress or Progress()
    progress.total = sum(len(p) for p in plan.plans if p) + plan.most_pairs * len(plan.judges)
    asker = _Asker(client)
    rows = [
        await _rows(plan, side, run, client, runs, progress, asker)
        for side, run in zip(plan.sides, plan.plans, strict=True)
    ]
    found = join(plan.cases, *rows)
    if not found.pairs:
        why = "; ".join(dict.fromkeys(reason for *_, reason in found.left_out))
        raise UsageError(f"no case has a reply on both sides: {why or asker.stopped}.")
    progress.total += (len(found.pairs) - plan.most_pairs) * len(plan.judges)
    judges = (*plan.judges, *trivial_judges())
    verdicts: dict[str, tuple[PairVerdict, ...]] = {}
    for judge in judges:
        count = (lambda v: progress.count(_as_row(v))) if judge in plan.judges else None
        verdicts[judge.name] = await contest(found, judge, asker, plan.how, on_done=count)
    spend = client.spend
    calls = {"new": spend.calls, "recorded": spend.recorded, "usd": spend.usd}
    by_key = tuple({(row.case_id, row.repeat): row for row in side} for side in rows)
    return Duel(plan, found, (by_key[0], by_key[1]), judges, verdicts, calls, asker.stopped)


class _Asker:
    """Sends the judges' calls; where the budget ends, what is left counts as not answered."""

    def __init__(self, client: Client) -> None:
        self.client, self.stopped = client, ""

    async def __call__(self, request: Request) -> Reply:
        try:
            return await self.client.ask(request, purpose="judge")
        except BudgetReached as reached:
            self.stopped = str(reached)
            raise CallFailed(str(reached), paid_perhaps=False) from reached


async def _rows(
    plan: DuelPlan,
    side: Side,
    run: Plan | None,
    client: Client,
    runs: Path | None,
    progress: Progress,
    asker: _Asker,
) -> tuple[Row, ...]:
    if run is not None:
        done = await execute(run, client, runs=runs, on_row=progress.count)
        asker.stopped = asker.stopped or done.manifest.stopped
        return done.rows
    if side.run is not None:
        return side.run.rows
    measured = make_plan(plan.suite)
    known = {case.id for case in plan.suite.cases}
    cases = {case.id: case for case in (*plan.suite.cases, *plan.cases)}
    rows: list[Row] = []
    for name, text in side.drafts.items():
        reply = Reply(text)
        if name in known:
            rows.append(await observe(measured, cases[name], 0, reply, asker))
            await asyncio.sleep(0)  # a stop button is heard between two drafts
        else:
            stratum = cases[name].stratum if name in cases else "all"
            rows.append(Row(name, stratum, 0, "", reply, RowStatus.OK))
    return tuple(rows)


def _side_plan(suite: Suite, side: Side, seed: int, repeats: int, sample: Sample) -> Plan | None:
    if side.prompt is None:
        return None
    plan = make_plan(suite, prompt=side.prompt, repeats=repeats, seed=seed)
    return replace(plan, sample=sample)


def _ids(side: Side) -> Iterable[str]:
    return side.run.by_case() if side.run else side.drafts


def _as_row(verdict: PairVerdict) -> Row:
    """A judged pair as the progress counts it: without a reply where a judge gave none."""
    missing = any(v.status == "missing" for v in verdict.verdicts)
    reply = None if missing else Reply("")
    return Row(verdict.case_id, verdict.stratum, verdict.repeat, "", reply, RowStatus.OK)

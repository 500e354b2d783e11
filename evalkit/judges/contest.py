"""Two runs against each other: every case and repeat that both answered, one pair verdict each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from evalkit.judges.judge import BOTH_ORDERS, Ask, Judge, Pairing, PairVerdict
from evalkit.records import Case, Reply, Request, Row
from evalkit.stats.pairwise import SwapReport, swap_protocol

__all__ = [
    "Match",
    "Matches",
    "contest",
    "contest_requests",
    "matches",
    "swap_report",
]


@dataclass(frozen=True, slots=True)
class Match:
    """One case and repeat with both runs' replies."""

    case: Case
    repeat: int
    a: Reply
    b: Reply


@dataclass(frozen=True, slots=True)
class Matches:
    """What can be compared, and what cannot: (case id, repeat, why), never silently dropped."""

    pairs: tuple[Match, ...]
    left_out: tuple[tuple[str, int, str], ...] = ()


def matches(cases: Iterable[Case], rows_a: Sequence[Row], rows_b: Sequence[Row]) -> Matches:
    """Join two runs by case and repeat, in the order of the first."""
    by_id = {case.id: case for case in cases}
    a, b = _by_key(rows_a), _by_key(rows_b)
    pairs: list[Match] = []
    left: list[tuple[str, int, str]] = []
    for key in dict.fromkeys([*a, *b]):
        case, one, other = by_id.get(key[0]), a.get(key), b.get(key)
        if case is None:
            left.append((*key, "the case is not in the suite"))
        elif one is None or other is None:
            left.append((*key, f"no reply in {'a' if one is None else 'b'}"))
        else:
            pairs.append(Match(case, key[1], one, other))
    return Matches(tuple(pairs), tuple(left))


def _by_key(rows: Sequence[Row]) -> Mapping[tuple[str, int], Reply]:
    return {(r.case_id, r.repeat): r.reply for r in rows if r.reply is not None}


def contest_requests(found: Matches, judge: Judge, how: Pairing = BOTH_ORDERS) -> list[Request]:
    """Every call the contest would send, for the price shown before it."""
    return [
        request for m in found.pairs for request in judge.pair_requests(m.case, m.a, m.b, how=how)
    ]


async def contest(
    found: Matches,
    judge: Judge,
    ask: Ask,
    how: Pairing = BOTH_ORDERS,
    *,
    on_done: Callable[[PairVerdict], None] | None = None,
) -> tuple[PairVerdict, ...]:
    """Judge every pair; the results keep the order of `found.pairs` and the rows' own repeats.

    All pairs are asked at once: the client limits how many calls are in flight. `on_done` sees each
    verdict as it arrives.
    """

    async def one(m: Match) -> PairVerdict:
        verdict = await judge.compare(m.case, m.a, m.b, ask, how=how)
        verdict = replace(verdict, repeat=m.repeat)
        if on_done:
            on_done(verdict)
        return verdict

    tasks = [asyncio.ensure_future(one(m)) for m in found.pairs]
    try:
        return tuple(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()


def swap_report(verdicts: Iterable[PairVerdict]) -> SwapReport:
    """Consistency and lean of a judge over the pairs it was asked in both orders.

    Drafts that settled themselves, and exploratory verdicts, say nothing about the judge.
    """
    asked = [v for v in verdicts if not v.settled and not v.exploratory]
    return swap_protocol([(v.positions[0], v.positions[1]) for v in asked])

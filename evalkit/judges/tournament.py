"""Several drafts of one case: each against each, or each against the baseline; then a ranking."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

from evalkit.errors import JudgeError
from evalkit.judges.judge import BOTH_ORDERS, Ask, Judge, PairVerdict
from evalkit.records import Case, Reply
from evalkit.stats.ranking import Ranking, rank_systems

__all__ = ["Tournament", "ranking", "tournament"]


@dataclass(frozen=True, slots=True)
class Tournament:
    """Who met whom on one case: (name of a, name of b, verdict)."""

    case_id: str
    games: tuple[tuple[str, str, PairVerdict], ...]


async def tournament(
    case: Case,
    drafts: Mapping[str, Reply],
    judge: Judge,
    ask: Ask,
    *,
    baseline: str | None = None,
) -> Tournament:
    """Several drafts of one case: each against each, or each against the baseline.

    The drafts' names are masked too.

    Raises:
        JudgeError: If fewer than two drafts are given, or the baseline is none of them.
    """
    names = list(drafts)
    if len(names) < 2:
        raise JudgeError("comparing needs at least two drafts.")
    if baseline is not None and baseline not in drafts:
        raise JudgeError(f"the baseline {baseline!r} is none of the drafts {', '.join(names)}.")
    pairs = (
        list(combinations(names, 2))
        if baseline is None
        else [(name, baseline) for name in names if name != baseline]
    )
    how = replace(BOTH_ORDERS, names=tuple(names))
    verdicts = await asyncio.gather(
        *(judge.compare(case, drafts[x], drafts[y], ask, how=how) for x, y in pairs)
    )
    games = zip(pairs, verdicts, strict=True)
    return Tournament(case.id, tuple((x, y, v) for (x, y), v in games))


def ranking(played: Iterable[Tournament], *, seed: int = 0, level: float = 0.95) -> Ranking:
    """Rank the drafts' names over many cases: Davidson's model with a position effect.

    The case is the unit of the bootstrap. A game that settled itself counts in both orders.

    Args:
        played: One tournament per case.
        seed: Seed of the bootstrap.
        level: Confidence level, in (0, 1).
    """
    first: list[str] = []
    second: list[str] = []
    said: list[str] = []
    cases: list[str] = []
    for one in played:
        for a, b, verdict in one.games:
            for order, place in _orders(verdict):
                first.append(a if order == "ab" else b)
                second.append(b if order == "ab" else a)
                said.append(place)
                cases.append(one.case_id)
    return rank_systems(first, second, said, prompts=cases, seed=seed, level=level)


def _orders(verdict: PairVerdict) -> Iterable[tuple[str, str]]:
    if not verdict.settled:
        return zip(verdict.orders, verdict.positions, strict=True)
    places = {"a": ("first", "second"), "b": ("second", "first"), "tie": ("tie", "tie")}
    return zip(("ab", "ba"), places[verdict.winner or "tie"], strict=True)

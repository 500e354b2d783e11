"""A comparison in numbers: what each judge prefers, and whether it may be believed.

Beside every win rate stand the ties by their reason, what could not be read, how often the verdict
survives a swap of the drafts, and how often judge, scorers and people contradict each other.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from evalkit.judges import Judge, PairVerdict, panel, same_family, swap_report
from evalkit.judges.panel import Panel
from evalkit.records import Row
from evalkit.runs.duel import Duel, Key
from evalkit.runs.duel_labels import People
from evalkit.stats.length import LengthControl, length_controlled_win_rate
from evalkit.stats.pairwise import SwapReport, win_rate
from evalkit.stats.result import Interval
from evalkit.validity.licence_check import Ruling, check_licence

__all__ = ["Against", "Standing", "judges_together", "scorers_prefer", "standings"]


@dataclass(frozen=True, slots=True)
class Against:
    """Pairs on which a judge and someone else both name a winner, and those where they differ."""

    both: int
    differ: tuple[Key, ...]


@dataclass(frozen=True)
class Standing:
    """One judge over all pairs.

    `preference` is the win rate of A, `by_stratum` the same per stratum; the units are cases (or
    their clusters). `reasons` counts the pairs by how they ended. `ruling` says whether the judge
    holds a licence for pairs, None for trivial judges; `kin` names the sides of its own family.
    `people` are labels given before the judge's verdict was read, `people_all` all of them.
    """

    judge: Judge
    verdicts: tuple[PairVerdict, ...]
    preference: Interval
    by_stratum: Mapping[str, Interval]
    swap: SwapReport
    length: LengthControl
    longer: tuple[int, int]
    reasons: Mapping[str, int]
    scorers: Against
    people: Against
    people_all: Against
    ruling: Ruling | None = None
    kin: tuple[str, ...] = ()

    @property
    def wins(self) -> tuple[int, int, int]:
        """Pairs won by A, tied, won by B."""
        said = Counter(v.winner for v in self.verdicts)
        return said["a"], said["tie"], said["b"]

    @property
    def invalid(self) -> int:
        """Pairs without a result."""
        return sum(v.winner is None for v in self.verdicts)

    @property
    def flips(self) -> tuple[Key, ...]:
        """Pairs whose winner changed with the order."""
        return tuple((v.case_id, v.repeat) for v in self.verdicts if v.reason == "tie_flip")

    @property
    def direction(self) -> str:
        """Which side is shown to be preferred at 5 %: "a", "b" or "".

        Below 30 cases the sign-flip test decides, from there the interval (statistics.md 5).
        """
        rate = self.preference
        if not rate.defined:
            return ""
        p = rate.extra.get("p_signflip", math.nan)
        shown = p < 0.05 if rate.n_cases < 30 else not rate.ci_low <= 0.5 <= rate.ci_high
        return ("a" if rate.estimate > 0.5 else "b") if shown else ""

    @property
    def exploratory(self) -> bool:
        """Whether the judge has no licence for pairs, or was asked in one order only."""
        one_order = any(v.exploratory for v in self.verdicts)
        return one_order or not (self.ruling and self.ruling.valid)


def standings(duel: Duel, people: People) -> tuple[Standing, ...]:
    """Every judge's numbers, in the order of `duel.judges`."""
    units = [m.case.unit for m in duel.found.pairs]
    scorers = {key: scorers_prefer(*duel.pair(key)[1:]) for key in duel.keys}
    model_judges = {judge.name for judge in duel.asked}
    return tuple(
        _standing(duel, judge, units, scorers, people, licensed=judge.name in model_judges)
        for judge in duel.judges
    )


def _standing(
    duel: Duel,
    judge: Judge,
    units: list[str],
    scorers: Mapping[Key, str],
    people: People,
    *,
    licensed: bool,
) -> Standing:
    verdicts = duel.verdicts[judge.name]
    values = [math.nan if v.value is None else v.value for v in verdicts]
    sizes = [v.lengths for v in verdicts]
    strata = list(dict.fromkeys(v.stratum for v in verdicts))
    decided = [
        (v, a - b) for v, (a, b) in zip(verdicts, sizes, strict=True) if v.winner in ("a", "b")
    ]
    plan = duel.plan
    ruling, kin = None, ()
    if licensed:
        candidates = {"A": plan.sides[0].model, "B": plan.sides[1].model}
        kin = tuple(name for name, model in candidates.items() if same_family(judge, model))
        ruling = check_licence(judge, plan.suite.folder, domain=plan.suite.domain, use="pairwise")
    return Standing(
        judge=judge,
        verdicts=verdicts,
        preference=win_rate(values, clusters=units),
        by_stratum={name: _rate_in(name, verdicts, values, units) for name in strata},
        swap=swap_report(verdicts),
        length=length_controlled_win_rate(
            values, [a for a, _ in sizes], [b for _, b in sizes], prompts=units, n_boot=1000
        ),
        longer=(
            sum((gap > 0) == (v.winner == "a") for v, gap in decided if gap),
            sum(1 for _, gap in decided if gap),
        ),
        reasons=Counter(v.reason for v in verdicts),
        scorers=_against(verdicts, scorers),
        people=_against(verdicts, people.independent),
        people_all=_against(verdicts, people.all),
        ruling=ruling,
        kin=kin,
    )


def scorers_prefer(a: Row, b: Row) -> str:
    """Which of two rows the deterministic scorers put first.

    "a" or "b" when it is nowhere worse and somewhere better, "equal" when all scores are the same,
    "mixed" when they contradict each other, "" when no scorer measured both in the same way.
    """
    gaps = [one - other for _, one, other in common_scores(a, b)]
    if not gaps:
        return ""
    better, worse = any(g > 0 for g in gaps), any(g < 0 for g in gaps)
    if better and worse:
        return "mixed"
    return "a" if better else "b" if worse else "equal"


def common_scores(a: Row, b: Row) -> list[tuple[str, float, float]]:
    """The scorers that measured both rows with the same settings: name, value of A, value of B."""
    found: list[tuple[str, float, float]] = []
    for name, score in a.scores.items():
        other = b.scores.get(name)
        judged = name in a.verdicts or name in b.verdicts
        if other is None or judged or a.by.get(name) != b.by.get(name):
            continue
        if score.value is not None and other.value is not None:
            found.append((name, score.value, other.value))
    return found


def judges_together(duel: Duel, found: tuple[Standing, ...]) -> Panel | None:
    """Several judges as a panel that averages nothing; None where one judge was asked.

    A judge that admission eliminated has no vote.
    """
    asked = [s for s in found if s.judge in duel.plan.judges]
    if len(asked) < 2:
        return None
    out = {s.judge.name: why for s in asked if (why := _eliminated(s))}
    if len(out) == len(asked):
        return None
    labels: dict[str, dict[Hashable, str | None]] = {
        s.judge.name: {(v.case_id, v.repeat): v.winner for v in s.verdicts if not v.settled}
        for s in asked
    }
    return panel(labels, categories=("a", "tie", "b"), eliminated=out)


def _eliminated(standing: Standing) -> str:
    licence = standing.ruling.licence if standing.ruling else None
    evidence = licence.evidence if licence else ()
    return next((f"{e.what}: {e.state}" for e in evidence if e.state == "ELIMINATED"), "")


def _rate_in(
    stratum: str, verdicts: tuple[PairVerdict, ...], values: list[float], units: list[str]
) -> Interval:
    inside = [i for i, v in enumerate(verdicts) if v.stratum == stratum]
    return win_rate([values[i] for i in inside], clusters=[units[i] for i in inside])


def _against(verdicts: tuple[PairVerdict, ...], others: Mapping[Key, str]) -> Against:
    both = [
        ((v.case_id, v.repeat), v.winner == others[v.case_id, v.repeat])
        for v in verdicts
        if v.winner in ("a", "b") and others.get((v.case_id, v.repeat)) in ("a", "b")
    ]
    return Against(len(both), tuple(key for key, same in both if not same))

"""Relations run on the application itself: each side a run with repeats, the verdict a statistic.

One sample that moved says nothing where a model answers at a temperature. So both sides are asked
for every case and repeat, paired by case, and the relation holds, is violated, or is undecided.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from evalkit.cases.sample import Sample
from evalkit.errors import UsageError
from evalkit.models.client import Client
from evalkit.records import Case, Reply
from evalkit.relations import DIR, INV, MFT, Relation
from evalkit.runs.comparison import paired
from evalkit.runs.execute import execute
from evalkit.runs.matrix import criterion_scores
from evalkit.runs.plan import Plan
from evalkit.runs.run import Run
from evalkit.stats.compare import Comparison, compare_paired
from evalkit.stats.decision import Decision, Strictness
from evalkit.stats.gate import floor_verdict
from evalkit.stats.wording import comparison_sentence

__all__ = ["LiveOutcome", "run_relation"]

MARGIN = 0.05  # an INV without a tolerance of its own may move by this much, in score units


@dataclass(frozen=True)
class LiveOutcome:
    """PASS: the relation holds; FAIL: it is violated; UNDECIDED: so many cases cannot tell.

    `cases` are those the change applies to; `skipped` those it does not. `before` and `after` are
    the two runs, `change` their paired comparison on the criterion.
    """

    decision: Decision
    sentence: str
    cases: tuple[str, ...]
    skipped: tuple[str, ...]
    before: Run
    after: Run
    change: Comparison


async def run_relation(
    relation: Relation, plan: Plan, client: Client, *, criterion: str, margin: float = MARGIN
) -> LiveOutcome:
    """Run both sides of a relation and decide; recorded replies are not asked for again.

    INV holds when the two-sided interval of the change lies inside ±tolerance (or ±margin), and is
    violated when it lies outside. DIR "rise" and "fall" need an interval on their side of 0;
    "not fall" and "not rise" need one that excludes a move of more than `margin`. MFT is a floor
    of `at_least` on the changed side.

    Args:
        relation: A relation whose change touches the case alone (`relation.live`).
        plan: What is run on each side.
        client: Where calls go.
        criterion: The criterion that must, or must not, move.
        margin: A move that does not matter, in score units.

    Raises:
        UsageError: If the change needs a reply, applies to no case, or the criterion is unknown.
    """
    if not relation.live:
        raise UsageError(
            f"relation {relation.name!r} changes the reply, so it cannot be asked live; "
            "check it on recorded replies with evalkit.relations.check."
        )
    if criterion not in plan.by:
        raise UsageError(f"the plan does not measure {criterion!r}; it has {', '.join(plan.by)}")
    pairs = [(case, relation.change(case, Reply(""))) for case in plan.sample.cases]
    changed = [(case, found[0]) for case, found in pairs if found is not None]
    if not changed:
        raise UsageError(f"relation {relation.name!r} applies to none of the {len(pairs)} cases")
    before = await execute(_with(plan, [case for case, _ in changed]), client)
    after = await execute(_with(plan, [case for _, case in changed]), client)
    scores = [criterion_scores(run, run.manifest)[criterion] for run in (before, after)]
    change = compare_paired(paired(scores[0], scores[1], {}))
    if isinstance(relation, MFT):
        decision, said = _at_least(relation, scores[1].values, scores[1].score_range)
    else:
        decision = _decide(relation, change, margin)
        span = scores[1].score_range[1] - scores[1].score_range[0]
        said = comparison_sentence(change, span=span)
    words = {Decision.PASS: "holds", Decision.FAIL: "is violated"}
    return LiveOutcome(
        decision,
        f"{relation.name}: {words.get(decision, 'is undecided')} on {criterion}: {said}",
        tuple(case.id for case, _ in changed),
        tuple(case.id for case, found in pairs if found is None),
        before,
        after,
        change,
    )


def _with(plan: Plan, cases: list[Case]) -> Plan:
    sizes: dict[str, int] = {}
    for case in cases:
        sizes[case.stratum] = sizes.get(case.stratum, 0) + 1
    weights = {name: n / len(cases) for name, n in sizes.items()}
    sample = Sample(tuple(cases), sizes, sizes, weights, "given", plan.seed)
    return replace(plan, sample=sample)


def _decide(relation: INV | DIR, change: Comparison, margin: float) -> Decision:
    low, high = change.interval.ci_low, change.interval.ci_high
    if isinstance(relation, INV):
        most = relation.tolerance or margin
        inside, outside = -most < low and high < most, low > most or high < -most
    else:
        inside, outside = {
            "rise": (low > 0, high < margin),
            "fall": (high < 0, low > -margin),
            "not fall": (low > -margin, high < -margin),
            "not rise": (high < margin, low > margin),
        }[relation.must]
    return Decision.PASS if inside else Decision.FAIL if outside else Decision.UNDECIDED


def _at_least(
    relation: MFT, values: dict[str, list[float | None]], score_range: tuple[float, float]
) -> tuple[Decision, str]:
    if relation.at_least is None:
        raise UsageError(f"relation {relation.name!r}: live, a minimum needs 'at_least'")
    ruling = floor_verdict(
        list(values.values()),
        relation.at_least,
        strictness=Strictness.RELEASE,
        score_range=score_range,
    )
    return ruling.decision, ruling.sentence

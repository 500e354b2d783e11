"""Which items people label, and by which rule they were drawn: the correction needs to know.

A rate can be corrected from labels on a random sample, on so many of each verdict, or on so many of
each true class; the three are not interchangeable, and a spot check is none of them. The plan is
written down before the first label, and every label carries its id.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from evalkit.errors import AnchorError
from evalkit.hashing import short_hash

__all__ = [
    "Draw",
    "Plan",
    "by_class_plan",
    "by_verdict_plan",
    "random_plan",
    "read_plan",
    "spot_check_plan",
    "write_plan",
]


class Draw(StrEnum):
    """RANDOM: every item as likely. BY_VERDICT: so many of each verdict of the judge.

    BY_CLASS: so many of each class that people, or the making of the case, gave beforehand; for
    recall. SPOT_CHECK: the most doubtful first; says nothing about a rate.
    """

    RANDOM = "random"
    BY_VERDICT = "by_verdict"
    BY_CLASS = "by_class"
    SPOT_CHECK = "spot_check"


class Plan(BaseModel):
    """A drawn list of items with its rule; `id` is a hash of all that decided it.

    `population` counts the items drawn from; `per_class` those of each class or verdict. `run`
    and `criterion` say what the items are.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    draw: Draw
    run: str
    criterion: str
    seed: int
    items: tuple[str, ...]
    population: int
    per_class: Mapping[str, int] = {}
    made: str = ""

    @property
    def id(self) -> str:
        """Short hash of rule, run and items; the date stays out."""
        return short_hash(self.model_dump(mode="json", exclude={"made"}))


def random_plan(items: Sequence[str], n: int, *, run: str, criterion: str, seed: int = 7) -> Plan:
    """`n` items, each as likely as any other.

    Raises:
        AnchorError: If there is no item, or two share an id.
    """
    _check(items, n)
    drawn = _shuffled(items, seed)[:n]
    return _plan(Draw.RANDOM, run, criterion, seed, drawn, len(items))


def by_verdict_plan(
    verdicts: Mapping[str, str], per_class: int, *, run: str, criterion: str, seed: int = 7
) -> Plan:
    """`per_class` items of each verdict of the judge, so that the rarer one is looked at, too.

    Args:
        verdicts: Item to the judge's label; unread verdicts left out.
        per_class: Items per label; a label with fewer gives all it has.
        run: Which run the items are of.
        criterion: What people are asked.
        seed: Which items.
    """
    return _by(Draw.BY_VERDICT, verdicts, per_class, run, criterion, seed)


def by_class_plan(
    classes: Mapping[str, str], per_class: int, *, run: str, criterion: str, seed: int = 7
) -> Plan:
    """`per_class` items of each true class, known from people or from how a case is made.

    Never give the judge's verdicts here: recall among what a judge passed is not its recall.
    Args as `by_verdict_plan`.
    """
    return _by(Draw.BY_CLASS, classes, per_class, run, criterion, seed)


def spot_check_plan(
    verdicts: Mapping[str, Mapping[str, float | None]],
    judge: str,
    n: int,
    *,
    run: str,
    criterion: str,
    seed: int = 7,
) -> Plan:
    """The verdicts of a live judge that scorers and other judges contradict most, then others.

    Args:
        verdicts: Item to who said what, 0..1, None unread; the judge is one of them.
        judge: Whose verdicts are checked.
        n: Items to look at.
        run: Which run.
        criterion: What people are asked.
        seed: Order among equally doubtful ones.
    """
    said = {item: v for item, v in verdicts.items() if v.get(judge) is not None}
    _check([*said], n)

    def doubt(item: str) -> float:
        own = said[item][judge] or 0.0
        others = [v for who, v in said[item].items() if who != judge and v is not None]
        return sum(abs(v - own) for v in others) / len(others) if others else 0.0

    ranked = sorted(_shuffled([*said], seed), key=doubt, reverse=True)
    return _plan(Draw.SPOT_CHECK, run, criterion, seed, ranked[:n], len(said))


def write_plan(plan: Plan, folder: Path) -> Path:
    """Record a plan beside the labels: `<folder>/plans/<id>.json`; the same plan is one file."""
    path = folder / "plans" / f"{plan.id}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.write_text(plan.model_dump_json(indent=2) + "\n", encoding="utf-8")
    return path


def read_plan(folder: Path, plan_id: str) -> Plan:
    """The plan a label names.

    Raises:
        AnchorError: If it is not there, unreadable, or was changed after it was drawn.
    """
    path = folder / "plans" / f"{plan_id}.json"
    try:
        plan = Plan.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        raise AnchorError(
            f"{path}: no readable sampling plan. Without it nobody knows how the items were drawn, "
            "and no rate can be corrected; restore it from version control."
        ) from None
    if plan.id != plan_id:
        raise AnchorError(f"{path}: was changed after it was drawn (its id would be {plan.id}).")
    return plan


def _by(
    draw: Draw, labels: Mapping[str, str], per_class: int, run: str, criterion: str, seed: int
) -> Plan:
    _check([*labels], per_class)
    classes: dict[str, list[str]] = defaultdict(list)
    for item, label in labels.items():
        classes[label].append(item)
    drawn = {label: _shuffled(ids, seed)[:per_class] for label, ids in sorted(classes.items())}
    mixed = _shuffled([i for ids in drawn.values() for i in ids], seed)
    counts = {label: len(ids) for label, ids in drawn.items()}
    return _plan(draw, run, criterion, seed, mixed, len(labels), counts)


def _plan(
    draw: Draw,
    run: str,
    criterion: str,
    seed: int,
    items: Sequence[str],
    population: int,
    per_class: Mapping[str, int] | None = None,
) -> Plan:
    return Plan(
        draw=draw,
        run=run,
        criterion=criterion,
        seed=seed,
        items=tuple(items),
        population=population,
        per_class=per_class or {},
        made=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _shuffled(items: Sequence[str], seed: int) -> list[str]:
    return sorted(items, key=lambda item: sha256(f"{seed}:{item}".encode()).digest())


def _check(items: Sequence[str], n: int) -> None:
    if not items:
        raise AnchorError("there is nothing to draw from; run the suite first.")
    if len(set(items)) != len(items) or n < 1:
        raise AnchorError(f"{len(items)} items, {len(set(items))} different, {n} wanted.")

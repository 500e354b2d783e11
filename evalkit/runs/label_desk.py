"""What `label.py` does between its widgets: what is shown, what a key does, what people said."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from evalkit.cases.suite import Suite
from evalkit.errors import AnchorError
from evalkit.records import Case
from evalkit.runs.desk import Desk
from evalkit.runs.label_task import LabelChoices, LabelTask, make_task
from evalkit.validity.anchors import FIRST, SECOND, TIE, AnchorKind, write_anchor
from evalkit.validity.annotators import (
    Agreed,
    anchor_from_labels,
    annotator_agreement,
    disagreements,
)
from evalkit.validity.blind import LEFT, RIGHT, Outcome, Session, Shown, sides
from evalkit.validity.corrected import corrected_rate
from evalkit.validity.label_items import anchor_items, pair_words
from evalkit.validity.labels import CANNOT_TELL, current_labels, read_labels
from evalkit.validity.sampling_plan import write_plan

__all__ = ["SKIP", "UNDO", "Dispute", "LabelDesk", "LabelProgress", "LabelState"]

UNDO, SKIP = "undo", "skip"
PAUSE_S = 300.0
"""A longer gap between two labels is a pause, not pace."""


@dataclass(frozen=True)
class Dispute:
    """An item on which people differ, in words that tell no source: left and right, or levels."""

    question: str
    said: Mapping[str, str]


@dataclass(frozen=True)
class LabelProgress:
    """How far one annotator is; `seconds` is the median time an item took, None before two."""

    done: int
    total: int
    cannot_tell: int
    seconds: float | None

    @property
    def pace(self) -> str:
        """`9 s each, about 4 min to go`."""
        if self.seconds is None:
            return ""
        left = self.seconds * (self.total - self.done)
        rest = f"{max(1, round(left))} s" if left < 90 else f"{round(left / 60)} min"
        return f"{self.seconds:.0f} s each" + (f", about {rest} to go" if left else "")


@dataclass(frozen=True)
class LabelState:
    """What people said, as far as a labeller may know it.

    `corrected` says what the labels make of the judge's rate, "" where no rate is corrected.
    """

    progress: LabelProgress
    agreed: Agreed
    disputes: tuple[Dispute, ...]
    corrected: str
    by_annotator: Mapping[str, int]


class LabelDesk(Desk):
    """The desk of `label.py`: one task, one session."""

    def __init__(self, out: Path | str, *, strict: bool) -> None:
        super().__init__(out, strict=strict)
        self.said = ""

    def task(self, suite: Suite, choices: LabelChoices) -> LabelTask | None:
        """What is labelled; None with `problem` set."""
        return self.attempt(lambda: make_task(suite, choices, self.bench.out))

    def session(self, task: LabelTask) -> Session | None:
        """This annotator at the file; None with `problem` set."""
        return self.attempt(task.session)

    def press(self, task: LabelTask, session: Session, shown: Shown, key: str) -> None:
        """One key: a choice, `cannot_tell`, skip or undo; the plan is recorded before a label.

        What the key did, or why it did nothing, is kept in `said`.
        """

        def act() -> Outcome:
            write_plan(task.plan, task.folder)
            if key == UNDO:
                return session.undo()
            return session.skip(shown.token) if key == SKIP else session.commit(shown.token, key)

        done = self.attempt(act)
        self.said = done.sentence if done else self.problem

    def undo(self, session: Session) -> None:
        """Take the latest label back after the last item."""
        done = self.attempt(session.undo)
        self.said = done.sentence if done else self.problem

    def add_shown(self, task: LabelTask, session: Session, why: str) -> Case | None:
        """Add the case on the screen to the golden set, with the reason why."""
        item = session.on_screen
        added = self.add_to_golden(task.suite, task.case_of(item.id), why) if item else None
        self.said = f"added to the golden set as {added.id}" if added else self.problem
        return added

    def progress(self, task: LabelTask) -> LabelProgress:
        """How far this annotator is; read from the file at every key."""
        mine = [
            label
            for label in current_labels(read_labels(task.path)).values()
            if label.annotator == task.choices.annotator
        ]
        times = sorted(datetime.fromisoformat(label.time) for label in mine)
        gaps = [(b - a).total_seconds() for a, b in pairwise(times)]
        gaps = [gap for gap in gaps if gap < PAUSE_S]
        return LabelProgress(
            done=len(mine),
            total=len(task.items),
            cannot_tell=sum(label.label == CANNOT_TELL for label in mine),
            seconds=statistics.median(gaps) if gaps else None,
        )

    def state(self, task: LabelTask) -> LabelState:
        """How people agree, and what their labels are worth; takes a second for many labels."""
        lines = read_labels(task.path)
        return LabelState(
            progress=self.progress(task),
            agreed=annotator_agreement(
                lines,
                task.categories,
                ordered=task.choices.kind == "levels",
                criterion=task.criterion,
            ),
            disputes=tuple(
                Dispute(item.question, _as_seen(task, split.item_id, split.said))
                for split in disagreements(lines, criterion=task.criterion)
                for item in task.items
                if item.id == split.item_id
            ),
            corrected=self._corrected(task),
            by_annotator=Counter(label.annotator for label in current_labels(lines).values()),
        )

    def export(self, task: LabelTask) -> Path | None:
        """The labels as an anchor of the suite, with provenance human."""

        def write() -> Path:
            kinds = {
                "pairs": (AnchorKind.PAIRS, (FIRST, TIE, SECOND)),
                "levels": (AnchorKind.SCALE, task.levels),
                "yes_no": (AnchorKind.CRITERIA, ("no", "yes")),
            }
            kind, categories = kinds[task.choices.kind]
            name = f"labelled-{task.criterion or 'pairs'}-{task.plan.id[:8]}"
            lines = read_labels(task.path)
            people = ", ".join(sorted({line.annotator for line in current_labels(lines).values()}))
            two = (task.sources[0], task.sources[-1])
            anchor = anchor_from_labels(
                (line.model_copy(update={"criterion": task.asked}) for line in lines),
                anchor_items(task.items, task.suite.cases, sources=task.sources),
                name=name,
                kind=kind,
                domain=task.suite.domain,
                categories=categories,
                criterion=task.asked,
                words=pair_words(two) if task.pairs else None,
                people=f"labelled blind with evalkit by {people}; drawn {task.plan.draw.value}",
            )
            path = task.suite.folder / "anchors" / f"{name}.jsonl"
            write_anchor(anchor, path)
            return path

        return self.attempt(write)

    def _corrected(self, task: LabelTask) -> str:
        """The judge's rate on this run, corrected from the labels, or why it is not."""
        if task.choices.kind != "yes_no":
            return ""
        if not task.verdicts:
            return (
                f"No judge judged this run on {task.criterion}, so there is no rate to correct: "
                "run it with judges (iterate.py --judges)."
            )
        try:
            found = corrected_rate(read_labels(task.path), task.verdicts, task.plan)
        except AnchorError as problem:
            return f"Not corrected: {problem}"
        return found.sentence


def _as_seen(task: LabelTask, item_id: str, said: Mapping[str, str]) -> dict[str, str]:
    """What each person said, in words that tell no source: the side it stood on."""
    item = next(item for item in task.items if item.id == item_id)
    if not task.pairs:
        return dict(said)
    left, right = sides(item, task.plan.id)
    words = {left: LEFT, right: RIGHT, TIE: TIE}
    return {who: words[label] for who, label in said.items()}

"""Blind labelling: what a person is shown, in which order, and what is hidden from them.

The page gets `Shown` and nothing else: an opaque token, masked texts, no source, no item id.
Everything else is in the label file, so a reload, or another browser, goes on at the right item.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from evalkit.errors import AnchorError
from evalkit.judges.masking import mask
from evalkit.records import Document
from evalkit.validity.labels import (
    CANNOT_TELL,
    Label,
    append_label,
    current_labels,
    read_labels,
)

__all__ = ["TIE", "BlindItem", "Outcome", "Session", "Shown", "order_for", "sides"]

TIE = "tie"
LEFT, RIGHT = "left", "right"


@dataclass(frozen=True, slots=True)
class BlindItem:
    """One item to label: a draft by its source, or two; the sources never reach the page.

    `drafts` maps source ("baseline", a model's name) to text; one draft is judged by levels or
    yes/no, two are a pair.
    """

    id: str
    drafts: Mapping[str, str]
    question: str = ""
    context: tuple[Document, ...] = ()

    def __post_init__(self) -> None:
        if len(self.drafts) not in (1, 2):
            raise AnchorError(
                f"item {self.id!r} has {len(self.drafts)} drafts; one or two can be shown."
            )


@dataclass(frozen=True, slots=True)
class Shown:
    """All that the page knows: left text first. `token` stands for the item and tells nothing."""

    token: str
    question: str
    context: tuple[str, ...]
    texts: tuple[str, ...]
    choices: tuple[str, ...]
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a key press did: the line that was written, or in words why there is none."""

    label: Label | None
    sentence: str


def order_for(ids: Sequence[str], annotator: str, seed: int) -> tuple[str, ...]:
    """The items in this annotator's own order: fixed by seed, different for everybody."""
    return tuple(sorted(ids, key=lambda item: _digest(str(seed), annotator, item)))


def sides(item: BlindItem, salt: str) -> tuple[str, ...]:
    """The sources from left to right, by a hash of salt and item id: a reload cannot change it."""
    names = sorted(item.drafts)
    return tuple(reversed(names)) if int(_digest(salt, item.id)[:8], 16) % 2 else tuple(names)


@dataclass
class Session:
    """One annotator at one label file; the file is the state, this object only looks at it.

    Args:
        items: What to label.
        path: The label file (several sessions may share it).
        annotator: Who labels.
        levels: The words to choose from for single drafts; pairs always have left, tie, right.
        criterion: What is asked, when it is a yes/no criterion.
        plan: Id of the sampling plan, kept in each line.
        seed: Fixes the order.
        salt: Fixes the sides; it stays on this side of the page.
        names: Names to mask in the texts (models, runs, people), beside what any mask hides.
        min_display_s: A label that comes sooner was given by nobody who read the item.
        clock: Seconds, monotonic.
    """

    items: Sequence[BlindItem]
    path: Path
    annotator: str
    levels: tuple[str, ...] = ("yes", "no")
    criterion: str = ""
    plan: str = ""
    seed: int = 7
    salt: str = "evalkit"
    names: tuple[str, ...] = ()
    min_display_s: float = 0.3
    clock: Callable[[], float] = time.monotonic
    _by_id: dict[str, BlindItem] = field(init=False, repr=False)
    _order: tuple[str, ...] = field(init=False, repr=False)
    _on_screen: tuple[str, float] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self._by_id = {item.id: item for item in self.items}
        if len(self._by_id) != len(self.items):
            raise AnchorError("two items to label share an id; labels could not be told apart.")
        if not self.annotator.strip():
            raise AnchorError("who labels? Give an annotator: --annotator NAME.")
        self._order = order_for(tuple(self._by_id), self.annotator, self.seed)

    def show(self) -> Shown | None:
        """The next item, or None when all are done. Showing the same item again keeps its clock."""
        waiting = self._waiting()
        if not waiting:
            self._on_screen = None
            return None
        item = self._by_id[waiting[0]]
        if self._on_screen is None or self._on_screen[0] != item.id:
            self._on_screen = (item.id, self.clock())
        return Shown(
            token=self._token(item.id),
            question=item.question,
            context=tuple(page.text for page in item.context),
            texts=tuple(self._masked(item, source) for source in sides(item, self.salt)),
            choices=(LEFT, TIE, RIGHT) if len(item.drafts) == 2 else self.levels,
            done=len(self._by_id) - len(waiting),
            total=len(self._by_id),
        )

    @property
    def on_screen(self) -> BlindItem | None:
        """The item that is shown, with what is hidden; never for a page."""
        return self._by_id[self._on_screen[0]] if self._on_screen else None

    def commit(self, token: str, choice: str) -> Outcome:
        """Write the label for the item on the screen; the file is flushed when this returns.

        Args:
            token: From `Shown`: a press meant for an item that is gone is refused.
            choice: left, tie, right for pairs, a level for a single draft, or `cannot_tell`.

        Raises:
            AnchorError: If `choice` is none of the choices.
        """
        refused = self._refuse(token)
        if refused or self._on_screen is None:
            return Outcome(None, refused)
        item = self._by_id[self._on_screen[0]]
        left_to_right = sides(item, self.salt)
        words = {CANNOT_TELL: CANNOT_TELL}
        if len(item.drafts) == 2:
            words |= {LEFT: left_to_right[0], TIE: TIE, RIGHT: left_to_right[1]}
        else:
            words |= {level: level for level in self.levels}
        if choice not in words:
            raise AnchorError(f"{choice!r} is no choice here; choose one of {', '.join(words)}.")
        return Outcome(self._write(item, "label", words[choice]), "saved")

    def skip(self, token: str) -> Outcome:
        """Put the item on the screen at the end of the row."""
        refused = self._refuse(token)
        if refused or self._on_screen is None:
            return Outcome(None, refused)
        return Outcome(self._write(self._by_id[self._on_screen[0]], "skip", None), "skipped")

    def undo(self) -> Outcome:
        """Take back this annotator's latest label that still stands; the item is shown again."""
        standing = list(self._mine())
        if not standing:
            return Outcome(None, "nothing to take back")
        return Outcome(self._write(self._by_id[standing[-1]], "undo", None), "taken back")

    def _mine(self) -> dict[str, Label]:
        """This annotator's standing labels, oldest first."""
        lines = [line for line in read_labels(self.path) if self._is_mine(line)]
        standing = current_labels(lines)
        latest = {line.key: n for n, line in enumerate(lines)}
        return {key[0]: standing[key] for key in sorted(standing, key=lambda k: latest[k])}

    def _waiting(self) -> list[str]:
        lines = [line for line in read_labels(self.path) if self._is_mine(line)]
        last = {line.item_id: (line.action, n) for n, line in enumerate(lines)}
        fresh = [i for i in self._order if last.get(i, ("undo", 0))[0] == "undo"]
        undone = sorted((i for i in fresh if i in last), key=lambda i: -last[i][1])
        skipped = sorted((i for i in last if last[i][0] == "skip"), key=lambda i: last[i][1])
        return undone + [i for i in fresh if i not in last] + skipped

    def _is_mine(self, line: Label) -> bool:
        return (
            line.annotator == self.annotator
            and line.criterion == self.criterion
            and line.item_id in self._by_id
        )

    def _refuse(self, token: str) -> str:
        if self._on_screen is None:
            return "nothing is on the screen yet; the press was not counted"
        item_id, since = self._on_screen
        if token != self._token(item_id):
            return "the item on the screen has changed; the press was not counted"
        if self.clock() - since < self.min_display_s:
            return f"sooner than {self.min_display_s:g} s: nobody has read it; not counted"
        if item_id not in self._waiting():
            self._on_screen = None
            return "labelled in another window meanwhile; the press was not counted"
        return ""

    def _write(self, item: BlindItem, action: str, word: str | None) -> Label:
        label = Label.model_validate(
            {
                "item_id": item.id,
                "annotator": self.annotator,
                "label": word,
                "criterion": self.criterion,
                "side": sides(item, self.salt)[0] if len(item.drafts) == 2 else "",
                "plan": self.plan,
                "action": action,
            }
        )
        append_label(self.path, label)
        self._on_screen = None
        return label

    def _masked(self, item: BlindItem, source: str) -> str:
        """A draft without names, model signatures and wording that tells old from new."""
        about = "\n".join([item.question, *(page.text for page in item.context)])
        return mask(item.drafts[source], names=(*item.drafts, *self.names), subject=about).text

    def _token(self, item_id: str) -> str:
        return _digest(self.salt, "token", self.annotator, item_id)[:12]


def _digest(*parts: str) -> str:
    return sha256("\x1f".join(parts).encode()).hexdigest()

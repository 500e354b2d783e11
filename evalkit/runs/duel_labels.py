"""People beside the judges: a blind verdict on the pair that lies on the desk, kept as a label.

A label names the very texts that were compared, so it holds wherever these two drafts meet again
and nowhere else. How much the person had seen stands in the line's `plan` (docs/decisions/0066).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from evalkit.cases.suite import Suite
from evalkit.hashing import short_hash
from evalkit.judges.contest import Match
from evalkit.judges.masking import mask
from evalkit.runs.duel import Duel, Key
from evalkit.validity.blind import TIE, BlindItem, Outcome, Session, sides
from evalkit.validity.labels import Label, current_labels, item_id_of, read_labels

__all__ = ["CRITERION", "VIEWS", "Ballot", "Laid", "People", "label_file", "people_of"]

CRITERION = "preference"
AFTER_VERDICTS = "compare:after_verdicts"
BLIND = "compare:blind"
VIEWS = ("blind", "verdicts", "open")
"""What the page shows of a pair: nothing but the drafts, the judges' verdicts too, everything."""


@dataclass(frozen=True)
class People:
    """What people said of the pairs of a comparison: "a", "b", "tie", or "split".

    `independent` leaves out labels that were given after the judge's verdict had been read.
    """

    all: Mapping[Key, str] = field(default_factory=dict)
    independent: Mapping[Key, str] = field(default_factory=dict)


def label_file(suite: Suite) -> Path:
    """Where verdicts on pairs are kept: people's labels, under version control with the suite."""
    return suite.folder / "labels" / "compared_pairs.jsonl"


def source_of(item_id: str, text: str) -> str:
    """What a label calls one draft of an item: a hash of both."""
    return short_hash([item_id, text])


def pair_id(match: Match) -> str:
    """The label id of a pair: case, both texts in whatever order, repeat."""
    texts = short_hash(sorted((match.a.text, match.b.text)))[:8]
    return item_id_of(f"{match.case.id}@{texts}", match.repeat)


def item_of(match: Match) -> BlindItem:
    """A pair as something to label."""
    item_id = pair_id(match)
    asked = match.case.inputs.get("question")
    shown = asked or "\n".join(f"{k}: {v}" for k, v in match.case.inputs.items())
    drafts = {source_of(item_id, reply.text): reply.text for reply in (match.a, match.b)}
    return BlindItem(item_id, drafts, str(shown), match.case.context)


def people_of(duel: Duel, path: Path) -> People:
    """The labels of a file that speak of these very drafts.

    Raises:
        AnchorError: If a line of the file is no label.
    """
    lines = [line for line in read_labels(path) if line.criterion == CRITERION]
    standing = list(current_labels(lines).values())
    blind = [line for line in standing if line.plan != AFTER_VERDICTS]
    return People(_together(duel, standing), _together(duel, blind))


def _together(duel: Duel, labels: Iterable[Label]) -> dict[Key, str]:
    said: dict[str, set[str]] = {}
    for line in labels:
        said.setdefault(line.item_id, set()).add(str(line.label))
    found: dict[Key, str] = {}
    for match in duel.found.pairs:
        words = _words(match)
        names = {words[label] for label in said.get(pair_id(match), ()) if label in words}
        if names:
            found[match.case.id, match.repeat] = names.pop() if len(names) == 1 else "split"
    return found


def _words(match: Match) -> dict[str, str]:
    """What a label of this pair means: its two sources and the tie."""
    item_id = pair_id(match)
    a, b = source_of(item_id, match.a.text), source_of(item_id, match.b.text)
    return {a: "a", b: "b", TIE: "tie"}


@dataclass(frozen=True)
class Laid:
    """A pair as it lies on the desk: texts and their sides ("a" or "b") from left to right.

    In the views blind and verdicts the texts are masked and a hash of the pair decides the order.
    """

    view: str
    texts: tuple[str, str]
    letters: tuple[str, str]


class Ballot:
    """One person's verdicts on pairs of one comparison, one pair on the desk at a time.

    What the person was shown of a pair is remembered: once it stood open, a verdict on it is no
    blind one and is refused; after the judges' verdicts were shown it is marked so.
    """

    def __init__(self, path: Path, annotator: str, *, min_display_s: float = 0.3) -> None:
        self.path, self.annotator = path, annotator
        self.min_display_s = min_display_s
        self._seen: dict[Key, str] = {}
        self._session: tuple[Key, str, Session] | None = None

    def see(self, match: Match, view: str, *, told: bool = False) -> Laid:
        """Lay a pair on the desk in one of `VIEWS`; what was seen once stays seen.

        Args:
            match: The pair.
            view: What the page shows of it.
            told: The way the pair was chosen tells what the judge said of it.
        """
        key = (match.case.id, match.repeat)
        known = (view, self._seen.get(key, VIEWS[0]), VIEWS[1] if told else VIEWS[0])
        seen = max(known, key=VIEWS.index)
        self._seen[key] = seen
        item = item_of(match)
        if self.annotator.strip() and len(item.drafts) == 2:
            if self._session is None or self._session[:2] != (key, seen):
                plan = BLIND if seen == VIEWS[0] else AFTER_VERDICTS
                self._session = (key, seen, self._open(match, plan))
            self._session[2].show()  # from now on the pair counts as shown
        else:
            self._session = None
        if view == VIEWS[2]:
            return Laid(view, (match.a.text, match.b.text), ("a", "b"))
        about = "\n".join([item.question, *(page.text for page in item.context)])
        words = _words(match)
        order = sides(item, Session.salt) if len(item.drafts) == 2 else tuple(item.drafts) * 2
        texts = [mask(item.drafts[s], names=tuple(item.drafts), subject=about).text for s in order]
        letters = (words[order[0]], words[order[1]]) if len(item.drafts) == 2 else ("a", "b")
        return Laid(view, (texts[0], texts[1]), letters)

    def given(self, match: Match) -> str:
        """This person's standing verdict on a pair: "a", "b", "tie", or ""."""
        lines = [line for line in read_labels(self.path) if line.annotator == self.annotator]
        line = current_labels(lines).get((pair_id(match), CRITERION, self.annotator))
        return _words(match).get(str(line.label), "") if line else ""

    def press(self, match: Match, choice: str) -> Outcome:
        """Record left, tie, right or cannot_tell for the pair on the desk, or say why not."""
        if not self.annotator.strip():
            return Outcome(None, "whose verdict is it? Give your name in the sidebar.")
        key = (match.case.id, match.repeat)
        if match.a.text == match.b.text:
            return Outcome(None, "both drafts are the same text: there is nothing to prefer.")
        if self._seen.get(key) == "open":
            return Outcome(
                None,
                "you have seen which side is which, so a verdict on this pair would not be blind. "
                "Choose the blind view before you open the next one.",
            )
        if self._session is None or self._session[0] != key:
            return Outcome(None, "this pair is not on the desk; the press was not counted")
        session = self._session[2]
        if (shown := session.show()) is None:
            return Outcome(None, "you have judged this pair; take it back with u first.")
        return session.commit(shown.token, choice)

    def undo(self, match: Match) -> Outcome:
        """Take back this person's verdict on a pair."""
        if not self.annotator.strip() or match.a.text == match.b.text:
            return Outcome(None, "nothing to take back")
        return self._open(match, "").undo()

    def _open(self, match: Match, plan: str) -> Session:
        return Session(
            [item_of(match)],
            self.path,
            self.annotator,
            criterion=CRITERION,
            plan=plan,
            min_display_s=self.min_display_s,
        )

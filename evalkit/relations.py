"""Relations that need no right answer: change a case in a known way, and say what must follow.

MFT (a minimum that must be found), INV (nothing may change) and DIR (a score must move one way)
follow Ribeiro, Wu, Guestrin and Singh (2020), CheckList, ACL. A relation is pure: `check` runs it
on a scorer and a recorded reply, a test takes it as a parameter. A change of the case alone
(`live`) can also be run on the application itself, where the statistics decide.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Protocol

from evalkit.records import Case, Document, Reply, Score
from evalkit.scorers import Scorer
from evalkit.scorers.citations import bib_keys, citations_in

__all__ = [
    "DIR",
    "INV",
    "LIBRARY",
    "MFT",
    "AddBib",
    "AddMaterial",
    "AddPage",
    "ChangeNames",
    "DeleteFile",
    "FabricateNumber",
    "Outcome",
    "Relation",
    "ReorderContext",
    "RephraseNumbers",
    "check",
]

_DATA = (".csv", ".tsv", ".dat")
_NUMBER = re.compile(
    r"(?<![\w.,{}\\=-])(?:(?P<grouped>[0-9]{1,3}(?:,[0-9]{3})++)|(?P<plain>[1-9][0-9]{4,14}+))"
    r"(?P<rest>(?:\.[0-9]+)?)(?![\w,}])"
)
_SLACK = 1e-9
_UNRELATED = Document(
    "unrelated-page", "Sea shanties were sung on sailing ships to keep a crew in time."
)


class Change(Protocol):
    """A transformation of a case and its reply; None where it does not apply.

    `LIVE` is true when only the case changes: then a new reply can be asked for.
    """

    LIVE: ClassVar[bool]

    def __call__(self, case: Case, reply: Reply) -> tuple[Case, Reply] | None:
        """The changed pair."""
        ...


@dataclass(frozen=True)
class FabricateNumber:
    """The reply claims one more number, which no material holds."""

    value: float = 86753.09
    sentence: str = "A further run gave {value} counts."

    LIVE: ClassVar[bool] = False

    def __call__(self, case: Case, reply: Reply) -> tuple[Case, Reply]:
        """Say it at the end, in TeX before the end of the document."""
        body, end, rest = reply.text.rpartition(r"\end{document}")
        said = self.sentence.format(value=self.value)
        if not end:
            body, rest = rest, ""
        return case, replace(reply, text=f"{body.rstrip()}\n\n{said}\n{end}{rest}")


@dataclass(frozen=True)
class DeleteFile:
    """The material loses a file: the one named, or the first data file."""

    name: str = ""

    LIVE: ClassVar[bool] = True

    def __call__(self, case: Case, reply: Reply) -> tuple[Case, Reply] | None:
        """Take it away; does not apply where it is not there."""
        data = sorted(name for name in case.material if name.lower().endswith(_DATA))
        name = self.name or next(iter(data), "")
        if name not in case.material:
            return None
        kept = {key: text for key, text in case.material.items() if key != name}
        return replace(case, material=kept), reply


@dataclass(frozen=True)
class AddMaterial:
    """The material gains a file that adds to it and contradicts nothing."""

    name: str = "remarks.md"
    text: str = "The room was quiet and the light was even throughout.\n"

    LIVE: ClassVar[bool] = True

    def __call__(self, case: Case, reply: Reply) -> tuple[Case, Reply] | None:
        """Add it; does not apply where a file of that name is there."""
        if self.name in case.material:
            return None
        return replace(case, material={**case.material, self.name: self.text}), reply


@dataclass(frozen=True)
class AddBib:
    """The material gains the missing .bib: `text`, or an entry for every key the reply cites."""

    name: str = "references.bib"
    text: str = ""

    LIVE: ClassVar[bool] = True

    def __call__(self, case: Case, reply: Reply) -> tuple[Case, Reply] | None:
        """Add it; does not apply where there is one already, or nothing to put into it."""
        if any(bib_keys(text) for name, text in case.material.items() if name.endswith(".bib")):
            return None
        keys = dict.fromkeys(citation.key for citation in citations_in(reply.text))
        made = "".join(f"@misc{{{key},\n  title = {{Entry of {key}}}\n}}\n\n" for key in keys)
        if not (text := self.text or made):
            return None
        return replace(case, material={**case.material, self.name: text}), reply


@dataclass(frozen=True)
class ReorderContext:
    """The pages of the context stand in the opposite order."""

    LIVE: ClassVar[bool] = True

    def __call__(self, case: Case, reply: Reply) -> tuple[Case, Reply] | None:
        """Turn them round; does not apply to fewer than two."""
        if len(case.context) < 2:
            return None
        return replace(case, context=case.context[::-1]), reply


@dataclass(frozen=True)
class AddPage:
    """The context gains a page that has nothing to do with the question."""

    page: Document = _UNRELATED

    LIVE: ClassVar[bool] = True

    def __call__(self, case: Case, reply: Reply) -> tuple[Case, Reply] | None:
        """Put it last; does not apply where there is no context, or that page already."""
        if not case.context or self.page.id in {page.id for page in case.context}:
            return None
        return replace(case, context=(*case.context, self.page)), reply


@dataclass(frozen=True)
class ChangeNames:
    """People get other names, everywhere at once: in case and reply, as whole words."""

    names: Mapping[str, str] = field(
        default_factory=lambda: {
            "Alice": "Priya", "Bob": "Kofi", "Mary": "Yuki", "John": "Diego", "Smith": "Okafor",
            "Anna": "Leila", "Peter": "Wei", "张伟": "李娜", "王芳": "陈刚",
        }
    )  # fmt: skip

    LIVE: ClassVar[bool] = True

    def __call__(self, case: Case, reply: Reply) -> tuple[Case, Reply] | None:
        """Exchange them; does not apply where none of them is found."""
        changed = replace(
            case,
            inputs=self._renamed(case.inputs),
            context=tuple(Document(page.id, self._renamed(page.text)) for page in case.context),
            material={name: self._renamed(text) for name, text in case.material.items()},
            expected=self._renamed(case.expected),
        )
        said = replace(reply, text=self._renamed(reply.text))
        return None if (changed, said) == (case, reply) else (changed, said)

    def _renamed(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._pattern().sub(lambda found: self.names[found[0]], value)
        if isinstance(value, Mapping):
            return {key: self._renamed(inner) for key, inner in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(self._renamed(inner) for inner in value)
        return value

    def _pattern(self) -> re.Pattern[str]:
        words = sorted(map(re.escape, self.names), key=len, reverse=True)
        bounded = (rf"(?<![A-Za-z]){word}(?![A-Za-z])" for word in words)
        return re.compile("|".join(bounded))


@dataclass(frozen=True)
class RephraseNumbers:
    """Long numbers of the reply are written the other way: 12345 as 12,345, and back."""

    LIVE: ClassVar[bool] = False

    def __call__(self, case: Case, reply: Reply) -> tuple[Case, Reply] | None:
        """Rewrite them; does not apply where there is none."""
        text = _NUMBER.sub(_other_spelling, reply.text)
        return None if text == reply.text else (case, replace(reply, text=text))


def _other_spelling(found: re.Match[str]) -> str:
    if found["grouped"]:
        return found["grouped"].replace(",", "") + found["rest"]
    return f"{int(found['plain']):,}{found['rest']}"


@dataclass(frozen=True, kw_only=True)
class _Relation(ABC):
    name: str
    change: Change
    of: str = ""

    @property
    def live(self) -> bool:
        """Whether only the case changes, so that the application can be asked again."""
        return self.change.LIVE

    @abstractmethod
    def fault(self, before: Score, after: Score) -> str:
        """What is wrong with two measured scores; "" where the relation holds."""

    def measure(self, score: Score) -> float:
        """The score's value or, of `of`, the number or the length of the list in its details."""
        if not self.of:
            return score.value or 0.0
        kept = score.details.get(self.of, 0)
        return float(len(kept)) if isinstance(kept, (list, tuple, set, dict)) else float(kept)

    @property
    def subject(self) -> str:
        """What is measured, in a sentence."""
        return repr(self.of) if self.of else "the score"


@dataclass(frozen=True, kw_only=True)
class MFT(_Relation):
    """Minimum functionality: after the change the scorer must find what was planted.

    Args:
        name: What the relation says, in a few words.
        change: How the case, or its reply, is changed.
        of: A key of the score's details; "" is its value.
        lists: What `of` must list afterwards.
        at_least: The least it may be (a list: its length).
        at_most: The most it may be.
    """

    lists: Any = None
    at_least: float | None = None
    at_most: float | None = None

    def fault(self, before: Score, after: Score) -> str:
        """What was not found; `before` plays no part."""
        now = self.measure(after)
        if self.lists is not None and self.lists not in after.details.get(self.of, ()):
            return f"{self.subject} does not list {self.lists!r}"
        if self.at_least is not None and now < self.at_least:
            return f"{self.subject} is {now:g}, below {self.at_least:g}"
        if self.at_most is not None and now > self.at_most:
            return f"{self.subject} is {now:g}, above {self.at_most:g}"
        return ""


@dataclass(frozen=True, kw_only=True)
class INV(_Relation):
    """Invariance: the change must leave the score where it was, within `tolerance`.

    Args:
        name: What the relation says, in a few words.
        change: How the case, or its reply, is changed.
        of: A key of the score's details; "" is its value.
        tolerance: How far it may move.
    """

    tolerance: float = 0.0

    def fault(self, before: Score, after: Score) -> str:
        """How far it moved, where that is too far."""
        was, now = self.measure(before), self.measure(after)
        if abs(now - was) <= self.tolerance + _SLACK:
            return ""
        return f"{self.subject} moved from {was:g} to {now:g}, tolerance {self.tolerance:g}"


@dataclass(frozen=True, kw_only=True)
class DIR(_Relation):
    """Direction: the change must move the score one way, or must not move it the other.

    Args:
        name: What the relation says, in a few words.
        change: How the case, or its reply, is changed.
        of: A key of the score's details; "" is its value.
        must: Which way.
        lists: What `of` must list afterwards, and did not before.
    """

    must: Literal["rise", "fall", "not rise", "not fall"]
    lists: Any = None

    def fault(self, before: Score, after: Score) -> str:
        """Where it went instead."""
        was, now = self.measure(before), self.measure(after)
        moved = {
            "rise": now > was + _SLACK,
            "fall": now < was - _SLACK,
            "not rise": now <= was + _SLACK,
            "not fall": now >= was - _SLACK,
        }
        if not moved[self.must]:
            return f"{self.subject} must {self.must}, and went from {was:g} to {now:g}"
        if self.lists is not None:
            if self.lists in before.details.get(self.of, ()):
                return f"{self.subject} listed {self.lists!r} before the change"
            if self.lists not in after.details.get(self.of, ()):
                return f"{self.subject} does not list {self.lists!r}"
        return ""


Relation = MFT | INV | DIR


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether a relation holds; None where it does not apply or a score was not measured."""

    holds: bool | None
    reason: str
    before: Score | None = None
    after: Score | None = None


def check(relation: Relation, scorer: Scorer, case: Case, reply: Reply) -> Outcome:
    """Score a pair before and after the change, and say whether the relation holds.

    Raises:
        ScorerError: If the case lacks what the scorer reads.
    """
    changed = relation.change(case, reply)
    if changed is None:
        return Outcome(None, f"{relation.name}: the change does not apply to case {case.id!r}")
    before, after = scorer(case, reply), scorer(*changed)
    for score in (before, after):
        if score.value is None:
            return Outcome(None, f"{relation.name}: not measured: {score.reason}", before, after)
    fault = relation.fault(before, after)
    said = fault or f"holds: {relation.subject} {relation.measure(before):g}, then " + format(
        relation.measure(after), "g"
    )
    return Outcome(not fault, f"{relation.name}: {said}", before, after)


_FABRICATED = FabricateNumber()
LIBRARY: dict[str, Relation] = {
    relation.name: relation
    for relation in (
        DIR(
            name="a fabricated number is unsourced",
            change=_FABRICATED,
            of="unsourced",
            must="rise",
            lists=_FABRICATED.value,
        ),
        DIR(name="a deleted data file is a gap", change=DeleteFile(), of="gaps", must="rise"),
        DIR(name="the .bib closes the citations", change=AddBib(), of="undefined", must="fall"),
        DIR(name="the .bib closes a gap", change=AddBib(), of="gaps", must="fall"),
        DIR(name="more material does no harm", change=AddMaterial(), must="not fall"),
        INV(name="the order of the context is no matter", change=ReorderContext()),
        INV(name="an irrelevant page is no matter", change=AddPage()),
        INV(name="other names are no matter", change=ChangeNames()),
        INV(name="the spelling of numbers is no matter", change=RephraseNumbers()),
    )
}

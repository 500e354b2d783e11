"""Trivial judges: rules that look at nothing of substance, and cost nothing.

A judge that does not beat them has shown nothing, so they stand in every table.
"""

from __future__ import annotations

import random
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

from evalkit.counting import counted
from evalkit.hashing import short_hash
from evalkit.judges.judge import BOTH_ORDERS, Ask, Judge, Pairing, PairVerdict, draft_of
from evalkit.judges.pairwise import pair_verdict, settle
from evalkit.records import Case, Reply, Request, Verdict

__all__ = [
    "AlwaysFirst",
    "LexicalOverlap",
    "LongerWins",
    "SeededRandom",
    "TrivialJudge",
    "trivial_judges",
]


@dataclass(frozen=True)
class TrivialJudge(ABC):
    """The interface of a judge over one rule: `merit` in 0..1 of a draft, and why.

    `criteria` and `levels` are those of the judge it stands beside: a criterion is met from a merit
    of one half, a level is the nearest to the merit. With neither, one verdict carries the merit.
    """

    criteria: Mapping[str, str] = field(default_factory=dict)
    levels: Mapping[int, str] = field(default_factory=dict)
    rule: ClassVar[str] = ""
    version: ClassVar[int] = 1

    @property
    def kind(self) -> str:
        """Its rule, as in `JUDGES`."""
        return self.rule

    @property
    def model(self) -> str:
        """None."""
        return ""

    @property
    def family(self) -> str:
        """None."""
        return ""

    @property
    def may_abstain(self) -> bool:
        """Never."""
        return False

    @property
    def name(self) -> str:
        """Its rule."""
        return self.rule.replace("_", "-")

    @property
    def hash(self) -> str:
        """Rule, version and settings; the scale is the other judge's."""
        return short_hash([self.rule, self.version, self.settings()])

    def settings(self) -> Mapping[str, float]:
        """What else decides its verdicts."""
        return {}

    @property
    def names(self) -> tuple[str, ...]:
        """The keys of what `judge` returns."""
        return tuple(self.criteria) or (self.name,)

    @abstractmethod
    def merit(self, case: Case, reply: Reply, repeat: int) -> tuple[float, str]:
        """How good the rule finds a draft, 0..1, and its reason."""

    def prefers(self, case: Case, first: Reply, second: Reply, repeat: int) -> tuple[str, str]:
        """Which of two drafts in the order shown ("first", "second", "tie"), and why."""
        one, why_one = self.merit(case, first, repeat)
        other, why_other = self.merit(case, second, repeat)
        if one == other:
            return "tie", why_one
        return ("first", why_one) if one > other else ("second", why_other)

    def requests(self, case: Case, reply: Reply, repeat: int = 0) -> list[Request]:
        """None: it asks no model."""
        return []

    def pair_requests(
        self, case: Case, a: Reply, b: Reply, repeat: int = 0, how: Pairing = BOTH_ORDERS
    ) -> list[Request]:
        """None: it asks no model."""
        return []

    async def judge(
        self, case: Case, reply: Reply, ask: Ask, repeat: int = 0
    ) -> dict[str, Verdict]:
        """One verdict per name; `ask` is not used."""
        empty = not draft_of(reply)
        merit, why = (0.0, "the draft is empty") if empty else self.merit(case, reply, repeat)
        value, label = merit, f"{merit:.2f}"
        if self.criteria:
            value, label = (1.0, "yes") if merit >= 0.5 else (0.0, "no")
        elif self.levels:
            low, high = min(self.levels), max(self.levels)
            level = round(low + merit * (high - low))
            value, label = (level - low) / (high - low), str(level)
        return dict.fromkeys(self.names, Verdict(value, label, why, judge_hash=self.hash))

    async def compare(
        self, case: Case, a: Reply, b: Reply, ask: Ask, repeat: int = 0, how: Pairing = BOTH_ORDERS
    ) -> PairVerdict:
        """Both orders, merged as any judge's; `ask` is not used."""
        if done := settle(case, a, b, judge=self, repeat=repeat, names=how.names):
            return done
        values = {"first": 1.0, "tie": 0.5, "second": 0.0}
        verdicts: dict[str, Verdict] = {}
        for order, first, second in (("ab", a, b), ("ba", b, a)):
            label, why = self.prefers(case, first, second, repeat)
            verdicts[order] = Verdict(values[label], label, why, judge_hash=self.hash)
        return pair_verdict(self, case, a, b, verdicts, repeat=repeat)


class AlwaysFirst(TrivialJudge):
    """Prefers the draft shown first; alone, every draft gets yes, or the middle level."""

    rule: ClassVar[str] = "always_first"

    def merit(self, case: Case, reply: Reply, repeat: int) -> tuple[float, str]:
        """Always one half."""
        return 0.5, "always the same verdict"

    def prefers(self, case: Case, first: Reply, second: Reply, repeat: int) -> tuple[str, str]:
        """The first."""
        return "first", "it stands first"


@dataclass(frozen=True)
class LongerWins(TrivialJudge):
    """Prefers the longer draft; alone, a draft of `full_chars` characters earns everything."""

    full_chars: int = 1200
    rule: ClassVar[str] = "longer_wins"

    def settings(self) -> Mapping[str, float]:
        """The length that earns everything."""
        return {"full_chars": self.full_chars}

    def merit(self, case: Case, reply: Reply, repeat: int) -> tuple[float, str]:
        """Its length as a share of `full_chars`."""
        size = len(draft_of(reply))
        return min(1.0, size / self.full_chars), counted(size, "character")

    def prefers(self, case: Case, first: Reply, second: Reply, repeat: int) -> tuple[str, str]:
        """The longer, also beyond `full_chars`."""
        one, other = len(draft_of(first)), len(draft_of(second))
        label = "tie" if one == other else "first" if one > other else "second"
        return label, f"{one} against {counted(other, 'character')}"


@dataclass(frozen=True)
class SeededRandom(TrivialJudge):
    """A coin per draft or ordered pair, the same for the same seed, text and repeat."""

    seed: int = 0
    rule: ClassVar[str] = "random"

    def settings(self) -> Mapping[str, float]:
        """The seed."""
        return {"seed": self.seed}

    def merit(self, case: Case, reply: Reply, repeat: int) -> tuple[float, str]:
        """Uniform in 0..1."""
        drawn = random.Random(
            f"{self.seed}:{case.id}:{repeat}:{short_hash(draft_of(reply))}"
        ).random()
        return drawn, "drawn by lot"

    def prefers(self, case: Case, first: Reply, second: Reply, repeat: int) -> tuple[str, str]:
        """One of the two, drawn for this order."""
        texts = f"{short_hash(draft_of(first))}:{short_hash(draft_of(second))}"
        drawn = random.Random(f"{self.seed}:{case.id}:{repeat}:{texts}").random()
        return "first" if drawn < 0.5 else "second", "drawn by lot"


@dataclass(frozen=True)
class LexicalOverlap(TrivialJudge):
    """How well the context's sentences cover the draft's, by TF-IDF; quotes the nearest sentence.

    The merit is the mean, over the draft's sentences, of the highest cosine with any sentence of
    the case's context, material or, where it has neither, inputs.
    """

    rule: ClassVar[str] = "lexical"

    def merit(self, case: Case, reply: Reply, repeat: int) -> tuple[float, str]:
        """Mean best similarity, and the sentence that supports the draft most."""
        pages = [d.text for d in case.context] + list(case.material.values())
        known = "\n".join(pages or [str(v) for v in case.inputs.values()])
        return _overlap(known, draft_of(reply))


_SENTENCE = re.compile(r"[^.!?。！？\n]+(?:[.!?](?!\s|$)[^.!?。！？\n]+)*[.!?。！？]?")


def _sentences(text: str) -> list[str]:
    return [s for s in (m.group().strip() for m in _SENTENCE.finditer(text)) if s]


@lru_cache(maxsize=4096)
def _overlap(known: str, draft: str) -> tuple[float, str]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    sources, claims = _sentences(known), _sentences(draft)
    # Words of letters and digits; a Chinese character is a word of its own.
    words = TfidfVectorizer(token_pattern=r"[^\W\u4e00-\u9fff]+|[\u4e00-\u9fff]", sublinear_tf=True)
    if not sources or not claims:
        return 0.0, "there is nothing to compare with"
    try:
        matrix = words.fit_transform([*sources, *claims])
    except ValueError:  # no word in any of the sentences
        return 0.0, "there is no word to compare"
    likeness = (matrix[len(sources) :] @ matrix[: len(sources)].T).toarray()
    best = int(likeness.max(axis=0).argmax())
    merit = float(min(1.0, max(0.0, likeness.max(axis=1).mean())))
    return merit, f"nearest in the material: {sources[best][:240]}"


_ALL: tuple[type[TrivialJudge], ...] = (AlwaysFirst, LongerWins, SeededRandom, LexicalOverlap)


def trivial_judges(beside: Judge | None = None) -> tuple[TrivialJudge, ...]:
    """The trivial judges, on the criteria or levels of the judge they stand beside."""
    criteria = beside.criteria if beside else {}
    levels = beside.levels if beside else {}
    return tuple(kind(criteria=criteria, levels=levels) for kind in _ALL)

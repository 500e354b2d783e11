"""What a judge is: the seam through which it asks, the interface of all kinds, the pair verdict."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from evalkit.judges.file import family_of
from evalkit.records import Case, Reply, Request, Verdict
from evalkit.scorers.thinking import visible_text

__all__ = [
    "BOTH_ORDERS",
    "Ask",
    "Judge",
    "PairVerdict",
    "Pairing",
    "draft_of",
    "position_of",
    "same_family",
]

Ask = Callable[[Request], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """What a judge said of two drafts of one case.

    `winner` is "a", "b", "tie", or None when there is no result. `reason` is "agree", "tie_both",
    "tie_flip", "tie_half", "invalid", "one_order", or, settled without a call, "identical",
    "both_empty" and "empty". `verdicts` are those of the order (a, b), then of (b, a); in both a
    value of 1 is the draft shown *first*. `exploratory` is true when one order only was asked.
    """

    case_id: str
    repeat: int
    winner: str | None
    reason: str
    verdicts: tuple[Verdict, ...] = ()
    orders: tuple[str, ...] = ("ab", "ba")
    lengths: tuple[int, int] = (0, 0)
    stratum: str = "all"
    judge: str = ""
    judge_hash: str = ""
    exploratory: bool = False

    @property
    def value(self) -> float | None:
        """1 when a wins, 0.5 for a tie, 0 when b wins, None without a result."""
        return None if self.winner is None else {"a": 1.0, "tie": 0.5, "b": 0.0}[self.winner]

    @property
    def settled(self) -> bool:
        """True when the drafts decided it and no judge was asked."""
        return self.reason in ("identical", "both_empty", "empty")

    @property
    def agree(self) -> bool | None:
        """Whether both orders gave the same verdict; None when that was not measured."""
        if self.winner is None or self.exploratory or self.settled:
            return None
        return self.reason in ("agree", "tie_both")

    @property
    def flags(self) -> tuple[str, ...]:
        """Every flag of its verdicts, once."""
        return tuple(dict.fromkeys(f for v in self.verdicts for f in v.flags))

    @property
    def positions(self) -> tuple[str, ...]:
        """Per order "first", "second", "tie" or "invalid": the words of the swap protocol."""
        return tuple(
            v.label if v.value is not None and v.label else "invalid" for v in self.verdicts
        )


@dataclass(frozen=True, slots=True)
class Pairing:
    """How two drafts are compared.

    `one_order` is the exploratory mode: one random order, half the price, labelled so. `seed`
    decides the call order, and the order shown in exploratory mode. `names` are masked beside the
    drafts' own models.
    """

    one_order: bool = False
    seed: int = 0
    names: tuple[str, ...] = ()


BOTH_ORDERS = Pairing()


def position_of(verdict: Verdict) -> str:
    """The place a verdict prefers, "tie", or "invalid" where it is unscored."""
    return verdict.label if verdict.value is not None and verdict.label else "invalid"


class Judge(Protocol):
    """One who gives verdicts: a judge file with a model behind it, or a trivial rule."""

    @property
    def kind(self) -> str:
        """`criteria`, `scale`, `pairwise`, or the name of a trivial judge."""
        ...

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    @property
    def hash(self) -> str:
        """Its identity, 12 hex digits."""
        ...

    @property
    def model(self) -> str:
        """The model it asks, as "endpoint/model"; "" when it asks none."""
        ...

    @property
    def family(self) -> str:
        """The family of its model, or ""."""
        ...

    @property
    def criteria(self) -> Mapping[str, str]:
        """Name to yes/no question; empty for other kinds."""
        ...

    @property
    def levels(self) -> Mapping[int, str]:
        """Level to its anchor; empty for other kinds."""
        ...

    @property
    def may_abstain(self) -> bool:
        """Whether it may answer *cannot tell*."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """The keys of what `judge` returns."""
        ...

    def requests(self, case: Case, reply: Reply, repeat: int = 0) -> list[Request]:
        """The calls that `judge` would send: none when the draft settles it."""
        ...

    async def judge(
        self, case: Case, reply: Reply, ask: Ask, repeat: int = 0
    ) -> dict[str, Verdict]:
        """Judge one draft; one verdict per name."""
        ...

    def pair_requests(
        self, case: Case, a: Reply, b: Reply, repeat: int = 0, how: Pairing = BOTH_ORDERS
    ) -> list[Request]:
        """The calls that `compare` would send."""
        ...

    async def compare(
        self, case: Case, a: Reply, b: Reply, ask: Ask, repeat: int = 0, how: Pairing = BOTH_ORDERS
    ) -> PairVerdict:
        """Judge two drafts of one case."""
        ...


def draft_of(reply: Reply) -> str:
    """What a reader sees of a reply, without thinking; this is what a judge judges."""
    return visible_text(reply.text).strip()


def same_family(judge: Judge, candidate_family: str) -> bool:
    """Whether a judge would judge its own kin; to be declared wherever its verdicts are shown.

    Args:
        judge: Any judge.
        candidate_family: A family ("smollm") or a model's name ("local/smollm2-135m-instruct").
    """
    candidate = family_of(candidate_family)
    return bool(judge.family) and bool(candidate) and judge.family.lower() == candidate

"""Pairwise judges: both orders in random call order; the same verdict twice, or it is a tie."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence

from evalkit.errors import JudgeError
from evalkit.judges.asking import Asked, FileJudge, ask_model, justified, prepare, verdict_of
from evalkit.judges.judge import (
    BOTH_ORDERS,
    Ask,
    Judge,
    Pairing,
    PairVerdict,
    draft_of,
    position_of,
)
from evalkit.judges.masking import Masked, mask, names_of, subject_of
from evalkit.judges.verdict import read_pairwise
from evalkit.records import Case, Reply, Request, Verdict
from evalkit.stats.pairwise import Outcome, merge_orders

__all__ = ["PairwiseJudge", "pair_verdict", "settle"]

_BRIEF = {
    "en": (
        "Two drafts, A and B, stand below. Which place a draft has means nothing. Length is no "
        "virtue: where the substance is equal, the longer one does not win for being longer{tie}."
    ),
    "zh": "下面有 A、B 两份草稿,先后次序没有意义。长不是优点:内容相当时,不得因为更长而胜出{tie}。",
}
_TIE = {"en": ", and the verdict is tie", "zh": ",应判为 tie"}
_CLOSING = {
    "en": (
        "Answer with one JSON object: first the justification (at most {chars} characters, naming "
        "what decides between A and B), then the verdict, {labels}:\n"
        '{{"justification": "...", "verdict": "..."}}'
    ),
    "zh": (
        "只输出一个 JSON 对象:先写理由(不超过 {chars} 字,说明 A 与 B 的决定性差别),"
        "再写结论,{labels}:\n"
        '{{"justification": "...", "verdict": "..."}}'
    ),
}
_VALUES = {"first": 1.0, "tie": 0.5, "second": 0.0}


class PairwiseJudge(FileJudge):
    """Compares two drafts of one case; templates see them as `draft_a` (shown first), `draft_b`."""

    @property
    def names(self) -> tuple[str, ...]:
        """The judge's name: the one thing it says."""
        return (self.name,)

    def requests(self, case: Case, reply: Reply, repeat: int = 0) -> list[Request]:
        """Not for this kind; see `judge`."""
        raise JudgeError(self._alone())

    async def judge(
        self, case: Case, reply: Reply, ask: Ask, repeat: int = 0
    ) -> dict[str, Verdict]:
        """Not for this kind.

        Raises:
            JudgeError: Always; a pairwise judge needs two drafts.
        """
        raise JudgeError(self._alone())

    def _alone(self) -> str:
        return (
            f"judge {self.name} is of kind pairwise and cannot judge a draft alone; give the "
            "criterion 'against', or use a judge of kind criteria or scale."
        )

    def pair_requests(
        self, case: Case, a: Reply, b: Reply, repeat: int = 0, how: Pairing = BOTH_ORDERS
    ) -> list[Request]:
        """The calls that `compare` would send, in its random order; none for settled drafts."""
        if settle(case, a, b, judge=self, repeat=repeat, names=how.names):
            return []
        asked = self._prepared(case, a, b, repeat, how.names)
        orders = call_order(case, repeat, how)
        return [asked[o].request for o in orders if not asked[o].too_long]

    async def compare(
        self, case: Case, a: Reply, b: Reply, ask: Ask, repeat: int = 0, how: Pairing = BOTH_ORDERS
    ) -> PairVerdict:
        """Which of two drafts is better.

        Args:
            case: The case both answer.
            a: One draft.
            b: The other.
            ask: Sends a request; the client's `ask`.
            repeat: The judge's own repeat, 0 unless its stability is measured.
            how: One order or both, the seed of the call order, names to mask.
        """
        if done := settle(case, a, b, judge=self, repeat=repeat, names=how.names):
            return done
        asked = self._prepared(case, a, b, repeat, how.names)
        orders = call_order(case, repeat, how)
        said = await asyncio.gather(
            *(self._verdict(asked[o], ask) for o in orders), return_exceptions=True
        )
        for problem in said:
            if isinstance(problem, BaseException):
                raise problem
        verdicts = {o: v for o, v in zip(orders, said, strict=True) if isinstance(v, Verdict)}
        return pair_verdict(self, case, a, b, verdicts, repeat=repeat)

    def _prepared(
        self, case: Case, a: Reply, b: Reply, repeat: int, names: Sequence[str]
    ) -> dict[str, Asked]:
        masked = _masked(case, a, b, names)
        flags = self.kin_flags(a, b)
        return {
            "ab": self._asked(case, masked[0], masked[1], repeat, flags),
            "ba": self._asked(case, masked[1], masked[0], repeat, flags),
        }

    def _asked(
        self, case: Case, first: Masked, second: Masked, repeat: int, flags: tuple[str, ...]
    ) -> Asked:
        chars, language = self.file.justification_chars, self.file.language
        labels = ["A", "B", *(["tie"] if self.file.ties else [])]
        labels += ["cannot_tell"] if self.may_abstain else []
        masked = ("masked",) if first.replaced or second.replaced else ()
        return prepare(
            self.file,
            case,
            {"draft_a": first.text, "draft_b": second.text},
            brief=_BRIEF[language].format(tie=_TIE[language] if self.file.ties else ""),
            closing=_CLOSING[language].format(chars=chars, labels=" / ".join(labels)),
            schema=justified(chars, labels),
            max_tokens=100 + chars,
            repeat=repeat,
            flags=(*flags, *masked),
        )

    async def _verdict(self, asked: Asked, ask: Ask) -> Verdict:
        said = await ask_model(asked, ask, self.hash)
        if isinstance(said, Verdict):
            return said
        reading = read_pairwise(said.text, ties=self.file.ties)
        return verdict_of(reading, _VALUES.get(reading.label or ""), asked, said, self.hash)


def call_order(case: Case, repeat: int, how: Pairing) -> list[str]:
    """The two orders in random sequence, the same for the same seed, case and repeat."""
    orders = ["ab", "ba"]
    random.Random(f"{how.seed}:{case.id}:{repeat}").shuffle(orders)
    return orders[:1] if how.one_order else orders


def _masked(case: Case, a: Reply, b: Reply, names: Sequence[str]) -> tuple[Masked, Masked]:
    known, subject = (*names, *names_of(a, b)), subject_of(case)
    one, other = (mask(draft_of(d), names=known, subject=subject) for d in (a, b))
    return one, other


def settle(
    case: Case, a: Reply, b: Reply, *, judge: Judge, repeat: int = 0, names: Sequence[str] = ()
) -> PairVerdict | None:
    """The verdict where no judge is needed: an empty draft loses, identical ones tie; else None."""
    empty_a, empty_b = not draft_of(a), not draft_of(b)
    if empty_a or empty_b:
        winner = "tie" if empty_a and empty_b else "b" if empty_a else "a"
        reason = "both_empty" if winner == "tie" else "empty"
    else:
        one, other = _masked(case, a, b, names)
        if one.text != other.text:
            return None
        winner, reason = "tie", "identical"
    lengths = (len(draft_of(a)), len(draft_of(b)))
    return PairVerdict(
        case.id,
        repeat,
        winner,
        reason,
        lengths=lengths,
        stratum=case.stratum,
        judge=judge.name,
        judge_hash=judge.hash,
    )


def pair_verdict(
    judge: Judge,
    case: Case,
    a: Reply,
    b: Reply,
    verdicts: Mapping[str, Verdict],
    *,
    repeat: int = 0,
) -> PairVerdict:
    """The verdicts of one or both orders ("ab", "ba") as one, by the swap protocol."""
    orders = tuple(o for o in ("ab", "ba") if o in verdicts)
    said = [verdicts[o] for o in orders]
    places = [position_of(v) for v in said]
    if len(orders) == 1:  # the order that was not asked is taken to agree, and the verdict says so
        mirrored = {"first": "second", "second": "first"}.get(places[0], places[0])
        places = [places[0], mirrored] if orders == ("ab",) else [mirrored, places[0]]
    outcome = merge_orders(*places)
    winner = None if outcome is Outcome.INVALID else outcome if outcome in ("a", "b") else "tie"
    reason = "agree" if outcome in ("a", "b") else str(outcome)
    if len(orders) == 1 and winner:
        reason = "one_order"
    return PairVerdict(
        case.id,
        repeat,
        winner and str(winner),
        reason,
        tuple(said),
        orders,
        (len(draft_of(a)), len(draft_of(b))),
        case.stratum,
        judge.name,
        judge.hash,
        len(orders) == 1,
    )

"""What judges of one draft at a time share: drafts that need no judge, and the way of a call."""

from __future__ import annotations

from abc import ABC, abstractmethod

from evalkit.errors import JudgeError
from evalkit.judges.asking import Asked, FileJudge, ask_model
from evalkit.judges.file import JudgeFile
from evalkit.judges.judge import BOTH_ORDERS, Ask, Pairing, PairVerdict, draft_of
from evalkit.records import Case, Reply, Request, Verdict
from evalkit.scorers.answer import expects_refusal
from evalkit.scorers.refusal import refusal_in

__all__ = ["DraftJudge", "no_answer"]


class DraftJudge(FileJudge, ABC):
    """A judge of one draft at a time: `criteria` and `scale` say what is asked, read and lowest."""

    @property
    def names(self) -> tuple[str, ...]:
        """The keys of what `judge` returns."""
        return (self.name,)

    @abstractmethod
    def prepared(self, case: Case, reply: Reply, repeat: int) -> Asked:
        """The request about one draft."""

    @abstractmethod
    def read(self, asked: Asked, reply: Reply) -> dict[str, Verdict]:
        """The judge's reply as verdicts."""

    @abstractmethod
    def lowest(self) -> str:
        """The label of a draft that is no answer."""

    def requests(self, case: Case, reply: Reply, repeat: int = 0) -> list[Request]:
        """The calls that `judge` would send: none when the draft settles it."""
        if no_answer(self.file, case, reply):
            return []
        asked = self.prepared(case, reply, repeat)
        return [] if asked.too_long else [asked.request]

    async def judge(
        self, case: Case, reply: Reply, ask: Ask, repeat: int = 0
    ) -> dict[str, Verdict]:
        """Judge one draft; one verdict per name.

        Args:
            case: The case the draft answers.
            reply: The draft. Empty and refused ones get the lowest verdict without a call.
            ask: Sends a request; the client's `ask`.
            repeat: The judge's own repeat, 0 unless its stability is measured.
        """
        if kind := no_answer(self.file, case, reply):
            words = {"no_answer": "the draft is empty", "refusal": "the draft is a refusal"}[kind]
            flags, label = ("settled", kind), self.lowest()
            settled = Verdict(0.0, label, reason=words, flags=flags, judge_hash=self.hash)
            return dict.fromkeys(self.names, settled)
        asked = self.prepared(case, reply, repeat)
        said = await ask_model(asked, ask, self.hash)
        if isinstance(said, Verdict):
            return dict.fromkeys(self.names, said)
        return self.read(asked, said)

    def pair_requests(
        self, case: Case, a: Reply, b: Reply, repeat: int = 0, how: Pairing = BOTH_ORDERS
    ) -> list[Request]:
        """Not for this kind; see `compare`."""
        raise JudgeError(self._not_pairwise())

    async def compare(
        self, case: Case, a: Reply, b: Reply, ask: Ask, repeat: int = 0, how: Pairing = BOTH_ORDERS
    ) -> PairVerdict:
        """Not for this kind.

        Raises:
            JudgeError: Always; two drafts are compared by a judge of kind pairwise.
        """
        raise JudgeError(self._not_pairwise())

    def _not_pairwise(self) -> str:
        return f"judge {self.name} is of kind {self.kind}; comparing drafts needs kind pairwise."


def no_answer(file: JudgeFile, case: Case, reply: Reply) -> str:
    """Why the draft needs no judge: "no_answer" or "refusal", else "".

    A refusal goes to the judge where the case expects one or the judge file asks for them.
    """
    draft = draft_of(reply)
    if reply.refused or refusal_in(draft):
        wanted = expects_refusal(case) or file.refusals == "judge"
        return "" if wanted and draft else "refusal"
    return "" if draft else "no_answer"

"""What a task retrieved against what it should have: a drop in the answers can be placed.

`reply.retrieved` holds the chunk ids in their order of rank, `case.expected` the relevant ones.
An id that comes up twice counts once, at its first rank.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from evalkit.errors import ScorerError
from evalkit.records import Case, Finding, Reply, Score, ScoreStatus
from evalkit.scorers.answer import expected_value

__all__ = ["MeanReciprocalRank", "Ndcg", "PrecisionAtK", "RecallAtK"]


@dataclass(frozen=True, kw_only=True)
class _Ranked(ABC):
    """Shared settings.

    Args:
        k: How many of the first ranks count; 0: all of them.
        expected: Key of `case.expected` that lists the relevant ids, or maps them to a grade.
    """

    k: int = 0
    expected: str = "chunks"

    VERSION: ClassVar[int] = 1
    NAME: ClassVar[str]

    def __post_init__(self) -> None:
        if self.k < 0:
            raise ScorerError(f"the scorer {self.NAME!r}: k = {self.k} is below 0 (0: all ranks).")

    def __call__(self, case: Case, reply: Reply) -> Score:
        """Score one reply; the relevant chunks that are missing are findings."""
        grades = _grades(expected_value(case, self.expected, self.NAME), case, self)
        if reply.retrieved is None:
            return Score(
                None,
                "the task returned no 'retrieved' ids, so retrieval was not measured",
                ScoreStatus.NOT_MEASURED,
            )
        if not grades:
            return Score(None, "no chunk is relevant to this case", ScoreStatus.NOT_MEASURED)
        ranked = list(dict.fromkeys(reply.retrieved))
        ranked = ranked[: self.k] if self.k else ranked
        value = self.measure(ranked, grades)
        hits = [chunk for chunk in ranked if chunk in grades]
        missing = [chunk for chunk in grades if chunk not in hits]
        reason = f"{len(hits)} of {len(grades)} relevant chunks among {len(ranked)} retrieved"
        if missing:
            reason += f"; missing: {', '.join(missing[:5])}"
        findings = tuple(Finding(f"not retrieved: {chunk!r}") for chunk in missing[:20])
        return Score(value, reason, findings=findings, details={"hits": hits, "missing": missing})

    @abstractmethod
    def measure(self, ranked: list[str], grades: Mapping[str, float]) -> float:
        """The measure itself: distinct ids in rank order, relevant ids with their grades."""


@dataclass(frozen=True, kw_only=True)
class RecallAtK(_Ranked):
    """The share of the relevant chunks that stand among the first k."""

    NAME: ClassVar[str] = "recall_at_k"

    def measure(self, ranked: list[str], grades: Mapping[str, float]) -> float:
        """Hits over relevant."""
        return sum(chunk in grades for chunk in ranked) / len(grades)


@dataclass(frozen=True, kw_only=True)
class PrecisionAtK(_Ranked):
    """The share of the first k ranks that are relevant; ranks left empty count as misses."""

    NAME: ClassVar[str] = "precision_at_k"

    def measure(self, ranked: list[str], grades: Mapping[str, float]) -> float:
        """Hits over k, or over all that was retrieved where k is 0."""
        ranks = self.k or len(ranked)
        return sum(chunk in grades for chunk in ranked) / ranks if ranks else 0.0


@dataclass(frozen=True, kw_only=True)
class MeanReciprocalRank(_Ranked):
    """One over the rank of the first relevant chunk, 0 where none is found."""

    NAME: ClassVar[str] = "mrr"

    def measure(self, ranked: list[str], grades: Mapping[str, float]) -> float:
        """The reciprocal rank of this case; a run's mean is the MRR."""
        return next((1 / rank for rank, chunk in enumerate(ranked, 1) if chunk in grades), 0.0)


@dataclass(frozen=True, kw_only=True)
class Ndcg(_Ranked):
    """Normalised discounted cumulative gain, 0..1: relevant chunks early, the best ones first.

    Source: Järvelin and Kekäläinen (2002), ACM TOIS 20(4), 422-446, with the gain as the grade
    itself and the discount log2(rank + 1).
    """

    NAME: ClassVar[str] = "ndcg"

    def measure(self, ranked: list[str], grades: Mapping[str, float]) -> float:
        """Gain of this order over the gain of the best order."""
        best = sorted(grades.values(), reverse=True)
        ideal = _gain(best[: self.k] if self.k else best)
        return min(1.0, _gain([grades.get(chunk, 0.0) for chunk in ranked]) / ideal)


def _gain(grades: list[float]) -> float:
    return math.fsum(grade / math.log2(rank + 1) for rank, grade in enumerate(grades, 1))


def _grades(value: Any, case: Case, scorer: _Ranked) -> dict[str, float]:
    """Relevant ids with their grades: 1 each for a list; a grade of 0 is not relevant."""
    grades = dict(value) if isinstance(value, Mapping) else None
    if isinstance(value, (list, tuple)):
        grades = dict.fromkeys(value, 1.0)
    if grades is None or not all(
        isinstance(chunk, str) and isinstance(grade, (int, float)) and 0 <= grade < math.inf
        for chunk, grade in grades.items()
    ):
        raise ScorerError(
            f"case {case.id!r}: 'expected.{scorer.expected}' must list chunk ids, or map them to "
            f"grades of 0 or more (scorer {scorer.NAME!r})."
        )
    return {chunk: float(grade) for chunk, grade in grades.items() if grade > 0}

"""Every number of a text found in the material, or listed as unsourced.

A number is sourced when the material holds the same quantity in any notation, or a more precise
one that rounds to it. The sign counts: -3.5 does not source 3.5, which is listed apart.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from evalkit.errors import ScorerError
from evalkit.records import Case, Finding, Reply, Score
from evalkit.scorers.answer import no_answer
from evalkit.scorers.citations import Citations, trace_citations
from evalkit.scorers.number_reading import Number, numbers_in, read
from evalkit.scorers.thinking import masked_text

__all__ = ["SourcedNumbers", "Trace", "TracedNumber", "trace_sources"]

_SAME = 1e-9  # relative: two spellings of one decimal number


@dataclass(frozen=True, slots=True)
class TracedNumber:
    """A number of the text and the file of the material that holds it, or None."""

    number: Number
    source: str | None
    sign_differs: bool = False

    @property
    def value(self) -> float:
        """The value as the text states it; 12 for "12 %"."""
        return self.number.value


@dataclass(frozen=True, slots=True)
class Trace:
    """Where the numbers and the citations of a text come from."""

    numbers: tuple[TracedNumber, ...]
    citations: Citations
    problem: str = ""

    @property
    def sourced(self) -> tuple[TracedNumber, ...]:
        """Numbers that the material holds."""
        return tuple(n for n in self.numbers if n.source is not None)

    @property
    def unsourced(self) -> tuple[TracedNumber, ...]:
        """Numbers that the material does not hold, those of the opposite sign among them."""
        return tuple(n for n in self.numbers if n.source is None)


def trace_sources(text: str, material: Mapping[str, str] | str) -> Trace:
    """Trace every number and every citation of a text to its source.

    Args:
        text: LaTeX, Markdown or plain text.
        material: File names to their text, or one text. A .bib file is no source of data, but of
            what may be cited.
    """
    files = {"material": material} if isinstance(material, str) else material
    known = _Known.of(files)
    bibs = [files[name] for name in sorted(files) if name.endswith(".bib")]
    traced: list[TracedNumber] = []
    for number in numbers_in(text):
        source = known.source_of(number)
        if source is None and number.parts:
            sources = [known.source_of(part) for part in number.parts]
            if None not in sources:
                traced += map(TracedNumber, number.parts, sources)
                continue
        opposite = source is None and known.holds(number, sign=-1.0)
        traced.append(TracedNumber(number, source, opposite))
    citations = trace_citations(text, "\n".join(b for b in bibs if b))
    return Trace(tuple(traced), citations, read(text).problem)


@dataclass(frozen=True, slots=True)
class _Known:
    """The values of the material, sorted, each with the file that holds it."""

    values: list[float] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, files: Mapping[str, str]) -> _Known:
        pairs: set[tuple[float, str]] = set()
        for name, text in files.items():
            if name.endswith(".bib"):
                continue
            for number in numbers_in(text, everything=True):
                pairs.update((v, name) for n in (number, *number.parts) for v, _ in _meanings(n))
        ordered = sorted(pairs)
        return cls([v for v, _ in ordered], [name for _, name in ordered])

    def source_of(self, number: Number, *, sign: float = 1.0) -> str | None:
        for value, place in _meanings(number):
            slack = abs(value) * _SAME
            if place < 1 or abs(value) >= 10:  # a bare digit would match nearly anything by chance
                slack += place / 2 * (1 + 1e-6)
            if not math.isfinite(value):
                continue
            at = bisect_left(self.values, sign * value - slack)
            if at < len(self.values) and self.values[at] <= sign * value + slack:
                return self.files[at]
        return None

    def holds(self, number: Number, *, sign: float) -> bool:
        return number.value != 0 and self.source_of(number, sign=sign) is not None


def _meanings(number: Number) -> Iterable[tuple[float, float]]:
    """(value, place) of a number; 12 % is both 12 (a column in percent) and 0.12."""
    yield number.value, number.place
    if number.percent:
        yield number.value / 100, number.place / 100


@dataclass(frozen=True)
class SourcedNumbers:
    """Share of the reply's numbers that the case holds; 1.0 up to `max_unsourced` others.

    Args:
        max_unsourced: Numbers without a source that are tolerated (a mean the text worked out).
        sources: What counts as a source: "material", "context", "inputs".
    """

    VERSION: ClassVar[int] = 1
    max_unsourced: int = 0
    sources: tuple[str, ...] = ("material", "context", "inputs")

    def __post_init__(self) -> None:
        if unknown := set(self.sources) - {"material", "context", "inputs"}:
            raise ScorerError(
                f"sourced_numbers: sources has {sorted(unknown)}; "
                "it takes 'material', 'context' and 'inputs'."
            )

    def __call__(self, case: Case, reply: Reply) -> Score:
        """Score the reply's numbers."""
        if (none := no_answer(case, reply)) is not None:
            return none
        trace = trace_sources(masked_text(reply.text), self._files(case))
        if trace.problem:
            return Score(0.0, f"the numbers could not be read: {trace.problem}")
        total, lost = len(trace.numbers), trace.unsourced
        if not total:
            return Score(1.0, "the reply states no number")
        findings = tuple(
            Finding(
                f"{n.number.text} is not in the material"
                + (" (the opposite sign is)" if n.sign_differs else ""),
                n.number.start,
                n.number.end,
            )
            for n in lost
        )
        reason = f"{total - len(lost)} of {total} numbers have a source"
        if lost:
            reason += "; unsourced: " + ", ".join(n.number.text for n in lost[:5])
        value = 1.0 if len(lost) <= self.max_unsourced else 1 - len(lost) / total
        details = {"unsourced": [n.value for n in lost if math.isfinite(n.value)], "numbers": total}
        return Score(value, reason, findings=findings, details=details)

    def _files(self, case: Case) -> dict[str, str]:
        files: dict[str, str] = {}
        if "material" in self.sources:
            files |= case.material
        if "context" in self.sources:
            files |= {f"context:{document.id}": document.text for document in case.context}
        if "inputs" in self.sources:
            files |= {f"inputs:{key}": _as_text(value) for key, value in case.inputs.items()}
        return files


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)

"""The contract of a JSON reply: its schema, and the sources it may name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from evalkit.errors import ScorerError
from evalkit.records import Case, Finding, Reply, Score
from evalkit.scorers.answer import expected_texts, expects_refusal, no_answer
from evalkit.scorers.json_reader import JsonReading, read_json
from evalkit.scorers.json_schema import violations
from evalkit.scorers.refusal import refusal_in

__all__ = ["JsonContract", "SourcesExist", "SourcesWithin"]


@dataclass(frozen=True, kw_only=True)
class JsonContract:
    """1.0 when the reply is one JSON object that meets the schema, else 0.0 with every violation.

    Args:
        schema: A JSON Schema, or the name of its file beside the suite. Rules across fields are
            its own if/then.
        allow_repair: Whether a reply that had to be mended (prose or fences around the object, a
            trailing comma, ...) may pass. A thinking block is set aside and needs no mending.
    """

    schema: Mapping[str, Any] = field(metadata={"file": "json"})
    allow_repair: bool = False

    VERSION: ClassVar[int] = 1

    def __post_init__(self) -> None:
        violations(None, self.schema)  # a schema that is none is told before a run is paid

    def __call__(self, case: Case, reply: Reply) -> Score:
        """Score one reply; each violation and each mending is a finding."""
        if (score := no_answer(case, reply)) is not None:
            return score
        reading = read_json(reply.text, self.schema)
        if reading.status == "absent" and (refused := refusal_in(reply.text)):
            right = expects_refusal(case)
            what = "refusal, as the case expects" if right else "refusal"
            return Score(float(right), f"{what}: {refused.message}", findings=(refused,))
        start, end = reading.span or (None, None)
        findings = tuple(Finding(said, start, end) for said in (*reading.problems, *reading.mended))
        details = {"status": reading.status, "mended": reading.mended, "problems": reading.problems}
        if reading.status != "ok":
            return Score(0.0, reading.reason, findings=findings, details=details)
        if reading.mended and not self.allow_repair:
            reason = f"the JSON had to be mended: {'; '.join(reading.mended)}"
            return Score(0.0, reason, findings=findings, details=details)
        how = " after mending" if reading.mended else ""
        return Score(1.0, f"the contract is met{how}", findings=findings, details=details)


@dataclass(frozen=True, kw_only=True)
class SourcesExist:
    """1.0 when every source the reply names is a page of the collection, else 0.0.

    Args:
        collection: The ids of all pages. Empty: the pages of the case's own context.
        field: The field of the JSON reply that lists the sources.
    """

    collection: tuple[str, ...] = ()
    field: str = "sources"

    VERSION: ClassVar[int] = 1

    def __call__(self, case: Case, reply: Reply) -> Score:
        """Score one reply; each invented source is a finding."""
        cited = _cited(case, reply, self.field)
        if isinstance(cited, Score):
            return cited
        pages = set(self.collection) or {page.id for page in case.context}
        if not pages:
            raise ScorerError(
                f"case {case.id!r} has no context, so 'sources_exist' knows no page. "
                "Give the criterion a 'collection', or a 'where' that leaves this case out."
            )
        return _all_in(cited, pages, reply, "not in the collection")


@dataclass(frozen=True, kw_only=True)
class SourcesWithin:
    """1.0 when every source the reply names is one the case expects, else 0.0.

    Args:
        expected: Key of `case.expected` that lists the sources an answer may rest on.
        at_least: How many of them must be named (all of them where the case has fewer).
        field: The field of the JSON reply that lists the sources.
    """

    expected: str = "sources"
    at_least: int = 0
    field: str = "sources"

    VERSION: ClassVar[int] = 1

    def __call__(self, case: Case, reply: Reply) -> Score:
        """Score one reply; each source that is not expected is a finding."""
        expected = set(expected_texts(case, self.expected, "sources_within"))
        cited = _cited(case, reply, self.field)
        if isinstance(cited, Score):
            return cited
        score = _all_in(cited, expected, reply, "not expected")
        needed = min(self.at_least, len(expected))
        if score.value == 1.0 and len(set(cited)) < needed:
            return Score(0.0, f"{len(set(cited))} expected sources named, {needed} needed")
        return score


def _cited(case: Case, reply: Reply, field: str) -> tuple[str, ...] | Score:
    """The sources a reply names, or the score of a reply in which they cannot be read."""
    if (score := no_answer(case, reply)) is not None:
        return score
    reading: JsonReading = read_json(reply.text)
    if reading.status != "ok":
        return Score(0.0, f"no sources can be read: {reading.reason}")
    if not isinstance(reading.value, Mapping) or field not in reading.value:
        return Score(0.0, f"the reply has no field {field!r}")
    value = reading.value[field]
    sources = [value] if isinstance(value, str) else value
    if not isinstance(sources, list) or not all(isinstance(source, str) for source in sources):
        return Score(0.0, f"the field {field!r} is no list of texts")
    return tuple(sources)


def _all_in(cited: tuple[str, ...], allowed: set[str], reply: Reply, fault: str) -> Score:
    if not cited:
        return Score(1.0, "no source named")
    wrong = [source for source in dict.fromkeys(cited) if source not in allowed]
    if not wrong:
        return Score(1.0, f"{len(cited)} of {len(cited)} sources are right")
    findings: list[Finding] = []
    for source in wrong:
        at = reply.text.find(f'"{source}"') + 1 if source else 0
        place = (at, at + len(source)) if at else (None, None)
        findings.append(Finding(f"{source!r} is {fault}", *place))
    shown = ", ".join(repr(source[:80]) for source in wrong[:5])
    reason = f"{len(wrong)} of {len(set(cited))} sources {fault}: {shown}"
    return Score(0.0, reason, findings=tuple(findings))

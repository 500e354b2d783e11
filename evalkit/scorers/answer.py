"""The answer inside a reply, or the score of a reply that holds none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evalkit.errors import ScorerError
from evalkit.hashing import canonical_json
from evalkit.records import Case, Finding, Finish, Reply, Score
from evalkit.scorers.json_reader import read_json
from evalkit.scorers.thinking import masked_text, visible_text

__all__ = [
    "Answer",
    "answer_of",
    "expected_texts",
    "expected_value",
    "expects_refusal",
    "no_answer",
]


@dataclass(frozen=True, slots=True)
class Answer:
    """The text to be scored. `placed`: its offsets are those of the reply's text."""

    text: str
    placed: bool = True

    def finding(self, message: str, start: int, end: int) -> Finding:
        """A finding at `start`..`end` of this text, placed in the reply where that is known."""
        return Finding(message, start, end) if self.placed else Finding(message)


def no_answer(case: Case, reply: Reply) -> Score | None:
    """The score of a reply that is empty, cut off, filtered or refused; None for an answer.

    Each is a result and scores 0 under a reason of its own. A refusal that the server marked is
    right, and scores 1, where the case expects one (`expected.refusal = true`).
    """
    if reply.refused or reply.finish is Finish.CONTENT_FILTER:
        what = "refusal" if reply.refused else "filtered by the server"
        said = f": {reply.refusal[:200]}" if reply.refusal else ""
        if expects_refusal(case):
            return Score(1.0, f"{what}, as the case expects{said}")
        return Score(0.0, f"{what}{said}")
    answer = visible_text(reply.text).strip()
    if reply.truncated:
        if answer:
            return Score(0.0, f"cut off by the output budget after {len(answer)} characters")
        hidden = reply.usage.reasoning_tokens if reply.usage else None
        spent = " (it went to hidden reasoning)" if hidden or reply.reasoning or reply.text else ""
        return Score(0.0, f"no answer: cut off by the output budget{spent}")
    if not answer:
        if reply.reasoning or reply.text.strip():
            return Score(0.0, "no answer text, but reasoning text present")
        return Score(0.0, "no answer: the reply is empty")
    return None


def expects_refusal(case: Case) -> bool:
    """Whether a refusal is the right reply to this case."""
    return case.expected.get("refusal") is True


def expected_value(case: Case, key: str, scorer: str) -> Any:
    """What the case says under `expected.<key>`.

    Raises:
        ScorerError: If it says nothing.
    """
    if key not in case.expected:
        raise ScorerError(
            f"case {case.id!r} has no 'expected.{key}', which the scorer {scorer!r} reads. "
            "Add it, or give the criterion a 'where' that leaves this case out."
        )
    return case.expected[key]


def expected_texts(case: Case, key: str, scorer: str) -> tuple[str, ...]:
    """The text or list of texts under `expected.<key>`.

    Raises:
        ScorerError: If it is missing or something else.
    """
    value = expected_value(case, key, scorer)
    texts = (value,) if isinstance(value, str) else value
    if not isinstance(texts, (list, tuple)) or not all(isinstance(t, str) for t in texts):
        raise ScorerError(
            f"case {case.id!r}: 'expected.{key}' must be a text or a list of texts, "
            f"not {type(value).__name__} (scorer {scorer!r})."
        )
    return tuple(texts)


def answer_of(case: Case, reply: Reply, field: str = "") -> Answer | Score:
    """The visible answer, or one field of the JSON object in it; a score where there is none."""
    if (score := no_answer(case, reply)) is not None:
        return score
    if not field:
        return Answer(masked_text(reply.text))
    reading = read_json(reply.text)
    if reading.status != "ok":
        return Score(0.0, f"no field {field!r}: {reading.reason}")
    if not isinstance(reading.value, Mapping) or field not in reading.value:
        return Score(0.0, f"no field {field!r} in the JSON of the reply")
    value = reading.value[field]
    return Answer(value if isinstance(value, str) else canonical_json(value), placed=False)

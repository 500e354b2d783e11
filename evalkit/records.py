"""The words every room shares: frozen values that check themselves and do nothing else.

A `Case` goes in, a `Request` is sent, a `Reply` comes back, a `Score` or a `Verdict` is given, a
`Row` keeps them together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

__all__ = [
    "Case",
    "Document",
    "Finding",
    "Finish",
    "Message",
    "Reply",
    "Request",
    "Row",
    "RowStatus",
    "Score",
    "ScoreStatus",
    "Usage",
    "Verdict",
]


@dataclass(frozen=True, slots=True)
class Document:
    """A page of context: an id to cite and its text."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Case:
    """One test item: what goes in, and what its scorers expect.

    `expected` is an object whose keys are named by the scorers that read them. `material` maps
    file names to their text. Cases with one `cluster` are not independent of each other.
    """

    id: str
    stratum: str = "all"
    inputs: Mapping[str, Any] = field(default_factory=dict)
    context: tuple[Document, ...] = ()
    material: Mapping[str, str] = field(default_factory=dict)
    expected: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    path: str | None = None
    cluster: str | None = None
    why: str = ""

    @property
    def unit(self) -> str:
        """What counts as one independent observation: the cluster, or the case itself."""
        return self.cluster or self.id


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat: `role` is system, user or assistant."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Request:
    """What decides a reply and nothing else: no timeouts, no keys; `model` is "endpoint/model"."""

    model: str
    messages: tuple[Message, ...]
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    schema: Mapping[str, Any] | None = None
    repeat: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict)


class Finish(StrEnum):
    """Why a reply ended."""

    STOP = "stop"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    TOOL_CALLS = "tool_calls"
    REFUSAL = "refusal"
    TOO_LONG = "too_long"  # the prompt did not fit the model's context: no answer was tried
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the server counted them; None is unknown, never zero."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    total_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back, whatever the server sent.

    `text` never holds reasoning that the server kept apart. `usage` None is unknown. `latency_s`
    and `attempts` are those of the call that was paid. `changes` names parameters the server made
    us change; `warnings` what a reader must know (for instance a prompt cut by the server).
    `retrieved` holds chunk ids a Python task returned. `key` is the
    call key ("" when it never was a call).
    """

    text: str
    reasoning: str = ""
    refusal: str = ""
    finish: Finish = Finish.STOP
    usage: Usage | None = None
    latency_s: float | None = None
    attempts: int = 1
    model: str = ""
    changes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    retrieved: tuple[str, ...] | None = None
    key: str = ""

    @property
    def truncated(self) -> bool:
        """True when the output budget cut the reply off."""
        return self.finish is Finish.LENGTH

    @property
    def refused(self) -> bool:
        """True when the server itself marked the reply as a refusal."""
        return bool(self.refusal) or self.finish is Finish.REFUSAL


class ScoreStatus(StrEnum):
    """Whether a score is a measurement.

    OK: measured. UNSCORED: a judge's verdict could not be read. NOT_MEASURED: the means were
    missing (no TeX engine). NOT_JUDGED: a hard criterion stopped the case, no judge was paid.
    MISSING: there was no reply at all.
    """

    OK = "ok"
    UNSCORED = "unscored"
    NOT_MEASURED = "not_measured"
    NOT_JUDGED = "not_judged"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing a scorer saw; `start`, `end` are character offsets in the reply, or None."""

    message: str
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Score:
    """A value in 0..1 with its reason; `value` is None exactly when `status` is not OK."""

    value: float | None
    reason: str
    status: ScoreStatus = ScoreStatus.OK
    findings: tuple[Finding, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.value is None) == (self.status is ScoreStatus.OK):
            raise ValueError(
                f"a score with status {self.status} cannot have the value {self.value}"
            )
        if self.value is not None and not (math.isfinite(self.value) and 0.0 <= self.value <= 1.0):
            raise ValueError(f"a score is in 0..1, not {self.value}")
        if not self.reason:
            raise ValueError("a score says why: reason is empty")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one judge said of one draft, one criterion, or one ordered pair.

    `value` is 0..1 (criteria: 1 yes, 0 no; scale: (level - lo)/(hi - lo); pairwise: 1 first, 0.5
    tie, 0 second) and None when `status` is UNSCORED. `label` is the judge's own word in the file's
    terms ("yes", "4", "first"). `flags` name what a reader must know: "contradiction", "mended",
    "injection", "no_schema", "same_family".
    """

    value: float | None
    label: str | None
    justification: str = ""
    status: ScoreStatus = ScoreStatus.OK
    reason: str = ""
    flags: tuple[str, ...] = ()
    raw: str = ""
    judge_hash: str = ""
    key: str = ""

    def __post_init__(self) -> None:
        if (self.value is None) == (self.status is ScoreStatus.OK):
            raise ValueError(f"a verdict with status {self.status} cannot have value {self.value}")
        if self.value is not None and not 0.0 <= self.value <= 1.0:
            raise ValueError(f"a verdict's value is in 0..1, not {self.value}")


class RowStatus(StrEnum):
    """OK: a usable reply. SYSTEM_ERROR: an empty, cut off or filtered one; it scores lowest.

    MISSING: no reply at all; it is counted and shown, never averaged.
    """

    OK = "ok"
    SYSTEM_ERROR = "system_error"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Row:
    """One case, one repeat: its reply and its scores.

    `scores` maps a criterion's name to its score, `verdicts` a judged criterion's name to the
    verdicts behind it, `by` a criterion's name to the hash of its scorer or judge.
    """

    case_id: str
    stratum: str
    repeat: int
    rendered_prompt_sha: str
    reply: Reply | None
    status: RowStatus
    error: str = ""
    cluster: str | None = None
    scores: Mapping[str, Score] = field(default_factory=dict)
    verdicts: Mapping[str, tuple[Verdict, ...]] = field(default_factory=dict)
    by: Mapping[str, str] = field(default_factory=dict)

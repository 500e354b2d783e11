"""One reader of JSON in model replies: the value, and the list of what it set aside or mended.

It never invents: an object that was cut off is not closed, a number that JSON does not have is
refused, and of several objects that fit and disagree none is chosen.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from evalkit.hashing import canonical_json
from evalkit.scorers.json_schema import violations
from evalkit.scorers.json_tolerant import MAX_DEPTH, latex_escape, try_json
from evalkit.scorers.thinking import masked_text, thinking_spans

__all__ = ["JsonReading", "JsonStatus", "read_json"]

JsonStatus = Literal["ok", "absent", "truncated", "ambiguous", "invalid"]

_WHITE = " \t\r\n"
_TOO_DEEP = f"$: nested more than {MAX_DEPTH} levels deep"
_MAX_ATTEMPTS = 10_000  # objects, whole or broken, in one reply, before the reader gives up
# An object opens with a key and a colon, with its end, or with the end of the reply.
_OPENS = (
    r"\{(?=\s*+(?:\}|\Z"
    r'|"(?>[^"\\]|\\.)*+"\s*+(?::|\Z)'
    r"|'(?>[^'\\]|\\.)*+'\s*+(?::|\Z)"
    r'|"[^"{}\n]*+\Z))'
)
_OBJECT = re.compile(_OPENS, re.DOTALL)
_OBJECT_OR_ARRAY = re.compile(rf"{_OPENS}|\[(?=\s*+[\[\]{{\"'\-0-9tfnTFN])", re.DOTALL)
_FENCE_BEFORE = re.compile(r"(?:```|~~~)[ \t]*[\w-]*\s*\Z")


@dataclass(frozen=True, slots=True)
class JsonReading:
    """What a reply holds as JSON.

    `status`: "ok"; "absent" (no object); "truncated" (cut off, never closed); "ambiguous" (several
    fit and disagree); "invalid" (read, but it breaks the schema or holds what JSON does not have).
    `value` is None unless "ok", or "invalid" by the schema alone. `mended` names each repair,
    `set_aside` holds the thinking blocks (no repair), `problems` the violations as "$.path:
    sentence". `span` is where the value stands in the reply.
    """

    value: Any | None
    status: JsonStatus
    mended: tuple[str, ...] = ()
    set_aside: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    span: tuple[int, int] | None = None

    @property
    def reason(self) -> str:
        """The status in one sentence."""
        if self.status == "ok":
            return "JSON read" + (f"; mended: {'; '.join(self.mended)}" if self.mended else "")
        more = f" (and {len(self.problems) - 1} more)" if len(self.problems) > 1 else ""
        said = f": {self.problems[0]}{more}" if self.problems else ""
        return {
            "absent": "no JSON object in the reply",
            "truncated": "the JSON was cut off before its end",
            "ambiguous": "more than one reading of the JSON",
            "invalid": "the JSON breaks the contract",
        }[self.status] + said


@dataclass(slots=True)
class _Candidate:
    value: Any
    span: tuple[int, int]
    mended: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    clashes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(slots=True)
class _Found:
    candidates: list[_Candidate] = field(default_factory=list)
    cut: bool = False
    hopeless: str = ""


def read_json(text: str, schema: Mapping[str, Any] | None = None) -> JsonReading:
    """Find the one JSON object of a reply, in prose, in fences or after a thinking block.

    Args:
        text: The reply as it came.
        schema: What the object must be; it also tells the answer from objects that only show the
            form. Arrays and plain values in prose are looked for only if its `type` says so.

    Raises:
        ScorerError: If the schema is none.
    """
    set_aside = tuple(text[start:end] for start, end in thinking_spans(text))
    masked = masked_text(text)
    found = _find(masked, schema)
    if found.hopeless:
        return JsonReading(None, "invalid", (), set_aside, (found.hopeless,))
    for candidate in found.candidates:
        candidate.problems = candidate.refused or (
            violations(candidate.value, schema) if schema is not None else ()
        )
    fitting = [c for c in found.candidates if not c.problems]
    if schema is None and len(fitting) > 1:  # an empty pair of braces among objects is prose
        fitting = [c for c in fitting if c.value] or fitting
    if found.cut or (not found.candidates and set_aside and not masked.strip()):
        return JsonReading(None, "truncated", (), set_aside)
    if not found.candidates:
        return JsonReading(None, "absent", (), set_aside)
    if not fitting:
        nearest = min(reversed(found.candidates), key=lambda c: len(c.problems))
        value = None if nearest.refused else nearest.value
        mended = _mended(nearest, masked, found.candidates)
        return JsonReading(value, "invalid", mended, set_aside, nearest.problems, nearest.span)
    distinct = {canonical_json(c.value) for c in fitting}
    if len(distinct) > 1:
        problem = f"{len(distinct)} objects fit and disagree"
        return JsonReading(None, "ambiguous", (), set_aside, (problem,))
    chosen = fitting[-1]
    if chosen.clashes:
        return JsonReading(None, "ambiguous", (), set_aside, chosen.clashes, chosen.span)
    mended = _mended(chosen, masked, found.candidates)
    return JsonReading(chosen.value, "ok", mended, set_aside, (), chosen.span)


def _find(text: str, schema: Mapping[str, Any] | None) -> _Found:
    found = _Found()
    start = len(text) - len(text.lstrip(_WHITE))
    whole = text[start:].rstrip(_WHITE)
    latex = latex_escape.search(text) is not None
    if whole and not latex:
        try:
            value = _STRICT.decode(whole)
        except (ValueError, RecursionError):
            pass
        else:
            if isinstance(value, (dict, list)) or _types(schema) - {"object", "array"}:
                if not _shallow(value):
                    return _Found(hopeless=_TOO_DEEP)
                found.candidates.append(_Candidate(value, (start, start + len(whole))))
                return found
    opens = _OBJECT_OR_ARRAY if "array" in _types(schema) else _OBJECT
    dead: set[int] = set()
    tried = work = at = 0
    while opening := opens.search(text, at):
        start = opening.start()
        at = start + 1
        if start in dead:
            continue
        attempt = try_json(text, start, latex=latex)
        tried += 1
        work += attempt.end - start
        if attempt.outcome == "done":
            at = attempt.end
            found.candidates.append(
                _Candidate(
                    attempt.value,
                    (start, attempt.end),
                    tuple(attempt.mended),
                    tuple(attempt.refused),
                    tuple(attempt.clashes),
                )
            )
        elif attempt.outcome == "deep":
            return _Found(hopeless=_TOO_DEEP)
        elif attempt.outcome == "cut":
            found.cut = attempt.begun or not found.candidates
            return found
        dead.update(attempt.open)
        if tried > _MAX_ATTEMPTS or work > 8 * len(text) + 10_000:
            return _Found(hopeless="$: too many objects, whole or broken, to tell which is meant")
    return found


def _mended(chosen: _Candidate, text: str, candidates: Sequence[_Candidate]) -> tuple[str, ...]:
    """What was done to the object, then what had to be left out around it."""
    before, after = text[: chosen.span[0]], text[chosen.span[1] :]
    around: list[str] = []
    if fence := _FENCE_BEFORE.search(before[-100:]):
        around.append("a code fence around it was taken off")
        before = before[: len(before) - len(fence[0])]
        after = re.sub(r"\A\s*+(?:```|~~~)", "", after, count=1)
    if before.strip(_WHITE) or after.strip(_WHITE):
        around.append("text around it was left out")
    if len(candidates) > 1:
        around.append(f"{len(candidates) - 1} other object(s) were passed over")
    return (*chosen.mended, *around)


def _types(schema: Mapping[str, Any] | None) -> set[str]:
    named = schema.get("type", ()) if schema is not None else ()
    return {named} if isinstance(named, str) else set(named)


def _shallow(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return True
    return False


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key given twice")
    return value


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(digits)
    return value


def _whole(digits: str) -> int:
    _finite(digits)
    return int(digits)


# Strict JSON, and nothing that two readers could understand differently.
_STRICT = json.JSONDecoder(
    object_pairs_hook=_once, parse_constant=_refuse, parse_float=_finite, parse_int=_whole
)

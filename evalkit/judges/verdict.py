"""From a judge's reply to a verdict, or to the reason why there is none.

A reading never guesses: no clamping, no rounding, no default, no first label that happens to stand
in the text. What is not one clear verdict is unread, and says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, cast

from evalkit.judges.labels import (
    PAIR,
    YES_NO,
    Vocabulary,
    exact_label,
    first_words,
    read_label,
    read_level,
)
from evalkit.judges.statements import (
    bracketed,
    conclusions_in,
    final_values,
    marked_values,
    positions_in,
    scores_in,
    states_tie,
)
from evalkit.scorers.json_reader import read_json
from evalkit.scorers.thinking import visible_text

__all__ = ["Reading", "read_criteria", "read_pairwise", "read_scale"]

_JUSTIFICATIONS = ("justification", "reasoning", "reason", "explanation", "rationale", "analysis")
_CRITERION_KEYS = ("verdict", "answer", "label", "result", "passed", "pass", "value")
_SCALE_KEYS = ("score", "rating", "level", "grade", "verdict", "value")
_PAIR_KEYS = ("verdict", "winner", "preference", "better", "choice", "answer", "label")


@dataclass(frozen=True, slots=True)
class Reading:
    """One verdict as it was said: a label in the judge file's terms, or None and the reason."""

    label: str | None
    justification: str = ""
    reason: str = ""
    flags: tuple[str, ...] = ()


def read_criteria(text: str, names: Sequence[str], *, abstain: bool = True) -> dict[str, Reading]:
    """Read the yes/no verdicts of one reply, one reading for each criterion.

    Args:
        text: The judge's reply.
        names: The criteria of the judge file.
        abstain: Whether *cannot tell* was offered; it is unscored either way, under its own reason.
    """
    found, problem, flags, visible = _json_of(
        text, (*names, *(_CRITERION_KEYS if len(names) == 1 else ()))
    )
    if found is None:
        if len(names) == 1 and not problem:
            return {names[0]: _from_text(visible, YES_NO)}
        reason = problem or "the reply holds no verdict"
        return {name: Reading(None, reason=reason, flags=flags) for name in names}
    readings: dict[str, Reading] = {}
    for name in names:
        part = found.get(name)
        if part is None and len(names) == 1:
            part = found
        reading = _criterion(part, flags)
        if reading.label == "cannot_tell" and not abstain:
            reading = replace(reading, flags=(*reading.flags, "abstained_unasked"))
        readings[name] = reading
    return readings


def _criterion(part: Any, flags: tuple[str, ...]) -> Reading:
    if part is None:
        return Reading(None, reason="the reply leaves this criterion out", flags=flags)
    if not isinstance(part, Mapping):
        label = read_label(part, YES_NO)
        return Reading(label, "", "" if label else f"not yes or no: {_short(part)}", flags)
    fields = cast("Mapping[str, Any]", part)
    said, why = _pick(fields, _CRITERION_KEYS), _justification(fields)
    if said is None:
        return Reading(None, why, "the object holds no verdict", flags)
    label = read_label(said, YES_NO)
    if label is None:
        return Reading(None, why, f"not yes or no: {_short(said)}", flags)
    stated = conclusions_in(why)
    if label in ("yes", "no") and stated and label not in stated:
        flags = (*flags, "contradiction")
    return Reading(label, why, flags=flags)


def read_scale(text: str, levels: Sequence[int], *, pass_at: int | None = None) -> Reading:
    """Read one level from a reply; the label is the level's digits.

    A second field that the judge filled in ("passed") never decides: where it contradicts
    `pass_at`, or the justification names another score, the verdict carries "contradiction".
    """
    found, problem, flags, visible = _json_of(text, _SCALE_KEYS)
    if found is None:
        if problem:
            return Reading(None, reason=problem, flags=flags)
        return _level_from_text(visible, levels)
    said, why = _pick(found, _SCALE_KEYS), _justification(found)
    level = read_level(said, levels)
    if level is None:
        words = f"{_short(said)} is not a level of {min(levels)}..{max(levels)}"
        return Reading(None, why, words, flags)
    claimed = next((found[k] for k in ("passed", "pass") if isinstance(found.get(k), bool)), None)
    stated = scores_in(why)
    wrong_rule = pass_at is not None and claimed is not None and claimed != (level >= pass_at)
    if wrong_rule or (stated and float(level) not in stated):
        flags = (*flags, "contradiction")
    return Reading(str(level), why, flags=flags)


def read_pairwise(text: str, *, ties: bool = True) -> Reading:
    """Read which of two drafts a reply prefers: "first", "second" or "tie" by place shown.

    `a`, `1` and *first* name the draft shown first. In free text a final verdict counts before a
    `[[A]]`, and that before a sentence that calls one of them better; where the sentences call both
    better the reply is unread. With `ties` False a tie was not offered and is unread.
    """
    found, problem, flags, visible = _json_of(text, _PAIR_KEYS)
    if found is None:
        if problem:
            return Reading(None, reason=problem, flags=flags)
        reading = _from_text(visible, PAIR)
    else:
        said, why = _pick(found, _PAIR_KEYS), _justification(found)
        label = read_label(said, PAIR)
        stated = positions_in(why)
        if label and len(stated) == 1 and label not in stated:
            flags = (*flags, "contradiction")
        reason = "" if label else f"not A, B or tie: {_short(said)}"
        reading = Reading(label, why, reason, flags)
    if reading.label == "tie" and not ties:
        return replace(reading, label=None, reason="a tie, and this judge must choose")
    return reading


def _from_text(text: str, vocabulary: Vocabulary) -> Reading:
    """A label from prose: the whole reply, a final verdict, [[label]], or a statement."""
    bare = text.strip()
    if len(bare) <= 40 and (label := exact_label(bare, vocabulary)):
        return Reading(label, flags=("free_text",))
    steps: list[set[str]] = [
        _labels(final_values(text), vocabulary),
        _labels(marked_values(text), vocabulary),
        _labels(bracketed(text), vocabulary),
    ]
    if vocabulary is PAIR:
        steps.append(positions_in(text) or ({"tie"} if states_tie(text) else set()))
    return _one_of(steps, bare, "verdicts")


def _level_from_text(text: str, levels: Sequence[int]) -> Reading:
    bare = text.strip()
    if (level := read_level(bare, levels)) is not None:
        return Reading(str(level), flags=("free_text",))
    steps = [
        {str(n) for v in values if (n := read_level(first_words(v), levels)) is not None}
        for values in (final_values(text), marked_values(text), bracketed(text))
    ]
    return _one_of(steps, bare, "scores")


def _one_of(steps: Sequence[set[str]], text: str, what: str) -> Reading:
    """The one label of the strongest kind of statement found, with the text before it as reason."""
    for labels in steps:
        if len(labels) == 1:
            return Reading(labels.pop(), text, flags=("free_text",))
        if labels:
            words = ", ".join(sorted(labels))
            return Reading(None, text, f"the reply states several {what}: {words}", ("free_text",))
    if not text:
        return Reading(None, reason="the reply is empty")
    return Reading(None, reason="the reply holds no verdict; it may answer instead of judging")


def _labels(values: Iterable[str], vocabulary: Vocabulary) -> set[str]:
    found = (read_label(v, vocabulary) or read_label(first_words(v), vocabulary) for v in values)
    return {label for label in found if label}


def _pick(fields: Mapping[str, Any], keys: Sequence[str]) -> Any:
    lowered = {k.lower(): v for k, v in fields.items()}
    return next((lowered[k] for k in keys if k in lowered), None)


def _justification(fields: Mapping[str, Any]) -> str:
    said = _pick(fields, _JUSTIFICATIONS)
    return said if isinstance(said, str) else ""


def _short(value: Any) -> str:
    words = repr(value)
    return words if len(words) <= 60 else words[:57] + "..."


@lru_cache(maxsize=64)
def _any_key(keys: tuple[str, ...]) -> dict[str, Any]:
    return {"type": "object", "anyOf": [{"required": [k]} for k in keys]}


def _json_of(
    text: str, keys: tuple[str, ...]
) -> tuple[Mapping[str, Any] | None, str, tuple[str, ...], str]:
    """The one fitting object, or the problem ("" when there is none), flags, visible text."""
    visible = visible_text(text)
    if "{" not in visible:
        return None, "", (), visible
    reading = read_json(visible)
    alone = isinstance(reading.value, Mapping) and any(k in reading.value for k in keys)
    if not (reading.status == "ok" and alone):  # which of several objects is the verdict?
        reading = read_json(visible, _any_key(keys))
    if reading.status == "ok" and isinstance(reading.value, Mapping):
        flags = ("mended",) if reading.mended else ()
        return cast("Mapping[str, Any]", reading.value), "", flags, visible
    if reading.status == "truncated":
        return None, "the reply was cut off before its verdict", (), visible
    if reading.status == "ambiguous":
        return None, "the reply holds several verdicts that disagree", (), visible
    if reading.span:  # an object that is no verdict: what it quotes is none either
        visible = f"{visible[: reading.span[0]]} {visible[reading.span[1] :]}"
    return None, "", (), visible

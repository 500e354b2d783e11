"""From a judge's reply to a verdict, or to the reason why there is none.

A reading never guesses: no clamping, no rounding, no default, no first label that happens to stand
in the text. What is not one clear verdict is unread, and says why.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, cast

from evalkit.scorers.json_reader import read_json
from evalkit.scorers.thinking import visible_text

__all__ = [
    "PAIR",
    "YES_NO",
    "Reading",
    "read_criteria",
    "read_label",
    "read_level",
    "read_pairwise",
    "read_scale",
]

Vocabulary = Mapping[str, frozenset[str]]


def _words(text: str) -> frozenset[str]:
    return frozenset(word.strip() for word in text.split("|"))


_CANNOT_TELL = _words(
    "cannot_tell|cannot tell|can't tell|can not tell|unsure|unclear|unknown|not sure|undecided"
    "|无法判断|不确定|无法确定"
)
YES_NO: Vocabulary = MappingProxyType(
    {
        "yes": _words("yes|y|true|pass|passed|passes|met|satisfied|correct|是|是的|通过|符合|满足"),
        "no": _words(
            "no|n|false|fail|failed|fails|unmet|not met|not satisfied|incorrect"
            "|否|不是|不|不通过|不符合|不满足"
        ),
        "cannot_tell": _CANNOT_TELL,
    }
)
PAIR: Vocabulary = MappingProxyType(
    {
        "first": _words("a|1|first|one|甲|第一|第一个|第一份"),
        "second": _words("b|2|second|two|乙|第二|第二个|第二份"),
        "tie": _words(
            "tie|a tie|tied|draw|equal|same|both|both equal|neither|equally|equally good|c"
            "|no difference|平|平局|相同|一样|都好|都不好|不分上下"
        ),
        "cannot_tell": _CANNOT_TELL,
    }
)

_JUSTIFICATIONS = ("justification", "reasoning", "reason", "explanation", "rationale", "analysis")
_CRITERION_KEYS = ("verdict", "answer", "label", "result", "passed", "pass", "value")
_SCALE_KEYS = ("score", "rating", "level", "grade", "verdict", "value")
_PAIR_KEYS = ("verdict", "winner", "preference", "better", "choice", "answer", "label")
_NOUN = (
    r"(?:draft|output|answer|response|reply|report|option|version|assistant|model|candidate|text)"
)
_NOUN_ZH = "(?:草稿|回答|输出|报告|版本|答案|稿件)"

_PREFIX = re.compile(rf"^(?:the )?(?:{_NOUN}\s*|{_NOUN_ZH}\s*)", re.I)
_TAIL = re.compile(
    rf"\s+(?:{_NOUN}|one)$|\s*(?:wins|is (?:the )?(?:better|best|winner)|更好)$", re.I
)
_MARKUP = re.compile(r"[*_`\"'“”‘’「」\[\](){}<>#]+")
_QUOTES = re.compile(r"[*_`\"'“”‘’「」#]+")
_MARKED = re.compile(
    r"^[\s#>*_-]*(?P<final>(?:final|overall|my|最终|最后)\s*)?"
    r"(?P<word>verdict|decision|judge?ment|score|rating|grade|winner|preference|answer|"
    r"结论|判断|判定|评分|得分|裁定)\**\s*(?:is\b)?\s*[:：=]\**\s*(?P<value>\S.*?)\s*$",
    re.I | re.M,
)
_FINAL_INLINE = re.compile(
    r"(?:final|overall|最终)\s*(?:verdict|decision|judge?ment|score|rating|判断|结论|评分)"
    r"\**\s*(?:is\b)?\s*[:：=]?\**\s*(?P<value>\S[^\n]*)",
    re.I,
)
_BRACKETS = re.compile(r"\[\[\s*([^\[\]]{1,20}?)\s*\]\]")
_STATED = re.compile(
    rf"(?P<if>\b(?:if|whether|why|unless|did|had)\s+)?"
    rf"(?:\b{_NOUN}\s*[(\[]?|{_NOUN_ZH}\s*[(（]?)\s*(?P<id>[ab12])\b\s*[)\]）]?\s*"
    r"(?:is\s+(?:(?:the|a|clearly|overall|much|slightly|far|marginally|therefore|thus)\s+)*"
    r"(?:better|superior|preferable|preferred|stronger|best|winner)\b|更好|更优|胜出)",
    re.I,
)
_PREFER = re.compile(
    rf"\b(?:i|we)\s+(?:would\s+)?(?:prefer|choose|pick)\s+(?:the\s+)?{_NOUN}?\s*[(\[]?(?P<id>[ab12])\b",
    re.I,
)
_TIE_STATED = re.compile(
    r"\bboth\b[^.\n]{0,60}\bequally (?:good|bad|well|strong|weak|valid)\b"
    r"|\b(?:it is|it's|call it) a tie\b|(?:不分上下|难分高下|一样好)",
    re.I,
)
_CONCLUDES = re.compile(
    r"(?:\b(?:so|therefore|thus|hence|verdict|answer|conclusion)\b[\s,:]*"
    r"(?:(?:the\s+)?(?:verdict|answer)\s*)?(?:is\b|must be\b)?[\s:]*[\"'*]*\b(?P<en>yes|no)\b"
    r"(?!\s+\w*\s*(?:doubt|need|reason))"
    r"|(?:因此|所以|结论|答案|判断)[\s,，:：]*(?:是|为)?[\s:：]*[\"“]?(?P<zh>是|否)(?![\w]))",
    re.I,
)
_SCORE_STATED = re.compile(
    r"\b(?:score|rating|grade|level)\b\s*(?:of|is|:|=|would be|should be)?\s*(\d+(?:\.\d+)?)\b"
    r"|(?<![\d.])(\d+(?:\.\d+)?)\s*(?:/|out of)\s*\d+",
    re.I,
)
_NUMBER = re.compile(
    r"(?:(?:score|rating|grade|level|评分|得分|分数)\s*(?:of|is|[:：=])?\s*)?"
    r"([+-]?\d+(?:\.\d+)?)\s*(?:(?:/|out of)\s*(\d+(?:\.\d+)?)|分|points?)?[.。]?",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Reading:
    """One verdict as it was said: a label in the judge file's terms, or None and the reason."""

    label: str | None
    justification: str = ""
    reason: str = ""
    flags: tuple[str, ...] = ()


def read_label(raw: Any, vocabulary: Vocabulary) -> str | None:
    """Map one raw verdict to a label; None when it is not clearly one of them.

    Case, markup and end punctuation do not matter. A verdict with words after it counts only when a
    punctuation mark parts them and no other label follows.
    """
    if isinstance(raw, bool):
        word = "true" if raw else "false"
    elif isinstance(raw, int):
        word = str(raw)
    elif isinstance(raw, str):
        word = raw
    else:
        return None
    return _label_of(word, _frozen(vocabulary))


def _frozen(vocabulary: Vocabulary) -> tuple[tuple[str, frozenset[str]], ...]:
    return tuple(vocabulary.items())


@lru_cache(maxsize=4096)
def _label_of(
    raw: str, vocabulary: tuple[tuple[str, frozenset[str]], ...], whole_only: bool = False
) -> str | None:
    text = " ".join(_MARKUP.sub(" ", unicodedata.normalize("NFKC", raw[:2000])).casefold().split())
    whole = text.strip(" .,!;:。，！；：-–—")
    for form in (whole, _TAIL.sub("", _PREFIX.sub("", whole)).strip()):
        for label, synonyms in vocabulary:
            if form in synonyms:
                return label
    head, mark, rest = _split_at_mark(text)
    if not mark or whole_only:
        return None
    for label, synonyms in vocabulary:
        if head in synonyms and not _names_another(rest, label, vocabulary):
            return label
    return None


def _split_at_mark(text: str) -> tuple[str, str, str]:
    found = re.search(r"\s*(?:[,.;:。，；：!！]|\s[-–—]+\s)\s*", text)
    if not found:
        return text, "", ""
    return text[: found.start()].strip(), found.group(), text[found.end() :]


def _names_another(
    rest: str, label: str, vocabulary: tuple[tuple[str, frozenset[str]], ...]
) -> bool:
    for other, synonyms in vocabulary:
        if other == label:
            continue
        for word in synonyms:
            if len(word) > 1 and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", rest):
                return True
    return False


def read_level(raw: Any, levels: Sequence[int]) -> int | None:
    """Map one raw score to a level; None off the scale, between levels, or not one number.

    A number, its text, "4/5" and "4 out of 5" are read; another denominator than the highest level
    is not, nor is a boolean.
    """
    number: float
    if isinstance(raw, bool):
        return None
    if isinstance(raw, (int, float)):
        number = float(raw)
    elif isinstance(raw, str):
        text = " ".join(_QUOTES.sub(" ", unicodedata.normalize("NFKC", raw[:200])).split())
        found = _NUMBER.fullmatch(text)
        if not found or (found[2] and float(found[2]) != max(levels)):
            return None
        number = float(found[1])
    else:
        return None
    return int(number) if number in levels else None


def read_criteria(text: str, names: Sequence[str], *, abstain: bool = True) -> dict[str, Reading]:
    """Read the yes/no verdicts of one reply, one reading for each criterion.

    Args:
        text: The judge's reply.
        names: The criteria of the judge file.
        abstain: Whether *cannot tell* was offered; it is unscored either way, under its own reason.
    """
    found, problem, flags, visible = _json_of(text, _criteria_shape(tuple(names)))
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
    concluded = {"是": "yes", "否": "no"}
    stated = {concluded.get(m[0] or m[1], (m[0] or m[1]).lower()) for m in _CONCLUDES.findall(why)}
    if label in ("yes", "no") and stated and label not in stated:
        flags = (*flags, "contradiction")
    return Reading(label, why, flags=flags)


def read_scale(text: str, levels: Sequence[int], *, pass_at: int | None = None) -> Reading:
    """Read one level from a reply; the label is the level's digits.

    A second field that the judge filled in ("passed") never decides: where it contradicts
    `pass_at`, or the justification names another score, the verdict carries "contradiction".
    """
    found, problem, flags, visible = _json_of(text, _SCALE_SHAPE)
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
    stated = {float(a or b) for a, b in _SCORE_STATED.findall(why)}
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
    found, problem, flags, visible = _json_of(text, _PAIR_SHAPE)
    if found is None:
        if problem:
            return Reading(None, reason=problem, flags=flags)
        reading = _from_text(visible, PAIR)
    else:
        said, why = _pick(found, _PAIR_KEYS), _justification(found)
        label = read_label(said, PAIR)
        stated = _positions(why)
        if label and len(stated) == 1 and label not in stated:
            flags = (*flags, "contradiction")
        reason = "" if label else f"not A, B or tie: {_short(said)}"
        reading = Reading(label, why, reason, flags)
    if reading.label == "tie" and not ties:
        return replace(reading, label=None, reason="a tie, and this judge must choose")
    return reading


def _positions(text: str) -> set[str]:
    """The places whose draft a text calls better."""
    ids = [m["id"] for m in _STATED.finditer(text) if not m["if"]]
    ids += [m["id"] for m in _PREFER.finditer(text)]
    return {"first" if i.lower() in "a1" else "second" for i in ids}


def _from_text(text: str, vocabulary: Vocabulary) -> Reading:
    """A label from prose: the whole reply, a final verdict, [[label]], or a statement."""
    bare = text.strip()
    if len(bare) <= 40 and (label := _exact(bare, vocabulary)):
        return Reading(label, flags=("free_text",))
    steps: list[set[str]] = [
        _labels((m["value"] for m in _FINAL_INLINE.finditer(text)), vocabulary),
        _labels((m["value"] for m in _marked(text)), vocabulary),
        _labels(_BRACKETS.findall(text), vocabulary),
    ]
    if vocabulary is PAIR:
        steps.append(_positions(text) or ({"tie"} if _TIE_STATED.search(text) else set()))
    return _one_of(steps, bare, "verdicts")


def _level_from_text(text: str, levels: Sequence[int]) -> Reading:
    bare = text.strip()
    if (level := read_level(bare, levels)) is not None:
        return Reading(str(level), flags=("free_text",))
    steps = [
        {str(n) for v in values if (n := read_level(_first_words(v), levels)) is not None}
        for values in (
            [m["value"] for m in _FINAL_INLINE.finditer(text)],
            [m["value"] for m in _marked(text)],
            _BRACKETS.findall(text),
        )
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


def _marked(text: str) -> list[re.Match[str]]:
    """Lines such as "Verdict: yes"; a bare "Answer:" may be the judge's own answer, so not that."""
    return [m for m in _MARKED.finditer(text) if m["word"].lower() != "answer" or m["final"]]


def _labels(values: Iterable[str], vocabulary: Vocabulary) -> set[str]:
    found = (read_label(v, vocabulary) or read_label(_first_words(v), vocabulary) for v in values)
    return {label for label in found if label}


def _first_words(value: str) -> str:
    """What stands before a dash, a comma or the end of the sentence."""
    return re.split(r"\s[-–—]\s|[,;，；。]|\.(?:\s|$)", value.strip(), maxsplit=1)[0].strip()


def _exact(text: str, vocabulary: Vocabulary) -> str | None:
    """A label only when the text holds nothing else (a longer text may be an answer)."""
    return _label_of(text, _frozen(vocabulary), whole_only=True)


def _pick(fields: Mapping[str, Any], keys: Sequence[str]) -> Any:
    lowered = {k.lower(): v for k, v in fields.items()}
    return next((lowered[k] for k in keys if k in lowered), None)


def _justification(fields: Mapping[str, Any]) -> str:
    said = _pick(fields, _JUSTIFICATIONS)
    return said if isinstance(said, str) else ""


def _short(value: Any) -> str:
    words = repr(value)
    return words if len(words) <= 60 else words[:57] + "..."


def _any_key(keys: Sequence[str]) -> dict[str, Any]:
    return {"type": "object", "anyOf": [{"required": [k]} for k in keys]}


_SCALE_SHAPE = _any_key(_SCALE_KEYS)
_PAIR_SHAPE = _any_key(_PAIR_KEYS)


@lru_cache(maxsize=64)
def _criteria_shape(names: tuple[str, ...]) -> dict[str, Any]:
    return _any_key((*names, *_CRITERION_KEYS) if len(names) == 1 else names)


def _json_of(
    text: str, shape: Mapping[str, Any]
) -> tuple[Mapping[str, Any] | None, str, tuple[str, ...], str]:
    """The one fitting object, or the problem ("" when there is none), flags, visible text."""
    visible = visible_text(text)
    if "{" not in visible:
        return None, "", (), visible
    reading = read_json(visible, shape)
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

"""From one raw value to a label or a level of the judge file, or to None."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

__all__ = [
    "NOUN",
    "NOUN_ZH",
    "PAIR",
    "YES_NO",
    "Vocabulary",
    "exact_label",
    "first_words",
    "read_label",
    "read_level",
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

NOUN = "(?:draft|output|answer|response|reply|report|option|version|assistant|model|candidate|text)"
NOUN_ZH = "(?:草稿|回答|输出|报告|版本|答案|稿件)"
_PREFIX = re.compile(rf"^(?:the )?(?:{NOUN}\s*|{NOUN_ZH}\s*)", re.I)
_TAIL = re.compile(
    rf"\s+(?:{NOUN}|one)$|\s*(?:wins|is (?:the )?(?:better|best|winner)|更好)$", re.I
)
_MARKUP = re.compile(r"[*_`\"'“”‘’「」\[\](){}<>#]+")
_QUOTES = re.compile(r"[*_`\"'“”‘’「」#]+")
_MARK = re.compile(r"\s*(?:[,.;:。，；：!！]|\s[-–—]+\s)\s*")
_NUMBER = re.compile(
    r"(?:(?:score|rating|grade|level|评分|得分|分数)\s*(?:of|is|[:：=])?\s*)?"
    r"([+-]?\d+(?:\.\d+)?)\s*(?:(?:/|out of)\s*(\d+(?:\.\d+)?)|分|points?)?[.。]?",
    re.I,
)


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
    found = _MARK.search(text)
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


def first_words(value: str) -> str:
    """What stands before a dash, a comma or the end of the sentence."""
    return re.split(r"\s[-–—]\s|[,;，；。]|\.(?:\s|$)", value.strip(), maxsplit=1)[0].strip()


def exact_label(text: str, vocabulary: Vocabulary) -> str | None:
    """A label only when the text holds nothing else (a longer text may be an answer)."""
    return _label_of(text, _frozen(vocabulary), whole_only=True)

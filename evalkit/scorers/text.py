"""What a reply's text must hold, must not hold, and how long it may be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal, cast

from evalkit.counting import listed
from evalkit.errors import ScorerError
from evalkit.records import Case, Finding, Reply, Score
from evalkit.scorers.answer import Answer, answer_of, expected_texts, no_answer
from evalkit.scorers.json_reader import read_json
from evalkit.scorers.thinking import visible_text

__all__ = ["Contains", "Forbids", "Length", "Matches", "NotTruncated", "find_text", "visible_text"]

_MAX_FINDINGS = 20
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
_WORD = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+(?:['’\-][^\W{_CJK}]+)*")
_ALIKE = {"'": "['’‘ʼ]", '"': '["“”„]', "-": "[-\u2010\u2011]"}
_ODD_SPACE = re.compile(r"[^\S ]|  ")  # white space that is not one blank
_OPEN_END = re.compile(r"(?:[,;:(\[{、，：；（「]|\w[-–—]|(?<!\\)\\)\Z")
_FENCE = re.compile(r"^[ \t]*```", re.MULTILINE)


def find_text(
    text: str, wanted: str, *, ignore_case: bool = False, whole_words: bool = False
) -> list[tuple[int, int]]:
    """Where `wanted` stands in `text`: any white space and any form of a quote mark will do."""
    plain = " ".join(wanted.split())
    exact = not (ignore_case or whole_words or _ALIKE.keys() & set(plain))
    if exact and plain and not _ODD_SPACE.search(text):
        return list(_places(text, plain))  # a pattern would say the same, and each must be compiled
    pattern = _pattern(wanted, ignore_case, whole_words)
    return [found.span() for found in pattern.finditer(text)]


def _places(text: str, plain: str) -> Iterator[tuple[int, int]]:
    start = text.find(plain)
    while start >= 0:
        end = start + len(plain)
        yield start, end
        start = text.find(plain, end)


@lru_cache(maxsize=1024)
def _pattern(wanted: str, ignore_case: bool, whole_words: bool) -> re.Pattern[str]:
    words = (
        "".join(_ALIKE.get(char) or re.escape(char) for char in word) for word in wanted.split()
    )
    pattern = r"\s++".join(words)
    if whole_words:
        pattern = rf"(?<!\w){pattern}(?!\w)"
    return re.compile(pattern, re.IGNORECASE if ignore_case else 0)


@dataclass(frozen=True, kw_only=True)
class _Wanted:
    """Texts from the settings (`text`, `texts`) and, per case, from `expected.<expected>`."""

    text: str = ""
    texts: tuple[str, ...] = ()
    expected: str = ""
    ignore_case: bool = False
    whole_words: bool = False
    field: str = ""

    NAME: ClassVar[str]

    def __post_init__(self) -> None:
        if not (self.text or self.texts or self.expected):
            raise ScorerError(
                f"the scorer {self.NAME!r} needs a 'text', 'texts', or 'expected' "
                "(the key of case.expected that holds them)."
            )
        self._check((self.text,) if self.text else (), "its 'text'")
        self._check(self.texts, "its 'texts'")

    def _check(self, texts: tuple[str, ...], where: str) -> None:
        if any(not text.strip() for text in texts):
            raise ScorerError(f"the scorer {self.NAME!r} was given an empty text in {where}.")

    def wanted(self, case: Case) -> tuple[str, ...]:
        texts = (*((self.text,) if self.text else ()), *self.texts)
        if self.expected:
            more = expected_texts(case, self.expected, self.NAME)
            self._check(more, f"'expected.{self.expected}' of case {case.id!r}")
            texts += more
        return texts

    def found(self, forms: list[Answer], text: str, message: str) -> list[Finding]:
        """Its places in the first form of the answer that holds it."""
        for form in forms:
            places = find_text(
                form.text, text, ignore_case=self.ignore_case, whole_words=self.whole_words
            )
            if places:
                return [form.finding(f"{message}: {text!r}", *place) for place in places]
        return []

    def forms(self, case: Case, reply: Reply) -> list[Answer] | Score:
        """The answer as it stands and, where it is JSON, its texts without JSON's escapes."""
        answer = answer_of(case, reply, self.field)
        if isinstance(answer, Score):
            return answer
        if self.field or "\\" not in answer.text:
            return [answer]
        return [answer, Answer("\n".join(_strings(read_json(reply.text).value)), placed=False)]


@dataclass(frozen=True, kw_only=True)
class Contains(_Wanted):
    """1.0 when the answer holds every wanted text (`need = "any"`: at least one), else 0.0.

    Args:
        text: A wanted text.
        texts: More of them.
        expected: Key of `case.expected` that holds this case's own text or list of texts.
        need: Whether all are needed or any one will do.
        ignore_case: Whether capitals matter.
        whole_words: Whether "cat" is found in "category".
        field: Look into this field of the JSON reply instead of the whole text.
    """

    need: Literal["all", "any"] = "all"

    VERSION: ClassVar[int] = 1
    NAME: ClassVar[str] = "contains"

    def __call__(self, case: Case, reply: Reply) -> Score:
        """Score one reply; each text found is a finding."""
        wanted = self.wanted(case)
        forms = self.forms(case, reply)
        if isinstance(forms, Score):
            return forms
        if not wanted:
            return Score(1.0, "this case asks for no text")
        places = {text: self.found(forms, text, "found") for text in wanted}
        findings = tuple(found[0] for found in places.values() if found)
        missing = [text for text, found in places.items() if not found]
        if not missing:
            return Score(1.0, f"found {_named(wanted)}", findings=findings)
        if self.need == "any" and findings:
            return Score(1.0, f"found {len(findings)} of {len(places)}", findings=findings)
        return Score(0.0, f"not found: {_named(missing)}", findings=findings)


@dataclass(frozen=True, kw_only=True)
class Forbids(_Wanted):
    """1.0 when the answer holds none of the forbidden texts, else 0.0.

    Args:
        text: A forbidden text.
        texts: More of them.
        expected: Key of `case.expected` that holds this case's own text or list of texts.
        ignore_case: Whether capitals matter.
        whole_words: Whether "cat" is found in "category".
        field: Look into this field of the JSON reply instead of the whole text.
    """

    VERSION: ClassVar[int] = 1
    NAME: ClassVar[str] = "forbids"

    def __call__(self, case: Case, reply: Reply) -> Score:
        """Score one reply; each place of a forbidden text is a finding."""
        forbidden = self.wanted(case)
        forms = self.forms(case, reply)
        if isinstance(forms, Score):
            return forms
        places = {text: self.found(forms, text, "forbidden") for text in forbidden}
        found = [text for text in places if places[text]]
        if not found:
            return Score(1.0, f"none of {len(places)} forbidden texts found")
        findings = [finding for text in found for finding in places[text]]
        return Score(0.0, f"found {_named(found)}", findings=tuple(findings[:_MAX_FINDINGS]))


@dataclass(frozen=True, kw_only=True)
class Matches:
    """1.0 when the regular expression is found in the answer, else 0.0.

    Args:
        pattern: A Python regular expression.
        whole: Whether it must match the whole answer, white space at the ends aside.
        ignore_case: Whether capitals matter.
        field: Look into this field of the JSON reply instead of the whole text.
    """

    pattern: str
    whole: bool = False
    ignore_case: bool = False
    field: str = ""

    VERSION: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if not self.pattern:
            raise ScorerError("the scorer 'matches' needs a 'pattern' that is not empty.")
        try:
            self._compiled()
        except re.error as error:
            raise ScorerError(
                f"the scorer 'matches' was given a bad pattern {self.pattern!r}: {error}"
            ) from error

    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern, re.IGNORECASE if self.ignore_case else 0)

    def __call__(self, case: Case, reply: Reply) -> Score:
        """Score one reply; the match is a finding."""
        answer = answer_of(case, reply, self.field)
        if isinstance(answer, Score):
            return answer
        if self.whole:
            start = len(answer.text) - len(answer.text.lstrip())
            found = self._compiled().fullmatch(answer.text, start, len(answer.text.rstrip()))
        else:
            found = self._compiled().search(answer.text)
        if found is None:
            return Score(0.0, f"nothing matches {self.pattern!r}")
        finding = answer.finding(f"matches {self.pattern!r}", *found.span())
        return Score(1.0, finding.message, findings=(finding,))


@dataclass(frozen=True, kw_only=True)
class Length:
    """1.0 when the visible answer is within the bounds, else 0.0.

    A word is a run of letters and digits, or one Chinese, Japanese or Korean character.
    """

    min_chars: int | None = None
    max_chars: int | None = None
    min_words: int | None = None
    max_words: int | None = None

    VERSION: ClassVar[int] = 1

    def __post_init__(self) -> None:
        bounds = [(self.min_chars, self.max_chars), (self.min_words, self.max_words)]
        if all(bound is None for pair in bounds for bound in pair):
            raise ScorerError("the scorer 'length' needs at least one bound, such as max_words.")
        for low, high in bounds:
            if (low or 0) < 0 or (high is not None and high < (low or 0)):
                raise ScorerError(f"the scorer 'length' was given bounds {low}..{high}.")

    def __call__(self, case: Case, reply: Reply) -> Score:
        """Score one reply; thinking blocks and white space at the ends do not count."""
        if (score := no_answer(case, reply)) is not None:
            return score
        text = visible_text(reply.text).strip()
        sizes = {"characters": len(text)}
        if self.min_words is not None or self.max_words is not None:
            sizes["words"] = count_words(text)
        bounds = {
            "characters": (self.min_chars, self.max_chars),
            "words": (self.min_words, self.max_words),
        }
        for unit, size in sizes.items():
            low, high = bounds[unit]
            if low is not None and size < low:
                return Score(0.0, f"{size} {unit}, fewer than {low}", details=sizes)
            if high is not None and size > high:
                return Score(0.0, f"{size} {unit}, more than {high}", details=sizes)
        return Score(1.0, ", ".join(f"{n} {unit}" for unit, n in sizes.items()), details=sizes)


@dataclass(frozen=True, kw_only=True)
class NotTruncated:
    """0.0 when the reply was cut off: the server says so, or the text plainly breaks off."""

    VERSION: ClassVar[int] = 1

    def __call__(self, case: Case, reply: Reply) -> Score:
        """Score one reply; the place where it breaks off is a finding."""
        if (score := no_answer(case, reply)) is not None:
            return score
        text = reply.text.rstrip()
        reason = ""
        if len(_FENCE.findall(text)) % 2:
            reason = "a code block is never closed"
        elif r"\begin{document}" in text and r"\end{document}" not in text:
            reason = r"there is no \end{document}"
        elif _OPEN_END.search(text[-2:]):
            reason = f"the text breaks off after {text[-1]!r}"
        if not reason:
            return Score(1.0, "complete")
        return Score(0.0, reason, findings=(Finding(reason, len(text) - 1, len(text)),))


def count_words(text: str) -> int:
    """Words of a text: runs of letters and digits, and each CJK character."""
    return sum(1 for _ in _WORD.finditer(text))


def _strings(value: Any) -> Iterator[str]:
    """Every text inside a JSON value; the reader bounds how deep it is."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in cast("dict[str, Any]", value).items():
            yield key
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from _strings(inner)


def _named(texts: tuple[str, ...] | list[str]) -> str:
    return listed([repr(text[:80]) for text in texts], 5)

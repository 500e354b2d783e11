"""An answer against a reference: the same text, the same words, the same number."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar, Literal

from evalkit.errors import ScorerError
from evalkit.records import Case, Reply, Score
from evalkit.scorers.answer import answer_of, expected_texts, expected_value

__all__ = ["ExactMatch", "NumberMatch", "TokenOverlap", "numbers_in", "tokens_of"]

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
_TOKEN = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]+")
_ARTICLES = frozenset({"a", "an", "the"})
_NUMBER = re.compile(
    r"(?<![\w.])(?P<sign>[-+−]?)"
    r"(?P<whole>[0-9]{1,3}(?:[,\u00a0\u2009\u202f][0-9]{3})+(?![0-9])|[0-9]{1,400}+)"
    r"(?P<rest>(?:\.[0-9]{1,400}+)?(?:[eE][-+−]?[0-9]{1,3}+)?)(?![0-9])"
)


def tokens_of(text: str) -> list[str]:
    """Words in small letters without punctuation and articles; each CJK character is one."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return [token for token in _TOKEN.findall(folded) if token not in _ARTICLES]


def numbers_in(text: str) -> list[tuple[float, int, int]]:
    """The plain numbers of a text with their places: 1,234.5, 1.2e-3, Unicode minus, ranges."""
    found: list[tuple[float, int, int]] = []
    for number in _NUMBER.finditer(text):
        digits = re.sub(r"[,\u00a0\u2009\u202f]", "", number["whole"]) + number["rest"]
        sign = "-" if number["sign"] in "-−" and number["sign"] else ""
        value = float((sign + digits).replace("−", "-"))
        if math.isfinite(value):
            found.append((value, number.start(), number.end()))
    return found


@dataclass(frozen=True, kw_only=True)
class ExactMatch:
    """1.0 when the answer equals the reference, or one of several, else 0.0.

    Args:
        expected: Key of `case.expected` that holds the text or the list of texts.
        normalize: Whether capitals, the width of characters, white space and a closing full stop
            are overlooked.
        field: Look into this field of the JSON reply instead of the whole text.
    """

    expected: str = "answer"
    normalize: bool = True
    field: str = ""

    VERSION: ClassVar[int] = 1

    def __call__(self, case: Case, reply: Reply) -> Score:
        """Score one reply."""
        wanted = expected_texts(case, self.expected, "exact_match")
        answer = answer_of(case, reply, self.field)
        if isinstance(answer, Score):
            return answer
        said = self._form(answer.text)
        if any(said == self._form(text) for text in wanted):
            return Score(1.0, "equal to the reference")
        shown = " or ".join(repr(text[:80]) for text in wanted[:3])
        return Score(0.0, f"{said[:80]!r} is not {shown or 'anything: the reference is empty'}")

    def _form(self, text: str) -> str:
        if not self.normalize:
            return text.strip()
        folded = unicodedata.normalize("NFKC", text).casefold()
        return " ".join(folded.split()).rstrip(".。!?")


@dataclass(frozen=True, kw_only=True)
class TokenOverlap:
    """F1 of the words that answer and reference share, 0..1; of several references the best.

    Args:
        expected: Key of `case.expected` that holds the text or the list of texts.
        field: Look into this field of the JSON reply instead of the whole text.

    Source: Rajpurkar, Zhang, Lopyrev and Liang (2016), SQuAD, EMNLP, section 6.1.
    """

    expected: str = "answer"
    field: str = ""

    VERSION: ClassVar[int] = 1

    def __call__(self, case: Case, reply: Reply) -> Score:
        """Score one reply; precision and recall stand in the details."""
        wanted = expected_texts(case, self.expected, "token_overlap")
        answer = answer_of(case, reply, self.field)
        if isinstance(answer, Score):
            return answer
        said = tokens_of(answer.text)
        precision, recall, f1 = max(
            (_overlap(said, tokens_of(text)) for text in wanted),
            key=lambda shares: shares[2],
            default=(0.0, 0.0, 0.0),
        )
        return Score(
            f1,
            f"F1 {f1:.2f}: {precision:.0%} of its words are in the reference, "
            f"{recall:.0%} of the reference's are in it",
            details={"precision": precision, "recall": recall},
        )


@dataclass(frozen=True, kw_only=True)
class NumberMatch:
    """1.0 when a number of the answer is within the tolerance of the expected one, else 0.0.

    Args:
        expected: Key of `case.expected` that holds the number.
        tolerance: Absolute, in the unit of the expected number.
        relative: As a share of the expected number; the wider of the two counts.
        which: Which number of the answer counts.
        field: Look into this field of the JSON reply instead of the whole text.
    """

    expected: str = "value"
    tolerance: float = 0.0
    relative: float = 0.0
    which: Literal["last", "first", "any"] = "last"
    field: str = ""

    VERSION: ClassVar[int] = 1

    def __post_init__(self) -> None:
        for name, value in (("tolerance", self.tolerance), ("relative", self.relative)):
            if not (math.isfinite(value) and value >= 0):
                raise ScorerError(f"the scorer 'number_match': {name} = {value} is below 0.")

    def __call__(self, case: Case, reply: Reply) -> Score:
        """Score one reply; the number that was compared is a finding."""
        wanted = expected_value(case, self.expected, "number_match")
        if isinstance(wanted, bool) or not isinstance(wanted, (int, float)):
            raise ScorerError(
                f"case {case.id!r}: 'expected.{self.expected}' must be a number, not {wanted!r} "
                "(scorer 'number_match')."
            )
        answer = answer_of(case, reply, self.field)
        if isinstance(answer, Score):
            return answer
        numbers = numbers_in(answer.text)
        if not numbers:
            return Score(0.0, "no number in the answer")
        chosen = {"last": numbers[-1:], "first": numbers[:1], "any": numbers}[self.which]
        value, start, end = min(chosen, key=lambda number: abs(number[0] - wanted))
        gap = abs(value - wanted)
        allowed = max(self.tolerance, self.relative * abs(wanted))
        # a hair of slack: 0.3 - 0.2 is not 0.1 in binary
        right = gap <= allowed + 1e-12 * max(abs(value), abs(wanted))
        reason = f"{value:g} against {wanted:g}, gap {gap:g}, allowed {allowed:g}"
        return Score(float(right), reason, findings=(answer.finding(reason, start, end),))


def _overlap(said: list[str], wanted: list[str]) -> tuple[float, float, float]:
    if not said or not wanted:
        same = float(said == wanted)
        return same, same, same
    shared = (Counter(said) & Counter(wanted)).total()
    precision, recall = shared / len(said), shared / len(wanted)
    return precision, recall, 2 * shared / (len(said) + len(wanted))

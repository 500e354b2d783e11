r"""Find the quantities in a text, whatever their notation, and leave out the digits that are none.

1,234.5 and 1 234.5 and `9{,}500`; 1.2e-3, $1.2\times10^{-3}$, 10⁻³; `\num{}`, `\SI{}{}`,
`\qty{}{}`; 12 % ; -3.5 and −3.5; the range 3--5; 1.23(4) and 1.23 ± 0.04. Section and figure
numbers, dates, list labels, citation years, identifiers, exponents, indices, addresses and
listings are no data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from evalkit.scorers.latex import BREAK, looks_like_tex, parse
from evalkit.scorers.quoting import blank_code

__all__ = ["Number", "Reading", "numbers_in", "prose_of", "read"]


class Number(NamedTuple):
    """A quantity as written: its value and the unit of its last digit (0.1 for 41.7).

    `parts` are the values of the other reading, when a plain space may or may not group digits.
    """

    value: float
    place: float
    text: str
    start: int
    end: int
    percent: bool = False
    parts: tuple[Number, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """The text a reader sees, of equal meaning in LaTeX, Markdown and plain text."""

    text: str
    where: Sequence[int]
    math: Sequence[int]
    tex: bool
    problem: str = ""


_SAME_LENGTH = str.maketrans(
    "０１２３４５６７８９．％−－﹣\u00a0\u202f\u2006\u2007\u2008\u200a",
    "0123456789.%---" + "\u2009" * 6,
)
_MATH_SIGN = re.compile(r"\\[a-zA-Z]+|\$[^$\n]{0,80}[\\^_][^$\n]{0,80}\$|\\[\[(,%]")

_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    r"|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\b\.?"
)
_LABEL = r"\(?[A-Z]?\.?\d+(?:\.\d+)*[a-z]?\b\)?"
_NOT_DATA = re.compile(
    "|".join(
        (
            r"(?:https?://|ftp://|www\.|doi:\s?)[^\s\x1f]+|\b10\.\d{4,9}/[^\s\x1f]+",
            r"[\w.+-]{1,64}@[\w-]{1,64}\.[\w.]{1,64}",
            r"\b\d{4}-\d{1,2}-\d{1,2}(?:T[\d:.]+Z?|\b)|\b\d{4}/\d{1,2}/\d{1,2}\b",
            r"\b\d{1,2}[./]\d{1,2}[./](?:19|20)\d\d\b|\b\d{1,2}:\d{2}(?::\d{2})?\b",
            rf"\b\d{{1,2}}(?:st|nd|rd|th)?\s(?:of\s)?{_MONTH}(?:,?\s(?:19|20)\d\d\b)?",
            rf"\b{_MONTH}\s\d{{1,2}}(?:st|nd|rd|th)?\b(?!\.\d)(?:,?\s(?:19|20)\d\d\b)?",
            rf"\b{_MONTH}\s(?:19|20)\d\d\b",
            r"\d{4}\s?年(?:\s?\d{1,2}\s?月)?(?:\s?\d{1,2}\s?[日号])?|\d{1,2}\s?月\s?\d{1,2}\s?[日号]",
            r"(?:\b(?=[A-Za-z])(?i:sections?|secs?\.|figures?|figs?\.|tables?|tabs?\.|equations?|eqs?\."
            r"|eqns?\.|chapters?|appendix|appendices|refs?\.|references?|pages?|pp?\.|nos?\.|vol\.)"
            rf"|§)[\s\x1f]*{_LABEL}(?:\s?(?:,|and|to|&|[–-])\s?{_LABEL}(?!\s?%))*",
            r"第\s?\d+(?:\.\d+)*|(?:[图表式节章]|公式|方程|附录)[\s\x1f]*[（(]?\d+(?:[.\-]\d+)*[)）]?",
            r"\((?:[^()\d\n]{0,80}[A-Za-z.,\s])?(?:1[89]|20)\d\d[a-z]?(?:[;,][^()\n]{0,80})?\)",
            r"\b(?:[Ii]n|[Ss]ince|[Uu]ntil|[Dd]uring|[Yy]ear)\s(?:19|20)\d\d"
            r"(?=[,.;:)]|\s(?:and|we|the|by|at|was|is|it|to|with)\b|\s*$)",
            r"^[ \t]*(?:#{1,6}[ \t]+)(?:\d+(?:\.\d+)*\.?[ \t])",
            r"^[ \t>]*\(?\d{1,3}[.)](?=\s)|^\d{1,2}(?:\.\d{1,2})+\.?[ \t]+(?=[A-Z][a-z]{2})",
            r"\b[\w-]{1,80}\.(?:csv|tsv|dat|txt|md|pdf|png|jpe?g|svg|tex|bib|py|json|xlsx?)\b",
            r"\bv?\d+(?:\.\d+){2,}\b",
            r"\b\d+(?:st|nd|rd|th|D)\b",
        )
    ),
    re.MULTILINE,
)
_NUMERIC_CITATION = re.compile(r"\[\d{1,3}(?:\s?[,–-]\s?\d{1,3})*\]")

_POWER = r"(?:\^\(?(?P<{0}>[-+]?\d{{1,3}})\)?|(?P<{0}s>[⁺⁻]?[⁰¹²³⁴-⁹]{{1,3}}))"
_MANTISSA = (
    r"\d{1,3}(?:(?P<sep>[,'’\u2009 ])\d{3}(?:(?P=sep)\d{3})*)(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+"
)
_NUMBER = re.compile(
    r"(?P<sign>[-+–])?(?:(?P<ten>10" + _POWER.format("p") + r")"
    rf"|(?P<mantissa>{_MANTISSA})"
    r"(?:[eE](?P<e>[-+]?\d{1,3})(?![\w.])|[\s\u2009]{0,2}[×·x*][\s\u2009]{0,2}10"
    + _POWER.format("q")
    + r")?(?:\((?P<unc>\d{1,3})\))?)(?P<percent>[\s\u2009]?%)?"
)
_SUPERSCRIPT = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")
_BEFORE_SIGN = frozenset("([{=<>≤≥≈~×·±,;:：（，、|&/*\"“'" + BREAK)
_RELATION = frozenset("=<>≤≥≈~±")


@lru_cache(maxsize=16)
def read(text: str) -> Reading:
    """The visible text of LaTeX, Markdown or plain text, each character with its source offset."""
    if looks_like_tex(text):
        tex = parse(text)
        shown = tex.visible.translate(_SAME_LENGTH)
        return Reading(shown, tex.where, tex.math, True, tex.problem)
    plain = prose_of(text)
    if _MATH_SIGN.search(plain):
        tex = parse(plain.replace("\\%", "\u2009%").replace("%", "％"))
        shown = tex.visible.translate(_SAME_LENGTH)
        return Reading(shown, tex.where, tex.math, False, tex.problem)
    return Reading(plain.translate(_SAME_LENGTH), range(len(text)), bytes(len(text)), False)


def prose_of(text: str) -> str:
    """Markdown or plain text with its code and its HTML comments blanked out, equally long."""
    text = blank_code(text)
    pieces: list[str] = []
    at = 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start)) >= 0:
        pieces += [text[at:start], " " * (end + 3 - start)]
        at = end + 3
    return "".join([*pieces, text[at:]])


@lru_cache(maxsize=16)
def numbers_in(text: str, *, everything: bool = False) -> tuple[Number, ...]:
    """The quantities of a text in order of appearance.

    Args:
        text: LaTeX, Markdown or plain text.
        everything: Also labels and list numbers: how the material is read, where a number that
            is found once too often does no harm.
    """
    reading = read(text)
    return tuple(_scan(reading, text, everything))


def _scan(reading: Reading, source: str, everything: bool) -> Iterator[Number]:
    shown = reading.text
    hidden = bytearray(len(shown))
    if not everything:
        masks = [_NOT_DATA] if reading.tex else [_NOT_DATA, _NUMERIC_CITATION]
        for mask in masks:
            for found in mask.finditer(shown):
                hidden[found.start() : found.end()] = b"\1" * (found.end() - found.start())
    for found in _NUMBER.finditer(shown):
        start, end = found.span()
        digits = found.start("mantissa") if found["mantissa"] else found.start("ten")
        if hidden[digits] or _is_name(shown, start, digits):
            continue
        if reading.math[digits] and not everything and _is_constant(shown, reading.math, found):
            continue
        sign = -1.0 if found["sign"] in ("-", "–") and _is_sign(shown, start) else 1.0
        here, there = reading.where[start if sign < 0 else digits], reading.where[end - 1] + 1
        yield from _numbers(found, sign, source[here:there], here, there)


def _is_name(shown: str, start: int, digits: int) -> bool:
    """Digits of an identifier, an index or an exponent: x1, Cu2O, run-3, x_1, x^2."""
    before = shown[start - 1] if start else " "
    if before in "^_.":
        return before != "." or (start > 1 and shown[start - 2].isdigit())
    return before.isascii() and before.isalpha() and (digits - start < 2)


def _is_sign(shown: str, start: int) -> bool:
    before = shown[start - 1] if start else " "
    return before.isspace() or before in _BEFORE_SIGN or ord(before) > 0x2E7F


def _is_constant(shown: str, math: Sequence[int], found: re.Match[str]) -> bool:
    """A small integer that belongs to a formula: the 2 and 4 of T² = 4π²L/g, the halves."""
    raw = found["mantissa"] or ""
    scaled = any(found[group] for group in ("percent", "unc", "e", "q", "qs"))
    if not raw.isdigit() or len(raw) > 2 or scaled:
        return False
    before, after = found.start() - math[found.start()], found.end()  # a range: $3$--$5$
    while before >= 0 and math[before] and shown[before] == " ":
        before -= 1
    while after < len(shown) and math[after] and shown[after] == " ":
        after += 1
    starts = before < 0 or not math[before] or shown[before] in _RELATION
    ends = after >= len(shown) or not math[after] or shown[after] in ",;.)\u2009°±–\n"
    return not (starts and ends)


def _numbers(
    found: re.Match[str], sign: float, text: str, start: int, end: int
) -> Iterator[Number]:
    percent = bool(found["percent"])
    if found["ten"]:
        value = 10.0 ** int(found["p"] or (found["ps"] or "0").translate(_SUPERSCRIPT))
        yield Number(sign * value, 0.0, text, start, end, percent)
        return
    raw, sep = found["mantissa"], found["sep"]
    power = found["e"] or found["q"] or (found["qs"] or "0").translate(_SUPERSCRIPT)
    joined = raw.replace(sep, "") if sep else raw
    decimals = len(joined.partition(".")[2])
    value, place = _scaled(joined, int(power)), _scaled("1", int(power) - decimals)
    parts: tuple[Number, ...] = ()
    if sep in (" ", ",") and power == "0":
        signs = [sign, *[1.0] * raw.count(sep)]
        parts = tuple(
            Number(s * float(p), 10.0 ** -len(p.partition(".")[2]), p, start, end, percent)
            for s, p in zip(signs, raw.split(sep), strict=True)
        )
    yield Number(sign * value, place, text, start, end, percent, parts)
    if found["unc"] and decimals:
        yield Number(float(found["unc"]) * place, place, text, start, end)


def _scaled(digits: str, power: int) -> float:
    """The value of a decimal text times a power of ten, rounded once; huge powers give inf or 0."""
    return float(f"{digits}e{power}")

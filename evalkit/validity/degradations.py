"""Named ways of making a known weak version out of a strong text; a pair says which one made it.

Each is pure and seeded. A judge that cannot tell the two apart has shown that it does not see that
fault. Their products never serve as anchors: that would be circular.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from types import MappingProxyType

from evalkit.errors import AnchorError

__all__ = ["DEGRADATIONS", "weaken"]

_CITATIONS = (
    re.compile(r"~?\\[A-Za-z]*cite[A-Za-z]*\*?(?:\[[^\]]*\])*\{[^{}]*\}"),
    re.compile(r"\s?\[@[^\]]+\]"),
    re.compile(r"\s?\[\d+(?:\s*[,;–-]\s*\d+)*\](?!\()"),
    re.compile(r"\s?\[[a-z][\w./-]*\](?![(:])"),  # [page-id]
)
_SOURCE_LISTS = re.compile(r"(\"(?:sources|citations)\"\s*:\s*)\[[^\]]*\]")
_NUMBER = re.compile(r"(?<![\w\\{[.@-])\d+(?:[.,]\d+)*")
_HEADING = re.compile(r"^(?:#{1,6}\s+|\\(?:sub)*section\*?\{)(.*)$", re.M)
_ERROR_WORDS = re.compile(r"uncertaint|error|误差|不确定|\\pm|±", re.I)
_FILLER = (
    "It is worth noting that this topic is of considerable interest in many respects.",
    "As is well known, there are several aspects that deserve careful attention here.",
    "Taking everything into account, the matter can be regarded from various angles.",
    "In this context it should also be mentioned that further considerations are possible.",
    "Needless to say, a thorough treatment of the subject remains important.",
)


def drop_citations(text: str, rng: random.Random) -> str:
    r"""Every citation gone: ``\cite`` family, [@key], [12], [page-id], lists of sources in JSON."""
    del rng
    for pattern in _CITATIONS:
        text = pattern.sub("", text)
    return _SOURCE_LISTS.sub(r"\1[]", text)


def shuffle_paragraphs(text: str, rng: random.Random) -> str:
    """The same paragraphs (or the sentences of a single one) in another order."""
    blank = re.split(r"\n[ \t]*\n", text)
    parts, joint = (blank, "\n\n") if len(blank) > 1 else (_sentences(text), " ")
    if len(set(parts)) < 2:
        return text
    mixed = list(parts)
    while mixed == parts:
        rng.shuffle(mixed)
    return joint.join(mixed)


def pad(text: str, rng: random.Random) -> str:
    """About twice the length, nothing more said."""
    parts, added = _sentences(text), 0
    padded: list[str] = []
    for part in parts:
        padded.append(part)
        while added < sum(map(len, padded)) // 2:
            padded.append(rng.choice(_FILLER))
            added += len(padded[-1])
    return " ".join(padded)


def remove_error_analysis(text: str, rng: random.Random) -> str:
    """The section about errors and uncertainties gone; without headings, the sentences."""
    del rng
    heads = [*_HEADING.finditer(text)]
    ends = [*(head.start() for head in heads[1:]), len(text)]
    for head, end in reversed([*zip(heads, ends, strict=False)]):
        if _ERROR_WORDS.search(head.group(1)):
            tail = re.search(
                r"\\end\{document\}|\\bibliography|\\printbib", text[head.start() : end]
            )
            text = text[: head.start()] + text[head.start() + tail.start() if tail else end :]
    if heads:
        return text
    return " ".join(part for part in _sentences(text) if not _ERROR_WORDS.search(part))


def invent_numbers(text: str, rng: random.Random) -> str:
    """Every number replaced by another of the same form, found in no source."""

    def other(found: re.Match[str]) -> str:
        digits = found.group()
        fresh = digits
        while fresh == digits:
            fresh = re.sub(r"\d", lambda _: str(rng.randrange(1, 10)), digits)
        return fresh

    return _NUMBER.sub(other, text)


Degradation = Callable[[str, random.Random], str]
DEGRADATIONS: MappingProxyType[str, Degradation] = MappingProxyType(
    {
        "drop_citations": drop_citations,
        "invent_numbers": invent_numbers,
        "pad": pad,
        "remove_error_analysis": remove_error_analysis,
        "shuffle_paragraphs": shuffle_paragraphs,
    }
)


def weaken(text: str, how: str, *, seed: int = 7) -> str:
    """The weak version of a strong text.

    Raises:
        AnchorError: If there is no such degradation, or it finds nothing to change in this text:
            two equal texts are no known strong/weak pair.
    """
    if how not in DEGRADATIONS:
        raise AnchorError(f"no degradation {how!r}; there are {', '.join(DEGRADATIONS)}.")
    weak = DEGRADATIONS[how](text, random.Random(f"{seed}:{how}:{text}"))
    if weak.split() == text.split():
        raise AnchorError(f"{how} finds nothing to change in this text; take another degradation.")
    return weak


def _sentences(text: str) -> list[str]:
    return [part for part in re.split(r"(?<=[.!?。！？])\s+", text) if part.strip()]

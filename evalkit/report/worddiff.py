"""Word-level differences of two texts, as escaped HTML or as plain pieces."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher

from evalkit.report.safe import esc, pre_html

__all__ = ["Piece", "diff_html", "diff_pieces", "line_changes", "unified_html"]

# A word with the blanks behind it: as tokens of their own, blanks would match each other by the
# hundred, and the matcher's time grows with the square of that.
_TOKEN = re.compile(r"[\w'’-]+\s*|[^\w\s]\s*|\s+", re.UNICODE)
_MOST_TOKENS = 6_000  # SequenceMatcher is quadratic at worst; longer texts are compared by line


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text that both sides share (`same`), or that only one has (`a`, `b`)."""

    side: str
    text: str


def diff_pieces(a: str, b: str) -> tuple[Piece, ...]:
    """The two texts as runs of words: joining `same` and `a` gives a, `same` and `b` gives b."""
    left, right = _TOKEN.findall(a), _TOKEN.findall(b)
    if len(left) + len(right) > _MOST_TOKENS:
        left, right = a.splitlines(keepends=True), b.splitlines(keepends=True)
    pieces: list[Piece] = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag == "equal":
            pieces.append(Piece("same", "".join(left[i1:i2])))
            continue
        if i2 > i1:
            pieces.append(Piece("a", "".join(left[i1:i2])))
        if j2 > j1:
            pieces.append(Piece("b", "".join(right[j1:j2])))
    return tuple(pieces)


def diff_html(a: str, b: str, *, blind: bool = False) -> tuple[str, str]:
    """Both texts with their differences marked, each an escaped block.

    Args:
        a: The left text.
        b: The right text.
        blind: One neutral mark on both sides, so that no side reads as the new one.
    """
    marks = {"a": "mark" if blind else "del", "b": "mark" if blind else "ins"}
    sides: dict[str, list[str]] = {"a": [], "b": []}
    for piece in diff_pieces(a, b):
        if piece.side == "same":
            for side in sides.values():
                side.append(esc(piece.text))
        else:
            tag = marks[piece.side]
            sides[piece.side].append(_marked(piece.text, tag))
    left, right = (pre_html("".join(side)) for side in sides.values())
    return left, right


def _marked(text: str, tag: str) -> str:
    """A change, without the blanks behind it unless it is nothing but blanks."""
    words = text.rstrip() or text
    return f"<{tag}>{esc(words)}</{tag}>{esc(text[len(words) :])}"


def unified_html(a: str, b: str) -> str:
    """One block: what went is struck out, what came is marked, in reading order."""
    tags = {"a": "del", "b": "ins"}
    parts = [
        esc(p.text) if p.side == "same" else _marked(p.text, tags[p.side])
        for p in diff_pieces(a, b)
    ]
    return pre_html("".join(parts))


def line_changes(a: str, b: str) -> tuple[int, int]:
    """How many lines came and how many went."""
    added = removed = 0
    matcher = SequenceMatcher(None, a.splitlines(), b.splitlines(), autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag != "equal":
            removed += i2 - i1
            added += j2 - j1
    return added, removed

"""Thinking that a model wrote into its answer, told apart from the answer itself."""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["masked_text", "thinking_spans", "visible_text"]

_NAME = r"think|thinking|thought|thoughts|reasoning|reflection|scratchpad|seed:think"
# Opening and closing marks of open-weight chat templates. The first class is all that a search has
# to look for, which keeps it quick on long texts.
_MARK = re.compile(
    r"[<\[◁](?:"
    rf"(?P<open>(?i:(?:{_NAME})>|THINK\]|think▷|\|channel\|>analysis<\|message\|>))"
    rf"|(?P<close>(?i:/(?:{_NAME})>|/THINK\]|/think▷))"
    r"|(?P<end>\|end\|>)"
    r"|(?P<final>(?:\|start\|>assistant<)?\|channel\|>final<\|message\|>)"
    r")(?P<edge>(?=[ \t\r]*+$))?",
    re.MULTILINE,
)


@lru_cache(maxsize=32)  # every scorer and judge of a case asks for the same text
def thinking_spans(text: str) -> tuple[tuple[int, int], ...]:
    """Where the thinking stands: `(start, end)` offsets, in order, marks included.

    A block opens at the start of a line and ends at its closing mark. An opening mark that is
    never closed counts only at the very start (the reply was cut off while thinking). A closing
    mark without an opening one, at the edge of a line, ends thinking that began with the reply
    (templates that put the opening mark into the prompt).
    """
    spans: list[tuple[int, int]] = []
    opened: int | None = None
    for mark in _MARK.finditer(text):
        first = _first_in_line(text, mark.start())  # inside a line of prose a mark is a word
        if mark["open"]:
            if opened is None and first:
                opened = mark.start()
        elif opened is not None and not mark["final"]:
            spans.append((opened, mark.end()))
            opened = None
        elif mark["close"] and (first or mark["edge"] is not None):
            spans = [(0, mark.end())]
        elif mark["end"] or mark["final"]:
            spans.append(mark.span())
    if opened is not None and not _outside(text[:opened], spans):
        spans.append((opened, len(text)))
    return tuple(spans)


def visible_text(text: str) -> str:
    """The text without its thinking blocks, stripped where one was taken out."""
    spans = thinking_spans(text)
    return _outside(text, spans) if spans else text


def masked_text(text: str) -> str:
    """The text with its thinking blanked out: equally long, so that offsets stay true."""
    pieces: list[str] = []
    at = 0
    for start, end in thinking_spans(text):
        pieces += [text[at:start], " " * (end - start)]
        at = end
    return "".join([*pieces, text[at:]]) if at else text


def _outside(text: str, spans: list[tuple[int, int]] | tuple[tuple[int, int], ...]) -> str:
    pieces: list[str] = []
    at = 0
    for start, end in spans:
        pieces.append(text[at:start])
        at = end
    return "".join([*pieces, text[at:]]).strip()


def _first_in_line(text: str, at: int) -> bool:
    while at and text[at - 1] in " \t":
        at -= 1
    return not at or text[at - 1] == "\n"

"""What a text only quotes: code, verbatim material, quoted speech. Blanked out, offsets kept."""

from __future__ import annotations

import re

__all__ = ["blank_code", "blank_comments", "blank_quotes", "comments_of"]

_FENCE = re.compile(r"^[ \t]*(```|~~~)", re.MULTILINE)
_ENVIRONMENT = re.compile(r"\\(begin|end)\{(verbatim\*?|Verbatim|lstlisting|minted|comment)\}")
_INLINE = re.compile(
    r"(?<!`)(`{1,3})(?!`)[^\n]{1,500}?(?<!`)\1(?!`)|\\(?:verb|lstinline)\*?([^\w\s*{])[^\n]{0,500}?\2"
)
_COMMENT = re.compile(r"(?<!\\)(?:\\\\)*+%[^\n]*")
_LINE_COMMENT = re.compile(r"^[ \t]*%[^\n]*", re.MULTILINE)
_TEX = re.compile(r"\\(?:[a-zA-Z]{3,}\b|[\[(])")
_SAID = re.compile(
    r'"[^"\n]{1,1000}"|“[^”\n]{1,1000}”|«[^»\n]{1,1000}»|「[^」\n]{1,1000}」|『[^』\n]{1,1000}』'
    r"|(?<!\w)['‘](?=\S)(?:[^'’\n]|(?<=\w)['’](?=\w)){1,1000}(?<=[^\s])['’](?!\w)"
    r"|^[ \t]*>[^\n]*",
    re.MULTILINE,
)


def blank_code(text: str) -> str:
    """The text with code and verbatim material blanked out, in Markdown and in TeX."""
    text = _blank_spans(text, _pairs(_FENCE, text))
    return _INLINE.sub(_blanked, _blank_spans(text, _environments(text)))


def blank_comments(text: str) -> str:
    """The text with its TeX comments blanked out; in prose a percent sign is one."""
    return _comments(text).sub(_blanked, text)


def comments_of(text: str) -> list[str]:
    """The TeX comments of a text: what `blank_comments` blanks out."""
    return [found[0] for found in _comments(text).finditer(text)]


def blank_quotes(text: str) -> str:
    """The text with quoted speech and lines blanked out, unless it is one quote as a whole."""
    body = text.strip()
    whole = _SAID.fullmatch(body)
    if whole is None:
        return _SAID.sub(_blanked, text)
    return text


def _comments(text: str) -> re.Pattern[str]:
    return _COMMENT if _TEX.search(text) else _LINE_COMMENT


def _pairs(mark: re.Pattern[str], text: str) -> list[tuple[int, int]]:
    """Spans from each opening mark to the next equal one; an open one runs to the end."""
    spans: list[tuple[int, int]] = []
    opened: re.Match[str] | None = None
    for found in mark.finditer(text):
        if opened is None:
            opened = found
        elif found[1] == opened[1]:
            spans.append((opened.start(), found.end()))
            opened = None
    return [*spans, (opened.start(), len(text))] if opened else spans


def _environments(text: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    opened: re.Match[str] | None = None
    for found in _ENVIRONMENT.finditer(text):
        if opened is None and found[1] == "begin":
            opened = found
        elif opened is not None and found[1] == "end" and found[2] == opened[2]:
            spans.append((opened.end(), found.start()))
            opened = None
    return [*spans, (opened.end(), len(text))] if opened else spans


def _blank_spans(text: str, spans: list[tuple[int, int]]) -> str:
    pieces: list[str] = []
    at = 0
    for start, end in spans:
        pieces += [text[at:start], _blank(text[start:end])]
        at = end
    return "".join([*pieces, text[at:]])


def _blanked(found: re.Match[str]) -> str:
    return _blank(found[0])


def _blank(text: str) -> str:
    return "".join("\n" if char == "\n" else " " for char in text)

"""The only maker of HTML from text: whatever a model, a judge or a case wrote stays text."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Sequence

from evalkit.records import Finding

__all__ = [
    "block_html",
    "defang",
    "esc",
    "marked_html",
    "pre_html",
    "table_html",
    "terminal_text",
    "visible_controls",
]

# Characters that a reader would not see, that turn text around, or that carry hidden text: shown as
# a symbol instead. Joiners inside an emoji or between letters that join stay what they are.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e01ef]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_JOINED = re.compile(
    "[\u0600-\u08ff\u0900-\u0dff\u0f00-\u0fff\u1000-\u109f\u1780-\u18aa\ufb50-\ufeff]"
)
_PICTURE = re.compile("[\u2190-\u2bff\ufe0f\U0001f000-\U0001faff]")
_ADDRESS = re.compile(":(?=//|image/)", re.IGNORECASE)
_FLAG = re.compile("\U0001f3f4[\U000e0061-\U000e007a]{3,6}\U000e007f")


def visible_controls(text: object) -> str:
    """Invisible and direction-changing characters as `⟨U+202E⟩`, lone surrogates as U+FFFD."""
    cleaned = _SURROGATE.sub("\ufffd", str(text)).replace("\r\n", "\n")
    return _CONTROL.sub(_shown, cleaned)


def _shown(found: re.Match[str]) -> str:
    character, text, at = found.group(), found.string, found.start()
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if character in "\u200c\u200d":
        joins = (_JOINED, _PICTURE) if character == "\u200d" else (_JOINED,)
        if any(kind.match(before) and kind.match(after) for kind in joins):
            return character
    elif character > "\U000dffff" and _in_flag(text, at):
        return character
    return f"⟨U+{ord(character):04X}⟩"


def _in_flag(text: str, at: int) -> bool:
    """Whether a tag character belongs to the flag of a region, such as Scotland's."""
    start = text.rfind("\U0001f3f4", max(0, at - 7), at)
    flag = _FLAG.match(text, start) if start >= 0 else None
    return flag is not None and flag.end() > at


def esc(text: object) -> str:
    """Text as HTML text or as a quoted attribute's value."""
    return html.escape(visible_controls(text), quote=True)


def block_html(text: object, title: str = "") -> str:
    """A titled, wrapped block of preformatted text."""
    head = f'<div class="ek-title">{esc(title)}</div>' if title else ""
    return f"{head}{pre_html(esc(text))}"


def pre_html(inner: str) -> str:
    """A block of markup made here: `inner` is escaped already."""
    # A browser drops one line break behind the tag, so a text that begins with one gets another.
    # Line breaks are written as references, because marimo's stacks join the lines of their parts.
    lead = "\n" if inner.startswith("\n") else ""
    broken = f"{lead}{inner}".replace("\n", "&#10;")
    return f'<pre class="ek-block" dir="auto">{broken}</pre>'


def marked_html(text: str, findings: Iterable[Finding]) -> str:
    """A text with its findings marked where they stand; each mark's title is the finding."""
    spans = sorted(
        (f.start, f.end, f.message)
        for f in findings
        if f.start is not None and f.end is not None and 0 <= f.start < f.end <= len(text)
    )
    parts: list[str] = []
    at = 0
    for start, end, message in spans:
        if start < at:
            continue  # inside an earlier mark
        parts.append(esc(text[at:start]))
        parts.append(f'<mark title="{esc(message)}">{esc(text[start:end])}</mark>')
        at = end
    parts.append(esc(text[at:]))
    return pre_html("".join(parts))


def table_html(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """A plain table; every cell is escaped."""
    top = "".join(f'<th scope="col">{esc(cell)}</th>' for cell in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{esc(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f'<table class="ek-table"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'


def defang(text: object) -> str:
    """For cells of notebook tables, which make pictures and links of the addresses in a text."""
    return _ADDRESS.sub(":\u200b", visible_controls(text))


def terminal_text(text: object, width: int = 0) -> str:
    """One line for a terminal: controls made visible, cut to `width` columns (0: not cut)."""
    line = visible_controls(str(text).replace("\n", " ⏎ ").replace("\t", " "))
    if not width or _columns(line) <= width:
        return line
    kept = ""
    for character in line:
        if _columns(kept) + _columns(character) > width - 1:
            break
        kept += character
    return kept + "…"


def _columns(text: str) -> int:
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide

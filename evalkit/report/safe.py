"""The only maker of HTML from text: whatever a model, a judge or a case wrote stays text."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from evalkit.records import Finding

__all__ = [
    "block_html",
    "csv_cell",
    "defang",
    "esc",
    "json_island",
    "marked_html",
    "table_html",
    "terminal_text",
    "visible_controls",
]

# Control and format characters that a reader would not see: shown as a symbol instead.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def visible_controls(text: object) -> str:
    """Invisible and direction-changing characters as `⟨U+202E⟩`, lone surrogates as U+FFFD."""
    cleaned = _SURROGATE.sub("\ufffd", str(text)).replace("\r\n", "\n")
    return _CONTROL.sub(lambda found: f"⟨U+{ord(found.group()):04X}⟩", cleaned)


def esc(text: object) -> str:
    """Text as HTML text or as a quoted attribute's value."""
    return html.escape(visible_controls(text), quote=True)


def block_html(text: object, title: str = "") -> str:
    """A titled, wrapped block of preformatted text."""
    head = f'<div class="ek-title">{esc(title)}</div>' if title else ""
    return f'{head}<pre class="ek-block">{esc(text)}</pre>'


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
    return f'<pre class="ek-block">{"".join(parts)}</pre>'


def table_html(head: Sequence[object], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """A plain table; every cell is escaped."""
    title = f"<caption>{esc(caption)}</caption>" if caption else ""
    top = "".join(f'<th scope="col">{esc(cell)}</th>' for cell in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{esc(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return (
        f'<table class="ek-table">{title}<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'
    )


def defang(text: object) -> str:
    """For cells of notebook tables, which fetch any picture's address they find in a text."""
    return visible_controls(text).replace("://", ":\u200b//")


def csv_cell(text: object) -> str:
    """For CSV and TSV meant for spreadsheets: a cell that looks like a formula is neutralised."""
    cell = visible_controls(text).replace("\t", " ").replace("\n", " ")
    stripped = cell.lstrip()
    return "'" + cell if stripped[:1] in {"=", "+", "-", "@"} and not _number(stripped) else cell


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


def json_island(value: Any) -> str:
    """JSON that may stand inside a script element: no `<`, `>`, `&` or line separators in it."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _columns(text: str) -> int:
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True

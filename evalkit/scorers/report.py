r"""The sections of a report: split, join back to the identical text, put a new one in place.

The front (preamble, title, abstract) comes first, then one piece for each part, chapter and
section, then the back (bibliography, `\end{document}`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from evalkit.errors import ScorerError
from evalkit.records import Case, Reply
from evalkit.scorers.latex import Tex, parse
from evalkit.scorers.tex_dialect import SECTIONING
from evalkit.scorers.thinking import visible_text

__all__ = ["Section", "replace_section", "sections", "tex_of", "whole_report"]

_SPLIT_AT = SECTIONING[: SECTIONING.index("section") + 1]
_BACK_MACROS = ("bibliographystyle", "bibliography", "printbibliography", "appendix")
_FENCE = re.compile(r"^```[a-zA-Z]*[ \t]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Section:
    """A piece of a report: `kind` is front, section or back; only a section has a title."""

    kind: str
    title: str
    start: int
    end: int
    text: str


def sections(tex: str) -> tuple[Section, ...]:
    """Split a report; the texts of the pieces, joined, are the report, byte for byte.

    A report without a section, or one that cannot be parsed, is a single front.
    """
    parsed = parse(tex)
    heads = [(m.start, " ".join(m.last.split())) for m in parsed.named(*_SPLIT_AT)]
    if not heads:
        return (Section("front", "", 0, len(tex), tex),)
    back = _back(parsed, heads[-1][0])
    cuts = [(0, "front", ""), *((at, "section", title) for at, title in heads), (back, "back", "")]
    ends = [*(at for at, _, _ in cuts[1:]), len(tex)]
    return tuple(
        Section(kind, title, start, end, tex[start:end])
        for (start, kind, title), end in zip(cuts, ends, strict=True)
    )


def replace_section(tex: str, title: str, new: str) -> str:
    """The report with the section of this title replaced by `new`, everything else untouched.

    Raises:
        ScorerError: If the report has no section of this title.
    """
    wanted = " ".join(title.split()).casefold()
    pieces = sections(tex)
    for piece in pieces:
        if piece.kind == "section" and piece.title.casefold() == wanted:
            gap = piece.text[len(piece.text.rstrip()) :]
            return tex[: piece.start] + new.strip() + (gap or "\n") + tex[piece.end :]
    titles = ", ".join(repr(p.title) for p in pieces if p.kind == "section") or "none"
    raise ScorerError(f"the report has no section {title!r}. It has: {titles}.")


def tex_of(text: str) -> str:
    """The TeX of a reply: what stands in a code fence, else the text without its thinking."""
    shown = visible_text(text)
    if "```" not in shown:
        return shown
    fenced = [found[1] for found in _FENCE.finditer(shown)]
    whole = [body for body in fenced if "\\documentclass" in body]
    return (whole or fenced or [shown])[0]


def whole_report(case: Case, reply: Reply, into: str = "") -> str:
    """The report to judge: the reply itself, or the case's report with the reply put in place.

    Args:
        case: With `into`, its `material[into]` is the whole report and `inputs["section"]` the
            title of the section that the reply rewrites.
        reply: A whole report, or one section.
        into: Name of a file of the material; empty when the reply is the whole report.

    Raises:
        ScorerError: If the case lacks the report or the title.
    """
    tex = tex_of(reply.text)
    if not into:
        return tex
    if into not in case.material or not isinstance(case.inputs.get("section"), str):
        raise ScorerError(
            f"case {case.id!r} needs material {into!r} and the input 'section', "
            "because the criterion puts the reply 'into' that report."
        )
    return replace_section(case.material[into], case.inputs["section"], tex)


def _back(tex: Tex, last_head: int) -> int:
    """Where the back begins: at the bibliography, or at the end of the document."""
    return min((at for at in _back_places(tex) if at > last_head), default=len(tex.source))


def _back_places(tex: Tex) -> Iterator[int]:
    yield from (m.start for m in tex.named(*_BACK_MACROS))
    yield from (e.start for e in tex.within("thebibliography"))
    for document in tex.within("document"):
        if tex.source.endswith("\\end{document}", 0, document.end):
            yield document.end - len("\\end{document}")

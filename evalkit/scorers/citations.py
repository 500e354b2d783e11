r"""Every citation closed against the bibliography, and what the bibliography holds unused.

LaTeX: the whole `\cite` family through the parsed tree, so that comments, verbatim and text after
`\end{document}` do not count. Markdown: `[@key]` and `@key`. `.bib` files are read by bibtexparser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from evalkit.records import Case, Finding, Reply, Score
from evalkit.scorers.answer import no_answer
from evalkit.scorers.latex import Tex, looks_like_tex, parse
from evalkit.scorers.number_reading import prose_of
from evalkit.scorers.tex_dialect import is_cite
from evalkit.scorers.thinking import masked_text

__all__ = [
    "Citation",
    "Citations",
    "CitationsClosed",
    "bib_keys",
    "citations_in",
    "trace_citations",
]

_PANDOC = re.compile(r"(?<![\w.@\\])-?@\{?([A-Za-z0-9_][\w:.#$%&+?<>~/-]*\w|[A-Za-z])")
_MAX_BIB = 2_000_000


@dataclass(frozen=True, slots=True)
class Citation:
    """One cited key and where its command stands in the source."""

    key: str
    command: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Citations:
    """Keys cited (each once, in order), those without an entry, entries never cited."""

    cited: tuple[str, ...]
    undefined: tuple[str, ...]
    unused: tuple[str, ...]
    places: tuple[Citation, ...] = ()
    problem: str = ""


def citations_in(text: str) -> tuple[Citation, ...]:
    r"""Every citation of a LaTeX or Markdown text in order; `\nocite{*}` has the key `*`."""
    if looks_like_tex(text):
        return tuple(_tex_citations(parse(text)))
    prose = prose_of(text)
    return tuple(
        Citation(found[1], "@", found.start(), found.end()) for found in _PANDOC.finditer(prose)
    )


def trace_citations(text: str, bib: str) -> Citations:
    r"""Close the citations of a text against the entries of a .bib file.

    A `thebibliography` or a `filecontents` .bib inside the document defines keys as well.

    Args:
        text: LaTeX, Markdown or plain text.
        bib: The text of the .bib file; empty when there is none.
    """
    found = citations_in(text)
    entries = dict.fromkeys(bib_keys(bib))
    problem = ""
    if looks_like_tex(text):
        tex = parse(text)
        problem = tex.problem
        entries |= dict.fromkeys(own_entries(tex))
    cited = dict.fromkeys(c.key for c in found if c.key != "*")
    everything = any(c.key == "*" for c in found)
    return Citations(
        cited=tuple(cited),
        undefined=tuple(key for key in cited if key not in entries),
        unused=() if everything else tuple(key for key in entries if key not in cited),
        places=found,
        problem=problem,
    )


def own_entries(tex: Tex) -> Iterator[str]:
    r"""Keys a document defines itself: `\bibitem`, and .bib text in `filecontents`."""
    yield from (m.last.strip() for m in tex.macros if m.name == "bibitem")
    for environment in tex.within("filecontents", "filecontents*"):
        if ".bib" in environment.body.partition("\n")[0]:
            yield from bib_keys(environment.body)


@lru_cache(maxsize=8)
def bib_keys(bib: str) -> tuple[str, ...]:
    """The keys of the entries of a .bib text; `@comment`, `@string` and `@preamble` are none."""
    if not bib.strip() or len(bib) > _MAX_BIB:
        return ()
    import logging

    from bibtexparser.entrypoint import parse_string

    logging.getLogger("bibtexparser").setLevel(logging.ERROR)
    library = parse_string(bib, parse_stack=[])
    keys = [entry.key for entry in library.entries]
    keys += [getattr(block, "key", "") for block in library.failed_blocks]  # a repeated key
    return tuple(key for key in dict.fromkeys(keys) if key)


def bib_of(material: Mapping[str, str]) -> str:
    """All .bib files of a case's material, one after the other."""
    return "\n".join(text for name, text in sorted(material.items()) if name.endswith(".bib"))


def _tex_citations(tex: Tex) -> Iterator[Citation]:
    for macro in tex.macros:
        if not is_cite(macro.name) or macro.preamble:
            continue
        for key in macro.last.split(","):
            if key.strip():
                yield Citation(key.strip(), macro.name, macro.start, macro.end)
        if macro.name.endswith("cites"):
            yield from _further_keys(tex, macro.end, macro.name)


_NEXT_KEYS = re.compile(r"\s*(?:\[[^\[\]]*\]\s*){0,2}\{([^{}]*)\}")


def _further_keys(tex: Tex, end: int, command: str) -> Iterator[Citation]:
    r"""The second and later `[..][..]{key}` of a biblatex multicite command."""
    while found := _NEXT_KEYS.match(tex.source, end):
        for key in found[1].split(","):
            if key.strip():
                yield Citation(key.strip(), command, found.start(1), found.end(1))
        end = found.end()


@dataclass(frozen=True)
class CitationsClosed:
    """Share of cited keys that have an entry in the case's .bib material; 1.0 when all have.

    Args:
        min_cited: Keys the reply must cite at least; fewer scores in proportion.
        keep: Require the keys listed in `case.expected["citations"]` as well.
    """

    VERSION: ClassVar[int] = 1
    min_cited: int = 0
    keep: bool = False

    def __call__(self, case: Case, reply: Reply) -> Score:
        """Score the reply's citations."""
        if (none := no_answer(case, reply)) is not None:
            return none
        text = masked_text(reply.text)
        found = trace_citations(text, bib_of(case.material))
        if found.problem:
            return Score(0.0, f"the citations could not be read: {found.problem}")
        wanted = case.expected.get("citations", ()) if self.keep else ()
        lost = tuple(str(key) for key in wanted if key not in found.cited)
        findings = [
            Finding(f"\\{c.command}{{{c.key}}} has no entry", c.start, c.end)
            for c in found.places
            if c.key in found.undefined
        ]
        findings += [Finding(f"{key!r} is no longer cited") for key in lost]
        details = {
            "cited": list(found.cited),
            "undefined": list(found.undefined),
            "unused": list(found.unused),
            "lost": list(lost),
        }
        total = max(len(found.cited) + len(lost), self.min_cited)
        good = len(found.cited) - len(found.undefined)
        if total == 0:
            return Score(1.0, "nothing is cited", details=details)
        parts = [f"{good} of {total} citations have an entry"]
        if found.undefined:
            parts.append("undefined: " + ", ".join(found.undefined[:5]))
        if lost:
            parts.append("lost: " + ", ".join(lost[:5]))
        return Score(good / total, "; ".join(parts), findings=tuple(findings), details=details)

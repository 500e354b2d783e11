r"""The TeX that reports are written in: which macros take which arguments, and which are seen.

pylatexenc knows the kernel; this adds natbib, biblatex, siunitx, the usual floats and tables, and
the constructs whose content is no TeX at all (verbatim, listings, addresses).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

__all__ = [
    "HIDDEN_ARGUMENTS",
    "OPAQUE",
    "SECTIONING",
    "SHOWN",
    "SPECIALS",
    "VERBATIM",
    "Bare",
    "context",
    "is_cite",
]


SECTIONING = ("part", "chapter", "section", "subsection", "subsubsection")  # from the top down

# By argument pattern (pylatexenc's: * star, [ optional, { mandatory). No reader sees these.
_OPAQUE = {
    "{": "label ref eqref pageref autoref cref Cref vref nameref bibliography bibliographystyle "
    "addbibresource input include pagestyle thispagestyle pagenumbering graphicspath hypersetup "
    "lstset captionsetup geometry sisetup usetikzlibrary newcounter linespread hyphenation "
    "vphantom hphantom phantom date si unit",
    "*{": "vspace hspace",
    "[{": "documentclass usepackage RequirePackage bibitem setmainfont setsansfont setmonofont "
    "setCJKmainfont",
    "*[[{": "includegraphics",
    "{{": "setlength addtolength setcounter addtocounter fontsize",
    "{{{": "definecolor",
    "[{{": "rule",
    "*{[[{": "newcommand renewcommand providecommand",
    "*{{": "DeclareMathOperator",
    "*{[[{{": "newenvironment renewenvironment",
}
# The mandatory arguments of these are part of the text.
_READ = {
    "{": "textbf textit emph texttt textsc textrm textsf underline mbox ensuremath title author "
    "thanks text mathrm mathbf mathit operatorname textsuperscript textsubscript enquote "
    "centerline",
    "[{": "caption sqrt footnote footnotetext todo num ang numlist",
    "*[{": "part chapter section subsection subsubsection paragraph subparagraph",
    "[": "item",
    "{{": "frac dfrac tfrac binom textcolor colorbox",
    "[{{": "qty numrange SIlist qtylist",
    "[{[{": "SI",
    "[{{{": "SIrange qtyrange",
}
_ENVIRONMENTS = {
    "": "abstract center quote quotation",
    "[": "figure figure* table table* itemize enumerate description tcolorbox algorithm",
    "[{": "tabular longtable subfigure",
    "{[{": "tabularx tabular*",
    "[[[{": "minipage",
    "[{[{": "wrapfigure",
    "{": "multicols thebibliography adjustbox otherlanguage",
    "{{": "CJK CJK* list",
}
OPAQUE = frozenset(name for names in _OPAQUE.values() for name in names.split()) | {
    "verb", "lstinline", "mintinline", "url", "path", "nolinkurl",
}  # fmt: skip
HIDDEN_ARGUMENTS = {"href": {0}, "textcolor": {0}, "colorbox": {0}}
VERBATIM = frozenset(
    {"verbatim", "verbatim*", "Verbatim", "lstlisting", "minted", "comment"}
    | {"filecontents", "filecontents*"}
)
_SWITCHES = "! / - left right bf it em rm bfseries itshape ttfamily small large Large displaystyle"
SHOWN = dict.fromkeys(_SWITCHES.split(), "") | {
    ",": "\u2009", "thinspace": "\u2009", ";": " ", ":": " ", " ": " ", "\n": " ", "quad": " ",
    "qquad": " ", "%": "%", "percent": "%", "textpercent": "%", "&": "&", "#": "#", "$": "$",
    "_": "_", "{": "{", "}": "}", "times": "×", "texttimes": "×", "cdot": "·", "pm": "±",
    "textpm": "±", "mp": "∓", "approx": "≈", "simeq": "≈", "sim": "~", "le": "≤", "leq": "≤",
    "ge": "≥", "geq": "≥", "ldots": "…", "dots": "…", "degree": "°", "textdegree": "°",
    "mu": "µ", "textminus": "−", "textendash": "–", "textemdash": "—", "\\": "\n",
    "newline": "\n", "par": "\n\n", "LaTeX": "LaTeX", "TeX": "TeX",
}  # fmt: skip
SPECIALS = {"~": "\u00a0", "--": "–", "---": "—", "``": "“", "''": "”", "\n\n": "\n\n"}

_CITE = re.compile(r"[a-zA-Z]*[cC]ite[a-zA-Z]*\*?\Z")
_NOT_CITE = re.compile(
    r"Declare|At|def|new|renew|provide|pre|post|print|.*[cC]ite(?:style|setup|reset|index|dash|punct|urls?)"
)


def is_cite(name: str) -> bool:
    r"""True for `\cite` and its kin (natbib, biblatex, apacite ...), false for their settings."""
    return "ite" in name and bool(_CITE.match(name)) and not _NOT_CITE.match(name)


class Bare(str):
    """The name of a macro whose arguments do not end: it is read without them."""

    __slots__ = ()


@lru_cache(maxsize=1)
def context() -> Any:
    """The pylatexenc context database: this dialect before pylatexenc's own."""
    from pylatexenc.latexwalker import (
        LatexCharsNode,
        LatexWalkerParseError,
        get_default_latex_context_db,
    )
    from pylatexenc.macrospec import (
        EnvironmentSpec,
        LatexContextDb,
        MacroSpec,
        MacroStandardArgsParser,
        ParsedMacroArgs,
    )

    def raw_node(w: Any, start: int, end: int, state: Any) -> Any:
        return w.make_node(
            LatexCharsNode, parsing_state=state, chars=w.s[start:end], pos=start, len=end - start
        )

    class RawArgument(MacroStandardArgsParser):
        """`{...}` up to its brace, or |...| up to its delimiter, nothing in it being TeX."""

        def __init__(self, before: str = "*[", after: str = "") -> None:
            super().__init__(before + "{" + after)
            self.before = MacroStandardArgsParser(before)
            self.after = MacroStandardArgsParser(after)

        def parse_args(self, w: Any, pos: int, parsing_state: Any = None) -> Any:
            before, _, length = self.before.parse_args(w, pos, parsing_state)
            start = pos + length
            while start < len(w.s) and w.s[start].isspace():
                start += 1
            opening = w.s[start : start + 1]
            end = -1
            if opening == "{":
                end = _closing_brace(w.s, start)
            elif opening:
                end = w.s.find(opening, start + 1)
            if end < 0:
                w.spend(len(w.s) - start)
                raise LatexWalkerParseError("an argument does not end", s=w.s, pos=pos)
            after, _, length = self.after.parse_args(w, end + 1, parsing_state)
            raw = raw_node(w, start + 1, end, parsing_state)
            parsed = ParsedMacroArgs([*before.argnlist, raw, *after.argnlist], self.argspec)
            return parsed, pos, end + 1 + length - pos

    class RawBody(MacroStandardArgsParser):
        r"""Everything up to the `\end` of this environment, nothing in it being TeX."""

        def __init__(self, name: str) -> None:
            super().__init__("{")
            self.closing = f"\\end{{{name}}}"

        def parse_args(self, w: Any, pos: int, parsing_state: Any = None) -> Any:
            end = w.s.find(self.closing, pos)
            if end < 0:
                w.spend(len(w.s) - pos)
                raise LatexWalkerParseError(f"{self.closing} is missing", s=w.s, pos=pos)
            return ParsedMacroArgs([raw_node(w, pos, end, parsing_state)], "{"), pos, end - pos

    class Context(LatexContextDb):
        r"""Reads every macro of the `\cite` families alike, also those nobody listed."""

        def get_macro_spec(self, macroname: str) -> Any:
            if isinstance(macroname, Bare):
                return MacroSpec(macroname)
            if is_cite(macroname):
                return MacroSpec(macroname, args_parser=MacroStandardArgsParser("*[[{"))
            return super().get_macro_spec(macroname)

        def test_for_specials(self, s: str, pos: int, parsing_state: Any = None) -> Any:
            if s[pos] not in specials:
                return None
            return super().test_for_specials(s, pos, parsing_state=parsing_state)

    tables = ((spec, names) for table in (_OPAQUE, _READ) for spec, names in table.items())
    macros = [
        MacroSpec(name, args_parser=MacroStandardArgsParser(spec))
        for spec, names in tables
        for name in names.split()
    ]
    macros += [
        MacroSpec(name, args_parser=RawArgument())
        for name in ("url", "path", "nolinkurl", "verb", "lstinline")
    ]
    macros += [
        MacroSpec("href", args_parser=RawArgument("", "{")),
        MacroSpec("mintinline", args_parser=RawArgument("[{")),
    ]
    environments = [
        EnvironmentSpec(name, args_parser=MacroStandardArgsParser(spec))
        for spec, names in _ENVIRONMENTS.items()
        for name in names.split()
    ]
    environments += [EnvironmentSpec(name, args_parser=RawBody(name)) for name in sorted(VERBATIM)]
    default = get_default_latex_context_db()
    specials = {spec.specials_chars[0] for spec in default.iter_specials_specs()}
    merged = Context()
    merged.add_context_category("evalkit", macros=macros, environments=environments)
    for category in default.categories():
        merged.add_context_category(
            category,
            macros=list(default.iter_macro_specs([category])),
            environments=list(default.iter_environment_specs([category])),
            specials=list(default.iter_specials_specs([category])),
        )
    return merged


_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)


def _closing_brace(text: str, start: int) -> int:
    depth = 0
    for found in _BRACE.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if depth == 0:
            return found.start()
    return -1

"""Every entry of the tables of the dialect: what is seen, what is not, and where arguments end."""

from __future__ import annotations

import pytest

from evalkit.scorers.latex import parse
from evalkit.scorers.tex_dialect import SECTIONING, is_cite

HIDDEN = {
    "{": "label ref eqref pageref autoref cref Cref vref nameref bibliography bibliographystyle "
    "addbibresource input include pagestyle thispagestyle pagenumbering graphicspath hypersetup "
    "lstset captionsetup geometry sisetup usetikzlibrary newcounter linespread hyphenation "
    "vphantom hphantom phantom date si unit url path nolinkurl",
    "*{": "vspace hspace",
    "[{": "documentclass usepackage RequirePackage bibitem setmainfont setsansfont setmonofont "
    "setCJKmainfont lstinline",
    "*[[{": "includegraphics cite citep parencite",
    "{{": "setlength addtolength setcounter addtocounter fontsize mintinline",
    "{{{": "definecolor",
    "[{{": "rule",
    "*{[[{": "newcommand renewcommand providecommand",
    "*{{": "DeclareMathOperator",
    "*{[[{{": "newenvironment renewenvironment",
}
SEEN = {
    "{": "textbf textit emph texttt textsc textrm textsf underline mbox ensuremath title author "
    "thanks text mathrm mathbf mathit operatorname textsuperscript textsubscript enquote "
    "centerline",
    "[{": "caption sqrt footnote footnotetext todo num ang numlist",
    "*[{": "part chapter section subsection subsubsection paragraph subparagraph",
    "{{": "frac dfrac tfrac binom",
    "[{{": "qty numrange SIlist qtylist",
    "[{[{": "SI",
    "[{{{": "SIrange qtyrange",
}
ENVIRONMENTS = {
    "": "abstract center quote quotation",
    "[": "figure figure* table table* itemize enumerate description tcolorbox algorithm",
    "[{": "tabular longtable subfigure",
    "{[{": "tabularx tabular*",
    "[[[{": "minipage",
    "[{[{": "wrapfigure",
    "{": "multicols adjustbox otherlanguage",
    "{{": "CJK CJK* list",
}
RAW = (
    "verbatim verbatim* Verbatim lstlisting minted comment filecontents filecontents* "
    "thebibliography"
)
SETUP = (
    "DeclareAutoCite AtCite defcite newcites renewcite providecite precite postcite printcite "
    "citesetup citereset citeindex citedash citepunct citeurl citeurls citestyle"
)
SHOWN = {
    "! / - left right bf it em rm bfseries itshape ttfamily small large Large displaystyle": "",
    ", thinspace": "\u2009",
    "; : quad qquad": " ",
    "% percent textpercent": "%",
    "times texttimes": "×",
    "pm textpm": "±",
    "approx simeq": "≈",
    "le leq": "≤",
    "ge geq": "≥",
    "ldots dots": "…",
    "degree textdegree": "°",
    "\\ newline": "\n",
    "par": "\n\n",
    "& ": "&",
    "#": "#",
    "$": "$",
    "_": "_",
    "{": "{",
    "}": "}",
    "cdot": "·",
    "mp": "∓",
    "sim": "~",
    "mu": "µ",
    "textminus": "−",
    "textendash": "–",
    "textemdash": "—",
    "LaTeX": "LaTeX",
    "TeX": "TeX",
}


def each(table: dict[str, str]) -> list[tuple[str, str]]:
    return [(name, spec) for spec, names in table.items() for name in names.split()]


def filled(spec: str, mandatory: str) -> str:
    """Arguments of this pattern: 5 in the optional ones."""
    return "".join({"*": "*", "[": "[5]", "{": f"{{{mandatory}}}"}[kind] for kind in spec)


@pytest.mark.parametrize(("name", "spec"), each(HIDDEN))
def test_no_reader_sees_these_arguments(name: str, spec: str) -> None:
    tex = parse(f"before \\{name}{filled(spec, '7')} after")
    assert (tex.problem, tex.faults) == ("", ())
    assert not {"5", "7", "*"} & set(tex.visible)
    assert tex.visible.split("\x1f") == ["before ", " after"]
    assert parse(f"a \\{name}{filled(spec.strip('*[') or '{', '7')} b").visible[-2:] == " b"


@pytest.mark.parametrize(("name", "spec"), each(SEEN))
def test_a_reader_sees_the_mandatory_arguments(name: str, spec: str) -> None:
    tex = parse(f"before \\{name}{filled(spec, '7')} after")
    assert (tex.problem, tex.faults) == ("", ())
    assert tex.visible.count("7") == spec.count("{")
    assert not {"5", "*"} & set(tex.visible)
    assert tex.visible.startswith("before")
    assert tex.visible.endswith(" after")
    assert len(tex.macros[0].args) == len(spec)


@pytest.mark.parametrize(("name", "spec"), each(ENVIRONMENTS))
def test_a_reader_sees_the_body_of_an_environment(name: str, spec: str) -> None:
    tex = parse(f"before \\begin{{{name}}}{filled(spec, '5')}7 g\\end{{{name}}} after")
    assert (tex.problem, tex.faults) == ("", ())
    assert tex.visible.split() == ["before", "7", "g", "after"]
    (environment,) = tex.environments
    assert environment.args == ("5",) * len(spec)
    assert (environment.name, environment.body) == (name, "7 g")


@pytest.mark.parametrize("name", RAW.split())
def test_no_reader_sees_the_body_of_these_environments(name: str) -> None:
    tex = parse(f"before \\begin{{{name}}}{{9}} 7 \\end{{{name}}} after")
    assert tex.visible.split() == ["before", "after"]
    assert tex.environments[0].body.strip().endswith("7")


@pytest.mark.parametrize("name", ["verb", "verb*", "lstinline", "lstinline[5]", "mintinline{c}"])
def test_what_stands_between_two_bars_is_no_tex(name: str) -> None:
    assert parse(f"a \\{name}|7 }} \\cite{{| b").visible == "a \x1f b"
    assert parse(f"a \\{name}|7| b").faults == ()


@pytest.mark.parametrize(("name", "shown"), [(n, s) for ns, s in SHOWN.items() for n in ns.split()])
def test_a_macro_that_stands_for_a_character(name: str, shown: str) -> None:
    assert parse(f"a\\{name}{{}}b").visible == f"a{shown}b"


def test_a_control_space_is_a_space() -> None:
    assert parse("a\\ b").visible == "a b"
    assert parse("a\\\nb").visible == "a b"


@pytest.mark.parametrize(
    ("source", "shown"),
    [("~", "\u00a0"), ("--", "–"), ("---", "—"), ("``", "“"), ("''", "”"), ("\n\n", "\n\n")],
)
def test_characters_that_stand_for_others(source: str, shown: str) -> None:
    assert parse(f"a{source}b").visible == f"a{shown}b"
    assert parse("a & b").visible == "a \x1f b"


def test_only_the_text_of_a_link_and_of_colour_is_seen() -> None:
    assert parse("\\href{5}{7}").visible == "7"
    assert parse("\\textcolor{5}{7}").visible == "7"
    assert parse("\\colorbox{5}{7}").visible == "7"


def test_an_item_shows_its_label() -> None:
    assert parse("\\item[7] b").visible.split() == ["7", "b"]


@pytest.mark.parametrize("name", ["section", "caption", "title", "item"])
def test_a_heading_stands_by_itself(name: str) -> None:
    braces = "[Head]" if name == "item" else "{Head}"
    assert parse(f"a\\{name}{braces}b").visible.replace("\x1f", "") == "a\n\nHead\n\nb"


def test_sectioning_goes_from_the_top_down() -> None:
    assert SECTIONING == ("part", "chapter", "section", "subsection", "subsubsection")


@pytest.mark.parametrize("name", SETUP.split())
def test_what_sets_up_citations_cites_nothing(name: str) -> None:
    assert not is_cite(name)


@pytest.mark.parametrize(
    "name", ["url", "path", "nolinkurl", "href", "verb", "lstinline", "mintinline{c}"]
)
@pytest.mark.parametrize("open_argument", ["{a", "|a", ""])
def test_an_address_that_does_not_end_is_a_fault(name: str, open_argument: str) -> None:
    tex = parse(f"a \\{name}{open_argument}")
    assert tex.faults
    assert tex.visible.startswith("a ")


def test_an_address_may_hold_braces_percent_signs_and_spaces_before_it() -> None:
    assert parse("\\url {a{b}%20\\} c} 7").visible == "\x1f 7"
    assert parse("\\href {a{b}%20} {7} 8").visible == "7 8"

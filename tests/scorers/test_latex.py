"""One parse, shared: what is visible, what is not, and what cannot be parsed at all."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tex_cases import HOSTILE, failure_file

from evalkit.scorers.latex import BREAK, looks_like_tex, parse
from evalkit.scorers.tex_dialect import is_cite


def test_equal_texts_share_one_parse() -> None:
    assert parse("\\section{A} x") is parse("\\section{A}" + " x")


def test_comments_verbatim_setup_and_what_follows_the_end_are_not_visible() -> None:
    seen = parse(failure_file("files/e02_report.tex")).visible
    for hidden in ("99.9", "55.5", "11pt", "1.5em", "0.8", "run_07", "smith2021", "zenodo", "3cm"):
        assert hidden not in seen
    for shown in ("Pulse test", "41.7", "88.8", "Trace of the run.", "Result"):
        assert shown in seen
    after = parse(failure_file("files/e03_report.tex"))
    assert "ghost" not in after.visible
    assert all("ghost" not in macro.last for macro in after.macros if is_cite(macro.name))


def test_every_visible_character_has_its_place_in_the_source() -> None:
    source = "\\begin{document}\n\\textbf{Mass} 41.7\\,mV % no\n$x^2$ \\cite{a}\n\\end{document}"
    tex = parse(source)
    assert len(tex.visible) == len(tex.where) == len(tex.math)
    for word in ("Mass", "41.7", "mV", "x"):
        at = tex.visible.index(word)
        assert source.startswith(word, tex.where[at])
    assert tex.math[tex.visible.index("x")] == 1
    assert tex.math[tex.visible.index("M")] == 0


@pytest.mark.parametrize(
    ("source", "visible"),
    [
        ("9{,}500", "9,500"),
        ("3--5\\,mm", "3–5\u2009mm"),
        ("a~b", "a\u00a0b"),
        ("\\textbf{TO}DO", "TODO"),
        ("\\href{http://a.b/1%2}{text}", "text"),
        ("\\verb|x|y", f"{BREAK}y"),
        ("\\frac{1}{2}", f"1{BREAK}2"),
        ("20\\% of", "20% of"),
        ("$x_{12}$", f"x_{BREAK}"),
        ("\\textcolor{red}{7}", "7"),
    ],
)
def test_markup_becomes_what_a_reader_sees(source: str, visible: str) -> None:
    assert parse(source).visible == visible


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("\\begin{document} a {b \\end{document}", "'{' is never closed"),
        ("\\begin{document} a", "\\begin{document} has no \\end{document}"),
        ("\\begin{document} a } b \\end{document}", "Unexpected mismatching closing brace"),
        ("\\begin{document} $a \\end{document}", "'$' is never closed"),
        ("\\begin{document}\\begin{a} x\\end{document}", "\\begin{a} has no \\end{a}"),
    ],
)
def test_broken_tex_is_read_and_its_fault_named(source: str, fault: str) -> None:
    tex = parse(source)
    assert not tex.problem
    assert any(why.startswith(fault) for _, why in tex.faults)


def test_text_after_a_misplaced_end_of_the_document_is_outside() -> None:
    assert "ghost" not in parse("\\begin{document} {a \\end{document} ghost").visible


def test_1500_nested_braces_give_a_sentence() -> None:
    assert parse("{" * 1500 + "}" * 1500).problem == (
        "nested too deeply to parse: 1,500 levels, 80 are allowed"
    )


def test_a_text_that_is_too_long_gives_a_sentence() -> None:
    assert parse("x" * 500_001).problem.startswith("too long to parse: 500,001 characters")


def test_79_nested_braces_are_parsed() -> None:
    tex = parse("{" * 79 + "x" + "}" * 79)
    assert (tex.problem, tex.visible) == ("", "x")


@pytest.mark.parametrize(
    ("text", "is_tex"),
    [
        ("\\documentclass{article}", True),
        ("a \\textbf{b}", True),
        ("9{,}500", True),
        ("$x_1$", True),
        ("It costs $5, or 5% more.", False),
        ("# Head\nwith $x^2$ and 12% of \\alpha", False),
        ("see [a](b) and \\% too", False),
        ("It costs $5 for my_file, 5% off", False),
        ("", False),
    ],
)
def test_tex_is_told_from_markdown(text: str, is_tex: bool) -> None:
    assert looks_like_tex(text) is is_tex


@pytest.mark.parametrize(
    "name",
    [
        "cite",
        "citep",
        "citet*",
        "Citet",
        "citealt",
        "citeauthor",
        "citeyearpar",
        "parencite",
        "textcite",
        "footcite",
        "autocite",
        "supercite",
        "fullcite",
        "cites",
        "parencites",
        "smartcite",
        "nocite",
        "citeA",
        "citenum",
        "onlinecite",
    ],
)
def test_the_cite_families_are_known(name: str) -> None:
    assert is_cite(name)


@pytest.mark.parametrize(
    "name",
    ["citestyle", "citesetup", "DeclareCiteCommand", "AtEveryCite", "excite2", "item", "newcite"],
)
def test_settings_of_citations_are_none(name: str) -> None:
    assert not is_cite(name)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_input_never_raises(text: str) -> None:
    tex = parse(text)
    assert len(tex.visible) == len(tex.where) == len(tex.math)


@given(st.text(alphabet="\\{}[]$%&_^~ ab1|\n-", max_size=60))
@settings(max_examples=200, deadline=None)
def test_any_scrap_of_tex_is_read(text: str) -> None:
    tex = parse(text)
    assert len(tex.visible) == len(tex.where) == len(tex.math)
    assert all(0 <= at < max(len(text), 1) for at in tex.where)

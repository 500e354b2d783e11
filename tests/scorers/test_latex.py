# ruff: noqa: E501 - a row of a table stands on one line
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


def test_macros_and_environments_know_their_place_and_arguments() -> None:
    source = "\\begin{document}\nx \\cite[p.~3]{a, % no\n b}\\begin{tabular}{ll} 1 \\\\ \\end{tabular}\\end{document}"
    tex = parse(source)
    (cite,) = tex.named("cite")
    assert source[cite.start : cite.end] == "\\cite[p.~3]{a, % no\n b}"
    assert (cite.args, cite.last, cite.preamble) == ((None, "p.~3", None, "a, b"), "a, b", False)
    (table,) = tex.within("tabular")
    assert source[table.start : table.end].endswith("\\end{tabular}")
    assert (table.args, table.body) == ((None, "ll"), " 1 \\\\ ")
    (document,) = tex.within("document")
    assert (document.start, document.end) == (0, len(source))
    assert document.body == source[len("\\begin{document}") : -len("\\end{document}")]
    assert [tex.line(m.start) for m in tex.named("cite", "\\")] == [2, 3]
    assert list(tex.named("emph")) == []


def test_the_preamble_is_known_as_such() -> None:
    tex = parse(
        "\\documentclass{a}\\title{T}\\author{A}\\begin{document}\\maketitle x\\end{document}"
    )
    assert [(m.name, m.preamble) for m in tex.macros] == [
        ("documentclass", True),
        ("title", True),
        ("author", True),
        ("maketitle", False),
    ]
    assert "T" in tex.visible
    assert "A" not in tex.visible
    assert list(tex.named("title")) == []


@pytest.mark.parametrize(
    ("source", "body"),
    [
        ("\\[ a = b \\]", " a = b "), ("$$ a = b $$", " a = b "), ("\\begin{align*} a &= b \\end{align*}", " a &= b "),
        ("\\begin{verbatim}\\x{\\end{verbatim}", "\\x{"), ("\\begin{a}\\end{a}", ""), ("\\begin{a}\\begin{b}x\\end{b}\\end{a}", "\\begin{b}x\\end{b}"),
    ],
)  # fmt: skip
def test_the_body_of_an_environment_is_its_source(source: str, body: str) -> None:
    first = parse(f"x {source} y").environments[0]
    assert (first.body, first.start, first.end) == (body, 2, 2 + len(source))
    assert first.name in {"\\[", "align*", "verbatim", "a"}


def test_inline_mathematics_is_no_environment() -> None:
    tex = parse("x $a$ \\(b\\)")
    assert tex.environments == ()
    assert "".join(c for c, m in zip(tex.visible, tex.math, strict=True) if m) == "ab"


@pytest.mark.parametrize(
    "source",
    ["\\[a\\]", "$$a$$", "\\begin{equation}a\\end{equation}", "\\begin{align}a\\end{align}"],
)
def test_displayed_mathematics_is_mathematics(source: str) -> None:
    tex = parse(f"x {source} y")
    assert [tex.math[tex.visible.index(c)] for c in "xay"] == [0, 1, 0]
    assert tex.visible.split("a")[0][2:].strip(" ") in {BREAK, "\n"}
    assert tex.visible.split("a")[1][:1] in {BREAK, "\n"}


@pytest.mark.parametrize(
    ("source", "visible"),
    [
        ("$x_{1}y$", f"x_{BREAK}y"), ("$x^{1}2$", f"x^1{BREAK}2"), ("a_{1}", "a_1"), ("{a}{b}", "ab"),
        ("\\textsuperscript{2}", f"^2{BREAK}"), ("a\\unknown b", f"a{BREAK}b"), ("\\caption[s]{7}x", f"\n\n{BREAK}7\n\nx"),
        ("\\item[l] x", "\n\nl\n\n x"), ("\\begin{center}a\\end{center}b", "\na\nb"), ("% c\na", "a"),
        ("\\textbf{a % c\n b}", "a b"), ("\\frac{a}{b}", f"a{BREAK}b"), ("\\SI{3}{mm}", f"3{BREAK}mm"),
    ],
)  # fmt: skip
def test_what_a_reader_sees_in_detail(source: str, visible: str) -> None:
    assert parse(source).visible == visible


@pytest.mark.parametrize(
    ("source", "at", "fault"),
    [
        ("ab {c", 3, "'{' is never closed"), ("ab \\[c", 3, "'\\[' is never closed"), ("ab \\(c", 3, "'\\(' is never closed"),
        ("a \\begin{b} c", 2, "\\begin{b} has no \\end{b}"), ("a \\begin {b c", 2, "Bad \\begin macro: expected {environmentname}"),
        ("a \\end{b}", 2, "Unexpected closing environment: 'b'"), ("a }", 2, "Unexpected mismatching closing brace: '}'"),
    ],
)  # fmt: skip
def test_a_fault_has_its_place(source: str, at: int, fault: str) -> None:
    assert (at, fault) in parse(source).faults
    assert list(parse(source).faults) == sorted(parse(source).faults)


@pytest.mark.parametrize(
    "source",
    [
        "{ }",
        "{a }",
        "{}",
        "$a$ ",
        "\\begin{a} \\end{a}",
        "\\begin{a}x\n\\end {a}",
        "{\\a }",
        "{% c\n}",
    ],
)
def test_what_is_closed_is_no_fault(source: str) -> None:
    assert parse(source).faults == ()


def test_nothing_after_the_end_of_the_document_counts() -> None:
    tex = parse("\\begin{document}a\\begin{b} x \\end{document} \\cite{k} \\begin{c}\\end{c} ghost")
    assert list(tex.named("cite")) == []
    assert [e.name for e in tex.environments] == ["document", "b"]


@pytest.mark.parametrize(
    ("levels", "problem"), [(80, ""), (81, "nested too deeply to parse: 81 levels, 80 are allowed")]
)  # fmt: skip
@pytest.mark.parametrize(
    ("left", "right"), [("{", "}"), ("\\begin{a}", "\\end{a}"), ("\\begin {a}", "\\end {a}")]
)
def test_depth_counts_braces_and_environments(
    levels: int, problem: str, left: str, right: str
) -> None:
    shown = levels if left == "{" else levels - 1  # the brace of a name is a level of its own
    assert parse(left * shown + right * shown).problem == problem
    assert parse((left + right) * 200).problem == ""
    assert parse((right + left * 30 + right * 30) * 5).problem == ""
    assert parse("\\{" * 100).problem == ""


def test_the_longest_text_that_is_parsed() -> None:
    assert parse("x" * 500_000).problem == ""
    assert (
        parse("x" * 500_001).problem == "too long to parse: 500,001 characters, 500,000 are allowed"
    )


def test_nested_options_give_a_sentence() -> None:
    assert parse("\\cite[" * 1500).problem == "nested too deeply to parse"


@pytest.mark.parametrize(
    ("text", "is_tex"),
    [
        ("\\begin{document}\n# Head", True), ("# Head\n\\documentclass{a}", True), ("a\\,b", True), ("a\\;b", True), ("a\\%b", True),
        ("a\\$b", True), ("a\\&b", True), ("\\[a\\]", True), ("\\(a\\)", True), ("a\\_b", False), ("\\1", False), ("$a^b$", True),
        ("$a\nb_c$", False), ("~~~\n\\alpha", False), ("```\n\\alpha", False), ("**b** \\alpha", False), ("###### h\n\\alpha", False),
        ("# h\n\\documentclas", False), ("# h\n\\begin{document", False),
        ("####### h\n\\alpha", True), ("#h \\alpha", True), ("2 ** 3 \\alpha", True), ("[" + "a" * 200 + "](b) \\alpha", False),
        ("[a]() \\alpha", True), ("$" + "a" * 80 + "_" + "b" * 80 + "$", True),
    ],
)  # fmt: skip
def test_tex_is_told_from_markdown_in_detail(text: str, is_tex: bool) -> None:
    assert looks_like_tex(text) is is_tex

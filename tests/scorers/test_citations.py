# ruff: noqa: E501 - a row of a table stands on one line
"""Citations closed against the bibliography."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tex_cases import HOSTILE, failure_case, failure_file

from evalkit.records import Case, Reply
from evalkit.scorers.citations import (
    CitationsClosed,
    bib_keys,
    bib_of,
    citations_in,
    trace_citations,
)

BIB = "@misc{a, title={A}}\n@misc{b, title={B}}\n"


def keys(text: str) -> list[str]:
    return [c.key for c in citations_in(text)]


def test_e03_the_bibliography_is_closed() -> None:
    case = failure_case("E03")
    tex, bib = (failure_file(case["input"][name]) for name in ("tex_file", "bib_file"))
    found = trace_citations(tex, bib)
    assert {k: list(getattr(found, k)) for k in case["expected"]["value"]} == case["expected"][
        "value"
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("\\cite{a}", ["a"]),
        ("\\cite[p.~3]{a}", ["a"]),
        ("\\citep[see][p.~3]{a, b}", ["a", "b"]),
        ("\\cite{a,%\n  b}", ["a", "b"]),
        ("\\Citet*{a}\\citeyearpar{b}\\parencite{c}\\footfullcite{d}", ["a", "b", "c", "d"]),
        ("\\cites[1]{a}[see][2]{b}{c,d}", ["a", "b", "c", "d"]),
        ("20\\% of \\cite{a} % \\cite{b}", ["a"]),
        ("\\verb|\\cite{a}| \\begin{verbatim}\\cite{b}\\end{verbatim}\\cite{c}", ["c"]),
        (
            "\\begin{lstlisting}\n\\cite{a}\n\\end{lstlisting}\\begin{comment}\\cite{b}\\end{comment}",
            [],
        ),
        ("\\begin{document}\\cite{a}\\end{document}\\cite{b}", ["a"]),
        ("\\citestyle{authoryear}\\section{A}", []),
        ("\\cite{}", []),
        ("See [@a; -@b, p. 3] and @c.", ["a", "b", "c"]),
        ("Mail a@b.org, `@a`.\n```\n@b\n```", []),
    ],
)
def test_every_cite_command_that_takes_effect_is_read(text: str, found: list[str]) -> None:
    assert keys(text) == found


def test_a_citation_knows_its_place() -> None:
    text = "x \\cite[p.~3]{a} y"
    (citation,) = citations_in(text)
    assert text[citation.start : citation.end] == "\\cite[p.~3]{a}"


def test_nocite_star_uses_every_entry() -> None:
    assert trace_citations("\\nocite{*}", BIB).unused == ()
    assert trace_citations("\\nocite{a}", BIB).unused == ("b",)
    assert trace_citations("\\nocite{*}", BIB).undefined == ()


def test_only_entries_of_a_bib_file_are_keys() -> None:
    bib = (
        "@string{s = {x}}\n@comment{@misc{no, title={N}}}\n@preamble{{p}}\nloose text\n"
        "@Article{Yes2020, title={{Braces} in it}, year=2020}\n@misc(round, title={R})\n"
        "@misc{Yes2020, title={again}}\n"
    )
    assert "Yes2020" in bib_keys(bib)
    assert not {"no", "s", "p"} & set(bib_keys(bib))
    assert bib_keys("") == ()


def test_entries_inside_the_document_count() -> None:
    own = (
        "\\begin{document}\\cite{a,c}\\begin{thebibliography}{9}\\bibitem[A]{a} A."
        "\\end{thebibliography}\\end{document}"
    )
    assert trace_citations(own, "").undefined == ("c",)
    filed = (
        "\\begin{filecontents}{refs.bib}\n@misc{a, title={A}}\n\\end{filecontents}\n"
        "\\begin{document}\\cite{a,c}\\end{document}"
    )
    assert trace_citations(filed, "").undefined == ("c",)


def test_the_scorer_counts_keys_and_names_the_undefined() -> None:
    case = Case("c", material={"refs.bib": BIB})
    score = CitationsClosed()(case, Reply("\\cite{a} and \\cite{ghost}"))
    assert score.value == 0.5
    assert score.details["undefined"] == ["ghost"]
    assert score.details["unused"] == ["b"]
    assert "ghost" in score.reason
    (finding,) = score.findings
    assert (finding.start, finding.end) == (13, 25)


def test_the_scorer_can_ask_for_citations() -> None:
    case = Case("c", material={"refs.bib": BIB}, expected={"citations": ["a", "b"]})
    assert CitationsClosed()(case, Reply("\\textbf{no} citation")).value == 1.0
    assert CitationsClosed(min_cited=2)(case, Reply("\\cite{a}")).value == 0.5
    lost = CitationsClosed(keep=True)(case, Reply("\\cite{a}"))
    assert (lost.value, lost.details["lost"]) == (0.5, ["b"])


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_gets_a_score_with_a_reason(text: str) -> None:
    score = CitationsClosed()(Case("c", material={"r.bib": text[:2000]}), Reply(text))
    assert score.value is not None
    assert score.reason


@given(st.text(max_size=100), st.text(alphabet='@misc{a,=}\n"# ', max_size=60))
def test_any_text_gets_a_score_with_a_reason(text: str, bib: str) -> None:
    score = CitationsClosed()(Case("c", material={"r.bib": bib}), Reply(text))
    assert 0.0 <= (score.value or 0.0) <= 1.0
    assert score.reason


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("@a", ["a"]), ("[-@a]", ["a"]), ("@{a b}", ["a"]), ("(@a:b.c-d_e/f)", ["a:b.c-d_e/f"]), ("@a.", ["a"]),
        ("@a1, @B", ["a1", "B"]), ("x@a", []), (".@a", []), ("@@a", []), ("\\@a", []), ("@_a", ["_a"]), ("@9a", ["9a"]),
        ("<!-- @a --> @b", ["b"]),
    ],
)  # fmt: skip
def test_markdown_keys(text: str, found: list[str]) -> None:
    assert [c.key for c in citations_in(text)] == found
    assert all(text[c.start : c.end].lstrip("-").lstrip("@{") == c.key for c in citations_in(text))
    assert {c.command for c in citations_in(text)} <= {"@"}


def test_a_citation_knows_its_command_and_each_key_of_a_multicite_its_place() -> None:
    text = "\\parencites[1]{a}  [see][2]{b, c}{d} and [e]{f}"
    found = citations_in(text)
    assert [(c.key, c.command) for c in found] == [(k, "parencites") for k in "abcd"]
    assert [text[c.start : c.end] for c in found[1:]] == ["b, c", "b, c", "d"]
    assert [c.key for c in citations_in("\\cite{a}{b}")] == ["a"]


def test_citations_of_the_preamble_do_not_count() -> None:
    text = "\\documentclass{a}\\cite{no}\\begin{document}\\cite{a}\\end{document}"
    assert [c.key for c in citations_in(text)] == ["a"]


def test_a_filecontents_that_is_no_bib_defines_nothing() -> None:
    text = "\\begin{filecontents*}{%s}\n@misc{a, title={A}}\n\\end{filecontents*}\n\\cite{a}"
    assert trace_citations(text % "refs.bib", "").undefined == ()
    assert trace_citations(text % "notes.txt", "").undefined == ("a",)
    assert trace_citations(text % "refs.bib", "").unused == ()


def test_cited_keys_come_once_in_order_and_a_problem_is_told() -> None:
    found = trace_citations("\\cite{b}\\cite{a,b}", BIB + "@misc{c, title={C}}")
    assert (found.cited, found.undefined, found.unused) == (("b", "a"), (), ("c",))
    assert len(found.places) == 3
    assert trace_citations("\\cite{a}" + "{" * 99, "").problem.startswith("nested too deeply")
    assert trace_citations("@z", BIB).unused == ("a", "b")


def test_a_bib_that_is_too_long_has_no_keys() -> None:
    assert bib_keys("% " + "x" * 2_000_000 + "\n@misc{a, title={A}}") == ()
    assert bib_keys("@misc{a, title={A}}\n@misc{b, title={B}}\n@misc{a, title={C}}") == ("a", "b")
    assert bib_keys(" \n") == ()


def test_all_bib_files_of_the_material_count() -> None:
    files = {
        "b.bib": "@misc{b, title={B}}",
        "a.bib": "@misc{a, title={A}}",
        "c.txt": "@misc{c, title={C}}",
    }
    assert bib_keys(bib_of(files)) == ("a", "b")


def test_the_scorer_says_what_is_wrong_with_the_citations() -> None:
    case = Case("c", material={"refs.bib": BIB}, expected={"citations": ["a", "z"]})
    score = CitationsClosed(keep=True)(case, Reply("\\cite{a} \\cite{g,h}"))
    assert score.value == 1 / 4
    assert score.reason == "1 of 4 citations have an entry; undefined: g, h; lost: z"
    assert [f.message for f in score.findings] == [
        "\\cite{g} has no entry",
        "\\cite{h} has no entry",
        "'z' is no longer cited",
    ]
    assert score.details == {
        "cited": ["a", "g", "h"],
        "undefined": ["g", "h"],
        "unused": ["b"],
        "lost": ["z"],
    }
    none = CitationsClosed()(case, Reply("words"))
    assert (none.value, none.reason) == (1.0, "nothing is cited")
    assert none.details["unused"] == ["a", "b"]
    deep = CitationsClosed()(case, Reply("\\cite{a}" + "{" * 99))
    assert deep.value == 0.0
    assert deep.reason.startswith("the citations could not be read: nested too deeply")
    assert (
        CitationsClosed(min_cited=4)(case, Reply("\\cite{a}")).reason
        == "1 of 4 citations have an entry"
    )


def test_citations_in_a_thinking_block_do_not_count() -> None:
    case = Case("c", material={"refs.bib": BIB})
    text = "<think>\\cite{ghost}</think>\\cite{a} \\cite{x}"
    score = CitationsClosed()(case, Reply(text))
    (finding,) = score.findings
    assert text[finding.start : finding.end] == "\\cite{x}"
    keys_listed = CitationsClosed()(case, Reply("\\cite{q,r,s,t,u,v}"))
    assert keys_listed.reason.endswith("undefined: q, r, s, t, u")


def test_a_reply_without_an_answer_scores_0_under_its_own_reason() -> None:
    score = CitationsClosed()(Case("c"), Reply(""))
    assert (score.value, score.reason) == (0.0, "no answer: the reply is empty")


def test_only_the_first_five_lost_keys_are_named() -> None:
    case = Case("c", expected={"citations": list("abcdefg")})
    assert CitationsClosed(keep=True)(case, Reply("x")).reason.endswith("lost: a, b, c, d, e")

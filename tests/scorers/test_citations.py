"""Citations closed against the bibliography."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tex_cases import HOSTILE, failure_case, failure_file

from evalkit.records import Case, Reply
from evalkit.scorers.citations import CitationsClosed, bib_keys, citations_in, trace_citations

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

# ruff: noqa: E501 - a row of a table stands on one line
"""Eight checks of a report, and its sections."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tex_cases import HOSTILE

from evalkit.errors import ScorerError
from evalkit.records import Case, Reply
from evalkit.scorers.report import replace_section, sections, tex_of, whole_report
from evalkit.scorers.report_score import CHECKS, ReportScore, report_score

REPORT = r"""\documentclass{article}
\begin{document}
\section{Aim}
We measured the length of a rod three times, as \cite{a} advise.
\section{Data} % \section{Hidden}
\begin{tabular}{cc}
1 & 20.1 \\
2 & 20.3 \\
\end{tabular}
The mean of the two readings is
\begin{equation} m = \frac{a+b}{2} \end{equation}
\section{Uncertainty}
The standard deviation is 0.1\,cm, so that the third digit means little.
\begin{thebibliography}{9}\bibitem{a} A.\end{thebibliography}
\end{document}
"""


def failed(tex: str, bib: str = "") -> tuple[str, ...]:
    return report_score(tex, bib).failed


def test_a_whole_report_passes_all_eight_checks() -> None:
    report = report_score(REPORT)
    assert (report.value, report.failed, len(CHECKS)) == (1.0, (), 8)


@pytest.mark.parametrize(
    ("old", "new", "check"),
    [
        ("\\documentclass{article}\n", "", "skeleton"),
        ("\\end{document}\n", "", "skeleton"),
        ("\\end{tabular}", "\\end{tabular}}", "skeleton"),
        ("We measured the length of a rod three times, as", "See", "three_sections"),
        ("\\section{Aim}", "", "three_sections"),
        ("The standard deviation is 0.1\\,cm", "The result is good", "error_analysis"),
        ("The standard deviation is 0.1\\,cm", "The standard deviation is small", "error_analysis"),
        ("The standard", "We give no standard", "error_analysis"),
        ("\\cite{a}", "they", "citations_closed"),
        ("\\cite{a}", "\\cite{a,ghost}", "citations_closed"),
        ("2 & 20.3 \\\\\n", "", "data_table"),
        ("1 & 20.1 \\\\\n2 & 20.3 \\\\", "a & b \\\\\nc & d \\\\", "data_table"),
        ("m = \\frac{a+b}{2}", "m", "equation"),
        ("the third digit means little.", "so. I hope this helps!", "no_boilerplate"),
        ("the third digit means little.", "so. TODO", "no_todo"),
        ("the third digit means little.", "so. \\todo[inline]{units}", "no_todo"),
    ],
)
def test_one_fault_fails_exactly_its_check(old: str, new: str, check: str) -> None:
    assert old in REPORT
    uncertainty = "\\section{Uncertainty}"
    tex = REPORT.replace(
        uncertainty, "\\section{Outlook}" if check == "error_analysis" else uncertainty
    )
    assert failed(tex.replace(old, new)) == (check,)


@pytest.mark.parametrize("hidden", ["% TODO check\n", "\\begin{verbatim}\nTODO\n\\end{verbatim}\n"])
def test_what_no_reader_sees_is_not_left_over(hidden: str) -> None:
    assert failed(REPORT.replace("The mean of", hidden + "The mean of")) == ()


def test_a_check_says_what_it_found_and_where() -> None:
    tex = REPORT.replace("little.", "little. TODO: units")
    (check,) = (c for c in report_score(tex).checks if not c.passed)
    assert tex[check.start : check.end] == "TODO"
    broken = REPORT.replace("\\end{tabular}", "\\textbf{x \\end{tabular}")
    skeleton = report_score(broken).checks[0]
    assert skeleton.finding.startswith("line 9: '{' is never closed")


def test_citations_are_closed_against_the_bib_where_there_is_one() -> None:
    tex = REPORT.replace(
        "\\begin{thebibliography}{9}\\bibitem{a} A.\\end{thebibliography}", "\\bibliography{refs}"
    )
    assert failed(tex) == ()
    assert failed(tex, "@misc{a, title={A}}") == ()
    assert failed(tex, "@misc{b, title={B}}") == ("citations_closed",)


def test_an_empty_report_passes_nothing() -> None:
    assert report_score("").value == 0.0
    assert report_score("\\documentclass{article}\\begin{document}\\end{document}").value == 1 / 8


def test_the_scorer_gives_the_share_of_checks_with_findings_in_the_reply() -> None:
    text = "Here you are:\n```latex\n" + REPORT.replace("little.", "little. TODO") + "```\n"
    score = ReportScore()(Case("c"), Reply(text))
    assert score.value == 7 / 8
    assert score.details["failed"] == ["no_todo"]
    (finding,) = score.findings
    assert text[finding.start : finding.end] == "TODO"


def test_a_reply_is_put_into_the_report_of_its_case() -> None:
    case = Case("c", inputs={"section": "data"}, material={"report.tex": REPORT})
    score = ReportScore(into="report.tex")(
        case, Reply("\\section{Data}\nThis has lost the table and the equation.\n")
    )
    assert score.details["failed"] == ["data_table", "equation"]
    with pytest.raises(ScorerError, match=r"needs material 'other\.tex'"):
        ReportScore(into="other.tex")(case, Reply("x"))


# Sections


def test_a_report_splits_into_its_sections_and_joins_back() -> None:
    pieces = sections(REPORT)
    assert [(p.kind, p.title) for p in pieces] == [
        ("front", ""),
        ("section", "Aim"),
        ("section", "Data"),
        ("section", "Uncertainty"),
        ("back", ""),
    ]
    assert "".join(p.text for p in pieces) == REPORT
    assert pieces[-1].text.startswith("\\begin{thebibliography}")
    assert all(REPORT[p.start : p.end] == p.text for p in pieces)


@pytest.mark.parametrize(
    "text", ["", "no section", "\\section{A}", "\\section*{A}\r\nx\r\\section{B}\n"]
)
def test_any_report_joins_back(text: str) -> None:
    assert "".join(p.text for p in sections(text)) == text


def test_sections_in_comments_and_verbatim_do_not_split() -> None:
    text = "\\section{A}\n% \\section{B}\n\\begin{verbatim}\n\\section{C}\n\\end{verbatim}\n"
    assert [p.title for p in sections(text) if p.kind == "section"] == ["A"]


def test_subsections_stay_with_their_section() -> None:
    assert len([p for p in sections("\\section{A}\\subsection{B}\\section{C}") if p.title]) == 2


def test_a_section_is_replaced_and_nothing_else() -> None:
    new = replace_section(REPORT, "  aim ", "\\section{Aim}\nShort.\n\n\n")
    assert new == REPORT.replace(
        "We measured the length of a rod three times, as \\cite{a} advise.", "Short."
    )
    with pytest.raises(ScorerError, match=r"no section 'Nowhere'\. It has: 'Aim', 'Data'"):
        replace_section(REPORT, "Nowhere", "x")


@pytest.mark.parametrize(
    ("reply", "tex"),
    [
        ("\\section{A}", "\\section{A}"),
        ("<think>hm</think>\\section{A}", "\\section{A}"),
        ("Here:\n```latex\n\\section{A}\n```\nDone.", "\\section{A}\n"),
        ("```\nx\n```\n```tex\n\\documentclass{a}\n```", "\\documentclass{a}\n"),
        ("```latex\n\\section{open", "```latex\n\\section{open"),
    ],
)
def test_the_tex_of_a_reply_is_taken_out_of_its_fence(reply: str, tex: str) -> None:
    assert tex_of(reply) == tex
    assert whole_report(Case("c"), Reply(reply)) == tex


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_gets_a_score_with_a_reason(text: str) -> None:
    assert "".join(p.text for p in sections(text)) == text
    score = ReportScore()(Case("c"), Reply(text))
    assert score.value is not None
    assert score.reason


_SCRAPS = [
    "\\section{",
    "}",
    "{",
    "\\begin{document}",
    "\\end{document}",
    "%",
    "\n",
    "x ",
    "\\cite{a}",
    "$",
    "\\bibliography{r}",
    "\\verb|",
    "\\appendix",
    "误差",
    "\\begin{verbatim}",
    "\\end{verbatim}",
]


@given(st.lists(st.sampled_from(_SCRAPS), max_size=25).map("".join))
def test_any_scrap_splits_joins_back_and_gets_a_score(text: str) -> None:
    assert "".join(p.text for p in sections(text)) == text
    score = ReportScore()(Case("c"), Reply(text))
    assert 0.0 <= (score.value or 0.0) <= 1.0
    assert score.reason


# Every entry of the tables


@pytest.mark.parametrize(
    "name", ["tabular", "tabular*", "tabularx", "longtable", "tabu", "tblr", "figure"]
)
def test_data_stand_in_any_kind_of_table(name: str) -> None:
    wide = "{5cm}" if name in ("tabular*", "tabularx") else ""
    tex = REPORT.replace("\\begin{tabular}", f"\\begin{{{name}}}{wide}")
    tex = tex.replace("\\end{tabular}", f"\\end{{{name}}}")
    assert failed(tex) == (("data_table",) if name == "figure" else ())


@pytest.mark.parametrize("ending", ["\\\\", "\\tabularnewline"])
def test_rows_and_numbers_of_a_table_are_counted(ending: str) -> None:
    rows = f"1 & 20.1 {ending}\n2 & 20.3 {ending}"
    tex = REPORT.replace("1 & 20.1 \\\\\n2 & 20.3 \\\\", rows)
    assert failed(tex) == ()
    assert failed(tex.replace(f"2 & 20.3 {ending}", "2 & 20.3")) == ("data_table",)
    assert failed(tex.replace(rows, f"a & 20.1 {ending} b & 20.3 {ending}")) == ()
    assert failed(tex.replace(rows, f"a & 20.1 {ending} b & c {ending}")) == ("data_table",)


@pytest.mark.parametrize(
    "name",
    ["displaymath", *(
        f"{kind}{star}"
        for kind in ("equation", "align", "gather", "multline", "eqnarray", "flalign")
        for star in ("", "*")
    ), "center"],
)  # fmt: skip
def test_an_equation_stands_in_any_kind_of_display(name: str) -> None:
    tex = REPORT.replace("{equation}", f"{{{name}}}")
    assert failed(tex) == (("equation",) if name == "center" else ())


@pytest.mark.parametrize("pair", [("\\[", "\\]"), ("$$", "$$")])
def test_display_brackets_hold_an_equation(pair: tuple[str, str]) -> None:
    tex = REPORT.replace("\\begin{equation}", pair[0]).replace("\\end{equation}", pair[1])
    assert failed(tex) == ()
    assert failed(tex.replace("m = ", "")) == ("equation",)
    assert failed(tex.replace(pair[0], "$", 1).replace(pair[1], "$", 1)) == ("equation",)


@pytest.mark.parametrize(
    "relation", ["a = b", "a &= b", "a < b", "a > b", "a \\approx b", "a \\sim b", "a \\le b",
                 "a \\ge b", "a \\propto b", "a \\equiv b", "\\bar{a} = b", "f(x) = b", "x[1]=b"]
)  # fmt: skip
def test_an_equation_relates_two_sides(relation: str) -> None:
    assert failed(REPORT.replace("m = \\frac{a+b}{2}", relation)) == ()


def test_what_is_left_over_is_quoted_in_short() -> None:
    (check,) = (
        c
        for c in report_score(REPORT.replace("little.", "little. TODO: " + "x" * 99)).checks
        if not c.passed
    )
    assert check.finding == "left over: 'TODO'"


@pytest.mark.parametrize("macro", ["todo{x}", "lipsum", "blindtext", "missingfigure{x}"])
def test_macros_that_fill_a_gap_are_left_over(macro: str) -> None:
    tex = REPORT.replace("little.", f"little. \\{macro}")
    (check,) = (c for c in report_score(tex).checks if not c.passed)
    assert check.name == "no_todo"
    assert check.finding == f"left over: \\{macro.partition('{')[0]}"
    assert check.start == tex.index(f"\\{macro}")


@pytest.mark.parametrize(
    "phrase",
    ["uncertainty", "uncertainties", "error analysis", "error budget", "error bars", "error bar",
     "error propagation", "error estimate", "error estimates", "systematic error",
     "statistical errors", "random error", "measurement error", "standard error",
     "standard deviations", "propagation of errors", "误差", "不确定度", "标准差", "标准偏差"],
)  # fmt: skip
def test_an_error_analysis_has_many_names(phrase: str) -> None:
    plain = REPORT.replace("\\section{Uncertainty}", "\\section{Outlook}")
    assert failed(plain.replace("standard deviation", phrase)) == ()
    assert failed(plain.replace("standard deviation is 0.1", f"{phrase} is small, ")) == (
        "error_analysis",
    )


@pytest.mark.parametrize(
    "denial", ["no", "without", "without any", "We omitted the", "We skipped a real", "没有", "未作", "未做", "无"]
)  # fmt: skip
def test_an_error_analysis_that_is_denied_is_none(denial: str) -> None:
    plain = REPORT.replace("\\section{Uncertainty}", "\\section{Outlook}")
    text = f"{denial} error analysis 0.1" if denial.isascii() else f"{denial}误差 0.1"
    assert failed(plain.replace("The standard deviation is 0.1", text)) == ("error_analysis",)
    assert failed(plain.replace("The standard deviation is 0.1", "an error analysis 0.1")) == ()


def test_a_quantity_belongs_to_the_error_analysis_when_it_is_near() -> None:
    plain = REPORT.replace("\\section{Uncertainty}", "\\section{Outlook}")
    said = "The standard deviation is 0.1\\,cm"
    far = "The standard deviation is discussed " + "elsewhere at length, " * 11
    assert failed(plain.replace(said, f"{far} 0.1")) == ()
    assert failed(plain.replace(said, f"{far} and then again 0.1")) == ("error_analysis",)
    assert failed(plain.replace(said, "we have x $\\pm$ s, the standard deviation")) == ()
    assert failed(plain.replace(said, "with no error bars, the standard deviation is 0.1")) == ()


@pytest.mark.parametrize(
    ("old", "new", "finding", "place"),
    [
        ("\\documentclass{article}\n", "", "no \\documentclass before \\begin{document}", "\\begin{document}"),
        ("\\begin{document}", "", "no \\begin{document}", "\\documentclass{article}"),
        ("\\end{tabular}", "\\end{tabular} }", "line 9: Unexpected mismatching closing brace: '}'", "}"),
        ("\\section{Aim}", "", "2 sections with a text; 3 are the least", "\\section{Data}"),
        ("We measured the length of a rod three times, as", "", "2 sections with a text; 3 are the least ('Aim' is empty)", "\\section{Aim}"),
        ("\\begin{thebibliography}{9}\\bibitem{a} A.\\end{thebibliography}", "", "no bibliography is printed", "\\cite{a}"),
        ("\\cite{a}", "\\cite{a,b,c}", "no entry for b, c", "\\cite{a,b,c}"),
        ("1 & 20.1 \\\\\n2 & 20.3 \\\\", "1", "no table holds data (two rows and two numbers are the least)", "\\begin{tabular}"),
    ],
)  # fmt: skip
def test_a_check_that_fails_points_at_its_place(
    old: str, new: str, finding: str, place: str
) -> None:
    tex = REPORT.replace(old, new)
    check = next(c for c in report_score(tex).checks if not c.passed)
    assert check.finding == finding
    assert check.start is not None
    assert check.end is not None
    assert tex[check.start : check.end].startswith(place)


def test_a_check_that_holds_says_what_it_found() -> None:
    found = {check.name: check for check in report_score(REPORT).checks}
    said = {name: check.finding for name, check in found.items()}
    assert said == {
        "skeleton": "class, document and all braces and environments are closed",
        "three_sections": "3 sections",
        "error_analysis": "'Uncertainty', with a quantity",
        "citations_closed": "1 keys cited",
        "data_table": "a table of 4 numbers",
        "equation": "a displayed equation",
        "no_boilerplate": "none found",
        "no_todo": "none found",
    }
    places = {n: REPORT[c.start : c.end] for n, c in found.items() if c.start is not None}
    assert places["three_sections"].startswith("\\section{Aim}")
    assert places["error_analysis"] == "Uncertainty"
    assert places["citations_closed"] == "\\cite{a}"
    assert places["data_table"].startswith("\\begin{tabular}")
    assert places["equation"].endswith("\\end{equation}")


def test_what_is_absent_is_said() -> None:
    bare = REPORT.replace("\\section{Uncertainty}", "\\section{Outlook}").replace("0.1", "small")
    check = report_score(bare).checks[2]
    assert check.finding == "'standard deviation' without a quantity"
    assert bare[check.start : check.end] == "standard deviation"
    said = {check.name: check.finding for check in report_score("\\section{A}").checks}
    assert said["error_analysis"].startswith("no uncertainty, standard deviation")
    assert said["citations_closed"] == "nothing is cited"
    assert said["data_table"] == "no table"
    assert said["equation"] == "no displayed equation that relates two sides"
    assert report_score("").checks[-1].finding == "there is no text"
    assert report_score("{" * 99).checks[0].finding.startswith("nested too deeply")


def test_a_printed_bibliography_closes_citations_of_an_unknown_bib() -> None:
    own = "\\begin{thebibliography}{9}\\bibitem{a} A.\\end{thebibliography}"
    for macro in ("\\bibliography{refs}", "\\printbibliography"):
        tex = REPORT.replace(own, macro)
        assert failed(tex) == ()
        assert failed(tex, "@misc{b, title={B}}") == ("citations_closed",)
        assert failed(tex, " \n") == ()


def test_a_section_with_hardly_a_word_is_empty() -> None:
    body = "We measured the length of a rod three times, as \\cite{a} advise."
    assert failed(REPORT.replace(body, "\\cite{a} " + "x" * 20)) == ()
    assert failed(REPORT.replace(body, "\\cite{a} " + "x" * 18)) == ("three_sections",)


@pytest.mark.parametrize(
    "back",
    ["\\bibliographystyle{plain}", "\\bibliography{refs}", "\\printbibliography", "\\appendix",
     "\\begin{thebibliography}{9}x\\end{thebibliography}", "\\end{document}"],
)  # fmt: skip
def test_the_back_begins_where_the_sections_end(back: str) -> None:
    end = "" if back == "\\end{document}" else "\\end{document}"
    tex = f"\\begin{{document}}\\section{{A}}\na\n{back}\n{end}"
    assert [(p.kind, p.text) for p in sections(tex)][1:] == [
        ("section", "\\section{A}\na\n"),
        ("back", f"{back}\n{end}"),
    ]


@pytest.mark.parametrize("name", ["part", "chapter", "section", "subsection", "paragraph"])
def test_a_report_is_split_at_sections_and_what_stands_above_them(name: str) -> None:
    tex = f"\\section{{A}} a \\{name}{{ B \n C }} b"
    titles = [p.title for p in sections(tex) if p.kind == "section"]
    assert titles == (["A", "B C"] if name in ("part", "chapter", "section") else ["A"])


def test_a_bibliography_before_the_last_section_is_no_back() -> None:
    tex = "\\section{A} a \\bibliography{r} \\section{B} b"
    assert [(p.kind, p.text) for p in sections(tex)][-1] == ("back", "")


def test_a_section_takes_over_the_space_after_the_old_one() -> None:
    tex = "\\section{A} a\n\n\\section{B} b"
    assert replace_section(tex, "a", "\\section{A} new") == "\\section{A} new\n\n\\section{B} b"
    assert replace_section("\\section{A}x", "A", "n") == "n\n"
    with pytest.raises(ScorerError, match="It has: none"):
        replace_section("no section", "A", "n")


def test_a_report_goes_without_its_title_only_with_a_clear_error() -> None:
    case = Case("c", material={"r.tex": REPORT})
    with pytest.raises(ScorerError, match="the input 'section'"):
        whole_report(case, Reply("x"), "r.tex")


def test_a_reply_in_a_report_gets_findings_without_a_place() -> None:
    case = Case("c", inputs={"section": "data"}, material={"report.tex": REPORT})
    score = ReportScore(into="report.tex")(
        case, Reply("\\section{Data}\nThe table and the equation are lost.")
    )
    assert [(f.start, f.end) for f in score.findings] == [(None, None)] * 2
    assert score.reason.startswith("6 of 8 checks hold; not: data_table (no table), equation (")
    assert ReportScore()(Case("c"), Reply(REPORT)).reason == "8 of 8 checks hold"


def test_a_reply_without_an_answer_scores_0_under_its_own_reason() -> None:
    score = ReportScore()(Case("c"), Reply(""))
    assert (score.value, score.reason) == (0.0, "no answer: the reply is empty")


def test_boilerplate_is_quoted() -> None:
    tex = REPORT.replace("little.", "little. I hope this helps!")
    (check,) = (c for c in report_score(tex).checks if not c.passed)
    assert check.finding.startswith("assistant boilerplate: 'I hope this helps")
    assert tex[check.start : check.end].startswith("I hope this helps")

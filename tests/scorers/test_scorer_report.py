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

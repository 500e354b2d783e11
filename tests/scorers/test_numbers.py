# ruff: noqa: E501 - a row of a table stands on one line
"""Numbers in any notation, and where they come from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tex_cases import HOSTILE, failure_case, failure_file

from evalkit.errors import ScorerError
from evalkit.records import Case, Document, Reply
from evalkit.scorers.number_reading import numbers_in
from evalkit.scorers.numbers import SourcedNumbers, trace_sources

E01 = failure_case("E01")


@pytest.mark.parametrize(
    ("piece", "expected"),
    list(zip(E01["input"]["report_pieces"], E01["expected"]["value"], strict=True)),
    ids=E01["input"]["report_pieces"],
)
def test_e01_every_notation_of_a_quantity_is_traced(piece: str, expected: list[dict]) -> None:
    trace = trace_sources(piece, E01["input"]["material"])
    found = [{"value": n.value, "sourced": n.source is not None} for n in trace.numbers]
    assert found == [{key: one[key] for key in ("value", "sourced")} for one in expected]
    assert [n.sign_differs for n in trace.numbers] == ["or" in one for one in expected]


def test_e02_only_data_are_numbers() -> None:
    case = failure_case("E02")
    text = failure_file(case["input"]["report_file"])
    trace = trace_sources(text, case["input"]["material"])
    expected = case["expected"]["value"]
    assert [n.value for n in trace.sourced] == expected["sourced"]
    assert [n.value for n in trace.unsourced] == expected["unsourced"]
    for traced in trace.numbers:
        assert text[traced.number.start : traced.number.end] == traced.number.text


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,234.5 g", [1234.5]),
        ("1'234 and 12,345,678", [1234, 12345678]),
        ("1\u202f234.5", [1234.5]),
        ("1.2e-3, 1.2E+3, 3e5", [0.0012, 1200, 3e5]),
        ("1.2×10^-3 and 1.2 · 10⁻³ and 2 x 10^4", [0.0012, 0.0012, 2e4]),
        ("$10^{-3}$ and 10⁻⁵", [1e-3, 1e-5]),
        ("\\num{1.2e-3} \\num{-4}", [0.0012, -4]),
        ("\\SI{9500}{counts} \\qty{12}{\\percent} \\SIrange{1}{2}{\\metre}", [9500, 12, 1, 2]),
        ("\\numlist{1;2;3}", [1, 2, 3]),
        ("12 %, 12%, 12％", [12, 12, 12]),
        ("12\\,\\%, 12\\%", [12, 12]),
        ("-3.5, −3.5 and (–3.5)", [-3.5, -3.5, -3.5]),
        ("3--5, 3–5, 3-5, 3 to 5", [3, 5, 3, 5, 3, 5, 3, 5]),
        ("from -5 to -3", [-5, -3]),
        ("1.23(4) and 1.23 ± 0.04", [1.23, 0.04, 1.23, 0.04]),
        ("41.7mV, .5 K, 7th, 3D, Cu2O, x1, run-3", [41.7, 0.5]),
        ("测得41.7 mV，误差为０．５％", [41.7, 0.5]),
        ("| 1.5 | -2 |", [1.5, -2]),
        ("$n=5$ and $T = 5\\,\\mathrm{s}$", [5, 5]),
        ("$T^2 = \\frac{4\\pi^2}{g} L$, $E = \\frac{1}{2} m v^2$, $x_{12}$", []),
        ("$R^2 = 0.98$", [0.98]),
        ("$5\\times10^{-2}$", [0.05]),
    ],
)
def test_a_quantity_is_read_in_any_notation(text: str, values: list[float]) -> None:
    assert [n.value for n in numbers_in(text)] == pytest.approx(values, rel=1e-12)


@pytest.mark.parametrize(
    "text",
    [
        "Section 2, Sections 3 and 4, Figure 3, Fig. 5(a), Tables 1-3, Eq. (4), Appendix B.2, p. 7",
        "Section~\\ref{sec:2} and Eq.~(4)",
        "第3节，图2，表1，式（4），附录5",
        "on 2026-03-12, 12 March 2026, March 12, 2026, 12.03.2026, May 2026 and at 14:30",
        "2026年3月12日，5月3日",
        "Smith (2019) and (Miller et al., 2020; Jones, 2021) agree since 2019.",
        "1. first\n2) second\n(3) third\n# 2.1 Setup\n2.1 Methods",
        "as found before [12], [3, 4] and [5-7]",
        "https://doi.org/10.5281/zenodo.1234567 and doi:10.1000/182, mail a1@b2.org",
        "run_07.pdf, data-12.csv, version 1.2.3, v2.0.1",
        "`gain = 55.5`\n```\ngain = 55.5\n```\n<!-- 99.9 -->",
        "\\begin{document}\\vspace{1.5em}\n\\begin{lstlisting}\nx = 3.5\n\\end{lstlisting}"
        "\\end{document}",
        "\\begin{document}\\begin{thebibliography}{9}\\bibitem{a} Vol. 7, 12.\\end{thebibliography}"
        "\\end{document}",
        "\\cite[p.~3]{a2019}",
    ],
)
def test_digits_that_are_no_data_are_left_out(text: str) -> None:
    assert numbers_in(text) == ()


def test_a_plain_space_groups_digits_only_where_that_helps() -> None:
    assert trace_sources("1 234", "1234").unsourced == ()
    assert [n.value for n in trace_sources("1 234", "1 and then 234").sourced] == [1, 234]
    assert [n.value for n in trace_sources("1 234", "nothing").unsourced] == [1234]


@pytest.mark.parametrize(
    ("text", "material", "sourced"),
    [
        ("1.23", "1.2345", True),
        ("1.24", "1.2345", False),
        ("42", "41.7", True),
        ("7", "7.43", False),
        ("12 %", "0.1234", True),
        ("0.12", "12 %", True),
        ("12.5 %", "12", False),
        ("1.2e3", "1234", True),
        ("1000", "1002", False),
        ("0.001", "0.0012", True),
        ("-2", "2", False),
        ("234", "x,y\n1,234\n", True),
        ("1234", "x,y\n1,234\n", True),
    ],
)
def test_a_number_is_sourced_when_the_material_rounds_to_it(
    text: str, material: str, sourced: bool
) -> None:
    assert [n.source is not None for n in trace_sources(text, material).numbers] == [sourced]


def test_a_bibliography_is_no_source_of_data() -> None:
    files = {
        "refs.bib": "@misc{a, year = {1987}, pages = {55--61}}",
        "notes.md": "The mass is 3.2 g.",
    }
    trace = trace_sources("The masses are 3.2 g and 55 g \\cite{a}.", files)
    assert [n.source for n in trace.numbers] == ["notes.md", None]
    assert trace.citations.undefined == ()


def test_the_scorer_names_what_it_did_not_find_and_where() -> None:
    text = "The peak was 41.7 mV, then 88.8 mV."
    score = SourcedNumbers()(Case("c", inputs={"question": "41.7 mV?"}), Reply(text))
    assert score.value == 0.5
    assert score.details["unsourced"] == [88.8]
    (finding,) = score.findings
    assert text[finding.start : finding.end] == "88.8"


def test_offsets_count_in_the_reply_also_after_a_thinking_block() -> None:
    text = "<think>1.1 or 2.2?</think>\nIt is 88.8."
    (finding,) = SourcedNumbers()(Case("c"), Reply(text)).findings
    assert text[finding.start : finding.end] == "88.8"


def test_unsourced_numbers_are_tolerated_up_to_the_bound_and_not_beyond() -> None:
    case = Case("c", context=(Document("1", "41.7"),))
    assert SourcedNumbers(max_unsourced=1)(case, Reply("41.7 and 88.8")).value == 1.0
    assert SourcedNumbers(max_unsourced=1)(case, Reply("88.8 and 99.9 and 41.7")).value < 0.34
    assert SourcedNumbers(sources=("material",))(case, Reply("41.7")).value == 0.0


def test_an_unknown_source_is_a_clear_error() -> None:
    with pytest.raises(ScorerError, match="sources has"):
        SourcedNumbers(sources=("web",))


def test_an_empty_reply_scores_0_under_its_own_reason() -> None:
    score = SourcedNumbers()(Case("c"), Reply(""))
    assert (score.value, score.reason) == (0.0, "no answer: the reply is empty")


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_gets_a_score_with_a_reason(text: str) -> None:
    score = SourcedNumbers()(Case("c", material={"d.csv": text[:1000]}), Reply(text))
    assert score.value is not None
    assert score.reason


@given(st.text(max_size=120), st.text(max_size=60))
def test_any_text_gets_a_score_with_a_reason(text: str, material: str) -> None:
    score = SourcedNumbers()(Case("c", material={"d": material}), Reply(text))
    assert 0.0 <= (score.value or 0.0) <= 1.0
    assert score.reason


@given(st.text(alphabet="0123456789.,-−–eE×^{}\\%$ ()±·\u2009", max_size=60))
def test_a_text_is_its_own_source(text: str) -> None:
    assert [n.number.text for n in trace_sources(text, text).unsourced if n.number.place] == []


@given(
    st.decimals(min_value="0.001", max_value="99999", places=3),
    st.sampled_from(
        ["{}", "{} kg", "about {}.", "$T = {}$", "\\num{{{}}}", "x = {}\\,\\%", "({})"]
    ),
)
def test_a_planted_number_is_found(number: object, frame: str) -> None:
    trace = trace_sources(frame.format(number), "nothing here")
    assert [n.value for n in trace.unsourced] == [float(str(number))]


def read_numbers(text: str) -> list[float]:
    return [n.value for n in numbers_in(text)]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("x1.5", []), ("Cu2.5O", []), ("x-1.5", []), ("x–1.5", []), ("x_1.5", []), ("x^1.5", []),
        ("a.5", []), ("a .5", [0.5]), ("1..5", [1]), ("温1.5", [1.5]), ("ü1.5", [1.5]), ("+1.5", [1.5]), ("a +1.5", [1.5]),
        ("−1.5", [-1.5]), ("温-1.5", [-1.5]), ("=-1.5", [-1.5]), (")-1.5", [1.5]), ("2.5-1.5", [2.5, 1.5]),
        ("1.5e3x", [1.5]), ("1.5 x 10^3", [1500]), ("1.5*10^3", [1500]), ("1.5 · 10⁻³", [0.0015]),
        ("10^(-3)", [0.001]), ("10^2", [100]), ("-10^2", [-100]), ("10⁺²", [100]), ("1.5(25)", [1.5, 2.5]),
        ("15(2)", [15]), ("1.5 % and 2.5\u2009%", [1.5, 2.5]), ("１２．５％", [12.5]), ("−12﹣3", [-12, 3]),
        ("1\u00a0234, 1\u20092345", [1234, 1, 2345]), ("12,34", [12, 34]), ("1,234,56", [1234, 56]),
        ("1’234’567", [1234567]), ("1,234 567", [1234, 567]), ("0.5.", [0.5]), (".5", [0.5]), ("1e400", []),
    ],
)  # fmt: skip
def test_digits_and_their_neighbours(text: str, values: list[float]) -> None:
    found = [v for v in read_numbers(text) if abs(v) < 1e300]
    assert found == pytest.approx(values)


@pytest.mark.parametrize("before", [*"([{=<>≤≥≈~×±,;:：（，、|&/*\"“'", "$·", " ", "\n", "温"])
def test_a_sign_after_these_is_a_sign(before: str) -> None:
    assert read_numbers(f"a{before}-3.5")[-1] == -3.5


@pytest.mark.parametrize("before", [")", "5", "%", "]", "."])
def test_a_stroke_after_these_is_none(before: str) -> None:
    assert read_numbers(f"{before}-33.5")[-1] == 33.5


@pytest.mark.parametrize(
    ("formula", "values"),
    [
        ("$\\nu = 5$", [5]), ("$\\nu = 5,$", [5]), ("$n \\approx 5$", [5]), ("$\\nu < 5$", [5]), ("$n \\ge 5$", [5]),
        ("$5$\\,", [5]), ("$5\\,\\mathrm{m}$", [5]), ("$(5)\\nu$", []), ("$a = 5^\\circ$", []), ("$2 \\pm 3$", [2, 3]),
        ("$\\nu = 5;$", [5]), ("$\\nu = 5.$", [5]), ("$3$--$5$\\,", [3, 5]), ("$a = 2 \\nu$", []), ("$2 b = \\nu$", []),
        ("$a = 123 \\nu$", [123]), ("$a = 2.5 \\nu$", [2.5]), ("$a = 12 \\nu$", []), ("$5\\,\\% b$", [5]),
        ("$a = 2 \\times 10^{3} b$", [2000]), ("$\\nu = 2(b+1)$", []), ("$\\nu = 5)$", [5]), ("$\\nu =  5 $", [5]),
        ("$4\\pi^2$", []), ("$a_2 = 5$", [5]), ("$\\nu = 5°$", [5]), ("$a \\sim 5$", [5]),
        ("$\\nu = -5$", [-5]), ("$\\nu = 1.5(2) b$", [1.5, 0.2]), ("$\\nu = 2e3 b$", [2000]),
        ("$\\nu = 5\n$", [5]), ("$\\nu > 5$", [5]), ("$\\nu \\le 5$", [5]), ("$\\nu=5\\,b$", [5]), ("$2 · 10⁻³ \\nu$", [0.002]),
    ],
)  # fmt: skip
def test_a_small_number_in_a_formula_may_be_a_constant(formula: str, values: list[float]) -> None:
    assert read_numbers(formula) == values


def test_the_material_is_read_with_every_number_in_it() -> None:
    text = "1. Section 2, Fig. (3), $4\\pi$, 2020-01-05\n"
    assert numbers_in(text) == ()
    assert {1, 2, 3, 4, 2020} <= {abs(n.value) for n in numbers_in(text, everything=True)}


@pytest.mark.parametrize(
    ("text", "place"),
    [("41.7", 0.1), ("417", 1), ("1.20e-3", 1e-5), ("1,234", 1), ("10^3", 0), ("1.23(4)", 0.01)],
)
def test_a_number_knows_its_last_digit(text: str, place: float) -> None:
    assert numbers_in(text)[0].place == pytest.approx(place)
    assert numbers_in(text)[-1].place == pytest.approx(place)


def test_a_percentage_is_marked_and_placed() -> None:
    text = "so 12 % of it"
    (number,) = numbers_in(text)
    assert (number.percent, number.text, text[number.start : number.end]) == (True, "12 %", "12 %")
    assert not numbers_in("12 of it")[0].percent
    assert [n.percent for n in numbers_in("1.23(4) and 1,234")] == [False] * 3
    assert [n.percent for n in numbers_in("1,234 %")[0].parts] == [True, True]


def test_grouped_digits_keep_their_other_reading() -> None:
    (number,) = numbers_in("-1,234.5")
    assert [(p.value, p.place, p.text) for p in number.parts] == [
        (-1, 1, "1"),
        (234.5, 0.1, "234.5"),
    ]
    assert numbers_in("1'234")[0].parts == ()
    assert numbers_in("1,234e2")[0].parts == ()


SUFFIXES = "csv tsv dat txt md pdf png jpg jpeg svg tex bib py json xls xlsx"


@pytest.mark.parametrize("name", SUFFIXES.split())
def test_a_file_name_is_no_number(name: str) -> None:
    assert read_numbers(f"in 1.{name} of") == []


@pytest.mark.parametrize(
    "label",
    ["section", "sections", "sec.", "secs.", "figure", "figures", "fig.", "figs.", "table", "tables",
     "tab.", "tabs.", "equation", "equations", "eq.", "eqs.", "eqn.", "eqns.", "chapter", "chapters",
     "appendix", "appendices", "ref.", "refs.", "reference", "references", "page", "pages", "p.",
     "pp.", "no.", "nos.", "vol.", "§", "第", "图", "表", "式", "节", "章", "公式", "方程", "附录"],
)  # fmt: skip
def test_the_number_of_a_label_is_no_quantity(label: str) -> None:
    assert read_numbers(f"in {label} 12 of") == []
    assert read_numbers(f"in {label.capitalize()} 12.3, of") == []
    assert read_numbers("in thing 12 of") == [12]


@pytest.mark.parametrize(
    "text",
    [
        "http://a.b/12", "https://a.b/12", "ftp://a.b/12", "www.a.b/12", "doi: 12/a", "10.5281/zen12",
        "a.b12@c12.org", "2020-01-12", "2020-01-12T10:30:12Z", "2020/01/12", "12.01.2020", "12/01/1999", "14:30", "14:30:12",
        "12 Jan 2020", "12th of January", "Jan 12, 2020", "January 12th", "Feb. 2020", "Sept 12", "12 Dec",
        "2020 年 1 月 12 日", "1月12号", "(2020)", "(Lake et al., 1999a; Sea, 2001)", "in 2020, we", "Since 1999.", "year 2020",
        "# 2.1 Head", "1) x", "(12) x", "2.1 Methods", "v1.2.3", "1.2.3", "21st", "22nd", "3rd", "4th", "3D",
        "Figs. 1, 2 and 3", "Figure 1–3", "Tables 1 & 2", "[1]", "[1, 2]", "[1–12]",
    ],
)  # fmt: skip
def test_digits_that_name_or_date_are_no_quantities(text: str) -> None:
    assert numbers_in(text) == ()


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("in 2020 g of it", [2020]), ("(2.5 g)", [2.5]), ("Figure 1, 12 %", [12]), ("12 Mayors", [12]), ("May 2.5", [2.5]),
        ("[1234]", [1234]), ("12:5", [12, 5]), ("1.5.", [1.5]), ("2D", []), ("2Dx", [2]), ("sections 12a", []),
        ("<!-- 1 --> 2.5 <!-- 3", [2.5, 3]), ("`1.5` 2.5", [2.5]), ("\\cite{a} [3]", [3]), ("5 \\% of 3.5", [5, 3.5]),
    ],
)  # fmt: skip
def test_what_only_looks_like_a_name_or_a_date_is_read(text: str, values: list[float]) -> None:
    assert read_numbers(text) == values


def test_each_part_of_a_case_is_a_source_of_its_own() -> None:
    case = Case(
        "c",
        inputs={"a": "11.5", "b": {"deep": [22.5]}},
        context=(Document("d1", "33.5"),),
        material={"m.csv": "44.5"},
    )
    reply = Reply("11.5, 22.5, 33.5, 44.5, 55.5")
    score = SourcedNumbers()(case, reply)
    assert (score.value, score.details) == (0.8, {"unsourced": [55.5], "numbers": 5})
    assert score.reason == "4 of 5 numbers have a source; unsourced: 55.5"
    for sources, unsourced in (
        (("inputs",), [33.5, 44.5, 55.5]),
        (("context",), [11.5, 22.5, 44.5, 55.5]),
        (("material",), [11.5, 22.5, 33.5, 55.5]),
    ):
        assert SourcedNumbers(sources=sources)(case, reply).details["unsourced"] == unsourced
    files = SourcedNumbers()._files(case)
    assert list(files) == ["m.csv", "context:d1", "inputs:a", "inputs:b"]
    assert files["inputs:b"] == '{"deep": [22.5]}'


def test_the_source_is_the_file_that_holds_the_number() -> None:
    trace = trace_sources("11.5 and 22.5 and -33.5", {"a": "22.5", "b": "11.5, 33.5"})
    assert [n.source for n in trace.numbers] == ["b", "a", None]
    assert [n.sign_differs for n in trace.numbers] == [False, False, True]
    assert [n.value for n in trace.numbers] == [11.5, 22.5, -33.5]


def test_the_score_says_what_it_could_not_read() -> None:
    score = SourcedNumbers()(Case("c"), Reply("\\section{A}" + "{" * 99))
    assert score.value == 0.0
    assert score.reason.startswith("the numbers could not be read: nested too deeply")
    assert SourcedNumbers()(Case("c"), Reply("words")).reason == "the reply states no number"
    many = SourcedNumbers()(Case("c"), Reply("10.5 11.5 12.5 13.5 14.5 15.5"))
    assert many.reason.endswith("unsourced: 10.5, 11.5, 12.5, 13.5, 14.5")
    assert (many.value, len(many.findings)) == (0.0, 6)
    (finding,) = SourcedNumbers()(Case("c", inputs={"a": "3.5"}), Reply("-3.5")).findings
    assert finding.message == "-3.5 is not in the material (the opposite sign is)"


@pytest.mark.parametrize(
    ("text", "material", "sourced"),
    [
        ("41.75", "41.7", False), ("41.7", "41.75", True), ("41.7", "41.76", False), ("10", "10.4", True),
        ("9", "9.4", False), ("9.0", "9.04", True), ("0", "0.0", True), ("12.3 %", "0.1232", True),
        ("12 %", "12.4", True), ("12.0", "1200 %", True), ("1e400", "1e400", False),
    ],
)  # fmt: skip
def test_rounding_goes_to_half_the_last_digit(text: str, material: str, sourced: bool) -> None:
    assert [n.source is not None for n in trace_sources(text, material).numbers] == [sourced]


def test_a_comment_ends_where_it_ends() -> None:
    assert read_numbers("<!-- 1.5 -- 2.5 --> 3.5") == [3.5]
    assert read_numbers("<!- 1.5 --> 2.5") == [1.5, 2.5]
    assert read_numbers("<!-- 1.5 --> 2.5 <!-- 3.5 --> 4.5") == [2.5, 4.5]

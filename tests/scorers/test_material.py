"""Gaps of the material, each named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tex_cases import HOSTILE

from evalkit.errors import ScorerError
from evalkit.records import Case, Reply
from evalkit.scorers.material import NEEDS, MaterialComplete, material_gaps

FULL = {
    "run.csv": "n,length_m,time_s,u_time_s\n1,0.3,22.0,0.2\n",
    "notes.md": "The data are in run.csv. The uncertainty of the length is 1 mm.",
    "refs.bib": "@misc{a, title={A}}",
    "fit.pdf": "%PDF-1.4",
}


def gaps(material: dict[str, str], *needs: str) -> list[str]:
    return [gap.need for gap in material_gaps(material, needs or tuple(NEEDS))]


def test_nothing_is_missing_of_a_full_folder() -> None:
    assert material_gaps(FULL, tuple(NEEDS)) == ()


@pytest.mark.parametrize(
    ("change", "need", "named"),
    [
        ({"run.csv": "n,length_m\n"}, "data", "no data file"),
        ({"refs.bib": "@comment{nothing}"}, "bib", "no .bib"),
        ({"fit.pdf": ""}, "figure", "no figure"),
        ({"run.csv": "n,length_m,time\n1,0.3,22.0\n"}, "units", "'time' of run.csv"),
        ({"notes.md": "See run.csv and run2.csv. Uncertainty 1 mm."}, "file", "run2.csv"),
    ],
)
def test_a_planted_gap_is_found_and_named(change: dict[str, str], need: str, named: str) -> None:
    found = material_gaps(FULL | change, tuple(NEEDS))
    assert [gap.need for gap in found] == [need]
    assert named in found[0].sentence


def test_an_uncertainty_stands_in_a_column_or_in_the_notes() -> None:
    bare = {"run.csv": "length_m,time_s\n0.3,22.0\n"}
    assert gaps(bare, "uncertainty") == ["uncertainty"]
    assert gaps(bare | {"n.md": "We discuss uncertainty later."}, "uncertainty") == ["uncertainty"]
    assert gaps(bare | {"n.md": "T is good to ± 0.2 s."}, "uncertainty") == []
    assert gaps(bare | {"n.md": "不确定度为0.2 s。"}, "uncertainty") == []
    assert gaps({"run.csv": "t_s,sigma_t_s\n22.0,0.2\n"}, "uncertainty") == []


@pytest.mark.parametrize(
    "header", ["t_s", "t [s]", "t (s)", "t/s", "T_K", "v_m_s2", "p in %", "温度（K）"]
)
def test_a_unit_is_seen_in_a_column(header: str) -> None:
    assert gaps({"d.csv": f"run,{header}\n1,2.5\n"}, "units") == []


@pytest.mark.parametrize("header", ["time", "temperature", "voltage", "长度"])
def test_a_column_without_a_unit_is_a_gap(header: str) -> None:
    assert gaps({"d.csv": f"run,{header}\n1,2.5\n"}, "units") == ["units"]


@pytest.mark.parametrize("name", ["run.csv", "refs.bib", "fit.pdf"])
def test_deleting_a_file_adds_a_gap(name: str) -> None:
    rest = {k: v for k, v in FULL.items() if k != name}
    assert len(material_gaps(rest, tuple(NEEDS))) > len(material_gaps(FULL, tuple(NEEDS)))


def test_an_unknown_need_is_a_clear_error() -> None:
    with pytest.raises(ScorerError, match="unknown need 'dat'"):
        material_gaps(FULL, ["dat"])


def test_the_scorer_gives_the_share_of_needs_that_are_met() -> None:
    case = Case("c", material={k: v for k, v in FULL.items() if k != "refs.bib"})
    score = MaterialComplete(needs=("data", "bib"))(case, Reply("x"))
    assert (score.value, score.details["gaps"]) == (0.5, ["bib"])
    met = MaterialComplete()(Case("c", material=FULL, expected={"needs": ["data"]}), Reply(""))
    assert met.value == 1.0


@given(st.dictionaries(st.sampled_from([*FULL, "x.tsv", "b.md"]), st.text(max_size=60)))
def test_any_material_gets_a_score_with_a_reason(material: dict[str, str]) -> None:
    score = MaterialComplete(needs=tuple(NEEDS))(Case("c", material=material), Reply("x"))
    assert 0.0 <= (score.value or 0.0) <= 1.0
    assert score.reason


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_files_get_a_score_with_a_reason(text: str) -> None:
    files = {"d.csv": text[:50_000], "n.md": text[:50_000], "r.bib": text[:2000]}
    assert MaterialComplete(needs=tuple(NEEDS))(Case("c", material=files), Reply("x")).reason


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.dat", "A.CSV"])
def test_each_kind_of_data_file_is_data(name: str) -> None:
    assert gaps({name: "t_s\n1.5\n"}, "data") == []
    assert gaps({name: "t_s\n"}, "data") == ["data"]
    assert gaps({"a.xls": "1.5"}, "data") == ["data"]


@pytest.mark.parametrize("name", ["a.pdf", "a.png", "a.jpg", "a.jpeg", "a.svg", "a.eps", "A.PNG"])
def test_each_kind_of_figure_is_a_figure(name: str) -> None:
    assert gaps({name: "x"}, "figure") == []
    assert gaps({"a.bmp": "x"}, "figure") == ["figure"]


@pytest.mark.parametrize("note", ["a.md", "a.txt", "a.tex", "a.rst", "A.MD"])
def test_each_kind_of_note_may_name_files_and_uncertainties(note: str) -> None:
    assert gaps({note: "see b.csv"}, "figure") == ["figure", "file"]
    assert gaps({note: "The error is 0.1."}, "uncertainty") == []
    assert gaps({"a.log": "The error is 0.1, see b.csv."}, "uncertainty") == ["uncertainty"]


NAMED = "csv tsv dat pdf png jpg jpeg svg eps bib"


@pytest.mark.parametrize("suffix", NAMED.split())
def test_a_file_that_a_note_names_must_be_there(suffix: str) -> None:
    (gap,) = material_gaps({"n.md": f"in run-2.{suffix}."}, [])
    assert (gap.need, gap.sentence) == (
        "file",
        f"run-2.{suffix} is named in n.md but is not there",
    )
    assert material_gaps({"n.md": f"at https://a.b/run.{suffix}, see x.{suffix}x"}, []) == ()


@pytest.mark.parametrize(
    "said",
    ["±", "\\pm", "uncertainty", "Uncertainties", "deviation", "standard error", "误差", "不确定度",
     "标准差"],
)  # fmt: skip
def test_an_uncertainty_has_many_names(said: str) -> None:
    assert gaps({"n.md": f"the {said} 0.2 s"}, "uncertainty") == []
    assert gaps({"n.md": f"0.2 {said} {'x' * 120} 1"}, "uncertainty") == ["uncertainty"]
    assert gaps({"n.md": f"0.2 {said} {'x' * 110} 1"}, "uncertainty") == []


@pytest.mark.parametrize(
    "column",
    ["u(t)", "u_t", "dt_du", "sd", "t_se", "std", "sigma", "err", "t error", "unc_t", "uncertainty",
     "delta_t", "±", "σ", "误差", "不确定度"],
)  # fmt: skip
def test_a_column_of_uncertainties_is_known_by_its_name(column: str) -> None:
    assert gaps({"d.csv": f"t,{column}\n22.0,0.2\n"}, "uncertainty") == []


@pytest.mark.parametrize("column", ["bus", "used", "terror", "run", "standard", "t"])
def test_other_columns_hold_no_uncertainties(column: str) -> None:
    assert gaps({"d.csv": f"t,{column}\n22.0,0.2\n"}, "uncertainty") == ["uncertainty"]


UNITS = (
    "m s g A K V W N J Hz Pa C T L mol rad deg ohm percent pct ms kg mm cm nm min h eV bar lx "
    "count counts m_s2 per_s m2 mV µs kHz uA cm2"
)


@pytest.mark.parametrize("unit", UNITS.split())
def test_a_unit_after_a_line_is_a_unit(unit: str) -> None:
    assert gaps({"d.csv": f"x_{unit},y {unit},z/{unit}\n1,2,3\n"}, "units") == []
    assert gaps({"d.csv": f"x{unit}q\n1.5\n"}, "units") == ["units"]


@pytest.mark.parametrize(
    "column",
    ["run", "n", "no", "nr", "id", "index", "trial", "sample", "label", "name", "group", "series",
     "repeat", "remark", "note", "count", "swing", "swings", "序号", "编号", "次数", "备注", "样品",
     "N", "x°", "x %", "x (m)", "x [m]", "x（m）"],
)  # fmt: skip
def test_a_label_needs_no_unit(column: str) -> None:
    assert gaps({"d.csv": f"{column}\n1.5\n"}, "units") == []


def test_a_file_of_bare_numbers_has_no_columns_to_name() -> None:
    assert gaps({"d.dat": "1.5\t2\n3\t4\n"}, "units") == []
    assert gaps({"d.dat": "\n# 'time'; \"len\"\n1;2\n"}, "units") == ["units", "units"]
    assert gaps({"d.csv": "-1.5e-3,x\n"}, "units") == []
    sentences = [g.sentence for g in material_gaps({"d.dat": "# 'time'\n1\n"}, ["units"])]
    assert sentences == ["the column 'time' of d.dat has no unit"]


def test_the_scorer_names_every_gap_in_order() -> None:
    score = MaterialComplete()(Case("c", material={"n.md": "see b.csv"}), Reply(""))
    assert score.value == 1 - 4 / 5
    assert score.details["gaps"] == ["data", "bib", "uncertainty", "file"]
    assert [f.message.partition(":")[0] for f in score.findings] == score.details["gaps"]
    assert score.reason.startswith("no data file (.csv, .tsv, .dat) with a number in it; no .bib")
    full = MaterialComplete(needs=("data", "bib"))(Case("c", material=FULL), Reply(""))
    assert full.reason == "nothing is missing of: data, bib"
    assert MaterialComplete(needs=())(Case("c"), Reply("")).reason.endswith("of: no needs")


def test_each_gap_is_one_sentence() -> None:
    said = {gap.need: gap.sentence for gap in material_gaps({"d.csv": "time\n1.5\n"}, tuple(NEEDS))}
    assert said == {
        "bib": "no .bib file with an entry in it",
        "figure": "no figure (.pdf, .png, .jpg, .jpeg, .svg, .eps)",
        "uncertainty": "no uncertainty of the data, neither in a column nor in the notes",
        "units": "the column 'time' of d.csv has no unit",
    }
    (gap,) = material_gaps({}, ["data"])
    assert gap.sentence == "no data file (.csv, .tsv, .dat) with a number in it"


def test_a_byte_order_mark_and_a_comment_sign_are_no_part_of_a_column() -> None:
    for header in ("\ufefftime", "# time", "\ttime", "\ufeff# time "):
        (gap,) = material_gaps({"d.csv": f"{header}\n1\n"}, ["units"])
        assert gap.sentence == "the column 'time' of d.csv has no unit"

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

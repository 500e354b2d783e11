"""Cases are loaded whole or not at all, and every fault is named."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.cases.load import load_cases, parse_cases
from evalkit.errors import CaseError
from evalkit.records import Case, Document

FAILURES = Path(__file__).resolve().parents[1] / "failure_cases"
GOOD: dict[str, Any] = {"id": "a", "stratum": "s", "inputs": {"q": "?"}}


def load(tmp_path: Path, *rows: dict[str, Any], strata: tuple[str, ...] | None = None) -> Any:
    path = tmp_path / "cases.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return load_cases(path, strata=strata)


def faults(tmp_path: Path, *rows: dict[str, Any], strata: tuple[str, ...] | None = None) -> str:
    with pytest.raises(CaseError) as caught:
        load(tmp_path, *rows, strata=strata)
    return str(caught.value).replace(str(tmp_path), "")


def test_every_field_arrives(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("\ufeffseven", encoding="utf-8")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "fig.png").write_bytes(b"\x89PNG\0\xff")
    row = GOOD | {
        "context": ["one", {"id": "p", "text": "two"}],
        "material": ["notes.txt", "sub/fig.png"],
        "expected": {"sources": ["p"]},
        "tags": ["t"],
        "path": "agent",
        "cluster": "k",
        "why": "because",
    }
    (case,) = load(tmp_path, row)
    assert case == Case(
        id="a",
        stratum="s",
        inputs={"q": "?"},
        context=(Document("1", "one"), Document("p", "two")),
        material={"notes.txt": "seven", "fig.png": ""},
        expected={"sources": ["p"]},
        tags=("t",),
        path="agent",
        cluster="k",
        why="because",
    )


def test_material_may_stand_in_the_case(tmp_path: Path) -> None:
    (case,) = load(tmp_path, GOOD | {"inputs": {}, "material": {"a.csv": "1,2"}})
    assert case.material == {"a.csv": "1,2"}


def test_a_case_without_a_stratum_is_in_all(tmp_path: Path) -> None:
    (case,) = load(tmp_path, {"id": "a", "inputs": {"q": 1}})
    assert (case.stratum, case.unit) == ("all", "a")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"id": 7}, "cases.jsonl:1: 'id' must be a text, not 7"),
        ({"id": ""}, "cases.jsonl:1: id '' must be a printable text"),
        ({"id": " a"}, "id ' a' must be a printable text without spaces at its ends"),
        ({"id": "a\nb"}, "must be a printable text"),
        ({"inputs": {}}, "case 'a': 'inputs' is empty"),
        ({"inputs": "q"}, "case 'a': 'inputs' must be an object, not 'q'"),
        ({"stratum": " "}, "'stratum' is empty"),
        ({"stratum": None}, "'stratum' must be a text, not None"),
        ({"expectd": {}}, "unknown key 'expectd'; did you mean 'expected'?"),
        ({"expected": ["a"]}, "'expected' must be an object, not ['a']"),
        ({"tags": "t"}, "'tags' must be a list, not 't'"),
        ({"tags": ["t", 2]}, "'tags[1]' must be a text, not 2"),
        ({"context": [3]}, "'context[0]' must be a text or an object"),
        ({"context": [{"id": "p"}]}, "'context[0].text' is missing"),
        ({"context": [{"id": "p", "text": ""}] * 2}, "two pages of 'context' share an id"),
        ({"cluster": ""}, "'cluster' and 'path' must not be empty"),
        ({"material": ["../secret"]}, "material '../secret' lies outside the suite's folder"),
        ({"material": ["/etc/hostname"]}, "lies outside the suite's folder"),
        ({"material": ["none.txt"]}, "material 'none.txt' is not a file"),
    ],
)
def test_a_fault_names_file_line_case_and_field(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    text = faults(tmp_path, GOOD | change)
    assert said in text
    assert "\n" not in text
    assert "pydantic" not in text


def test_a_missing_field_is_named(tmp_path: Path) -> None:
    assert "cases.jsonl:1: 'id' is missing" in faults(tmp_path, {"inputs": {"q": 1}})
    assert "case 'a': 'inputs' is missing" in faults(tmp_path, {"id": "a"})


def test_a_link_out_of_the_suite_is_not_followed(tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    suite.mkdir()
    (tmp_path / "secret").write_text("x", encoding="utf-8")
    (suite / "link").symlink_to(tmp_path / "secret")
    assert "lies outside" in faults(suite, GOOD | {"material": ["link"]})


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a").touch()
    assert "share a name" in faults(tmp_path, GOOD | {"material": ["x/a", "y/a"]})


def test_c02_duplicate_ids_are_refused_with_their_lines() -> None:
    with pytest.raises(CaseError) as caught:
        load_cases(FAILURES / "files" / "c02_ids.jsonl")
    assert "id '1' stands on lines 1, 2" in str(caught.value)
    assert "id 'q2' stands on lines 3, 5" in str(caught.value)


def test_c05_bad_rows_are_all_named_and_nothing_loads(tmp_path: Path) -> None:
    counts = {"billing": 29, "returns": 3, "other": 25, "biling": 1, "": 1}
    rows = [
        {"id": f"{name}{i}", "stratum": name, "inputs": {"q": i}}
        for name, k in counts.items()
        for i in range(1, k + 1)
    ]
    rows[58]["id"] = "blank"
    rows.append({"id": "silent", "stratum": "billing"})
    text = faults(tmp_path, *rows, strata=("billing", "returns", "other"))
    assert text.splitlines() == [
        "/cases.jsonl:58: case 'biling1': stratum 'biling' is not in the suite's mix; "
        "did you mean 'billing'?",
        "/cases.jsonl:59: case 'blank': 'stratum' is empty; name one, or leave the key out",
        "/cases.jsonl:60: case 'silent': 'inputs' is missing",
    ]


def test_many_faults_are_cut_and_counted(tmp_path: Path) -> None:
    lines = faults(tmp_path, *({"id": f"c{i}"} for i in range(25))).splitlines()
    assert len(lines) == 11
    assert lines[-1] == "and 15 more"


def test_a_file_without_a_case_is_refused(tmp_path: Path) -> None:
    assert "holds no case" in faults(tmp_path)


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_any_bytes_load_or_end_in_one_clear_error(data: bytes) -> None:
    text = data.decode("utf-8", errors="replace")
    with pytest.raises(CaseError, match="x"):
        parse_cases(text, "x", folder=Path())


@given(
    st.dictionaries(
        st.sampled_from(["id", "stratum", "inputs", "context", "material", "tags", "cluster"]),
        st.none()
        | st.integers()
        | st.text(max_size=3)
        | st.lists(st.text(max_size=3), max_size=2)
        | st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
    )
)
def test_any_object_loads_or_ends_in_one_clear_error(row: dict[str, Any]) -> None:
    with contextlib.suppress(CaseError):
        (case,) = parse_cases(json.dumps(row), "x", folder=Path(__file__).parent)
        assert case.id == row["id"]

"""JSONL and CSV are read strictly; group C of the failure cases."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from evalkit.cases.tables import duplicate_ids, read_csv_rows, read_jsonl, read_text
from evalkit.errors import AnchorError, CaseError

FAILURES = Path(__file__).resolve().parents[1] / "failure_cases"
KNOWN = {
    case["id"]: case
    for case in map(json.loads, (FAILURES / "cases.jsonl").read_text("utf-8").splitlines())
    if case["group"] == "datasets"
}


def write(path: Path, data: str | bytes) -> Path:
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def test_c01_what_excel_wrote_reads_as_written() -> None:
    case = KNOWN["C01"]
    rows = read_csv_rows(FAILURES / case["input"]["file"])
    texts = [{k: (v or "").replace("\r\n", "\n") for k, v in row.items()} for _, row in rows]
    assert texts == case["expected"]["value"]
    assert [line for line, _ in rows] == [2, 4, 5]  # the first record spans two lines


def test_c02_ids_that_are_one_text_are_named_with_their_lines() -> None:
    case = KNOWN["C02"]
    rows = read_jsonl(FAILURES / case["input"]["file"])
    assert duplicate_ids(rows) == case["expected"]["value"]["duplicates"]


def test_c03_blank_lines_hold_nothing_and_count_as_lines() -> None:
    blank, broken = (FAILURES / name for name in KNOWN["C03"]["input"]["files"])
    wanted = KNOWN["C03"]["expected"]["value"]
    assert len(read_jsonl(blank)) == wanted[0]["records"]
    with pytest.raises(CaseError, match=rf"c03_broken\.jsonl:{wanted[1]['line']}: is not JSON"):
        read_jsonl(broken)


def test_c04_words_that_look_missing_are_labels() -> None:
    case = KNOWN["C04"]
    labels = [
        row[case["input"]["field"]] for _, row in read_csv_rows(FAILURES / case["input"]["file"])
    ]
    assert labels == case["expected"]["value"]
    assert Counter(labels)["NA"] == 1


def test_a_line_separator_inside_a_text_does_not_end_the_line(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl", '{"id": "a", "x": "one\u2028two\u2029\x85three"}\r\n{"id": "b"}'
    )
    assert read_jsonl(path) == [
        (1, {"id": "a", "x": "one\u2028two\u2029\x85three"}),
        (2, {"id": "b"}),
    ]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ('{"x": NaN}', "a.jsonl:1: is not strict JSON: NaN"),
        ('{"x": -Infinity}', "a.jsonl:1: is not strict JSON: -Infinity"),
        ('{"x": 1e999}', "a.jsonl:1: is not strict JSON: the number 1e999 is too large"),
        ('{"x": 1}\n{"x": 1, "x": 2}', "a.jsonl:2: is not strict JSON: the key 'x' stands twice"),
        ('{"x": "\\ud800"}', "a.jsonl:1: is not strict JSON: an unpaired surrogate"),
        ("[1]", "a.jsonl:1: is a list"),
        ("null", "a.jsonl:1: is null"),
        ("3", "a.jsonl:1: is a number"),
        ('\n\n{"x": 1} {"y": 2}', "a.jsonl:3: is not JSON: Extra data"),
        ("[" * 200_000, "a.jsonl:1: is nested too deeply"),
        (b'{"x": 1}\n{"x": "\xe9"}', "a.jsonl:2: byte 0xe9 is not UTF-8"),
        ('{"x": 1}'.encode("utf-16"), "is UTF-16, not UTF-8"),
        (f'{{"x": {"9" * 5000}}}', "a.jsonl:1: is not strict JSON"),
    ],
    ids=[
        *("nan", "infinity", "overflow", "key-twice", "surrogate", "list", "null", "number"),
        *("two-objects", "deep", "latin-1", "utf-16", "huge-integer"),
    ],
)
def test_what_is_not_strict_is_named_with_its_line(
    tmp_path: Path, data: str | bytes, said: str
) -> None:
    with pytest.raises(CaseError) as caught:
        read_jsonl(write(tmp_path / "a.jsonl", data))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_paired_surrogate_escape_is_a_character(tmp_path: Path) -> None:
    assert read_jsonl(write(tmp_path / "a", '{"x": "\\ud83d\\ude00"}')) == [(1, {"x": "😀"})]


def test_a_byte_order_mark_is_set_aside(tmp_path: Path) -> None:
    assert read_jsonl(write(tmp_path / "a", '\ufeff{"x": 1}')) == [(1, {"x": 1})]
    assert read_text(write(tmp_path / "a", "\ufeffx\r\n")) == "x\r\n"


def test_a_missing_file_is_one_sentence_of_the_callers_kind(tmp_path: Path) -> None:
    with pytest.raises(AnchorError, match="cannot be read: No such file"):
        read_jsonl(tmp_path / "none.jsonl", error=AnchorError)
    with pytest.raises(AnchorError, match="cannot be read"):
        read_csv_rows(tmp_path, error=AnchorError)


@pytest.mark.parametrize(
    "text",
    ["id;x\n1;a,b\n", "id\tx\n1\ta,b\n", "sep=;\r\nid;x\r\n1;a,b\r\n", 'id,x\n1,"a,b"\n\n,\n'],
)
def test_the_delimiters_that_excel_writes_are_understood(tmp_path: Path, text: str) -> None:
    ((line, row),) = read_csv_rows(write(tmp_path / "a.csv", text))
    assert row == {"id": "1", "x": "a,b"}
    assert line == 3 if text.startswith("sep") else 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("id,,x\n", "column 2 has no name"),
        ("id,x,id\n", "column 'id' stands twice"),
        ("id,x\n1,a\n2,b,c\n", "a.csv:3: has 3 cells where the header has 2"),
        ('id,x\n1,"a\n', "a.csv:2: is not CSV: unexpected end of data"),
        ('id,x\n1,"a"b\n', "a.csv:2: is not CSV"),
    ],
)
def test_a_crooked_table_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(CaseError) as caught:
        read_csv_rows(write(tmp_path / "a.csv", text))
    assert said in str(caught.value)


def test_a_cell_of_a_megabyte_survives(tmp_path: Path) -> None:
    ((_, row),) = read_csv_rows(write(tmp_path / "a.csv", f"id,x\n1,{'y' * 1_000_000}\n"))
    assert len(row["x"] or "") == 1_000_000

"""A row gives the same bytes each time and comes back as it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.errors import BaselineError
from evalkit.records import (
    Finding,
    Finish,
    Reply,
    Row,
    RowStatus,
    Score,
    ScoreStatus,
    Usage,
    Verdict,
)
from evalkit.runs.rows import read_rows, row_from_json, row_to_json

ROW = Row(
    "E07", "easy", 2, "abc", cluster="page-1", status=RowStatus.OK,
    reply=Reply("the answer", "thought", finish=Finish.LENGTH, usage=Usage(10, None, 3, 13),
                latency_s=0.5, attempts=2, model="m", changes=("temperature dropped",),
                warnings=("cut",), retrieved=(), key="k"),
    scores={"contract": Score(0.0, "no JSON", findings=(Finding("here", 0, 3),)),
            "faith": Score(None, "unreadable", ScoreStatus.UNSCORED, details={"level": 3})},
    verdicts={"faith": (Verdict(None, None, "because", ScoreStatus.UNSCORED, "no verdict",
                                ("mended",), "raw text", "h", "k2"),)},
    by={"contract": "s1", "faith": "j1"},
)  # fmt: skip


def test_a_row_comes_back_as_it_was() -> None:
    assert row_from_json(row_to_json(ROW)) == ROW


def test_a_missing_reply_stays_missing() -> None:
    row = Row("a", "s", 0, "", None, RowStatus.MISSING, "no reply after 5 attempts")
    assert row_from_json(row_to_json(row)) == row


@given(text=st.text(st.characters(exclude_categories=())))
def test_any_reply_is_one_line_of_utf8(text: str) -> None:
    line = row_to_json(Row("a", "s", 0, "", Reply(text), RowStatus.OK))
    assert "\n" not in line
    line.encode()
    assert row_to_json(row_from_json(line)) == line


@pytest.mark.parametrize(
    "line",
    [
        row_to_json(ROW)[:80],
        "[]",
        "null",
        row_to_json(replace(ROW, scores={}))[:-1] + ',"criteria":null}',
        '{"x":' + "[" * 100_000,
    ],
    ids=["cut", "a list", "null", "no criteria", "deep"],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: str) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(row_to_json(ROW) + "\n" + line + "\n")
    with pytest.raises(BaselineError, match=r"rows\.jsonl:2: this line is not a row"):
        list(read_rows(file))

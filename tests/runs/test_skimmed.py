"""Rows read for counting say what whole rows say, and a damaged line is named."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from page_runs import synthetic

from evalkit.errors import BaselineError
from evalkit.records import Finish, Reply, Row, RowStatus, Score, ScoreStatus
from evalkit.runs.rows import row_to_json
from evalkit.runs.run import Run
from evalkit.runs.skimmed import skimmed_rows


def on_disk(rows: list[Row], run: Run, folder: Path) -> Run:
    (folder / "rows.jsonl").write_text("".join(row_to_json(row) + "\n" for row in rows))
    return Run(run.manifest, folder)


def every_status(run: Run) -> list[Row]:
    rows = list(run)
    stopped = Score(None, "not judged: stopped", ScoreStatus.NOT_JUDGED)
    lost = Score(None, "no verdict", ScoreStatus.UNSCORED)
    rows[0] = dataclasses.replace(
        rows[0],
        reply=None,
        status=RowStatus.MISSING,
        scores={"contract": Score(None, "no reply", ScoreStatus.MISSING)},
    )
    cut = Reply("cut", finish=Finish.LENGTH, warnings=("the prompt was cut",))
    rows[1] = dataclasses.replace(rows[1], reply=cut, status=RowStatus.SYSTEM_ERROR)
    rows[2] = dataclasses.replace(rows[2], scores={**rows[2].scores, "preference": stopped})
    rows[3] = dataclasses.replace(rows[3], scores={**rows[3].scores, "grounded": lost})
    rows[4] = dataclasses.replace(rows[4], cluster="c1")
    return rows


def test_the_summary_from_disk_is_that_of_whole_rows(tmp_path: Path) -> None:
    _, run, _ = synthetic(40, repeats=2, words=10)
    rows = every_status(run)
    far = on_disk(rows, run, tmp_path)
    near = Run(run.manifest, None, tuple(rows))
    assert repr(far.summary()) == repr(near.summary())  # NaN is not equal to itself
    assert (far.errors, far.summary().cut_off, far.summary().warnings) == (1, 1, 1)


def test_every_counted_field_is_the_row_s(tmp_path: Path) -> None:
    _, run, _ = synthetic(10, words=10)
    rows = every_status(run)
    on_disk(rows, run, tmp_path)
    for whole, counted in zip(rows, skimmed_rows(tmp_path / "rows.jsonl"), strict=True):
        for name in ("case_id", "stratum", "repeat", "status", "cluster"):
            assert getattr(counted, name) == getattr(whole, name)
        assert counted.scores.keys() == whole.scores.keys()
        for name, score in whole.scores.items():
            found = counted.scores[name]
            assert (found.value, found.status, found.details) == (
                score.value,
                score.status,
                score.details,
            )
        said = whole.reply and (whole.reply.finish, whole.reply.warnings)
        assert (counted.reply and (counted.reply.finish, counted.reply.warnings)) == said


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "[]",
        '{"case_id":"a","repeat":0,"status":"ok"}',
        '{"case_id":"a","stratum":"s","repeat":0,"status":"fine"}',
        '{"case_id":"a","stratum":"s","repeat":0,"status":"ok","criteria":{"c":{"status":"ok",'
        '"value":1.5}}}',
        '{"case_id":"a","stratum":"s","repeat":0,"status":"ok","criteria":{"c":{"status":"ok"}}}',
        '{"case_id":"a","stratum":"s","repeat":0,"status":"ok","criteria":{"c":{"status":"missing",'
        '"value":1.0}}}',
        "\udcff",
        '{"x":' + "[" * 100_000,
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: str) -> None:
    _, run, _ = synthetic(1, words=5)
    good = row_to_json(next(iter(run))) + "\n"
    file = tmp_path / "rows.jsonl"
    file.write_bytes(f"{good}{line}\n".encode(errors="surrogateescape"))
    with pytest.raises(BaselineError, match=r"rows\.jsonl:2: this line is not a row"):
        list(skimmed_rows(file))

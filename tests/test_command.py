"""The one command: each part says what it did; a usage error is one sentence and status 2."""

from __future__ import annotations

from pathlib import Path

import pytest
from chat_server import ChatServer
from mini_suite import write_suite

from evalkit.__main__ import main
from evalkit.cases.suite import load_suite
from evalkit.models.recordings import load_recordings
from evalkit.models.store import CallStore
from evalkit.prompts import load_prompt
from evalkit.runs.plan import make_plan


def test_a_new_suite_can_be_planned_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "mine"
    assert main(["init", str(folder)]) == 0
    suite = load_suite(folder)
    assert len(make_plan(suite)) == len(suite.cases) * 3
    load_prompt(folder / "prompts" / "answer.md")
    assert main(["init", str(folder)]) == 2
    assert "there is a suite at" in capsys.readouterr().err


def test_doctor_names_what_is_missing_and_how_to_get_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "calls.sqlite").write_text("this is no store" * 100)
    assert main(["doctor", "--out", str(tmp_path)]) == 2
    out = capsys.readouterr().out
    assert "wrong   call store" in out
    assert "local model" in out
    assert "xelatex" in out


def test_a_run_is_recorded_replayed_and_pruned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from mini_suite import run_suite

    folder = write_suite(tmp_path / "golden", cases=4)
    with ChatServer() as server:
        run = run_suite(folder, server, tmp_path)
    recording = tmp_path / "recordings" / "first.jsonl"
    assert main(["record", str(run.folder), str(recording), "--out", str(tmp_path)]) == 0
    assert {r.reply.key for r in run if r.reply} == set(load_recordings(recording).replies)
    assert main(["store", "--out", str(tmp_path)]) == 0
    assert "4 replies of 1 run" in capsys.readouterr().out
    assert main(["store", "--out", str(tmp_path), "--prune-run", run.manifest.run_id]) == 0
    with CallStore(tmp_path / "calls.sqlite") as store:
        assert store.size().replies == 0


def test_rubbish_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["store", "--out", str(tmp_path)]) == 2
    assert main(["record", str(tmp_path), str(tmp_path / "x"), "--out", str(tmp_path)]) == 2
    with pytest.raises(SystemExit) as ended:
        main(["frobnicate"])
    assert ended.value.code == 2
    assert "Traceback" not in capsys.readouterr().err

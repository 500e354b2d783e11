"""Whatever stands where the baseline should be: one sentence, and never "there is none"."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from chat_server import ChatServer
from mini_suite import run_suite, write_suite

from evalkit.errors import BaselineError
from evalkit.runs.baseline import freeze, load_baseline

RUBBISH = {
    "empty": b"",
    "binary": bytes(range(256)),
    "utf16": "text".encode("utf-16"),
    "deep": b"[" * 100_000,
    "a list": b"[1]",
    "a deep row": b'{"format": 2}\n' + b"[" * 100_000,
}


@pytest.mark.parametrize("what", RUBBISH)
def test_rubbish_is_named(tmp_path: Path, what: str) -> None:
    path = tmp_path / "mini.jsonl"
    path.write_bytes(RUBBISH[what])
    with pytest.raises(BaselineError, match=r"mini\.jsonl.*Restore"):
        load_baseline(path)


def test_a_head_or_rows_that_cannot_be_are_named(tmp_path: Path) -> None:
    with ChatServer() as server:
        run = run_suite(write_suite(tmp_path / "mini", cases=4), server, tmp_path)
    path = freeze(run, tmp_path / "mini.jsonl", allow_dirty=True)
    head, *rows = path.read_text().splitlines(keepends=True)
    for key, value in (("sampling", None), ("sampling", {"n": "x"}), ("sampling", {"n": 0})):
        path.write_text(json.dumps({**json.loads(head), key: value}) + "\n" + "".join(rows))
        with pytest.raises(BaselineError, match=r"mini\.jsonl:1: not a frozen run"):
            load_baseline(path)
    path.write_text(head + rows[0] * len(rows))
    with pytest.raises(BaselineError, match="'c000', repeat 0, stands there more than once"):
        load_baseline(path)


def test_what_was_edited_after_the_freeze_is_named(tmp_path: Path) -> None:
    with ChatServer() as server:
        run = run_suite(write_suite(tmp_path / "mini", cases=4), server, tmp_path)
    path = freeze(run, tmp_path / "mini.jsonl", allow_dirty=True)
    text = path.read_text()
    assert freeze(run, tmp_path / "again.jsonl", allow_dirty=True).read_text() == text
    head = json.loads(text.split("\n")[0])
    for old, new in (
        ('"value":1.0', '"value":0.0'),
        ('"word2"', '"word3"'),
        ('"min":0.9', '"min":0.1'),
        (head["digest"], ""),
    ):
        assert old in text
        path.write_text(text.replace(old, new, 1))
        with pytest.raises(BaselineError, match="edited after it was frozen"):
            load_baseline(path)
    path.write_text(text.replace("\n", "\r\n"), newline="")
    assert load_baseline(path) is not None  # a checkout may translate line ends
    path.write_text(text.replace('"format":2', '"format":1'))
    with pytest.raises(BaselineError, match="frozen before a baseline had a digest; move it away"):
        load_baseline(path)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with ChatServer() as server:
        run = run_suite(write_suite(tmp_path / "mini", cases=4), server, tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(BaselineError, match="cannot be written"):
        freeze(run, tmp_path / "file" / "mini.jsonl", allow_dirty=True)


def test_a_folder_in_its_place_is_no_missing_baseline(tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match="Is a directory"):
        load_baseline(tmp_path)
    assert load_baseline(tmp_path / "none.jsonl") is None

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evalkit.errors import AnchorError
from evalkit.validity.labels import Label, append_label, current_labels, read_labels

WRITER = """
import sys
from pathlib import Path
from evalkit.validity.labels import Label, append_label
path, who, n = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for i in range(n):
    append_label(path, Label(item_id=f"i{i}", annotator=who, label="yes"))
    print(i, flush=True)
"""


def write(path: Path, item: str, who: str, label: str) -> None:
    append_label(path, Label(item_id=item, annotator=who, label=label))


def start(path: Path, who: str, n: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), who, str(n)], stdout=subprocess.PIPE, text=True
    )


def test_a_later_line_of_the_same_person_replaces_the_earlier_and_both_stay(tmp_path: Path) -> None:
    path = tmp_path / "labels" / "f.jsonl"
    write(path, "a", "ann", "yes")
    write(path, "a", "bob", "no")
    write(path, "a", "ann", "no")
    assert len(read_labels(path)) == 3
    standing = current_labels(read_labels(path))
    assert {k[2]: v.label for k, v in standing.items()} == {"ann": "no", "bob": "no"}


def test_every_line_says_that_a_person_gave_it_and_nothing_else_can_be_said(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    write(path, "a", "ann", "yes")
    assert json.loads(path.read_text())["provenance"] == "human"
    path.write_text(path.read_text().replace('"human"', '"model"'))
    with pytest.raises(AnchorError, match=r"f\.jsonl:1: not a label: provenance"):
        read_labels(path)


def test_two_annotators_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    writers = [start(path, who, 60) for who in ("ann", "bob")]
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    labels = read_labels(path)
    assert len(labels) == 120
    assert len(current_labels(labels)) == 120


def test_a_writer_killed_with_9_loses_no_label_that_was_confirmed(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    doomed, other = start(path, "ann", 100_000), start(path, "bob", 40)
    assert doomed.stdout is not None
    while path.exists() is False or len(read_labels(path)) < 50:
        time.sleep(0.01)
    os.kill(doomed.pid, signal.SIGKILL)
    confirmed = [int(line) for line in doomed.stdout.read().split()]
    doomed.wait()
    doomed.stdout.close()
    other.communicate()
    standing = current_labels(read_labels(path))
    assert {f"i{i}" for i in confirmed} <= {item for item, _, who in standing if who == "ann"}
    assert sum(who == "bob" for _, _, who in standing) == 40
    write(path, "after", "ann", "yes")  # the file is writable again: the lock died with its owner


def test_a_line_cut_short_is_set_aside_and_the_next_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    write(path, "a", "ann", "yes")
    with path.open("ab") as file:
        file.write(b'{"item_id":"b","annot')
    assert [label.item_id for label in read_labels(path)] == ["a"]
    write(path, "c", "ann", "no")
    assert [label.item_id for label in read_labels(path)] == ["a", "c"]
    assert (tmp_path / "f.jsonl.torn").read_bytes() == b'{"item_id":"b","annot\n'


def test_a_whole_line_that_lost_only_its_newline_counts(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    write(path, "a", "ann", "yes")
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    write(path, "b", "ann", "no")
    assert [label.item_id for label in read_labels(path)] == ["a", "b"]


def test_a_broken_line_in_the_middle_is_named_and_never_skipped(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    write(path, "a", "ann", "yes")
    path.write_bytes(b"garbage\n" + path.read_bytes())
    with pytest.raises(AnchorError, match=r"f\.jsonl:1: not a label"):
        read_labels(path)


def test_a_skip_cannot_carry_a_label(tmp_path: Path) -> None:
    with pytest.raises(AnchorError, match="skip"):
        append_label(
            tmp_path / "f.jsonl", Label(item_id="a", annotator="ann", label="yes", action="skip")
        )

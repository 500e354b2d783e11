"""Whatever stands where the baseline should be: one sentence, and never "there is none"."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalkit.errors import BaselineError
from evalkit.runs.baseline import load_baseline

RUBBISH = {
    "empty": b"",
    "binary": bytes(range(256)),
    "utf16": "text".encode("utf-16"),
    "deep": b"[" * 100_000,
    "a list": b"[1]",
    "a deep row": b'{"format": 1}\n' + b"[" * 100_000,
}


@pytest.mark.parametrize("what", RUBBISH)
def test_rubbish_is_named(tmp_path: Path, what: str) -> None:
    path = tmp_path / "mini.jsonl"
    path.write_bytes(RUBBISH[what])
    with pytest.raises(BaselineError, match=r"mini\.jsonl.*Restore"):
        load_baseline(path)


def test_a_folder_in_its_place_is_no_missing_baseline(tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match="Is a directory"):
        load_baseline(tmp_path)
    assert load_baseline(tmp_path / "none.jsonl") is None

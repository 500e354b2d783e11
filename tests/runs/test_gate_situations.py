"""The table of docs/gate.md: every situation ends with the status and sentence written there."""

from __future__ import annotations

from pathlib import Path

import pytest
from gate_situations import SITUATIONS, run_situation, written_table

WRITTEN = written_table()
MAY_PASS = {  # everything else must not end with 0
    "all is well, no baseline yet",
    "unchanged against the baseline",
    "unchanged, release",
    "regressed inside the margin",
    "improved",
    "a floor missed, not refuted",
    "errors at 1 %, floors only",
    "no baseline, floors hold, smoke",
    "the baseline of another suite",
    "the scorer changed since the baseline",
    "a change of cases that is meant, --baseline-ref and --allow-redefined",
    "a change that adds cases, --baseline-ref",
    "a floor lowered below that of the frozen baseline, --allow-redefined",
    "unchanged, measured against main",
    "the suite is not at the ref yet",
    "a licensed judge",
    "no better than the baseline, a licensed pairwise judge",
    "no licence, and the criterion decides nothing",
    "handwritten recordings, offline",
}


@pytest.mark.parametrize("title", SITUATIONS)
def test_a_situation_ends_as_the_page_says(title: str, tmp_path: Path) -> None:
    status, said = run_situation(title, tmp_path)
    said = " ".join(said.split()).replace("|", "\\|").replace("<", "&lt;")
    assert (status, said) == WRITTEN[title]
    assert (status == 0) == (title in MAY_PASS)
    assert said.endswith((".", ")")) or status == 2


def test_the_page_has_no_other_situation() -> None:
    assert list(WRITTEN) == list(SITUATIONS)
    assert len(SITUATIONS) >= 30

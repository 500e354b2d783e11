"""Every scorer that can gate tells known good replies from known bad ones, on every pair."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalkit.scorers import SCORERS, build_scorer
from evalkit.scorers.discrimination import discriminates, load_pairs, may_gate

GOLD = Path(__file__).resolve().parents[2] / "golden" / "scorers"
FILES = sorted(GOLD.glob("*.jsonl"))
PAIRS = [
    (path.stem, number, pair) for path in FILES for number, pair in enumerate(load_pairs(path), 1)
]


@pytest.mark.parametrize("name", SCORERS)
def test_every_scorer_that_can_gate_has_gold_pairs(name: str) -> None:
    if may_gate(name):
        assert (GOLD / f"{name}.jsonl").is_file(), f"write good and bad replies for {name}"


def test_no_gold_pairs_without_a_scorer() -> None:
    assert {path.stem for path in FILES} <= set(SCORERS)


@pytest.mark.parametrize(("name", "number", "pair"), PAIRS, ids=[f"{n}-{i}" for n, i, _ in PAIRS])
def test_the_gap_holds_on_every_pair(name: str, number: int, pair) -> None:
    scorer = build_scorer(name, pair.settings or {}, GOLD)
    result = discriminates(scorer, pair.good, pair.bad)
    if result.holds is None:
        pytest.skip(result.reason)
    assert result.holds, f"{pair.place} ({pair.why}): {result.reason}"

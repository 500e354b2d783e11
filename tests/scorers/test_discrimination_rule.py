from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from evalkit.cases.criterion import Criterion
from evalkit.cases.suite import Sampling, Suite, Task
from evalkit.errors import ScorerError
from evalkit.records import Case, Finish, Reply, Score, ScoreStatus
from evalkit.scorers.discrimination import discriminates, load_pairs, may_gate, unproven_scorers


@dataclass(frozen=True)
class Reads:
    """The reply's text is its score; "?" is not measured."""

    offset: float = 0.0

    VERSION: ClassVar[int] = 1

    def __call__(self, case: Case, reply: Reply) -> Score:
        if reply.text == "?":
            return Score(None, "no engine", ScoreStatus.NOT_MEASURED)
        return Score(float(reply.text) + self.offset, "as written")


@dataclass(frozen=True)
class Shown(Reads):
    """May be shown, never block."""

    GATES: ClassVar[bool] = False


READS, SHOWN = f"{__name__}:Reads", f"{__name__}:Shown"


def suite(folder: Path, *criteria: Criterion) -> Suite:
    return Suite("s", "d", Task(), Sampling(), criteria, folder)


def write(path: Path, *rows: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def pair(good: str, bad: str, **more: Any) -> dict[str, Any]:
    return {"good": {"text": good}, "bad": {"text": bad}, **more}


@pytest.mark.parametrize(
    ("good", "bad", "holds"),
    [
        ("0.75", "0.35", True),
        ("0.8", "0.3", True),
        ("0.74", "0.1", False),
        ("1.0", "0.36", False),
        ("?", "0.0", None),
        ("1.0", "?", None),
        ("0.0", "1.0", False),
    ],
)
def test_good_bad_and_gap_must_all_hold(good: str, bad: str, holds: bool | None) -> None:
    case = Case("c")
    result = discriminates(Reads(), (case, Reply(good)), (case, Reply(bad)))
    assert result.holds is holds
    assert result.reason


def test_reasons_name_what_failed() -> None:
    case = Case("c")
    result = discriminates(Reads(), (case, Reply("0.5")), (case, Reply("0.4")))
    assert result.reason == (
        "the good reply scores 0.50, below 0.75: as written; "
        "the bad reply scores 0.40, above 0.35: as written; the gap is 0.10, below 0.4"
    )
    assert discriminates(Reads(), (case, Reply("?")), (case, Reply("0"))).reason == (
        "not measured: no engine"
    )


def test_pairs_are_read_with_cases_files_and_places(tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text("from a file", encoding="utf-8")
    (tmp_path / "data.csv").write_text("1,2", encoding="utf-8")
    path = tmp_path / "scorers" / "x.jsonl"
    write(
        path,
        {
            "why": "w",
            "settings": {"a": 1},
            "case": {"expected": {"k": 1}, "material": ["data.csv"]},
            "good": {"text_file": "good.txt", "retrieved": ["a"]},
            "bad": {"finish": "length", "refusal": "r", "reasoning": "h", "case": {"expected": {}}},
        },
    )
    (read,) = load_pairs(path)
    assert (read.settings, read.why, read.place) == ({"a": 1}, "w", f"{path}:1")
    case, reply = read.good
    assert (case.expected, case.material) == ({"k": 1}, {"data.csv": "1,2"})
    assert reply == Reply("from a file", retrieved=("a",))
    case, reply = read.bad
    assert case.expected == {}
    assert reply == Reply("", finish=Finish.LENGTH, refusal="r", reasoning="h")


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"good": {}}',
        '{"good": {}, "bad": {}, "ugly": {}}',
        '{"good": {"txt": ""}, "bad": {}}',
        '{"good": {"finish": "maybe"}, "bad": {}}',
        '{"good": {"text_file": "gone.txt"}, "bad": {}}',
        '{"good": {}, "bad": {}, "case": {"nothing": 1}}',
        '{"good": 1, "bad": {}}',
    ],
)
def test_a_wrong_line_is_named(line: str, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(f"\n{line}\n", encoding="utf-8")
    with pytest.raises(ScorerError, match=r"x\.jsonl:2: the gold pair cannot be read"):
        load_pairs(path)
    with pytest.raises(ScorerError, match="gold examples cannot be read"):
        load_pairs(tmp_path / "gone.jsonl")


def test_a_criterion_that_blocks_needs_a_proven_scorer(tmp_path: Path) -> None:
    folder = tmp_path / "golden" / "mine"
    blocks = Criterion("a", scorer=READS, settings={"offset": 0.1})
    shown = Criterion("b", scorer=READS, gate=False)
    judged = Criterion("c", judge="judges/x.md")
    one = suite(folder, blocks, shown, judged)
    (unproven,) = unproven_scorers(one)
    assert (unproven.criterion, unproven.scorer) == ("a", READS)
    assert unproven.reason == (
        f"the scorer {READS!r} has no gold examples; write {READS.replace(':', '.')}.jsonl in "
        f"{tmp_path / 'golden' / 'scorers'} or {folder / 'gold'}, or set gate = false"
    )
    assert unproven_scorers(one, run=False) == [unproven]
    file = f"{READS.replace(':', '.')}.jsonl"
    write(tmp_path / "golden" / "scorers" / file, pair("0.9", "0.1", settings={}))
    assert unproven_scorers(one) == []
    # the suite's own examples come first, and are scored with the criterion's settings
    write(folder / "gold" / file, pair("0.9", "0.30"), pair("0.7", "0.2"))
    (unproven,) = unproven_scorers(one)
    assert "the bad reply scores 0.40" in unproven.reason
    assert unproven_scorers(one, run=False) == []  # there are examples: all that it asks
    write(folder / "gold" / file, pair("0.7", "0.2"))
    assert unproven_scorers(one) == []
    write(folder / "gold" / file, pair("?", "0.2"))
    assert unproven_scorers(one) == []


def test_a_scorer_made_to_be_shown_cannot_block(tmp_path: Path) -> None:
    assert not may_gate(SHOWN)
    assert may_gate("contains")
    (unproven,) = unproven_scorers(suite(tmp_path / "s", Criterion("a", scorer=SHOWN)))
    assert unproven.reason == f"the scorer {SHOWN!r} may be shown but not block; set gate = false"
    one = suite(tmp_path / "s", Criterion("a", scorer=SHOWN))
    assert unproven_scorers(one, run=False) == [unproven]


def test_the_scorers_that_come_along_bring_their_examples(tmp_path: Path) -> None:
    criterion = Criterion("a", scorer="contains", settings={"text": "x"})
    assert unproven_scorers(suite(tmp_path / "s", criterion)) == []
    with pytest.raises(ScorerError, match="no scorer 'gone'"):
        unproven_scorers(suite(tmp_path / "s", Criterion("a", scorer="gone")))


def test_files_that_settings_name_are_read_beside_the_suite_or_the_pairs(tmp_path: Path) -> None:
    folder = tmp_path / "golden" / "mine"
    (folder / "gold").mkdir(parents=True)
    (folder / "s.json").write_text('{"type": "object"}', encoding="utf-8")
    (folder / "gold" / "t.json").write_text('{"type": "object"}', encoding="utf-8")
    one = suite(folder, Criterion("a", scorer="json_contract", settings={"schema": "s.json"}))
    write(folder / "gold" / "json_contract.jsonl", pair("{}", "no"))
    assert unproven_scorers(one) == []
    write(folder / "gold" / "json_contract.jsonl", pair("{}", "no", settings={"schema": "t.json"}))
    assert unproven_scorers(one) == []

from __future__ import annotations

from pathlib import Path

from evalkit.records import Case, Document, Reply, Row, RowStatus
from evalkit.validity.anchor_files import load_anchor
from evalkit.validity.anchors import AnchorKind, write_anchor
from evalkit.validity.annotators import anchor_from_labels
from evalkit.validity.blind import Session
from evalkit.validity.label_items import anchor_items, items_of_run, pair_words, pairs_of_runs
from evalkit.validity.labels import read_labels
from evalkit.validity.provenance import Provenance

CASES = [
    Case(f"c{i}", inputs={"question": f"Question {i}?"}, context=(Document("p", f"Page {i}."),))
    for i in range(4)
]


def rows(word: str, missing: int = -1) -> list[Row]:
    return [
        Row(c.id, "all", 0, "", None if i == missing else Reply(f"{word} {i}"), RowStatus.OK)
        for i, c in enumerate(CASES)
    ]


def test_a_run_s_replies_become_items_and_missing_ones_do_not() -> None:
    items = items_of_run(CASES, rows("answer", missing=2), source="run-1")
    assert [item.id for item in items] == ["c0#0", "c1#0", "c3#0"]
    assert items[0].question == "Question 0?"
    assert items[0].drafts == {"run-1": "answer 0"}


def test_pairs_are_what_both_answered_differently() -> None:
    same = [*rows("x", missing=1)[:3], *rows("y")[3:]]
    pairs = pairs_of_runs(CASES, rows("x"), same, sources=("old", "new"))
    assert [pair.id for pair in pairs] == ["c3#0"]


def test_from_blind_pairs_to_an_anchor_on_disk(tmp_path: Path) -> None:
    sources = ("old", "new")
    pairs = pairs_of_runs(CASES, rows("x"), rows("y"), sources=sources)
    now = [0.0]
    at = Session(pairs, tmp_path / "l.jsonl", "ann", clock=lambda: now[0])
    while (shown := at.show()) is not None:
        now[0] += 1
        left_is_new = shown.texts[0].startswith("y")
        at.commit(shown.token, "left" if left_is_new else "right")
    found = anchor_from_labels(
        read_labels(tmp_path / "l.jsonl"),
        anchor_items(pairs, CASES, sources=sources),
        name="mine",
        kind=AnchorKind.PAIRS,
        domain="d",
        categories=("1", "tie", "2"),
        words=pair_words(sources),
    )
    assert set(found.truth.values()) == {"2"}
    write_anchor(found, tmp_path / "mine.csv")
    again = load_anchor(tmp_path / "mine.csv")
    assert again.provenance is Provenance.HUMAN
    assert again.digest == found.digest
    assert again.items[0].case.context == (Document("p", "Page 0."),)

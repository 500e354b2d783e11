"""The reviewer page: the same bytes each time, nothing lost in silence, keys never in it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from page_runs import hostile_run, run_of, suite_of, synthetic

from evalkit.errors import ReportError
from evalkit.records import Case, Reply, Row, RowStatus
from evalkit.report.page import build_page, write_page
from evalkit.report.page_cases import anchor_of
from evalkit.runs.gate import decide

HOSTILE = [
    json.loads(line)["text"]
    for line in (Path(__file__).parent / "hostile.jsonl").read_text("utf-8").splitlines()
]


def test_the_corpus_is_large_enough() -> None:
    assert len(set(HOSTILE)) >= 60


def test_the_same_run_gives_the_same_bytes(tmp_path: Path) -> None:
    suite, run, baseline = hostile_run(HOSTILE[:20])
    first, second = (
        write_page(tmp_path / name, run, suite=suite, baseline=baseline).read_bytes()
        for name in ("a.html", "b.html")
    )
    assert first == second


def test_the_policy_is_the_first_thing_in_the_head_and_allows_nothing_but_our_own() -> None:
    suite, run, _ = synthetic(2)
    page = build_page(run, suite=suite)
    head = page.partition("<head>")[2].lstrip()
    assert head.startswith('<meta http-equiv="Content-Security-Policy"')
    assert "default-src &#39;none&#39;" in head[:400]
    assert "unsafe" not in head.partition(">")[0]
    assert not re.search(r"<[^>]+\sstyle=", page)
    assert not re.search(r"<[^>]+\son\w+=", page)


def test_every_word_of_the_verdict_and_every_pin_is_on_the_page() -> None:
    suite, run, baseline = synthetic(12)
    suite = replace(suite, criteria=suite.criteria[:2])
    gate = decide(run, suite, baseline=baseline)
    page = build_page(run, suite=suite, gate=gate, baseline=baseline)
    for text in (
        gate.decision.value,
        run.manifest.suite_digest,
        run.manifest.thresholds_hash,
        run.manifest.git_sha,
        run.manifest.prompt["hash"],
        "python notebooks/gate.py --strictness smoke",
        gate.criteria[0].name,
    ):
        assert text in page


def test_long_texts_are_shortened_alike_and_say_by_how_much() -> None:
    case = Case("one", inputs={"q": "short"})
    rows = [
        Row("one", "all", k, "", Reply("x" * 20_000), RowStatus.OK, scores={}) for k in range(3)
    ]
    suite = suite_of([case])
    page = build_page(run_of(suite, rows, 3), suite=suite, budget=9_000)
    assert "short" in page
    assert len(re.findall(r"[\d,]+ characters are left out here; the whole reply", page)) == 3
    assert max(map(len, re.findall("x+", page))) < 4_000


def test_a_large_report_stays_under_fifteen_megabytes() -> None:
    suite, run, _ = synthetic(20, words=10)
    rows = tuple(
        replace(row, case_id=f"c{i}", reply=Reply(f"{i} " + "words and words " * 1_250))
        for i, row in enumerate(run.rows * 100)
    )
    suite = suite_of([replace(suite.cases[0], id=row.case_id) for row in rows])
    page = build_page(run_of(suite, rows), suite=suite)
    assert len(rows) == 2_000
    assert len(page.encode()) < 15e6
    assert "line 2000 of the run" in page


def test_ids_that_differ_have_addresses_that_differ() -> None:
    ids = ["a", "a b", "a-b", "a/b", "", "a" * 100, "a" * 101, "\ud800"]
    assert len({anchor_of(i) for i in ids}) == len(ids)
    assert all(re.fullmatch(r"case-[\w.-]*", anchor_of(i)) for i in ids)


def test_a_key_is_never_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED_API_KEY", "sk-planted-0123456789")
    suite, run, _ = synthetic(2)
    rows = [replace(row, reply=Reply("it is sk-planted-0123456789")) for row in run.rows]
    page = build_page(run_of(suite, rows), suite=suite)
    assert "sk-planted" not in page
    assert "it is [key]" in page


def test_replies_no_model_gave_are_not_shown_as_a_models() -> None:
    suite, run, _ = synthetic(2)
    page = build_page(replace(run, manifest=replace(run.manifest, origin="scripted")), suite=suite)
    assert "No model gave these replies: their origin is scripted." in page


def test_a_page_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    suite, run, _ = synthetic(1)
    (tmp_path / "file").write_text("")
    with pytest.raises(ReportError, match="cannot be written"):
        write_page(tmp_path / "file" / "page.html", run, suite=suite)

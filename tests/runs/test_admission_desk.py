"""The desk of admit.py: which anchor fits, how many items are drawn, what counts as broken."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from evalkit.cases.suite import Suite, load_suite
from evalkit.errors import AnchorError, StoreError
from evalkit.runs.admission_desk import AdmissionDesk, Admittance
from evalkit.validity.admission_run import AdmissionRun

SHIPPED = Path(__file__).resolve().parents[2] / "golden" / "docs_qa"


@pytest.fixture
def desk(tmp_path: Path) -> AdmissionDesk:
    return AdmissionDesk(tmp_path / "exports", strict=True, golden=tmp_path / "golden")


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    folder = tmp_path / "golden" / "docs_qa"
    shutil.copytree(SHIPPED, folder, ignore=shutil.ignore_patterns("licences", "labels"))
    return load_suite(folder)


def test_a_suite_of_the_same_name_elsewhere_is_not_taken_for_the_one_that_was_asked(
    desk: AdmissionDesk, suite: Suite, tmp_path: Path
) -> None:
    other = tmp_path / "elsewhere" / "docs_qa"
    shutil.copytree(suite.folder, other)
    found = desk.suites(str(other))
    assert next(iter(found.items())) == ("docs_qa", str(other))
    assert list(found.values()) == [str(other), str(suite.folder)]


def test_the_first_anchor_that_a_judge_can_score_is_offered(
    desk: AdmissionDesk, suite: Suite
) -> None:
    files = desk.anchor_files(suite)
    for judge, expected in (
        ("faithfulness", "faithfulness.csv"),
        ("pairwise", "none, known pairs only"),
        ("relevance", "none, known pairs only"),
    ):
        judges = desk.judges([str(suite.folder / "judges" / f"{judge}.md")])
        assert judges is not None
        assert desk.fitting(files, judges, "") == expected


def test_a_sample_is_spread_over_the_bands_and_says_so(desk: AdmissionDesk, suite: Suite) -> None:
    judges = desk.judges([str(suite.folder / "judges" / "faithfulness.md")])
    assert judges is not None
    plan = desk.plan(suite, judges, "anchors/faithfulness.csv", sample=21)
    assert plan is not None
    assert plan.anchor is not None
    labels = list(plan.anchor.truth.values())
    assert (labels.count("yes"), labels.count("no")) == (10, 10)
    assert len(plan.requests) == 20
    assert plan.notes[0] == "20 of the anchor's 61 items are scored"
    assert "cannot give it a licence" in plan.notes[1]
    again = desk.plan(suite, judges, "anchors/faithfulness.csv", sample=21)
    assert again is not None
    assert again.requests == plan.requests


def test_a_judge_without_anchor_and_pairs_is_told_what_is_missing(
    desk: AdmissionDesk, suite: Suite
) -> None:
    judges = desk.judges([str(suite.folder / "judges" / "relevance.md")])
    assert judges is not None
    with pytest.raises(AnchorError, match=r"no anchor that relevance can score \(.*faithful"):
        desk.plan(suite, judges, "")


def test_calls_without_a_reply_are_no_finding_and_give_no_licence(
    desk: AdmissionDesk, suite: Suite
) -> None:
    judges = desk.judges([str(suite.folder / "judges" / "faithfulness.md")])
    assert judges is not None
    plan = desk.plan(suite, judges, "anchors/faithfulness.csv")
    assert plan is not None
    found = AdmissionRun(suite, judges, (), (), None)
    assert not Admittance(plan, found, (), calls=100, new=100, failed=5).broken
    broken = Admittance(plan, found, (), calls=100, new=100, failed=6)
    assert "6 of 100 calls got no reply" in broken.broken
    with pytest.raises(StoreError, match="no licence is written"):
        desk.write_licences(broken)
    assert not (suite.folder / "licences").exists()

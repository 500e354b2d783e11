"""The same judge asked three times (prometheus-eval, Vicuna bench): repeats on recorded data."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalkit.stats.repeats import pass_rate, variance_components
from evalkit.stats.stability import stability

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
RECORDED = DATA / "repeats" / "vicuna_gpt4_three_runs.csv"
pytestmark = pytest.mark.skipif(
    not RECORDED.is_file(), reason="the recorded data (../shared/data) are not here"
)


@pytest.fixture(scope="module")
def scores() -> np.ndarray:
    with RECORDED.open(encoding="utf-8", newline="") as lines:
        return np.array(
            [[float(row[f"score_{i}"]) for i in (1, 2, 3)] for row in csv.DictReader(lines)]
        )


@pytest.fixture(scope="module")
def reference() -> dict[str, Any]:
    text = (DATA / "reference_values.json").read_text("utf-8")
    return json.loads(text)["vicuna_gpt4_three_runs"]


def test_the_intraclass_correlation_is_that_of_pingouin(scores, reference) -> None:
    assert len(scores) == reference["n_items"]
    parts = variance_components(scores, score_range=(1, 5))
    assert parts.icc1 == pytest.approx(reference["icc"]["ICC(1,1)"], abs=1e-6)
    assert parts.add == "cases"
    found = pass_rate(scores, score_range=(1, 5))
    assert found.extra["icc1"] == parts.icc1
    assert found.extra["var_within"] == pytest.approx(scores.var(axis=1, ddof=1).mean())


def test_items_scored_alike_three_times_are_the_stable_ones(scores, reference) -> None:
    at_each_mark = [stability((scores >= mark).astype(float)) for mark in (2, 3, 4, 5)]
    unstable = {item for found in at_each_mark for item in found.flaky}
    assert len(scores) - len(unstable) == reference["all_three_equal"]


def test_asking_three_times_narrows_the_interval_less_than_three_times_the_items(scores) -> None:
    once, thrice = (pass_rate(s, score_range=(1, 5), binary=False) for s in (scores[:, :1], scores))
    narrower = (thrice.ci_high - thrice.ci_low) / (once.ci_high - once.ci_low)
    assert 3**-0.5 < narrower < 1

"""The pictures and words of an admission: the lit station, tiles with signs, honest side notes."""

from __future__ import annotations

import asyncio
import json
import random
import re
from pathlib import Path

import pytest

from evalkit.cases.suite import load_suite
from evalkit.judges import Judge, load_judge
from evalkit.records import Reply, Request
from evalkit.report import admission_charts as pictures
from evalkit.report import admission_view as view
from evalkit.report.charts import svg
from evalkit.runs.admission_desk import AdmissionPlan, Admittance
from evalkit.validity.admission_run import AdmissionRun, Step, run_admission
from evalkit.validity.anchors import Anchor, AnchorItem, AnchorKind, AnchorLabel
from evalkit.validity.provenance import Provenance
from evalkit.validity.reconstruction import load_pairs

SHIPPED = Path(__file__).resolve().parents[2] / "golden" / "docs_qa"
SCALE = """---
kind: scale
model: srv/judge
levels: {1: bad, 2: poor, 3: fair, 4: good, 5: excellent}
---
# user
{{ draft }}
"""


async def noisy(request: Request) -> Reply:
    """A judge that is near people's level, which stands in the draft, and never gives a 5."""
    shown = request.messages[-1].content
    found = re.search(r"quality (\d)", shown)
    noise = random.Random(shown).gauss(0, 0.7)
    level = max(1, min(4, round(int(found.group(1)) + noise))) if found else 3
    return Reply(json.dumps({"justification": "as it reads", "level": level}))


@pytest.fixture(scope="module")
def admitted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Judge, AdmissionRun, AdmissionPlan]:
    """A scale judge on a synthetic anchor of 60 and on the shipped pairs."""
    file = tmp_path_factory.mktemp("judges") / "quality.md"
    file.write_text(SCALE)
    judge = load_judge(file)
    items = tuple(
        AnchorItem(f"i{n}", f"reply number {n * 7919} of quality {n % 5 + 1}", inputs={"q": f"{n}"})
        for n in range(60)
    )
    anchor = Anchor(
        name="made",
        kind=AnchorKind.SCALE,
        domain="product-docs/en",
        provenance=Provenance.SYNTHETIC,
        categories=("1", "2", "3", "4", "5"),
        items=items,
        labels=tuple(AnchorLabel(i.id, "by-construction", i.output[-1]) for i in items),
    )
    suite = load_suite(SHIPPED)
    known = load_pairs(SHIPPED / "pairs.jsonl")
    run = asyncio.run(run_admission(suite, [judge], anchor, noisy, known=known))
    return judge, run, AdmissionPlan(suite, (judge,), anchor, known, (), 7)


def test_the_present_station_is_lit_and_the_next_ones_say_what_they_lack(
    admitted: tuple[Judge, AdmissionRun, AdmissionPlan],
) -> None:
    judge, run, _ = admitted
    steps = run.path_of(judge)
    page = view.path_html(judge, steps)
    assert page.count("ek-step here") == 1
    assert "<b>● anchored</b>the present state" in page
    assert "<b>○ diagnosed</b>NOT_CERTIFIED" in page
    assert "<b>○ licensed</b>nothing is permitted yet" in page
    licensed = view.path_html(judge, [Step("candidate", True), Step("licensed", True)])
    assert "<b>● licensed</b>" in licensed


def test_every_pair_is_a_tile_whose_sign_does_not_need_its_colour(
    admitted: tuple[Judge, AdmissionRun, AdmissionPlan],
) -> None:
    judge, run, _ = admitted
    (found,) = run.of(judge)[1]
    page = view.strip_html(found)
    assert page.count('class="ek-tile ') == len(found.tiles) == 34
    assert "= tie 34" in page  # it says 3 of everything here


def test_trivial_judges_stand_in_both_tables_and_the_text_fits_the_terminal(
    admitted: tuple[Judge, AdmissionRun, AdmissionPlan],
) -> None:
    _, run, plan = admitted
    result = Admittance(plan, run, (), calls=94, new=94, failed=0)
    text = view.admission_text(result)
    for name in ("always-first", "longer-wins", "random", "lexical"):
        assert text.count(f"{name} (trivial)") == 2
        assert view.tables_html(run).count(f"{name} (trivial)") == 2
    assert max(map(len, text.splitlines())) <= 100
    assert "quality: candidate > [anchored] > diagnosed > reconstructed > licensed" in text
    assert "next: Have people label an anchor" in text


def test_pictures_are_drawn_and_a_pass_on_made_labels_is_called_void(
    admitted: tuple[Judge, AdmissionRun, AdmissionPlan],
) -> None:
    judge, run, _ = admitted
    line = run.of(judge)[0][0]
    assert line.recalibration is not None
    assert len(line.recalibration.fold_maps) == 5
    curve = pictures.recalibration_curve(line)
    assert curve is not None
    for chart in (pictures.confusion_of(line), pictures.scatter(line), curve):
        assert svg(chart).startswith("<svg")
    words = pictures.recalibration_words(line)
    assert "in sample" in words
    assert "held out" in words
    assert "licenses nothing while no person has labelled the anchor" in words


def test_a_hostile_name_stays_text(
    admitted: tuple[Judge, AdmissionRun, AdmissionPlan],
) -> None:
    judge, _, _ = admitted
    steps = [Step("candidate", True), Step("anchored", False, "<img src=x onerror=alert(1)>")]
    page = view.path_html(judge, steps)
    assert "<img" not in page
    assert "&lt;img" in page

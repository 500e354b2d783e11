"""What is shown of a comparison: escaped whatever a model wrote, and blind where it says blind."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer
from duel_suite import loud_wins, suite_with
from mini_suite import endpoints_of

from evalkit.cases.suite import load_suite
from evalkit.report import duel_charts, duel_html
from evalkit.report.charts import svg
from evalkit.report.duel_text import duel_text
from evalkit.runs.duel import Duel
from evalkit.runs.duel_desk import DuelChoices, DuelDesk
from evalkit.runs.duel_labels import Ballot, People
from evalkit.runs.duel_standing import standings

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\x1b[2J\u202e"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Duel:
    """A comparison in which drafts and judge write markup."""
    folder = suite_with(tmp_path_factory.mktemp("golden") / "mini")

    def reply(body: dict[str, Any]) -> str:
        text = loud_wins(body)
        if body["model"] != "judge":
            return f"{text} {EVIL}"
        return json.dumps({**json.loads(text), "justification": f"because {EVIL}"})

    with ChatServer(reply=reply) as server:
        out = tmp_path_factory.mktemp("out")
        desk = DuelDesk(out, strict=True, endpoints=endpoints_of(server))
        choices = DuelChoices("prompts/loud.md", "prompts/say.md", "judges/pairwise.md")
        plan = desk.plan(load_suite(folder), choices)
        assert plan is not None
        return asyncio.run(desk.run(plan, choices))


@pytest.mark.parametrize("view", ["blind", "verdicts", "open"])
def test_nothing_a_model_wrote_is_markup(hostile: Duel, view: str, tmp_path: Path) -> None:
    ballot = Ballot(tmp_path / "labels.jsonl", "ann")
    for match in hostile.found.pairs:
        key = (match.case.id, match.repeat)
        page = duel_html.pair_html(hostile, key, ballot.see(match, view), given="a")
        assert "<script" not in page
        assert "<img" not in page
        assert "&lt;script&gt;" in page
        assert "\u202e" not in page


def test_a_blind_page_says_nothing_of_sides_judges_or_scorers(
    hostile: Duel, tmp_path: Path
) -> None:
    ballot = Ballot(tmp_path / "labels.jsonl", "ann")
    match = hostile.found.pairs[0]
    laid = ballot.see(match, "blind")
    page = duel_html.pair_html(hostile, ("c000", 0), laid)
    for word in ("pairwise", "always-first", "because", "says_word", "say ", "prefers", "A ·"):
        assert word not in page
    found = standings(hostile, People())
    assert "c001" in duel_html.verdict_html(hostile, found)
    assert "c001" not in duel_html.verdict_html(hostile, found, blind=True)


def test_one_neutral_mark_stands_on_both_sides(hostile: Duel, tmp_path: Path) -> None:
    ballot = Ballot(tmp_path / "labels.jsonl", "ann")
    page = duel_html.pair_html(hostile, ("c000", 0), ballot.see(hostile.found.pairs[0], "open"))
    assert "<mark>" in page
    assert "<ins>" not in page
    assert "<del>" not in page


def test_every_judge_stands_in_the_table_and_the_terminal_stays_clean(hostile: Duel) -> None:
    found = standings(hostile, People())
    table = duel_html.judges_html(hostile, found)
    text = duel_text(hostile, found)
    for name in ("pairwise *", "always-first", "longer-wins", "random", "lexical"):
        assert f"<td>{name}</td>" in table
        assert f"\n{name} " in text
    assert "\x1b" not in text


def test_charts_draw_without_a_network(hostile: Duel) -> None:
    main = standings(hostile, People())[0]
    drawn = [
        svg(duel_charts.preference_by_stratum(main)),
        svg(duel_charts.length_and_preference(main)),
        svg(duel_charts.flips_by_case(hostile, main)),
    ]
    assert all(chart.startswith("<svg") for chart in drawn)
    assert "c001" in drawn[2]

"""compare.py as a person uses it: compare, page by arrow keys, read blind, vote by a key, stop."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from chat_server import ChatServer
from duel_suite import loud_wins, suite_with

NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "compare.py"
SIDES = ("--suite", "golden/mini", "--a", "prompts/loud.md", "--b", "prompts/say.md")


def project(folder: Path, server: ChatServer, *, cases: int = 6) -> Path:
    (folder / "pyproject.toml").write_text(
        f'[tool.evalkit.endpoints.srv]\nbase_url = "{server.base_url}"\nattempts = 1\n'
        "max_concurrency = 2\n"
        "price_input_usd_per_mtok = 0.0\nprice_output_usd_per_mtok = 0.0\n"
    )
    suite_with(folder / "golden" / "mini", cases=cases)
    return folder


def test_compare_page_through_and_vote_without_knowing_the_sides(
    tmp_path: Path, marimo_app: Callable[..., str], open_tab: Callable[..., Any]
) -> None:
    with ChatServer(reply=loud_wins) as server:
        folder = project(tmp_path, server)
        tab = open_tab(height=2400)
        page = tab.page
        page.goto(marimo_app(NOTEBOOK, *SIDES, "--annotator", "ann", cwd=folder))
        run = page.get_by_role("button", name="Compare 6 pairs · 12 replies and up to 12 verdicts")
        run.wait_for()
        assert server.requests == 0, "a model was asked before a button was pressed"
        run.click()
        page.get_by_text("pair 1 of 6").wait_for()
        assert server.requests == 24
        page.get_by_role("button", name="Show · 6 pairs · all 24 replies recorded").wait_for()
        assert page.get_by_text("no licence: exploratory").first.is_visible()

        assert page.get_by_text("A · loud").count() == 0, "the blind view names a side"
        assert page.get_by_text("shown first:").count() == 0, "the blind view shows a verdict"
        page.keyboard.press("ArrowRight")
        page.get_by_text("pair 2 of 6").wait_for()
        page.keyboard.press("ArrowLeft")
        page.get_by_text("pair 1 of 6").wait_for()
        page.wait_for_timeout(500)  # a verdict sooner than this is one that nobody read for
        page.keyboard.press("1")
        page.get_by_text("you: left").wait_for()
        page.keyboard.press("u")
        page.get_by_text("taken back").wait_for()

        page.get_by_role("button", name="flips", exact=True).click()
        page.get_by_text("pair 1 of 1").wait_for()
        page.get_by_role("button", name="open", exact=True).click()
        page.get_by_text("A · loud").wait_for()
        page.get_by_text("the winner changes with the order").wait_for()
        page.keyboard.press("3")
        page.get_by_text("would not be blind").wait_for()
    lines = (folder / "golden" / "mini" / "labels" / "compared_pairs.jsonl").read_text()
    assert [json.loads(line)["action"] for line in lines.splitlines()] == ["label", "undo"]
    assert tab.errors == []
    assert tab.beyond("http://127.0.0.1", "ws://127.0.0.1") == []


def test_a_missing_side_is_one_sentence_and_the_page_stays_usable(
    tmp_path: Path, marimo_app: Callable[..., str], open_tab: Callable[..., Any]
) -> None:
    with ChatServer(reply=loud_wins) as server:
        folder = project(tmp_path, server)
        (folder / "golden" / "mini" / "prompts" / "loud.md").unlink()
        tab = open_tab()
        page = tab.page
        page.goto(marimo_app(NOTEBOOK, "--suite", "golden/mini", cwd=folder))
        page.get_by_text("two sides are needed").first.wait_for()
        page.get_by_placeholder("reads blind with a name").locator("visible=true").first.fill("ann")
        page.keyboard.press("Tab")
        page.wait_for_timeout(1000)
        assert page.get_by_text("NameError").count() == 0
        assert page.get_by_text("An ancestor").count() == 0
        assert server.requests == 0

"""gate.py and history.py as a person uses them: the price first, one click, the verdict."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from browser_project import project
from chat_server import ChatServer

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
SUITE = ("--suite", "golden/mini")


def test_the_gate_is_priced_run_and_read_and_the_ledger_has_a_history(
    tmp_path: Path, marimo_app: Callable[..., str], open_tab: Callable[..., Any]
) -> None:
    with ChatServer() as server:
        folder = project(tmp_path, server, cases=30)
        tab = open_tab(height=1600)
        tab.page.goto(marimo_app(NOTEBOOKS / "gate.py", *SUITE, "--run-live", cwd=folder))
        tab.page.get_by_role("button", name="Run 30 x 1 · 30 new calls · free").wait_for()
        assert server.requests == 0, "a model was asked before a button was pressed"
        tab.page.get_by_role("button", name="Run 30 x 1").click()
        tab.page.get_by_text("PASS (smoke): mini: says_word holds on 30 cases x 1").wait_for()
        assert server.requests == 30

        again = open_tab(height=1600)
        again.page.goto(marimo_app(NOTEBOOKS / "gate.py", *SUITE, cwd=folder))
        again.page.get_by_role("button", name="Replay 30 x 1 · nobody is asked").click()
        again.page.get_by_text("PASS (smoke): mini: says_word holds").wait_for()

        past = open_tab(height=1200)
        past.page.goto(marimo_app(NOTEBOOKS / "history.py", cwd=folder))
        past.page.get_by_text("Choose a step").wait_for()
        past.page.locator("[role=checkbox][aria-label='Select row']").first.click()
        past.page.get_by_text("the first entry").wait_for()
        assert server.requests == 30
    for seen in (tab, again, past):
        assert seen.errors == []
        assert seen.beyond("http://127.0.0.1", "ws://127.0.0.1") == []

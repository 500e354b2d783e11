"""iterate.py as a person uses it: edit, run, watch, stop, open a case, save, freeze."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browser_project import hostile_cases, project, until
from chat_server import ChatServer

from evalkit.report.safe import visible_controls

NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "iterate.py"
SUITE = ("--suite", "golden/mini")


def opened(tab: Any, address: str) -> Any:
    """The page of a notebook once its buttons are there."""
    tab.page.goto(address)
    tab.page.get_by_role("button", name="Save prompt").wait_for()
    return tab.page


def test_edit_run_read_and_freeze(
    tmp_path: Path, marimo_app: Callable[..., str], open_tab: Callable[..., Any]
) -> None:
    with ChatServer() as server:
        folder = project(tmp_path, server, cases=10)
        tab = open_tab(height=2200)
        page = opened(tab, marimo_app(NOTEBOOK, *SUITE, "--sample", "6", cwd=folder))
        assert page.get_by_text("no change against the file").is_visible()
        assert page.get_by_text("no baseline yet").first.is_visible()
        assert server.requests == 0, "a model was asked before a button was pressed"

        page.get_by_role("button", name="Run 6 x 1 · 6 new calls · free").click()
        page.get_by_text("done · 6 of 6 · 0 cut off · 0 errors").wait_for()
        assert server.requests == 6
        page.get_by_text("6 cases: a smoke look, not a decision.").first.wait_for()
        page.get_by_role("button", name="Show · all 6 replies recorded").wait_for()

        page.get_by_role("button", name="Freeze as baseline").click()
        baseline = folder / "exports" / "baselines" / "mini.jsonl"
        until(baseline.is_file)

        editor = page.locator("textarea").first
        editor.fill(editor.input_value().replace("Say the word.", "Say the one word."))
        page.locator(".ek-block ins", has_text="one").first.wait_for()
        change = page.locator(".ek-block").first.inner_text()
        assert "# system\nSay the one word.\n" in change, "the change lost its line breaks"
        page.get_by_role("button", name="Run 6 x 1 · 6 new calls").wait_for()
        assert server.requests == 6, "an edit alone asked a model"
        prompt = folder / "golden" / "mini" / "prompts" / "say.md"
        assert "one word" not in prompt.read_text()
        page.get_by_role("button", name="Save prompt").click()
        until(lambda: "one word" in prompt.read_text())

        page.locator("[role=checkbox][aria-label='Select row']").first.click()
        page.get_by_text("rendered prompt").wait_for()
        assert page.locator("marimo-number input").first.input_value() == "6", "Save reset a choice"
        assert server.requests == 6
    assert tab.errors == []
    assert tab.beyond("http://127.0.0.1", "ws://127.0.0.1") == []


def test_stop_ends_the_calls_and_run_asks_only_for_what_is_missing(
    tmp_path: Path, marimo_app: Callable[..., str], open_tab: Callable[..., Any]
) -> None:
    with ChatServer(latency_s=0.7) as server:
        folder = project(tmp_path, server, cases=40)
        tab = open_tab(height=1400)
        page = opened(tab, marimo_app(NOTEBOOK, *SUITE, "--sample", "40", cwd=folder))
        page.get_by_role("button", name="Run 40 x 1 · 40 new calls").click()
        page.get_by_text("running · ").wait_for()
        until(lambda: server.answered >= 6)
        page.get_by_role("button", name="Stop").click()
        page.get_by_text("what arrived is kept").wait_for()
        time.sleep(2)
        asked = server.requests
        time.sleep(2)
        assert server.requests == asked < 40, "calls went on after Stop"

        again = page.get_by_role("button", name="Run 40 x 1 · ")
        again.wait_for()
        left = int(again.inner_text().split(" new calls")[0].rsplit("· ", 1)[1])
        assert 40 - asked <= left < 40
        again.click()
        page.get_by_text("done · 40 of 40").wait_for()
        assert server.requests == asked + left
        assert server.repeats_after_answer == 0, "a reply was paid for twice"
    assert tab.errors == []


def test_a_broken_prompt_is_one_sentence_and_the_rest_stays_usable(
    tmp_path: Path, marimo_app: Callable[..., str], open_tab: Callable[..., Any]
) -> None:
    with ChatServer() as server:
        folder = project(tmp_path, server, cases=4)
        tab = open_tab()
        page = opened(tab, marimo_app(NOTEBOOK, *SUITE, cwd=folder))
        editor = page.locator("textarea").first
        whole = editor.input_value()
        editor.fill("# user\n{% for %}")
        page.get_by_text("Mend the prompt first").first.wait_for()
        editor.fill(whole)
        page.get_by_role("button", name="Run 4 x 1").wait_for()
        assert server.requests == 0
    assert tab.errors == []


def test_hostile_replies_and_cases_stay_texts(
    tmp_path: Path,
    marimo_app: Callable[..., str],
    open_tab: Callable[..., Any],
    listener: Any,
    texts: list[str],
) -> None:
    assert len(texts) >= 60
    with ChatServer() as server:
        cases = hostile_cases(texts)
        folder = project(tmp_path, server, cases=cases)
        tab = open_tab(height=3000)
        address = marimo_app(NOTEBOOK, *SUITE, "--sample", str(len(cases)), cwd=folder)
        page = opened(tab, address)
        page.get_by_role("button", name=f"Run {len(cases)} x 1").click()
        page.get_by_text(f"done · {len(cases)} of {len(cases)}").wait_for()
        page.get_by_role("button", name="Freeze as baseline").wait_for()
        shown: set[str] = set()
        for n in range(len(cases)):
            page.locator("[role=checkbox][aria-label='Select row']").nth(n).click()
            page.locator(".ek-verdict b", has_text=f"h{n} ").first.wait_for()
            page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
            page.wait_for_timeout(300)
            shown |= set(
                page.evaluate("[...document.querySelectorAll('pre')].map(e => e.textContent)")
            )
    everything = "\n".join(shown)
    assert [t for t in texts if visible_controls(t) not in everything] == []
    assert tab.pwned() == []
    assert listener.asked == []
    assert page.url.rstrip("/") == address
    assert tab.errors == []


@pytest.mark.parametrize("width", [1280, 1920])
def test_the_layout_holds(
    tmp_path: Path, marimo_app: Callable[..., str], open_tab: Callable[..., Any], width: int
) -> None:
    with ChatServer() as server:
        folder = project(tmp_path, server, cases=12)
        tab = open_tab(width=width, height=2000)
        page = opened(tab, marimo_app(NOTEBOOK, *SUITE, cwd=folder))
        page.get_by_role("button", name="Run 12 x 1").click()
        page.get_by_text("done · 12 of 12").wait_for()
        page.get_by_role("button", name="Freeze as baseline").wait_for()
        page.wait_for_timeout(500)
        wide = page.evaluate(
            "[...document.querySelectorAll('.ek-two > *, textarea, canvas, svg.marks, table')]"
            ".filter(e => e.getBoundingClientRect().right > innerWidth).length"
        )
        assert wide == 0
        left, right = (page.locator(".ek-two > *").nth(i).bounding_box() for i in (0, 1))
        assert left["x"] + left["width"] <= right["x"]
        assert abs(left["width"] - right["width"]) < 2
    assert tab.errors == []

"""Every notebook opened as a person opens it: nothing runs unasked, breaks or leaks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_project import ROOT, hostile_cases, project, script
from chat_server import ChatServer
from duel_suite import JUDGE, LOUD

from evalkit.report.safe import visible_controls

COMPARE, ITERATE = ROOT / "notebooks" / "compare.py", ROOT / "notebooks" / "iterate.py"
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.py"))
WIDER = """[...document.querySelectorAll('button, textarea, canvas, svg.marks, .ek-block')]
  .filter(e => e.getClientRects().length && e.getBoundingClientRect().right > innerWidth + 1)
  .map(e => e.outerHTML.slice(0, 80))"""
BLOCKS = "[...document.querySelectorAll('pre, .ek-draft')].map(e => e.textContent).join('\\n')"
BROKEN = "[...document.querySelectorAll('.marimo-error')].map(e => e.textContent)"


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_opens_asks_nobody_and_holds_its_layout(
    notebook: Path,
    tmp_path: Path,
    marimo_app: Callable[..., str],
    open_tab: Callable[..., Any],
) -> None:
    with ChatServer() as server:
        folder = _duel(project(tmp_path, server, cases=8))
        arguments = [] if notebook.stem == "history" else ["--suite", "golden/mini"]
        address = marimo_app(notebook, *arguments, cwd=folder)
        tabs = [open_tab(width=width, height=1400) for width in (1280, 1920)]
        for tab in tabs:
            tab.page.goto(address)
        for tab in tabs:
            tab.page.locator("h1, form, .ek-pins, button").first.wait_for()
            tab.page.wait_for_load_state("networkidle")
        tabs[-1].page.wait_for_timeout(2500)
        for tab in tabs:
            assert tab.page.evaluate(BROKEN) == []
            assert tab.page.evaluate(WIDER) == []
        assert server.requests == 0, "a model was asked although nobody pressed a button"
    for tab in tabs:
        assert tab.errors == []
        assert tab.beyond(address, address.replace("http", "ws")) == []


def _echo(texts: list[str]) -> Callable[[dict[str, Any]], str]:
    """Replies are what was asked; the judge justifies A with every text."""
    said = "\n".join(texts)

    def reply(body: dict[str, Any]) -> str:
        if body["model"] == "judge":
            return json.dumps({"justification": said, "verdict": "A"})
        return body["messages"][-1]["content"]

    return reply


@pytest.fixture(scope="module")
def hostile_project(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> Iterator[tuple[Path, ChatServer, int]]:
    """A project whose cases, replies and judge's justifications are hostile; one run is frozen."""
    with ChatServer(reply=_echo(texts)) as server:
        cases = hostile_cases(texts)
        folder = _duel(project(tmp_path_factory.mktemp("hostile"), server, cases=cases))
        script(folder, "iterate.py", "--suite", "golden/mini", "--sample", "99", "--freeze")
        yield folder, server, len(cases)


@pytest.fixture(scope="module")
def one_hostile_case(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> Iterator[Path]:
    """A project with one case that holds all texts: what an export can show at once."""
    with ChatServer(reply=_echo(texts)) as server:
        cases = hostile_cases(texts, each=len(texts))
        yield _duel(project(tmp_path_factory.mktemp("one"), server, cases=cases))


def test_compare_shows_hostile_drafts_and_justifications_as_texts(
    hostile_project: tuple[Path, ChatServer, int],
    texts: list[str],
    marimo_app: Callable[..., str],
    open_tab: Callable[..., Any],
    listener: Any,
) -> None:
    folder, _, n = hostile_project
    sides = ("--a", "prompts/say.md", "--b", "prompts/loud.md", "--sample", str(n))
    address = marimo_app(COMPARE, "--suite", "golden/mini", *sides, cwd=folder)
    tab = open_tab(height=3000)
    tab.page.goto(address)
    tab.page.get_by_role("button", name=re.compile(f"Compare {n} pairs")).click()
    following = tab.page.get_by_role("button", name="next →")
    following.wait_for()
    shown = ""
    for index in range(n):
        tab.page.get_by_text(f"{index + 1} of {n}").first.wait_for()
        tab.page.wait_for_timeout(800)
        tab.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        shown += tab.page.evaluate(BLOCKS)
        if index + 1 < n:
            following.click()
    _stayed_text(tab, address, listener, texts, shown)
    assert tab.errors == []


def test_label_shows_hostile_items_as_texts(
    hostile_project: tuple[Path, ChatServer, int],
    texts: list[str],
    marimo_app: Callable[..., str],
    open_tab: Callable[..., Any],
    listener: Any,
) -> None:
    folder, _, n = hostile_project
    run = min((folder / "exports" / "runs").iterdir())  # the frozen one is the oldest
    arguments = ("--suite", "golden/mini", "--source", str(run), "--kind", "yes_no")
    who = ("--annotator", "someone", "--criterion", "says_word")
    address = marimo_app(ROOT / "notebooks" / "label.py", *arguments, *who, cwd=folder)
    tab = open_tab(height=3000)
    tab.page.goto(address)
    shown = ""
    for index in range(n):
        tab.page.locator(".ek-draft").first.wait_for()
        tab.page.wait_for_timeout(800)
        tab.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        shown += tab.page.evaluate(BLOCKS)
        if index + 1 < n:
            tab.page.get_by_role("button", name=re.compile(r"\(1\)")).click()
    labels = next((folder / "golden" / "mini" / "labels").glob("*.jsonl"))
    assert len(labels.read_text().splitlines()) == n - 1
    _stayed_text(tab, address.rstrip("/"), listener, texts, shown)
    assert tab.errors == []


def test_iterates_own_export_shows_the_case_it_was_asked_for_as_text(
    one_hostile_case: Path, texts: list[str], exported: Callable[..., Any], listener: Any
) -> None:
    case = json.loads((one_hostile_case / "golden" / "mini" / "cases.jsonl").read_text())["id"]
    arguments = ("--suite", "golden/mini", "--run", "--case", case)
    tab = exported(ITERATE, *arguments, cwd=one_hostile_case, wait="text=rendered prompt")
    _stayed_text(tab, tab.page.url, listener, texts, tab.shown())


def test_compares_own_export_shows_the_first_pair_as_text(
    one_hostile_case: Path, texts: list[str], exported: Callable[..., Any], listener: Any
) -> None:
    sides = ("--a", "prompts/say.md", "--b", "prompts/loud.md", "--run")
    arguments = ("--suite", "golden/mini", *sides)
    tab = exported(COMPARE, *arguments, cwd=one_hostile_case, wait=".ek-drafts")
    _stayed_text(tab, tab.page.url, listener, texts, tab.shown())


def _stayed_text(tab: Any, address: str, listener: Any, texts: list[str], shown: str) -> None:
    assert [text for text in texts if visible_controls(text) not in shown] == []
    assert tab.pwned() == []
    assert listener.asked == []
    assert tab.page.url.startswith(address)


def _duel(folder: Path) -> Path:
    suite = folder / "golden" / "mini"
    (suite / "judges").mkdir()
    (suite / "judges" / "pairwise.md").write_text(JUDGE)
    (suite / "prompts" / "loud.md").write_text(LOUD)
    return folder

"""The reviewer page as a reader opens it: from disk, with no network, whatever is written in it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from page_runs import (
    hostile_gate,
    hostile_licences,
    hostile_pins,
    hostile_run,
    shown_of_pins,
    synthetic,
)

from evalkit.report.page import write_page
from evalkit.report.safe import visible_controls

OPEN_ALL = "document.querySelectorAll('details').forEach(d => d.open = true)"
VISIBLE_BLOCKS = """[...document.querySelectorAll('pre')]
  .filter(e => e.getClientRects().length).map(e => e.textContent)"""
G_CASES = {
    case["id"]: case
    for case in map(
        json.loads,
        (Path(__file__).resolve().parents[1] / "failure_cases" / "cases.jsonl")
        .read_text("utf-8")
        .splitlines(),
    )
    if case["id"].startswith("G")
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    suite, run, baseline = synthetic(24, repeats=2, words=40)
    return write_page(
        tmp_path_factory.mktemp("page") / "page.html", run, suite=suite, baseline=baseline
    )


def test_hostile_texts_in_every_field_stay_texts(
    tmp_path: Path, open_tab: Callable[..., Any], listener: Any, hostile: list[str]
) -> None:
    texts = [text.replace("{host}", listener.address) for text in hostile]
    texts += G_CASES["G01"]["input"]["model_outputs"]
    suite, run, baseline = hostile_run(texts)
    page = write_page(tmp_path / "page.html", run, suite=suite, baseline=baseline)
    tab = open_tab(height=3000)
    tab.page.goto(page.as_uri())
    tab.page.evaluate(OPEN_ALL)
    tab.page.mouse.move(300, 300)
    tab.page.wait_for_timeout(1500)
    assert tab.pwned() == []
    assert listener.asked == []
    assert tab.beyond() == []
    assert tab.page.url == page.as_uri()
    assert tab.errors == []
    shown = set(tab.page.evaluate(VISIBLE_BLOCKS))
    missing = [text for text in texts if visible_controls(text) not in shown]
    assert missing == []
    assert [t for t in texts if visible_controls(f"before {t}") not in shown] == []
    assert "&lt;b&gt;already escaped&lt;/b&gt;" in shown
    for text in G_CASES["G01"]["expected"]["value"]["absent_in_raw_html"]:
        assert text not in page.read_text("utf-8")


def test_hostile_pins_rulings_and_licences_stay_texts(
    tmp_path: Path, open_tab: Callable[..., Any], listener: Any, hostile: list[str]
) -> None:
    texts = [text.replace("{host}", listener.address) for text in hostile]
    suite, run, baseline = hostile_run(texts)
    run = hostile_pins(run, texts)
    gate, licences = hostile_gate(run, texts), hostile_licences(texts)
    given: dict[str, Any] = {
        "suite": suite,
        "baseline": baseline,
        "gate": gate,
        "licences": licences,
    }
    page = write_page(tmp_path / "page.html", run, **given)
    tab = open_tab(height=3000)
    tab.page.goto(page.as_uri())
    shown = tab.shown()
    for name in shown_of_pins():
        missing = [t for t in texts if visible_controls(f"{name}: {t}") not in shown]
        assert (name, missing) == (name, [])
    assert [t for t in texts if visible_controls(f"criterion {t}") not in shown] == []
    assert [t for t in texts if visible_controls(f"because {t}"[:240]) not in shown] == []
    assert [t for t in texts if visible_controls(f"judge {t}"[:120]) not in shown] == []
    figures = tab.page.locator("figure img").evaluate_all("all => all.map(e => e.src)")
    assert tab.made_of_text() == [f"IMG {src}" for src in figures]
    assert tab.pwned() == []
    assert listener.asked == []
    assert tab.beyond() == []
    assert tab.errors == []


def test_nothing_on_the_page_is_a_link_out(
    tmp_path: Path, open_tab: Callable[..., Any], hostile: list[str]
) -> None:
    suite, run, baseline = hostile_run(hostile)
    page = write_page(tmp_path / "page.html", run, suite=suite, baseline=baseline)
    tab = open_tab()
    tab.page.goto(page.as_uri())
    links = tab.page.evaluate(
        "[...document.querySelectorAll('a')].map(a => a.getAttribute('href'))"
    )
    assert links
    assert [link for link in links if not re.fullmatch(r"#[\w.-]+", link)] == []
    for pattern in G_CASES["G02"]["expected"]["value"]["absent_patterns"]:
        assert not re.search(pattern, page.read_text("utf-8"))
    targets = tab.page.evaluate(
        "[...document.querySelectorAll('a')].filter(a => !document.getElementById("
        "a.getAttribute('href').slice(1))).length"
    )
    assert targets == 0


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
def test_everything_is_there_without_network(
    plain: Path, open_tab: Callable[..., Any], script: bool
) -> None:
    tab = open_tab(java_script_enabled=script)
    tab.context.set_offline(True)
    tab.page.goto(plain.as_uri())
    assert tab.page.locator(".case").count() == 24
    assert tab.page.locator("#bar").is_visible() is script
    assert tab.page.locator("h2", has_text="How to reproduce").is_visible()
    pictures = tab.page.locator("figure img")
    assert pictures.count() >= 4
    first = tab.page.locator(".case").first
    first.locator("summary").first.click()
    assert first.locator("pre").first.is_visible()
    assert tab.beyond() == []
    if script:
        drawn = pictures.evaluate_all("all => all.every(i => i.complete && i.naturalWidth > 100)")
        assert drawn
        tab.page.reload()
        tab.page.goto(f"{plain.as_uri()}#case-case-00007")
        assert tab.page.locator("#case-case-00007").is_visible()
    assert tab.errors == []


def test_search_and_filters_narrow_the_list_and_say_so(
    plain: Path, open_tab: Callable[..., Any]
) -> None:
    tab = open_tab()
    page = tab.page
    page.goto(plain.as_uri())
    count = page.locator("#count")
    assert count.inner_text() == "24 cases"
    page.select_option("#stratum", label="easy")
    assert count.inner_text() == "6 of 24 cases"
    assert page.locator(".case:visible").count() == 6
    page.click("#clear")
    page.fill("#find", "case-00003")
    assert count.inner_text() == "1 of 24 cases"
    assert page.locator(".case:visible .id").all_text_contents() == ["case-00003"]
    page.fill("#find", "no such words anywhere")
    assert count.inner_text() == "0 of 24 cases"
    page.click("#clear")
    page.select_option("#state", label="flipped with the order")
    assert count.inner_text() == "24 cases"
    page.select_option("#criterion", label="grounded")
    assert count.inner_text() == "0 of 24 cases"
    page.click("#clear")
    page.select_option("#state", label="changed for the worse")
    worse = page.locator(".case:visible")
    assert worse.count() == page.locator(".case", has_text="▼ worse").count() > 0
    page.select_option("#criterion", label="grounded")
    page.select_option("#state", label="failed")
    assert page.locator(".case:visible").count() == worse.count() > 0


def test_a_reader_can_work_by_keyboard(plain: Path, open_tab: Callable[..., Any]) -> None:
    tab = open_tab()
    page = tab.page
    page.goto(plain.as_uri())
    focused = "document.activeElement.closest('.case')?.querySelector('.id').textContent"
    first, second = page.locator(".case .id").all_text_contents()[:2]
    page.keyboard.press("j")
    assert page.evaluate(focused) == first
    page.keyboard.press("j")
    assert page.evaluate(focused) == second
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    assert page.locator(".case[open] .id").all_text_contents() == [first]
    page.keyboard.press("o")
    assert page.locator(".case[open]").count() == 0
    page.keyboard.press("/")
    page.keyboard.type("jk/x")
    assert page.input_value("#find") == "jk/x"
    page.keyboard.press("Escape")
    page.keyboard.press("x")
    assert page.input_value("#find") == ""
    page.uncheck("#keys")
    page.locator("h1").click()
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") != "find"


def test_a_link_to_a_case_opens_it_even_when_a_filter_hid_it(
    plain: Path, open_tab: Callable[..., Any]
) -> None:
    tab = open_tab()
    tab.page.goto(f"{plain.as_uri()}#case-case-00005")
    assert tab.page.locator(".case[open] .id").all_text_contents() == ["case-00005"]
    assert tab.page.locator("#case-case-00005").is_visible()
    tab.page.select_option("#stratum", label="easy")
    tab.page.evaluate("location.hash = 'case-case-00006'")
    tab.page.locator("#case-case-00006").wait_for(state="visible")
    tab.page.evaluate("location.hash = '%E0%A4%A'")
    assert tab.errors == []


@pytest.mark.parametrize("width", [375, 640, 1280])
def test_nothing_is_wider_than_the_window(
    plain: Path, open_tab: Callable[..., Any], width: int
) -> None:
    tab = open_tab(width=width)  # 640 is 1280 at 200 % zoom
    tab.page.goto(f"{plain.as_uri()}#case-case-00001")
    tab.page.evaluate(OPEN_ALL)
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(plain: Path, open_tab: Callable[..., Any], scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    tab = open_tab(color_scheme=scheme, bypass_csp=True)
    tab.page.goto(f"{plain.as_uri()}#case-case-00001")
    tab.page.locator(".case").nth(3).locator("summary").first.click()
    found = axe.Axe().run(tab.page).response["violations"]
    grave = [
        (v["id"], [node["html"][:120] for node in v["nodes"]][:3])
        for v in found
        if v["impact"] in ("serious", "critical")
    ]
    assert grave == []


def test_print_holds_the_overview_and_the_open_cases(
    plain: Path, open_tab: Callable[..., Any]
) -> None:
    tab = open_tab()
    tab.page.goto(f"{plain.as_uri()}#case-case-00004")
    tab.page.emulate_media(media="print")
    assert tab.page.locator(".verdict").is_visible()
    assert tab.page.locator(".case:visible").count() == 1
    assert not tab.page.locator("#bar").is_visible()


def test_scripts_of_every_direction_are_shown_as_they_are_read(
    tmp_path: Path, open_tab: Callable[..., Any]
) -> None:
    texts = ["中文の文章 한국어", "שלום world", "مرحبا بالعالم", "👩‍🔬🏽 🇨🇭 ❤️‍🔥"]
    suite, run, baseline = hostile_run(texts)
    page = write_page(tmp_path / "page.html", run, suite=suite, baseline=baseline)
    tab = open_tab()
    tab.page.goto(page.as_uri())
    tab.page.evaluate(OPEN_ALL)
    shown = tab.page.evaluate(VISIBLE_BLOCKS)
    for text in texts[:3]:
        assert text in shown
    direction = (
        "text => getComputedStyle([...document.querySelectorAll('pre')]"
        ".find(e => e.textContent === text)).direction"
    )
    assert tab.page.evaluate(direction, texts[2]) == "rtl"
    assert tab.page.evaluate(direction, texts[0]) == "ltr"

"""Labelling in a real browser: ten pairs by keyboard, a reload, and nothing given away."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from label_runs import two_runs

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "notebooks" / "label.py"
READ_MS = 700  # longer than what counts as read


def test_ten_pairs_by_keyboard_with_a_reload_lose_nothing_and_give_nothing_away(
    tmp_path: Path, open_tab: Callable[..., Any], marimo_app: Callable[..., str]
) -> None:
    runs = two_runs(tmp_path, cases=10)
    address = marimo_app(
        NOTEBOOK,
        *("--suite", "golden/mini", "--out", "exports", "--annotator", "ann"),
        *("--source", f"exports/runs/{runs[0].folder.name}"),  # type: ignore[union-attr]
        *("--against", f"exports/runs/{runs[1].folder.name}"),  # type: ignore[union-attr]
        cwd=tmp_path,
    )
    tab = open_tab()
    page = tab.page
    received: list[str] = []
    page.on(
        "websocket",
        lambda socket: socket.on("framereceived", lambda frame: received.append(str(frame))),
    )
    page.on("response", lambda response: received.append(response.url))
    page.goto(address)
    shown: list[str] = []
    sources: list[str] = []
    for done in range(10):
        page.get_by_text(f"{done} of 10 done", exact=True).wait_for()
        if done == 5:
            page.reload()
            page.get_by_text("5 of 10 done", exact=True).wait_for()
        page.locator(".ek-draft").first.wait_for()
        shown.append(page.locator(".ek-q").inner_text())  # it came with its number and its keys
        sources.append(page.content())
        page.wait_for_timeout(READ_MS)
        page.keyboard.press("123"[done % 3])
    page.get_by_text("10 of 10 labelled", exact=False).wait_for()
    sources.append(page.content())

    assert len(set(shown)) == 10  # nothing twice, nothing left out
    (file,) = (tmp_path / "golden" / "mini" / "labels").glob("*.jsonl")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(lines) == len({line["item_id"] for line in lines}) == 10
    assert {line["annotator"] for line in lines} == {"ann"}
    assert {line["label"] for line in lines} >= {"tie"}
    hidden = {
        *(line["side"] for line in lines),
        *(run.folder.name for run in runs),  # type: ignore[union-attr]
        "secretplain",
        "secretmodel",
        runs[0].manifest.prompt["hash"],
        runs[1].manifest.prompt["hash"],
        lines[0]["item_id"],
    }
    sources.append(page.request.get(address).text())  # the document itself, before any script
    assert any("ek-draft" in frame for frame in received)  # what the server sent was seen
    everything = "\n".join([*sources, *received])
    assert [word for word in sorted(hidden) if word in everything] == []


def test_keys_typed_into_a_field_and_hasty_ones_label_nothing(
    tmp_path: Path, open_tab: Callable[..., Any], marimo_app: Callable[..., str]
) -> None:
    two_runs(tmp_path, cases=3)
    address = marimo_app(NOTEBOOK, "--suite", "golden/mini", "--out", "exports", cwd=tmp_path)
    page = open_tab().page
    page.goto(address)
    page.get_by_placeholder("your name").fill("bob")
    page.get_by_role("button", name="Begin").click()
    page.get_by_text("0 of 3 done", exact=True).wait_for()
    page.get_by_text("Add this case to the golden set").click()
    field = page.get_by_placeholder("a question nobody had thought of")
    field.click()
    page.keyboard.type("123 us?")
    page.wait_for_timeout(READ_MS)
    assert field.input_value() == "123 us?"
    assert page.get_by_text("0 of 3 done", exact=True).is_visible()
    assert not list((tmp_path / "golden" / "mini" / "labels").glob("*.jsonl"))
    page.locator("h1, .ek-asked").first.click()
    page.keyboard.press("?")
    page.get_by_text("1 of 3 done", exact=True).wait_for()
    page.wait_for_timeout(READ_MS)
    page.keyboard.press("s")
    page.get_by_text("skipped", exact=True).wait_for()
    page.keyboard.press("u")
    page.get_by_text("0 of 3 done", exact=True).wait_for()
    page.reload()  # the name is in the address: labelling goes on
    page.get_by_text("0 of 3 done", exact=True).wait_for()
    assert "annotator bob" in page.locator(".ek-pins").inner_text()

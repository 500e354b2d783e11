"""admit.py in a real browser: the price first, nothing asked before the press, then the licence."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from browser_project import (
    as_a_model,
    hostile_licence,
    hover,
    project,
    toml,
)
from chat_server import ChatServer

from evalkit.judges import load_judge
from evalkit.report.safe import visible_controls
from evalkit.validity.licence import read_licence

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "notebooks" / "admit.py"


def agrees(body: dict[str, Any]) -> str:
    return json.dumps({"faithful": {"justification": "sounds fine", "verdict": "yes"}})


def test_a_candidate_is_priced_scored_pictured_and_its_licence_permits_nothing(
    tmp_path: Path, open_tab: Callable[..., Any], marimo_app: Callable[..., str]
) -> None:
    suite = tmp_path / "golden" / "docs_qa"
    shipped = ROOT / "golden" / "docs_qa"
    shutil.copytree(shipped, suite, ignore=shutil.ignore_patterns("licences", "labels"))
    with ChatServer(reply=agrees) as server:
        (tmp_path / "pyproject.toml").write_text(
            f'[tool.evalkit.endpoints.srv]\nbase_url = "{server.base_url}"\n'
            "price_input_usd_per_mtok = 0.0\nprice_output_usd_per_mtok = 0.0\n"
        )
        address = marimo_app(NOTEBOOK, "--model", "srv/one,srv/two", cwd=tmp_path)
        tab = open_tab()
        page = tab.page
        page.goto(address)
        button = page.get_by_role("button", name="Score 61 items · 122 new calls · free")
        button.wait_for()
        assert server.stats()["requests"] == 0
        button.click()
        page.get_by_role("button", name="Show · all 122 verdicts recorded").wait_for()
        assert server.stats()["requests"] == 122
        page.get_by_text("lexical (trivial)").wait_for()
        assert page.locator(".ek-step.here").inner_text().startswith("● anchored")
        page.locator("canvas, svg.marks").nth(1).wait_for()
        table = page.locator(".ek-admission").inner_text()
        assert "faithfulness one" in table
        assert "faithfulness two" in table
        assert "Rework the rubric" in page.locator(".ek-action").inner_text()
        assert not (suite / "licences").exists()
        page.get_by_role("button", name="Write licence").click()
        page.get_by_text("written: golden/docs_qa/licences/").first.wait_for()
    licences = [json.loads(file.read_text()) for file in (suite / "licences").glob("*.json")]
    assert [licence["uses"] for licence in licences] == [[], []]
    assert {licence["judge"]["model"] for licence in licences} == {"srv/one", "srv/two"}
    assert tab.pwned() == []
    assert tab.beyond(address) == []


SCALE = """---
kind: scale
model: srv/judge
levels:
  1: {0}
  2: {0}
  3: {0}
---
# user
{{{{ draft }}}}
"""
NAME = "<svg onload=window.__pwned=1>"  # of the judge's file
ANCHOR = "<img src=x onerror=window.__pwned=1>.jsonl"
SEEN = "the very words that a prompt of the suite shows its model as an example of a reply"


def test_hostile_anchors_pairs_justifications_and_licences_stay_texts(
    tmp_path: Path,
    open_tab: Callable[..., Any],
    marimo_app: Callable[..., str],
    listener: Any,
    texts: list[str],
) -> None:
    """What it shows: names, model, domain, anchor; ids taken out and why; ways of weakening.

    Inputs, drafts, notes, annotators and the judge's justifications are shown nowhere: they are in
    the files it reads all the same. Ids of scored items stand in tooltips.
    """
    said = "\n".join(texts)
    models = [f"srv/{''.join(t for t in texts if as_a_model(t) and ',' not in t)}"]
    count = iter(range(10_000))

    def reply(body: dict[str, Any]) -> str:
        assert body["messages"]
        return json.dumps({"justification": said, "score": 1 + next(count) % 3})

    with ChatServer(reply=reply) as server:
        suite = admission(project(tmp_path, server), texts, said, models[0])
        arguments = ("--suite", "golden/mini", "--judge", f"judges/{NAME}.md")
        arguments += ("--anchors", f"anchors/{ANCHOR}", "--model", models[0])
        address = marimo_app(NOTEBOOK, *arguments, cwd=tmp_path)
        tab = open_tab(height=3000)
        page = tab.page
        page.goto(address)
        button = page.get_by_role("button", name="new calls")
        button.wait_for()
        assert server.requests == 0
        button.click()
        page.locator(".ek-action").wait_for()
        page.locator("canvas, svg.marks").nth(1).wait_for()
        page.get_by_role("button", name="Write licence").click()
        page.get_by_text("written: golden/mini/licences/").first.wait_for()
        shown = tab.shown()
    pins = "\n".join(page.locator(".ek-pins").all_text_contents())
    cells = "\n".join(page.locator("td").all_text_contents())
    for where, found, wanted in (
        ("model", pins, [t for t in texts if t in models[0]]),
        ("domain", pins, texts),
        ("ids taken out", cells, [f"id {t}" for t in texts]),
        ("ways of weakening", cells, [f"by {t}" for t in texts]),
        ("the judge, the anchor", shown, [NAME, ANCHOR.removesuffix(".jsonl")]),
    ):
        assert (where, [t for t in wanted if visible_controls(t) not in found]) == (where, [])
    tooltips = "".join(map(hover, page.locator("canvas, svg.marks").all()))
    assert "<" in tooltips, "no tooltip with an item's id was seen"
    (licence,) = (suite / "licences").glob("*.json")
    assert set(texts) <= set(read_licence(licence).warnings), "the odd licence was not read"
    assert tab.made_of_text(address) == []
    assert tab.pwned() == []
    assert tab.errors == []
    assert tab.beyond(address, address.replace("http", "ws")) == []
    assert listener.asked == []


def admission(folder: Path, texts: Sequence[str], said: str, model: str) -> Path:
    """The suite of a project with a hostile judge, anchor, pairs, and an earlier licence."""
    suite = folder / "golden" / "mini"
    for name in ("judges", "anchors", "licences"):
        (suite / name).mkdir()
    table = (suite / "suite.toml").read_text()
    (suite / "suite.toml").write_text(table.replace('"words/en"', toml(said)))
    (suite / "prompts" / "shown.md").write_text(f"# user\n{SEEN}\n")
    judge = suite / "judges" / f"{NAME}.md"
    judge.write_text(SCALE.format(toml(said)))
    same = {"provenance": "synthetic", "domain": said, "licence": said, "people": said}
    items = [(f"id {text}", SEEN) for text in texts]
    items += [(f"scored {text}", f"{number} {text} and so on") for number, text in enumerate(texts)]
    rows = [
        {
            **same,
            **{"item_id": name, "annotator": said, "score": 1 + number % 3, "output": output},
            **{"input.question": said, "why": said},
        }
        for number, (name, output) in enumerate(items)
    ]
    pairs = [
        {"id": f"pair {text}", "strong": f"{text} strong", "weak": text, "how": f"by {text}"}
        for text in texts
    ]
    for path, lines in ((suite / "anchors" / ANCHOR, rows), (suite / "pairs.jsonl", pairs)):
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    licence = hostile_licence(judge, texts, model=model, domain=said)
    file = f"{NAME}.{load_judge(judge, model=model).hash}.json"
    (suite / "licences" / file).write_text(licence.sealed.model_dump_json())
    return suite

"""admit.py in a real browser: the price first, nothing asked before the press, then the licence."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from chat_server import ChatServer

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

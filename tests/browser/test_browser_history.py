"""history.py over a ledger that anybody may have written: whatever stands in it stays text."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from browser_project import hover, until

from evalkit.report.safe import visible_controls
from evalkit.runs.ledger import LedgerEntry, append_entries

NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "history.py"
EACH = 8  # entries of a series
COLUMNS = ("suite", "metric", "verdict", "commit", "prompt", "run")


def as_a_ledger_keeps(text: str) -> str:
    """A TSV has no tabs and line ends inside a cell: they are blanks there."""
    return text.replace("\t", " ").replace("\r", " ").replace("\n", " ")


def test_hostile_words_in_every_cell_of_a_ledger_stay_texts(
    tmp_path: Path,
    marimo_app: Callable[..., str],
    open_tab: Callable[..., Any],
    listener: Any,
    texts: list[str],
) -> None:
    kept = [visible_controls(as_a_ledger_keeps(t)) for t in texts]
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    append_entries(tmp_path / "exports" / "eval_baseline.tsv", entries(texts))
    address = marimo_app(NOTEBOOK, cwd=tmp_path)
    tab = open_tab(height=2600)
    page = tab.page
    page.goto(address)
    page.get_by_text("Choose a step").wait_for()
    charts = page.locator("canvas, svg.marks")
    assert charts.count() == -(-len(texts) // EACH)

    cells: dict[str, str] = dict.fromkeys(COLUMNS, "")
    steps: list[str] = []
    while True:
        for name in COLUMNS:
            found = page.locator(f"td[data-cell-id$='_{name}']").all_text_contents()
            cells[name] += "\n".join(found).replace("\u200b", "")
        assert page.locator("td img, td a").count() == 0, "a cell became a picture or a link"
        for row in page.locator("tr", has=page.locator("[aria-label='Select row']")).all():
            if row.locator("td[data-cell-id$='_date']").inner_text().endswith(":01"):
                run = row.locator("td[data-cell-id$='_run']").inner_text().replace("\u200b", "")
                row.locator("[aria-label='Select row']").click()  # its title holds all the texts
                until(lambda: f"run {run} ·" in page.locator("pre").first.text_content())  # noqa: B023
                steps += page.locator("pre").all_text_contents()
        following = page.get_by_role("button", name="Next page")
        if following.is_disabled():
            break
        following.click()
        page.wait_for_timeout(500)

    in_steps = "\n".join(steps)
    assert [(name, t) for name in COLUMNS for t in kept if t.strip() not in cells[name]] == []
    assert [t for t in kept if t not in in_steps] == []
    address_of_picture = f"image: {listener.address}/tooltip.png"
    tooltips = hover(charts.nth(texts.index(address_of_picture) // EACH))
    assert address_of_picture in tooltips, "no tooltip was seen"
    page.wait_for_timeout(500)
    assert tab.made_of_text(address) == []
    assert tab.pwned() == []
    assert listener.asked == []
    assert tab.errors == []


def entries(texts: list[str]) -> list[LedgerEntry]:
    """Each text in every column of one entry; a series bears the names of all its texts."""
    found: list[LedgerEntry] = []
    for start in range(0, len(texts), EACH):
        part = texts[start : start + EACH]
        together = " · ".join(part)
        found += [
            LedgerEntry(
                **dict.fromkeys(
                    ("git_sha", "prompt_hash", "passed", "model", "app_version", "suite_digest"),
                    text,
                ),
                **dict.fromkeys(("judge_hash", "run_id"), text),
                date=f"2026-01-01T00:{number:02d}:00+00:00 {text}",
                **dict.fromkeys(("name", "metric"), together),
                score=0.5 + number / 20,
                threshold=0.4,
                n=3,
                ci_low=0.1,
                ci_high=0.9,
            )
            for number, text in enumerate(part)
        ]
    return found

"""What the reviewer page costs: to build, to open, to filter; at 1,000 and at 10,000 cases.

    python tests/bench/bench_page.py

Building is timed warm (best of three) and in processor seconds for a cold start; opening and
filtering are timed inside chromium, where it is installed.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from page_runs import synthetic

from evalkit.report.page import build_page

CHROMIUM = Path("/usr/bin/chromium")
FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1"
FILTER = """([id, value]) => {
  const control = document.getElementById(id);
  const started = performance.now();
  control.value = value;
  control.dispatchEvent(new Event(id === "find" ? "input" : "change"));
  document.body.getBoundingClientRect().height;
  return performance.now() - started;
}"""


def main() -> list[dict[str, Any]]:
    """One row a measurement: what, value, target, holds."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for cases, most_mb, most_s in ((1_000, 10.0, 3.0), (10_000, 60.0, 30.0)):
            suite, run, baseline = synthetic(cases)
            times: list[float] = []
            page = ""
            for index in range(3 if cases < 5_000 else 1):
                wall, cpu = time.perf_counter(), time.process_time()
                page = build_page(run, suite=suite, baseline=baseline)
                times.append(time.perf_counter() - wall)
                if index == 0 and not rows:
                    spent = time.process_time() - cpu
                    rows.append(_row(f"{cases} cases, cold start, processor", spent, most_s, "s"))
            rows.append(_row(f"{cases} cases, build", min(times), most_s, "s"))
            rows.append(_row(f"{cases} cases, size", len(page.encode()) / 1e6, most_mb, "MB"))
            file = Path(folder) / f"{cases}.html"
            file.write_text(page, encoding="utf-8")
            if CHROMIUM.is_file():
                rows += _opened(file, cases)
    return rows


def _opened(file: Path, cases: int) -> list[dict[str, Any]]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(file.as_uri())
        page.wait_for_timeout(3_000)  # the texts are read while nobody waits
        paint = float(page.evaluate(FIRST_PAINT))
        found = {
            "a filter": max(
                float(page.evaluate(FILTER, ["state", value])) for value in ("f", "w", "b", "")
            ),
            "a search": max(
                float(page.evaluate(FILTER, ["find", value]))
                for value in ("owner", "case-00077", "")
            ),
        }
        browser.close()
    slack = 1.0 if cases <= 1_000 else 5.0  # ten times the cases are promised to be usable
    rows = [_row(f"{cases} cases, first paint", paint, 1_000.0, "ms")]
    return rows + [
        _row(f"{cases} cases, {what}", value, 100.0 * slack, "ms") for what, value in found.items()
    ]


def _row(what: str, value: float, target: float, unit: str) -> dict[str, Any]:
    return {
        "what": f"page: {what} ({unit})",
        "value": round(value, 2),
        "target": target,
        "holds": value <= target,
    }


if __name__ == "__main__":
    for line in main():
        print(f"{line['what']:55} {line['value']:10} of {line['target']:8} {line['holds']}")

"""Draw docs/screenshots/*.png anew: one picture a notebook, and the reviewer page.

    make screenshots                      all of them
    python tests/browser/screenshots.py iterate page

Replies recorded in exports/calls.sqlite are used again; what is missing is asked of the embedded
model. A picture that cannot be drawn leaves the old one, and says why.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "screenshots"
SUITE = ("--suite", "golden/docs_qa")
DEMO = "exports/demo/docs_qa.jsonl"
PATIENCE_MS = 900_000
MOST_BYTES = 300_000
SMALL = ("--sample", "8", "--repeats", "1")


def main(wanted: list[str]) -> int:
    """Draw the pictures named, or all; the number of those that failed."""
    from playwright.sync_api import Error, sync_playwright

    unknown = set(wanted) - set(SHOTS)
    if unknown:
        print(f"no such picture: {', '.join(sorted(unknown))}; there are {', '.join(SHOTS)}")
        return 2
    PICTURES.mkdir(parents=True, exist_ok=True)
    failed = 0
    if not (ROOT / DEMO).is_file():
        subprocess.run(["make", "demo"], cwd=ROOT, check=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        for name, (shot, height) in SHOTS.items():
            if wanted and name not in wanted:
                continue
            page = browser.new_page(viewport={"width": 1280, "height": height})
            page.set_default_timeout(PATIENCE_MS)
            try:
                with shot(page):
                    page.wait_for_timeout(1_500)
                    path = PICTURES / f"{name}.png"
                    page.screenshot(path=path)
                    size = path.stat().st_size
                print(f"{path.relative_to(ROOT)}: {size // 1000} kB", flush=True)
                failed += size > MOST_BYTES
            except (Error, OSError, subprocess.CalledProcessError) as error:
                print(f"{name}: {str(error).splitlines()[0]}", flush=True)
                failed += 1
            page.close()
        browser.close()
    return failed


@contextlib.contextmanager
def notebook(page: Any, name: str, *arguments: str) -> Generator[None]:
    """A notebook under `marimo run`, opened in the page, ended with the block."""
    port = random.SystemRandom().randrange(20_000, 32_000)
    command = [sys.executable, "-m", "marimo", "--quiet", "run", "--headless", "--no-token"]
    command += ["--port", str(port), f"notebooks/{name}.py", "--", *arguments]
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
    try:
        for _ in range(900):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        page.goto(f"http://127.0.0.1:{port}")
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()


@contextlib.contextmanager
def iterate(page: Any) -> Generator[None]:
    """An edited prompt beside its change, a run, and its criteria against the baseline."""
    with notebook(page, "iterate", *SUITE, "--baseline", DEMO):
        _press(page)
        page.get_by_text("done · ").wait_for()
        page.get_by_text("those that changed first").wait_for()
        editor = page.locator("textarea").first
        text = editor.input_value()
        editor.fill(text.replace("from the given pages only", "only from the given pages"))
        page.locator(".ek-block ins").first.wait_for()
        yield
        editor.fill(text)  # the draft goes with the edit
        page.get_by_text("no change against the file").wait_for()


@contextlib.contextmanager
def compare(page: Any) -> Generator[None]:
    """Two prompts, the judge in both orders, one pair to read."""
    sides = ("--a", "prompts/answer.md", "--b", "prompts/answer-weak.md", "--sample", "12")
    with notebook(page, "compare", *SUITE, *sides):
        _press(page)
        page.get_by_role("button", name="next →").wait_for()
        yield


@contextlib.contextmanager
def admit(page: Any) -> Generator[None]:
    """A judge beside the trivial ones on an anchor; the ledger of the project is left alone."""
    with (
        tempfile.TemporaryDirectory() as out,
        notebook(page, "admit", *SUITE, "--sample", "12", "--out", out),
    ):
        _press(page)
        page.get_by_role("button", name="Write licence").wait_for()
        yield


@contextlib.contextmanager
def label(page: Any) -> Generator[None]:
    """One item, blind, with its keys."""
    source = ("--source", DEMO, "--kind", "yes_no", "--criterion", "faithfulness")
    with notebook(page, "label", *SUITE, *source, "--annotator", "ann"):
        page.locator(".ek-draft").first.wait_for()
        yield


@contextlib.contextmanager
def gate(page: Any) -> Generator[None]:
    """The verdict of the recorded sample against the baseline."""
    sample = ("--sample", "24", "--repeats", "1", "--baseline", DEMO)
    with notebook(page, "gate", *SUITE, *sample):
        _press(page)
        page.locator(".ek-verdict").first.wait_for()
        yield


@contextlib.contextmanager
def history(page: Any) -> Generator[None]:
    """A ledger of three small live gates: a prompt that changed, and one that did not."""
    with tempfile.TemporaryDirectory() as out:
        for prompt, seed in (("answer", "7"), ("answer-weak", "7"), ("answer-weak", "8")):
            _gate(out, "--prompt", f"prompts/{prompt}.md", "--seed", seed)
        with notebook(page, "history", "--ledger", f"{out}/eval_baseline.tsv"):
            page.get_by_text("Choose a step").wait_for()
            yield


@contextlib.contextmanager
def page(page: Any) -> Generator[None]:
    """The reviewer page of the recorded sample."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.html"
        arguments = ("--sample", "24", "--repeats", "1", "--baseline", DEMO, "--page", str(file))
        _gate("exports", *arguments, live=False)
        page.goto(file.as_uri())
        yield


def _gate(out: str, *arguments: str, live: bool = True) -> None:
    command = [sys.executable, "notebooks/gate.py", *SUITE, "--out", out, *arguments]
    command += [*SMALL, "--run-live"] if live else []
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    if done.returncode not in (0, 1, 3):
        raise OSError(done.stderr.strip() or done.stdout.strip())


def _press(page: Any) -> None:
    """The green button, whatever it says it will cost."""
    from playwright.sync_api import expect

    stop = page.get_by_role("button", name="Stop")
    stop.wait_for()
    button = page.locator("button").filter(has_text="·").first
    expect(button).to_be_enabled(timeout=PATIENCE_MS)
    button.click()


SHOTS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "page": (page, 1000),
    "iterate": (iterate, 1500),
    "gate": (gate, 900),
    "label": (label, 900),
    "compare": (compare, 1500),
    "admit": (admit, 1500),
    "history": (history, 1000),
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

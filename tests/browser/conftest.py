"""A browser as a reader has it: Debian's chromium, driven by Playwright, with nobody to call."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = Path("/usr/bin/chromium")
ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
PATIENCE_MS = 60_000  # several suites may share two cores


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="module")  # its event loop must end before another module's tests run theirs
def chromium() -> Iterator[Any]:
    """The browser, one for all tests."""
    if not CHROMIUM.is_file():
        pytest.skip("Debian's chromium is not installed (apt-get install chromium)")
    api = pytest.importorskip("playwright.sync_api", reason="`make browser` installs playwright")
    with api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=ARGS)
        yield browser
        browser.close()


_OPEN = """(function open(node) {
  for (const part of node.querySelectorAll('*')) {
    if (part.tagName === 'DETAILS') part.open = true;
    if (part.shadowRoot) open(part.shadowRoot);
  }
})(document)"""
_SHOWN = """(function text(node) {
  if (node.nodeType === Node.TEXT_NODE) return node.data;
  if (node.nodeType === Node.ELEMENT_NODE) {
    if (['SCRIPT', 'STYLE', 'TEMPLATE'].includes(node.tagName)) return '';
    const drawn = node.checkVisibility() || getComputedStyle(node).display === 'contents';
    if (!drawn) return '';
  }
  return [...(node.shadowRoot?.childNodes ?? []), ...node.childNodes].map(text).join('')
    + (['TD', 'LI', 'PRE', 'DIV'].includes(node.tagName) ? '\\n' : '');
})(document.body)"""


class Tab:
    """A page with what it said and what it asked for."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self.errors: list[str] = []
        self.requests: list[str] = []
        context.on("request", lambda request: self.requests.append(request.url))
        self.page = context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.page.on("pageerror", lambda error: self.errors.append(f"uncaught: {error}"))
        self.page.on("console", self._console)

    def _console(self, message: Any) -> None:
        if message.type == "error":
            self.errors.append(message.text)

    def beyond(self, *known: str) -> list[str]:
        """Requests to anywhere but these addresses and the page itself."""
        local = ("file:", "data:", "blob:", *known)
        return [url for url in self.requests if not url.startswith(local)]

    def pwned(self) -> Any:
        """What a script of a text would have left behind, in any frame."""
        found = [frame.evaluate("window.__pwned") for frame in self.page.frames]
        return [value for value in found if value is not None]

    def shown(self) -> str:
        """Every text that is drawn, also inside the parts that marimo is made of; folds opened."""
        self.page.evaluate(_OPEN)
        self.page.wait_for_timeout(300)
        return self.page.evaluate(_SHOWN)

    def made_of_text(self, *own: str) -> list[str]:
        """Links to elsewhere, pictures and frames; no text of a run may have become one."""
        found = self.page.locator("a[href], img, iframe, object, embed, form[action], [background]")
        marks = found.evaluate_all(
            "all => all.map(e => [e.tagName, e.getAttribute('href') ?? e.src ?? ''])"
        )
        return [f"{tag} {to}" for tag, to in marks if tag != "A" or not to.startswith(("#", *own))]


@pytest.fixture
def open_tab(chromium: Any) -> Iterator[Callable[..., Tab]]:
    """`open_tab(width=1280, **context options)`: a fresh profile with one page."""
    opened: list[Tab] = []

    def make(*, width: int = 1280, height: int = 900, **options: Any) -> Tab:
        tab = Tab(chromium.new_context(viewport={"width": width, "height": height}, **options))
        opened.append(tab)
        return tab

    yield make
    for tab in opened:
        tab.context.close()


class Listener:
    """A loopback server that says yes to everything and keeps what was asked of it."""

    def __init__(self, root: Path | None = None) -> None:
        self.asked: list[str] = []
        self.root = root
        listener = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                file = listener.root / path.lstrip("/") if listener.root else None
                served = file is not None and file.is_file()
                if not served:
                    listener.asked.append(self.path)
                body = file.read_bytes() if served and file else b""
                self.send_response(200 if served else 404)
                self.send_header("content-type", _KINDS.get(Path(path).suffix, "text/plain"))
                self.send_header("access-control-allow-origin", "*")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(ConnectionError):
                    self.wfile.write(body)

            do_POST = do_HEAD = do_GET

            def log_message(self, format: str, *args: Any) -> None:
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


_KINDS = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".woff2": "font/woff2",
    ".png": "image/png",
}


@pytest.fixture(scope="module")  # tests of a module may share a project that names its address
def listener() -> Iterator[Listener]:
    server = Listener()
    yield server
    server.close()


@pytest.fixture
def file_server() -> Iterator[Callable[[Path], Listener]]:
    """`file_server(folder)`: a loopback server of a folder's files."""
    opened: list[Listener] = []

    def make(root: Path) -> Listener:
        opened.append(Listener(root))
        return opened[-1]

    yield make
    for server in opened:
        server.close()


@pytest.fixture
def exported(
    tmp_path: Path,
    open_tab: Callable[..., Tab],
    file_server: Callable[[Path], Listener],
    listener: Listener,
) -> Callable[..., Tab]:
    """`exported(notebook, *args, cwd=...)`: marimo's own HTML export, its front end from loopback.

    The tab waited until it was drawn; nothing was asked but the site and the front end.
    """
    import marimo

    def export(notebook: Path, *args: str, cwd: Path, wait: str) -> Tab:
        page = tmp_path / "site" / "export.html"
        page.parent.mkdir()
        command = [sys.executable, "-m", "marimo", "--quiet", "export", "html", str(notebook)]
        command += ["-o", str(page), "-f", "--", *args]
        subprocess.run(command, cwd=cwd, check=True, timeout=300, capture_output=True)
        site = file_server(page.parent)
        assets = file_server(Path(marimo.__file__).parent / "_static")
        text = page.read_text("utf-8")
        prefix = f"https://cdn.jsdelivr.net/npm/@marimo-team/frontend@{marimo.__version__}/dist"
        assert prefix in text
        page.write_text(text.replace(prefix, assets.address), encoding="utf-8")
        tab = open_tab(height=2500)
        tab.page.goto(f"{site.address}/export.html")
        tab.page.locator(wait).first.wait_for()
        tab.page.wait_for_timeout(2000)
        assert tab.page.url == f"{site.address}/export.html"
        outside = tab.beyond(site.address, assets.address)
        assert [url for url in outside if listener.address in url] == []
        return tab

    return export


@pytest.fixture(scope="module")
def texts(listener: Listener, hostile: list[str]) -> list[str]:
    """The hostile texts that a file of the package may hold, each naming the listener."""
    from browser_project import runnable

    return [text.replace("{host}", listener.address) for text in hostile if runnable(text)]


@pytest.fixture(scope="session")
def hostile() -> list[str]:
    """Texts that would run, call out or break the page if anything but text came of them."""
    file = ROOT / "tests" / "report" / "hostile.jsonl"
    return [json.loads(line)["text"] for line in file.read_text("utf-8").splitlines()]


def _free_port() -> int:
    """A port below those of outgoing connections: whoever knocks there cannot meet itself."""
    for port in random.SystemRandom().sample(range(20_000, 32_000), 50):
        with contextlib.suppress(OSError), socket.socket() as free:
            free.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no free port")


@pytest.fixture
def marimo_app() -> Iterator[Callable[..., str]]:
    """`marimo_app(notebook, *args, cwd=...)`: the address of `marimo run`, ended with the test."""
    started: list[subprocess.Popen[bytes]] = []

    def run(notebook: Path, *args: str, cwd: Path = ROOT) -> str:
        port = _free_port()
        command = [sys.executable, "-m", "marimo", "--quiet", "run", "--headless", "--no-token"]
        command += ["--host", "127.0.0.1", "--port", str(port)]
        command += [str(notebook), "--", *args]
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        log = cwd / f"marimo-{port}.log" if cwd != ROOT else None
        with open(log or os.devnull, "wb") as out:
            process = subprocess.Popen(
                command, cwd=cwd, env=environment, stdout=out, stderr=out, start_new_session=True
            )
        started.append(process)
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return f"http://127.0.0.1:{port}"
            assert process.poll() is None, f"marimo ended with {process.returncode}"
            time.sleep(0.1)
        raise AssertionError("marimo did not listen within a minute")

    yield run
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

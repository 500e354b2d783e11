"""A project folder of its own for a notebook in a browser: an endpoint, a suite, no git."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from chat_server import ChatServer
from mini_suite import write_suite


def project(folder: Path, server: ChatServer, at_once: int = 2, **suite: Any) -> Path:
    """The folder; its endpoint `srv` is the server, priced at nothing."""
    (folder / "pyproject.toml").write_text(
        f'[tool.evalkit.endpoints.srv]\nbase_url = "{server.base_url}"\nattempts = 1\n'
        f"max_concurrency = {at_once}\n"
        "price_input_usd_per_mtok = 0.0\nprice_output_usd_per_mtok = 0.0\n"
    )
    write_suite(folder / "golden" / "mini", **suite)
    return folder


def hostile_cases(texts: Sequence[str], each: int = 16) -> list[Mapping[str, Any]]:
    """Cases that hold the texts wherever a case may hold text, `each` of them in one case."""
    groups = [texts[i : i + each] for i in range(0, len(texts), each)]
    return [
        {
            "id": f"h{n} {_printable(group[0])}",
            "stratum": ("easy", f"hard {_printable(group[0])}")[n % 2],
            "inputs": {"word": "\n".join(group), **{f"t{i}": t for i, t in enumerate(group)}},
            "context": [{"id": text, "text": text} for text in group],
            "expected": {"word": "\n".join(group), "more": list(group)},
            "tags": list(group),
            "why": "\n".join(group),
        }
        for n, group in enumerate(groups)
    ]


def _printable(text: str) -> str:
    """What the loader accepts as an id."""
    return "".join(c for c in text if c.isprintable()).strip()[:80]


def runnable(text: str) -> bool:
    """A case file holds no lone surrogates: the loader refuses them by line."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def until(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait for something that no locator can wait for."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.1)

"""A project folder of its own for a notebook in a browser: an endpoint, a suite, no git."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from chat_server import ChatServer
from mini_suite import write_suite

from evalkit.judges import load_judge
from evalkit.validity.licence import AnchorPin, Evidence, Licence, Revocation, pin_judge
from evalkit.validity.provenance import Provenance

ROOT = Path(__file__).resolve().parents[2]


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


def as_an_id(text: str) -> bool:
    """Ids of cases are printable; the other texts need another field of the same window."""
    return text.isprintable() and text == text.strip()


def as_a_model(text: str) -> bool:
    """A model's name holds no blanks and stands in an address."""
    return as_an_id(text) and not re.search(r"\s", text)


def as_a_file(text: str) -> bool:
    """A folder's files bear no slash, no null byte and no more than 255 bytes; git quotes some."""
    return as_an_id(text) and "/" not in text and text.isascii() and '"' not in text


def hostile_licence(
    judge: Path, texts: Sequence[str], revoked: Revocation | None = None, **changes: Any
) -> Licence:
    """A licence of this judge for this suite that says the texts wherever it may say anything."""
    said = "\n".join(texts)
    anchor = AnchorPin(
        **dict.fromkeys(("name", "digest", "domain", "criterion", "people"), said),
        path="",
        provenance=Provenance.HUMAN,
        categories=tuple(texts),
        n=3,
    )
    evidence = Evidence(
        **dict.fromkeys(("what", "state", "ruling", "diagnosis", "action"), said),
        anchor=anchor,
        figures={said: said},
        grants=(),
    )
    return Licence(
        judge=pin_judge(load_judge(judge, model=changes.get("model"))),
        domain=changes.get("domain", "words/en"),
        uses=tuple(texts),
        evidence=(evidence,),
        warnings=tuple(texts),
        issued=date(2026, 1, 1),
        expires=date(2126, 1, 1),
        revoked=revoked,
    )


def toml(text: str) -> str:
    """A basic string of TOML."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def hover(chart: Any) -> str:
    """What the tooltips of a chart say; they are HTML."""
    chart.scroll_into_view_if_needed()
    said = chart.evaluate("""canvas => {
      const box = canvas.getBoundingClientRect(), said = new Set();
      for (let x = box.left; x < box.right; x += 4)
        for (let y = box.top; y < box.bottom; y += 4) {
          const at = {clientX: x, clientY: y, bubbles: true, view: window};
          canvas.dispatchEvent(new PointerEvent('pointermove', at));
          canvas.dispatchEvent(new MouseEvent('mousemove', at));
          for (const tip of document.querySelectorAll('.vg-tooltip')) said.add(tip.textContent);
        }
      return [...said];
    }""")
    return "\n".join(said)


def script(folder: Path, notebook: str, *arguments: str) -> None:
    """A notebook as a script; a failed gate is a result too."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "notebooks" / notebook), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode in (0, 1, 3), done.stdout + done.stderr

"""A small suite and its endpoint, for tests that run something through."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from chat_server import ChatServer

from evalkit.cases.suite import load_suite
from evalkit.models.client import Client
from evalkit.models.endpoints import Endpoint, Endpoints
from evalkit.models.store import CallStore
from evalkit.runs.execute import execute
from evalkit.runs.plan import make_plan
from evalkit.runs.run import Run

PROMPT = "# system\nSay the word.\n\n# user\n{{ inputs.word }}\n"
CRITERIA = """
[[criteria]]
name = "says_word"
scorer = "contains"
expected = "word"
min = 0.9
max_drop = 0.05
"""


def write_suite(
    folder: Path,
    *,
    cases: Sequence[Mapping[str, Any]] | int = 10,
    criteria: str = CRITERIA,
    prompt: str = PROMPT,
    model: str = "srv/m",
    repeats: int = 1,
    name: str = "mini",
    task: str = "",
) -> Path:
    """A suite of words: the default server answers with the word, so `says_word` passes."""
    if isinstance(cases, int):
        cases = [
            {
                "id": f"c{i:03d}",
                "stratum": ("easy", "hard")[i % 2],
                "inputs": {"word": f"word{i}"},
                "expected": {"word": f"word{i}"},
            }
            for i in range(cases)
        ]
    (folder / "prompts").mkdir(parents=True, exist_ok=True)
    (folder / "prompts" / "say.md").write_text(prompt)
    (folder / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))
    (folder / "suite.toml").write_text(
        f'name = "{name}"\ndomain = "words/en"\n\n[task]\nkind = "chat"\nmodel = "{model}"\n'
        f'prompt = "prompts/say.md"\ntemperature = 0.0\nmax_tokens = 50\n{task}\n'
        f"[sampling]\nrepeats = {repeats}\nseed = 7\n{criteria}"
    )
    return folder


def endpoints_of(server: ChatServer, **settings: Any) -> Endpoints:
    """One endpoint, `srv`, that is the server."""
    endpoint = Endpoint(name="srv", base_url=server.base_url, **settings)
    return Endpoints({"srv": endpoint})


def run_suite(
    folder: Path, server: ChatServer, out: Path, *, live: bool = True, judges: bool = False
) -> Run:
    """The suite run once through the server; its store and its run folder lie in `out`."""

    async def go() -> Run:
        with CallStore(out / "calls.sqlite") as store:
            async with Client(endpoints_of(server), store=store, live=live) as client:
                plan = make_plan(load_suite(folder), judges=judges)
                return await execute(plan, client, runs=out / "runs")

    return asyncio.run(go())

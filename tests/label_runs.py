"""Runs to label, without a model: two prompts' replies to the cases of a small suite."""

from __future__ import annotations

import asyncio
import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from chat_server import ChatServer
from mini_suite import CRITERIA, endpoints_of, write_suite

from evalkit.cases.suite import load_suite
from evalkit.models.client import Client
from evalkit.models.store import CallStore
from evalkit.prompts import load_prompt
from evalkit.runs.execute import execute
from evalkit.runs.plan import make_plan
from evalkit.runs.run import Run

JUDGED = """
[[criteria]]
name = "polite"
judge = "judges/polite.md"
gate = false
"""
JUDGE = """---
kind: criteria
model: srv/critic
criteria:
  is_polite: Is the reply polite?
---
# user
Draft:
{{ draft }}
"""


def two_runs(project: Path, *, cases: int = 10, judged: bool = False) -> tuple[Run, Run]:
    """`golden/mini` and two finished runs of it under `exports/`; replies differ by prompt."""
    suite = project / "golden" / "mini"
    write_suite(suite, cases=cases, criteria=CRITERIA + (JUDGED if judged else ""))
    (suite / "prompts" / "secretplain.md").write_text("# user\nplainly: {{ inputs.word }}\n")
    (suite / "judges").mkdir(exist_ok=True)
    (suite / "judges" / "polite.md").write_text(JUDGE)

    def reply(body: dict[str, Any]) -> str:
        asked = str(body["messages"])
        if "Draft" in asked:
            good = int(hashlib.sha256(asked.encode()).hexdigest()[0], 16) < 10
            said = {"justification": "as it reads", "verdict": "yes" if good else "no"}
            return f'{{"is_polite": {said!r}}}'.replace("'", '"')
        style = "A plain remark" if "plainly" in asked else "Dear reader, a remark"
        return f"{style} on {body['messages'][-1]['content']}"

    async def run(prompt: str) -> Run:
        with (
            ChatServer(reply=reply) as server,
            CallStore(project / "exports" / "calls.sqlite") as store,
        ):
            async with Client(endpoints_of(server), store=store) as client:
                plan = make_plan(
                    load_suite(suite),
                    prompt=load_prompt(suite / "prompts" / prompt),
                    model="srv/secretmodel-7b",
                    judges=judged,
                )
                return await execute(plan, client, runs=project / "exports" / "runs")

    def both() -> tuple[Run, Run]:
        return asyncio.run(run("secretplain.md")), asyncio.run(run("say.md"))

    with ThreadPoolExecutor(1) as beside:  # a browser test has a loop of its own in this thread
        return beside.submit(both).result()

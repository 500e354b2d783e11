"""The gate from suite to verdict: simulated applications of known quality, run and ruled on.

Each replication loads nothing twice but does everything a gate does: a Python task answers, a
scorer scores, the baseline is frozen and read again, `decide` rules. 400 replications at each of
two settings stand for the 4,000 of the formula alone.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
from simulation_bars import Row

from evalkit.cases.suite import Suite, load_suite
from evalkit.models.client import Client
from evalkit.models.endpoints import Endpoints
from evalkit.records import Case
from evalkit.runs.baseline import freeze, load_baseline
from evalkit.runs.execute import execute
from evalkit.runs.gate import decide
from evalkit.runs.gate_result import GateResult
from evalkit.runs.plan import make_plan
from evalkit.runs.run import Run

MEAN, ICC, REPEATS = 0.9, 0.5, 3
SUITE = f"""name = "simulated"
domain = "none/en"
[task]
kind = "python"
entry = "{__name__}:answer"
app_version = "1"
[sampling]
repeats = {REPEATS}
[[criteria]]
name = "says_word"
scorer = "contains"
expected = "word"
max_drop = 0.10
"""


class Application:
    """Passes each case with a probability of its own; `broken` cases never pass."""

    def __init__(self, seed: int, n: int) -> None:
        self.rng = np.random.default_rng(seed)
        both = (1 - ICC) / ICC
        self.p = self.rng.beta(MEAN * both, (1 - MEAN) * both, n)

    def breaks(self, drop: float) -> None:
        self.p[self.rng.random(len(self.p)) < drop / MEAN] = 0.0


now: list[Application] = []


async def answer(case: Case, _: object) -> str:
    """The task: the word, or not."""
    app = now[-1]
    return "word" if app.rng.random() < app.p[int(case.id)] else "nothing"


@cache
def suite_of(n: int) -> Suite:
    folder = Path(tempfile.mkdtemp(prefix="simulated"))
    lines = [{"id": str(i), "inputs": {"q": i}, "expected": {"word": "word"}} for i in range(n)]
    (folder / "cases.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "suite.toml").write_text(SUITE)
    return load_suite(folder)


def run_once(suite: Suite) -> Run:
    async def go() -> Run:
        async with Client(Endpoints({})) as client:
            return await execute(make_plan(suite), client)

    return asyncio.run(go())


def gate_once(seed: int, n: int, strictness: str, drop: float) -> GateResult:
    """Freeze an application, change it, run it again, and ask the gate."""
    suite = suite_of(n)
    now[:] = [Application(seed, n)]
    path = freeze(run_once(suite), suite.folder / "baseline.jsonl", allow_dirty=True)
    now[-1].breaks(drop)
    baseline = load_baseline(path)
    return decide(run_once(suite), suite, baseline=baseline, strictness=strictness)


def rows(replications: int, seed: int) -> Iterator[Row]:
    reps = max(20, replications // 10)
    for n in (30, 45):
        blocked = [gate_once(seed + r, n, "smoke", 0.0).status == 1 for r in range(reps)]
        yield Row(
            "end to end: smoke, false alarm",
            f"unchanged, n = {n}",
            float(np.mean(blocked)),
            high=0.06,
            replications=reps,
        )
    for n in (45, 60):
        shipped = [gate_once(seed + r, n, "release", 0.10).status == 0 for r in range(reps)]
        yield Row(
            "end to end: release, ships a drop = margin",
            f"-10 points (break), n = {n}",
            float(np.mean(shipped)),
            high=0.065,
            replications=reps,
        )

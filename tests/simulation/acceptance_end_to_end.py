"""The gate from suite to verdict: simulated applications of known quality, run and ruled on.

Each replication loads nothing twice but does everything a gate does: a Python task answers, a
scorer scores, the baseline is frozen and read again, `decide` rules. Every verdict is compared
with what the formula says of the same differences: not one may differ. The rates are held to the
plain bars of statistics.md, section 19, so they need replications enough to be told from them
(1,600 have a standard error of .006, 400 one of .012): those that went the whole way, and, as the
formula was shown to be the gate, many more of the same differences through the formula alone.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from simulation_bars import Row

from evalkit.cases.suite import Suite, load_suite
from evalkit.models.client import Client
from evalkit.models.endpoints import Endpoints
from evalkit.records import Case
from evalkit.runs.baseline import freeze, load_baseline
from evalkit.runs.execute import execute
from evalkit.runs.gate import decide
from evalkit.runs.matrix import scores_of
from evalkit.runs.plan import make_plan
from evalkit.runs.run import Run
from evalkit.stats.decision import Decision, Strictness
from evalkit.stats.gate import relative_decisions

Floats = NDArray[np.float64]
MEAN, ICC, REPEATS, MARGIN = 0.9, 0.5, 3, 0.10
ALONE = 10  # so many times the replications asked for go through the formula alone
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
max_drop = {MARGIN}
"""


class Application:
    """Passes each case with a probability of its own; `broken` cases never pass."""

    def __init__(self, seed: int, n: int) -> None:
        self.rng = np.random.default_rng(seed)
        both = (1 - ICC) / ICC
        self.p = self.rng.beta(MEAN * both, (1 - MEAN) * both, n)

    def breaks(self, drop: float) -> None:
        self.p[self.rng.random(len(self.p)) < drop / MEAN] = 0.0

    def run(self) -> Floats:
        """Case means of one run, as the task would give them."""
        return self.rng.binomial(REPEATS, self.p) / REPEATS


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


def gate_once(seed: int, n: int, strictness: Strictness, drop: float) -> tuple[int, bool]:
    """Freeze an application, change it, run it again, and ask the gate.

    Returns the exit status, and whether the formula says the same of the same differences.
    """
    suite = suite_of(n)
    now[:] = [Application(seed, n)]
    path = freeze(run_once(suite), suite.folder / "baseline.jsonl", allow_dirty=True)
    now[-1].breaks(drop)
    baseline, run = load_baseline(path), run_once(suite)
    assert baseline is not None
    result = decide(run, suite, baseline=baseline, strictness=strictness)
    means = [scores_of(r.rows, r.manifest, "says_word").means() for r in (baseline, run)]
    differences = [float(means[1][c] or 0) - float(means[0][c] or 0) for c in means[0]]
    formula = str(relative_decisions(differences, MARGIN, strictness=strictness))
    return result.status, result.criteria[0].word == formula


def differences(seed: int, n: int, reps: int, drop: float) -> Floats:
    """New minus old, case by case: what the gate would see of so many replications."""
    found = np.empty((reps, n))
    for r, row in enumerate(found):
        app = Application(seed + r, n)
        old = app.run()
        app.breaks(drop)
        row[:] = app.run() - old
    return found


def rows(replications: int, seed: int) -> Iterator[Row]:
    whole = replications * 2 // 5 if replications > 1000 else max(20, replications // 10)
    alone, other = replications * ALONE, 0
    settings = (
        ("smoke, false alarm", Strictness.SMOKE, 0.0, Decision.FAIL, 0.06, (30, 45)),
        (
            "release, ships a drop = margin",
            Strictness.RELEASE,
            MARGIN,
            Decision.PASS,
            0.065,
            (45, 60),
        ),
    )
    for what, strictness, drop, wrong, bar, sizes in settings:
        for n in sizes:
            found = [gate_once(seed + r, n, strictness, drop) for r in range(whole)]
            other += sum(not same for _, same in found)
            status = {Decision.FAIL: 1, Decision.PASS: 0}[wrong]
            ended = float(np.mean([status == end for end, _ in found]))
            yield Row(f"end to end: {what}", f"n = {n}", ended, high=bar, replications=whole)
            d = differences(seed + whole, n, alone, drop)
            said = relative_decisions(d, MARGIN, strictness=strictness)
            rate = float((said == wrong).mean())
            yield Row(f"by formula: {what}", f"n = {n}", rate, high=bar, replications=alone)
    total = whole * sum(len(sizes) for *_, sizes in settings)
    yield Row("end to end: other than the formula says", f"{total} verdicts", float(other), high=0)

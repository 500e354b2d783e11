"""What the product saves of the real bill: calls that are not made, and under which conditions.

    python tests/bench/bench_tokens.py

Counted by the loopback server where a run is needed, by the package's own statistics where many
runs would be. Shares of calls avoided, in percent; there are no targets, the conditions decide.
"""

from __future__ import annotations

import asyncio
import json
import math
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from chat_server import ChatServer
from runner_jobs import endpoints, suite

from evalkit.cases.suite import load_suite
from evalkit.models.client import Client
from evalkit.models.store import CallStore
from evalkit.prompts import parse_prompt
from evalkit.runs.execute import execute
from evalkit.runs.plan import make_plan
from evalkit.stats.decision import Strictness
from evalkit.stats.intervals import wilson_interval
from evalkit.stats.sequential import ALPHA, sequential_decisions
from evalkit.stats.strata import stratified_mean

SHARES = {"easy": 0.40, "ambiguous": 0.25, "no_answer": 0.20, "adversarial": 0.15}
RATES = {"easy": 0.98, "ambiguous": 0.80, "no_answer": 0.90, "adversarial": 0.45}


def saved(what: str, avoided: float, when: str, **more: Any) -> dict[str, Any]:
    """One line of the table."""
    return {"what": what, "value": round(100 * avoided, 1), "target": None, "unit": "%",
            "met": None, "when": when, **more}  # fmt: skip


# -- counted by a server --------------------------------------------------------------------------


def judge_calls(
    folder: Path, reply: Any, *, repeats: int = 1, prompts: tuple[str, ...] = ("",)
) -> int:
    """Calls of the judge in one run after the other, one for each prompt."""
    asked = {"judge": 0}

    def answer(body: dict[str, Any]) -> str:
        if body["model"] == "judge":
            asked["judge"] += 1
            return json.dumps({"kind": {"justification": "it does", "verdict": "yes"}})
        return reply(body["messages"][-1]["content"])

    async def go(url: str) -> None:
        loaded = load_suite(folder)
        with CallStore(folder.parent / "calls.sqlite") as store:
            async with Client(endpoints(url, 16), store=store) as client:
                for text in prompts:
                    prompt = parse_prompt(text, "edited") if text else None
                    plan = make_plan(loaded, prompt=prompt, repeats=repeats, judges=True)
                    await execute(plan, client)

    with ChatServer(reply=answer, keep=False) as server:
        asyncio.run(go(server.base_url))
    return asked["judge"]


def hard_scorers_first(cases: int = 200) -> dict[str, Any]:
    """One reply in ten breaks the hard criterion; its case is not judged."""
    with tempfile.TemporaryDirectory() as name:
        folder = suite(Path(name) / "suite", cases)
        calls = judge_calls(
            folder, lambda asked: "broken" if asked.split(".")[0].endswith("7") else asked
        )
    when = "one reply in ten fails a hard criterion; as many as fail are saved"
    return saved("judge calls: hard scorers first", 1 - calls / cases, when, calls=calls)


def identical_text(cases: int = 100) -> list[dict[str, Any]]:
    """A judge is asked once for one text, whoever gave it and whenever."""
    with tempfile.TemporaryDirectory() as name:
        folder = suite(Path(name) / "suite", cases)
        repeated = judge_calls(folder, lambda asked: asked, repeats=3)
    with tempfile.TemporaryDirectory() as name:
        folder = suite(Path(name) / "suite", cases)

        def mostly_the_same(asked: str) -> str:
            text = asked.removeprefix("Please: ")
            changed = asked != text and text.split(".")[0].endswith(("1", "2"))
            return f"{text} Thank you." if changed else text

        prompts = ("", "# user\nPlease: {{ inputs.question }}\n")
        edited = judge_calls(folder, mostly_the_same, prompts=prompts) - cases
    return [
        saved("judge calls: three repeats at temperature 0", 1 - repeated / (3 * cases),
              "the model repeats itself word for word; sampled replies save what they share"),
        saved("judge calls: a prompt edit that changes few replies", 1 - edited / cases,
              "one reply in five reads otherwise after the edit; the run before is recorded"),
    ]  # fmt: skip


# -- reckoned -------------------------------------------------------------------------------------


def early_stopping(cases: int = 1000, draws: int = 400) -> list[dict[str, Any]]:
    """Calls of the candidate (and its judges) left when the comparison is settled."""
    rng, rows = np.random.default_rng(11), []
    for drop in (0.0, 0.05, 0.10):
        before = rng.random((draws, cases)) < 0.90
        flips = rng.random((draws, cases))
        worse = before & (flips < (drop + 0.03) / 0.90)
        better = ~before & (flips < 0.03 / 0.10)
        differences = better.astype(float) - worse
        _, used = sequential_decisions(
            differences, 0.05, strictness=Strictness.RELEASE, alpha_running=ALPHA
        )
        rows.append(
            saved(
                f"all calls: early stopping, true drop {100 * drop:.0f} points",
                1 - used.mean() / cases,
                f"{cases:,} cases, margin 5 points, release, baseline 90 %, 3 % flip each way; "
                "only where nothing else needs the whole set",
                median_cases=float(np.median(used)),
            )
        )
    return rows


def stratified_subsets(n: int = 120, draws: int = 400) -> dict[str, Any]:
    """Cases saved by drawing each stratum by its share, at the width of a plain sample of `n`."""
    rng = np.random.default_rng(12)
    widths: dict[str, list[float]] = {"plain": [], "stratified": []}
    for _ in range(draws):
        strata = rng.choice(len(SHARES), n, p=list(SHARES.values()))
        passed = int((rng.random(n) < np.array(list(RATES.values()))[strata]).sum())
        plain = wilson_interval(passed, n)
        scores = {h: (rng.random(round(n * w)) < RATES[h]).astype(float) for h, w in SHARES.items()}
        drawn = stratified_mean(scores, SHARES, method="wilson")
        widths["plain"].append(plain.ci_high - plain.ci_low)
        widths["stratified"].append(drawn.ci_high - drawn.ci_low)
    ratio = float(np.nanmean(widths["stratified"]) / np.mean(widths["plain"]))
    said = ", ".join(f"{name} {rate:.0%}" for name, rate in RATES.items())
    return saved("all calls: stratified subset of equal interval width", 1 - ratio**2,
                 f"{n} cases; pass rates {said}; nothing is saved where strata are alike",
                 width_ratio=round(ratio, 3), cases=math.ceil(n * ratio**2))  # fmt: skip


def main() -> list[dict[str, Any]]:
    """Every row."""
    return [hard_scorers_first(), *identical_text(), *early_stopping(), stratified_subsets()]


if __name__ == "__main__":
    print("| what | avoided | when |\n| --- | --- | --- |")
    for line in main():
        print(f"| {line['what']} | {line['value']:g} % | {line['when']} |")

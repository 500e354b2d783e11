"""What a whole run costs: cases asked, scored, judged and written, beside the bare loop.

    python tests/bench/bench_runner.py [repeats]

The floor runs in turn with evalkit, each with its own loopback server, in a process in which all
imports are done. BENCH_SCALE (default 100000) is the longest run of the scale rows;
BENCH_PEERS_PYTHON names an interpreter that has pydantic-evals.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench_calls import row, short_of_the_bound
from chat_server import ChatServer
from runner_jobs import imports, in_a_process, killed, medians


def main(repeats: int = 3) -> list[dict[str, Any]]:
    """Every row of the runner's table."""
    rows: list[dict[str, Any]] = []
    for concurrency, target in ((32, 1.10), (128, 1.15)):
        latency_s = 0.05
        got = medians(
            "pair", repeats, cases=1000, latency_s=latency_s, concurrency=concurrency, judges=False
        )
        ideal = 1000 * latency_s / concurrency
        rows.append(
            row(
                f"1,000 cases of 50 ms at {concurrency}, scored, store on: run / bare loop",
                got["ours"]["wall"] / got["floor"]["wall"],
                target,
                "x",
                seconds=got["ours"]["wall"],
                of_ideal=got["ours"]["wall"] / ideal,
                floor_of_ideal=got["floor"]["wall"] / ideal,
            )
        )
        seen = got["seen"]
        highest = seen["highest_concurrency"]
        said = f"calls at a time at {concurrency}: the highest, away from the bound"
        rows.append(row(said, abs(highest - concurrency), 0, "calls", highest=highest))
        rows.append(
            row(
                f"calls at a time at {concurrency}: 1 - mean / bound",
                1 - seen["mean_concurrency"] / concurrency,
                0.1,
                "",
                of_the_bare_loop=1 - got["floor"]["mean_concurrency"] / concurrency,
                why=short_of_the_bound(got["floor"]["mean_concurrency"], concurrency),
            )
        )
    slow = {"latency_s": 0.5, "concurrency": 128}
    seen = in_a_process("pair", {"cases": 1000, "judges": False, **slow})["seen"]
    rows.append(
        row(
            "calls at a time at 128, of 500 ms: 1 - mean / bound",
            1 - seen["mean_concurrency"] / 128,
            0.1,
            "",
        )
    )
    zero = medians(
        "pair",
        2 * repeats + 1,
        by="cpu",
        cases=1000,
        latency_s=0.0,
        concurrency=32,
        judges=False,
    )
    rows.append(
        row(
            "CPU a case at 0 ms, scorer and store: run / bare loop",
            zero["ours"]["cpu"] / zero["floor"]["cpu"],
            1.5,
            "x",
            cpu_ms=zero["ours"]["cpu"],
            floor_cpu_ms=zero["floor"]["cpu"],
            why="of what the loop does not do, the store takes most: a look-up, a commit and the "
            "way to its thread and back, so that kill -9 loses nothing; then prompt, key and row",
        )
    )
    judged = medians("pair", repeats, cases=1000, latency_s=0.05, concurrency=32, judges=True)
    rows.append(
        row(
            "+ one judge a case: run / bare loop of both calls",
            judged["ours"]["wall"] / judged["floor"]["wall"],
            1.15,
            "x",
            seconds=judged["ours"]["wall"],
            cpu_ms=judged["ours"]["cpu"],
            floor_cpu_ms=judged["floor"]["cpu"],
        )
    )
    rows.append(
        row(
            "the same again from a full store: seconds",
            judged["again"]["wall"],
            0.4,
            "s",
            cpu=judged["again"]["cpu"],
            same_bytes=judged["same"],
            why="two prompts, two keys, a verdict and a row a case: 0.4 ms of work, no waiting",
        )
    )
    rows.append(row("the same again from a full store: calls", judged["sent"], 0, "calls"))
    rows += peer_rows(zero, judged)
    kill = killed()
    rows.append(
        row(
            "kill -9 half way: stored replies asked for again",
            kill["stored_again"],
            0,
            "calls",
            kept=kill["kept"],
            asked=kill["asked"],
        )
    )
    rows.append(
        row(
            "kill -9 half way: resumed half, seconds over 1.15 of its ideal",
            kill["wall"] - 1.15 * kill["ideal"],
            0.5,
            "s",
            seconds=kill["wall"],
            ideal=kill["ideal"],
        )
    )
    cost = imports()
    rows.append(
        row(
            "import evalkit / import httpx, CPU",
            cost["evalkit"] / cost["httpx"],
            1.0,
            "x",
            ms=1000 * cost["evalkit"],
            httpx_ms=1000 * cost["httpx"],
        )
    )
    rows.append(row("heavy modules that import evalkit loads", cost["heavy"], 0, "modules"))
    rows += scale_rows()
    for cases, judges, target in (
        (60, False, 0.3),
        (60, True, 0.3),
        (2000, False, 1.5),
        (2000, True, None),
    ):
        got = in_a_process("cockpit", {"cases": cases, "judges": judges})
        beside = " and verdicts" if judges else ""
        said = f"prompt edited, {cases:,} replies{beside} recorded: new tables"
        rows.append(row(said, got["seconds"], target, "s"))
    rows.append(
        row(
            "a run of 100,000 rows opened: summed up and drawn",
            in_a_process("opening", {"rows": 100_000})["seconds"],
            3.0,
            "s",
        )
    )
    return rows


def scale_rows() -> list[dict[str, Any]]:
    """Time, CPU and memory a case at 1,000 cases and each power of ten beyond."""
    most, sizes = int(os.environ.get("BENCH_SCALE", "100000")), [1000]
    while sizes[-1] * 10 <= most:
        sizes.append(sizes[-1] * 10)
    got: dict[int, dict[str, Any]] = {}
    for n in sizes:
        settings = {"cases": n, "latency_s": 0.0, "concurrency": 128}
        tried = [in_a_process("scale", settings) for _ in range(3 if n <= 10_000 else 1)]
        got[n] = sorted(tried, key=lambda f: f["wall"])[len(tried) // 2]
    rows: list[dict[str, Any]] = []
    for small, large in pairwise(sizes):
        a, b = got[small], got[large]
        name = f"{small:,} to {large:,} cases"
        rows.append(
            row(
                f"{name}: seconds a case",
                b["wall"] / large / (a["wall"] / small),
                1.05,
                "x",
                ms=1000 * b["wall"] / large,
            )
        )
        rows.append(
            row(
                f"{name}: CPU a case",
                b["cpu"] / large / (a["cpu"] / small),
                1.0,
                "x",
                cpu_ms=1000 * b["cpu"] / large,
                why="the store's index grows a level deeper; single runs differ by 2 %",
            )
        )
        kb = (b["peak_kb"] - a["peak_kb"]) / (large - small)
        suite_kb = (b["loaded_kb"] - a["loaded_kb"]) / (large - small)
        rows.append(
            row(
                f"{name}: memory for each further case",
                kb,
                4.0,
                "KB",
                suite_kb=suite_kb,
                peak_mb=b["peak_kb"] / 1024,
            )
        )
    return rows


# The peers as measured once on such a machine at load 6 (performance.md of the project's shared
# measurements, tables "0 ms" and "with one LLM judge"): CPU milliseconds a case in the run, and
# those of the bare aiohttp loop beside them.
RECORDED = {
    "autoevals + braintrust": (2.59, 7.35),
    "deepeval": (4.57, 60.59),
    "inspect-ai": (31.08, 49.72),
    "promptfoo": (20.98, 19.44),
    "pydantic-evals": (2.27, 14.51),
    "ragas": (2.14, 12.91),
}
RECORDED_LOOP = (0.37, 1.21)
# Our own loop is httpx over aiohttp: by the same page 0.9 ms to the 0.48 ms of bare aiohttp.
LOOP_OVER_AIOHTTP = 0.9 / 0.48


def peer_rows(zero: Mapping[str, Any], judged: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Beside pydantic-evals of the same run, where it is installed, and what was recorded."""
    python = os.environ.get("BENCH_PEERS_PYTHON", "")
    rows: list[dict[str, Any]] = []
    if python and "pydantic-evals" in os.environ.get("BENCH_PEERS", "pydantic-evals"):
        cpu: list[float] = []
        for latency_s, judge in ((0.0, False), (0.05, True)):
            times = []
            for _ in range(3):
                with ChatServer(latency_s=latency_s, process=True) as server:
                    settings = json.dumps(
                        {"url": server.base_url, "cases": 1000, "concurrency": 32, "judge": judge}
                    )
                    out = subprocess.check_output(
                        [python, str(Path(__file__).with_name("peer_pydantic_evals.py")), settings]
                    )
                    times.append(json.loads(out.splitlines()[-1])["cpu"])
            cpu.append(statistics.median(times))
        rows.append(
            row(
                "CPU a case at 0 ms: evalkit / pydantic-evals, same run",
                zero["ours"]["cpu"] / cpu[0],
                1.0,
                "x",
                peer_cpu_ms=cpu[0],
            )
        )
        rows.append(
            row(
                "CPU a case with a judge: evalkit / pydantic-evals, same run",
                judged["ours"]["cpu"] / cpu[1],
                0.2,
                "x",
                peer_cpu_ms=cpu[1],
            )
        )
    for name, recorded in RECORDED.items():
        for what, ours, theirs, loop in zip(
            ("CPU a case", "CPU a case with a judge"), (zero, judged), recorded, RECORDED_LOOP,
            strict=True,
        ):  # fmt: skip
            ratio = ours["ours"]["cpu"] / ours["floor"]["cpu"] * LOOP_OVER_AIOHTTP
            said = f"{what}, in bare aiohttp loops: evalkit / {name} (recorded)"
            rows.append(row(said, ratio / (theirs / loop), 1.0, "x"))
    return rows


if __name__ == "__main__":
    for line in main(int(sys.argv[1]) if len(sys.argv) > 1 else 3):
        print(json.dumps(line), flush=True)

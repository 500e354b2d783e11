"""What bench_runner.py measures, each job in a process of its own: `runner_jobs.py JOB SETTINGS`.

A job prints one JSON object. Whatever it times begins after all imports.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench_calls import PROMPT, floor, pool
from chat_server import ChatServer
from mini_suite import write_suite

import evalkit.models.sending  # noqa: F401  # imports are not what is measured
from evalkit.cases.suite import load_suite
from evalkit.models.client import Client
from evalkit.models.endpoints import Endpoint, Endpoints
from evalkit.models.store import CallStore
from evalkit.records import Reply
from evalkit.runs.engines import DaskEngine, Engine
from evalkit.runs.execute import execute
from evalkit.runs.plan import Plan, make_plan
from evalkit.runs.workers import run_here

SCORED = (
    '[[criteria]]\nname = "code"\nscorer = "contains"\nexpected = "code"\nmin = 1.0\nhard = true\n'
)
JUDGED = SCORED + '[[criteria]]\nname = "kind"\njudge = "judges/kind.md"\nmin = 0.5\ngate = false\n'
JUDGE = """---
kind: criteria
model: srv/judge
criteria:
  kind: Does the reply name the item that was asked for?
---
# user
{{ inputs.question }}

{{ draft }}
"""


# -- pieces ---------------------------------------------------------------------------------------


def suite(folder: Path, cases: int) -> Path:
    """A suite of lookups, some 250 characters each, with a scorer and a judge."""
    lines = [
        {
            "id": f"c{i:06d}",
            "stratum": ("easy", "hard")[i % 2],
            "inputs": {"question": PROMPT.format(i=i, a=i % 97, b=i % 31, c=i % 52)},
            "expected": {"code": f"Case {i}."},
        }
        for i in range(cases)
    ]
    prompt = "# user\n{{ inputs.question }}\n"
    write_suite(folder, cases=lines, criteria=JUDGED, prompt=prompt)
    (folder / "judges").mkdir(exist_ok=True)
    (folder / "judges" / "kind.md").write_text(JUDGE)
    return folder


def endpoints(url: str, concurrency: int) -> Endpoints:
    """The server as the endpoint `srv`."""
    return Endpoints({"srv": Endpoint("srv", url, max_concurrency=concurrency)})


async def our_run(
    plan: Plan,
    url: str,
    concurrency: int,
    out: Path,
    on_row: Any = None,
    engine: Engine = run_here,
) -> dict[str, float]:
    """Wall and CPU seconds of one run with its store, and what it says of itself."""
    with CallStore(out / "calls.sqlite") as store:
        async with Client(endpoints(url, concurrency), store=store) as client:
            wall, cpu = time.perf_counter(), time.process_time()
            run = await execute(plan, client, runs=out / "runs", on_row=on_row, engine=engine)
            spent = time.perf_counter() - wall, time.process_time() - cpu
    assert run.errors == 0
    return {"wall": spent[0], "cpu": spent[1], "new": run.manifest.calls["new"]}


async def bare_loop(plan: Plan, url: str, concurrency: int) -> dict[str, float]:
    """The bare loop over the same requests; with judges the second call follows the first."""
    judge = next(iter(plan.judged.values()), None)
    pairs: list[list[Any]] = []
    for case, repeat in plan.observations():
        request = plan.request(case, repeat)
        told = judge.requests(case, Reply(request.messages[-1].content)) if judge else []
        pairs.append([request, *told])
    async with floor(url, concurrency) as ask:

        async def case(calls: Any) -> None:
            for call in calls:
                await ask(call)

        wall, cpu = time.perf_counter(), time.process_time()
        await pool(pairs, case, concurrency)
        return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def pair(cases: int, latency_s: float, concurrency: int, judges: bool) -> dict[str, Any]:
    """One floor and one run of evalkit in this process; then the same job from its full store."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = suite(folder / "suite", cases)
        with ChatServer(latency_s=latency_s, process=True) as server:
            bare = asyncio.run(
                bare_loop(make_plan(load_suite(made), judges=judges), server.base_url, concurrency)
            )
            bare["mean_concurrency"] = server.stats()["mean_concurrency"]
        with ChatServer(latency_s=latency_s, process=True) as server:
            plan = make_plan(load_suite(made), judges=judges)
            ours = asyncio.run(our_run(plan, server.base_url, concurrency, folder))
            seen = server.stats()
            plan = make_plan(load_suite(made), judges=judges)
            again = asyncio.run(our_run(plan, server.base_url, concurrency, folder))
            sent = server.stats()["requests"] - seen["requests"]
        files = sorted((folder / "runs").glob("*/rows.jsonl"))
        same = files[0].read_bytes() == files[1].read_bytes()
    return {"floor": bare, "ours": ours, "seen": seen, "again": again, "sent": sent, "same": same}


def scale(cases: int, latency_s: float, concurrency: int) -> dict[str, Any]:
    """One long run: seconds, CPU and memory, in all and on the way."""
    start, spent, done = 0.0, 0.0, 0
    curve: list[dict[str, float]] = []

    def sample(_: Any) -> None:
        nonlocal done
        done += 1
        if done % max(1, cases // 50) == 0:
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            point = {
                "cases": done,
                "seconds": time.perf_counter() - start,
                "CPU seconds": time.process_time() - spent,
                "MB": pages * resource.getpagesize() / 2**20,
            }
            curve.append({name: round(value, 2) for name, value in point.items()})

    with tempfile.TemporaryDirectory() as name:
        made = suite(Path(name) / "suite", cases)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with ChatServer(latency_s=latency_s, process=True) as server:
            plan = make_plan(load_suite(made))
            loaded = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            start, spent = time.perf_counter(), time.process_time()
            ours = asyncio.run(our_run(plan, server.base_url, concurrency, Path(name), sample))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {**ours, "before_kb": before, "loaded_kb": loaded, "peak_kb": peak, "curve": curve}


def on_dask(cases: int, latency_s: float, concurrency: int, workers: int) -> dict[str, Any]:
    """The same run here and on worker processes of this machine; CPU is the driver's alone."""
    from distributed import LocalCluster

    with tempfile.TemporaryDirectory() as name:
        made, found = suite(Path(name) / "suite", cases), {}
        with LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0"
        ) as cluster:
            far = DaskEngine(cluster.scheduler_address)
            for where, engine in (("warm", far), ("dask", far), ("here", run_here)):
                out = Path(name) / where
                with ChatServer(latency_s=latency_s, process=True) as server:
                    plan = make_plan(load_suite(made))
                    job = our_run(plan, server.base_url, concurrency, out, engine=engine)
                    found[where] = asyncio.run(job)
                    found[where]["concurrency"] = server.stats()["mean_concurrency"]
    return found


def one_run(folder: str, url: str, concurrency: int) -> dict[str, Any]:
    """A run on a suite and a store that are there already: what a restart does."""
    plan = make_plan(load_suite(folder))
    return asyncio.run(our_run(plan, url, concurrency, Path(folder).parent))


def cockpit(cases: int, judges: bool = False) -> dict[str, Any]:
    """Seconds from an edited prompt, its replies recorded, to the new tables."""
    from evalkit.report import fragments, tables
    from evalkit.runs.cockpit import Choices, Cockpit
    from evalkit.runs.comparison import compare_runs

    with tempfile.TemporaryDirectory() as name, ChatServer(process=True) as server:
        folder = Path(name)
        made = load_suite(suite(folder / "golden" / "mini", cases))
        desk = Cockpit(folder / "out", golden=folder / "golden", strict=True)
        desk.bench._endpoints = endpoints(server.base_url, 32)
        choices = Choices(made.task.model, cases, judges=judges)
        saved = str(made.prompt_path)
        texts = [made.prompt_path.read_text(), "# user\nPlease: {{ inputs.question }}\n"]

        async def tables_for(text: str, baseline: Any) -> Any:
            edited = desk.edit(made, saved, text)
            plan = desk.plan(made, edited, choices)
            desk.price(plan, choices, baseline)
            run = await desk.run(plan, choices, baseline)
            summary = run.summary()
            comparison = compare_runs(run, baseline, suite=made) if baseline else None
            fragments.verdict_html(summary, comparison)
            fragments.table(["criterion", "rate", "floor", "beside"], tables.criteria_rows(summary))
            first = [c.case_id for c in comparison.cases] if comparison else []
            tables.case_frame(run, baseline, first=first)
            return run

        first = asyncio.run(tables_for(texts[0], None))
        asyncio.run(tables_for(texts[1], first))
        times = []
        for text in (texts[0], texts[1], texts[0]):
            start = time.perf_counter()
            asyncio.run(tables_for(text, first))
            times.append(time.perf_counter() - start)
        desk.bench.close()
    return {"seconds": statistics.median(times)}


def opening(rows: int) -> dict[str, Any]:
    """Seconds until a run of many rows is on screen: loaded, summed up, its chart drawn."""
    from evalkit.report import charts, fragments, tables
    from evalkit.runs.run import load_run

    with tempfile.TemporaryDirectory() as name, ChatServer(process=True) as server:
        folder = Path(name)
        made = suite(folder / "suite", 1000)
        plan = make_plan(load_suite(made), judges=True)
        asyncio.run(our_run(plan, server.base_url, 32, folder))
        (run,) = (folder / "runs").iterdir()
        lines = (run / "rows.jsonl").read_text().splitlines()
        with (run / "rows.jsonl").open("w") as file:
            for k in range(rows // 1000):
                file.writelines(
                    x.replace('"case_id":"c', f'"case_id":"c{k:03d}') + "\n" for x in lines
                )
        manifest = json.loads((run / "manifest.json").read_text())
        manifest["sampling"]["n"] = rows
        (run / "manifest.json").write_text(json.dumps(manifest))
        import altair  # noqa: F401  # a notebook has it already

        start = time.perf_counter()
        summary = load_run(run).summary()
        fragments.verdict_html(summary, None)
        fragments.table(["criterion", "rate", "floor", "beside"], tables.criteria_rows(summary))
        charts.rates(summary).to_dict()
        spent = time.perf_counter() - start
        assert summary.n_rows == rows
    return {"seconds": spent}


def imports() -> dict[str, float]:
    """CPU milliseconds of the front door and of httpx, over a bare interpreter."""
    code = "import time; t = time.process_time(); import {}; print(time.process_time() - t)"
    times = {
        name: statistics.median(
            float(subprocess.check_output([sys.executable, "-c", code.format(name)]))
            for _ in range(7)
        )
        for name in ("evalkit", "httpx")
    }
    loaded = subprocess.check_output(
        [sys.executable, "-c", "import evalkit, sys; print(*sys.modules)"], text=True
    ).split()
    heavy = {"marimo", "pandas", "altair", "scipy", "sklearn", "httpx", "numpy"} & set(loaded)
    return {**times, "heavy": len(heavy)}


def killed(cases: int = 1000, latency_s: float = 0.05, concurrency: int = 32) -> dict[str, Any]:
    """Kill -9 half way, then the same command again."""
    with (
        tempfile.TemporaryDirectory() as name,
        ChatServer(latency_s=latency_s, process=True) as server,
    ):
        folder = suite(Path(name) / "suite", cases)
        settings = {"folder": str(folder), "url": server.base_url, "concurrency": concurrency}
        first = subprocess.Popen(command("one_run", settings), stdout=subprocess.DEVNULL)
        while server.stats()["answered"] < cases // 2:
            time.sleep(0.005)
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        stored = CallStore(folder.parent / "calls.sqlite")
        kept = stored.size().replies
        stored.close()
        before = server.stats()
        again = in_a_process("one_run", settings)
        after = server.stats()
    asked = after["requests"] - before["requests"]
    return {
        "kept": kept,
        "asked": asked,
        "stored_again": kept + asked - cases,
        "wall": again["wall"],
        "ideal": (cases - kept) * latency_s / concurrency,
    }


# -- processes ------------------------------------------------------------------------------------

JOBS: dict[str, Callable[..., dict[str, Any]]] = {
    f.__name__: f for f in (pair, scale, on_dask, one_run, cockpit, opening)
}


def command(job: str, settings: Mapping[str, Any]) -> list[str]:
    """The command line of a job."""
    return [sys.executable, __file__, job, json.dumps(settings)]


def in_a_process(job: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """A measurement in a fresh process."""
    return json.loads(subprocess.check_output(command(job, settings)))


def medians(job: str, repeats: int, *, by: str = "wall", **settings: Any) -> dict[str, Any]:
    """The measurement whose ratio to its own floor, in wall or cpu, is the median one."""
    found = [in_a_process(job, settings) for _ in range(repeats)]
    return sorted(found, key=lambda f: f["ours"][by] / f["floor"][by])[len(found) // 2]


if __name__ == "__main__":
    print(json.dumps(JOBS[sys.argv[1]](**json.loads(sys.argv[2]))))

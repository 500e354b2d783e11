"""Everything that is measured, each row beside its target: `make bench`.

    python tests/bench/run_bench.py [module ...]

Each `bench_*.py` runs in a process of its own. The rows go to exports/bench.json with the machine,
the load and the versions; an earlier file there is compared with. `BENCH_SCALE=10000` ends the
scale rows sooner, `BENCH_PEERS_PYTHON=<python>` runs pydantic-evals beside evalkit. The status is
0 whatever the rows say: a missed target is a finding, printed with how much it misses by.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
OUT = HERE.parents[1] / "exports" / "bench.json"
PARTS = ("evalkit", "httpx", "httpx-aiohttp", "aiohttp", "numpy", "scipy", "scikit-learn",
         "jinja2", "marimo", "pandas", "altair", "distributed")  # fmt: skip
CALL = "import json, sys, {0} as b\nfor row in b.main(): print('ROW', json.dumps(row), flush=True)"


def modules(wanted: list[str]) -> list[str]:
    """The benchmarks there are, or those that were named."""
    names = sorted(path.stem for path in HERE.glob("bench_*.py"))
    return [n for n in names if not wanted or n in wanted or n.removeprefix("bench_") in wanted]


def rows_of(module: str) -> Iterator[dict[str, Any]]:
    """The rows of one benchmark in one form: what, value, target, unit, met."""
    path = os.pathsep.join([str(HERE), str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    job = subprocess.Popen(
        [sys.executable, "-c", CALL.format(module)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path.rstrip(os.pathsep)},
    )
    assert job.stdout
    for line in job.stdout:
        if line.startswith("ROW "):
            yield in_one_form(module, json.loads(line[4:]))
    if job.wait():
        yield {"bench": module, "what": f"{module} ended with {job.returncode}", "value": None,
               "target": None, "unit": "", "met": False}  # fmt: skip


def in_one_form(module: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """A row whose benchmark names its columns otherwise (`ms`, `target_ms`, `holds`)."""
    value = row["value"] if "value" in row else row.get("ms")
    target = row["target"] if "target" in row else row.get("target_ms")
    unit = row.get("unit", "ms" if "ms" in row else "")
    met = row["met"] if "met" in row else row.get("holds")
    named = {"bench": module, "what": row["what"], "value": value, "target": target}
    named |= {"unit": unit, "met": met}
    seen = {*named, "ms", "target_ms", "holds"}
    named["load"] = round(os.getloadavg()[0], 1)
    return named | {k: v for k, v in row.items() if k not in seen or (k == "ms" and "value" in row)}


def machine() -> dict[str, Any]:
    """Where and with what this was measured."""
    found: dict[str, str] = {}
    for name in PARTS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    cpu = next(
        (line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if "model name" in line),
        platform.processor(),
    )
    return {
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{os.cpu_count()} x {cpu}, {platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load_before": round(os.getloadavg()[0], 2),
        "versions": found,
    }


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def shown(row: Mapping[str, Any], before: Mapping[str, float]) -> str:
    """One line: what, value, target, verdict, and the value of the earlier file."""
    value, target, unit = row["value"], row["target"], row["unit"]
    number = "-" if value is None else f"{value:,.4g}"
    verdict = "" if row["met"] is None else "holds" if row["met"] else "MISSES"
    if row["met"] is False and value is not None and target:
        verdict += f" by {100 * (value / target - 1):.0f} %"
    was = before.get(row["what"])
    change = f"  (was {was:,.4g})" if was is not None and value is not None else ""
    goal = "" if target is None else f"<= {target:g}"
    line = f"  {row['what'][:78]:<78} {number:>9} {unit:<7}{goal:<10} {verdict}{change}"
    why = row.get("why", "") if row["met"] is False else ""
    return f"{line}\n      why: {why}" if why else line


def main(wanted: list[str]) -> None:
    """Measure, print, compare, write."""
    earlier = json.loads(OUT.read_text()) if OUT.is_file() else {"rows": []}
    before = {r["what"]: r["value"] for r in earlier["rows"] if r["value"] is not None}
    about = machine()
    print(f"{about['machine']}; Python {about['python']}; load {about['load_before']}")
    if about["load_before"] > 1.5:
        print("  the machine is busy: compare ratios, not seconds")
    rows: list[dict[str, Any]] = []
    for module in modules(wanted):
        print(module)
        for row in rows_of(module):
            rows.append(row)
            print(shown(row, before), flush=True)
    if wanted:
        done = {row["bench"] for row in rows}
        rows = [r for r in earlier["rows"] if r["bench"] not in done] + rows
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")
    missed = [row for row in rows if row["met"] is False]
    print(f"{len(rows)} rows, {len(missed)} miss; written to {OUT.relative_to(OUT.parents[1])}")


if __name__ == "__main__":
    main(sys.argv[1:])

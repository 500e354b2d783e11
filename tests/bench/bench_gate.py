"""A cold gate on recorded replies: 60 cases x 3 as a script, and what of it is the package's own.

    python tests/bench/bench_gate.py

The own work is the script's processor time less that of a script which imports the same modules
and of the notebook engine around it: it is measured inside one process, from the session to the
written files.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from chat_server import ChatServer  # noqa: E402  the folder must be on the path first
from mini_suite import write_suite  # noqa: E402

OWN = """
import asyncio, sys, time
from pathlib import Path
import evalkit.report.gate as shown
from evalkit.runs.gate_session import GateOptions, GateSession
at, cpu = time.perf_counter(), time.process_time()
gate = GateSession(GateOptions("golden/mini"))
gated = asyncio.run(gate.run())
shown.write_gate(gated.result, gated.run.folder)
shown.gate_text(gated.result)
gate.close()
assert gated.result.manifest.calls["new"] == 0 and gated.result.status == 0, gated.result.sentence
heavy = {"sklearn", "scipy.stats", "httpx", "aiohttp", "pandas", "altair"} & set(sys.modules)
print(time.perf_counter() - at, time.process_time() - cpu, ",".join(sorted(heavy)) or "none")
"""

# marimo's script runner starts matplotlib wherever it is installed. The core dependencies do not
# have it, the developers' do: so it is hidden for what a user's CI job takes, and shown beside.
BARE = """
import runpy, sys
sys.modules["matplotlib"] = None
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def main() -> list[dict[str, Any]]:
    """Measure in turn; medians."""
    with tempfile.TemporaryDirectory() as folder, ChatServer() as server:
        root = Path(folder)
        (root / "pyproject.toml").write_text(
            f'[tool.evalkit.endpoints.srv]\nbase_url = "{server.base_url}"\n'
        )
        write_suite(root / "golden" / "mini", cases=60, repeats=3)
        script = [sys.executable, str(ROOT / "notebooks" / "gate.py"), "--suite", "golden/mini"]
        timed([*script, "--run-live", "--freeze"], root)
        sent = server.stats()["requests"]
        core = [sys.executable, "-c", BARE, *script[1:]]
        imports = [sys.executable, "-c", "import marimo, pandas, altair"]
        commands = {"core": core, "developer": script, "imports": imports}
        with_caches(root)
        for command in commands.values():
            timed(command, root)  # compiles what it imports, as the first job on a machine does
        rounds = [{n: timed(c, root) for n, c in commands.items()} for _ in range(5)]
        own = [
            subprocess.run(
                [sys.executable, "-c", OWN], cwd=root, check=True, capture_output=True, text=True
            ).stdout.split()
            for _ in range(3)
        ]
        assert server.stats()["requests"] == sent == 180
    wall, beside = (median(r[n][0] for r in rounds) for n in ("core", "developer"))
    ratio = median(r["core"][0] / r["imports"][0] for r in rounds)
    cpu, own_cpu = median(r["core"][1] for r in rounds), median(float(line[1]) for line in own)
    heavy = 0 if own[0][2] == "none" else len(own[0][2].split(","))
    return [
        _row("cold gate, 60 x 3 recorded, wall", wall, 6.0, "s"),
        _row("cold gate / importing marimo, pandas and altair, wall", ratio, 1.5, "x"),
        _row("the same where matplotlib is installed too", beside, 6.0, "s"),
        _row("cold gate, processor time", cpu, 6.0, "s"),
        _row("the gate's own work of it", own_cpu, 1.0, "s"),
        _row("heavy imports when nothing is sent", heavy, 0, ""),
    ]


def _row(what: str, value: float, target: float, unit: str) -> dict[str, Any]:
    return {"what": what, "value": value, "target": target, "unit": unit, "holds": value <= target}


def with_caches(folder: Path) -> None:
    """Compiled modules are kept, and in this folder: the tree stays as it is."""
    os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def timed(command: list[str], folder: Path) -> tuple[float, float]:
    """Wall and processor seconds of a command that ends with 0."""
    before, start = os.times(), time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    after = os.times()
    used = after.children_user + after.children_system
    used -= before.children_user + before.children_system
    return time.perf_counter() - start, used


if __name__ == "__main__":
    for row in main():
        print(f"{row['what']:60s} {row['value']:8.2f} {row['unit']:2s} target {row['target']}")

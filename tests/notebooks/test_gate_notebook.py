"""gate.py as a command and through its own cells: every exit status, and the files it leaves."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer
from mini_suite import write_suite

from evalkit.models.local import why_unavailable
from evalkit.params import GateParams
from evalkit.runs.ledger import read_ledger

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "notebooks" / "gate.py"
FLOOR = '[[criteria]]\nname = "says_word"\nscorer = "contains"\nexpected = "word"\nmin = 0.9\n'


class Project:
    """A folder with a suite whose model is the loopback server."""

    def __init__(self, root: Path, server: ChatServer) -> None:
        self.root, self.server = root, server
        (root / "pyproject.toml").write_text(
            f'[tool.evalkit.endpoints.srv]\nbase_url = "{server.base_url}"\nattempts = 1\n'
        )
        self.suite()

    def suite(self, criteria: str = FLOOR, **how: Any) -> None:
        write_suite(self.root / "golden" / "mini", criteria=criteria, **{"cases": 40, **how})

    def script(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(NOTEBOOK), "--suite", "golden/mini", *arguments],
            cwd=self.root,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
            env={**os.environ, "PYTHONWARNINGS": "error::ResourceWarning"},
        )


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    with ChatServer() as server:
        yield Project(tmp_path, server)


def last(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout.rstrip("\n").split("\n")[-1]


def test_0_a_pass_leaves_its_evidence_and_asks_nobody_twice(project: Project) -> None:
    first = project.script("--run-live", "--freeze", "--page", "exports/gate.html")
    assert (first.returncode, first.stderr.count("Traceback")) == (0, 0), first.stderr
    assert last(first) == "PASS (smoke): mini: says_word holds on 40 cases x 1."
    assert all(len(line) <= 100 for line in first.stdout.split("\n")[2:-3])
    assert "\x1b" not in first.stdout
    (run,) = (project.root / "exports" / "runs").iterdir()
    data = json.loads((run / "gate.json").read_text())
    assert (data["status"], data["criteria"][0]["word"]) == (0, "PASS")
    assert (run / "gate.md").read_text().startswith("### ✓ PASS (smoke)")
    assert "PASS" in (project.root / "exports" / "gate.html").read_text()
    ledger = project.root / "exports" / "eval_baseline.tsv"
    assert [e.passed for e in read_ledger(ledger)] == ["pass"]
    again = project.script()
    assert (again.returncode, project.server.stats()["requests"]) == (0, 40)
    assert len(read_ledger(ledger)) == 1


def test_1_a_shown_failure(project: Project) -> None:
    project.server.reply = lambda body: "something else"
    done = project.script("--run-live")
    assert done.returncode == 1
    assert last(done).startswith("FAIL (smoke): mini: says_word: below 90.0 %")


def test_2_usage(project: Project) -> None:
    for arguments in (["--strictness", "lax"], ["--sample", "1"]):
        done = project.script(*arguments)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr


def test_3_undecided_at_release(project: Project) -> None:
    project.suite(FLOOR.replace("0.9", "0.99"), cases=12)
    done = project.script("--run-live", "--strictness", "release")
    assert done.returncode == 3
    assert "cases are the fewest that can prove it" in last(done)


def test_4_not_measured_and_a_crash_in_a_cell(project: Project) -> None:
    done = project.script()
    assert done.returncode == 4
    assert "40 calls are not recorded" in last(done)
    (project.root / "sitecustomize.py").write_text(
        "import evalkit.runs.gate_session as s\n"
        "def broken(*_, **__): raise ZeroDivisionError('division by zero')\n"
        "s.decide = broken\n"
    )
    done = subprocess.run(
        [sys.executable, str(NOTEBOOK), "--suite", "golden/mini"],
        cwd=project.root,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(project.root)},
    )
    assert done.returncode == 4
    assert "This is a defect, not a verdict" in done.stderr


def test_4_a_refused_freeze_has_the_last_word(project: Project) -> None:
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "a suite"]):
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *who, *command], cwd=project.root, check=True)
    (project.root / "notes.txt").write_text("not committed")
    done = project.script("--run-live", "--freeze")
    assert done.returncode == 4
    assert "is not frozen: files outside exports/ are changed" in last(done)
    assert "PASS (smoke): mini" in done.stdout


def test_4_what_cannot_be_written_does_not_take_the_verdict_away(project: Project) -> None:
    (project.root / "exports" / "eval_baseline.tsv").mkdir(parents=True)
    done = project.script("--run-live", "--page", "pyproject.toml/page.html")
    assert done.returncode == 4
    printed = done.stdout.rstrip("\n").split("\n")
    assert printed[-4] == "PASS (smoke): mini: says_word holds on 40 cases x 1."
    assert printed[-2].startswith("broken: exports/eval_baseline.tsv: the ledger could not")
    assert printed[-1].startswith("broken: pyproject.toml/page.html: the page cannot be written")
    project.server.reply = lambda body: "something else"
    assert project.script("--run-live", "--seed", "8").returncode == 1


def cells(project: Project, monkeypatch: pytest.MonkeyPatch, **params: Any) -> Any:
    monkeypatch.chdir(project.root)
    spec = importlib.util.spec_from_file_location("gate_notebook", NOTEBOOK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.app.run(defs={"params": GateParams(suite="golden/mini", **params)})


def test_the_cells_end_with_the_status_and_the_gate_is_never_skipped(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit) as ended:
        cells(project, monkeypatch, run_live=True)
    assert ended.value.code == 0
    project.server.reply = lambda body: "something else"
    with pytest.raises(SystemExit) as ended:
        cells(project, monkeypatch, run_live=True, seed=8)
    assert ended.value.code == 1


def test_every_cell_is_thin() -> None:
    tree = ast.parse(NOTEBOOK.read_text("utf-8"))
    functions = [n for n in tree.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    assert all(len(f.body) <= 6 for f in functions)


@pytest.mark.local_model
@pytest.mark.simulation
@pytest.mark.skipif(bool(why_unavailable()), reason=why_unavailable() or "")
def test_the_weaker_prompt_against_the_frozen_better_one_on_a_real_model(tmp_path: Path) -> None:
    """Minutes: 24 cases of the shipped suite, one repeat, each prompt asked once."""
    suite = tmp_path / "golden" / "docs_qa"
    shutil.copytree(ROOT / "golden" / "docs_qa", suite)

    def gate(*arguments: str) -> dict[str, Any]:
        command = [sys.executable, str(NOTEBOOK), "--suite", str(suite), "--sample", "24"]
        done = subprocess.run(
            [*command, "--repeats", "1", "--run-live", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        newest = max((tmp_path / "exports" / "runs").iterdir(), key=lambda p: p.stat().st_mtime)
        data = json.loads((newest / "gate.json").read_text())
        assert data["status"] == done.returncode
        assert done.stdout.rstrip("\n").split("\n")[-1] == data["sentence"]
        return data

    gate("--freeze")
    weaker = gate("--prompt", "prompts/answer-weak.md")
    assert weaker["status"] == 1 or "would have been found" in json.dumps(weaker["criteria"])
    again = gate()
    assert again["run"]["calls"]["new"] == 0
    relative = [r for c in again["criteria"] for r in c["rulings"] if r["rule"] == "relative"]
    assert relative
    assert all(r["decision"] != "FAIL" for r in relative)


def test_the_history_of_the_ledger_as_a_script(project: Project) -> None:
    project.script("--run-live")
    project.server.reply = lambda body: "something else"
    project.script("--run-live", "--seed", "8")
    done = subprocess.run(
        [sys.executable, str(ROOT / "notebooks" / "history.py")],
        cwd=project.root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("says_word") == 2
    assert "drift" in done.stdout  # nothing that is recorded changed, and the score fell to 0

"""iterate.py as a script, through its own cells, and with everything that can be wrong with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from chat_server import ChatServer
from mini_suite import write_suite

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "notebooks" / "iterate.py"


def project(folder: Path, server: ChatServer | None = None, **suite: object) -> Path:
    """A project folder of its own: an endpoint, a golden suite, no git."""
    address = server.base_url if server else "http://127.0.0.1:9/v1"
    (folder / "pyproject.toml").write_text(
        f'[tool.evalkit.endpoints.srv]\nbase_url = "{address}"\nattempts = 1\n'
        "price_input_usd_per_mtok = 0.0\nprice_output_usd_per_mtok = 0.0\n"
    )
    write_suite(folder / "golden" / "mini", **suite)  # type: ignore[arg-type]
    return folder


def script(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(NOTEBOOK), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONWARNINGS": "default"},
    )


def test_a_script_runs_freezes_and_the_second_time_sends_nothing(tmp_path: Path) -> None:
    with ChatServer() as server:
        folder = project(tmp_path, server, cases=12)
        command = ("--suite", "golden/mini", "--sample", "8", "--freeze")
        first = script(folder, *command)
        second = script(folder, *command)
        assert server.stats()["requests"] == 8
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert "8 new calls, 0 recorded" in first.stdout
    assert "\n0 new calls, 8 recorded" in second.stdout
    assert "says_word" in first.stdout
    assert "marimo edit notebooks/iterate.py" in first.stdout
    assert "no case changed" in second.stdout
    assert max(map(len, first.stdout.splitlines())) <= 100
    assert "Warning" not in first.stderr + second.stderr
    table = [part.stdout.split("criterion ")[1].split("\n\n")[0] for part in (first, second)]
    assert table[0] == table[1]
    assert (folder / "exports" / "baselines" / "mini.jsonl").is_file()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--suite", "nowhere"), "no suite at 'nowhere'"),
        (("--suite", "golden/mini", "--sampel", "3"), "unrecognized arguments"),
        (("--suite", "golden/mini", "--sample", "0"), "0 is less than 1"),
        (("--suite", "golden/mini", "--prompt", "prompts/none.md"), "none.md"),
        (("--suite", "golden/mini", "--model", "nobody/m"), "nobody/m"),
    ],
)
def test_a_usage_error_is_one_sentence_and_status_2(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = script(project(tmp_path), *arguments)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_help_explains_every_flag(tmp_path: Path) -> None:
    done = script(tmp_path, "--help")
    assert done.returncode == 0
    for flag in ("--suite", "--sample", "--repeats", "--model", "--freeze", "--max-cost"):
        assert flag in done.stdout


def test_two_prompts_differ_and_the_cases_that_changed_are_named(tmp_path: Path) -> None:
    with ChatServer() as server:
        folder = project(tmp_path, server, cases=12)
        other = folder / "golden" / "mini" / "prompts" / "other.md"
        other.write_text("# user\nsay something else\n")
        script(folder, "--suite", "golden/mini", "--sample", "12", "--freeze")
        done = script(
            folder, "--suite", "golden/mini", "--sample", "12", "--prompt", "prompts/other.md"
        )
    assert done.returncode == 0, done.stderr
    assert "12 cases changed" in done.stdout
    assert "regression detected" in done.stdout
    assert "c000 worse" in done.stdout


def test_its_cells_run_in_this_process_and_hold_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evalkit.params import IterateParams

    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.chdir(tmp_path)
    from notebooks.iterate import app

    with ChatServer() as server:
        project(tmp_path, server, cases=10)
        params = IterateParams(suite="golden/mini", sample=6, out=str(tmp_path / "exports"))
        _, defs = app.run(defs={"params": params})
        assert server.stats()["requests"] == 6
    assert defs["summary"].n_cases == 6
    assert defs["summary"].criterion("says_word").rate.estimate == 1.0
    assert defs["run"].manifest.calls["new"] == 6


def test_an_endpoint_that_is_down_is_a_sentence_not_a_verdict(tmp_path: Path) -> None:
    done = script(project(tmp_path), "--suite", "golden/mini", "--sample", "4")
    assert done.returncode in (2, 4)
    assert "Traceback" not in done.stderr
    assert "127.0.0.1:9" in done.stderr

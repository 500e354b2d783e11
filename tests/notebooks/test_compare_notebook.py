"""compare.py as a script, through its own cells, and with everything that can be wrong with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from chat_server import ChatServer
from duel_suite import loud_wins, suite_with

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "notebooks" / "compare.py"
COMMAND = ("--suite", "golden/mini", "--a", "prompts/loud.md", "--b", "prompts/say.md")


def project(folder: Path, server: ChatServer | None = None) -> Path:
    """A project folder of its own: an endpoint, a golden suite with a judge, no git."""
    address = server.base_url if server else "http://127.0.0.1:9/v1"
    (folder / "pyproject.toml").write_text(
        f'[tool.evalkit.endpoints.srv]\nbase_url = "{address}"\nattempts = 1\n'
        "price_input_usd_per_mtok = 0.0\nprice_output_usd_per_mtok = 0.0\n"
    )
    suite_with(folder / "golden" / "mini")
    return folder


def script(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(NOTEBOOK), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        env={**os.environ, "PYTHONWARNINGS": "default"},
    )


def test_a_script_compares_writes_the_rows_and_the_second_time_sends_nothing(
    tmp_path: Path,
) -> None:
    with ChatServer(reply=loud_wins) as server:
        folder = project(tmp_path, server)
        first, second = (script(folder, *COMMAND) for _ in range(2))
        assert server.stats()["requests"] == 24
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert "24 new calls, 0 recorded" in first.stdout
    assert "0 new calls, 24 recorded" in second.stdout
    assert "flipped with the order: c001" in first.stdout
    for name in ("pairwise *", "always-first", "longer-wins", "random", "lexical"):
        assert f"\n{name} " in first.stdout
    assert max(map(len, first.stdout.splitlines())) <= 100
    assert "Warning" not in first.stderr + second.stderr
    (rows,) = (folder / "exports" / "compare").iterdir()
    assert len([json.loads(line) for line in rows.read_text().splitlines()]) == 7
    tables = [done.stdout.split("\n\n", 1)[1] for done in (first, second)]
    assert tables[0] == tables[1]
    assert not (folder / "golden" / "mini" / "labels").exists()  # no person, no label


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--suite", "golden/mini"), "two sides are needed"),
        ((*COMMAND, "--judge", "judges/none.md"), "none.md"),
        ((*COMMAND, "--judge", "judges/pairwise.md", "--model", "nobody/m"), "nobody"),
        (("--suite", "nowhere", *COMMAND[2:]), "no suite at 'nowhere'"),
        ((*COMMAND, "--one-odrer"), "unrecognized arguments"),
        ((*COMMAND[:4], "--b", "exports"), "holds no draft"),
    ],
)
def test_a_usage_error_is_one_sentence_and_status_2(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    (tmp_path / "exports").mkdir()
    done = script(project(tmp_path), *arguments)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_judge_that_gives_no_verdict_is_status_4_after_the_table(tmp_path: Path) -> None:
    def silent(body: dict[str, object]) -> str:
        return "I would rather not say." if body["model"] == "judge" else loud_wins(body)

    with ChatServer(reply=silent) as server:
        done = script(project(tmp_path, server), *COMMAND)
    assert done.returncode == 4
    assert "no pair has a verdict of pairwise" in done.stdout
    assert "Traceback" not in done.stderr


def test_its_cells_run_in_this_process_and_hold_the_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evalkit.params import CompareParams

    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.chdir(tmp_path)
    from notebooks.compare import app

    with ChatServer(reply=loud_wins) as server:
        project(tmp_path, server)
        params = CompareParams(
            suite="golden/mini", a="prompts/loud.md", b="prompts/say.md", out="exports"
        )
        _, defs = app.run(defs={"params": params})
    assert len(defs["duel"].keys) == 6
    assert defs["found"][0].wins == (4, 2, 0)
    assert defs["rows_file"].is_file()

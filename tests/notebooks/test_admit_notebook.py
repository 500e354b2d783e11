"""admit.py as a script and through its own cells: findings, refusals, what is kept and paid."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from chat_server import Answer, ChatServer

from evalkit.cases.suite import load_suite
from evalkit.judges import load_judge
from evalkit.models import local
from evalkit.runs.ledger import read_ledger
from evalkit.validity.licence_check import check_licence, use_of
from evalkit.validity.scoring import read_scores

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "notebooks" / "admit.py"
SHIPPED = ROOT / "golden" / "docs_qa"


def project(folder: Path, address: str = "http://127.0.0.1:9/v1") -> Path:
    """A project of its own: the shipped suite, judged by the loopback server."""
    (folder / "pyproject.toml").write_text(
        f'[tool.evalkit.endpoints.srv]\nbase_url = "{address}"\nattempts = 1\n'
        "price_input_usd_per_mtok = 0.0\nprice_output_usd_per_mtok = 0.0\n"
    )
    suite = folder / "golden" / "docs_qa"
    shutil.copytree(SHIPPED, suite, ignore=shutil.ignore_patterns("licences", "labels"))
    for file in (suite / "judges").glob("*.md"):
        file.write_text(file.read_text().replace("local/smollm2-135m-instruct", "srv/judge"))
    return folder


def agrees(body: dict[str, Any]) -> str:
    """A judge that says yes to everything, and always prefers the first draft."""
    shown = json.dumps(body)
    said = {"justification": "sounds fine", "verdict": "yes" if "faithful" in shown else "A"}
    return json.dumps({"faithful": said} if said["verdict"] == "yes" else said)


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


def test_an_eliminated_judge_is_a_finding_its_licence_permits_nothing_and_the_gate_refuses_it(
    tmp_path: Path,
) -> None:
    command = ("--judge", "judges/faithfulness.md", "--anchors", "anchors/faithfulness.csv")
    with ChatServer(reply=agrees) as server:
        folder = project(tmp_path, server.base_url)
        first = script(folder, *command, "--write-licence")
        sent = server.stats()["requests"]
        second = script(folder, *command)
        assert server.stats()["requests"] == sent == 61
    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    assert "ELIMINATED" in first.stdout
    for name in ("faithfulness", "always-first", "longer-wins", "random", "lexical"):
        assert f"\n{name}" in first.stdout
    assert "61 new calls of 61" in first.stdout
    assert "0 new calls of 61" in second.stdout
    assert "next: Rework the rubric" in first.stdout
    table = [line for line in first.stdout.splitlines() if not line.startswith("look at it")]
    assert max(map(len, table)) <= 100
    assert "Warning" not in first.stderr + second.stderr

    suite = load_suite(folder / "golden" / "docs_qa")
    judge = load_judge(suite.folder / "judges" / "faithfulness.md")
    ruling = check_licence(
        judge, suite.folder, domain=suite.domain, use=use_of(judge, "faithfulness")
    )
    assert not ruling.valid
    assert "not licensed for criterion:faithful but for nothing" in ruling.sentence
    (entry,) = read_ledger(folder / "exports" / "eval_baseline.tsv")  # the second run paid nothing
    assert (entry.metric, entry.passed, entry.n) == ("judge.kappa", "fail", 61)
    assert entry.judge_hash == judge.hash
    scores = read_scores(
        folder / f"exports/admissions/docs_qa/faithfulness.{judge.hash}.faithfulness.csv"
    )
    assert len(scores) == 61
    assert len(list((suite.folder / "licences" / "scores").glob("*.csv"))) == 5
    assert {score.judge for score in scores} == {"yes"}


def test_a_judge_that_compares_is_put_through_the_known_pairs_beside_the_trivial_ones(
    tmp_path: Path,
) -> None:
    with ChatServer(reply=agrees) as server:
        folder = project(tmp_path, server.base_url)
        done = script(folder, "--judge", "judges/pairwise.md")
    assert done.returncode == 0, done.stderr
    assert "known pairs: pairs (synthetic, 34)" in done.stdout
    assert "FAIL" in done.stdout
    assert "lexical (trivial)" in done.stdout
    (entry,) = read_ledger(folder / "exports" / "eval_baseline.tsv")
    assert (entry.metric, entry.passed, entry.threshold) == ("judge.recon", "fail", 0.7)
    assert not (folder / "golden" / "docs_qa" / "licences").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--judge", "judges/none.md"), "none.md"),
        (("--judge", "judges/relevance.md"), "no anchor that relevance can score"),
        (("--anchor", "x"), "unrecognized arguments"),
    ],
)
def test_a_usage_error_is_one_sentence_and_status_2(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = script(project(tmp_path), *arguments)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_judge_that_cannot_be_reached_is_broken_not_a_finding(tmp_path: Path) -> None:
    with ChatServer(reply=lambda _: Answer(status=503, body="down")) as server:
        folder = project(tmp_path, server.base_url)
        done = script(folder, "--sample", "4", "--write-licence")
    assert done.returncode == 4, done.stdout + done.stderr
    assert "4 of 4 calls got no reply" in done.stderr
    assert not (folder / "golden" / "docs_qa" / "licences").exists()
    assert not (folder / "exports" / "eval_baseline.tsv").exists()


def test_a_key_that_is_not_accepted_ends_with_2_and_one_sentence(tmp_path: Path) -> None:
    refused = Answer(status=401, body={"error": {"message": "bad key"}})
    with ChatServer(reply=lambda _: refused) as server:
        done = script(project(tmp_path, server.base_url), "--sample", "4")
    assert done.returncode == 2, done.stderr
    assert "the API key is not accepted" in done.stderr
    assert "Traceback" not in done.stderr
    assert "never retrieved" not in done.stderr


def test_its_cells_run_in_this_process_on_a_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evalkit.params import AdmitParams

    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.chdir(tmp_path)
    from notebooks.admit import app

    with ChatServer(reply=agrees) as server:
        project(tmp_path, server.base_url)
        params = AdmitParams(sample=12, out=str(tmp_path / "exports"))
        _, defs = app.run(defs={"params": params})
        assert server.stats()["requests"] == 12
    found = defs["result"].found
    assert [line.judge for line in found.lines][1:] == [
        "always-first",
        "longer-wins",
        "random",
        "lexical",
    ]
    assert "12 of the anchor's 61 items are scored" in defs["plan"].notes
    assert found.lines[0].state == "NOT_CERTIFIED"
    assert "too_few_minority_examples" in found.lines[0].reasons


@pytest.mark.local_model
@pytest.mark.skipif(bool(local.why_unavailable()), reason="no embedded model")
def test_the_embedded_model_gets_no_licence_from_a_few_items(tmp_path: Path) -> None:
    folder = project(tmp_path)
    (folder / "pyproject.toml").write_text(
        '[tool.evalkit.endpoints.local]\ndialect = "openai"\nfamily = "smollm"\n'
        "price_input_usd_per_mtok = 0.0\nprice_output_usd_per_mtok = 0.0\n"
    )
    model = ("--model", "local/smollm2-135m-instruct")
    done = script(folder, *model, "--sample", "2", "--write-licence")
    assert done.returncode == 0, done.stderr
    assert "faithfulness: NOT_" in done.stdout  # certified or assessable from 2 items is nobody
    (licence,) = (folder / "golden" / "docs_qa" / "licences").glob("*.json")
    assert json.loads(licence.read_text())["uses"] == []

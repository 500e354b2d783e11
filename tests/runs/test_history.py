"""Every step of a metric has its cause: code, prompt, model, cases, both, or none of them."""

from __future__ import annotations

import math
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from evalkit.report.history import (
    history_chart,
    history_frame,
    history_text,
    prompts_of,
    step_html,
)
from evalkit.runs.git import file_at
from evalkit.runs.history import series_of, series_of_entries
from evalkit.runs.ledger import LedgerEntry, append_entries

FIRST = LedgerEntry(
    date="2026-01-01T00:00:00+00:00",
    git_sha="a" * 12,
    prompt_hash="p1",
    metric="contract",
    name="docs_qa",
    score=0.9,
    threshold=0.8,
    passed="pass",
    model="srv/m",
    suite_digest="s1",
    n=60,
    ci_low=0.8,
    ci_high=0.95,
)


def after(day: int, **changes: object) -> LedgerEntry:
    return replace(FIRST, date=f"2026-01-{day:02d}T00:00:00+00:00", **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"git_sha": "b" * 12}, "code"),
        ({"app_version": "2"}, "code"),
        ({"git_sha": "a" * 12 + "+dirty"}, "code"),
        ({"prompt_hash": "p2"}, "prompt"),
        ({"prompt_hash": "p2", "git_sha": "b" * 12}, "both (prompt and code)"),
        ({"model": "srv/n"}, "model"),
        ({"suite_digest": "s2"}, "cases"),
        ({"model": "srv/n", "suite_digest": "s2"}, "model and cases"),
        ({"score": 0.85}, "none"),
        ({"score": 0.5, "ci_low": 0.4, "ci_high": 0.6}, "drift"),
        ({"score": math.nan, "ci_low": math.nan, "ci_high": math.nan}, "none"),
    ],
)
def test_a_step_is_attributed(changes: dict[str, object], cause: str) -> None:
    (series,) = series_of_entries([after(2, **changes), FIRST])
    assert [point.cause for point in series.points] == ["first", cause]


def test_metrics_are_kept_apart_and_filtered(tmp_path: Path) -> None:
    ledger = tmp_path / "eval_baseline.tsv"
    append_entries(ledger, [FIRST, after(2, metric="sources"), after(3, name="lab_report")])
    assert len(series_of(ledger)) == 3
    assert [s.title for s in series_of(ledger, suite="golden/docs_qa", metric="sources")] == [
        "docs_qa · sources"
    ]
    assert series_of(tmp_path / "none.tsv") == []
    text = history_text(series_of(ledger))
    assert all(len(line) <= 100 for line in text.split("\n"))
    assert "the ledger holds nothing yet" in history_text([])
    assert len(history_frame(series_of(ledger))) == 3
    assert history_frame([]).empty


def test_a_chart_draws_any_name_as_text() -> None:
    from evalkit.report.charts import svg

    odd = [replace(e, metric="<script>alert(1)</script>") for e in (FIRST, after(2, model="x"))]
    drawn = svg(history_chart(series_of_entries(odd)[0]))
    assert "<script>" not in drawn


def test_every_text_of_the_table_is_kept_from_becoming_a_picture() -> None:
    odd = dict.fromkeys(("git_sha", "prompt_hash", "metric", "name", "passed", "run_id"))
    entry = replace(FIRST, **dict.fromkeys(odd, "http://127.0.0.1/a.png"))  # type: ignore[arg-type]
    row = history_frame(series_of_entries([entry])).iloc[0].to_dict()
    assert [name for name, cell in row.items() if "://" in str(cell)] == []
    assert sum("127.0.0.1/a.png" in str(cell) for cell in row.values()) == len(odd)


def test_the_prompts_of_a_series_lie_in_a_suite_of_that_very_name(tmp_path: Path) -> None:
    suite = tmp_path / "golden" / "mini"
    (suite / "prompts").mkdir(parents=True)
    (tmp_path / "prompts").mkdir()

    def found(name: str) -> Path | None:
        return prompts_of(series_of_entries([replace(FIRST, name=name)])[0], suite.parent)

    assert found("mini") == suite / "prompts"
    for name in ("..", "../golden/mini", str(suite), "a\0b", "x" * 5000, ""):
        assert found(name) is None


def test_a_commit_that_is_none_names_no_file_and_gives_git_no_option(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for ref in ("--output=x", "<b>\0", "-h"):
        assert file_at(tmp_path / "a.md", ref) is None
    assert [path.name for path in tmp_path.rglob("*a.md")] == []


def test_a_step_shows_how_the_prompt_changed_between_its_commits(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
        done = subprocess.run(
            ["git", *identity, *arguments],
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull},
        )
        return done.stdout.strip()

    prompt = tmp_path / "prompts" / "answer.md"
    prompt.parent.mkdir()
    git("init", "-q")
    shas = []
    for text in ("Answer the question.\n", "Answer from the <b>pages</b>.\n"):
        prompt.write_text(text)
        git("add", "-A")
        git("commit", "-q", "-m", "x")
        shas.append(git("rev-parse", "HEAD")[:12])
    entries = [replace(FIRST, git_sha=shas[0]), after(2, git_sha=shas[1], prompt_hash="p2")]
    html = step_html(series_of_entries(entries)[0], 1, prompt.parent)
    assert "<del>question</del>" in html
    assert "&lt;b&gt;" in html
    assert f"git diff {shas[0]} {shas[1]}" in html

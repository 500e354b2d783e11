"""A run's lines for the ledger: one a criterion, with what the gate said of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalkit.errors import LedgerError
from evalkit.runs.gate_result import GateResult
from evalkit.runs.git import git_state
from evalkit.runs.ledger import LedgerEntry, append_entries, read_ledger
from evalkit.runs.run import Run
from evalkit.runs.summary import CriterionSummary

__all__ = ["append_run", "append_scores", "entries_of"]

PENDING = "ledger_pending.tsv"
"""In a run's folder: its lines for a ledger that could not be written."""


def entries_of(run: Run, result: GateResult | None = None) -> list[LedgerEntry]:
    """One entry a criterion that was measured; without a gate every one is `shown`."""
    words = {c.name: c.word for c in result.criteria} if result else {}
    rules = {c.name: c.rule for c in result.criteria} if result else {}
    return [
        _entry(run, criterion, words.get(criterion.name, "shown"), rules.get(criterion.name))
        for criterion in run.summary().criteria
    ]


def append_run(path: Path, run: Run, result: GateResult | None = None) -> int:
    """Append a real run to the ledger; returns how many lines.

    A run that sent no call, or whose replies came from a script, appends nothing: the ledger
    is what models did, and nothing stands in it twice. What could not be appended is kept in the
    run's folder; the next run beside it that can write takes it along.

    Raises:
        LedgerError: If the file is not a ledger or cannot be written; says where the lines are.
    """
    if run.folder is not None:
        _catch_up(path, run.folder.parent)
    if not run.manifest.calls.get("new") or run.manifest.origin == "scripted":
        return 0
    entries = entries_of(run, result)
    try:
        append_entries(path, entries)
    except LedgerError as error:
        raise LedgerError(f"{error} {_kept(run, entries)}") from error
    return len(entries)


def _kept(run: Run, entries: list[LedgerEntry]) -> str:
    if run.folder is None:
        return "The run was not kept on disk, so its lines are lost."
    try:
        append_entries(run.folder / PENDING, entries)
    except LedgerError as error:
        return f"Its lines could not be kept either: {error}"
    return f"Its lines are kept in {run.folder / PENDING}; the next run appends them."


def _catch_up(path: Path, runs: Path) -> None:
    """Append what earlier runs could not; what still cannot be written waits on."""
    for kept in sorted(runs.glob(f"*/{PENDING}")):
        with suppress(LedgerError):
            append_entries(path, read_ledger(kept), once=kept.parent.name)
            kept.unlink(missing_ok=True)


def append_scores(path: Path, scores: Iterable[Mapping[str, Any]], root: Path) -> None:
    """Append scores that tests of one's own recorded (name, score, threshold, n, test).

    Raises:
        LedgerError: If the file is not a ledger or cannot be written.
    """
    git, now = git_state(root), datetime.now(UTC).isoformat(timespec="seconds")
    entries: list[LedgerEntry] = []
    for found in scores:
        score, floor = float(found["score"]), found["threshold"]
        word = "shown" if floor is None else "pass" if score >= floor else "fail"
        entries.append(
            LedgerEntry(
                date=now,
                git_sha=git.sha[:12] + ("+dirty" if git.dirty else ""),
                prompt_hash="",
                metric=str(found["name"]),
                name=str(found["test"]),
                score=score,
                threshold=math.nan if floor is None else float(floor),
                passed=word,
                n=int(found["n"]),
            )
        )
    append_entries(path, entries)


def _entry(
    run: Run, criterion: CriterionSummary, word: str, rule: Mapping[str, object] | None
) -> LedgerEntry:
    manifest, rate = run.manifest, criterion.rate
    floor = (rule or criterion.rule).get("min")
    judge_hash = manifest.by.get(criterion.name, "") if criterion.layer == 2 else ""
    return LedgerEntry(
        date=manifest.created,
        git_sha=manifest.git_sha[:12] + ("+dirty" if manifest.dirty else ""),
        prompt_hash=str(manifest.prompt.get("hash", "")),
        metric=criterion.name,
        name=manifest.suite,
        score=rate.estimate,
        threshold=float(str(floor)) if floor is not None else math.nan,
        passed=word.lower() if word != "not compared" else "shown",
        model=manifest.model,
        app_version=manifest.app_version,
        suite_digest=manifest.suite_digest,
        judge_hash=judge_hash,
        n=rate.n_cases,
        ci_low=rate.ci_low,
        ci_high=rate.ci_high,
        run_id=manifest.run_id,
    )

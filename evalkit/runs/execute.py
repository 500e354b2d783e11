"""Run a plan: ask, score, judge, and write rows in case order as they come.

Who does the work is an engine's business; here rows are counted, put in order and written. Only
those that wait for a slower one before them are held.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from evalkit.counting import counted
from evalkit.errors import EvalkitError
from evalkit.models.client import Client
from evalkit.records import Reply, Row
from evalkit.runs.collecting import rare_collections
from evalkit.runs.early_stop import EarlyStop
from evalkit.runs.engines import Engine
from evalkit.runs.git import git_state
from evalkit.runs.manifest import Manifest, versions
from evalkit.runs.plan import Plan
from evalkit.runs.rows import row_to_json
from evalkit.runs.run import Run
from evalkit.runs.workers import Settled, Work, run_here

__all__ = ["Progress", "execute", "manifest_of", "new_run_folder"]

KEPT = 5_000  # rows of a longer run stay on disk
"""Rows up to this many are also kept in memory."""


@dataclass
class Progress:
    """What a person watches while a run goes on; the runner only counts."""

    total: int = 0
    done: int = 0
    errors: int = 0
    cut_off: int = 0
    started: float = 0.0

    @property
    def text(self) -> str:
        """One line: `15 of 24 · 2 cut off · 0 errors`."""
        said = f"{self.done} of {self.total} · {self.cut_off} cut off"
        return f"{said} · {counted(self.errors, 'error')}"

    def count(self, row: Row) -> None:
        """Take one finished row into account."""
        self.tick(row.reply)

    def tick(self, reply: Reply | None) -> None:
        """Take one reply into account, or one that never came."""
        self.done += 1
        self.errors += reply is None
        self.cut_off += reply is not None and reply.truncated


async def execute(
    plan: Plan,
    client: Client,
    *,
    runs: Path | None = None,
    baseline: Mapping[tuple[str, int], Reply] | None = None,
    on_row: Callable[[Row], None] | None = None,
    progress: Progress | None = None,
    created: datetime | None = None,
    early: EarlyStop | None = None,
    engine: Engine = run_here,
) -> Run:
    """Run a plan to its end and return the run; what was asked stays in the call store.

    Args:
        plan: What to run.
        client: Where calls go; open, with the store that keeps them.
        runs: Folder of runs; None keeps the run in memory only.
        baseline: The baseline's replies by case and repeat, for pairwise criteria.
        on_row: Called with each row in the order in which they finish.
        progress: Counts what is finished.
        created: Moment of the run; now by default.
        early: Looks after each case and may end the run; its order is kept before the first call.
        engine: Who does the work: this process, or `engine_of("dask")`.

    Raises:
        CallImpossible: If a call can never succeed (wrong key, model or address).
        EvalkitError: If a part of the plan is wrong. Rows that were written stay where they are.
    """
    progress = Progress() if progress is None else progress
    progress.total, progress.started = len(plan), time.monotonic()
    folder = new_run_folder(runs, plan, created) if runs else None
    client.run = folder.name if folder else client.run  # the store keeps who paid for a reply
    if early and folder:
        order = {"order_seed": early.seed, "order": early.order}
        (folder / "order.json").write_text(json.dumps(order) + "\n", encoding="utf-8")
    with rare_collections(), _Writer(folder, keep=len(plan) <= KEPT) as writer:

        def take(index: int, row: Row) -> None:
            progress.count(row)
            if on_row:
                on_row(row)
            if early is None:
                writer.put(index, row)
            elif early.see(index, row):
                raise Settled

        todo = early.observations(plan) if early else enumerate(plan.observations())
        work = Work(plan, client, todo, len(plan), take, baseline or {})
        with suppress(Settled):
            await engine(work)
        for index, row in enumerate(early.kept if early else ()):
            writer.put(index, row)
    manifest = manifest_of(
        early.reduced(plan) if early else plan,
        client,
        run_id=folder.name if folder else "",
        created=created,
        stopped=work.stopped,
        origin=work.origin,
    )
    if early:
        looks = {**manifest.sampling, "sequential": early.as_json()}
        manifest = replace(manifest, sampling=looks)
    if folder:
        text = json.dumps(manifest.as_json(), indent=2, ensure_ascii=False, sort_keys=True)
        (folder / "manifest.json").write_text(text + "\n", encoding="utf-8")
    return Run(manifest, folder, writer.kept)


class _Writer:
    """Rows in case order: written as soon as every row before them is there."""

    def __init__(self, folder: Path | None, *, keep: bool) -> None:
        self.path = folder / "rows.jsonl" if folder else None
        self.kept: list[Row] | None = [] if keep or folder is None else None
        self.waiting: dict[int, Row] = {}
        self.next = 0
        self.file: IO[str] | None = None

    def __enter__(self) -> _Writer:
        if self.path:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.file = self.path.open("w", encoding="utf-8", newline="\n")
        return self

    def __exit__(self, *_: object) -> None:
        if self.file:
            self.file.close()

    def put(self, index: int, row: Row) -> None:
        self.waiting[index] = row
        while (ready := self.waiting.pop(self.next, None)) is not None:
            self.next += 1
            if self.kept is not None:
                self.kept.append(ready)
            if self.file:
                self.file.write(row_to_json(ready) + "\n")


def manifest_of(
    plan: Plan,
    client: Client | None,
    *,
    run_id: str = "",
    created: datetime | None = None,
    stopped: str = "",
    origin: str = "model",
) -> Manifest:
    """Every pin of a run."""
    suite, prompt, sample = plan.suite, plan.prompt, plan.sample
    git = git_state(suite.folder)
    return Manifest(
        run_id=run_id,
        created=(created or datetime.now(UTC)).isoformat(timespec="seconds"),
        suite=suite.name,
        suite_folder=suite.folder.as_posix(),
        domain=suite.domain,
        suite_digest=suite.digest,
        thresholds=suite.thresholds(),
        thresholds_hash=suite.thresholds_hash,
        prompt={
            "name": prompt.name if prompt else suite.task.entry,
            "hash": prompt.hash if prompt else "",
            "draft": plan.draft,
            "language": str(prompt.header.get("language", "")) if prompt else "",
        },
        model=plan.model,
        app_version=suite.task.app_version,
        settings={"temperature": suite.task.temperature, "max_tokens": suite.task.max_tokens},
        sampling={
            "n": len(sample),
            "repeats": plan.repeats,
            "seed": plan.seed,
            "allocation": sample.allocation,
            "sizes": dict(sample.sizes),
            "population": dict(sample.population),
            "weights": dict(sample.weights),
        },
        git_sha=git.sha,
        dirty=git.dirty,
        by=plan.by,
        judges={
            judge.name: {
                "hash": judge.hash,
                "model": judge.model,
                "family": judge.family,
                "licence": plan.licences.get(judge.name, ""),
            }
            for judge in plan.judged.values()
        },
        scales={
            name: (min(judge.levels), max(judge.levels))
            for name, judge in plan.judged.items()
            if judge.levels
        },
        versions=versions(),
        origin=origin,
        calls=_calls(client) if client else {},
        stopped=stopped,
    )


def _calls(client: Client) -> dict[str, Any]:
    """What was paid, by model and purpose, and what was there already."""
    spend = client.spend
    return {
        "new": spend.calls,
        "recorded": spend.recorded,
        "missing": list(client.missing),
        "usd": spend.usd,
        "by": [
            {"model": model, "purpose": purpose, "calls": line.calls, "usd": line.usd}
            for (model, purpose), line in sorted(spend.lines.items())
        ],
    }


def new_run_folder(runs: Path, plan: Plan, created: datetime | None = None) -> Path:
    """A new folder for a run, named by moment, suite and what decides its numbers."""
    moment = (created or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
    stem = f"{moment}-{plan.suite.name}-{plan.fingerprint[:6]}"
    for number in range(1, 10_000):
        folder = runs / (stem if number == 1 else f"{stem}-{number}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        return folder
    raise EvalkitError(f"{runs}: no free name for run {stem}")

"""A run: its manifest and its rows, in memory or on disk."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from evalkit.errors import BaselineError, UsageError
from evalkit.records import Row, RowStatus
from evalkit.runs.manifest import Manifest
from evalkit.runs.rows import read_rows

if TYPE_CHECKING:
    from evalkit.runs.skimmed import SkimmedRow
    from evalkit.runs.summary import Summary

__all__ = ["Run", "list_runs", "load_run"]


@dataclass(frozen=True)
class Run:
    """Rows in case order, repeats inside a case, under one manifest.

    `kept` holds the rows of a small run; those of a large one stay on disk and are read in passing.
    """

    manifest: Manifest
    folder: Path | None = None
    kept: Sequence[Row] | None = field(default=None, repr=False)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.kept) if self.kept is not None else read_rows(self._file)

    def skim(self) -> Iterator[Row | SkimmedRow]:
        """The rows as far as counting needs them, read from disk ten times as fast."""
        if self.kept is not None:
            return iter(self.kept)
        from evalkit.runs.skimmed import skimmed_rows

        return skimmed_rows(self._file)

    @property
    def _file(self) -> Path:
        if self.folder is None:
            raise BaselineError(
                f"run {self.manifest.run_id}: its rows are neither kept nor on disk"
            )
        return self.folder / "rows.jsonl"

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """All rows in memory: for runs that a person looks at."""
        return tuple(self)

    @property
    def errors(self) -> int:
        """Rows without any reply."""
        return sum(row.status is RowStatus.MISSING for row in self.skim())

    def by_case(self) -> dict[str, tuple[Row, ...]]:
        """The rows of each case, by repeat."""
        found: dict[str, list[Row]] = {}
        for row in self:
            found.setdefault(row.case_id, []).append(row)
        return {case: tuple(rows) for case, rows in found.items()}

    def summary(self) -> Summary:
        """Totals, pass rates with intervals, per stratum and per case: `Summary` explains."""
        from evalkit.runs.summary import summarise

        return summarise(self)


def load_run(folder: Path | str, *, keep: int = 5_000) -> Run:
    """A run from its folder; rows of runs longer than `keep` stay on disk.

    Raises:
        UsageError: If there is no run.
        BaselineError: If its manifest or a row is damaged.
    """
    folder = Path(folder)
    if not (folder / "manifest.json").is_file():
        raise UsageError(f"no run at {str(folder)!r}: there is no manifest.json in it")
    try:
        manifest = Manifest.from_json(json.loads((folder / "manifest.json").read_text("utf-8")))
    except (ValueError, KeyError, TypeError) as error:
        raise BaselineError(f"{folder / 'manifest.json'}: not a manifest ({error}).") from error
    run = Run(manifest, folder)
    n = int(manifest.sampling.get("n", 0)) * int(manifest.sampling.get("repeats", 1))
    return run if n > keep else Run(manifest, folder, run.rows)


def list_runs(runs: Path, suite: str = "") -> list[Manifest]:
    """Manifests of the runs in a folder, newest first; damaged ones are passed over."""
    found: list[Manifest] = []
    for file in sorted(runs.glob("*/manifest.json"), reverse=True):
        try:
            manifest = Manifest.from_json(json.loads(file.read_text("utf-8")))
        except (ValueError, KeyError, TypeError):
            continue
        if suite in ("", manifest.suite):
            found.append(manifest)
    return sorted(found, key=lambda m: m.created, reverse=True)

"""The ledger: every real run appends its scores to one TSV, so that a metric has a history."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from evalkit.appending import append_lines, read_whole_lines
from evalkit.errors import LedgerError

__all__ = ["COLUMNS", "LedgerEntry", "append_entries", "read_ledger"]


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One score of one run. `score` and the bounds are in the metric's own unit; NaN is empty.

    `passed` is pass, fail, undecided, broken or shown, as the gate said.
    """

    date: str
    git_sha: str
    prompt_hash: str
    metric: str
    name: str
    score: float
    threshold: float
    passed: str
    model: str = ""
    app_version: str = ""
    suite_digest: str = ""
    judge_hash: str = ""
    n: int = 0
    ci_low: float = math.nan
    ci_high: float = math.nan
    run_id: str = ""


class _Held(Exception):
    """The ledger names the run already."""


COLUMNS = tuple(f.name if f.name != "passed" else "pass" for f in fields(LedgerEntry))
_NUMBERS = {"score", "threshold", "ci_low", "ci_high"}


def append_entries(path: Path, entries: Iterable[LedgerEntry], *, once: str = "") -> None:
    """Append entries whole, also when many processes write at once.

    Args:
        path: The ledger.
        entries: The entries.
        once: A run id; nothing is appended where the ledger names it already.

    Raises:
        LedgerError: If the file is not a ledger or cannot be written.
    """

    def check(held: str) -> None:
        if once and any(line.endswith(f"\t{once}") for line in held.split("\n")):
            raise _Held

    lines = ["\t".join(_cell(getattr(e, f.name)) for f in fields(LedgerEntry)) for e in entries]
    if not lines:
        return
    try:
        if path.exists() and path.stat().st_size:
            _check_head(path)
        # a run id cut short still looks whole, so that only a line end proves a line
        append_lines(path, lines, head="\t".join(COLUMNS), check=check)
    except _Held:
        return
    except OSError as error:
        raise LedgerError(f"{path}: the ledger could not be written: {error.strerror}.") from error


def read_ledger(path: Path) -> list[LedgerEntry]:
    """Every whole entry in order; an absent ledger has none, a line cut short is passed over.

    Raises:
        LedgerError: If the file is not a ledger; names the line.
    """
    if not path.exists():
        return []
    try:
        if path.stat().st_size:
            _check_head(path)
        lines = read_whole_lines(path)[1:]
    except OSError as error:
        raise LedgerError(f"{path}: the ledger could not be read: {error.strerror}.") from error
    entries: list[LedgerEntry] = []
    for number, line in enumerate(lines, start=2):
        if not line:
            continue
        try:
            entries.append(_entry(line))
        except (ValueError, IndexError) as error:
            raise LedgerError(
                f"{path}:{number}: this line is not an entry ({error}). Restore it from version "
                "control, or delete the line."
            ) from error
    return entries


def _check_head(path: Path) -> None:
    with path.open(encoding="utf-8", errors="replace") as file:
        head = file.readline().rstrip("\n").split("\t")
    if head != list(COLUMNS):
        raise LedgerError(
            f"{path}: the first line does not name the ledger's columns ({', '.join(COLUMNS)}). "
            "It is left untouched: move it away, or restore it from version control."
        )


def _entry(line: str) -> LedgerEntry:
    cells = line.split("\t")
    if len(cells) != len(COLUMNS):
        raise ValueError(f"{len(cells)} cells instead of {len(COLUMNS)}")
    values: dict[str, Any] = {}
    for spec, cell in zip(fields(LedgerEntry), cells, strict=True):
        if spec.name in _NUMBERS:
            values[spec.name] = float(cell) if cell else math.nan
        else:
            values[spec.name] = int(cell or 0) if spec.name == "n" else cell
    return LedgerEntry(**values)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.10g}"
    text = str(value).replace("\t", " ").replace("\r", " ").replace("\n", " ")
    return f"'{text}" if text[:1] in {"=", "+", "@"} else text  # a spreadsheet would run it

"""Promotion of a gated run to the baseline: an explicit step that can be refused."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from evalkit.errors import BaselineError
from evalkit.runs.baseline import freeze
from evalkit.runs.gate_result import GateResult
from evalkit.runs.run import Run

__all__ = ["Promotion", "promote", "refusal"]


@dataclass(frozen=True)
class Promotion:
    """What became of the wish to freeze: nothing was asked, it was done, or it was refused."""

    said: str = ""
    refused: bool = False


def refusal(result: GateResult, *, first: bool) -> str:
    """Why the gate's verdict forbids to promote its run, or "".

    Args:
        result: What the gate said.
        first: Whether there is no baseline yet. A first one may lie below its floors, marked so;
            what it could not be compared with does not stop it.
    """
    looks = result.manifest.sampling.get("sequential")
    if looks and looks["looked_at"] < looks["planned"]:
        return "it stopped early, so it lacks cases. Run it with --sequential off."
    if result.passed:
        return ""
    if not first:
        return f"the gate did not pass it: {result.sentence}"
    broken = [c.name for c in result.criteria if c.gate and c.word == "BROKEN"]
    broken = [n for n in broken if not _waits_for_a_baseline(result, n)]
    if broken or any("nothing was decided" not in text for text in result.problems):
        return f"it was not measured: {result.sentence}"
    return ""


def promote(result: GateResult, run: Run, path: Path, *, allow_dirty: bool = False) -> str:
    """Freeze a run that the gate let through; returns one sentence.

    Raises:
        BaselineError: If the gate or the run itself forbids it; says why and what to do.
    """
    first = not path.is_file()
    if why := refusal(result, first=first):
        raise BaselineError(f"run {run.manifest.run_id or '(in memory)'} is not frozen: {why}")
    marks = result.failed_floors if first else ()
    freeze(run, path, allow_dirty=allow_dirty, failed_floors=marks)
    said = f"frozen as {path.as_posix()}"
    if marks:
        said += f", marked: a first baseline below its floors ({', '.join(marks)})"
    return f"{said}. Commit the file to make it the baseline."


def _waits_for_a_baseline(result: GateResult, name: str) -> bool:
    found = next(c for c in result.criteria if c.name == name)
    return bool(found.not_compared)

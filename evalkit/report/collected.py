"""Runs of single cases, brought together from several processes, ruled on once and told once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalkit.cases.suite import Suite, load_suite
from evalkit.errors import EvalkitError, LedgerError
from evalkit.report.gate import gate_text
from evalkit.runs.baseline import baseline_path, load_baseline
from evalkit.runs.gate import decide
from evalkit.runs.ledger_entries import append_run
from evalkit.runs.manifest import Manifest
from evalkit.runs.one_case import merged
from evalkit.runs.rows import row_from_json, row_to_json
from evalkit.runs.run import Run

__all__ = ["packed", "ruling_on"]


def packed(suite: Suite, run: Run) -> dict[str, Any]:
    """A run as plain values that another process can read."""
    return {
        "suite": str(suite.folder),
        "manifest": json.dumps(run.manifest.as_json()),
        "rows": [row_to_json(row) for row in run],
    }


def ruling_on(
    sent: Sequence[Mapping[str, Any]], folder: str, out: Path, strictness: str
) -> tuple[str, bool]:
    """What the gate says of all runs of a suite, and whether it passed.

    Only a run of every case of the suite goes into the ledger.
    """
    try:
        suite = load_suite(folder)
        run = merged([_unpacked(one) for one in sent if one["suite"] == folder], suite)
        baseline = load_baseline(baseline_path(out, suite.name))
        result = decide(run, suite, baseline=baseline, strictness=strictness)
    except EvalkitError as error:
        return f"BROKEN: {error}", False
    if run.manifest.sampling["n"] == len(suite.cases):
        try:
            append_run(out / "eval_baseline.tsv", run, result)
        except LedgerError as error:
            return f"{gate_text(result)}\n\nBROKEN: {error}", False
    return gate_text(result), result.passed


def _unpacked(sent: Mapping[str, Any]) -> Run:
    rows = [row_from_json(line) for line in sent["rows"]]
    return Run(Manifest.from_json(json.loads(sent["manifest"])), None, rows)

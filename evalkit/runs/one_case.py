"""Runs of one case each, put together again: what the pytest plugin does between its hooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from evalkit.cases.suite import Suite
from evalkit.records import Case, Row, Score
from evalkit.runs.gate_result import GateResult
from evalkit.runs.plan import Plan
from evalkit.runs.run import Run

__all__ = ["broken_rules", "case_plan", "failure_text", "gate_failure", "merged"]

LONGEST = 600


def case_plan(plan: Plan, case: Case) -> Plan:
    """The part of a plan that asks one case; requests and seeds are those of the whole."""
    sizes = {name: int(name == case.stratum) for name in plan.sample.sizes}
    return replace(plan, sample=replace(plan.sample, cases=(case,), sizes=sizes))


def merged(runs: Sequence[Run], suite: Suite) -> Run:
    """One run from runs of single cases, in the suite's order; a case twice counts once."""
    rows: dict[str, list[Row]] = {}
    for run in runs:
        for row in run:
            kept = rows.setdefault(row.case_id, [])
            if all(row.repeat != other.repeat for other in kept):
                kept.append(row)
    cases = [case for case in suite.cases if case.id in rows]
    first = runs[0].manifest
    sizes = {name: sum(c.stratum == name for c in cases) for name in first.sampling["sizes"]}
    repeats = max(len(found) for found in rows.values())
    manifest = replace(
        first,
        sampling={**first.sampling, "n": len(cases), "sizes": sizes, "repeats": repeats},
        calls={
            "new": sum(run.manifest.calls.get("new", 0) for run in runs),
            "recorded": sum(run.manifest.calls.get("recorded", 0) for run in runs),
            "missing": [line for run in runs for line in run.manifest.calls.get("missing", ())],
        },
        stopped=next((run.manifest.stopped for run in runs if run.manifest.stopped), ""),
        origin=next((r.manifest.origin for r in runs if r.manifest.origin != "model"), "model"),
    )
    ordered = [row for case in cases for row in sorted(rows[case.id], key=lambda r: r.repeat)]
    return Run(manifest, None, ordered)


def broken_rules(run: Run) -> list[tuple[Row, str, Score]]:
    """Every observation that breaks what may never break: hard criteria, floors at the top."""
    rules = run.manifest.thresholds
    return [
        (row, name, score)
        for row in run
        for name, score in row.scores.items()
        if (rules.get(name, {}).get("hard") or rules.get(name, {}).get("min") == 1.0)
        and rules[name].get("gate", True)
        and score.value != 1.0
    ]


def failure_text(
    head: str, found: Iterable[tuple[Row, str, str]], cases: Mapping[str, Case], *, most: int = 5
) -> str:
    """A failure as a person needs it: the case, the reply and the finding."""
    entries = list(found)
    lines = [head]
    for row, criterion, reason in entries[:most]:
        case = cases.get(row.case_id)
        lines.append(f"\ncase {row.case_id} ({row.stratum}), repeat {row.repeat}: {criterion}")
        lines += [f"  {k}: {_short(v)}" for k, v in (case.inputs if case else {}).items()]
        lines.append(f"  reply: {_short(row.reply.text) if row.reply else 'none: ' + row.error}")
        lines.append(f"  finding: {_short(reason)}")
    if len(entries) > most:
        lines.append(f"\n... and {len(entries) - most} more")
    return "\n".join(lines)


def gate_failure(result: GateResult, run: Run, suite: Suite) -> str:
    """The same for a run that the gate did not let through."""
    rows = {(row.case_id, row.repeat): row for row in run}
    looks = [(rows[k.case_id, k.repeat], k.criterion, k.reason) for k in result.look_at]
    return failure_text(result.sentence, looks, {case.id: case for case in suite.cases})


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text)} characters)"

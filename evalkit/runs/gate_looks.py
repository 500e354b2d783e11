"""What to open first after a gate: the observations behind what did not pass."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from evalkit.runs.gate_result import CriterionResult, Look
from evalkit.runs.matrix import criterion_scores
from evalkit.runs.run import Run
from evalkit.stats.decision import Decision

__all__ = ["looks"]

MOST = 12
WORTH_A_LOOK = (Decision.FAIL.value, Decision.BROKEN.value, Decision.UNDECIDED.value)


def looks(run: Run, results: Sequence[CriterionResult], baseline: Run | None) -> tuple[Look, ...]:
    """At most one observation a case, failed criteria first, lowest scores first.

    Where only the comparison with the baseline failed, cases that were as bad before are no news.
    """
    listed = bool(run.manifest.calls.get("missing"))  # named once already, call by call
    wanted = {r.name: r for r in results if r.gate and r.word in WORTH_A_LOOK}
    failed = {name for name, r in wanted.items() if r.word == Decision.FAIL.value}
    news = _dropped(run, baseline, [n for n in failed if not wanted[n].misses_floor])
    order = {name: i for i, name in enumerate(sorted(wanted, key=lambda n: n not in failed))}
    found = [
        (order[name], 2.0 if score.value is None else score.value, index, row, name, score)
        for index, row in enumerate(run)
        for name, score in row.scores.items()
        if name in wanted
        and (score.value is None or score.value < 1.0)
        and not (row.reply is None and (listed or name in failed))
        and row.case_id in news.get(name, (row.case_id,))
    ]
    found.sort(key=lambda entry: entry[:3])
    first = {
        row.case_id: Look(row.case_id, row.repeat, name, score.reason)
        for _, _, _, row, name, score in reversed(found)
    }
    seen = dict.fromkeys(entry[3].case_id for entry in found)
    return tuple(first[case] for case in seen)[:MOST]


def _dropped(run: Run, baseline: Run | None, names: Sequence[str]) -> dict[str, Collection[str]]:
    """The cases of each criterion whose mean is below the baseline's."""
    if baseline is None or not names:
        return {}
    now = criterion_scores(run, run.manifest)
    then = criterion_scores(baseline, baseline.manifest)
    found: dict[str, Collection[str]] = {}
    for name in names:
        was = then[name].means() if name in then else {}
        found[name] = {
            case
            for case, mean in now[name].means().items()
            if mean is not None and (before := was.get(case)) is not None and mean < before
        }
    return found

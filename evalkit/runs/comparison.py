"""A run beside its baseline: what can be compared, how criteria moved, which cases changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evalkit.cases.suite import Suite
from evalkit.hashing import short_hash
from evalkit.records import Row
from evalkit.runs.baseline import Comparability, comparability
from evalkit.runs.matrix import CriterionScores, criterion_scores
from evalkit.runs.run import Run
from evalkit.stats.compare import Comparison, compare_paired
from evalkit.stats.pairs import Pairs, pair_up
from evalkit.stats.wording import comparison_sentence

__all__ = ["CaseChange", "RunComparison", "case_contents", "compare_runs", "paired"]


@dataclass(frozen=True)
class CaseChange:
    """One case now and then: the criteria whose mean moved, and by how much (now minus then)."""

    case_id: str
    stratum: str
    moved: Mapping[str, float]

    @property
    def direction(self) -> str:
        """better, worse, or mixed when criteria moved both ways."""
        signs = {change > 0 for change in self.moved.values()}
        return "mixed" if len(signs) > 1 else "better" if True in signs else "worse"


@dataclass(frozen=True)
class RunComparison:
    """A run against a baseline.

    `changes` and `sentences` are by criterion, for those that can be compared; `cases` are those
    that moved, worse ones first.
    """

    pins: Comparability
    changes: Mapping[str, Comparison] = field(default_factory=dict)
    sentences: Mapping[str, str] = field(default_factory=dict)
    cases: tuple[CaseChange, ...] = ()


def compare_runs(run: Run, baseline: Run, *, suite: Suite | None = None) -> RunComparison:
    """Compare what can be compared, case by case; the rest is named in `pins`.

    Args:
        run: The run.
        baseline: The frozen run.
        suite: Where case contents come from, so that copied cases count once.
    """
    pins = comparability(run.manifest, baseline.manifest)
    now = criterion_scores(run, run.manifest)
    then = criterion_scores(baseline, baseline.manifest)
    contents = case_contents(suite) if suite else {}
    changes: dict[str, Comparison] = {}
    sentences: dict[str, str] = {}
    moved: dict[str, dict[str, float]] = {}
    for name in now:
        if (
            name not in then
            or pins.why_not(name)
            or now[name].score_range != then[name].score_range
        ):
            continue
        pairs = paired(then[name], now[name], contents)
        changes[name] = compare_paired(pairs)
        sentences[name] = comparison_sentence(changes[name], span=pairs.span)
        before = then[name].means()
        for case, mean in now[name].means().items():
            was = before.get(case)
            if mean is not None and was is not None and abs(mean - was) > 1e-12:
                moved.setdefault(case, {})[name] = mean - was
    strata = _strata(run)
    found = [CaseChange(case, strata[case], change) for case, change in moved.items()]
    found.sort(key=lambda c: (("worse", "mixed", "better").index(c.direction), c.case_id))
    return RunComparison(pins, changes, sentences, tuple(found))


def paired(
    then: CriterionScores,
    now: CriterionScores,
    contents: Mapping[str, str],
) -> Pairs:
    """One criterion of two runs joined by case id; copies of a case count once."""
    both = [case for case in now.values if case in then.values]
    return pair_up(
        then.values,
        now.values,
        score_range=now.score_range,
        baseline_status=then.words,
        candidate_status=now.words,
        clusters={case: now.cluster[case] for case in both},
        content={case: contents.get(case, case) for case in both} if contents else None,
        allow_partial=True,
    )


def case_contents(suite: Suite) -> dict[str, str]:
    """A hash of what goes into each case and what is expected of it."""
    return {
        case.id: short_hash(
            {
                "inputs": dict(case.inputs),
                "context": [[page.id, page.text] for page in case.context],
                "material": dict(case.material),
                "expected": dict(case.expected),
            }
        )
        for case in suite.cases
    }


def _strata(rows: Run) -> dict[str, str]:
    found: dict[str, str] = {}
    row: Row
    for row in rows:
        found[row.case_id] = row.stratum
    return found

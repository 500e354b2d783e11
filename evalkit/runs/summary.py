"""A run in numbers: rates with intervals per criterion and stratum, and every case in two layers.

Layer 1 is what deterministic scorers measured, layer 2 what judges said. Errors and unreadable
verdicts are counted beside the rates, never averaged in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from evalkit.records import RowStatus, ScoreStatus
from evalkit.runs.collecting import rare_collections
from evalkit.runs.matrix import CriterionScores, criterion_scores
from evalkit.stats.repeats import pass_rate
from evalkit.stats.result import Interval
from evalkit.stats.strata import stratified_mean

if TYPE_CHECKING:
    from evalkit.runs.run import Run

__all__ = ["CaseSummary", "CriterionSummary", "Summary", "summarise", "traffic_weights"]


@dataclass(frozen=True)
class CriterionSummary:
    """One criterion of one run.

    `rate` speaks of the traffic: weighted by the mix where the sample was not proportional. A case
    stopped by a hard criterion scores lowest in it; `among_judged` leaves such cases out. `counts`
    maps a score's status to how many there are. `failing` are case and repeat below the pass mark.
    """

    name: str
    layer: int
    rate: Interval
    by_stratum: Mapping[str, Interval]
    counts: Mapping[str, int]
    failing: tuple[tuple[str, int], ...]
    rule: Mapping[str, Any]
    score_range: tuple[float, float] = (0.0, 1.0)
    among_judged: Interval | None = None

    @property
    def unmeasured(self) -> int:
        """Observations without a score: missing, unscored or not measured."""
        named = (ScoreStatus.MISSING, ScoreStatus.UNSCORED, ScoreStatus.NOT_MEASURED)
        return sum(self.counts.get(status.value, 0) for status in named)


@dataclass(frozen=True)
class CaseSummary:
    """One case: the mean of each criterion over its repeats, scorers and judges apart."""

    case_id: str
    stratum: str
    layer1: Mapping[str, float | None]
    layer2: Mapping[str, float | None]
    passed: bool | None


@dataclass(frozen=True)
class Summary:
    """A run's totals, its criteria and its cases.

    `pass_rate` is the share of cases in which every criterion of layer 1 that decides passed, in
    every repeat; `average` the mean of the criteria's estimates of layer 1.
    """

    run_id: str
    n_cases: int
    n_rows: int
    errors: int
    system_errors: int
    cut_off: int
    warnings: int
    criteria: tuple[CriterionSummary, ...]
    cases: tuple[CaseSummary, ...] = field(repr=False)
    pass_rate: Interval
    average: float | None

    def criterion(self, name: str) -> CriterionSummary:
        """The criterion of that name; KeyError when the run did not measure it."""
        for criterion in self.criteria:
            if criterion.name == name:
                return criterion
        raise KeyError(name)


def summarise(run: Run) -> Summary:
    """The summary of a run, in one pass over its rows."""
    with rare_collections():
        return _summarised(run)


def _summarised(run: Run) -> Summary:
    manifest = run.manifest
    counts = dict.fromkeys(("rows", "errors", "system", "cut", "warned"), 0)
    strata: dict[str, str] = {}

    def passing() -> Any:
        for row in run.skim():
            counts["rows"] += 1
            counts["errors"] += row.status is RowStatus.MISSING
            counts["system"] += row.status is RowStatus.SYSTEM_ERROR
            if (reply := row.reply) is not None:
                counts["cut"] += reply.truncated
                counts["warned"] += bool(reply.warnings)
            strata[row.case_id] = row.stratum
            yield row

    scores = criterion_scores(passing(), manifest)
    judges = {judge["hash"] for judge in manifest.judges.values()}
    layers = {name: 2 if manifest.by.get(name) in judges else 1 for name in scores}
    if any(s.counts.get(ScoreStatus.NOT_JUDGED.value) for s in scores.values()):
        judged = criterion_scores(run.skim(), manifest, not_judged="left_out")
    else:
        judged = {}
    weights = traffic_weights(manifest.sampling)
    criteria = tuple(
        _criterion(s, manifest.thresholds.get(name, {}), layers[name], weights, judged.get(name))
        for name, s in scores.items()
    )
    cases = _cases(strata, scores, layers, manifest.thresholds)
    first = [c.rate.estimate for c in criteria if c.layer == 1 and c.rate.defined]
    decided = {c.case_id: c.passed for c in cases if c.passed is not None}
    return Summary(
        run_id=manifest.run_id,
        n_cases=len(strata),
        n_rows=counts["rows"],
        errors=counts["errors"],
        system_errors=counts["system"],
        cut_off=counts["cut"],
        warnings=counts["warned"],
        criteria=criteria,
        cases=cases,
        pass_rate=_rate(
            {case: [float(ok)] for case, ok in decided.items()},
            {case: strata[case] for case in decided},
            weights,
        ),
        average=sum(first) / len(first) if first else None,
    )


def _criterion(
    scores: CriterionScores,
    rule: Mapping[str, Any],
    layer: int,
    weights: Mapping[str, float] | None,
    judged: CriterionScores | None,
) -> CriterionSummary:
    names = list(dict.fromkeys(scores.stratum.values()))
    parts = {name: scores.of_stratum(name) for name in names}
    among = None
    if judged is not None and scores.counts.get(ScoreStatus.NOT_JUDGED.value):
        among = _scored(judged)
    pass_mark = rule.get("pass_at") if rule.get("statistic") == "mean" else None
    return CriterionSummary(
        name=scores.name,
        layer=layer,
        rate=_scored(scores, weights if len(names) > 1 else None),
        by_stratum={name: _scored(part) for name, part in parts.items()},
        counts=scores.counts,
        failing=scores.failing(pass_mark if pass_mark is not None else scores.score_range[1]),
        rule=rule,
        score_range=scores.score_range,
        among_judged=among,
    )


def _scored(scores: CriterionScores, weights: Mapping[str, float] | None = None) -> Interval:
    if weights is not None:
        by_stratum = {
            name: scores.of_stratum(name) for name in dict.fromkeys(scores.stratum.values())
        }
        used = {name: weights[name] for name in by_stratum if name in weights}
        whole = sum(used.values())
        if whole > 0:
            ends = scores.score_range
            found = stratified_mean(
                {name: list(part.values.values()) for name, part in by_stratum.items()},
                {name: share / whole for name, share in used.items()},
                method="wilson" if scores.binary else "t",
                score_range=ends,
            )
            low, high = max(found.ci_low, ends[0]), min(found.ci_high, ends[1])
            return replace(found, ci_low=low, ci_high=high)  # a t interval may leave the range
    return pass_rate(
        list(scores.values.values()),
        status=list(scores.words.values()),
        score_range=scores.score_range,
        clusters=scores.clusters,
    )


def _rate(
    values: Mapping[str, list[float]],
    strata: Mapping[str, str],
    weights: Mapping[str, float] | None,
) -> Interval:
    scores = CriterionScores("passed")
    for case, runs in values.items():
        scores.values[case] = list(runs)
        scores.words[case] = ["ok"] * len(runs)
        scores.stratum[case] = strata[case]
        scores.cluster[case] = case
    return _scored(scores, weights if len(set(strata.values())) > 1 else None)


def traffic_weights(sampling: Mapping[str, Any]) -> Mapping[str, float] | None:
    """Each stratum's share of the traffic, where the sample does not carry it already."""
    sizes, weights = sampling.get("sizes", {}), sampling.get("weights", {})
    n = sum(sizes.values())
    if not n or all(abs(sizes.get(h, 0) - n * w) < 1.0 for h, w in weights.items()):
        return None
    return weights


def _cases(
    strata: Mapping[str, str],
    scores: Mapping[str, CriterionScores],
    layers: Mapping[str, int],
    thresholds: Mapping[str, Mapping[str, Any]],
) -> tuple[CaseSummary, ...]:
    means = {name: s.means() for name, s in scores.items()}
    first, second = ([(n, m) for n, m in means.items() if layers[n] == k] for k in (1, 2))
    gating = {name for name, _ in first if thresholds.get(name, {}).get("gate", True)}
    found: list[CaseSummary] = []
    for case, stratum in strata.items():
        layer1 = {name: values[case] for name, values in first if case in values}
        layer2 = {name: values[case] for name, values in second if case in values}
        deciding = [value for name, value in layer1.items() if name in gating]
        passed = None if None in deciding or not deciding else all(v == 1.0 for v in deciding)
        found.append(CaseSummary(case, stratum, layer1, layer2, passed))
    return tuple(found)

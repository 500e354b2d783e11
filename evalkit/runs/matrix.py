"""Rows to arrays: one criterion's scores as case x run, with what became of each observation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from evalkit.records import Row, RowStatus, Score, ScoreStatus
from evalkit.runs.manifest import Manifest
from evalkit.stats.observations import Observation

if TYPE_CHECKING:
    from evalkit.runs.skimmed import SkimmedRow, SkimmedScore

__all__ = [
    "CriterionScores",
    "criterion_scores",
    "score_range_of",
    "scores_of",
    "value_in_unit",
]

Missing = Literal["lowest", "left_out"]
_OK, _SYSTEM_ERROR = Observation.OK.value, Observation.SYSTEM_ERROR.value
_JUDGE_INVALID, _SKIPPED = Observation.JUDGE_INVALID.value, Observation.SKIPPED.value


@dataclass
class CriterionScores:
    """One criterion's scores by case: `values[case][run]` in the criterion's unit, None missing.

    `words` are the `Observation` of each score. `stratum` and `cluster` are those of the case.
    """

    name: str
    score_range: tuple[float, float] = (0.0, 1.0)
    values: dict[str, list[float | None]] = field(default_factory=dict)
    words: dict[str, list[str]] = field(default_factory=dict)
    stratum: dict[str, str] = field(default_factory=dict)
    cluster: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def clusters(self) -> list[str]:
        """One id per case, in order."""
        return list(self.cluster.values())

    @property
    def binary(self) -> bool:
        """True when every score is the lowest or the highest."""
        seen = {value for runs in self.values.values() for value in runs if value is not None}
        return seen <= set(self.score_range)

    def of_stratum(self, stratum: str) -> CriterionScores:
        """The part of one stratum."""
        keep = [case for case, name in self.stratum.items() if name == stratum]
        return CriterionScores(
            self.name,
            self.score_range,
            values={case: self.values[case] for case in keep},
            words={case: self.words[case] for case in keep},
            stratum=dict.fromkeys(keep, stratum),
            cluster={case: self.cluster[case] for case in keep},
        )

    def means(self) -> dict[str, float | None]:
        """The mean of each case over its valid runs; None without one."""
        return {case: _mean(runs) for case, runs in self.values.items()}

    def failing(self, pass_at: float) -> tuple[tuple[str, int], ...]:
        """Case and repeat of every score below `pass_at`, in the criterion's unit."""
        return tuple(
            (case, repeat)
            for case, runs in self.values.items()
            for repeat, value in enumerate(runs)
            if value is not None and value < pass_at
        )


def criterion_scores(
    rows: Iterable[Row | SkimmedRow], manifest: Manifest, *, not_judged: Missing = "lowest"
) -> dict[str, CriterionScores]:
    """Every criterion's scores, in one pass over the rows.

    Args:
        rows: The run's rows.
        manifest: Its manifest; says which statistic a scale criterion uses.
        not_judged: A case that a hard criterion stopped scores lowest (the gate's rule), or is
            left out (the rate among judged cases).
    """
    found = {name: CriterionScores(name, score_range_of(manifest, name)) for name in manifest.by}
    rules = {name: manifest.thresholds.get(name, {}) for name in manifest.by}
    for row in rows:
        case = row.case_id
        for name, score in row.scores.items():
            scores = found.get(name)
            if scores is None:
                scores = found[name] = CriterionScores(name, score_range_of(manifest, name))
                rules[name] = manifest.thresholds.get(name, {})
            status = score.status
            scores.counts[status] = scores.counts.get(status, 0) + 1
            if status is ScoreStatus.NOT_JUDGED and not_judged == "left_out":
                continue
            value, word = _in_unit(score, row, scores.score_range, rules[name])
            seen = scores.values.get(case)
            if seen is not None:
                seen.append(value)
                scores.words[case].append(word)
            else:
                scores.values[case], scores.words[case] = [value], [word]
                scores.stratum[case], scores.cluster[case] = row.stratum, row.cluster or case
    for scores in found.values():
        scores.counts = {str(status): n for status, n in scores.counts.items()}
    return {name: scores for name, scores in found.items() if scores.values or scores.counts}


def scores_of(rows: Sequence[Row], manifest: Manifest, name: str) -> CriterionScores:
    """One criterion's scores; empty when the run did not measure it."""
    return criterion_scores(rows, manifest).get(name, CriterionScores(name))


def value_in_unit(
    score: Score, row: Row, manifest: Manifest, name: str
) -> tuple[float | None, str]:
    """A score in its criterion's unit (rate 0..1, or levels), and what became of it."""
    rule = manifest.thresholds.get(name, {})
    return _in_unit(score, row, score_range_of(manifest, name), rule)


def _in_unit(
    score: Score | SkimmedScore,
    row: Row | SkimmedRow,
    score_range: tuple[float, float],
    rule: Mapping[str, Any],
) -> tuple[float | None, str]:
    (low, high), status = score_range, score.status
    if status is ScoreStatus.NOT_JUDGED:
        return low, _SYSTEM_ERROR
    if status is ScoreStatus.UNSCORED:
        return None, _JUDGE_INVALID
    if score.value is None:
        return None, _SKIPPED
    ok = row.status is RowStatus.OK
    value = low + score.value * (high - low)
    if rule.get("statistic") == "rate":
        levels: Sequence[Any] = score.details.get("levels", (0.0, 1.0))
        value = levels[0] + score.value * (levels[-1] - levels[0])
        value = float(value >= rule["pass_at"] - 1e-9) if ok else 0.0
    return value, _OK if ok else _SYSTEM_ERROR


def _mean(runs: Sequence[float | None]) -> float | None:
    if len(runs) == 1:
        return runs[0]
    valid = [v for v in runs if v is not None]
    return sum(valid) / len(valid) if valid else None


def score_range_of(manifest: Manifest, name: str) -> tuple[float, float]:
    """What a criterion's scores run from and to: a scale's levels, else 0..1."""
    rule: Mapping[str, Any] = manifest.thresholds.get(name, {})
    levels = manifest.scales.get(name)
    if levels is None or rule.get("statistic") == "rate":
        return 0.0, 1.0
    return float(levels[0]), float(levels[1])

"""Two runs of the same cases, joined by case id: one difference per unit."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evalkit.counting import counted
from evalkit.errors import StatsError
from evalkit.stats.observations import Observations, ScoreRange, observe
from evalkit.stats.repeats import variance_components

__all__ = ["Missing", "Pairs", "pair_up"]

Floats = NDArray[np.float64]
Missing = Literal["drop", "worst", "best"]


@dataclass(frozen=True)
class Pairs:
    """Case means of both sides on [0, 1], one entry per unit, with what did not come along.

    `ids` names the first case of each unit. The `n_without_*` count cases that left because that
    side had no valid run, `only_*` are cases the other side does not know (`allow_partial`),
    `n_copies` cases merged with an identical one. `planned` and `n_missing` count observations of
    both sides, `missing_share` is that of the side that misses more; `var_within_*` are the run
    variances for a sample size.
    """

    ids: tuple[Hashable, ...]
    baseline: Floats
    candidate: Floats
    score_range: ScoreRange
    n_runs: int = 0
    n_missing: int = 0
    n_invalid: int = 0
    planned: int = 0
    missing_share: float = 0.0
    n_without_baseline: int = 0
    n_without_candidate: int = 0
    only_baseline: tuple[Hashable, ...] = ()
    only_candidate: tuple[Hashable, ...] = ()
    n_copies: int = 0
    single_run: bool = True
    binary: bool = False
    runs_baseline: float = 1.0
    runs_candidate: float = 1.0
    var_within_baseline: float = float("nan")
    var_within_candidate: float = float("nan")

    @property
    def differences(self) -> Floats:
        """Candidate minus baseline on [-1, 1], one per unit."""
        return self.candidate - self.baseline

    @property
    def span(self) -> float:
        """Width of the score range: what a difference of 1 is in score units."""
        return self.score_range[1] - self.score_range[0]

    @property
    def reasons(self) -> tuple[str, ...]:
        """What a reader must know about how the pairs came about."""
        found = {
            "partial_case_sets": bool(self.only_baseline or self.only_candidate),
            "cases_without_pair": bool(self.n_without_baseline or self.n_without_candidate),
            "copies_merged": self.n_copies > 0,
        }
        return tuple(name for name, there in found.items() if there)


def pair_up(
    baseline: Any,
    candidate: Any,
    *,
    score_range: ScoreRange = (0.0, 1.0),
    baseline_status: Mapping[Any, Sequence[str]] | Sequence[Sequence[str]] | None = None,
    candidate_status: Mapping[Any, Sequence[str]] | Sequence[Sequence[str]] | None = None,
    clusters: Mapping[Any, Hashable] | Sequence[Hashable] | None = None,
    content: Mapping[Any, str] | Sequence[str] | None = None,
    allow_partial: bool = False,
    missing: Missing = "drop",
) -> Pairs:
    """Join two runs by case id and average the runs of each case.

    Args:
        baseline: Case id to its runs, as `observe` takes them; or a matrix case x run, whose rows
            are then the ids 0, 1, 2 ... on both sides.
        candidate: The same for the other run.
        score_range: Lowest and highest score.
        baseline_status: `Observation` words, keyed like the scores.
        candidate_status: The same for the candidate.
        clusters: Case id to cluster; the cluster is then the unit.
        content: Case id to a hash of its input and expectation; identical ones are merged.
        allow_partial: Compare the cases both sides have, and count the others.
        missing: "drop": a case without a valid run on either side leaves. "worst" and "best" set
            missing observations to the end of the range that is worst or best for the candidate.

    Raises:
        StatsError: If the case sets differ and `allow_partial` is false, or scores are malformed.
    """
    sides = [_by_id(baseline), _by_id(candidate)]
    only = [tuple(k for k in a if k not in b) for a, b in (sides, sides[::-1])]
    if any(only) and not allow_partial:
        name, ids = ("baseline", only[0]) if only[0] else ("candidate", only[1])
        raise StatsError(
            f"{counted(len(only[0]) + len(only[1]), 'case')} on one side only, for instance "
            f"{ids[0]!r} in the {name}. Run the same cases, or compare what both have with "
            "allow_partial."
        )
    ids = [k for k in sides[0] if k in sides[1]]
    seen = [
        observe([side[k] for k in ids], status=_of(status, ids), score_range=score_range)
        for side, status in zip(sides, (baseline_status, candidate_status), strict=True)
    ]
    n_missing, missing_share = sum(s.n_missing for s in seen), max(s.missing_share for s in seen)
    if missing != "drop":
        for_baseline, for_candidate = ("highest", "lowest")[:: 1 if missing == "worst" else -1]
        seen = [seen[0].filled(for_baseline), seen[1].filled(for_candidate)]
    means = [_means(s) for s in seen]
    there = [~np.isnan(m) for m in means]
    both = there[0] & there[1]
    units, n_copies = _units(ids, clusters, content, both)
    merged = [_average(m[both], units) for m in means]
    parts = [variance_components(s) for s in seen]
    runs = [float(s.valid.sum(axis=1)[both].mean()) if both.any() else 0.0 for s in seen]
    kept = [k for k, keep in zip(ids, both, strict=True) if keep]
    first = dict(zip(reversed(units), reversed(kept), strict=True))
    return Pairs(
        ids=tuple(first[u] for u in _order(units)),
        baseline=merged[0],
        candidate=merged[1],
        score_range=seen[0].score_range,
        n_runs=int(sum(s.valid[both].sum() for s in seen)),
        n_missing=n_missing,
        missing_share=missing_share,
        n_invalid=sum(s.n_invalid for s in seen),
        planned=int(sum(s.planned.sum() for s in seen)),
        n_without_baseline=int((~there[0]).sum()),
        n_without_candidate=int((~there[1]).sum()),
        only_baseline=only[0],
        only_candidate=only[1],
        n_copies=n_copies,
        single_run=max(runs) <= 1 and len(set(units)) == len(units),
        binary=all(s.binary for s in seen),
        runs_baseline=runs[0],
        runs_candidate=runs[1],
        var_within_baseline=parts[0].var_within,
        var_within_candidate=parts[1].var_within,
    )


def _by_id(side: Any) -> dict[Hashable, Any]:
    if isinstance(side, Observations):
        raise StatsError("give case id to runs, or a matrix; joined observations have no ids.")
    return dict(side) if isinstance(side, Mapping) else dict(enumerate(side))


def _of(given: Any, ids: list[Hashable]) -> list[Any] | None:
    if given is None:
        return None
    table: dict[Any, Any] = dict(given if isinstance(given, Mapping) else enumerate(given))
    if lost := [k for k in ids if k not in table]:
        raise StatsError(f"case {lost[0]!r} is not among the keys given for statuses or clusters.")
    return [table[k] for k in ids]


def _means(seen: Observations) -> Floats:
    runs = seen.valid.sum(axis=1)
    sums = np.nansum(seen.values, axis=1)
    return np.where(runs > 0, sums / np.maximum(runs, 1), np.nan)


def _units(
    ids: list[Hashable], clusters: Any, content: Any, both: NDArray[np.bool_]
) -> tuple[list[Hashable], int]:
    """The unit of each kept case, and how many cases are copies of another."""
    groups, texts = _of(clusters, ids), _of(content, ids)
    units: list[Hashable] = []
    first_with: dict[Hashable, Hashable] = {}
    copies = 0
    for i, case in enumerate(ids):
        if not both[i]:
            continue
        unit: Hashable = ("case", case) if groups is None else ("cluster", groups[i])
        if texts is not None:
            copies += texts[i] in first_with
            unit = first_with.setdefault(texts[i], unit)
        units.append(unit)
    return units, copies


def _order(units: list[Hashable]) -> list[Hashable]:
    return list(dict.fromkeys(units))


def _average(values: Floats, units: list[Hashable]) -> Floats:
    at = {unit: i for i, unit in enumerate(_order(units))}
    rows = np.array([at[u] for u in units], dtype=np.int64)
    return np.bincount(rows, weights=values, minlength=len(at)) / np.bincount(
        rows, minlength=len(at)
    )

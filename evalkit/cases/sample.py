"""Stratified samples: how many of each stratum, which ones, and what weight they carry.

Which cases are drawn is decided by ranking the SHA-256 of seed and id: a uniform draw without
replacement in which a larger sample holds the smaller one of its stratum, so that asking for more
cases pays only for the new ones (docs/decisions/0041).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from evalkit.cases.problems import did_you_mean
from evalkit.counting import counted
from evalkit.errors import UsageError
from evalkit.records import Case
from evalkit.stats.strata import allocate

__all__ = ["Allocation", "Sample", "draw"]

Allocation = Literal["proportional", "equal"]


@dataclass(frozen=True)
class Sample:
    """Cases in suite order, and what an estimate needs to know of how they were drawn.

    `sizes` are the cases drawn per stratum (n_h), `population` those there are (N_h), `weights`
    each stratum's share of what the estimate speaks about (W_h, summing to 1): the suite's mix, or
    N_h / N without one. The keys stand in one order. `allocation` is "proportional", "equal" or
    "given".
    """

    cases: tuple[Case, ...]
    sizes: Mapping[str, int]
    population: Mapping[str, int]
    weights: Mapping[str, float]
    allocation: str
    seed: int
    warnings: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.cases)


def draw(
    cases: Sequence[Case],
    n: int | Mapping[str, int] | None = None,
    *,
    allocation: Allocation = "proportional",
    mix: Mapping[str, float] | None = None,
    seed: int = 0,
) -> Sample:
    """A stratified sample without replacement: deterministic, in the order of `cases`.

    Args:
        cases: The suite's cases.
        n: How many in all (more than there are means all), None for all, or how many of each named
            stratum.
        allocation: How `n` is shared out: by weight, or the same for each stratum.
        mix: Each stratum's share of the traffic; None takes the shares among `cases`.
        seed: Decides which cases are drawn, not how many.

    Raises:
        UsageError: If there is nothing to draw from, `n` is 0 or less than two a stratum, or a
            stratum is not known.

    Source: statistics.md section 6; largest remainders, exact fractions.
    """
    population = _population(cases, mix)
    total = len(cases)
    weights = {h: (mix[h] if mix else k / total) for h, k in population.items()}
    whole = sum(weights.values())
    weights = {h: w / whole for h, w in weights.items()}
    warnings = [
        f"stratum {h!r} has no case, so nothing can be said of {weights[h]:.0%} of the mix"
        for h, k in population.items()
        if not k
    ]
    if isinstance(n, Mapping):
        sizes, notes = _given(n, population)
        warnings += notes
        allocation_name = "given"
    else:
        if n is not None and n < 1:
            raise UsageError(f"a sample of {n} holds no case; ask for at least one")
        sizes = _allocated(population, total if n is None else n, allocation, mix)
        warnings += _short(population, sizes, n, allocation)
        allocation_name = allocation
    chosen = _choose(cases, sizes, seed)
    return Sample(
        tuple(case for case in cases if case.id in chosen),
        *(sizes, population, weights, allocation_name, seed, tuple(warnings)),
    )


def _allocated(
    population: Mapping[str, int], n: int, allocation: Allocation, mix: Mapping[str, float] | None
) -> dict[str, int]:
    if allocation not in ("proportional", "equal"):
        raise UsageError(f"allocation {allocation!r} is not known; use 'proportional' or 'equal'")
    least = sum(min(2, size) for size in population.values())
    if n < least:
        raise UsageError(
            f"a sample of {n} is too small for {len(population)} strata: two of each make {least}"
        )
    return allocate(n, population, mix, method=allocation)


def _population(cases: Sequence[Case], mix: Mapping[str, float] | None) -> dict[str, int]:
    if not cases:
        raise UsageError("there is no case to draw from: the selection is empty")
    counts = Counter(case.stratum for case in cases)
    if mix is None:
        return dict(counts)
    for stratum in counts:
        if stratum not in mix:
            raise UsageError(f"stratum {stratum!r} is not in the mix{did_you_mean(stratum, mix)}")
    return {stratum: counts[stratum] for stratum in mix}


def _given(
    wanted: Mapping[str, int], population: Mapping[str, int]
) -> tuple[dict[str, int], list[str]]:
    for stratum, k in wanted.items():
        if stratum not in population:
            hint = did_you_mean(stratum, population)
            raise UsageError(f"there is no stratum {stratum!r} to draw from{hint}")
        if k < 0:
            raise UsageError(f"{counted(k, 'case')} of stratum {stratum!r} cannot be drawn")
    sizes = {h: min(wanted.get(h, 0), size) for h, size in population.items()}
    if not any(sizes.values()):
        raise UsageError("a sample of 0 holds no case; ask for at least one")
    notes = [
        f"stratum {h!r} has {counted(population[h], 'case')}, {k} were asked for: "
        f"all {population[h]} drawn"
        for h, k in wanted.items()
        if k > population[h]
    ]
    return sizes, notes


def _short(
    population: Mapping[str, int], sizes: Mapping[str, int], n: int | None, allocation: Allocation
) -> list[str]:
    """Strata that could not give their share, and a total that could not be had."""
    total = sum(population.values())
    if n is not None and n > total:
        return [f"{counted(n, 'case')} were asked for, there are {total}: all are drawn"]
    if n is None or n == total or allocation != "equal":
        return []
    share = -(-n // len(population))
    return [
        f"stratum {h!r} has {counted(size, 'case')}, fewer than an equal share of {share}: "
        "all are drawn"
        for h, size in population.items()
        if 0 < size < share and sizes[h] == size
    ]


def _choose(cases: Sequence[Case], sizes: Mapping[str, int], seed: int) -> set[str]:
    ranked: dict[str, list[tuple[bytes, str]]] = {h: [] for h in sizes}
    for case in cases:
        rank = hashlib.sha256(f"{seed}\n{case.id}".encode()).digest()
        ranked[case.stratum].append((rank, case.id))
    return {name for h, k in sizes.items() for _, name in sorted(ranked[h])[:k]}

"""Choosing the best of several candidates without believing the luck of the winner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

from evalkit.errors import StatsError
from evalkit.stats.compare import Comparison, compare_paired
from evalkit.stats.pairs import Pairs

__all__ = ["compare_selected", "split_dev_test"]


def split_dev_test(
    ids: Sequence[str], strata: Mapping[str, Any] | None = None, *, test_share: float = 0.5
) -> dict[str, str]:
    """Case id to "dev" (selection reads it) or "test" (the reported number comes from it).

    Within each stratum the cases are ordered by the SHA-256 of their id and the last share goes to
    test: the same on every machine, whatever the order of the ids.

    Args:
        ids: Distinct case ids.
        strata: Case id to stratum; None is one stratum.
        test_share: Share of each stratum for the test part, in (0, 1); rounded half up.

    Raises:
        StatsError: If an id comes twice or the share is outside (0, 1).
    """
    if len(set(ids)) != len(ids):
        raise StatsError("a case id comes twice; ids are distinct.")
    if not 0 < test_share < 1:
        raise StatsError(f"the test share {test_share:g} must lie strictly between 0 and 1.")
    groups: dict[Any, list[str]] = {}
    for case in ids:
        groups.setdefault(strata[case] if strata else None, []).append(case)
    part: dict[str, str] = {}
    for members in groups.values():
        ordered = sorted(members, key=lambda case: sha256(case.encode()).digest())
        n_dev = len(members) - int(len(members) * test_share + 0.5)
        part |= {case: "dev" if i < n_dev else "test" for i, case in enumerate(ordered)}
    return {case: part[case] for case in ids}


def compare_selected(
    pairs: Pairs,
    *,
    candidates: int | None,
    known_candidates: int = 1,
    conf: float = 0.95,
    power: float = 0.8,
    seed: int = 0,
) -> Comparison:
    """Compare the winner of k candidates on the data that chose it: every level is alpha/k.

    Args:
        pairs: Baseline against the winner, from `pair_up`.
        candidates: k, how many were tried on these cases, the winner included. None only if no
            other candidate is known.
        known_candidates: Candidates the caller knows to have been run on these cases.
        conf: Level for a single candidate; the interval and the direction use 1 - (1 - conf)/k.
        power: Power of the minimum detectable effect.
        seed: Seed of the sign-flip check.

    Returns:
        A comparison whose reasons say selected_on_same_data when k > 1.

    Raises:
        StatsError: If k is missing although several candidates are known, or below their number.

    Source: Bonferroni; see the measured optimism of winners in the statistics design.
    """
    if candidates is None and known_candidates > 1:
        raise StatsError(
            f"{known_candidates} candidates were run on these cases: say how many were tried "
            "(candidates=), or report on the test half."
        )
    k = candidates or 1
    if k < known_candidates:
        raise StatsError(f"{known_candidates} candidates are known, so k cannot be {k}.")
    found = compare_paired(pairs, conf=1 - (1 - conf) / k, power=power, seed=seed)
    if k == 1:
        return found
    interval = replace(
        found.interval,
        reasons=(*found.interval.reasons, "selected_on_same_data"),
        extra={**found.interval.extra, "candidates": k},
    )
    return replace(found, interval=interval)

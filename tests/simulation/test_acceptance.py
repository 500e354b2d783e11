"""The acceptance bars: a short run for every change, the full one behind a marker."""

from __future__ import annotations

import acceptance
import pytest
from simulation_bars import Row


def broken(rows: list[Row], deviations: float = 0.0) -> list[str]:
    return [
        f"{r.quantity}, {r.setting}: {r.measured:.4f}, bar {r.bar}"
        for r in rows
        if not r.holds(deviations)
    ]


@pytest.mark.parametrize("part", acceptance.PARTS)
def test_short_run_holds_every_bar_within_four_standard_errors(part: str) -> None:
    assert not broken(list(acceptance.rows(part, replications=200)), deviations=4.0)


@pytest.mark.simulation
@pytest.mark.parametrize("part", acceptance.PARTS)
def test_full_run_holds_every_bar(part: str) -> None:
    assert not broken(list(acceptance.rows(part)))

"""What may be said of one criterion: the four decisions, the two strictnesses, and a ruling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from evalkit.stats.result import Interval, plain

__all__ = ["Decision", "Direction", "Ruling", "Strictness"]


class Decision(StrEnum):
    """PASS, FAIL; UNDECIDED: the data cannot tell; BROKEN: it was not measured."""

    PASS = "PASS"
    FAIL = "FAIL"
    UNDECIDED = "UNDECIDED"
    BROKEN = "BROKEN"


class Strictness(StrEnum):
    """Which error is held at alpha: a false alarm (smoke), or shipping a regression (release)."""

    SMOKE = "smoke"
    RELEASE = "release"


class Direction(StrEnum):
    """What a two-sided interval of a difference shows."""

    IMPROVED = "IMPROVED"
    REGRESSED = "REGRESSED"
    NOT_DISTINGUISHED = "NOT_DISTINGUISHED"


@dataclass(frozen=True, slots=True)
class Ruling:
    """A decision on one criterion with all that carries it.

    `rule` is counted, floor, relative or win_rate; `threshold` the floor or the margin, in score
    units. `interval` is the rate or the difference (candidate minus baseline); `lower` and `upper`
    are the one-sided bounds the decision was read from. `finding` is the statistical word behind
    it (proven, refuted, NON_INFERIOR, INFERIOR ...). `p` is the one-sided p-value of a drop, `mde`
    the smallest change that would have been found, `cases_needed` how many cases could decide.
    `reasons` are machine-readable; `sentence` is generated, never written by hand.
    """

    decision: Decision
    rule: str
    strictness: Strictness
    threshold: float
    interval: Interval
    lower: float
    upper: float
    finding: str = ""
    p: float | None = None
    mde: float | None = None
    cases_needed: int | None = None
    reasons: tuple[str, ...] = ()
    sentence: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Plain values for JSON; NaN becomes null."""
        return plain(asdict(self))

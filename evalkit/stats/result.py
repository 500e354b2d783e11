"""The one frozen result type of the statistics room (statistics.md section 0)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

__all__ = ["Interval", "Status", "plain"]


class Status(StrEnum):
    """Whether a statistic is defined on these data."""

    OK = "OK"
    DEGENERATE = "DEGENERATE"
    INSUFFICIENT_DATA = "INSUFFICIENT_DATA"
    UNDEFINED = "UNDEFINED"


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its interval, in the unit of the scores; NaN with a status when undefined.

    `reasons` are machine-readable ("zero_variance", "n_lt_2"). `bounds` is (worst, best): missing
    observations set to the lowest and to the highest score. `extra` holds the further numbers of
    one statistic (se, df, p, mde ...), each described by the function that fills it.
    """

    estimate: float
    ci_low: float
    ci_high: float
    conf: float = 0.95
    method: str = ""
    n_cases: int = 0
    n_runs: int = 0
    n_missing: int = 0
    n_invalid: int = 0
    status: Status = Status.OK
    reasons: tuple[str, ...] = ()
    seed: int | None = None
    scope: str = "population"
    bounds: tuple[float, float] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def defined(self) -> bool:
        """True when the estimate is a number."""
        return not math.isnan(self.estimate)

    def as_json(self) -> dict[str, Any]:
        """Plain values for JSON; NaN becomes null."""
        from dataclasses import asdict

        return plain(asdict(self))


def plain(value: Any) -> Any:
    """Numbers, words, lists and objects for JSON; NaN, which JSON does not have, becomes null."""
    if hasattr(value, "tolist"):  # numbers and arrays of numpy
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value

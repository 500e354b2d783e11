"""One row of the acceptance table: what was measured beside the bar it must hold."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Row"]


@dataclass(frozen=True)
class Row:
    """A measured quantity and its bar, `low <= measured <= high` (either end may be open).

    `replications` is the number of independent draws behind a measured share, 0 for an exact
    calculation; `spread` the standard deviation of one draw where the quantity is no share.
    """

    quantity: str
    setting: str
    measured: float
    low: float = -math.inf
    high: float = math.inf
    replications: int = 0
    spread: float | None = None

    def holds(self, deviations: float = 0.0) -> bool:
        """True inside the bar, widened by so many standard errors of the simulation itself."""
        slack = deviations * self.standard_error
        return self.low - slack <= self.measured <= self.high + slack

    @property
    def standard_error(self) -> float:
        """Monte Carlo standard error of the measured value, taken at the bar for a share."""
        if not self.replications:
            return 0.0
        if self.spread is not None:
            return self.spread / math.sqrt(self.replications)
        ends = [x for x in (self.low, self.high) if math.isfinite(x)]
        worst = max(x * (1 - x) for x in ends)
        return math.sqrt(worst / self.replications)

    @property
    def bar(self) -> str:
        """The bar as the design writes it."""
        if not math.isfinite(self.low):
            return f"<= {self.high:g}"
        return (
            f">= {self.low:g}" if not math.isfinite(self.high) else f"{self.low:g} - {self.high:g}"
        )

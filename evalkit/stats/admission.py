"""May this judge's scores count? States, diagnosis and permitted uses, ruled by bounds.

A point estimate admits too much: a judge whose true QWK is .45 is called credible by its estimate
in a third of 39-item anchors. A state therefore needs the one-sided bound; what the estimate alone
would have said stands beside it (statistics.md section 10).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evalkit.errors import StatsError
from evalkit.stats.agreement import Agreement, agreement, mean_bias
from evalkit.stats.binary import BinaryAdmission, BinaryBars, BinaryRuling, admit_binary
from evalkit.stats.compare import direction_of
from evalkit.stats.decision import Direction
from evalkit.stats.quantiles import normal_quantile
from evalkit.stats.ratings import Rounding
from evalkit.stats.result import Interval

__all__ = [
    "Admission",
    "Bars",
    "BinaryAdmission",
    "BinaryBars",
    "BinaryRuling",
    "Diagnosis",
    "Drift",
    "JudgeState",
    "admit",
    "admit_binary",
    "drift_check",
    "judge_state",
]


class JudgeState(StrEnum):
    """What an anchor showed of a judge.

    CREDIBLE: proven at the bar. MARGINAL: between the bars, or at the bar without proof.
    ELIMINATED: below the lower bar. NOT_ASSESSABLE: this anchor cannot tell. NOT_CERTIFIED: not
    eliminated, but only by an anchor that no person labelled.
    """

    CREDIBLE = "CREDIBLE"
    MARGINAL = "MARGINAL"
    ELIMINATED = "ELIMINATED"
    NOT_ASSESSABLE = "NOT_ASSESSABLE"
    NOT_CERTIFIED = "NOT_CERTIFIED"


class Diagnosis(StrEnum):
    """Where the trouble lies: in how the judge uses the scale, or in how it ranks."""

    OK = "OK"
    OK_CHECK_RANK = "OK_CHECK_RANK"
    SCALE_PROBLEM = "SCALE_PROBLEM"
    WEAK_RANKING = "WEAK_RANKING"
    NONE = "NONE"


@dataclass(frozen=True, slots=True)
class Bars:
    """Thresholds of admission, fixed before the judge is seen; every bound is at 1 - alpha."""

    credible: float = 0.5
    out: float = 0.3
    rank: float = 0.7
    rank_bound: float = 0.6
    min_pairs: int = 30
    min_bands: int = 3
    max_invalid: float = 0.05
    alpha: float = 0.05

    def __post_init__(self) -> None:
        if not (-1 <= self.out < self.credible <= 1 and 0 < self.alpha < 0.5):
            raise StatsError(
                f"bars {self.out:g} and {self.credible:g} at alpha {self.alpha:g}: the lower bar "
                "must lie below the upper one, alpha in (0, 0.5)."
            )


@dataclass(frozen=True, slots=True)
class Admission:
    """The ruling on a judge over one anchor.

    `point_ruling` is what the estimate alone would say. `confirmed`: CREDIBLE always; ELIMINATED
    only when the upper bound lies below the lower bar. `qwk_bounds` are the one-sided bounds,
    `rank_bound` the lower one of Spearman's correlation. `uses` are the permitted ones, "scale"
    and "pairwise"; pairwise use also needs the reconstruction gate. `pairs_needed` is the anchor
    size at which this estimate would be proven, where it reaches the bar without proof. `action`
    is the one recommended next step.
    """

    state: JudgeState
    point_ruling: JudgeState
    confirmed: bool
    diagnosis: Diagnosis
    action: str
    uses: tuple[str, ...]
    reasons: tuple[str, ...]
    qwk: Interval
    qwk_bounds: tuple[float, float]
    spearman: Interval
    rank_bound: float
    pairs_needed: int | None
    bars: Bars
    agreement: Agreement


def admit(
    human: ArrayLike | Sequence[Any],
    judge: ArrayLike | Sequence[Any],
    categories: Iterable[Hashable],
    *,
    provenance: str = "human",
    bars: Bars | None = None,
    rounding: Rounding = None,
    weights: ArrayLike | None = None,
    seed: int = 0,
) -> Admission:
    """Rule on a scale judge from its scores beside an anchor's.

    Args:
        human: (n,) anchor scores; NaN or None where there is none.
        judge: (n,) the judge's; NaN or None where no verdict could be read.
        categories: Every band of the scale, in rank order.
        provenance: "human" only for labels that people gave; anything else can eliminate and
            never admits.
        bars: Thresholds fixed in advance; None takes the defaults.
        rounding: "half_up" for scores between two bands.
        weights: (n,) sample weights, where the anchor's mix is not the one meant.
        seed: Seed of the bootstrap intervals in the report.

    Raises:
        StatsError: For unequal lengths, a score outside the categories, a bad weight.
    """
    bars, categories = bars or Bars(), tuple(categories)
    how: dict[str, Any] = {"rounding": rounding, "weights": weights, "seed": seed}
    found = agreement(human, judge, categories, **how)
    bounds = agreement(human, judge, categories, **how, n_boot=0, level=1 - 2 * bars.alpha)
    q, low, high = found.qwk.estimate, bounds.qwk.ci_low, bounds.qwk.ci_high
    reasons, needed = [*_not_assessable(found, bars)], None
    state, confirmed = JudgeState.NOT_ASSESSABLE, False
    if not reasons:
        state, confirmed = judge_state(q, low, high, bars)
    if state is JudgeState.ELIMINATED and not confirmed:
        reasons.append("elimination_not_confirmed")
    if state is JudgeState.MARGINAL and q >= bars.credible:
        reasons.append("bar_reached_not_proven")
        needed = _pairs_needed(found, bars)
    diagnosis = _diagnose(state, found.spearman.estimate, bounds.spearman.ci_low, bars)
    action = _ACTIONS.get((state, diagnosis)) or _ACTIONS[state, Diagnosis.NONE]
    if provenance != "human" and state is not JudgeState.ELIMINATED:
        state, confirmed = JudgeState.NOT_CERTIFIED, False
        reasons.append("anchor_not_human")
        action = _ACTIONS[state, Diagnosis.NONE]
    return Admission(
        state=state,
        point_ruling=_point_ruling(q, bars),
        confirmed=confirmed,
        diagnosis=diagnosis,
        action=action,
        uses=_uses(state, diagnosis),
        reasons=tuple(dict.fromkeys([*reasons, *found.reasons])),
        qwk=found.qwk,
        qwk_bounds=(low, high),
        spearman=found.spearman,
        rank_bound=bounds.spearman.ci_low,
        pairs_needed=needed,
        bars=bars,
        agreement=found,
    )


def judge_state(q: float, low: float, high: float, bars: Bars) -> tuple[JudgeState, bool]:
    """The state of a QWK with its one-sided bounds, and whether it is confirmed.

    A NaN bound confirms nothing; without a QWK nothing can be assessed.
    """
    if math.isnan(q):
        return JudgeState.NOT_ASSESSABLE, False
    if q < bars.out:
        return JudgeState.ELIMINATED, high < bars.out
    if q >= bars.credible and low >= bars.credible:
        return JudgeState.CREDIBLE, True
    return JudgeState.MARGINAL, False


def _not_assessable(found: Agreement, bars: Bars) -> tuple[str, ...]:
    invalid = found.n_invalid / max(found.n + found.n_invalid, 1)
    tests = {
        "too_few_pairs": found.n < bars.min_pairs,
        "constant_anchor": found.bands_used < 2,
        "too_few_bands": found.bands_used < bars.min_bands,
        "too_many_invalid": invalid > bars.max_invalid,
    }
    return tuple(reason for reason, broken in tests.items() if broken)


def _point_ruling(q: float, bars: Bars) -> JudgeState:
    if math.isnan(q):
        return JudgeState.NOT_ASSESSABLE
    if q >= bars.credible:
        return JudgeState.CREDIBLE
    return JudgeState.MARGINAL if q >= bars.out else JudgeState.ELIMINATED


def _pairs_needed(found: Agreement, bars: Bars) -> int | None:
    """n·(se·z/(q - bar))² on the delta scale: where this estimate would be proven."""
    se, gap = float(found.qwk.extra["se"]), found.qwk.estimate - bars.credible
    if not (gap > 0 and se > 0):
        return None
    needed = math.ceil(found.n * (se * normal_quantile(1 - bars.alpha) / gap) ** 2)
    return max(needed, found.n + 1)  # the bound itself is on Fisher's scale, a little stricter


def _diagnose(state: JudgeState, r: float, r_low: float, bars: Bars) -> Diagnosis:
    strong = r >= bars.rank and r_low >= bars.rank_bound
    if state is JudgeState.NOT_ASSESSABLE:
        return Diagnosis.NONE
    if state is JudgeState.CREDIBLE:
        return Diagnosis.OK if strong else Diagnosis.OK_CHECK_RANK
    return Diagnosis.SCALE_PROBLEM if strong else Diagnosis.WEAK_RANKING


def _uses(state: JudgeState, diagnosis: Diagnosis) -> tuple[str, ...]:
    if state is JudgeState.CREDIBLE:
        return ("scale", "pairwise")
    if state is JudgeState.MARGINAL and diagnosis is Diagnosis.SCALE_PROBLEM:
        return ("pairwise",)
    return ()


_ACTIONS: dict[tuple[JudgeState, Diagnosis], str] = {
    (JudgeState.CREDIBLE, Diagnosis.NONE): "Use it on this scale.",
    (JudgeState.CREDIBLE, Diagnosis.OK_CHECK_RANK): (
        "Use it on this scale; look at the cases it ranks wrongly."
    ),
    (JudgeState.MARGINAL, Diagnosis.SCALE_PROBLEM): (
        "It ranks well but uses the scale differently: recalibrate, or use it for pairs only."
    ),
    (JudgeState.MARGINAL, Diagnosis.WEAK_RANKING): "Fix the rubric: it does not rank well enough.",
    (JudgeState.ELIMINATED, Diagnosis.SCALE_PROBLEM): (
        "It ranks well but its scale is off: fix the scale and test again."
    ),
    (
        JudgeState.ELIMINATED,
        Diagnosis.WEAK_RANKING,
    ): "Do not use it; rework the rubric or the model.",
    (JudgeState.NOT_ASSESSABLE, Diagnosis.NONE): "This anchor cannot tell: mend what is listed.",
    (
        JudgeState.NOT_CERTIFIED,
        Diagnosis.NONE,
    ): "Have people label an anchor: this one only eliminates.",
}


@dataclass(frozen=True, slots=True)
class Drift:
    """How far a judge moved from its admission run.

    `change` is the mean of |error| then minus |error| now, in score units: negative is worse.
    `revoked` when it is shown to be worse; `reasons` hold "too_few_pairs" below 30 items.
    """

    change: Interval
    direction: Direction
    revoked: bool
    reasons: tuple[str, ...]


def drift_check(
    human: ArrayLike, then: ArrayLike, now: ArrayLike, *, span: float, min_pairs: int = 30
) -> Drift:
    """Compare a judge's errors on anchor items with those of its admission run, item by item.

    Args:
        human: (n,) anchor scores.
        then: (n,) the judge's scores at admission, NaN where there was none.
        now: (n,) the same items scored again, NaN where no verdict could be read.
        span: Highest minus lowest score of the scale.
        min_pairs: Fewest items that can keep a licence.

    Raises:
        StatsError: For unequal lengths or a span that is not positive.
    """
    h, a, b = (np.asarray(x, dtype=np.float64) for x in (human, then, now))
    if not h.shape == a.shape == b.shape:
        raise StatsError(f"{h.size}, {a.size} and {b.size} scores; give one of each per item.")
    kept = ~(np.isnan(h) | np.isnan(a) | np.isnan(b))
    missing = int((~kept).sum())
    h, a, b = h[kept], a[kept], b[kept]
    change = replace(mean_bias(np.abs(b - h), np.abs(a - h), span=span), n_missing=missing)
    direction = direction_of(change.ci_low, change.ci_high)
    reasons = ("too_few_pairs",) if len(h) < min_pairs else ()
    return Drift(change, direction, direction is Direction.REGRESSED, (*reasons, *change.reasons))

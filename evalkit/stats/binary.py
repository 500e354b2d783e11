"""A yes/no judge beside people: four counts, what they show, and whether it may decide alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from evalkit.errors import StatsError
from evalkit.stats.intervals import exact_lower_bound, wilson_interval
from evalkit.stats.kappa import kappa_interval
from evalkit.stats.raters import gwet_ac1
from evalkit.stats.ratings import pair_ratings
from evalkit.stats.result import Interval, Status

__all__ = [
    "BinaryAdmission",
    "BinaryAgreement",
    "BinaryBars",
    "BinaryRuling",
    "admit_binary",
    "binary_agreement",
    "class_rate",
    "two_class_indices",
]

Floats = NDArray[np.float64]


class BinaryRuling(StrEnum):
    """What a yes/no judge may do: decide alone, wait for a better rubric, or advise people.

    NOT_ASSESSABLE: these labels cannot tell. NOT_CERTIFIED: no person gave the labels.
    """

    AUTOMATE = "AUTOMATE"
    REWORK_RUBRIC = "REWORK_RUBRIC"
    KEEP_HUMAN = "KEEP_HUMAN"
    NOT_ASSESSABLE = "NOT_ASSESSABLE"
    NOT_CERTIFIED = "NOT_CERTIFIED"


@dataclass(frozen=True, slots=True)
class BinaryAgreement:
    """A yes/no judge beside people: `tp` both pass, `fn` only people pass, `fp` only the judge.

    `youden_j` = recall_pass + recall_fail - 1. `minority` is the rarer human class ("pass" or
    "fail", "fail" at a draw). Beyond |prevalence_index| = .6 kappa is not interpretable alone.
    """

    tp: int
    fn: int
    fp: int
    tn: int
    n_invalid: int
    agreement: Interval
    kappa: Interval
    ac1: Interval
    recall_pass: Interval
    recall_fail: Interval
    precision_pass: Interval
    precision_fail: Interval
    youden_j: float
    prevalence_index: float
    bias_index: float
    minority: str
    reasons: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """Pairs with a verdict on both sides."""
        return self.tp + self.fn + self.fp + self.tn

    @property
    def n_minority(self) -> int:
        """Human labels of the rarer class."""
        return min(self.tp + self.fn, self.fp + self.tn)

    @property
    def recall_minority(self) -> Interval:
        """Recall of the rarer human class."""
        return self.recall_pass if self.minority == "pass" else self.recall_fail


def binary_agreement(
    tp: int,
    fn: int,
    fp: int,
    tn: int,
    *,
    n_invalid: int = 0,
    n_boot: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> BinaryAgreement:
    """Agreement of a pass/fail judge from its four counts.

    Args:
        tp: Human pass, judge pass.
        fn: Human pass, judge fail.
        fp: Human fail, judge pass.
        tn: Human fail, judge fail.
        n_invalid: Items whose verdict could not be read; counted, in no rate.
        n_boot: Bootstrap draws for AC1.
        seed: Seed of that bootstrap.
        level: Confidence level, in (0, 1).

    Returns:
        A recall without a human example, or a precision of a class never given, is NaN, UNDEFINED.

    Raises:
        StatsError: If a count is negative or not whole.
    """
    counts = (tp, fn, fp, tn, n_invalid)
    if any(c < 0 or c != int(c) for c in counts):
        raise StatsError(f"{counts} are not five counts of 0 or more.")
    human = np.repeat([1, 1, 0, 0], counts[:4])
    judge = np.repeat([1, 0, 1, 0], counts[:4])
    pairs = pair_ratings(human, judge, (0, 1))
    recall_pass = class_rate(tp, tp + fn, level, "no_positive_class", n_invalid)
    recall_fail = class_rate(tn, fp + tn, level, "no_negative_class", n_invalid)
    prevalence, lean = two_class_indices(pairs.table())
    return BinaryAgreement(
        *counts,
        agreement=class_rate(tp + tn, pairs.n, level, "no_cases", n_invalid),
        kappa=kappa_interval(pairs, "nominal", level=level),
        ac1=gwet_ac1([human, judge], (0, 1), n_boot=n_boot, seed=seed, level=level),
        recall_pass=recall_pass,
        recall_fail=recall_fail,
        precision_pass=class_rate(tp, tp + fp, level, "never_awarded", n_invalid),
        precision_fail=class_rate(tn, fn + tn, level, "never_awarded", n_invalid),
        youden_j=recall_pass.estimate + recall_fail.estimate - 1,
        prevalence_index=prevalence,
        bias_index=lean,
        minority="pass" if tp + fn < fp + tn else "fail",
        reasons=("kappa_not_interpretable_alone",) if abs(prevalence) > 0.6 else (),
    )


@dataclass(frozen=True, slots=True)
class BinaryBars:
    """Thresholds for a yes/no judge; each rate needs its point and its one-sided lower bound."""

    agreement: float = 0.85
    agreement_bound: float = 0.75
    kappa: float = 0.6
    kappa_rework: float = 0.4
    recall: float = 0.8
    recall_bound: float = 0.6
    min_minority: int = 10
    max_invalid: float = 0.05
    alpha: float = 0.05


@dataclass(frozen=True, slots=True)
class BinaryAdmission:
    """The ruling on a yes/no judge; `reasons` name every rule that does not hold.

    `agreement_bound` is the one-sided Wilson bound, `recall_bound` the exact one of the minority
    class. `uses` is ("criterion",) for AUTOMATE, else empty.
    """

    ruling: BinaryRuling
    uses: tuple[str, ...]
    reasons: tuple[str, ...]
    agreement_bound: float
    recall_bound: float
    bars: BinaryBars
    agreement: BinaryAgreement


def admit_binary(
    found: BinaryAgreement, *, provenance: str = "human", bars: BinaryBars | None = None
) -> BinaryAdmission:
    """Rule on a yes/no judge: automate, rework the rubric, keep a person, or cannot tell.

    Args:
        found: From `binary_agreement`.
        provenance: "human" only for labels that people gave; anything else never automates.
        bars: Thresholds fixed in advance; None takes the defaults.
    """
    bars = bars or BinaryBars()
    hits, recall = found.tp + found.tn, found.recall_minority
    agreement_low = recall_low = math.nan
    if found.n:
        agreement_low = wilson_interval(hits, found.n, level=1 - 2 * bars.alpha).ci_low
    if found.n_minority:
        minority_hits = found.tp if found.minority == "pass" else found.tn
        recall_low = exact_lower_bound(minority_hits, found.n_minority, bars.alpha)
    invalid = found.n_invalid / max(found.n + found.n_invalid, 1)
    blocked = {
        "too_few_minority_examples": found.n_minority < bars.min_minority,
        "too_many_invalid": invalid > bars.max_invalid,
    }
    broken = {
        "agreement_below_bar": not found.agreement.estimate >= bars.agreement,
        "agreement_not_proven": not agreement_low >= bars.agreement_bound,
        "kappa_below_bar": not found.kappa.estimate >= bars.kappa,
        "minority_recall_below_bar": not recall.estimate >= bars.recall,
        "minority_recall_not_proven": not recall_low >= bars.recall_bound,
    }
    reasons = [name for name, holds in {**blocked, **broken}.items() if holds]
    if any(blocked.values()):
        ruling = BinaryRuling.NOT_ASSESSABLE
    elif not found.kappa.estimate >= bars.kappa_rework:
        ruling = BinaryRuling.REWORK_RUBRIC
    else:
        ruling = BinaryRuling.KEEP_HUMAN if reasons else BinaryRuling.AUTOMATE
    if provenance != "human" and ruling is not BinaryRuling.REWORK_RUBRIC:
        ruling = BinaryRuling.NOT_CERTIFIED
        reasons.append("anchor_not_human")
    return BinaryAdmission(
        ruling=ruling,
        uses=("criterion",) if ruling is BinaryRuling.AUTOMATE else (),
        reasons=(*reasons, *found.reasons),
        agreement_bound=agreement_low,
        recall_bound=recall_low,
        bars=bars,
        agreement=found,
    )


def class_rate(k: float, n: float, level: float, reason: str, n_invalid: int = 0) -> Interval:
    """Wilson interval of k in n; NaN, UNDEFINED with this reason where n is 0.

    With unread verdicts `bounds` holds the rate with all of them wrong and with all of them right.
    """
    everything = n + n_invalid
    bounds = (k / everything, (k + n_invalid) / everything) if n_invalid else None
    if n > 0:
        found = wilson_interval(float(k), float(n), level=level)
        return replace(found, n_invalid=n_invalid, bounds=bounds)
    nan = math.nan
    return Interval(
        nan,
        nan,
        nan,
        level,
        "wilson",
        n_invalid=n_invalid,
        status=Status.UNDEFINED,
        reasons=(reason,),
        bounds=bounds,
    )


def two_class_indices(table: Floats) -> tuple[float, float]:
    """Prevalence index (n11 - n00)/n and bias index (n01 - n10)/n of a 2 x 2 table.

    Rows are human, columns the judge's, the higher class second; NaN for an empty table.
    """
    n = float(table.sum())
    if n == 0:
        return math.nan, math.nan
    return float(table[1, 1] - table[0, 0]) / n, float(table[0, 1] - table[1, 0]) / n

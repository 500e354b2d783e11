"""May this judge judge? Its scores on an anchor, ruled by the statistics room, in words.

The statistics say which state; this module knows items, judges and files, holds a judge against
the trivial ones, and writes what a licence needs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evalkit.counting import counted
from evalkit.errors import AnchorError
from evalkit.judges.judge import Judge
from evalkit.judges.trivial import TrivialJudge
from evalkit.stats.admission import (
    Admission,
    Bars,
    BinaryAdmission,
    BinaryBars,
    BinaryRuling,
    Diagnosis,
    JudgeState,
    admit,
    admit_binary,
)
from evalkit.stats.agreement import Agreement
from evalkit.stats.binary import binary_agreement
from evalkit.stats.ceiling import Ceiling, find_ceiling
from evalkit.stats.recalibration import Recalibration, recalibrate
from evalkit.stats.result import Interval
from evalkit.validity.anchors import Anchor, AnchorKind
from evalkit.validity.licence import Evidence, pin_anchor
from evalkit.validity.scoring import ItemScore

__all__ = [
    "REASONS",
    "Admitted",
    "admit_judge",
    "evidence_of",
    "hold_against_trivial",
    "in_words",
    "interval_json",
]

SMALL = 100
_STATE_OF = {
    BinaryRuling.AUTOMATE: JudgeState.CREDIBLE,
    BinaryRuling.KEEP_HUMAN: JudgeState.MARGINAL,
    BinaryRuling.REWORK_RUBRIC: JudgeState.ELIMINATED,
    BinaryRuling.NOT_ASSESSABLE: JudgeState.NOT_ASSESSABLE,
    BinaryRuling.NOT_CERTIFIED: JudgeState.NOT_CERTIFIED,
}
_BINARY_ACTIONS = {
    BinaryRuling.AUTOMATE: "Let it decide this criterion alone; spot-check it.",
    BinaryRuling.KEEP_HUMAN: "Let it advise; people decide.",
    BinaryRuling.REWORK_RUBRIC: "Rework the rubric (or take another model), then score again.",
    BinaryRuling.NOT_ASSESSABLE: "Label more items of the rarer class, or mend unread verdicts.",
    BinaryRuling.NOT_CERTIFIED: "Have people label an anchor: this one only eliminates.",
}
REASONS: Mapping[str, str] = {
    "too_few_pairs": "fewer than 30 items with both a label and a verdict",
    "too_few_bands": "people used fewer than three bands",
    "constant_anchor": "people gave one label only",
    "constant_judge": "the judge gave one verdict only",
    "too_many_invalid": "more than 5 % of its verdicts could not be read",
    "elimination_not_confirmed": "below the bar, but a larger anchor may still lift it",
    "bar_reached_not_proven": "the estimate reaches the bar, its lower bound does not",
    "anchor_not_human": "no person labelled this anchor, so it can only eliminate",
    "too_few_minority_examples": "fewer than 10 examples of the rarer class",
    "agreement_below_bar": "agreement below .85",
    "agreement_not_proven": "agreement not proven to be above .75",
    "kappa_below_bar": "kappa below .60",
    "minority_recall_below_bar": "it finds fewer than 80 % of the rarer class",
    "minority_recall_not_proven": "that it finds 60 % of the rarer class is not proven",
    "kappa_not_interpretable_alone": "one class is so frequent that kappa alone says little",
    "not_above_trivial": "a trivial judge does as well, so it has shown nothing",
}


@dataclass(frozen=True)
class Admitted:
    """One line of the admission table: a judge on one anchor.

    `ruling` is AUTOMATE, KEEP_HUMAN ... for a yes/no judge, the point ruling for a scale judge.
    `headline` is QWK on a scale, kappa for yes/no. `uses` are the ones a licence may permit.
    `scale` or `binary` hold every figure behind it. On a scale, `recalibration` has the in-sample
    and the held-out figure side by side, `ceiling` the bands the judge does not tell apart.
    """

    judge: str
    judge_hash: str
    model: str
    trivial: bool
    anchor: Anchor
    scores: tuple[ItemScore, ...]
    state: JudgeState
    ruling: str
    diagnosis: Diagnosis
    action: str
    headline: Interval
    uses: tuple[str, ...]
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    scale: Admission | None = None
    binary: BinaryAdmission | None = None
    recalibration: Recalibration | None = None
    ceiling: Ceiling | None = None

    @property
    def agreement(self) -> Agreement | None:
        """Every figure on a scale: confusion, recalls, bias, correlations; None for yes/no."""
        return self.scale.agreement if self.scale else None

    @property
    def row(self) -> dict[str, str]:
        """The line as the admission table shows it."""
        found = self.agreement
        low, high = self.headline.ci_low, self.headline.ci_high
        shown = f"{self.headline.estimate:.2f}" if self.headline.defined else "-"
        ends = "" if math.isnan(low) else f" ({low:.2f} to {high:.2f})"
        least = self.binary.agreement.recall_minority if self.binary else None
        return {
            "judge": self.judge + (" (trivial)" if self.trivial else ""),
            "n": str(self.headline.n_cases),
            "QWK" if self.scale else "kappa": shown + ends,
            "Spearman": f"{found.spearman.estimate:.2f}"
            if found and found.spearman.defined
            else "-",
            "bias": f"{found.bias.estimate:+.2f}" if found else "-",
            "recall of the rarer class": f"{least.estimate:.2f}" if least else "-",
            "bands never given": ", ".join(map(str, found.never_awarded)) if found else "-",
            "state": self.state.value,
            "ruling": self.ruling,
            "diagnosis": self.diagnosis.value if found else "; ".join(map(in_words, self.reasons)),
            "licence": ", ".join(self.uses) or "none",
        }

    @property
    def sentence(self) -> str:
        """What was found, why, and the one thing to do."""
        why = "; ".join(in_words(reason) for reason in self.reasons)
        name = "QWK" if self.scale else "kappa"
        low, high = self.headline.ci_low, self.headline.ci_high
        ends = "no interval" if math.isnan(low) else f"{low:.2f} to {high:.2f}"
        found = f"{name} {self.headline.estimate:.2f} ({ends})"
        if not self.headline.defined:
            found = f"{name} not defined"
        return f"{self.judge}: {self.state} - {found}{f'; {why}' if why else ''}. {self.action}"


def admit_judge(
    judge: Judge,
    anchor: Anchor,
    scores: Sequence[ItemScore],
    *,
    domain: str = "",
    warnings: Sequence[str] = (),
    bars: Bars | None = None,
    binary_bars: BinaryBars | None = None,
    seed: int = 0,
) -> Admitted:
    """Rule on a judge from its scores on an anchor.

    Args:
        judge: Who scored.
        anchor: What it scored; its provenance decides whether a pass counts.
        scores: From `score_anchor`, or read from a file.
        domain: The domain the licence is wanted for.
        warnings: Those of the anchor's checks (`accept`).
        bars: Fixed before anybody looked.
        binary_bars: The same for yes/no judges.
        seed: Seed of the bootstrap intervals.

    Raises:
        AnchorError: If the anchor is one of pairs; those go through the reconstruction gate.
        StatsError: If a score is outside the categories.
    """
    if anchor.kind is AnchorKind.PAIRS:
        raise AnchorError(f"{anchor.where}: holds pairs; use the reconstruction gate for them.")
    found = [*warnings]
    if domain and anchor.domain != domain:
        found.append(f"the anchor's domain is {anchor.domain}, the target's {domain}")
    if len(scores) < SMALL:
        found.append(f"small anchor: {counted(len(scores), 'item')}")
    line = Admitted(
        judge=judge.name,
        judge_hash=judge.hash,
        model=judge.model,
        trivial=isinstance(judge, TrivialJudge),
        anchor=anchor,
        scores=tuple(scores),
        state=JudgeState.NOT_ASSESSABLE,
        ruling="",
        diagnosis=Diagnosis.NONE,
        action="",
        headline=Interval(float("nan"), float("nan"), float("nan")),
        uses=(),
        reasons=(),
        warnings=tuple(dict.fromkeys(found)),
    )
    if anchor.kind is AnchorKind.CRITERIA:
        return _yes_no(line, binary_bars, seed)
    return _on_a_scale(line, bars, seed)


def hold_against_trivial(lines: Sequence[Admitted]) -> tuple[Admitted, ...]:
    """Take every use from a judge that a trivial judge on the same anchor equals."""
    best: dict[str, float] = {}
    for line in lines:
        if line.trivial and line.headline.defined:
            key = line.anchor.digest
            best[key] = max(best.get(key, -1.0), line.headline.estimate)
    held: list[Admitted] = []
    for line in lines:
        bar = best.get(line.anchor.digest)
        if line.trivial or bar is None or not line.headline.estimate <= bar:
            held.append(line)
        else:
            reasons = (*line.reasons, "not_above_trivial")
            held.append(replace(line, uses=(), reasons=reasons))
    return tuple(held)


def evidence_of(line: Admitted, suite: Path) -> Evidence:
    """The finding as a licence keeps it."""
    criterion = line.anchor.criterion
    return Evidence(
        what=f"criterion:{criterion}" if line.binary else "scale",
        anchor=pin_anchor(line.anchor, suite),
        state=line.state.value,
        ruling=line.ruling,
        diagnosis=line.diagnosis.value if line.scale else "; ".join(map(in_words, line.reasons)),
        action=line.action,
        figures=_figures(line),
        grants=() if line.trivial else line.uses,
    )


def in_words(reason: str) -> str:
    """A machine-readable reason as people say it."""
    return REASONS.get(reason, reason.replace("_", " "))


def interval_json(found: Interval) -> dict[str, Any]:
    """An interval as a licence keeps it; undefined numbers are null."""
    plain = found.as_json()
    return {
        "estimate": plain["estimate"],
        "low": plain["ci_low"],
        "high": plain["ci_high"],
        "n": plain["n_cases"],
    }


def _on_a_scale(line: Admitted, bars: Bars | None, seed: int) -> Admitted:
    categories = [_number(c) for c in line.anchor.categories]
    human = [_number(s.human) for s in line.scores]
    judge = [None if s.judge is None else _number(s.judge) for s in line.scores]
    between = any(x is not None and x not in categories for x in (*human, *judge))
    ruled = admit(
        human,
        judge,
        categories,
        provenance=line.anchor.provenance.value,
        bars=bars,
        rounding="half_up" if between else None,
        seed=seed,
    )
    if between:
        human = [_number(line.anchor.band(s.human)) for s in line.scores]
    numbers = [math.nan if x is None else float(x) for x in judge]
    ceiling = find_ceiling(human, numbers, categories, seed=seed)
    return replace(
        line,
        state=ruled.state,
        ruling=ruled.point_ruling.value,
        diagnosis=ruled.diagnosis,
        action=_with_size(ruled),
        headline=ruled.qwk,
        uses=ruled.uses,
        reasons=ruled.reasons,
        warnings=(*line.warnings, *_never_given(ruled.agreement), *_not_told_apart(ceiling)),
        scale=ruled,
        recalibration=recalibrate(human, numbers, categories, seed=seed),
        ceiling=ceiling,
    )


def _yes_no(line: Admitted, bars: BinaryBars | None, seed: int) -> Admitted:
    def count(human: str, judge: str) -> int:
        return sum(s.human == human and s.judge == judge for s in line.scores)

    counts = (count("yes", "yes"), count("yes", "no"), count("no", "yes"), count("no", "no"))
    ruled = admit_binary(
        binary_agreement(*counts, n_invalid=len(line.scores) - sum(counts), seed=seed),
        provenance=line.anchor.provenance.value,
        bars=bars,
    )
    return replace(
        line,
        state=_STATE_OF[ruled.ruling],
        ruling=ruled.ruling.value,
        action=_BINARY_ACTIONS[ruled.ruling],
        headline=ruled.agreement.kappa,
        uses=(f"criterion:{line.anchor.criterion}",) if ruled.uses else (),
        reasons=ruled.reasons,
        binary=ruled,
    )


def _with_size(ruled: Admission) -> str:
    if ruled.pairs_needed is None:
        return ruled.action
    return (
        f"{ruled.action} This estimate would be proven with {counted(ruled.pairs_needed, 'item')}."
    )


def _never_given(found: Agreement) -> tuple[str, ...]:
    bands = ", ".join(map(str, found.never_awarded))
    return (f"bands never given: {bands}",) if bands else ()


def _not_told_apart(ceiling: Ceiling) -> tuple[str, ...]:
    if ceiling.band is None:
        return ()
    return (f"bands from {ceiling.band} upward are not told apart by this judge",)


def _figures(line: Admitted) -> dict[str, Any]:
    if line.binary:
        found = line.binary.agreement
        names = ("agreement", "kappa", "recall_pass", "recall_fail")
        return {
            **{name: interval_json(getattr(found, name)) for name in names},
            "counts": [found.tp, found.fn, found.fp, found.tn],
            "unread": found.n_invalid,
        }
    if line.scale is None:
        return {}
    found = line.scale.agreement
    names = ("qwk", "spearman", "pearson", "bias", "percent")
    return {
        **{name: interval_json(getattr(found, name)) for name in names},
        "recall": {str(c): interval_json(i) for c, i in found.recall.items()},
        "confusion": [list(row) for row in found.confusion],
        "mean_human": found.mean_human,
        "mean_judge": found.mean_judge,
        "recalibrated": _recalibrated(line.recalibration),
        "unread": found.n_invalid,
    }


def _recalibrated(found: Recalibration | None) -> dict[str, Any] | None:
    if found is None or found.map is None:
        return None
    return {
        "in_sample": found.qwk_in_sample,
        "held_out": interval_json(found.qwk_held_out),
        "optimism": found.optimism,
        "credible": found.credible,
    }


def _number(text: str) -> float | int:
    value = float(text)
    return int(value) if value.is_integer() else value

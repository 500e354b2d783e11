"""A judged rate corrected for the judge's errors, from people's labels on the same run.

Each way of drawing the labelled items needs its own estimator, and the recorded plan says which:
random, PPI++; so many of each true class, Rogan-Gladen; so many of each verdict, the weighted mean
over verdicts (the judge's recall cannot be read off such a sample: statistics.md sections 6 and
15). Where the judge is too weak, nothing is corrected: the labels alone stand.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from evalkit.counting import counted
from evalkit.errors import AnchorError
from evalkit.stats.binary import binary_agreement
from evalkit.stats.correction import CorrectedRate, ppi_crossfit, rogan_gladen
from evalkit.stats.quantiles import normal_quantile
from evalkit.stats.result import Interval
from evalkit.stats.strata import stratified_mean
from evalkit.validity.labels import CANNOT_TELL, Label, current_labels
from evalkit.validity.sampling_plan import Draw, Plan

__all__ = ["Corrected", "corrected_rate"]

FEWEST, FEWEST_PER_VERDICT = 40, 10


@dataclass(frozen=True, slots=True)
class Corrected:
    """The rate to be shown, how it came about, and the sentence for it.

    `rate` is None when the correction was refused; `labels_only` then stands where there is one.
    `worth` is how many times the labels the correction is worth. `uncorrected` is the judge's own
    rate, which no amount of data makes right.
    """

    rate: Interval | None
    labels_only: Interval | None
    worth: float
    uncorrected: float
    method: str
    sentence: str


def corrected_rate(
    labels: Iterable[Label],
    verdicts: Mapping[str, float | None],
    plan: Plan,
    *,
    seed: int = 0,
    level: float = 0.95,
) -> Corrected:
    """Correct the judge's pass rate of one run and criterion.

    Args:
        labels: Lines of the label file; those of this plan and criterion count.
        verdicts: Every item of the run to the judge's value, 1 pass, 0 fail, None unread.
        plan: How the labelled items were drawn.
        seed: Seed of the cross-fit.
        level: Confidence level.

    Raises:
        AnchorError: If a labelled item is not in the run, people disagree on one, or labels are
            no yes/no.
    """
    people = _yes_no(labels, plan)
    if strange := [item for item in people if item not in verdicts]:
        raise AnchorError(
            f"item {strange[0]!r} was labelled but is not in run {plan.run}: labels and verdicts "
            "must be of the same run."
        )
    both = {i: (y, f) for i, y in people.items() if (f := verdicts[i]) is not None}
    rest = [f for i, f in verdicts.items() if f is not None and i not in people]
    if any(value not in (0.0, 1.0) for value in (*rest, *(f for _, f in both.values()))):
        raise AnchorError("verdicts must be 1 (pass) or 0 (fail); a rate is corrected, not a mean.")
    counts = Counter((int(y), int(f)) for y, f in both.values())
    tp, fn, fp, tn = counts[1, 1], counts[1, 0], counts[0, 1], counts[0, 0]
    if plan.draw is Draw.SPOT_CHECK:
        return _refused("the items were picked because they are doubtful (spot check)", verdicts)
    if plan.draw is Draw.BY_VERDICT:
        return _by_verdict(both, verdicts, level)
    if weak := _too_weak(tp, fn, fp, tn, level):
        labels_only = None
        if plan.draw is Draw.RANDOM and len(both) > 1 and len(rest) > 1:
            y, f = zip(*both.values(), strict=True)
            labels_only = ppi_crossfit(y, f, rest, seed=seed, level=level).labels_only
        return _refused(weak, verdicts, labels_only)
    if plan.draw is Draw.BY_CLASS:
        read = [f for f in verdicts.values() if f is not None]
        found = rogan_gladen(
            tp, fn, fp, tn, judge_pass=int(sum(read)), judge_n=len(read), level=level
        )
        if found.rate.reasons:
            why = "the error rates do not fit this run: " + ", ".join(found.rate.reasons)
            return _refused(why.replace("_", " "), verdicts)
        return _result(found, "Rogan-Gladen", len(people), len(read))
    if len(both) < FEWEST or len(rest) < 2:
        return _refused(f"{counted(len(both), 'label')}; {FEWEST} are needed", verdicts)
    y, f = zip(*both.values(), strict=True)
    found = ppi_crossfit(y, f, rest, seed=seed, level=level)
    return _result(found, "PPI++", len(both), len(rest))


def _by_verdict(
    both: Mapping[str, tuple[float, float]], verdicts: Mapping[str, float | None], level: float
) -> Corrected:
    read = [f for f in verdicts.values() if f is not None]
    strata = Counter(read)
    labelled = {f: [[y] for y, g in both.values() if g == f] for f in strata}
    if few := [f for f, given in labelled.items() if len(given) < FEWEST_PER_VERDICT]:
        word = "pass" if few[0] else "fail"
        held = counted(len(labelled[few[0]]), "label")
        why = f"{held} of verdict {word}; {FEWEST_PER_VERDICT} are needed"
        return _refused(why, verdicts)
    rate = stratified_mean(labelled, strata, method="wilson", conf=level)
    own = sum(read) / len(read)
    sentence = (
        f"{rate.estimate:.1%} ({rate.ci_low:.1%} to {rate.ci_high:.1%}) by weighting {len(both)} "
        f"labels by the judge's {counted(len(read), 'verdict')}; the judge alone says {own:.1%}."
    )
    return Corrected(rate, None, math.nan, own, "weighted by verdict", sentence)


def _yes_no(labels: Iterable[Label], plan: Plan) -> dict[str, float]:
    values = {"yes": 1.0, "pass": 1.0, "1": 1.0, "no": 0.0, "fail": 0.0, "0": 0.0}
    found: dict[str, float] = {}
    for (item, criterion, _), label in current_labels(labels).items():
        if criterion != plan.criterion or label.plan != plan.id or label.label == CANNOT_TELL:
            continue
        value = values.get(label.label or "")
        if value is None:
            raise AnchorError(f"item {item!r}: label {label.label!r} is no yes or no.")
        if found.setdefault(item, value) != value:
            raise AnchorError(f"item {item!r}: people disagree; adjudicate it first.")
    return found


def _too_weak(tp: int, fn: int, fp: int, tn: int, level: float) -> str:
    """Why the judge cannot be corrected for; "" when TPR + TNR - 1 is shown to be above 0."""
    positives, negatives = tp + fn, fp + tn
    if not positives or not negatives:
        return f"people said {'no' if not positives else 'yes'} to every labelled item"
    found = binary_agreement(tp, fn, fp, tn, n_boot=0)
    # Laplace's rates, as in the adjusted interval: a rate of 0 or 1 has an error, too.
    q1, q0 = (tp + 1) / (positives + 2), (tn + 1) / (negatives + 2)
    se = math.sqrt(q1 * (1 - q1) / (positives + 2) + q0 * (1 - q0) / (negatives + 2))
    if q1 + q0 - 1 - normal_quantile((1 + level) / 2) * se > 0:
        return ""
    return (
        f"the judge is too weak: it passes {found.recall_pass.estimate:.0%} of what people pass "
        f"and fails {found.recall_fail.estimate:.0%} of what they fail, which guessing could do"
    )


def _result(found: CorrectedRate, method: str, n_labels: int, n_judged: int) -> Corrected:
    rate = found.rate
    labels_only = found.labels_only if found.labels_only.defined else None
    worth = ""
    if labels_only is not None:
        better = found.label_gain >= 1
        gain = f"worth {found.label_gain:.1f} times the {counted(n_labels, 'label')}"
        worth = f"; {gain}" if better else f"; use the labels alone, they are tighter ({gain})"
    return Corrected(
        rate=rate,
        labels_only=labels_only,
        worth=found.label_gain,
        uncorrected=found.uncorrected,
        method=method,
        sentence=(
            f"{rate.estimate:.1%} ({rate.ci_low:.1%} to {rate.ci_high:.1%}) by {method} from "
            f"{counted(n_labels, 'label')} and {counted(n_judged, 'verdict')}; the judge alone "
            f"says {found.uncorrected:.1%}{worth}."
        ),
    )


def _refused(
    why: str, verdicts: Mapping[str, float | None], labels_only: Interval | None = None
) -> Corrected:
    read = [f for f in verdicts.values() if f is not None]
    stands = ""
    if labels_only is not None:
        low, high = labels_only.ci_low, labels_only.ci_high
        stands = f" The labels alone say {labels_only.estimate:.1%} ({low:.1%} to {high:.1%})."
    return Corrected(
        rate=None,
        labels_only=labels_only,
        worth=math.nan,
        uncorrected=sum(read) / len(read) if read else math.nan,
        method="",
        sentence=f"Not corrected: {why}.{stands}",
    )

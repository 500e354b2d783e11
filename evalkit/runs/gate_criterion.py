"""One criterion of the gate: its rulings, the licence of its judge, and one word for all of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from evalkit.cases.criterion import Criterion
from evalkit.cases.suite import Suite
from evalkit.judges import load_judge
from evalkit.judges.judge import Judge
from evalkit.runs.gate_result import NOT_COMPARED, SHOWN, CriterionResult
from evalkit.runs.gate_rulings import Evidence, check_rules, own_rulings, relative_ruling
from evalkit.runs.manifest import Manifest
from evalkit.runs.matrix import CriterionScores
from evalkit.runs.summary import CriterionSummary
from evalkit.stats.decision import Decision, Ruling, Strictness
from evalkit.stats.gate import holm_family
from evalkit.stats.result import Interval
from evalkit.validity.licence import Licence
from evalkit.validity.licence_check import Ruling as LicenceRuling
from evalkit.validity.licence_check import check_licence, use_of

__all__ = ["Measured", "Permit", "corrected", "licences_of", "result_of"]

# What decides first: a proven failure, then what was not measured, then what cannot be told.
ORDER = (Decision.FAIL, Decision.BROKEN, Decision.UNDECIDED, Decision.PASS)


@dataclass(frozen=True)
class Permit:
    """A judge as it stands now, what its licence says, and TPR + TNR - 1 where it is known."""

    judge_hash: str
    ruling: LicenceRuling
    judge_j: float | None = None


@dataclass(frozen=True)
class Measured:
    """One criterion's scores now and in the baseline; `why_not` says why these are not compared.

    `unproven` says why its scorer has no right to decide: it has not told good from bad.
    """

    now: CriterionScores | None
    then: CriterionScores | None = None
    why_not: str = ""
    summary: CriterionSummary | None = None
    before: Interval | None = None
    unproven: str = ""


def licences_of(
    suite: Suite,
    names: Collection[str],
    *,
    candidate: str = "",
    judges: Mapping[str, Judge] | None = None,
    now: datetime | None = None,
) -> dict[str, Permit]:
    """What the licences say of the judges of these criteria.

    Raises:
        JudgeError: If a judge file is missing or wrong.
    """
    found: dict[str, Permit] = {}
    for criterion in suite.criteria:
        if criterion.judge is None or criterion.name not in names:
            continue
        judge = (judges or {}).get(criterion.name) or load_judge(suite.folder / criterion.judge)
        use = use_of(judge, criterion.name)
        ruling = check_licence(
            judge, suite.folder, domain=suite.domain, use=use, now=now, candidate=candidate
        )
        j = _informedness(ruling.licence, use) if ruling.licence else None
        found[criterion.name] = Permit(judge.hash, ruling, j)
    return found


def result_of(
    criterion: Criterion,
    rule: Mapping[str, Any],
    measured: Measured,
    by: Evidence,
    manifest: Manifest,
    permit: Permit | None,
) -> CriterionResult:
    """The rulings on one criterion and the word that stands for all of them.

    Raises:
        SuiteError: If a threshold can never decide.
    """
    gate = bool(rule.get("gate", True))
    result = CriterionResult(
        criterion.name,
        SHOWN,
        gate,
        rule,
        "",
        now=measured.summary,
        before=measured.before,
        licence=permit.ruling.sentence if permit else "",
    )
    if gate and (broken := measured.unproven or _no_right(criterion, manifest, permit)):
        return replace(result, word=Decision.BROKEN.value, sentence=broken)
    now = measured.now
    if now is None or not len(now):
        if not gate:
            return replace(result, sentence="not measured in this run; it decides nothing.")
        why = (
            "no case of this run fits it" if criterion.name in manifest.by else "this run has none"
        )
        return replace(
            result,
            word=Decision.BROKEN.value,
            sentence=f"not measured: {why}, so nothing is known.",
        )
    check_rules(criterion.name, rule, now.score_range)
    if criterion.against and measured.why_not:
        return _not_compared(result, [], measured.why_not, by)
    rulings = own_rulings(criterion, rule, now, by)
    if rule.get("max_drop") is not None:
        if measured.why_not or measured.then is None:
            return _not_compared(result, rulings, measured.why_not or "the baseline has none", by)
        rulings.append(
            relative_ruling(
                rule,
                now,
                measured.then,
                by,
                judged=criterion.judge is not None,
                judge_j=permit.judge_j if permit else None,
            )
        )
    return worded(replace(result, rulings=tuple(rulings)))


def worded(result: CriterionResult) -> CriterionResult:
    """The result with the word and the sentence that its rulings give."""
    if not result.rulings:
        said = result.not_compared and f"not compared: {result.not_compared}."
        word = NOT_COMPARED if result.not_compared else SHOWN
        return replace(result, word=word, sentence=said or "no threshold; it decides nothing.")
    first = min(result.rulings, key=lambda r: ORDER.index(r.decision))
    word = first.decision.value if result.gate else SHOWN
    said = " ".join(_capital(r.sentence) for r in result.rulings)
    if result.not_compared:
        said += f" Not compared: {result.not_compared}."
    return replace(result, word=word, sentence=said)


def corrected(results: Sequence[CriterionResult], alpha: float) -> list[CriterionResult]:
    """Take back alarms that do not stand up in the family of criteria that can block."""
    at = [i for i, r in enumerate(results) if r.gate and r.relative is not None]
    family = holm_family([_relative(results[i]) for i in at], alpha)
    out = list(results)
    for i, ruling in zip(at, family, strict=True):
        rulings = tuple(ruling if r.rule == "relative" else r for r in out[i].rulings)
        out[i] = worded(replace(out[i], rulings=rulings))
    return out


def _relative(result: CriterionResult) -> Ruling:
    assert result.relative is not None
    return result.relative


def _not_compared(
    result: CriterionResult, rulings: list[Ruling], why: str, by: Evidence
) -> CriterionResult:
    """At smoke what cannot be compared is listed; a release needs the comparison."""
    found = worded(replace(result, rulings=tuple(rulings), not_compared=why))
    if result.gate and by.strictness is Strictness.RELEASE and found.word != Decision.FAIL.value:
        needs = f"a release compares with a baseline, and {why}."
        return replace(found, word=Decision.BROKEN.value, sentence=f"not measured: {needs}")
    return found


def _no_right(criterion: Criterion, manifest: Manifest, permit: Permit | None) -> str:
    """Why a judged criterion may not decide, or ""."""
    if criterion.judge is None:
        return ""
    if permit is None:
        return "its judge was not checked for a licence."
    if not permit.ruling.valid:
        return permit.ruling.sentence
    judged_by = manifest.by.get(criterion.name, permit.judge_hash)
    if judged_by != permit.judge_hash:
        return (
            f"the verdicts are of judge {judged_by}, the judge file is now {permit.judge_hash}: "
            "run again, so that the licensed judge judges."
        )
    return ""


def _informedness(licence: Licence, use: str) -> float | None:
    for evidence in licence.evidence:
        recalls = [evidence.figures.get(f"recall_{side}") for side in ("pass", "fail")]
        if use in evidence.grants and all(isinstance(r, Mapping) for r in recalls):
            values = [r.get("estimate") for r in recalls if isinstance(r, Mapping)]
            if all(isinstance(v, int | float) for v in values):
                return float(sum(v for v in values if v is not None)) - 1.0
    return None


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]

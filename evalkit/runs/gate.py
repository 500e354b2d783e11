"""May this go out? The one decision function, called by the gate notebook and the pytest plugin.

Exit status, in this precedence: 2 usage or configuration (raised before there is a result), 1 any
proven FAIL, 4 anything BROKEN, 3 UNDECIDED at release, 0 otherwise. Errors never pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from evalkit.cases.suite import Suite
from evalkit.counting import counted
from evalkit.errors import UsageError
from evalkit.judges.judge import Judge
from evalkit.models.recordings import HANDWRITTEN
from evalkit.runs.baseline import Comparability, comparability
from evalkit.runs.comparison import case_contents
from evalkit.runs.early_stop import stopped_ruling
from evalkit.runs.gate_criterion import Measured, corrected, licences_of, result_of
from evalkit.runs.gate_looks import looks
from evalkit.runs.gate_redefined import FLAG, loosened, problem_of
from evalkit.runs.gate_reference import Reference, edited_after, same_replies
from evalkit.runs.gate_result import NOT_COMPARED, CriterionResult, GateResult
from evalkit.runs.gate_rulings import Evidence
from evalkit.runs.gate_sentence import last_line
from evalkit.runs.manifest import Manifest
from evalkit.runs.matrix import criterion_scores
from evalkit.runs.run import Run
from evalkit.runs.summary import summarise, traffic_weights
from evalkit.scorers.discrimination import unproven_scorers
from evalkit.stats.decision import Decision, Strictness
from evalkit.stats.sequential import ALPHA as ALPHA_LEFT

__all__ = ["decide"]

ALPHA = 0.05


def decide(
    run: Run,
    suite: Suite,
    *,
    baseline: Run | None = None,
    strictness: Strictness | str = Strictness.SMOKE,
    reference: Reference | None = None,
    earlier: Iterable[Manifest] = (),
    judges: Mapping[str, Judge] | None = None,
    now: datetime | None = None,
    allow_redefined: bool = False,
) -> GateResult:
    """Rule on every criterion of a run, and on the run as a whole.

    The thresholds that decide are those of the reference, else those hashed into the run.

    Args:
        run: What was measured.
        suite: Its suite.
        baseline: The frozen run that relative criteria are compared with.
        strictness: smoke (false alarms held at 5 %) or release (shipped regressions).
        reference: The suite at the git ref that this change is measured against.
        earlier: Manifests of earlier runs, to name thresholds edited after the replies were there.
        judges: The judge of each judged criterion; from the suite's files by default.
        now: The moment at which licences are checked.
        allow_redefined: Decide although cases, criteria or thresholds that decided before were
            redefined (since the ref, or without one since the freeze or since the replies).

    Raises:
        UsageError: If the run holds no observation, belongs to another suite, or a threshold can
            never decide.
    """
    strictness = Strictness(strictness)
    manifest = run.manifest
    n_rows = sum(1 for _ in run)
    if not n_rows:
        raise UsageError("the selection holds no case: nothing was measured, so nothing may pass.")
    if manifest.suite != suite.name:
        raise UsageError(f"the run is of suite {manifest.suite!r}, not of {suite.name!r}.")
    rules = {**manifest.thresholds, **((reference.thresholds or {}) if reference else {})}
    redefined = _redefined(manifest, rules, baseline, reference, earlier := tuple(earlier))
    run = replace(run, manifest=replace(manifest, thresholds=rules))
    if baseline is not None:
        pins = comparability(manifest, baseline.manifest)
        baseline = replace(baseline, manifest=replace(baseline.manifest, thresholds=rules))
    else:
        pins = Comparability()
    gating = {c.name for c in suite.criteria if rules.get(c.name, {}).get("gate", True)}
    permits = licences_of(suite, gating, candidate=manifest.model, judges=judges, now=now)
    results = corrected(
        [
            result_of(
                criterion,
                rules.get(criterion.name, {}),
                measured,
                _evidence(run, suite, strictness, reference, compare=baseline is not None),
                manifest,
                permits.get(criterion.name),
            )
            for criterion, measured in zip(
                suite.criteria, _measured(run, suite, baseline, pins, reference), strict=True
            )
        ],
        _alpha(manifest),
    )
    results = [stopped_ruling(result, manifest) for result in results]
    if reference is not None and not allow_redefined:
        results += [_gone(name, reference.ref) for name in reference.removed]
    problems = (*_problems(run, results), *(() if allow_redefined else redefined))
    result = GateResult(
        decision=_decision(results, problems),
        strictness=strictness,
        sentence="",
        manifest=manifest,
        criteria=tuple(results),
        n_rows=n_rows,
        n_missing=run.errors,
        problems=problems,
        missing=tuple(manifest.calls.get("missing", ())),
        look_at=looks(run, results, baseline),
        differences=pins.differences,
        changes=reference.changes if reference else (),
        edited=edited_after(manifest, suite, earlier),
        notes=(
            *_notes(run, suite, baseline, results),
            *(f"accepted by {FLAG}: {text}" for text in redefined if allow_redefined),
        ),
        ref=reference.ref if reference else "",
        baseline=baseline.manifest if baseline else None,
        failed_floors=tuple(r.name for r in results if r.gate and r.misses_floor),
    )
    return replace(result, sentence=last_line(result))


def _redefined(
    manifest: Manifest,
    rules: Mapping[str, Mapping[str, Any]],
    baseline: Run | None,
    reference: Reference | None,
    earlier: Sequence[Manifest],
) -> tuple[str, ...]:
    """What decided before and was redefined; the frozen baseline's word is later than a run's."""
    if reference is not None:
        what = f"this change redefines what decides at {reference.ref}"
        mend = f"Where that is meant, make it a change of its own and gate it with {FLAG}"
        return problem_of(reference.redefined, what, mend)
    mend = f"Where that is meant, say {FLAG}; with --freeze it is settled"
    if baseline is not None and baseline.manifest.suite == manifest.suite:
        looser = loosened(baseline.manifest.thresholds, rules, "in the baseline")
        return problem_of(looser, "what decides was loosened since the baseline was frozen", mend)
    looser = (
        text
        for other in same_replies(manifest, earlier)
        for text in loosened(other.thresholds, rules, f"when {other.run_id} was made")
    )
    return problem_of(looser, "what decides was loosened after the replies were there", mend)


def _alpha(manifest: Manifest) -> float:
    """Half of alpha is spent on looking early."""
    return ALPHA_LEFT if manifest.sampling.get("sequential") else ALPHA


def _evidence(
    run: Run, suite: Suite, strictness: Strictness, reference: Reference | None, *, compare: bool
) -> Evidence:
    return Evidence(
        strictness,
        alpha=_alpha(run.manifest),
        weights=traffic_weights(run.manifest.sampling),
        contents=case_contents(suite) if compare else {},
        changed=reference.changed_cases if reference else (),
    )


def _measured(
    run: Run,
    suite: Suite,
    baseline: Run | None,
    pins: Comparability,
    reference: Reference | None,
) -> list[Measured]:
    """Each criterion's scores now and then, in the suite's order."""
    now = criterion_scores(run, run.manifest)
    then = criterion_scores(baseline, baseline.manifest) if baseline else {}
    summary = {c.name: c for c in summarise(run).criteria}
    before = {c.name: c.rate for c in summarise(baseline).criteria} if baseline else {}
    where = f" at {reference.ref}" if reference else ""

    def why_not(name: str) -> str:
        if baseline is None:
            return f"there is no baseline{where} yet (--freeze makes one)"
        if why := pins.why_not(name):
            return why
        if name in now and name in then and now[name].score_range != then[name].score_range:
            return "its scale changed"
        return ""

    unproven = {u.criterion: f"not proven: {u.reason}." for u in unproven_scorers(suite)}
    return [
        Measured(
            now.get(c.name),
            then.get(c.name),
            why_not(c.name),
            summary.get(c.name),
            before.get(c.name),
            unproven.get(c.name, ""),
        )
        for c in suite.criteria
    ]


def _gone(name: str, ref: str) -> CriterionResult:
    text = (
        f"it decides at {ref} and is gone from the suite: put it back, or remove it in a change "
        f"of its own that is gated with {FLAG}."
    )
    return CriterionResult(name, Decision.BROKEN.value, True, {}, text)


def _decision(results: Sequence[CriterionResult], problems: Sequence[str]) -> Decision:
    words = {r.word for r in results if r.gate}
    if Decision.FAIL.value in words:
        return Decision.FAIL
    if Decision.BROKEN.value in words or problems:
        return Decision.BROKEN
    return Decision.UNDECIDED if Decision.UNDECIDED.value in words else Decision.PASS


def _problems(run: Run, results: Sequence[CriterionResult]) -> tuple[str, ...]:
    """What breaks the run as a whole, whatever its criteria say."""
    manifest, found = run.manifest, []
    if manifest.stopped:
        found.append(f"the run ended early: {manifest.stopped}")
    if missing := manifest.calls.get("missing", ()):
        are = "call is" if len(missing) == 1 else "calls are"
        found.append(
            f"{len(missing)} {are} not recorded, and this run asks nobody: run with --run-live, "
            "or add the recordings"
        )
    late = next((row.error for row in run if "the run's deadline of" in row.error), "")
    if late and not manifest.stopped:
        found.append(f"the run ended early: {late}")
    decided = [r for r in results if r.gate and r.word != NOT_COMPARED]
    if not decided:
        why = next((r.not_compared for r in results if r.gate and r.not_compared), "")
        found.append(f"nothing was decided: {why or 'no criterion of the suite decides anything'}")
    return tuple(found)


def _notes(
    run: Run, suite: Suite, baseline: Run | None, results: Sequence[CriterionResult]
) -> list[str]:
    manifest, said = run.manifest, []
    if manifest.origin == "scripted":
        said.append("the replies came from a script: this says nothing of any model's quality")
    elif manifest.origin == HANDWRITTEN:
        said.append("some replies are handwritten: this says nothing of any model's quality")
    if manifest.prompt.get("draft"):
        said.append("the prompt is an unsaved draft")
    if baseline is not None and baseline.manifest.failed_floors:
        floors = ", ".join(baseline.manifest.failed_floors)
        said.append(f"the baseline was a first freeze below these floors: {floors}")
    if (n := manifest.sampling.get("n", 0)) < len(suite.cases):
        said.append(f"{n} of the suite's {counted(len(suite.cases), 'case')} ran")
    if stop := manifest.sampling.get("sequential"):
        said.append(str(stop.get("said", "")))
    unsettled = [r.name for r in results if not r.gate]
    if unsettled:
        said.append(f"shown only, decides nothing: {', '.join(unsettled)}")
    return [text for text in said if text]

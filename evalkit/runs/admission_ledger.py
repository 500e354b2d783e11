"""What the ledger keeps of an admission: one line a candidate and anchor, one a set of pairs."""

from __future__ import annotations

import math

from evalkit.judges.judge import Judge
from evalkit.runs.git import git_state
from evalkit.runs.ledger import LedgerEntry
from evalkit.stats.admission import Bars, JudgeState
from evalkit.stats.binary import BinaryBars
from evalkit.stats.reconstruction import ReconstructionVerdict
from evalkit.stats.result import Interval
from evalkit.validity.admission_run import AdmissionRun
from evalkit.validity.licence import pin_judge

__all__ = ["admission_entries"]

_PASSED = {JudgeState.CREDIBLE: "pass", JudgeState.ELIMINATED: "fail"}
_GATED = {
    ReconstructionVerdict.PASS: "pass",
    ReconstructionVerdict.FAIL: "fail",
    ReconstructionVerdict.BROKEN: "broken",
}


def admission_entries(found: AdmissionRun, made: str) -> list[LedgerEntry]:
    """`judge.qwk` (yes/no judges: `judge.kappa`) and `judge.recon` of every candidate.

    A pass on labels that no person gave is `undecided`: it certifies nothing.

    Args:
        found: The admission.
        made: When, as ISO 8601.
    """
    git = git_state(found.suite.folder)
    sha = git.sha[:12] + ("+dirty" if git.dirty else "")

    def entry(
        judge: Judge, metric: str, value: Interval, bar: float, passed: str, anchor: str
    ) -> LedgerEntry:
        return LedgerEntry(
            date=made,
            git_sha=sha,
            prompt_hash=pin_judge(judge).prompt,
            metric=metric,
            name=found.suite.name,
            score=value.estimate,
            threshold=bar,
            passed=passed,
            model=judge.model,
            app_version=found.suite.task.app_version,
            suite_digest=found.suite.digest,
            judge_hash=judge.hash,
            n=value.n_cases,
            ci_low=value.ci_low,
            ci_high=value.ci_high,
            run_id=f"admission:{judge.name}:{anchor}",
        )

    entries: list[LedgerEntry] = []
    for judge in found.judges:
        lines, pairs = found.of(judge)
        for line in lines:
            metric = "judge.kappa" if line.binary else "judge.qwk"
            bar = BinaryBars().kappa if line.binary else Bars().credible
            word = _PASSED.get(line.state, "undecided")
            entries.append(entry(judge, metric, line.headline, bar, word, line.anchor.name))
        for run in pairs:
            gate = run.gate
            word = _GATED.get(gate.verdict, "undecided")
            if word == "pass" and not run.known.pin.provenance.may_grant:
                word = "undecided"
            entries.append(
                entry(judge, "judge.recon", gate.accuracy, gate.threshold, word, run.known.pin.name)
            )
    return [e for e in entries if not math.isnan(e.score)]

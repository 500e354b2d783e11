"""Admission from end to end: candidates and trivial judges, an anchor, known pairs, a licence.

What `notebooks/admit.py` and its headless twin call. Price first (`admission_requests`), then
`run_admission`, then `AdmissionRun.write_licences`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from evalkit.cases.suite import Suite
from evalkit.cases.tables import read_text
from evalkit.errors import AnchorError
from evalkit.judges import Judge, trivial_judges
from evalkit.judges.judge import Ask
from evalkit.records import Request
from evalkit.stats.reconstruction import ReconstructionVerdict
from evalkit.validity.admission import Admitted, admit_judge, hold_against_trivial
from evalkit.validity.anchor_checks import Accepted, SeenText, accept, seen_cases
from evalkit.validity.anchors import Anchor, AnchorKind
from evalkit.validity.licence import Evidence, pin_anchor, write_licence
from evalkit.validity.reconstruction import (
    KnownPairs,
    Reconstructed,
    evidence_for,
    pair_requests,
    pairs_of_anchor,
    reconstruct_judge,
)
from evalkit.validity.scoring import ItemScore, anchor_requests, score_anchor, write_scores

__all__ = ["AdmissionRun", "Step", "admission_requests", "run_admission", "seen_by_suite"]


@dataclass(frozen=True, slots=True)
class Step:
    """One station on a judge's path to a licence; `missing` says what it lacks to be reached."""

    name: str
    reached: bool
    missing: str = ""


@dataclass(frozen=True)
class AdmissionRun:
    """Everything found: a line per judge and per set of pairs (candidates, then trivial judges)."""

    suite: Suite
    judges: tuple[Judge, ...]
    lines: tuple[Admitted, ...]
    reconstructed: tuple[Reconstructed, ...]
    checked: Accepted | None

    def of(self, judge: Judge) -> tuple[list[Admitted], list[Reconstructed]]:
        """What was found of one judge."""
        return (
            [line for line in self.lines if line.judge_hash == judge.hash and not line.trivial],
            [found for found in self.reconstructed if found.judge.hash == judge.hash],
        )

    def path_of(self, judge: Judge) -> tuple[Step, ...]:
        """The stations from candidate to licensed, with what is missing at each."""
        lines, pairs = self.of(judge)
        line = lines[0] if lines else None
        passed = bool(pairs) and all(r.gate.verdict is ReconstructionVerdict.PASS for r in pairs)
        ranked = any(r.known.pin.provenance.may_grant for r in pairs)
        granted = any(e.grants for e in self._evidence(judge))
        diagnosed = line.state in ("CREDIBLE", "MARGINAL") if line else ranked and passed
        return (
            Step("candidate", True),
            Step("anchored", line is not None or ranked, "" if line or ranked else "no anchor yet"),
            Step("diagnosed", diagnosed, line.sentence if line else "nothing to diagnose yet"),
            Step("reconstructed", passed, "" if passed else _missing_pairs(judge, pairs)),
            Step("licensed", granted, "" if granted else "nothing is permitted yet"),
        )

    def write_licences(self, *, now: datetime | None = None) -> list[Path]:
        """Write a licence per candidate, also when it permits nothing."""
        written: list[Path] = []
        for judge in self.judges:
            lines, _ = self.of(judge)
            written.append(
                write_licence(
                    judge,
                    self.suite.folder,
                    domain=self.suite.domain,
                    evidence=self._evidence(judge),
                    warnings=[w for line in lines for w in line.warnings],
                    now=now,
                )
            )
        return written

    def write_scores(self, folder: Path) -> list[Path]:
        """Save `id, human, judge` of every line, so that each number can be computed again."""
        written: dict[Path, Sequence[ItemScore]] = {}
        for line in self.lines:
            path = folder / f"{line.judge}.{line.judge_hash}.{line.anchor.name}.csv"
            written[path] = line.scores
        for found in self.reconstructed:
            path = folder / f"{found.judge.name}.{found.judge.hash}.{found.known.pin.name}.csv"
            written[path] = found.scores
        for path, scores in written.items():
            write_scores(path, scores)
        return [*written]

    def _evidence(self, judge: Judge) -> list[Evidence]:
        lines, pairs = self.of(judge)
        return evidence_for(lines, pairs, self.suite.folder, self.suite.domain)


def admission_requests(
    suite: Suite, judges: Sequence[Judge], anchor: Anchor | None, known: KnownPairs | None = None
) -> list[Request]:
    """Every call that `run_admission` would send; trivial judges send none."""
    sent: list[Request] = []
    for judge in judges:
        if anchor is not None and anchor.kind is not AnchorKind.PAIRS:
            sent += anchor_requests(judge, anchor)
        for pairs in _pairs(suite, anchor, known) if _compares(judge) else ():
            sent += pair_requests(judge, pairs)
    return sent


async def run_admission(
    suite: Suite,
    judges: Sequence[Judge],
    anchor: Anchor | None,
    ask: Ask,
    *,
    known: KnownPairs | None = None,
    own_names: Sequence[str] = (),
    seed: int = 0,
    on_done: Callable[[str], None] | None = None,
) -> AdmissionRun:
    """Let candidates and trivial judges score an anchor and known pairs, and rule on each.

    Args:
        suite: For which suite the judges are wanted.
        judges: The candidates.
        anchor: Levels, yes/no labels, or pairs that people ranked; None for `known` alone.
        ask: The seam to the models.
        known: Known strong/weak pairs, for judges that compare.
        own_names: Scorers whose labels would be circular.
        seed: Seed of the bootstrap intervals.
        on_done: Told of each item and pair that is done, by id.

    Raises:
        AnchorError: If neither anchor nor pairs are given, or the anchor is circular.
        JudgeError: If a judge cannot judge such items.
    """
    if anchor is None and known is None:
        raise AnchorError("admission needs an anchor, known pairs, or both.")
    checked: Accepted | None = None
    lines: list[Admitted] = []
    found: list[Reconstructed] = []
    if anchor is not None:
        checked = accept(anchor, seen_by_suite(suite), own_names=own_names)
    if checked is not None and checked.anchor.kind is not AnchorKind.PAIRS:
        beside = trivial_judges(judges[0]) if judges else trivial_judges()
        for judge in (*judges, *beside):
            scores = await score_anchor(
                judge, checked.anchor, ask, on_item=lambda s: on_done(s.id) if on_done else None
            )
            lines.append(
                admit_judge(
                    judge,
                    checked.anchor,
                    scores,
                    domain=suite.domain,
                    warnings=checked.warnings,
                    seed=seed,
                )
            )
    comparing = [judge for judge in judges if _compares(judge)]
    for pairs in _pairs(suite, checked.anchor if checked else None, known) if comparing else ():
        for judge in (*comparing, *trivial_judges()):
            found.append(
                await reconstruct_judge(
                    judge, pairs, ask, on_pair=lambda v: on_done(v.case_id) if on_done else None
                )
            )
    return AdmissionRun(suite, tuple(judges), hold_against_trivial(lines), tuple(found), checked)


def seen_by_suite(suite: Suite) -> list[SeenText]:
    """What a suite shows its models and judges: every prompt, few-shot and training cases."""
    shown = [
        SeenText(f"{part}/{path.name}", read_text(path))
        for part in ("prompts", "judges")
        for path in sorted((suite.folder / part).glob("*.md"))
    ]
    return [*shown, *seen_cases(suite.cases, where="cases.jsonl")]


def _pairs(suite: Suite, anchor: Anchor | None, known: KnownPairs | None) -> list[KnownPairs]:
    ranked = anchor is not None and anchor.kind is AnchorKind.PAIRS
    found = [pairs_of_anchor(anchor, pin_anchor(anchor, suite.folder))] if ranked and anchor else []
    return [*found, *([known] if known is not None else [])]


def _compares(judge: Judge) -> bool:
    return judge.kind in ("pairwise", "scale")


def _missing_pairs(judge: Judge, pairs: Sequence[Reconstructed]) -> str:
    if not _compares(judge):
        return "not asked of a yes/no judge: it compares nothing"
    return "; ".join(r.sentence for r in pairs) or "no known pairs were judged"

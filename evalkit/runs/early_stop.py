"""Stop a long run as soon as the comparison with the baseline is settled, and say so.

Cases are asked in an order fixed by a seed before the first call, and looked at in that order:
after every case the evidence processes of `stats.sequential` tell whether a drop is shown or ruled
out. Only criteria with `max_drop` can end a run. They end it with FAIL at any time, with PASS only
where nothing else needs the whole set; a floor is never read from a run that stopped.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from evalkit.counting import counted
from evalkit.records import Case, Row
from evalkit.runs.gate_criterion import worded
from evalkit.runs.gate_result import CriterionResult
from evalkit.runs.manifest import Manifest
from evalkit.runs.matrix import criterion_scores, score_range_of, value_in_unit
from evalkit.runs.plan import Plan
from evalkit.runs.run import Run
from evalkit.stats.decision import Decision, Ruling, Strictness
from evalkit.stats.sequential import ALPHA, WORTH_IT, SequentialGate
from evalkit.stats.wording import change_text

__all__ = ["WORTH_IT", "EarlyStop", "early_stop_for", "stopped_ruling"]


@dataclass
class EarlyStop:
    """What is known while a run goes on. One object serves one run.

    `before` are the baseline's case means by criterion, `order` the case ids as they are looked at,
    `whole` tells that some criterion needs every case.
    """

    manifest: Manifest
    repeats: int
    seed: int
    order: tuple[str, ...]
    before: Mapping[str, Mapping[str, float | None]]
    gates: Mapping[str, SequentialGate]
    whole: bool
    rows: dict[int, Row] = field(default_factory=dict[int, Row])
    looked: int = 0
    decided: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    _open: dict[str, list[Row]] = field(default_factory=dict[str, list[Row]])

    def observations(self, plan: Plan) -> Iterator[tuple[int, tuple[Case, int]]]:
        """The plan's observations with their numbers, in the order in which they are asked."""
        at = {case.id: i for i, case in enumerate(plan.sample.cases)}
        for name in self.order:
            for repeat in range(plan.repeats):
                yield at[name] * plan.repeats + repeat, (plan.sample.cases[at[name]], repeat)

    def see(self, index: int, row: Row) -> bool:
        """Take a finished row; True as soon as nothing more has to be asked."""
        if self.settled:
            return True
        self.rows[index] = row
        self._open.setdefault(row.case_id, []).append(row)
        while self.looked < len(self.order) and not self.settled:
            rows = self._open.get(self.order[self.looked], [])
            if len(rows) < self.repeats:
                break
            self.looked += 1
            self._look(rows)
        return self.settled

    @property
    def settled(self) -> bool:
        """Whether the run may end before its last case."""
        words = [gate.decision for gate in self.gates.values()]
        if Decision.FAIL in words:
            return True
        return not self.whole and all(word is Decision.PASS for word in words)

    @property
    def kept(self) -> list[Row]:
        """The rows of the cases looked at, in case order."""
        names = set(self.order[: self.looked])
        return [row for _, row in sorted(self.rows.items()) if row.case_id in names]

    def reduced(self, plan: Plan) -> Plan:
        """The plan of the cases that were looked at."""
        names = set(self.order[: self.looked])
        cases = tuple(case for case in plan.sample.cases if case.id in names)
        sizes = {h: sum(c.stratum == h for c in cases) for h in plan.sample.sizes}
        return replace(plan, sample=replace(plan.sample, cases=cases, sizes=sizes))

    def as_json(self) -> dict[str, Any]:
        """What the manifest keeps."""
        return {
            "order_seed": self.seed,
            "planned": len(self.order),
            "looked_at": self.looked,
            "alpha_running": {name: gate.alpha_running for name, gate in self.gates.items()},
            "decided": self.decided,
            "said": self._said(),
        }

    def _said(self) -> str:
        cases = counted(len(self.order), "case")
        if self.looked < len(self.order):
            return f"stopped early: settled after {self.looked} of {cases}"
        return f"looked at after each of {cases}; it never stopped early"

    def _look(self, rows: list[Row]) -> None:
        for name, gate in self.gates.items():
            if name not in rows[0].scores or rows[0].case_id not in self.before[name]:
                continue
            then = self.before[name][rows[0].case_id]
            now = [
                value
                for row in rows
                if (value := value_in_unit(row.scores[name], row, self.manifest, name)[0])
                is not None
            ]
            low, high = score_range_of(self.manifest, name)
            change = math.nan
            if now and then is not None:
                change = (sum(now) / len(now) - then) / (high - low)
            was = gate.decision
            found = gate.add(change)
            if was is None and found is not None:
                mean = sum(gate.seen) / len(gate.seen) * (high - low)
                self.decided[name] = {
                    "decision": found.value,
                    "after": len(gate.seen),
                    "change": mean,
                }


def early_stop_for(
    plan: Plan,
    manifest: Manifest,
    baseline: Run | None,
    *,
    strictness: Strictness,
    mode: str = "auto",
    skip: Collection[str] = (),
) -> EarlyStop | None:
    """Looks for one run, or None where they would save nothing or be wrong.

    Args:
        plan: The run.
        manifest: Its pins, with the thresholds that decide.
        baseline: What it is compared with.
        strictness: smoke or release.
        mode: `auto` looks from `WORTH_IT` cases on, `on` always, `off` never.
        skip: Cases that are not compared, because they changed.
    """
    if mode == "off" or baseline is None or (mode == "auto" and len(plan.sample) < WORTH_IT):
        return None
    if any(case.cluster for case in plan.sample.cases):
        return None  # a cluster is one observation, and it is complete only at its last case
    rules = manifest.thresholds
    gating = [c for c in plan.criteria if rules.get(c.name, {}).get("gate", True)]
    then = criterion_scores(baseline, replace(baseline.manifest, thresholds=rules))
    names = [
        c.name
        for c in gating
        if rules.get(c.name, {}).get("max_drop") is not None
        and c.judge is None
        and c.name in then
        and baseline.manifest.by.get(c.name) == plan.by.get(c.name)
        and then[c.name].score_range == score_range_of(manifest, c.name)
    ]
    if not names:
        return None
    alone = {"max_drop"}
    whole = len(names) < len(gating) or any(
        {key for key in ("min", "min_win_rate", "max_drop") if key in rules[name]} != alone
        or rules[name].get("hard")
        for name in names
    )
    alpha = ALPHA / len(names) if strictness is Strictness.SMOKE else ALPHA
    gates: dict[str, SequentialGate] = {}
    for name in names:
        low, high = score_range_of(manifest, name)
        margin = float(rules[name]["max_drop"]) / (high - low)
        gates[name] = SequentialGate(margin, strictness, alpha_running=alpha)
    return EarlyStop(
        manifest,
        plan.repeats,
        plan.seed,
        _order(plan),
        {n: {k: v for k, v in then[n].means().items() if k not in skip} for n in names},
        gates,
        whole,
    )


def stopped_ruling(result: CriterionResult, manifest: Manifest) -> CriterionResult:
    """The result in the light of how the run ended: what was settled on the way stands.

    In a run that stopped, everything else but a counted failure is undecided.
    """
    looks: Mapping[str, Any] = manifest.sampling.get("sequential", {})
    if not looks or not result.gate or not result.rulings:
        return result
    settled = looks["decided"].get(result.name)
    stopped = looks["looked_at"] < looks["planned"]
    rulings = tuple(_ruling(r, looks, settled, stopped) for r in result.rulings)
    return worded(replace(result, rulings=rulings))


def _ruling(
    ruling: Ruling, looks: Mapping[str, Any], settled: Mapping[str, Any] | None, stopped: bool
) -> Ruling:
    if ruling.decision is Decision.BROKEN:
        return ruling
    if ruling.rule == "relative" and settled is not None:
        decision = Decision(settled["decision"])
        word = "a drop is shown" if decision is Decision.FAIL else "not worse by the margin or more"
        sentence = (
            f"{word}, settled after {settled['after']} of {counted(looks['planned'], 'case')} "
            f"(valid at any stop): {change_text(settled['change'])} up to there."
        )
        return replace(
            ruling, decision=decision, sentence=sentence, reasons=(*ruling.reasons, "stopped_early")
        )
    if not stopped or (ruling.rule == "counted" and ruling.decision is Decision.FAIL):
        return ruling
    seen = f"{looks['looked_at']} of {counted(looks['planned'], 'case')}"
    sentence = f"not decided: the run stopped after {seen}."
    return replace(
        ruling,
        decision=Decision.UNDECIDED,
        sentence=sentence,
        reasons=(*ruling.reasons, "stopped_early"),
    )


def _order(plan: Plan) -> tuple[str, ...]:
    def rank(name: str) -> bytes:
        return hashlib.sha256(f"order\n{plan.seed}\n{name}".encode()).digest()

    return tuple(sorted((case.id for case in plan.sample.cases), key=rank))

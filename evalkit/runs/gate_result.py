"""What the gate says: values only; `gate` makes them, `report.gate` shows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from evalkit.runs.manifest import Manifest
from evalkit.runs.summary import CriterionSummary
from evalkit.stats.decision import Decision, Ruling, Strictness
from evalkit.stats.result import Interval, plain

__all__ = ["NOT_COMPARED", "SHOWN", "CriterionResult", "GateResult", "Look"]

SHOWN, NOT_COMPARED = "shown", "not compared"
STATUS = {Decision.PASS: 0, Decision.FAIL: 1, Decision.UNDECIDED: 3, Decision.BROKEN: 4}


@dataclass(frozen=True)
class Look:
    """One observation to look at, and why."""

    case_id: str
    repeat: int
    criterion: str
    reason: str


@dataclass(frozen=True)
class CriterionResult:
    """One criterion. `word` is PASS, FAIL, UNDECIDED, BROKEN, shown, or not compared.

    `gate` is False for an exploratory criterion: it is shown and decides nothing. `now` is the
    run's summary of it, `before` the baseline's rate, `licence` what was said of its judge;
    `not_compared` says why the baseline does not serve.
    """

    name: str
    word: str
    gate: bool
    rule: Mapping[str, Any]
    sentence: str
    rulings: tuple[Ruling, ...] = ()
    now: CriterionSummary | None = None
    before: Interval | None = None
    licence: str = ""
    not_compared: str = ""

    @property
    def relative(self) -> Ruling | None:
        """The ruling against the baseline, where there is one."""
        return next((r for r in self.rulings if r.rule == "relative"), None)

    @property
    def misses_floor(self) -> bool:
        """Whether it fails by itself, without a look at the baseline's scores."""
        return any(r.decision is Decision.FAIL and r.rule != "relative" for r in self.rulings)

    @property
    def score_range(self) -> tuple[float, float]:
        """Lowest and highest score."""
        return self.now.score_range if self.now else (0.0, 1.0)

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return plain(
            {
                "name": self.name,
                "word": self.word,
                "gate": self.gate,
                "rule": self.rule,
                "sentence": self.sentence,
                "rulings": [ruling.as_json() for ruling in self.rulings],
                "now": self.now.rate.as_json() if self.now else None,
                "counts": self.now.counts if self.now else {},
                "before": self.before.as_json() if self.before else None,
                "licence": self.licence,
                "not_compared": self.not_compared,
            }
        )


@dataclass(frozen=True)
class GateResult:
    """What the gate says of one run.

    `sentence` is the last line, the one a person acts on. `problems` broke the run as a whole;
    `n_missing` counts rows without a reply, `missing` lists calls that nobody recorded.
    `differences` (from the baseline), `changes` (since the ref) and `edited` (thresholds, after
    the fact) pass nothing over in silence.
    `failed_floors` are what a first baseline made of this run would be marked with.
    """

    decision: Decision
    strictness: Strictness
    sentence: str
    manifest: Manifest
    criteria: tuple[CriterionResult, ...]
    n_rows: int
    n_missing: int = 0
    problems: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    look_at: tuple[Look, ...] = ()
    differences: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    ref: str = ""
    baseline: Manifest | None = None
    failed_floors: tuple[str, ...] = ()

    @property
    def status(self) -> int:
        """Exit status of a script: 0, 1, 3 or 4."""
        if self.decision is Decision.UNDECIDED and self.strictness is Strictness.SMOKE:
            return 0
        return STATUS[self.decision]

    @property
    def passed(self) -> bool:
        """True when the exit status is 0."""
        return self.status == 0

    def of(self, word: str) -> tuple[CriterionResult, ...]:
        """The criteria that decide, with one word."""
        return tuple(c for c in self.criteria if c.word == word and c.gate)

    def as_json(self) -> dict[str, Any]:
        """Plain values for `gate.json`."""
        lists = ("problems", "missing", "differences", "changes", "edited", "notes")
        return plain(
            {
                "format": 1,
                "status": self.status,
                "decision": self.decision.value,
                "strictness": self.strictness.value,
                "sentence": self.sentence,
                **{name: list(getattr(self, name)) for name in lists},
                "failed_floors": list(self.failed_floors),
                "look_at": [asdict(look) for look in self.look_at],
                "criteria": [criterion.as_json() for criterion in self.criteria],
                "ref": self.ref,
                "run": self.manifest.as_json(),
                "baseline": self.baseline.pins() if self.baseline else None,
            }
        )

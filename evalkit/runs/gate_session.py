"""The gate as a job: read what is compared, replay or ask, decide, write the ledger."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from evalkit.cases.suite import Suite, load_suite
from evalkit.errors import BaselineError, LedgerError, UsageError
from evalkit.models.client import CallEvent
from evalkit.models.endpoints import Endpoints
from evalkit.runs.baseline import baseline_path, load_baseline, replies_of
from evalkit.runs.early_stop import early_stop_for
from evalkit.runs.engines import engine_of
from evalkit.runs.execute import Progress, execute, manifest_of
from evalkit.runs.gate import decide
from evalkit.runs.gate_criterion import licences_of
from evalkit.runs.gate_reference import Reference, read_reference
from evalkit.runs.gate_result import GateResult
from evalkit.runs.gate_rulings import check_rules
from evalkit.runs.ledger_entries import append_run
from evalkit.runs.matrix import score_range_of
from evalkit.runs.plan import Plan, make_plan
from evalkit.runs.promotion import Promotion, promote
from evalkit.runs.run import Run, list_runs
from evalkit.runs.session import Price, Workbench, price_of
from evalkit.stats.decision import Strictness

__all__ = ["GateOptions", "GateSession", "Gated"]


@dataclass(frozen=True)
class GateOptions:
    """What was asked for; the meaning of each field is that of the flag of the same name."""

    suite: str
    strictness: str = "smoke"
    prompt: str = ""
    model: str = ""
    sample: int = 0
    repeats: int = 0
    seed: int = -1
    baseline: str = ""
    baseline_ref: str = ""
    run_live: bool = False
    recordings: str = ""
    allow_dirty: bool = False
    allow_redefined: bool = False
    sequential: str = "auto"
    max_cost: float = 0.0
    deadline: float = 0.0
    out: str = "exports"
    engine: str = "local"
    scheduler: str = ""

    @classmethod
    def of(cls, params: Any) -> GateOptions:
        """The options among a notebook's flags."""
        return cls(**{f.name: getattr(params, f.name) for f in fields(cls)})


@dataclass(frozen=True)
class Gated:
    """A run, and what the gate said of it.

    `unwritten` says why the ledger could not be written: the verdict stands all the same.
    """

    run: Run
    result: GateResult
    unwritten: str = ""


class GateSession:
    """One gate, from its options to its verdict; everything is read when first needed."""

    def __init__(self, options: GateOptions, endpoints: Endpoints | None = None) -> None:
        self.options = options
        self.bench = Workbench(options.out, endpoints)
        self.strictness = Strictness(options.strictness)

    @cached_property
    def suite(self) -> Suite:
        """The suite on disk."""
        return load_suite(self.options.suite)

    @cached_property
    def reference(self) -> Reference | None:
        """The suite at `baseline_ref`."""
        ref = self.options.baseline_ref
        return read_reference(self.suite, ref) if ref else None

    @property
    def baseline_file(self) -> Path:
        """Where the baseline lies."""
        given = self.options.baseline
        return Path(given) if given else baseline_path(self.bench.out, self.suite.name)

    @cached_property
    def baseline(self) -> Run | None:
        """The frozen run, from disk or from the ref.

        Raises:
            UsageError: If a file was named and is not there.
            BaselineError: If it is damaged, or a release has none to compare with.
        """
        ref = self.reference
        found = load_baseline(self.baseline_file, ref=ref.sha if ref else "")
        if found is None and self.options.baseline:
            where = f" at {ref.ref}" if ref else ""
            raise UsageError(f"--baseline: there is no {self.options.baseline}{where}")
        if found is None and self.strictness is Strictness.RELEASE and self._compares:
            where = f" at {ref.ref}" if ref else f" at {self.baseline_file.as_posix()}"
            raise BaselineError(
                f"a release compares {', '.join(self._compares)} with a baseline, and there is none"
                f"{where}. Freeze one first: a smoke run with --freeze."
            )
        return found

    @property
    def rules(self) -> dict[str, Any]:
        """The thresholds that decide."""
        return {**self.suite.thresholds(), **((self.reference and self.reference.thresholds) or {})}

    @property
    def _compares(self) -> list[str]:
        return [
            name
            for name, rule in self.rules.items()
            if rule.get("gate", True) and {"max_drop", "min_win_rate"} & set(rule)
        ]

    @cached_property
    def plan(self) -> Plan:
        """What is run: only judges that decide and hold a valid licence are paid.

        Raises:
            UsageError: If a part of the suite is wrong, or a threshold can never decide.
        """
        options, suite, rules = self.options, self.suite, self.rules
        deciding = {name for name, rule in rules.items() if rule.get("gate", True)}
        plan = make_plan(
            suite,
            prompt=options.prompt or None,
            model=options.model,
            sample=options.sample or None,
            repeats=options.repeats or None,
            seed=None if options.seed < 0 else options.seed,
            judges=any(c.judge and c.name in deciding for c in suite.criteria),
        )
        permits = licences_of(suite, deciding, candidate=plan.model)
        allowed = {n for n, permit in permits.items() if permit.ruling.valid}
        judged = {n: j for n, j in plan.judged.items() if n in allowed}
        held = {j.name: permits[n].ruling.licence for n, j in judged.items()}
        hashes = {name: licence.content_hash[:12] for name, licence in held.items() if licence}
        plan = replace(plan, judged=judged, licences=hashes)
        ranges = manifest_of(plan, None)
        for name in plan.by:
            if name in rules:
                check_rules(name, rules[name], score_range_of(ranges, name))
        return plan

    @property
    def recordings(self) -> Path:
        """The recordings to replay: the file given, or the suite's folder.

        Raises:
            UsageError: If a file was named and is not there.
        """
        given = self.options.recordings
        if given and not Path(given).exists():
            raise UsageError(f"--recordings: there is nothing at {given!r}")
        return Path(given) if given else self.suite.folder / "recordings"

    def client(self, on_event: Callable[[CallEvent], None] | None = None) -> Any:
        """A client that asks somebody only where the run is live."""
        options = self.options
        return self.bench.client(
            live=options.run_live,
            max_cost_usd=options.max_cost,
            deadline_s=options.deadline,
            recordings=self.recordings,
            on_event=on_event,
        )

    @property
    def total(self) -> int:
        """Observations to come."""
        return len(self.plan)

    def price(self) -> Price:
        """What the run would take; asks nobody."""
        return price_of(self.plan, self.client(), replies_of(self.baseline))

    async def run(
        self,
        progress: Progress | None = None,
        on_event: Callable[[CallEvent], None] | None = None,
    ) -> Gated:
        """Run to the end, decide, and append to the ledger.

        Raises:
            EvalkitError: If something is wrong or breaks before there is a verdict.
        """
        plan, baseline, reference = self.plan, self.baseline, self.reference
        pins = replace(manifest_of(plan, None), thresholds=self.rules)
        early = early_stop_for(
            plan,
            pins,
            baseline,
            strictness=self.strictness,
            mode=self.options.sequential,
            skip=reference.changed_cases if reference else (),
        )
        earlier = list_runs(self.bench.runs, self.suite.name)
        async with self.client(on_event) as client:
            run = await execute(
                plan,
                client,
                runs=self.bench.runs,
                baseline=replies_of(baseline),
                progress=progress,
                early=early,
                engine=engine_of(self.options.engine, self.options.scheduler),
            )
        result = decide(
            run,
            self.suite,
            baseline=baseline,
            strictness=self.strictness,
            reference=reference,
            earlier=earlier,
            allow_redefined=self.options.allow_redefined,
        )
        try:
            append_run(self.bench.out / "eval_baseline.tsv", run, result)
        except LedgerError as error:
            return Gated(run, result, unwritten=str(error))
        return Gated(run, result)

    def promotion(self, gated: Gated, *, asked: bool) -> Promotion:
        """Make the run the baseline where that was asked; a refusal is told, not raised."""
        if not asked:
            return Promotion()
        allow = self.options.allow_dirty
        try:
            return Promotion(
                promote(gated.result, gated.run, self.baseline_file, allow_dirty=allow)
            )
        except BaselineError as error:
            return Promotion(str(error), refused=True)

    def close(self) -> None:
        """Close the call store."""
        self.bench.close()

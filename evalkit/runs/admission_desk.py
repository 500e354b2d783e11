"""What `admit.py` does between its widgets: candidates, anchors, price, the job, what is kept."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from evalkit.cases.suite import Suite
from evalkit.counting import all_of, counted
from evalkit.errors import AnchorError, CallFailed, EvalkitError, StoreError, UsageError
from evalkit.judges import Judge, load_judge, trivial_judges
from evalkit.models.prices import Estimate
from evalkit.records import Reply, Request
from evalkit.runs.admission_ledger import admission_entries
from evalkit.runs.desk import Desk
from evalkit.runs.execute import Progress
from evalkit.runs.job import Job
from evalkit.runs.ledger import append_entries
from evalkit.runs.session import bill
from evalkit.scorers import SCORERS
from evalkit.validity.admission_run import AdmissionRun, admission_requests, run_admission
from evalkit.validity.anchor_files import load_anchor
from evalkit.validity.anchors import Anchor, AnchorKind, draw_per_band
from evalkit.validity.reconstruction import KnownPairs, load_pairs
from evalkit.validity.scoring import anchor_requests

__all__ = ["AdmissionDesk", "AdmissionPlan", "AdmissionPrice", "Admittance"]

NO_ANCHOR = ""
MOST_MISSING = 0.05


@dataclass(frozen=True)
class AdmissionPlan:
    """What would be scored: candidates, an anchor or the part drawn from it, known pairs.

    `notes` say what a reader must know before paying.
    """

    suite: Suite
    judges: tuple[Judge, ...]
    anchor: Anchor | None
    known: KnownPairs | None
    requests: tuple[Request, ...]
    seed: int
    notes: tuple[str, ...] = ()

    @property
    def parts(self) -> str:
        """`61 items`, `34 pairs in both orders`, or both."""
        found: list[str] = []
        if self.anchor is not None:
            of_people = self.anchor.kind is AnchorKind.PAIRS
            found.append(f"{len(self.anchor.truth)} {'ranked pairs' if of_people else 'items'}")
        if self.known is not None:
            found.append(f"{len(self.known.pairs)} known pairs")
        return " + ".join(found)


@dataclass(frozen=True)
class AdmissionPrice:
    """What a plan would take; `label` is what the button says."""

    parts: str
    estimate: Estimate
    seconds: float | None

    @property
    def label(self) -> str:
        """`Score 61 items · 61 new calls · free · about 40 s`."""
        if not self.estimate.new:
            return f"Show · {all_of(self.estimate.recorded, 'verdict')} recorded"
        cost = bill(self.estimate.cost_usd, self.seconds)
        return f"Score {self.parts} · {counted(self.estimate.new, 'new call')} · {cost}"


@dataclass(frozen=True)
class Admittance:
    """What came out: the findings, where the scores lie, and what was paid.

    `failed` of `calls` got no reply; above 5 % nothing was measured, and `broken` says so.
    """

    plan: AdmissionPlan
    found: AdmissionRun
    scores: tuple[Path, ...]
    calls: int
    new: int
    failed: int

    @property
    def broken(self) -> str:
        """Why this is no finding about any judge, or ""."""
        if self.failed <= MOST_MISSING * self.calls:
            return ""
        return (
            f"{self.failed} of {counted(self.calls, 'call')} got no reply: nothing was measured, "
            "and no licence is written. See whether the judge's endpoint is up; the same command "
            "asks only for what is missing."
        )


class AdmissionDesk(Desk):
    """The desk of `admit.py`: its job and its last result."""

    def __init__(self, out: Path | str, *, golden: Path | str = "golden", strict: bool) -> None:
        super().__init__(out, golden=golden, strict=strict)
        self.job: Job[Admittance] = Job()

    # -- what there is -------------------------------------------------------------------------

    def judge_files(self, suite: Suite, first: str = "") -> dict[str, str]:
        """Name to path of the suite's judges, the asked ones (parted by commas) first."""
        asked = [_inside(suite, name) for name in filter(None, map(str.strip, first.split(",")))]
        own = sorted((suite.folder / "judges").glob("*.md"))
        unique = {path.resolve(): path for path in (*asked, *own)}
        return {path.stem: str(path) for path in unique.values()}

    def anchor_files(self, suite: Suite, first: str = "") -> dict[str, str]:
        """Name to path of the suite's anchors, the asked one first; "no anchor" last."""
        asked = [_inside(suite, first)] if first else []
        unique = {path.resolve(): path for path in (*asked, *_anchors_of(suite))}
        files = {path.name: str(path) for path in unique.values()}
        return {**files, "none, known pairs only": NO_ANCHOR}

    def fitting(self, files: Mapping[str, str], judges: Sequence[Judge], criterion: str) -> str:
        """The name of the first anchor that all these judges can score, else that of none."""
        fits = (
            name for name, path in files.items() if path and not _unfit(path, judges, criterion)
        )
        return next(fits, [*files][-1])

    def judges(self, paths: Sequence[str], model: str = "") -> tuple[Judge, ...] | None:
        """The candidates: each judge file under each of the models (parted by commas), if named."""

        def load() -> tuple[Judge, ...]:
            if not paths:
                raise UsageError("choose a candidate: a judge file of the suite's judges/.")
            models = [name.strip() or None for name in model.split(",")]
            return tuple(load_judge(path, model=name) for path in paths for name in models)

        return self.attempt(load)

    # -- before anything is paid ---------------------------------------------------------------

    def plan(
        self,
        suite: Suite,
        judges: Sequence[Judge],
        anchor: str,
        *,
        criterion: str = "",
        sample: int = 0,
        seed: int = 7,
    ) -> AdmissionPlan | None:
        """What would be scored.

        Args:
            suite: For which suite the judges are wanted.
            judges: The candidates.
            anchor: An anchor file; "" for known pairs only.
            criterion: What the anchor labels, where a judge is asked several things.
            sample: Items at most, as equal over the bands as they allow; 0 for all.
            seed: Decides the draw and the folds.
        """
        return self.attempt(lambda: _plan(suite, judges, anchor, criterion, sample, seed))

    def price(self, plan: AdmissionPlan) -> AdmissionPrice | None:
        """What it would take; asks nobody."""

        def price() -> AdmissionPrice:
            client = self.bench.client()
            estimate = client.estimate(plan.requests)
            known = client.recorded(plan.requests).values()
            latencies = [r.latency_s for r in known if r.latency_s is not None]
            slots = [client.endpoints.of(j.model)[0].max_concurrency for j in plan.judges]
            seconds = (
                statistics.median(latencies) * estimate.new / min(slots) if latencies else None
            )
            return AdmissionPrice(plan.parts, estimate, seconds if estimate.new else None)

        return self.attempt(price)

    # -- the run -------------------------------------------------------------------------------

    async def run(
        self, plan: AdmissionPlan, progress: Progress | None = None, *, max_cost_usd: float = 0.0
    ) -> Admittance:
        """Score everything, save the scores per item, and append to the ledger what was paid for.

        Raises:
            EvalkitError: If a call can never succeed, the budget is reached, or a part is wrong.
        """
        progress = progress or Progress()
        async with self.bench.client(max_cost_usd=max_cost_usd) as client:
            progress.total = len({client.key_of(request) for request in plan.requests})

            async def ask(request: Request) -> Reply:
                try:
                    reply = await client.ask(request, purpose="judge")
                except CallFailed:
                    progress.tick(None)
                    raise
                progress.tick(reply)
                return reply

            found = await run_admission(
                plan.suite,
                plan.judges,
                plan.anchor,
                ask,
                known=plan.known,
                own_names=(*SCORERS, *(judge.name for judge in trivial_judges())),
                seed=plan.seed,
            )
            new = client.spend.calls
        result = Admittance(plan, found, (), progress.done, new, progress.errors)
        if result.broken:
            return result
        if new:
            made = datetime.now(UTC).isoformat(timespec="seconds")
            append_entries(self.bench.out / "eval_baseline.tsv", admission_entries(found, made))
        scores = found.write_scores(self.bench.out / "admissions" / plan.suite.name)
        return replace(result, scores=tuple(scores))

    def start(self, plan: AdmissionPlan, *, max_cost_usd: float = 0.0) -> bool:
        """Start it in the background of the notebook."""
        return self.job.start(lambda shown: self.run(plan, shown, max_cost_usd=max_cost_usd))

    def write_licences(self, result: Admittance) -> list[Path] | None:
        """Write what was found of each candidate, also when it permits nothing.

        The scores behind it go beside it: a drift check compares with them, on any machine.
        """

        def write() -> list[Path]:
            if result.broken:
                raise StoreError(result.broken)
            result.found.write_scores(result.plan.suite.folder / "licences" / "scores")
            return result.found.write_licences()

        return self.attempt(write)


def _plan(
    suite: Suite, judges: Sequence[Judge], anchor: str, criterion: str, sample: int, seed: int
) -> AdmissionPlan:
    known = None
    if any(judge.kind in ("pairwise", "scale") for judge in judges):
        pairs = suite.folder / "pairs.jsonl"
        known = load_pairs(pairs) if pairs.is_file() else None
    chosen = _load(_inside(suite, anchor), judges, criterion) if anchor else None
    if chosen is None and known is None:
        why = [_unfit(str(path), judges, criterion) for path in _anchors_of(suite)]
        raise AnchorError(
            f"suite {suite.name!r} has no anchor that {', '.join(j.name for j in judges)} can "
            f"score{f' ({why[0]})' if why else ''}. Name one with --anchors, or have people label "
            "one: notebooks/label.py."
        )
    notes: list[str] = []
    if chosen is not None and sample:
        whole = len(chosen.truth)
        chosen = _drawn(chosen, sample, seed)
        if len(chosen.truth) < whole:
            notes.append(f"{len(chosen.truth)} of the anchor's {counted(whole, 'item')} are scored")
    if chosen is not None and not chosen.provenance.may_grant:
        notes.append(
            f"the labels of {chosen.name} are {chosen.provenance.value}: they can show that a "
            "judge is unfit, but cannot give it a licence"
        )
    sent = tuple(admission_requests(suite, judges, chosen, known))
    return AdmissionPlan(suite, tuple(judges), chosen, known, sent, seed, tuple(notes))


def _anchors_of(suite: Suite) -> list[Path]:
    found = (suite.folder / "anchors").glob("*")
    return sorted(path for path in found if path.suffix in (".csv", ".tsv", ".jsonl"))


def _unfit(path: str, judges: Sequence[Judge], criterion: str) -> str:
    """Why these judges cannot score an anchor, or ""."""
    try:
        anchor = _load(Path(path), judges, criterion)
        if anchor.kind is AnchorKind.PAIRS:
            fit = any(judge.kind in ("pairwise", "scale") for judge in judges)
            return "" if fit else f"{path} holds pairs"
        for judge in judges:
            anchor_requests(judge, anchor)
    except EvalkitError as problem:
        return str(problem).rstrip(".")
    return ""


def _load(path: Path, judges: Sequence[Judge], criterion: str) -> Anchor:
    """An anchor in the terms of the candidates: their levels, the question they are asked."""
    levels = next((tuple(map(str, judge.levels)) for judge in judges if judge.levels), ())
    asked = {name for judge in judges for name in judge.criteria}
    only = next(iter(asked)) if len(asked) == 1 else ""
    return load_anchor(path, categories=levels, criterion=criterion or only)


def _drawn(anchor: Anchor, most: int, seed: int) -> Anchor:
    """At most so many items, as equal over the bands as they allow; one per band at the least."""
    drawn = draw_per_band(anchor, per_band=1, seed=seed)
    for per_band in range(2, len(anchor.truth) + 1):
        more = draw_per_band(anchor, per_band=per_band, seed=seed)
        if len(more.anchor.truth) > most:
            break
        drawn = more
    return drawn.anchor


def _inside(suite: Suite, name: str) -> Path:
    """A path relative to the suite where there is such a file, else as it stands."""
    inside = suite.folder / name
    return inside if inside.is_file() else Path(name)

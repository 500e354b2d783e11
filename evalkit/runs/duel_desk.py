"""What `compare.py` does between its widgets: sides to choose, the job, which pairs to show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evalkit.cases.suite import Suite
from evalkit.errors import AnchorError
from evalkit.models.endpoints import Endpoints
from evalkit.runs.baseline import baseline_path
from evalkit.runs.desk import Desk
from evalkit.runs.duel import Duel, DuelPlan, Key, fight, load_pairwise, plan_duel
from evalkit.runs.duel_file import write_pairs
from evalkit.runs.duel_labels import Ballot, People, label_file, people_of
from evalkit.runs.duel_price import DuelPrice, price_duel
from evalkit.runs.duel_sides import find_side
from evalkit.runs.duel_standing import Standing
from evalkit.runs.execute import Progress
from evalkit.runs.job import Job
from evalkit.runs.run import list_runs

__all__ = ["FILTERS", "DuelChoices", "DuelDesk", "exit_status", "filtered"]

FILTERS = (
    "all",
    "flips",
    "ties",
    "losses of A",
    "judge against scorers",
    "judge against people",
)


@dataclass(frozen=True)
class DuelChoices:
    """What a person chose."""

    a: str
    b: str
    judge: str
    model: str = ""
    sample: int = 24
    repeats: int = 1
    seed: int = 7
    one_order: bool = False
    max_cost_usd: float = 0.0


class DuelDesk(Desk):
    """The desk of `compare.py`: its job, its last comparison, one person's ballot."""

    def __init__(
        self, out: Path | str, *, strict: bool, endpoints: Endpoints | None = None
    ) -> None:
        super().__init__(out, strict=strict, endpoints=endpoints)
        self.job: Job[Duel] = Job()
        self.said = ""
        self._ballots: dict[tuple[Path, str], Ballot] = {}

    def sides(self, suite: Suite, first: str = "") -> dict[str, str]:
        """What can be compared: the side asked for, the prompts, the frozen run, earlier runs."""
        found: dict[str, str] = {}
        if first:
            found[first] = first
        for path in suite.prompts:
            relative = path.relative_to(suite.folder).as_posix()
            found.setdefault(relative, relative)
        frozen = baseline_path(self.bench.out, suite.name)
        if frozen.is_file():
            found.setdefault("the frozen baseline", str(frozen))
        for manifest in list_runs(self.bench.runs, suite.name)[:30]:
            when = manifest.created[:16].replace("T", " ")
            label = f"run {when} · {manifest.prompt.get('name')} {manifest.prompt.get('hash')}"
            found.setdefault(label, str(self.bench.runs / manifest.run_id))
        return found

    def judges(self, suite: Suite, first: str) -> list[str]:
        """Judge files of kind pairwise, the asked one first."""
        files = [path.relative_to(suite.folder).as_posix() for path in suite.judges]
        pairwise = [f for f in files if "kind: pairwise" in (suite.folder / f).read_text("utf-8")]
        return list(dict.fromkeys([first, *pairwise] if first else pairwise))

    def plan(self, suite: Suite, choices: DuelChoices) -> DuelPlan | None:
        """What would be compared."""
        return self.attempt(
            lambda: plan_duel(
                suite,
                find_side(choices.a, suite, self.bench.runs),
                find_side(choices.b, suite, self.bench.runs),
                load_pairwise(choices.judge or "", suite, choices.model),
                sample=choices.sample,
                repeats=choices.repeats,
                seed=choices.seed,
                one_order=choices.one_order,
            )
        )

    def price(self, plan: DuelPlan) -> DuelPrice | None:
        """What it would take; asks nobody."""
        return self.attempt(lambda: price_duel(plan, self.bench.client()))

    async def run(
        self, plan: DuelPlan, choices: DuelChoices, progress: Progress | None = None
    ) -> Duel:
        """Compare to the end."""
        async with self.bench.client(max_cost_usd=choices.max_cost_usd) as client:
            return await fight(plan, client, runs=self.bench.runs, progress=progress)

    def start(self, plan: DuelPlan, choices: DuelChoices) -> bool:
        """Start it in the background of the notebook."""
        return self.job.start(lambda progress: self.run(plan, choices, progress))

    def people(self, duel: Duel) -> People:
        """What people said of these pairs."""
        return self.attempt(lambda: people_of(duel, label_file(duel.plan.suite))) or People()

    def write(self, duel: Duel, found: tuple[Standing, ...], people: People) -> Path:
        """Write the rows."""
        return write_pairs(duel, found, people, self.bench.out)

    def ballot(self, suite: Suite, annotator: str) -> Ballot:
        """One person's ballot; what was shown of each pair is remembered while the page is open."""
        key = (label_file(suite), annotator)
        return self._ballots.setdefault(key, Ballot(*key))

    def vote(self, ballot: Ballot, duel: Duel, key: Key, choice: str) -> None:
        """Press a key on the pair that lies on the desk; `said` tells what became of it."""
        match = duel.pair(key)[0]
        try:
            done = ballot.undo(match) if choice == "undo" else ballot.press(match, choice)
            self.said = done.sentence
        except AnchorError as error:
            self.said = str(error)


def filtered(standing: Standing, only: str, keys: Sequence[Key]) -> list[Key]:
    """The pairs a filter of `FILTERS` shows, in order."""
    by_key = {(v.case_id, v.repeat): v for v in standing.verdicts}
    keep = {
        "flips": set(standing.flips),
        "ties": {k for k, v in by_key.items() if v.winner == "tie"},
        "losses of A": {k for k, v in by_key.items() if v.winner == "b"},
        "judge against scorers": set(standing.scorers.differ),
        "judge against people": set(standing.people_all.differ),
    }
    return [key for key in keys if only == "all" or key in keep[only]]


def exit_status(duel: Duel) -> int:
    """The exit status of a comparison: 4 where it ended early or no judge gave a verdict."""
    silent = all(v.winner is None for j in duel.asked for v in duel.verdicts[j.name])
    return 4 if duel.stopped or silent else 0

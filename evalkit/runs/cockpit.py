"""What `iterate.py` does between its widgets: prompts being edited, plans, jobs, freezing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from evalkit.cases.sample import Allocation
from evalkit.cases.suite import Suite
from evalkit.errors import PromptError, UsageError
from evalkit.models.client import CallEvent
from evalkit.prompts import (
    Prompt,
    check_shape,
    draft_path,
    is_draft,
    load_shape,
    parse_prompt,
    save_draft,
    save_prompt,
)
from evalkit.records import Case
from evalkit.runs.baseline import baseline_path, freeze, load_baseline, replies_of
from evalkit.runs.desk import Desk
from evalkit.runs.engines import engine_of
from evalkit.runs.execute import Progress, execute
from evalkit.runs.git import git_state
from evalkit.runs.job import Job
from evalkit.runs.plan import Plan, make_plan
from evalkit.runs.run import Run
from evalkit.runs.session import Price, price_of

__all__ = ["Choices", "Cockpit", "Edited"]


@dataclass(frozen=True)
class Edited:
    """A prompt as it stands in the editor.

    `problem` says why it is none, `broken` which shape rules it breaks; `draft` is true when it
    differs from its file.
    """

    text: str
    saved: str
    path: Path
    prompt: Prompt | None
    draft: bool
    problem: str = ""
    broken: tuple[str, ...] = ()
    rules: int = 0


@dataclass(frozen=True)
class Choices:
    """What a person chose beside the prompt."""

    model: str
    sample: int
    allocation: Allocation = "proportional"
    repeats: int = 1
    seed: int = 7
    judges: bool = False
    fresh: bool = False
    max_cost_usd: float = 0.0
    engine: str = "local"
    scheduler: str = ""


class Cockpit(Desk):
    """The desk of `iterate.py`: its job and its last run."""

    def __init__(
        self, out: Path | str, *, golden: Path | str = "golden", baseline: str = "", strict: bool
    ) -> None:
        super().__init__(out, golden=golden, strict=strict)
        self.frozen = Path(baseline) if baseline else None
        self.job: Job[Run] = Job()

    # -- what there is -------------------------------------------------------------------------

    def prompts(self, suite: Suite, first: str = "") -> dict[str, str]:
        """Name to path of the suite's prompts, the asked or the suite's own first."""
        own = suite.folder / first if first else suite.prompt_path
        if first and not (suite.folder / first).is_file() and Path(first).is_file():
            own = Path(first)
        found = ([own] if own else []) + [p for p in suite.prompts if p != own]
        return {path.stem: str(path) for path in found}

    def baseline(self, suite: Suite) -> Run | None:
        """The suite's frozen run, where there is one."""
        return self.attempt(lambda: load_baseline(self.baseline_file(suite)))

    def baseline_file(self, suite: Suite) -> Path:
        """Where the suite's baseline lies."""
        return self.frozen or baseline_path(self.bench.out, suite.name)

    def commit(self, suite: Suite) -> str:
        """The commit in short, with its dirtiness."""
        return git_state(suite.folder).label

    # -- editing -------------------------------------------------------------------------------

    def text(self, suite: Suite, path: str) -> str:
        """What the editor starts with: the draft, or the file."""
        draft = draft_path(self.bench.out, suite.name, Path(path).stem)
        file = draft if draft.is_file() else Path(path)
        try:
            return file.read_text("utf-8")
        except OSError as error:
            raise PromptError(f"{path}: the prompt cannot be read: {error.strerror}.") from error

    def edit(self, suite: Suite, path: str, text: str) -> Edited:
        """Keep an edit as a draft and check it; calls nothing."""
        file = Path(path)
        saved = file.read_text("utf-8") if file.is_file() else ""
        if text.rstrip("\n") == saved.rstrip("\n"):
            draft_path(self.bench.out, suite.name, file.stem).unlink(missing_ok=True)
        else:
            save_draft(text, exports=self.bench.out, suite=suite.name, name=file.stem)
        try:
            prompt = parse_prompt(text, file.stem, path=file)
            rules = load_shape(file)
            broken = check_shape(prompt, rules, suite.cases[0]) if rules else ()
        except PromptError as error:
            if self.strict:
                raise
            return Edited(text, saved, file, None, True, problem=str(error))
        messages = tuple(finding.message for finding in broken)
        return Edited(
            text, saved, file, prompt, is_draft(prompt, file), broken=messages, rules=len(rules)
        )

    def save(self, suite: Suite, edited: Edited) -> Prompt | None:
        """Write the prompt file; its draft is dropped."""
        draft = draft_path(self.bench.out, suite.name, edited.path.stem)
        return self.attempt(lambda: save_prompt(edited.text, edited.path, draft=draft))

    # -- running -------------------------------------------------------------------------------

    def plan(self, suite: Suite, edited: Edited | None, choices: Choices) -> Plan | None:
        """What would be run."""
        return self.attempt(
            lambda: make_plan(
                suite,
                prompt=edited.prompt if edited else None,
                model=choices.model,
                sample=choices.sample,
                allocation=choices.allocation,
                repeats=choices.repeats,
                seed=choices.seed,
                judges=choices.judges,
                draft=edited.draft if edited else False,
            )
        )

    def price(self, plan: Plan, choices: Choices, baseline: Run | None) -> Price | None:
        """What it would take; asks nobody."""
        client = self.bench.client(fresh=choices.fresh)
        return self.attempt(lambda: price_of(plan, client, replies_of(baseline)))

    async def run(
        self,
        plan: Plan,
        choices: Choices,
        baseline: Run | None,
        progress: Progress | None = None,
        on_event: Callable[[CallEvent], None] | None = None,
    ) -> Run:
        """Run it to its end."""
        client = self.bench.client(
            fresh=choices.fresh, max_cost_usd=choices.max_cost_usd, on_event=on_event
        )
        async with client:
            return await execute(
                plan,
                client,
                runs=self.bench.runs,
                baseline=replies_of(baseline),
                progress=progress,
                engine=engine_of(choices.engine, choices.scheduler),
            )

    def start(self, plan: Plan, choices: Choices, baseline: Run | None) -> bool:
        """Start it in the background of the notebook."""
        return self.job.start(lambda progress: self.run(plan, choices, baseline, progress))

    # -- after a run ---------------------------------------------------------------------------

    def freeze(self, run: Run, suite: Suite, *, allow_dirty: bool = False) -> Path | None:
        """Promote a run to the baseline, marked with the floors that it does not reach."""
        low = failed_floors(run)
        path = self.baseline_file(suite)
        return self.attempt(lambda: freeze(run, path, allow_dirty=allow_dirty, failed_floors=low))


def failed_floors(run: Run) -> tuple[str, ...]:
    """Criteria that decide and whose estimate lies below their floor."""
    low: list[str] = []
    for criterion in run.summary().criteria:
        rule: Mapping[str, object] = criterion.rule
        floor = rule.get("min")
        if floor is None or not rule.get("gate", True):
            continue
        if not criterion.rate.estimate >= float(str(floor)):
            low.append(criterion.name)
    return tuple(low)


def chosen_case(suite: Suite, case_id: str) -> Case:
    """A case of the suite by its id.

    Raises:
        UsageError: If there is none.
    """
    for case in suite.cases:
        if case.id == case_id:
            return case
    raise UsageError(f"suite {suite.name!r} has no case {case_id!r}")

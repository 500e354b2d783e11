"""What a run will do, before it does it: cases, prompt, scorers, judges and the calls they need."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from evalkit.cases.criterion import Criterion
from evalkit.cases.sample import Allocation, Sample, draw
from evalkit.cases.suite import Suite
from evalkit.errors import JudgeError, SuiteError, UsageError
from evalkit.hashing import short_hash
from evalkit.judges import load_judge
from evalkit.judges.judge import Judge
from evalkit.prompts import Prompt, load_prompt
from evalkit.records import Case, Request
from evalkit.scorers import build_scorer, scorer_hash

__all__ = ["Plan", "make_plan", "request_seed"]


@dataclass(frozen=True)
class Plan:
    """One run as it was asked for; nothing in it has been sent.

    `scorers` and `judged` map a criterion's name to who measures it. A judged criterion that is
    not among them will not be judged in this run. `licences` maps a judge's name to the content
    hash of the licence under which it judges.
    """

    suite: Suite
    prompt: Prompt | None
    sample: Sample
    model: str
    repeats: int
    seed: int
    scorers: Mapping[str, Any] = field(default_factory=dict)
    judged: Mapping[str, Judge] = field(default_factory=dict)
    draft: bool = False
    licences: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.sample) * self.repeats

    @cached_property
    def schema(self) -> Mapping[str, Any] | None:
        """The JSON schema that the prompt asks for, where its header names one."""
        return self.prompt.schema_in(self.suite.folder) if self.prompt else None

    @cached_property
    def criteria(self) -> tuple[Criterion, ...]:
        """The criteria measured in this run: hard ones first, then other scorers, then judges."""
        return tuple(sorted(self.measured, key=lambda c: (bool(c.judge), not c.hard)))

    @cached_property
    def measured(self) -> tuple[Criterion, ...]:
        """The criteria measured in this run, in the suite's order."""
        names = {*self.scorers, *self.judged}
        return tuple(c for c in self.suite.criteria if c.name in names)

    def observations(self) -> Iterator[tuple[Case, int]]:
        """Every case with every repeat, in case order."""
        return ((case, k) for case in self.sample.cases for k in range(self.repeats))

    def request(self, case: Case, repeat: int) -> Request:
        """The call that answers one case, once.

        Raises:
            PromptError: If the prompt cannot be rendered for the case.
        """
        if self.prompt is None:
            raise UsageError("a python task sends no request of its own")
        task = self.suite.task
        return Request(
            model=self.model,
            messages=self.prompt.render(case),
            temperature=task.temperature,
            max_tokens=task.max_tokens,
            seed=request_seed(self.seed, case.id, repeat),
            schema=self.schema,
            repeat=repeat,
        )

    def requests(self) -> Iterator[Request]:
        """The task's calls; those of judges depend on the replies."""
        return (self.request(case, repeat) for case, repeat in self.observations())

    @cached_property
    def by(self) -> dict[str, str]:
        """The hash of who measures each criterion."""
        hashes = {name: scorer_hash(scorer) for name, scorer in self.scorers.items()}
        return hashes | {name: judge.hash for name, judge in self.judged.items()}

    def without_cases(self) -> Plan:
        """The same plan, without its cases and without need of the suite's folder: to travel."""
        suite, sample = replace(self.suite, cases=()), replace(self.sample, cases=())
        bare = replace(self, suite=suite, sample=sample)
        bare.__dict__.update(schema=self.schema, by=self.by)  # cached properties, already known
        return bare

    @cached_property
    def fingerprint(self) -> str:
        """Short hash of everything that decides the run's numbers, for its name."""
        ids = [case.id for case in self.sample.cases]
        prompt = self.prompt.hash if self.prompt else self.suite.task.entry
        return short_hash([self.suite.digest, prompt, self.model, self.repeats, self.seed, ids])


def make_plan(
    suite: Suite,
    *,
    prompt: Prompt | Path | str | None = None,
    model: str = "",
    sample: int | None = None,
    allocation: Allocation = "proportional",
    repeats: int | None = None,
    seed: int | None = None,
    judges: bool = False,
    judge_model: str = "",
    draft: bool = False,
) -> Plan:
    """A plan; what is not given comes from the suite.

    Args:
        suite: The golden suite.
        prompt: A prompt, or the path of one; a relative path may be relative to the suite.
        model: "endpoint/model" that answers.
        sample: How many cases; None means all.
        allocation: How the sample is spread over the strata.
        repeats: How often each case is asked.
        seed: Decides the draw and the request seeds.
        judges: Whether judged criteria are judged.
        judge_model: Another "endpoint/model" for every judge; it changes their hashes.
        draft: Whether the prompt is an unsaved draft; such a run cannot be frozen.

    Raises:
        UsageError: If a part of the suite is missing or wrong; the message says which.
    """
    seed = suite.sampling.seed if seed is None else seed
    return Plan(
        suite=suite,
        prompt=_prompt(suite, prompt),
        sample=draw(suite.cases, sample, allocation=allocation, mix=suite.sampling.mix, seed=seed),
        model=model or suite.task.model,
        repeats=suite.sampling.repeats if repeats is None else repeats,
        seed=seed,
        scorers={
            c.name: build_scorer(c.scorer, c.settings, suite.folder)
            for c in suite.criteria
            if c.scorer
        },
        judged=judges_of(suite, judge_model) if judges else {},
        draft=draft,
    )


def judges_of(suite: Suite, model: str = "") -> dict[str, Judge]:
    """The judge of each judged criterion; a pairwise one compares with the baseline's replies.

    Raises:
        JudgeError: If a judge file is missing or wrong, or does not measure the criterion.
    """
    found: dict[str, Judge] = {}
    for criterion in suite.criteria:
        if criterion.judge is None:
            continue
        judge = load_judge(suite.folder / criterion.judge, **({"model": model} if model else {}))
        pairwise = criterion.against is not None
        if (judge.kind == "pairwise") != pairwise:
            raise JudgeError(
                f"criterion {criterion.name!r}: {criterion.judge} is a {judge.kind} judge; "
                + (
                    "'against' needs a pairwise one."
                    if pairwise
                    else "a pairwise one needs 'against'."
                )
            )
        if not pairwise:
            verdict_name(criterion, judge)
        found[criterion.name] = judge
    return found


def verdict_name(criterion: Criterion, judge: Judge) -> str:
    """Which of a judge's verdicts a criterion reads: the one of its own name, or the only one.

    Raises:
        JudgeError: If the judge gives several and none has the criterion's name.
    """
    if criterion.name in judge.names:
        return criterion.name
    if len(judge.names) == 1:
        return judge.names[0]
    raise JudgeError(
        f"criterion {criterion.name!r}: {criterion.judge} gives {', '.join(judge.names)}; "
        "name the criterion after one of them."
    )


def request_seed(seed: int, case_id: str, repeat: int) -> int:
    """The seed of one request, 0..2^31-1: another for each case and repeat, always the same."""
    digest = hashlib.sha256(f"{seed}\n{case_id}\n{repeat}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def _prompt(suite: Suite, given: Prompt | Path | str | None) -> Prompt | None:
    if isinstance(given, Prompt):
        return given
    if given is None or given == "":
        return load_prompt(suite.prompt_path) if suite.prompt_path else None
    if suite.task.kind == "python" and suite.prompt_path is None:
        raise SuiteError(f"suite {suite.name!r}: its python task names no prompt, so none is used")
    inside = suite.folder / given
    return load_prompt(inside if inside.is_file() else given)

"""A labelling task: which replies of which runs, drawn by which rule, asked which question.

The task is a value: the same flags give the same task, so a reload, another browser and another
person go on in the same file. It holds what is hidden; a page gets `Shown` only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from evalkit.cases.suite import Suite
from evalkit.errors import AnchorError, EvalkitError, UsageError
from evalkit.hashing import short_hash
from evalkit.judges import Judge, load_judge
from evalkit.records import Case
from evalkit.runs.baseline import baseline_path, load_baseline
from evalkit.runs.run import Run, list_runs, load_run
from evalkit.validity.blind import TIE, BlindItem, Session
from evalkit.validity.label_items import items_of_run, pairs_of_runs
from evalkit.validity.labels import current_labels, item_id_of, read_labels
from evalkit.validity.licence_check import use_of
from evalkit.validity.sampling_plan import (
    Draw,
    Plan,
    by_class_plan,
    by_verdict_plan,
    random_plan,
    read_plan,
    spot_check_plan,
)

__all__ = ["LabelChoices", "LabelTask", "make_task"]


@dataclass(frozen=True)
class LabelChoices:
    """What was chosen: `kind` is pairs, levels or yes_no; `sample` 0 takes every item."""

    annotator: str
    kind: str = "pairs"
    criterion: str = "faithfulness"
    draw: str = "random"
    sample: int = 0
    seed: int = 7
    levels: str = "1,2,3,4,5"
    source: str = ""
    against: str = ""


@dataclass(frozen=True)
class LabelTask:
    """What people label, in which file, by which plan.

    `question` is what they are asked, `meanings` what each choice stands for, `asked` the name by
    which a judge knows the question. `verdicts` are the judge's own of the same run, by item; they
    are read only when labelling has ended.
    """

    suite: Suite
    choices: LabelChoices
    plan: Plan
    items: tuple[BlindItem, ...]
    sources: tuple[str, ...]
    levels: tuple[str, ...]
    question: str
    meanings: Mapping[str, str]
    asked: str
    verdicts: Mapping[str, float | None]
    names: tuple[str, ...]

    @property
    def pairs(self) -> bool:
        """Whether two drafts are compared."""
        return self.choices.kind == "pairs"

    @property
    def criterion(self) -> str:
        """What labels are about; "" for pairs."""
        return self.plan.criterion

    @property
    def folder(self) -> Path:
        """Where labels and plans of this suite lie."""
        return self.suite.folder / "labels"

    @property
    def path(self) -> Path:
        """The label file of this plan: labels of other texts never meet in it."""
        return _label_file(self.folder, self.plan, self.choices.kind)

    @property
    def categories(self) -> tuple[str, ...]:
        """Every label there can be, in order."""
        return (self.sources[0], TIE, self.sources[1]) if self.pairs else self.levels

    def session(self) -> Session:
        """This annotator at the label file.

        Raises:
            AnchorError: If nobody is named.
        """
        return Session(
            self.items,
            self.path,
            self.choices.annotator,
            levels=self.levels,
            criterion=self.criterion,
            plan=self.plan.id,
            seed=self.choices.seed,
            salt=self.plan.id,
            names=self.names,
        )

    def case_of(self, item_id: str) -> Case:
        """The suite's case behind an item."""
        case_id = item_id.rpartition("#")[0]
        return next(case for case in self.suite.cases if case.id == case_id)


def make_task(suite: Suite, choices: LabelChoices, out: Path) -> LabelTask:
    """The task of these choices.

    Args:
        suite: Whose cases.
        choices: What was chosen; without a source, the newest run, and against it the baseline.
        out: The folder `exports/`.

    Raises:
        UsageError: If there is no run to label.
        AnchorError: If the plan cannot be drawn.
    """
    pairs = choices.kind == "pairs"
    runs = _runs(suite, choices, out)
    if len({_source(run) for run in runs}) < len(runs):
        raise UsageError(
            "both sides are the same replies: name another run or a baseline with --against."
        )
    sources = tuple(_source(run) for run in runs)
    if pairs:
        items = pairs_of_runs(
            suite.cases, runs[0].rows, runs[1].rows, sources=(sources[0], sources[1])
        )
    else:
        items = items_of_run(suite.cases, runs[0].rows, source=sources[0])
    if not items:
        raise UsageError("there is nothing to label: no case has the replies it takes.")
    judge, asked, question = _question(suite, choices)
    levels = ("yes", "no")
    if choices.kind == "levels":
        words = choices.levels.split(",")
        levels = tuple(map(str, judge.levels)) if judge and judge.levels else _levels(words)
    verdicts = {} if pairs else _verdicts(runs[0], choices.criterion)
    plan = _draw(suite, choices, [i.id for i in items], "|".join(sources), verdicts, runs[0])
    wanted = set(plan.items)
    return LabelTask(
        suite=suite,
        choices=choices,
        plan=plan,
        items=tuple(item for item in items if item.id in wanted),
        sources=sources,
        levels=levels,
        question=question,
        meanings={str(k): v for k, v in judge.levels.items()} if judge and not pairs else {},
        asked=asked,
        verdicts=verdicts,
        names=tuple(dict.fromkeys(n for run in runs for n in _names(run.manifest.model))),
    )


def _runs(suite: Suite, choices: LabelChoices, out: Path) -> tuple[Run, ...]:
    known = list_runs(out / "runs", suite.name)
    frozen = load_baseline(baseline_path(out, suite.name))
    newest = load_run(out / "runs" / known[0].run_id) if known else None
    first = _load(choices.source) if choices.source else newest or frozen
    if first is None:
        raise UsageError(
            f"suite {suite.name!r} has no run to label. Make one: python notebooks/iterate.py "
            f"--suite {suite.folder.as_posix()}"
        )
    if choices.kind != "pairs":
        return (first,)
    if choices.against:
        return first, _load(choices.against)
    others = (load_run(out / "runs" / m.run_id) for m in known)
    rest = (
        run for run in (*([frozen] if frozen else []), *others) if _source(run) != _source(first)
    )
    second = next(rest, None)
    if second is None:
        raise UsageError(
            "pairs need two runs with different replies: name the second with --against, or label "
            "single replies with --kind yes_no."
        )
    return first, second


def _load(path: str) -> Run:
    if Path(path).is_file():
        found = load_baseline(Path(path))
        if found is not None:
            return found
    return load_run(path)


def _source(run: Run) -> str:
    """What a run is called in labels: its prompt, and a digest of its very replies."""
    texts = [[row.case_id, row.repeat, row.reply.text if row.reply else None] for row in run]
    prompt = run.manifest.prompt
    return f"{prompt.get('name') or 'task'}@{prompt.get('hash') or '-'}:{short_hash(texts)[:8]}"


def _names(model: str) -> tuple[str, ...]:
    """What a reply might call its own model."""
    plain = model.rpartition("/")[2]
    return tuple(name for name in (model, plain) if name)


def _question(suite: Suite, choices: LabelChoices) -> tuple[Judge | None, str, str]:
    """The judge of the criterion, the name by which it knows the question, and its words."""
    if choices.kind == "pairs":
        return None, "", "Which of the two is better?"
    for criterion in suite.criteria:
        if criterion.name != choices.criterion or not criterion.judge:
            continue
        try:
            judge = load_judge(suite.folder / criterion.judge)
        except EvalkitError:
            break  # the question is then the criterion's name
        asked = use_of(judge, criterion.name).removeprefix("criterion:")
        return judge, asked, judge.criteria.get(asked, criterion.name)
    return None, choices.criterion, choices.criterion.replace("_", " ") + "?"


def _levels(words: Sequence[str]) -> tuple[str, ...]:
    levels = tuple(word.strip() for word in words)
    if len(levels) < 2 or not all(level.lstrip("-").isdigit() for level in levels):
        raise UsageError(f"--levels {','.join(words)}: give whole numbers parted by commas.")
    return levels


def _verdicts(run: Run, criterion: str) -> dict[str, float | None]:
    """The judge's value of each observation; empty when the run was not judged on it."""
    if not any(criterion in row.verdicts for row in run):
        return {}
    return {
        item_id_of(row.case_id, row.repeat): row.scores[criterion].value
        for row in run
        if criterion in row.scores and row.reply is not None
    }


def _draw(
    suite: Suite,
    choices: LabelChoices,
    ids: Sequence[str],
    run: str,
    verdicts: Mapping[str, float | None],
    rows: Run,
) -> Plan:
    about = "" if choices.kind == "pairs" else choices.criterion
    n, draw = choices.sample or len(ids), Draw(choices.draw)
    if draw is Draw.RANDOM:
        return random_plan(ids, n, run=run, criterion=about, seed=choices.seed)
    if not about:
        raise AnchorError(f"pairs are drawn by --plan random; {draw.value} needs a criterion.")
    if draw is Draw.BY_CLASS:
        return _by_class(suite, choices, ids, run)
    if not verdicts:
        raise AnchorError(
            f"this run has no judge's verdicts on {about!r}, which --plan {draw.value} draws from. "
            "Run it with judges (iterate.py --judges), or take --plan random."
        )
    if draw is Draw.BY_VERDICT:
        words = {i: "pass" if v == 1.0 else "fail" for i, v in verdicts.items() if v is not None}
        each = -(-n // 2)
        return by_verdict_plan(words, each, run=run, criterion=about, seed=choices.seed)
    said = {
        item_id_of(row.case_id, row.repeat): {k: s.value for k, s in row.scores.items()}
        for row in rows
        if row.reply is not None
    }
    return spot_check_plan(said, about, n, run=run, criterion=about, seed=choices.seed)


def _by_class(suite: Suite, choices: LabelChoices, ids: Sequence[str], run: str) -> Plan:
    """The recorded draw by class of this run; the first time, from labels people gave before.

    Only labels of a random draw say a class: one drawn by verdict holds too many of the items on
    which the judge errs, or too few, and its recall could not be read off them.
    """
    folder, known = suite.folder / "labels", dict[str, str]()
    for file in sorted((folder / "plans").glob("*.json")):
        plan = read_plan(folder, file.stem)
        if (plan.run, plan.criterion) != (run, choices.criterion):
            continue
        if plan.draw is Draw.BY_CLASS and plan.seed == choices.seed:
            return plan
        if plan.draw is not Draw.RANDOM:
            continue
        labels = read_labels(_label_file(folder, plan, "yes_no"))
        for (item, _, _), label in current_labels(labels).items():
            if label.label in ("yes", "no") and item in ids:
                known[item] = label.label
    if not known:
        raise AnchorError(
            "--plan by_class draws so many of each class that people gave before: nobody has "
            "labelled a random draw of this run yet. Begin with --plan random."
        )
    each = -(-(choices.sample or len(known)) // 2)
    return by_class_plan(known, each, run=run, criterion=choices.criterion, seed=choices.seed)


def _label_file(folder: Path, plan: Plan, kind: str) -> Path:
    about = f"{plan.criterion}.{kind}" if plan.criterion else kind
    return folder / f"{about}.{plan.id}.jsonl"

"""A golden suite: its `suite.toml`, its cases, and the digests that pin what it measures."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evalkit.cases.criterion import Criterion, read_criteria
from evalkit.cases.load import CASE_FIELDS, load_cases
from evalkit.cases.problems import problems_of
from evalkit.cases.tables import read_text
from evalkit.errors import SuiteError
from evalkit.hashing import sha256_hex, short_hash
from evalkit.records import Case

__all__ = ["Sampling", "Suite", "Task", "load_suite", "parse_suite"]


@dataclass(frozen=True)
class Task:
    """What answers: a chat model with a prompt, or a Python function (`entry`)."""

    kind: Literal["chat", "python"] = "chat"
    model: str = ""
    prompt: str = ""
    entry: str = ""
    app_version: str = ""
    temperature: float | None = None
    max_tokens: int | None = None


@dataclass(frozen=True)
class Sampling:
    """The traffic the suite speaks about (`mix`, shares that sum to 1) and how often it asks."""

    mix: Mapping[str, float] | None = None
    repeats: int = 1
    seed: int = 0


@dataclass(frozen=True)
class Suite:
    """A suite as its folder holds it.

    `digest` pins what is measured: name, domain, mix, criteria without their thresholds, the files
    that settings name, and the cases. What a run records on its own (model, prompt, app_version,
    sampling parameters, repeats, seed) and the thresholds (`thresholds_hash`) stay out of it
    (docs/decisions/0040). `files` maps the files that settings name to their SHA-256.
    """

    name: str
    domain: str
    task: Task
    sampling: Sampling
    criteria: tuple[Criterion, ...]
    folder: Path
    cases: tuple[Case, ...] = field(default=(), repr=False)
    files: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def prompt_path(self) -> Path | None:
        """The prompt file that the task names, or None for a task without one."""
        return self.folder / self.task.prompt if self.task.prompt else None

    @property
    def prompts(self) -> tuple[Path, ...]:
        """The prompt files of the suite, by name."""
        return tuple(sorted((self.folder / "prompts").glob("*.md")))

    @property
    def judges(self) -> tuple[Path, ...]:
        """The judge files of the suite, by name."""
        return tuple(sorted((self.folder / "judges").glob("*.md")))

    def criterion(self, name: str) -> Criterion:
        """The criterion of that name.

        Raises:
            SuiteError: If there is none.
        """
        for criterion in self.criteria:
            if criterion.name == name:
                return criterion
        names = ", ".join(c.name for c in self.criteria)
        raise SuiteError(f"suite {self.name!r} has no criterion {name!r}; it has {names}")

    def thresholds(self) -> dict[str, dict[str, Any]]:
        """What decides, per criterion: the stated floors and margins, `hard` and `gate`."""
        return {c.name: c.thresholds() for c in self.criteria}

    @functools.cached_property
    def thresholds_hash(self) -> str:
        """The short hash of `thresholds`: a run's manifest keeps it."""
        return short_hash(self.thresholds())

    @functools.cached_property
    def digest(self) -> str:
        """The short hash of what the suite measures, whatever the order of its cases."""
        return short_hash(
            {
                "name": self.name,
                "domain": self.domain,
                "kind": self.task.kind,
                "mix": self.sampling.mix,
                "criteria": [c.meaning() for c in self.criteria],
                "files": self.files,
                "cases": sorted(short_hash(_content(case)) for case in self.cases),
            }
        )


def _named_files(suite: Suite) -> Iterator[tuple[str, str]]:
    """The files and folders of the suite that settings name, each file with its hash."""
    root = suite.folder.resolve()
    for value in (v for c in suite.criteria for v in c.settings.values()):
        if not isinstance(value, str) or not re.fullmatch(r"[\w./ -]{1,200}", value):
            continue
        path = (root / value).resolve()
        if path == root or not path.is_relative_to(root):
            continue
        for file in [path, *path.rglob("*")]:
            if file.is_file():
                data = file.read_bytes().replace(b"\r\n", b"\n")
                yield file.relative_to(root).as_posix(), sha256_hex(data)


def _content(case: Case) -> dict[str, Any]:
    whole = {name: getattr(case, name) for name in CASE_FIELDS}
    return whole | {"context": [(page.id, page.text) for page in case.context]}


def load_suite(folder: Path | str) -> Suite:
    """The suite in a folder, its cases included.

    Raises:
        SuiteError: If there is no suite, or `suite.toml` is wrong.
        CaseError: If `cases.jsonl` is wrong.
    """
    folder = Path(folder)
    file = folder / "suite.toml"
    if not file.is_file():
        raise SuiteError(f"no suite at {str(folder)!r}: there is no suite.toml in it")
    suite = parse_suite(read_text(file, error=SuiteError), folder)
    mix = suite.sampling.mix
    cases = load_cases(folder / "cases.jsonl", folder=folder, strata=mix)
    present = {case.stratum for case in cases}
    for stratum in mix or ():
        if stratum not in present:
            raise SuiteError(f"{file}: the mix names stratum {stratum!r}, but no case is in it")
    for criterion in suite.criteria:
        if not any(criterion.applies_to(case) for case in cases):
            where = criterion.where
            raise SuiteError(f"{file}: criterion {criterion.name!r} fits no case (where = {where})")
    return replace(suite, cases=cases, files=dict(sorted(_named_files(suite))))


def parse_suite(text: str, folder: Path | str) -> Suite:
    """The suite that a `suite.toml` text describes, without its cases.

    Serves thresholds read from another commit; `folder` is where its paths point.

    Raises:
        SuiteError: If the text is not TOML, or a table is wrong; names the nearest allowed key.
    """
    folder = Path(folder)
    file = folder / "suite.toml"
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SuiteError(f"{file}: is not TOML: {error}") from None
    criteria = data.pop("criteria", [])
    try:
        read = _SuiteFile.model_validate(data)
    except ValidationError as error:
        raise SuiteError(_sentence(file, error)) from None
    _check_task(file, read.task, folder)
    return Suite(
        name=read.name,
        domain=read.domain,
        task=Task(**read.task.model_dump()),
        sampling=_sampling(file, read.sampling),
        criteria=read_criteria(criteria, file),
        folder=folder,
    )


class _Table(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", protected_namespaces=())


_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]


class _TaskTable(_Table):
    kind: Literal["chat", "python"] = "chat"
    model: str = ""
    prompt: str = ""
    entry: str = ""
    app_version: str = ""
    temperature: Annotated[float, Field(ge=0)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None


class _SamplingTable(_Table):
    mix: dict[str, Annotated[float, Field(gt=0, le=1)]] | None = None
    repeats: Annotated[int, Field(ge=1)] = 1
    seed: int = 0


class _SuiteFile(_Table):
    name: _Name
    domain: Annotated[str, Field(min_length=1)]
    task: _TaskTable
    sampling: _SamplingTable = _SamplingTable()


_KEYS = {
    "": (*_SuiteFile.model_fields, "criteria"),
    "task": tuple(_TaskTable.model_fields),
    "sampling": tuple(_SamplingTable.model_fields),
}


def _sentence(file: Path, error: ValidationError) -> str:
    """The first fault, in terms of the table it stands in."""
    first = error.errors(include_url=False)[0]
    table = str(first["loc"][0]) if len(first["loc"]) > 1 else ""
    return f"{file}: {next(problems_of(error, _KEYS.get(table, ())))}"


def _check_task(file: Path, task: _TaskTable, folder: Path) -> None:
    if task.kind == "chat" and not (task.model and task.prompt):
        raise SuiteError(f"{file}: a chat task names its 'model' and its 'prompt'")
    if task.kind == "python" and not re.fullmatch(r"[\w.]+:[\w.]+", task.entry):
        raise SuiteError(f"{file}: a python task names its 'entry', such as \"my_app.rag:answer\"")
    if task.kind == "chat" and task.entry:
        raise SuiteError(f"{file}: 'entry' belongs to a python task; this one is chat")
    if task.model and not re.fullmatch(r"[^/\s]+/\S+", task.model):
        raise SuiteError(f"{file}: 'task.model' is {task.model!r}; write it as endpoint/model")
    if task.prompt and not (folder / task.prompt).resolve().is_relative_to(folder.resolve()):
        raise SuiteError(f"{file}: 'task.prompt' lies outside the suite's folder")


def _sampling(file: Path, table: _SamplingTable) -> Sampling:
    mix = table.mix
    if mix is not None and abs(sum(mix.values()) - 1) > 0.001:
        raise SuiteError(
            f"{file}: the shares of 'sampling.mix' sum to {sum(mix.values()):g}, not 1"
        )
    return Sampling(mix, table.repeats, table.seed)

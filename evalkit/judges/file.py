"""A judge file: YAML header, then the prompt. Its hash is the judge's identity."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from evalkit.errors import JudgeError, PromptError
from evalkit.hashing import short_hash
from evalkit.prompts import Prompt, parse_prompt

__all__ = ["JudgeFile", "family_of", "parse_judge_file", "read_judge_file"]

# Raised when the words this package adds to a judge's prompt change what a judge is asked.
PROTOCOL = 1

_MODEL = r"^[^/\s]+/\S+$"
_Name = Annotated[str, Field(pattern=r"^[A-Za-z_]\w{0,63}$")]
_Text = Annotated[str, Field(min_length=3)]


class _Header(BaseModel):
    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True, defer_build=True)

    kind: Literal["criteria", "scale", "pairwise"]
    model: Annotated[str, Field(pattern=_MODEL)]
    language: Literal["en", "zh"] = "en"
    criteria: dict[_Name, _Text] | None = None
    levels: dict[int, _Text] | None = None
    abstain: bool = False
    ties: bool = True
    pass_at: int | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    justification_chars: Annotated[int, Field(ge=20, le=2000)] = 600
    context_tokens: Annotated[int, Field(ge=64)] | None = None
    family: str | None = None
    refusals: Literal["settle", "judge"] = "settle"

    @field_validator("levels", mode="before")
    @classmethod
    def _described(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            bare = [k for k, v in value.items() if not str(v or "").strip()]
            if bare:
                raise ValueError(f"level {bare[0]} has no description: a scale needs every anchor")
            return value
        if value is not None:
            raise ValueError("levels is a mapping of each level to its description (the anchor)")
        return value


@dataclass(frozen=True)
class JudgeFile:
    """What one judge file says, checked; `kind` decides which of the fields have a meaning.

    `criteria` maps a name to its yes/no question, `levels` an integer to its anchor. `ties` says
    whether a pairwise judge may call a tie. `max_tokens` None lets the kind decide. `refusals`
    "judge" sends a refused draft to the judge too; "settle" gives it the lowest verdict unpaid.
    `context_tokens` is the judge's context; None is unknown and checks nothing.
    """

    name: str
    kind: str
    model: str
    prompt: Prompt
    language: str = "en"
    criteria: Mapping[str, str] = field(default_factory=dict)
    levels: Mapping[int, str] = field(default_factory=dict)
    abstain: bool = False
    ties: bool = True
    pass_at: int | None = None
    temperature: float = 0.0
    max_tokens: int | None = None
    justification_chars: int = 600
    context_tokens: int | None = None
    family: str = ""
    refusals: str = "settle"

    @cached_property
    def hash(self) -> str:
        """The judge's identity: 12 hex digits over what is asked, of whom, and how.

        Names and paths stay out: a copied file is the same judge.
        """
        return short_hash(
            {
                "protocol": PROTOCOL,
                "kind": self.kind,
                "model": self.model,
                "language": self.language,
                "criteria": list(self.criteria.items()),
                "levels": [[k, v] for k, v in self.levels.items()],
                "abstain": self.abstain,
                "ties": self.ties,
                "pass_at": self.pass_at,
                "temperature": self.temperature,
                "max_tokens": self.max_tokens,
                "justification_chars": self.justification_chars,
                "context_tokens": self.context_tokens,
                "refusals": self.refusals,
                "prompt": self.prompt.hash,
            }
        )


def read_judge_file(path: Path | str, *, model: str | None = None) -> JudgeFile:
    """Read and check one judge file; `model` replaces its header's.

    Raises:
        JudgeError: If it cannot be read, its header is wrong, or a scale has no anchors.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        raise JudgeError(f"{path}: the judge file cannot be read ({problem}).") from problem
    file = parse_judge_file(text, path.stem, path=path)
    if model is None or model == file.model:
        return file
    if not re.fullmatch(_MODEL, model):
        raise JudgeError(f'{path}: the model {model!r} is not of the form "endpoint/model".')
    return replace(file, model=model, family=family_of(model))


def parse_judge_file(text: str, name: str, *, path: Path | None = None) -> JudgeFile:
    """A judge file's text, checked; an error names the path, or else the name.

    Raises:
        JudgeError: If the header or the prompt is wrong.
    """
    where = str(path or name)
    try:
        prompt = parse_prompt(text, name, path=path)
    except PromptError as problem:
        raise JudgeError(str(problem)) from problem
    try:
        header = _Header.model_validate(dict(prompt.header))
    except ValidationError as problem:
        raise JudgeError(f"{where}: {_first(problem)}") from problem
    _check(header, where)
    return JudgeFile(
        name=name,
        prompt=prompt,
        family=header.family or family_of(header.model),
        criteria=header.criteria or {},
        levels=dict(sorted((header.levels or {}).items())),
        **header.model_dump(exclude={"family", "criteria", "levels"}),
    )


def _check(header: _Header, where: str) -> None:
    """Rules between fields."""
    if header.kind == "criteria" and not header.criteria:
        raise JudgeError(
            f"{where}: a criteria judge needs 'criteria': a mapping of names to yes/no questions."
        )
    if header.kind == "scale":
        levels = sorted(header.levels or {})
        if len(levels) < 2:
            raise JudgeError(
                f"{where}: a scale judge needs 'levels': at least two integers, each with a "
                "description. A scale without anchors is not accepted."
            )
        if levels != list(range(levels[0], levels[-1] + 1)):
            raise JudgeError(
                f"{where}: levels {levels} have holes; describe every integer from "
                f"{levels[0]} to {levels[-1]}."
            )
        if header.pass_at is not None and header.pass_at not in levels:
            raise JudgeError(f"{where}: pass_at {header.pass_at} is not one of {levels}.")
    foreign = {"criteria": "criteria", "levels": "scale", "pass_at": "scale"}
    for name, kind in foreign.items():
        if getattr(header, name) is not None and header.kind != kind:
            raise JudgeError(f"{where}: '{name}' belongs to kind {kind}, not {header.kind}.")


def _first(problem: ValidationError) -> str:
    error = problem.errors()[0]
    place = ".".join(str(p) for p in error["loc"] if p != "[key]") or "the header"
    if error["type"] == "extra_forbidden":
        known = ", ".join(_Header.model_fields)
        return f"unknown key '{place}' in the header; known are {known}."
    return f"'{place}' in the header: {error['msg'].removeprefix('Value error, ')}."


_FAMILIES = {
    "chatgpt": "gpt",
    "o": "gpt",
    "davinci": "gpt",
    "mixtral": "mistral",
    "gemma": "gemini",
}


def family_of(model: str) -> str:
    """The family that a model's name suggests, in lower case: "gpt" of "openai/gpt-4o".

    A judge file's `family`, or an endpoint's, is better knowledge; "" when the name says nothing.
    """
    found = re.match(r"[a-z]+", model.rsplit("/", 1)[-1].lower())
    word = found.group() if found else ""
    return _FAMILIES.get(word, word)

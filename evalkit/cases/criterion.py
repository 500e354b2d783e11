"""A criterion of a suite: who scores, whom it applies to, and what decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evalkit.cases.problems import did_you_mean, problems_of
from evalkit.errors import SuiteError
from evalkit.records import Case

__all__ = ["Criterion", "read_criteria"]

_WHERE = ("stratum", "tags", "path", "id")


@dataclass(frozen=True)
class Criterion:
    """One `[[criteria]]` table.

    `min` is a floor and `max_drop` the drop below the baseline that is tolerated, both in the
    criterion's own unit (a rate 0..1, or a scale's levels). `min_win_rate` is 0..1. `where` maps
    stratum, tags, path or id to the texts it accepts. `settings` go to the scorer;
    `allow_repair`, when stated, is among them.
    """

    name: str
    scorer: str | None = None
    judge: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    min: float | None = None
    max_drop: float | None = None
    hard: bool = False
    gate: bool = True
    against: str | None = None
    min_win_rate: float | None = None
    statistic: Literal["mean", "rate"] = "mean"
    pass_at: float | None = None
    allow_repair: bool = False

    def applies_to(self, case: Case) -> bool:
        """True when the case fits every key of `where`; one matching tag is enough."""
        return not self.where or all(
            not _of(case, key).isdisjoint(texts) for key, texts in self.where.items()
        )

    def thresholds(self) -> dict[str, Any]:
        """What decides, apart from what is measured; unstated ones are left out."""
        stated = {
            "min": self.min,
            "max_drop": self.max_drop,
            "min_win_rate": self.min_win_rate,
            "pass_at": self.pass_at,
        }
        return {
            **{key: value for key, value in stated.items() if value is not None},
            "statistic": self.statistic,
            "hard": self.hard,
            "gate": self.gate,
        }

    def meaning(self) -> dict[str, Any]:
        """What is measured, apart from what decides: for the suite's digest."""
        return {
            "name": self.name,
            "scorer": self.scorer,
            "judge": self.judge,
            "settings": dict(self.settings),
            "where": {key: sorted(texts) for key, texts in self.where.items()},
            "hard": self.hard,
            "against": self.against,
        }


def read_criteria(tables: Any, file: Path) -> tuple[Criterion, ...]:
    """The criteria of a `suite.toml`, checked.

    Raises:
        SuiteError: At the first table that is wrong; names the criterion and the key.
    """
    if not isinstance(tables, list) or not tables:
        raise SuiteError(f"{file}: has no [[criteria]]; a suite without one measures nothing")
    read: dict[str, Criterion] = {}
    for number, table in enumerate(tables, start=1):
        name = table.get("name") if isinstance(table, dict) else None
        who = f"{file}: criterion {name!r}" if isinstance(name, str) else f"{file}: [[criteria]]"
        who += "" if name else f" number {number}"
        try:
            row = _Row.model_validate(table)
        except ValidationError as error:
            raise SuiteError(f"{who}: {next(problems_of(error))}") from None
        criterion = _criterion(row)
        if fault := _fault(criterion, row):
            raise SuiteError(f"{who}: {fault}")
        if criterion.name in read:
            raise SuiteError(f"{who} stands twice; names must differ")
        read[criterion.name] = criterion
    return tuple(read.values())


_Share = Annotated[float, Field(ge=0, le=1)]
_Texts = str | list[str]


class _Row(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow", protected_namespaces=())

    name: Annotated[str, Field(min_length=1)]
    scorer: str | None = None
    judge: str | None = None
    where: dict[str, _Texts] = {}
    min: Annotated[float, Field(allow_inf_nan=False)] | None = None
    max_drop: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    hard: bool = False
    gate: bool = True
    against: Literal["baseline"] | None = None
    min_win_rate: _Share | None = None
    statistic: Literal["mean", "rate"] = "mean"
    pass_at: Annotated[float, Field(allow_inf_nan=False)] | None = None
    allow_repair: bool = False


def _criterion(row: _Row) -> Criterion:
    fixed: dict[str, Any] = {name: getattr(row, name) for name in _Row.model_fields}
    settings = dict(row.model_extra or {})
    if "allow_repair" in row.model_fields_set:
        settings["allow_repair"] = row.allow_repair
    texts = {k: (v,) if isinstance(v, str) else tuple(v) for k, v in row.where.items()}
    fixed |= {"where": texts, "settings": settings}
    return Criterion(**fixed)


def _fault(c: Criterion, row: _Row) -> str | None:
    if (c.scorer is None) == (c.judge is None):
        return "names either a 'scorer' or a 'judge'"
    for key, texts in c.where.items():
        if key not in _WHERE:
            return f"unknown key {key!r} in 'where'{did_you_mean(key, _WHERE)}"
        if not texts or not all(texts):
            return f"'where.{key}' is empty; leave it out to mean every case"
    if c.judge is not None and c.settings:
        key = next(iter(c.settings))
        return f"unknown key {key!r}{did_you_mean(key, _Row.model_fields)}"
    return _threshold_fault(c, row)


def _threshold_fault(c: Criterion, row: _Row) -> str | None:
    in_levels = c.judge is not None and "statistic" in row.model_fields_set and c.pass_at is None
    if c.min is not None and not in_levels and not 0 <= c.min <= 1:
        return f"'min' is {c.min:g}, but a rate is in 0..1"
    if c.max_drop is not None and not in_levels and c.max_drop > 1:
        return f"'max_drop' is {c.max_drop:g}, but a rate is in 0..1"
    if c.statistic == "rate" and c.judge is not None and c.pass_at is None:
        return "'statistic = \"rate\"' needs 'pass_at', the lowest level that passes"
    if c.pass_at is not None and c.statistic != "rate":
        return "'pass_at' needs 'statistic = \"rate\"'"
    if (c.min_win_rate is not None) != (c.against is not None):
        return "'against' and 'min_win_rate' belong together"
    if c.hard and (c.judge is not None or not c.gate):
        return "'hard' is for a scorer that gates: it stops a case before any judge is paid"
    stated = (c.min, c.max_drop, c.min_win_rate)
    if c.gate and not c.hard and all(value is None for value in stated):
        return "gates without a threshold; give it 'min', 'max_drop' or 'hard', or 'gate = false'"
    return None


def _of(case: Case, key: str) -> frozenset[str]:
    if key == "tags":
        return frozenset(case.tags)
    return frozenset({getattr(case, key) or ""})

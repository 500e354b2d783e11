"""Rows of a long run as far as counting needs them: no texts, findings or verdicts are made."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from msgspec import DecodeError, Meta, Struct, ValidationError, field
from msgspec.json import Decoder

from evalkit.records import Finish, Reply, RowStatus, ScoreStatus
from evalkit.runs.rows import damaged_row

__all__ = ["SkimmedRow", "SkimmedScore", "skimmed_rows"]


class SkimmedScore(Struct):
    """What counts of a `Score`."""

    status: ScoreStatus
    value: Annotated[float, Meta(ge=0.0, le=1.0)] | None = None
    details: dict[str, Any] = {}


class SkimmedRow(Struct):
    """What counts of a `Row`."""

    case_id: str
    stratum: str
    repeat: int
    status: RowStatus
    scores: dict[str, SkimmedScore] = field(name="criteria", default_factory=dict)
    cluster: str | None = None
    finish: Finish | None = None
    warnings: tuple[str, ...] = ()

    @property
    def reply(self) -> Reply | None:
        """How the reply ended, without its text; None when there was none."""
        if self.finish is None:
            return None
        return Reply("", finish=self.finish, warnings=self.warnings)


def skimmed_rows(path: Path) -> Iterator[SkimmedRow]:
    """The rows of a file, one at a time.

    Raises:
        BaselineError: If a line is not a row; names file and line.
    """
    decode = Decoder(SkimmedRow).decode
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                row = decode(line)
                for score in row.scores.values():
                    if (score.value is None) == (score.status is ScoreStatus.OK):
                        raise ValidationError(f"status {score.status} with value {score.value}")
            except (DecodeError, ValidationError, UnicodeDecodeError, RecursionError) as error:
                raise damaged_row(path, number, error) from error
            yield row

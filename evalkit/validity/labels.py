"""The one writer of human labels: an append-only JSONL file that several people may share.

Every key press is a line, written under a lock and flushed to the disk before it counts. A later
line of the same person on the same item replaces the earlier one; nothing is ever overwritten.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evalkit.appending import append_lines, read_whole_lines
from evalkit.errors import AnchorError
from evalkit.hashing import canonical_json

__all__ = [
    "CANNOT_TELL",
    "Label",
    "append_label",
    "current_labels",
    "item_id_of",
    "read_labels",
]

CANNOT_TELL = "cannot_tell"


class Label(BaseModel):
    """What one person said of one item, and how it stood before that person.

    `label` is in terms of the item ("yes", "4", or the source that won), never of the screen;
    `side` is the source that stood left ("" for a single draft). A line with `action` skip or undo
    has no label. `plan` is the sampling plan the item was drawn by.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    item_id: str = Field(min_length=1)
    annotator: str = Field(min_length=1)
    label: str | None
    criterion: str = ""
    side: str = ""
    time: str = Field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="milliseconds"))
    plan: str = ""
    action: Literal["label", "skip", "undo"] = "label"
    provenance: Literal["human"] = "human"

    @property
    def key(self) -> tuple[str, str, str]:
        """What a later line replaces: item, criterion, annotator."""
        return self.item_id, self.criterion, self.annotator


def item_id_of(case_id: str, repeat: int = 0) -> str:
    """The label id of one row of a run."""
    return f"{case_id}#{repeat}"


def append_label(path: Path, label: Label) -> None:
    """Append one line; two writers at once lose nothing, a crash leaves whole lines.

    A last line that a crash cut short is moved to `<name>.torn` before the new one is written.

    Raises:
        AnchorError: If the file cannot be written, or the line says two things at once.
    """
    if (label.label is None) == (label.action == "label"):
        raise AnchorError(
            f"{label.item_id}: a line that is a {label.action} cannot have label {label.label!r}."
        )
    try:
        append_lines(path, [canonical_json(label.model_dump())], whole=_is_json_object)
    except OSError as broken:
        raise AnchorError(f"{path}: the label could not be written: {broken.strerror}.") from broken


def read_labels(path: Path) -> tuple[Label, ...]:
    """Every whole line in order, also replaced ones; a file that is not there has none.

    A last line that a crash cut short is passed over: it was never confirmed to anyone.

    Raises:
        AnchorError: If a line is no label; names file and line.
    """
    return _parse(path, read_whole_lines(path, whole=_is_json_object))


def current_labels(labels: Iterable[Label]) -> dict[tuple[str, str, str], Label]:
    """What stands: the last line per item, criterion and annotator, without skips and undos."""
    last: dict[tuple[str, str, str], Label] = {}
    for label in labels:
        last[label.key] = label
    return {key: label for key, label in last.items() if label.action == "label"}


def _is_json_object(data: str) -> bool:
    try:
        return isinstance(json.loads(data), Mapping)
    except (ValueError, RecursionError):
        return False


def _parse(path: Path, lines: Sequence[str]) -> tuple[Label, ...]:
    labels: list[Label] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            labels.append(Label.model_validate_json(line))
        except ValidationError as wrong:
            first = wrong.errors()[0]
            field = ".".join(str(part) for part in first["loc"]) or "line"
            raise AnchorError(
                f"{path}:{number}: not a label: {field}: {first['msg']}. Labels are written by "
                "the label notebook; restore the line from version control."
            ) from None
    return tuple(labels)

"""Anchors: evidence from outside the system, by which a judge is measured.

An anchor holds items (what the judge will see) and labels (what others said of them). One kind of
question each: levels of a scale, yes/no of one criterion, or which of a pair is better.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any

from evalkit.counting import counted
from evalkit.errors import AnchorError
from evalkit.hashing import sha256_hex
from evalkit.records import Case, Document, Reply
from evalkit.validity.provenance import Provenance

__all__ = [
    "FIRST",
    "SECOND",
    "TIE",
    "Anchor",
    "AnchorItem",
    "AnchorKind",
    "AnchorLabel",
    "Draw",
    "draw_per_band",
    "short_is_never_right",
    "write_anchor",
]

FIRST, TIE, SECOND = "1", "tie", "2"
ADJUDICATED = "adjudicated"
COLUMNS = ("item_id", "annotator", "label", "criterion", "provenance", "domain", "licence", "split")


class AnchorKind(StrEnum):
    """SCALE: ordered levels. CRITERIA: yes/no of one criterion. PAIRS: 1, tie or 2."""

    SCALE = "scale"
    CRITERIA = "criteria"
    PAIRS = "pairs"


@dataclass(frozen=True, slots=True)
class AnchorItem:
    """What the judge sees: the case's inputs and pages, one output, or two for a pair.

    Texts may be missing where only recorded scores are replayed.
    """

    id: str
    output: str = ""
    other: str | None = None
    inputs: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    context: tuple[Document, ...] = ()

    @property
    def case(self) -> Case:
        """The item as a case for a judge."""
        return Case(id=self.id, inputs=self.inputs, context=self.context)

    @property
    def replies(self) -> tuple[Reply, ...]:
        """The output, or both of a pair, as replies nobody called for."""
        return (
            (Reply(self.output),) if self.other is None else (Reply(self.output), Reply(self.other))
        )


@dataclass(frozen=True, slots=True)
class AnchorLabel:
    """What one annotator said of one item, in the anchor's categories; `made_by` if by a rule."""

    item_id: str
    annotator: str
    label: str
    made_by: str = ""


@dataclass(frozen=True)
class Anchor:
    """Items and labels of one origin and one domain.

    `categories` are in order (lowest first). `people` says who gave the labels and where they come
    from. `path` is where it was read, `file_digest` what that file held then (a drawn part keeps
    it). `notes` are warnings that travel with it.
    """

    name: str
    kind: AnchorKind
    domain: str
    provenance: Provenance
    categories: tuple[str, ...]
    items: tuple[AnchorItem, ...]
    labels: tuple[AnchorLabel, ...]
    criterion: str = ""
    licence: str = ""
    people: str = ""
    path: Path | None = None
    file_digest: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        known = {item.id for item in self.items}
        if len(known) != len(self.items):
            raise AnchorError(f"{self.where}: two items share an id.")
        for label in self.labels:
            if label.item_id not in known:
                raise AnchorError(
                    f"{self.where}: a label names item {label.item_id!r}; it is not here."
                )
            if label.label not in self.categories and not self._between(label.label):
                raise AnchorError(
                    f"{self.where}: item {label.item_id!r} has label {label.label!r}; "
                    f"the categories are {', '.join(self.categories)}."
                )

    @property
    def where(self) -> str:
        """The file, or the name, for messages."""
        return str(self.path or self.name)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over every text and label: one changed character changes it."""
        return sha256_hex(
            {
                "kind": self.kind,
                "domain": self.domain,
                "criterion": self.criterion,
                "provenance": self.provenance,
                "categories": self.categories,
                "items": sorted(
                    [i.id, i.output, i.other, i.inputs, [[d.id, d.text] for d in i.context]]
                    for i in self.items
                ),
                "labels": sorted([a.item_id, a.annotator, a.label] for a in self.labels),
            }
        )

    @cached_property
    def truth(self) -> dict[str, str]:
        """One label per item: the adjudicated one, else the majority (scale: the mean).

        Items without a majority are left out. A mean of levels may lie between two levels.
        """
        by_item: dict[str, list[str]] = defaultdict(list)
        settled = {a.item_id: a.label for a in self.labels if a.annotator == ADJUDICATED}
        for label in self.labels:
            by_item[label.item_id].append(label.label)
        agreed = {item: self._agree(given) for item, given in by_item.items()}
        return {i.id: said for i in self.items if (said := settled.get(i.id) or agreed.get(i.id))}

    def keep(self, ids: Iterable[str]) -> Anchor:
        """The anchor with these items only, in its own order."""
        wanted = set(ids)
        return replace(
            self,
            items=tuple(item for item in self.items if item.id in wanted),
            labels=tuple(label for label in self.labels if label.item_id in wanted),
        )

    def band(self, label: str) -> str:
        """The category a label counts in: a mean between two levels is rounded half up."""
        if label in self.categories:
            return label
        rounded = math.floor(round(float(label), 9) + 0.5)
        return next(c for c in self.categories if float(c) == rounded)

    def _between(self, label: str) -> bool:
        try:
            low, high = float(self.categories[0]), float(self.categories[-1])
            return self.kind is AnchorKind.SCALE and low <= float(label) <= high
        except ValueError:
            return False

    def _agree(self, given: Sequence[str]) -> str | None:
        if self.kind is AnchorKind.SCALE and len(given) > 1:
            return f"{math.fsum(map(float, given)) / len(given):.12g}"
        ranked = Counter(given).most_common()
        return ranked[0][0] if len(ranked) == 1 or ranked[0][1] > ranked[1][1] else None


@dataclass(frozen=True, slots=True)
class Draw:
    """An anchor with as many items per band as asked for; `short` are bands that had fewer."""

    anchor: Anchor
    per_band: Mapping[str, int]
    short: tuple[str, ...]


def draw_per_band(anchor: Anchor, *, per_band: int = 20, seed: int = 7) -> Draw:
    """The same number from every band, so that rare bands are measured too (mix = equal).

    Args:
        anchor: What to draw from.
        per_band: Items per category; a band with fewer gives all it has and is named.
        seed: Which items: a hash of seed and item id, so growing the anchor moves little.
    """
    bands: dict[str, list[str]] = {category: [] for category in anchor.categories}
    for item, label in anchor.truth.items():
        bands[anchor.band(label)].append(item)
    chosen = {
        band: sorted(items, key=lambda i: sha256(f"{seed}:{i}".encode()).digest())[:per_band]
        for band, items in bands.items()
    }
    return Draw(
        anchor=anchor.keep(i for items in chosen.values() for i in items),
        per_band={band: len(items) for band, items in chosen.items()},
        short=tuple(band for band, items in chosen.items() if len(items) < per_band),
    )


def short_is_never_right(anchor: Anchor) -> str | None:
    """A sentence when no short answer is ever the right one: then length bias cannot show.

    Pairs: the preferred output is never the shorter. Otherwise: no output below the median length
    is in the upper half of the categories. None when that is not so, or nothing can be compared.
    """
    items = {item.id: item for item in anchor.items}
    if anchor.kind is AnchorKind.PAIRS:
        right = [
            len(items[i].output) < len(items[i].other or "")
            if label == FIRST
            else len(items[i].other or "") < len(items[i].output)
            for i, label in anchor.truth.items()
            if label != TIE and len(items[i].output) != len(items[i].other or "")
        ]
    else:
        lengths = {i: len(items[i].output) for i in anchor.truth}
        middle = sorted(lengths.values())[len(lengths) // 2] if lengths else 0
        half = len(anchor.categories) / 2
        right = [
            anchor.categories.index(anchor.band(label)) >= half
            for i, label in anchor.truth.items()
            if lengths[i] < middle
        ]
    if not right or any(right):
        return None
    return (
        f"{anchor.name}: among {counted(len(right), 'item')} the short answer is never the right "
        "one; a judge that only prefers length would pass. Add short answers that are right."
    )


def write_anchor(anchor: Anchor, path: Path) -> None:
    """Write an anchor as CSV or JSONL (by the file's ending), one line per label.

    Raises:
        AnchorError: If its provenance is unknown: then it is not written, but mended.
    """
    if anchor.provenance is Provenance.UNKNOWN:
        raise AnchorError(f"{anchor.name}: say where the labels come from before writing them.")
    items = {item.id: item for item in anchor.items}
    rows = [_row(anchor, items[label.item_id], label) for label in anchor.labels]
    if path.suffix == ".jsonl":
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    else:
        out = io.StringIO(newline="")
        names = dict.fromkeys(name for row in rows for name in row)
        writer = csv.DictWriter(out, list(names), lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows({k: _cell(v) for k, v in row.items()} for row in rows)
        text = out.getvalue()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _row(anchor: Anchor, item: AnchorItem, label: AnchorLabel) -> dict[str, Any]:
    said = (item.id, label.annotator, label.label, anchor.criterion)
    row: dict[str, Any] = dict(zip(COLUMNS, (*said, anchor.provenance.value), strict=False))
    row |= {"domain": anchor.domain, "licence": anchor.licence, "output": item.output}
    row |= {f"input.{name}": value for name, value in item.inputs.items()}
    if item.other is not None:
        row["other"] = item.other
    if item.context:
        row["context"] = [{"id": page.id, "text": page.text} for page in item.context]
    if label.made_by:
        row["made_by"] = label.made_by
    if anchor.people:
        row["people"] = anchor.people
    return row


def _cell(value: Any) -> Any:
    return value if isinstance(value, (str, int, float)) else json.dumps(value, ensure_ascii=False)

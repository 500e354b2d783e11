"""Anchors out of files: this package's own CSV/JSONL, and any table by naming its columns.

What cannot be read is an error that says what to do. Nothing is ever put in its place: a download
that failed does not turn into made-up data.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalkit.cases.tables import parse_jsonl, read_csv_rows, read_text
from evalkit.errors import AnchorError
from evalkit.hashing import sha256_hex
from evalkit.records import Document
from evalkit.validity.anchors import (
    FIRST,
    SECOND,
    TIE,
    Anchor,
    AnchorItem,
    AnchorKind,
    AnchorLabel,
)
from evalkit.validity.provenance import Provenance, labels_of_people, read_provenance

__all__ = ["Columns", "file_digest", "load_anchor", "read_columns", "read_rows"]

Rows = Sequence[tuple[int, Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns of somebody's table mean what.

    Args:
        item: The item's id. Empty: the row number.
        labels: One column per annotator; their names become the annotators.
        output: The text judged; `other` the second text of a pair.
        inputs: Our input name to their column ({"question": "prompt"}).
        words: Their word to our label ({"0": "tie"}); unnamed words stay as they are.
        adjudicated: The column with the settled label, where one exists.
        where: Rows to keep ({"essay_set": "4"}).
    """

    labels: Sequence[str]
    item: str = ""
    output: str = ""
    other: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)
    adjudicated: str = ""
    where: Mapping[str, str] = field(default_factory=dict)


def load_anchor(
    path: Path,
    *,
    categories: Sequence[str] = (),
    criterion: str = "",
    split: str = "",
) -> Anchor:
    """An anchor in the package's own columns (CSV or JSONL).

    Columns: item_id, annotator, label or score, provenance, domain, licence, and optionally split,
    criterion, output, other, input.<name>, context (a JSON list of id and text, or page files
    beside the anchors' folder, separated by ;), made_by, people.

    Args:
        path: The file.
        categories: The levels of a scale, lowest first; needed for scores.
        criterion: Which criterion's rows, where the file holds several.
        split: Which split's rows; all without.

    Raises:
        AnchorError: If the file is missing or no table, a field is missing, or domains are mixed.
    """
    rows = [
        (line, row)
        for line, row in read_rows(path)
        if (not split or row.get("split") == split)
        and (not criterion or (row.get("criterion") or criterion) == criterion)
    ]
    if not rows:
        raise AnchorError(f"{path}: no row for {criterion=} and {split=}.")
    criteria = {str(row.get("criterion") or "") for _, row in rows}
    if len(criteria) > 1:
        raise AnchorError(
            f"{path}: holds labels of {', '.join(sorted(criteria))}; name one criterion."
        )
    domains = {str(row.get("domain") or "").strip() for _, row in rows}
    if len(domains) > 1 or domains == {""}:
        raise AnchorError(
            f"{path}: one anchor has one domain, stated in each row; found {domains}."
        )
    scores = "score" in rows[0][1]
    kind = _kind_of(rows[0][1], scores)
    items: dict[str, AnchorItem] = {}
    labels: list[AnchorLabel] = []
    for line, row in rows:
        at = f"{path}:{line}"
        item_id = str(row.get("item_id") or "")
        label = _label_of(row, at, "score" if scores else "label")
        if not item_id or not row.get("annotator"):
            raise AnchorError(f"{at}: a row names item_id and annotator.")
        item = _item(row, item_id, path, at)
        if items.setdefault(item_id, item) != item:
            raise AnchorError(f"{at}: item {item_id!r} stands here with another text than above.")
        labels.append(
            AnchorLabel(item_id, str(row["annotator"]), label, str(row.get("made_by") or ""))
        )
    return Anchor(
        name=path.stem,
        kind=kind,
        domain=domains.pop(),
        provenance=_weakest(
            read_provenance(row.get("provenance"), where=f"{path}:{line}") for line, row in rows
        ),
        categories=tuple(categories) or _default_categories(kind, path),
        items=tuple(items.values()),
        labels=tuple(labels),
        criterion=criteria.pop(),
        licence=str(rows[0][1].get("licence") or ""),
        people=str(rows[0][1].get("people") or ""),
        path=path,
        file_digest=file_digest(path),
    )


def read_columns(
    path: Path,
    columns: Columns,
    *,
    kind: AnchorKind,
    domain: str,
    people: str = "",
    licence: str = "",
    categories: Sequence[str] = (),
    criterion: str = "",
    rows: Rows | None = None,
) -> Anchor:
    """Anybody's table, by naming its columns.

    Args:
        path: CSV, TSV, JSONL, or JSON (a list, or an object of objects).
        columns: What means what.
        kind: What was asked.
        domain: Where the items come from; a judge is licensed for a domain.
        people: Who labelled, and where that is published. Without it the provenance is unknown,
            which counts as synthetic.
        licence: The data's licence.
        categories: The levels, lowest first; needed for a scale.
        criterion: The yes/no criterion the labels are about.
        rows: The rows, when a reader has prepared them already.

    Raises:
        AnchorError: If the file or a column is missing, or no row is left.
    """
    items: dict[str, AnchorItem] = {}
    labels: list[AnchorLabel] = []
    repeated: list[str] = []
    for line, row in rows if rows is not None else read_rows(path):
        if any(str(row.get(name)) != value for name, value in columns.where.items()):
            continue
        missing = [
            name
            for name in (*columns.labels, columns.item, columns.output)
            if name and name not in row
        ]
        if missing:
            raise AnchorError(
                f"{path}:{line}: no column {missing[0]!r}; there are {', '.join(map(str, row))}."
            )
        item_id = str(row[columns.item]) if columns.item else f"row-{line}"
        said = [
            AnchorLabel(item_id, name, columns.words.get(str(row[name]), str(row[name])))
            for name in columns.labels
            if row[name] not in (None, "")
        ]
        if columns.adjudicated and row.get(columns.adjudicated) not in (None, ""):
            word = str(row[columns.adjudicated])
            said.append(AnchorLabel(item_id, "adjudicated", columns.words.get(word, word)))
        if item_id in items:
            repeated.append(item_id)
        elif said:
            items[item_id] = AnchorItem(
                id=item_id,
                output=str(row.get(columns.output) or "") if columns.output else "",
                other=str(row.get(columns.other) or "") if columns.other else None,
                inputs={ours: row.get(theirs) for ours, theirs in columns.inputs.items()},
            )
            labels += said
    if not items:
        raise AnchorError(f"{path}: no row with a label is left; look at the columns and 'where'.")
    return Anchor(
        name=path.stem,
        kind=kind,
        domain=domain,
        provenance=labels_of_people(people),
        categories=tuple(categories) or _default_categories(kind, path),
        items=tuple(items.values()),
        labels=tuple(labels),
        criterion=criterion,
        licence=licence,
        people=people,
        path=path,
        file_digest=file_digest(path),
        notes=(f"{len(repeated)} repeated item ids: the first row counts",) if repeated else (),
    )


def read_rows(path: Path) -> Rows:
    """The rows of a CSV, TSV, JSONL or JSON file, each with its line (JSON: its position).

    Raises:
        AnchorError: If the file is missing, empty, a web page or a pointer to a file elsewhere.
    """
    if not path.exists():
        raise AnchorError(
            f"{path} is not there. Put the file there (the README of the data says where it comes "
            "from); nothing is put in its place."
        )
    head = path.read_bytes()[:200].lstrip().lower()
    if head.startswith((b"<!doctype", b"<html", b"version https://git-lfs")):
        raise AnchorError(
            f"{path}: holds a web page or a pointer, not the data: the download failed."
        )
    rows: Rows
    if path.suffix == ".jsonl":
        rows = [*parse_jsonl(read_text(path, error=AnchorError), path, error=AnchorError)]
    elif path.suffix == ".json":
        rows = _json_rows(path)
    elif path.suffix == ".tsv":
        rows = _tsv_rows(path)
    else:
        rows = [*read_csv_rows(path, error=AnchorError)]
    if not rows:
        raise AnchorError(f"{path}: holds no row.")
    return rows


def file_digest(path: Path) -> str:
    """SHA-256 over a file's text (line endings aside) and the pages it names.

    Raises:
        AnchorError: If the file or a page cannot be read.
    """
    pages = {
        (page.id, page.text)
        for line, row in read_rows(path)
        if _names_files(row.get("context"))
        for page in _context(row["context"], path, f"{path}:{line}")
    }
    return sha256_hex([sha256_hex(path.read_bytes().replace(b"\r\n", b"\n")), sorted(pages)])


def _json_rows(path: Path) -> Rows:
    try:
        data = json.loads(read_text(path, error=AnchorError))
    except (ValueError, RecursionError) as wrong:
        raise AnchorError(f"{path}: is not JSON: {wrong}") from None
    values = list(data.values()) if isinstance(data, dict) else data
    if not isinstance(values, list) or not all(isinstance(v, dict) for v in values):
        raise AnchorError(f"{path}: is no list of objects.")
    return list(enumerate(values, start=1))


def _tsv_rows(path: Path) -> Rows:
    # The essays of ASAP were saved as Windows-1252; UTF-8 is tried first.
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("cp1252", errors="replace")
    csv.field_size_limit(max(csv.field_size_limit(), 1 << 27))
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter="\t")
    return [(reader.line_num, {k: v or None for k, v in row.items() if k}) for row in reader]


def _kind_of(row: Mapping[str, Any], scores: bool) -> AnchorKind:
    if row.get("other") is not None:
        return AnchorKind.PAIRS
    return AnchorKind.SCALE if scores else AnchorKind.CRITERIA


def _default_categories(kind: AnchorKind, path: Path) -> tuple[str, ...]:
    if kind is AnchorKind.SCALE:
        raise AnchorError(
            f"{path}: name the levels of the scale (lowest first). Inferred levels make two runs "
            "incomparable: a level that nobody used would be missing."
        )
    return ("no", "yes") if kind is AnchorKind.CRITERIA else (FIRST, TIE, SECOND)


def _weakest(stated: Any) -> Provenance:
    found = set(stated)
    order = (Provenance.UNKNOWN, Provenance.MODEL, Provenance.SYNTHETIC, Provenance.HUMAN)
    return next(p for p in order if p in found)


def _label_of(row: Mapping[str, Any], at: str, name: str) -> str:
    value = row.get(name)
    if value is None or value == "":
        raise AnchorError(f"{at}: has no {name}.")
    return str(value)


def _item(row: Mapping[str, Any], item_id: str, path: Path, at: str) -> AnchorItem:
    inputs = {k[6:]: v for k, v in row.items() if k.startswith("input.") and v is not None}
    other = row.get("other")
    return AnchorItem(
        id=item_id,
        output=str(row.get("output") or ""),
        other=None if other is None else str(other),
        inputs=inputs,
        context=_context(row.get("context"), path, at),
    )


def _context(value: Any, path: Path, at: str) -> tuple[Document, ...]:
    if not value:
        return ()
    if _names_files(value):
        suite = path.parent.parent.resolve()
        files = [(suite / name.strip()).resolve() for name in value.split(";")]
        for file in files:
            if not file.is_relative_to(suite):
                raise AnchorError(f"{at}: the page {file.name} lies outside the suite's folder.")
        return tuple(Document(f.stem, read_text(f, error=AnchorError).strip("\n")) for f in files)
    try:
        pages = json.loads(value) if isinstance(value, str) else value
        return tuple(Document(str(page["id"]), str(page["text"])) for page in pages)
    except (ValueError, TypeError, KeyError, RecursionError):
        raise AnchorError(f"{at}: context is a JSON list of objects with id and text.") from None


def _names_files(value: Any) -> bool:
    return isinstance(value, str) and bool(value) and not value.lstrip().startswith("[")

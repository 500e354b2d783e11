"""JSONL and CSV read strictly: each row with its line, each fault with file, line and remedy."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from evalkit.counting import counted
from evalkit.errors import CaseError, UsageError

__all__ = ["duplicate_ids", "parse_jsonl", "read_csv_rows", "read_jsonl", "read_text"]

_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_OTHER_BOMS = (b"\xff\xfe", b"\xfe\xff")


def read_text(path: Path, *, error: type[UsageError] = CaseError) -> str:
    """The text of a UTF-8 file, without its byte order mark; line ends stay as they are.

    Raises:
        UsageError: As `error`, if the file is missing, unreadable, or not UTF-8 (names the line).
    """
    try:
        data = path.read_bytes()
    except OSError as problem:
        raise error(f"{path}: cannot be read: {problem.strerror or problem}") from None
    if data.startswith(_OTHER_BOMS):
        raise error(f"{path}: is UTF-16, not UTF-8; save it again as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        byte = data[problem.start]
        raise error(
            f"{path}:{line}: byte 0x{byte:02x} is not UTF-8; save the file again as UTF-8"
        ) from None


def read_jsonl(
    path: Path, *, error: type[UsageError] = CaseError
) -> list[tuple[int, dict[str, Any]]]:
    """The objects of a JSONL file with their line numbers; blank lines count but hold nothing.

    Only a line feed ends a line, so U+2028 inside a text is text.

    Raises:
        UsageError: As `error`, at the first line that is not one strict JSON object: broken JSON,
            NaN or infinity, a key given twice, an unpaired surrogate.
    """
    return parse_jsonl(read_text(path, error=error), path, error=error)


def parse_jsonl(
    text: str, source: Path | str, *, error: type[UsageError] = CaseError
) -> list[tuple[int, dict[str, Any]]]:
    """As `read_jsonl`, for a text at hand; `source` is the name that messages give it."""
    rows: list[tuple[int, dict[str, Any]]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = _DECODER.decode(line.strip(" \t\r"))
            if _SURROGATE_ESCAPE.search(line):
                _refuse_surrogates(value)
        except (ValueError, RecursionError) as problem:
            raise error(f"{source}:{number}: {_json_fault(problem)}") from None
        if not isinstance(value, dict):
            raise error(f"{source}:{number}: is {_kind(value)}; each line holds one JSON object")
        rows.append((number, value))
    return rows


def read_csv_rows(
    path: Path, *, error: type[UsageError] = CaseError
) -> list[tuple[int, dict[str, str | None]]]:
    """The records of a CSV file with the line each begins on; every cell stays as written.

    'NA', 'None', 'nan' and '007' are texts; only an empty cell is missing (None). Understands what
    Excel writes: a byte order mark, `;` or a tab between the columns, a `sep=` line, line breaks
    inside quotes.

    Raises:
        UsageError: As `error`, for a header with an empty or repeated name, or a record with more
            or fewer cells than the header.
    """
    text = read_text(path, error=error)
    first, _, rest = text.partition("\n")
    skipped, delimiter = 0, _delimiter(first)
    if re.fullmatch(r"sep=.\r?", first):
        skipped, delimiter, text = 1, first[4], rest
    csv.field_size_limit(max(csv.field_size_limit(), 1 << 27))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[tuple[int, dict[str, str | None]]] = []
    header: list[str] = []
    begins = 0
    try:
        for cells in reader:
            line, begins = begins + 1 + skipped, reader.line_num
            if not any(cell.strip() for cell in cells):
                continue
            if not header:
                header = _header([cell.strip() for cell in cells], path, error)
                continue
            if len(cells) != len(header):
                raise error(
                    f"{path}:{line}: has {counted(len(cells), 'cell')} where the header "
                    f"has {len(header)}; "
                    "quote a cell that holds the delimiter"
                )
            rows.append((line, {k: v or None for k, v in zip(header, cells, strict=True)}))
    except csv.Error as problem:
        raise error(f"{path}:{begins + 1 + skipped}: is not CSV: {problem}") from None
    if not header:
        raise error(f"{path}: is empty; the first line names the columns")
    return rows


def duplicate_ids(rows: Iterable[tuple[int, Mapping[str, Any]]]) -> dict[str, list[int]]:
    """Ids that stand on several lines, in their text form: 1 and "1" are one id."""
    seen: dict[str, list[int]] = {}
    for line, row in rows:
        if row.get("id") is not None:
            seen.setdefault(str(row["id"]), []).append(line)
    return {name: lines for name, lines in seen.items() if len(lines) > 1}


def _header(names: list[str], path: Path, error: type[UsageError]) -> list[str]:
    if "" in names:
        raise error(f"{path}: column {names.index('') + 1} has no name in the first line")
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise error(f"{path}: column {twice[0]!r} stands twice in the first line")
    return names


def _delimiter(header: str) -> str:
    """Comma, unless the header holds none of it and one of what Excel writes elsewhere."""
    return next((d for d in ",;\t" if d in header), ",")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:20]} is too large")
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON; leave the key out or write null")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(n for n in names if names.count(n) > 1)
        raise ValueError(f"the key {twice!r} stands twice in one object")
    return value


_DECODER = json.JSONDecoder(
    parse_float=_finite, parse_constant=_no_constant, object_pairs_hook=_unique_keys
)


def _refuse_surrogates(value: Any) -> None:
    if _LONE_SURROGATE.search(json.dumps(value, ensure_ascii=False)):
        raise ValueError("an unpaired surrogate (\\ud800 to \\udfff) is no character")


def _json_fault(problem: Exception) -> str:
    if isinstance(problem, json.JSONDecodeError):
        return f"is not JSON: {problem.msg} at character {problem.pos + 1}"
    if isinstance(problem, RecursionError):
        return "is nested too deeply"
    return f"is not strict JSON: {problem}"


def _kind(value: Any) -> str:
    names = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")

"""`cases.jsonl` to frozen cases: read strictly, every fault named with file, line and field."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NotRequired

from pydantic import ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from evalkit.cases.problems import did_you_mean, problems_of
from evalkit.cases.tables import duplicate_ids, parse_jsonl, read_text
from evalkit.errors import CaseError
from evalkit.records import Case, Document

__all__ = ["CASE_FIELDS", "load_cases", "parse_cases"]

CASE_FIELDS = (
    *("id", "stratum", "inputs", "context", "material"),
    *("expected", "tags", "path", "cluster", "why"),
)
_MOST_PROBLEMS = 10


def load_cases(
    path: Path | str, *, folder: Path | None = None, strata: Collection[str] | None = None
) -> tuple[Case, ...]:
    """The cases of a JSONL file, in its order.

    Args:
        path: The file.
        folder: Where the files that `material` names stand; the file's own folder by default.
        strata: The strata that exist; None accepts any.

    Raises:
        CaseError: If the file is missing or empty, or any line is wrong. All faults are named
            (the first ten), and no case is used without the others.
    """
    path = Path(path)
    text = read_text(path)
    return parse_cases(text, path, folder=folder or path.parent, strata=strata)


def parse_cases(
    text: str, source: Path | str, *, folder: Path, strata: Collection[str] | None = None
) -> tuple[Case, ...]:
    """As `load_cases`, for a text at hand; `source` is the name that messages give it."""
    with _no_collection():
        return _parse(parse_jsonl(text, source), source, folder, strata)


@contextmanager
def _no_collection() -> Generator[None]:
    """Pause the cycle collector: it would walk all that was read again and again (twice the time).

    Nothing here makes a cycle, so there is nothing for it to find.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _parse(
    rows: list[tuple[int, dict[str, Any]]],
    source: Path | str,
    folder: Path,
    strata: Collection[str] | None,
) -> tuple[Case, ...]:
    problems = [
        f"{source}: id {name!r} stands on lines {', '.join(map(str, lines))}; ids must differ"
        for name, lines in duplicate_ids(rows).items()
    ]
    cases: list[Case] = []
    material = functools.cache(functools.partial(_read_material, folder.resolve()))
    for line, row in rows:
        found = list(_faults(row, strata))
        if not found:
            try:
                cases.append(_case(row, material))
                continue
            except CaseError as fault:
                found = [str(fault)]
        name = row.get("id")
        who = f"case {name!r}: " if isinstance(name, str) and name else ""
        problems += [f"{source}:{line}: {who}{fault}" for fault in found]
    if problems:
        more = len(problems) - _MOST_PROBLEMS
        shown = problems[:_MOST_PROBLEMS] + ([f"and {more} more"] if more > 0 else [])
        raise CaseError("\n".join(shown))
    if not cases:
        raise CaseError(f"{source}: holds no case; write one JSON object a line")
    return tuple(cases)


class _Page(TypedDict):
    __pydantic_config__ = ConfigDict(strict=True, extra="forbid")  # pyright: ignore[reportGeneralTypeIssues]

    id: str
    text: str


class _Line(TypedDict):
    __pydantic_config__ = ConfigDict(strict=True, extra="forbid")  # pyright: ignore[reportGeneralTypeIssues]

    id: str
    stratum: NotRequired[str]
    inputs: dict[str, Any]
    context: NotRequired[list[str | _Page]]
    material: NotRequired[list[str] | dict[str, str]]
    expected: NotRequired[dict[str, Any]]
    tags: NotRequired[list[str]]
    path: NotRequired[str | None]
    cluster: NotRequired[str | None]
    why: NotRequired[str]


_LINE = TypeAdapter(_Line)


def _faults(row: dict[str, Any], strata: Collection[str] | None) -> Iterator[str]:
    try:
        _LINE.validate_python(row)
    except ValidationError as error:
        yield from problems_of(error, CASE_FIELDS)
        return
    name, stratum = row["id"], row.get("stratum", "all")
    if not name or name != name.strip() or not name.isprintable():
        yield f"id {name!r} must be a printable text without spaces at its ends"
    if not row["inputs"] and not row.get("material"):
        yield "'inputs' is empty; a case needs something to go in"
    if not stratum.strip():
        yield "'stratum' is empty; name one, or leave the key out"
    elif strata is not None and stratum not in strata:
        yield f"stratum {stratum!r} is not in the suite's mix{did_you_mean(stratum, strata)}"
    if row.get("cluster") == "" or row.get("path") == "":
        yield "'cluster' and 'path' must not be empty; leave the key out"
    pages = [p["id"] for p in row.get("context", ()) if isinstance(p, dict)]
    if len(set(pages)) < len(pages):
        yield "two pages of 'context' share an id"


def _case(row: dict[str, Any], read: Callable[[str], str]) -> Case:
    material = row.get("material", {})
    if isinstance(material, list):
        named = {Path(name).name: read(name) for name in material}
        if len(named) < len(material):
            raise CaseError("two files of 'material' share a name")
        material = named
    return Case(
        id=row["id"],
        stratum=row.get("stratum", "all"),
        inputs=row["inputs"],
        context=tuple(
            Document(str(number), page)
            if isinstance(page, str)
            else Document(page["id"], page["text"])
            for number, page in enumerate(row.get("context", ()), start=1)
        ),
        material=material,
        expected=row.get("expected", {}),
        tags=tuple(row.get("tags", ())),
        path=row.get("path"),
        cluster=row.get("cluster"),
        why=row.get("why", ""),
    )


def _read_material(folder: Path, name: str) -> str:
    """The text of a file inside the suite; a binary file keeps its name and has no text."""
    path = (folder / name).resolve()
    if not path.is_relative_to(folder):
        raise CaseError(f"material {name!r} lies outside the suite's folder")
    if not path.is_file():
        raise CaseError(f"material {name!r} is not a file of the suite's folder")
    data = path.read_bytes()
    try:
        return "" if b"\0" in data else data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return ""

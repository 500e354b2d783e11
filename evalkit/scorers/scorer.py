"""What a scorer is, and how one is made from a suite's settings and named in a run.

A scorer is a frozen dataclass whose fields are its settings. `VERSION` grows whenever a score may
change; `GATES = False` says that it may be shown but never block. A field with the metadata
`{"file": "json"}` or `{"file": "text"}` may be given as a file name beside the suite.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, cast, get_type_hints, runtime_checkable

from evalkit.errors import ScorerError
from evalkit.hashing import short_hash
from evalkit.records import Case, Reply, Score

__all__ = ["Scorer", "find_scorer", "make_scorer", "scorer_identity", "settings_of"]


@runtime_checkable
class Scorer(Protocol):
    """A measure of one reply: a value in 0..1 and its reason. It does not decide or remember."""

    VERSION: ClassVar[int]

    def __call__(self, case: Case, reply: Reply) -> Score:
        """Score `reply`, the answer to `case`.

        Raises:
            ScorerError: If the case lacks what the settings say it has.
        """
        ...


def find_scorer(name: str, scorers: Mapping[str, type]) -> type:
    """The class behind a name of the dictionary, or behind "module:Class" for a user's own.

    Raises:
        ScorerError: If there is none.
    """
    if name in scorers:
        return scorers[name]
    module, colon, attribute = name.partition(":")
    if not colon:
        raise ScorerError(f"there is no scorer {name!r}. There are: {', '.join(sorted(scorers))}.")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ScorerError(f"the scorer {name!r} cannot be imported: {error}") from error
    if not (isinstance(found, type) and is_dataclass(found) and hasattr(found, "VERSION")):
        raise ScorerError(f"{name!r} is no scorer: a frozen dataclass with a VERSION")
    return found


def make_scorer(name: str, kind: type, settings: Mapping[str, Any], folder: Path) -> Scorer:
    """Build the scorer `kind` from plain settings, checked field by field.

    Raises:
        ScorerError: If a setting is unknown, missing, of the wrong type, or names a bad file.
    """
    known = {f.name: f for f in fields(kind) if f.init}
    where = f"the scorer {name!r}"
    if unknown := sorted(set(settings) - set(known)):
        allowed = ", ".join(known) or "none"
        raise ScorerError(f"{where} has no setting {', '.join(unknown)}. It has: {allowed}.")
    hints = get_type_hints(kind)
    values = {
        key: _checked(_read(given, known[key], folder, where), hints[key], f"{where}: {key}")
        for key, given in settings.items()
    }
    if missing := [n for n, f in known.items() if n not in values and _required(f)]:
        raise ScorerError(f"{where} needs the setting {', '.join(missing)}.")
    return cast("Scorer", kind(**values))


def settings_of(scorer: Scorer) -> dict[str, Any]:
    """The settings with which a scorer was made, files read in: what its hash covers."""
    return {f.name: getattr(scorer, f.name) for f in fields(cast("Any", scorer)) if f.init}


def scorer_identity(scorer: Scorer, scorers: Mapping[str, type]) -> str:
    """Hash of name, version and settings: what a score is pinned to."""
    kind = type(scorer)
    listed = (name for name, listed in scorers.items() if listed is kind)
    name = next(listed, f"{kind.__module__}:{kind.__qualname__}")
    return short_hash({"scorer": name, "version": kind.VERSION, "settings": settings_of(scorer)})


def _required(setting: Field[Any]) -> bool:
    return setting.default is MISSING and setting.default_factory is MISSING


def _read(given: Any, setting: Field[Any], folder: Path, where: str) -> Any:
    kind = setting.metadata.get("file")
    if kind is None or not isinstance(given, str):
        return given
    path = folder / given
    try:
        text = path.read_text(encoding="utf-8-sig")
        return json.loads(text) if kind == "json" else text
    except (OSError, ValueError) as error:
        raise ScorerError(f"{where}: {setting.name} = {given!r} cannot be read: {error}") from error


def _checked(given: Any, hint: Any, where: str) -> Any:
    """Check one setting against its field's type; TOML arrays become tuples."""
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(hint).validate_json(json.dumps(given, default=str), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        at = "".join(f".{step}" for step in first["loc"])
        raise ScorerError(f"{where}{at} = {first['input']!r}: {first['msg']}.") from error

"""A user's own JSON Schema: every violation as a path and a sentence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from evalkit.errors import ScorerError
from evalkit.hashing import canonical_json

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

__all__ = ["violations"]

_MAX_SENTENCE = 300


def violations(value: Any, schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Everything in which `value` breaks the schema, as "$.path: sentence", ordered by path.

    Raises:
        ScorerError: If the schema is none, or refers to one that is not inside it.
    """
    from referencing.exceptions import Unresolvable

    try:
        found = [(e.json_path, e.message) for e in _validator(schema).iter_errors(value)]
    except Unresolvable as error:
        raise ScorerError(
            f"the JSON schema refers to {error.ref!r}, which is not inside it. "
            "Put that part under '$defs' of the same file."
        ) from error
    return tuple(f"{path}: {_short(message)}" for path, message in sorted(found))


def _validator(schema: Mapping[str, Any]) -> Validator:
    return _compiled(canonical_json(schema))


@lru_cache(maxsize=64)
def _compiled(schema: str) -> Validator:
    from jsonschema import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing import Registry

    plain = json.loads(schema)
    kind = validator_for(plain, default=Draft202012Validator)
    try:
        kind.check_schema(plain)
    except SchemaError as error:
        raise ScorerError(
            f"this is no JSON schema, at {error.json_path}: {_short(error.message)}"
        ) from error
    # an empty registry: nothing is ever fetched
    return kind(plain, registry=Registry())


def _short(message: str) -> str:
    if len(message) <= _MAX_SENTENCE:
        return message
    half = _MAX_SENTENCE // 2
    return f"{message[:half]} ... {message[-half:]}"

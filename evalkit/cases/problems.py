"""What pydantic found, as sentences that name the field and the nearest allowed name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

__all__ = ["did_you_mean", "problems_of"]

_WANTED = {
    "string_type": "must be a text",
    "dict_type": "must be an object",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "finite_number": "must be finite",
    "string_too_short": "must not be empty",
}
_BRANCHES = {"str", "_Page", "list[str]", "list[union[str,_Page]]", "dict[str,str]"}


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'stratum'?`, or the list of what is known when nothing is near."""
    names = sorted(known)
    near = get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; known here: {', '.join(names)}" if names else ""


def problems_of(error: ValidationError, known: Iterable[str] = ()) -> Iterator[str]:
    """One short clause per fault, such as `'stratum' must be a text`.

    Args:
        error: What pydantic raised.
        known: The names allowed where an unknown one was found.
    """
    names = tuple(known)
    clauses: dict[str, list[str]] = {}
    for detail in error.errors(include_url=False, include_context=True):
        field, said = _clause(detail, names)
        clauses.setdefault(field, []).append(said)
    for field, said in clauses.items():
        if any(deeper.startswith(f"{field}.") for deeper in clauses):
            continue  # the branch that got further says what is wrong
        # A value that fits no branch of a union fails once for each.
        wanted = dict.fromkeys(s[8:].split(", not ")[0] for s in said if s.startswith("must be "))
        text = f"must be {' or '.join(wanted)}" if len(wanted) > 1 else said[0]
        unknown = text.startswith(";")
        yield f"unknown key {field!r}{text.rstrip(';')}" if unknown else f"{field!r} {text}"


def _clause(detail: ErrorDetails, known: tuple[str, ...]) -> tuple[str, str]:
    # Pydantic adds the branch of a union ("str", "_Page") to the place; it says nothing here.
    place = [p for p in detail["loc"] if p not in _BRANCHES]
    field = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in place).lstrip(".")
    kind, given = detail["type"], repr(detail.get("input"))
    if kind == "extra_forbidden":
        return field, did_you_mean(str(place[-1]), known) or ";"
    if kind == "missing":
        return field, "is missing"
    if kind == "literal_error":
        return field, f"is {given}; allowed: {detail.get('ctx', {}).get('expected')}"
    if kind in _WANTED:
        return field, _WANTED[kind] + (f", not {given}" if len(given) <= 40 else "")
    said = detail["msg"]
    return field, f"is {given[:40]}: {said[:1].lower()}{said[1:]}"

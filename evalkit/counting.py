"""Counts in sentences: `1 case`, `2 cases`, `0 replies`."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["all_of", "counted", "listed"]


def counted(n: int | str | None, one: str, many: str = "") -> str:
    """The number with its noun; `one` may be several words whose last one is counted.

    Args:
        n: How many.
        one: The noun for 1.
        many: The noun for any other number; by default with `s`, or `ies` for `y`.
    """
    if n in (1, "1"):
        return f"{n} {one}"
    regular = f"{one[:-1]}ies" if one.endswith("y") and one[-2] not in "aeiou" else f"{one}s"
    return f"{n} {many or regular}"


def all_of(n: int, one: str) -> str:
    """`all 24 replies`, and `1 reply` where there is one."""
    return f"{'' if n == 1 else 'all '}{counted(n, one)}"


def listed(names: Sequence[str], most: int, between: str = ", ") -> str:
    """`a, b, c and 4 more`: the first `most` of some names."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return between.join(names[:most]) + more

"""Who does the work of a run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from evalkit.errors import ConfigError
from evalkit.runs.workers import Work, run_here

__all__ = ["Engine", "engine_of"]

Engine = Callable[[Work], Awaitable[None]]


def engine_of(name: str = "local", scheduler: str = "") -> Engine:
    """The engine of that name."""
    if name != "local" or scheduler:
        raise ConfigError(f"engine {name!r} is not known: it is 'local'.")
    return run_here

"""The garbage collector held back while many small values are made that all stay."""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["rare_collections"]

_YOUNG = 50_000  # values more than there were, until the young ones are looked through
_lock = threading.Lock()
_usual = (700, 10, 10)
_inside = 0


@contextmanager
def rare_collections() -> Generator[None]:
    """Inside, the collector passes over what was there before and looks seldom at what is new.

    A run and its summary make values by the hundred thousand, hardly any of them in cycles: by
    default the collector would walk through the whole suite again and again to find nothing.
    """
    global _inside, _usual
    with _lock:
        _inside += 1
        if _inside == 1:
            _usual = gc.get_threshold()
            gc.freeze()
            gc.set_threshold(_YOUNG, *_usual[1:])
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                gc.set_threshold(*_usual)
                gc.unfreeze()

"""Progress of a script on stderr: a bar in a terminal, about ten lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress

from evalkit.records import Reply
from evalkit.runs.execute import Progress

__all__ = ["console_progress"]


@contextmanager
def console_progress(total: int, what: str = "running") -> Generator[Progress]:
    """A `Progress` that shows itself on stderr while it counts.

    Args:
        total: Observations to come.
        what: The word in front.
    """
    progress = _Bar(what) if sys.stderr.isatty() else _Lines(what)
    progress.total = total
    try:
        yield progress
    finally:
        progress.close()


class _Lines(Progress):
    def __init__(self, what: str) -> None:
        super().__init__()
        self.what, self.shown = what, 0

    def tick(self, reply: Reply | None) -> None:
        super().tick(reply)
        tenth = self.done * 10 // max(self.total, 1)
        if tenth > self.shown or self.done == self.total:
            self.shown = tenth
            with suppress(OSError):  # nobody reads: the work goes on
                print(f"{self.what}: {self.text}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Nothing stays open."""


class _Bar(_Lines):
    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.bar = None

    def tick(self, reply: Reply | None) -> None:
        if self.bar is None:
            from tqdm import tqdm

            self.bar = tqdm(total=self.total, desc=self.what, unit="reply", file=sys.stderr)
        Progress.tick(self, reply)
        self.bar.set_postfix_str(f"{self.cut_off} cut off, {self.errors} errors", refresh=False)
        self.bar.update()

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()

"""A run in the background of a notebook: started, watched, stopped at once, its outcome kept.

A cell that awaits a run cannot hear a stop button until it has ended, so a notebook starts a task
of its own and looks at this object. It knows nothing of any notebook.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from evalkit.errors import EvalkitError
from evalkit.runs.execute import Progress

__all__ = ["Job"]

Outcome = TypeVar("Outcome")


class Job(Generic[Outcome]):
    """At most one piece of work at a time; `state` is idle, running, done, stopped or failed."""

    def __init__(self) -> None:
        self.state = "idle"
        self.progress = Progress()
        self.outcome: Outcome | None = None
        self.message = ""
        self._task: asyncio.Task[None] | None = None

    def start(self, work: Callable[[Progress], Awaitable[Outcome]]) -> bool:
        """Start work in the running event loop; False when some is under way already."""
        if self.running:
            return False
        self.state, self.progress, self.message = "running", Progress(), ""
        self.progress.started = time.monotonic()
        self._task = asyncio.get_running_loop().create_task(self._run(work))
        return True

    def stop(self) -> None:
        """Cancel the work; what arrived is in the call store."""
        if self._task is not None and self.running:
            self._task.cancel()

    @property
    def running(self) -> bool:
        """True while work is under way."""
        return self._task is not None and not self._task.done()

    async def wait(self) -> None:
        """Wait for the end of the work, however it ends."""
        if self._task is not None:
            await asyncio.wait([self._task])

    @property
    def line(self) -> str:
        """What to show beside the buttons."""
        text = self.progress.text if self.progress.total else ""
        words = {
            "idle": "",
            "running": f"running · {text}",
            "done": f"done · {text}",
            "stopped": f"stopped · {text} · what arrived is kept, Run asks only for the rest",
            "failed": self.message,
        }
        return words[self.state]

    async def _run(self, work: Callable[[Progress], Awaitable[Outcome]]) -> None:
        try:
            self.outcome = await work(self.progress)
            self.state = "done"
        except asyncio.CancelledError:
            self.state = "stopped"
        except EvalkitError as error:
            self.state, self.message = "failed", str(error)
        except Exception as error:  # shown in place: the rest of the page stays usable
            self.state = "failed"
            self.message = f"{type(error).__name__}: {error}. This is a defect, not a verdict."

"""What the notebooks show alike: a sentence in place, a run's buttons, its clock, its progress.

Only notebooks import this module, it brings marimo. What has to live in a cell stays there: the
pairs of `mo.state`, and the name that a button or a clock is bound to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import marimo as mo

from evalkit.report import fragments
from evalkit.runs.job import Job

__all__ = ["clock", "ended", "hidden", "html", "line", "number", "run_and_stop", "sentence"]


def html(*parts: str, style: str = "") -> mo.Html:
    """Fragments that `evalkit.report` made; they are escaped there."""
    return mo.Html(fragments.STYLE + style + "".join(parts))


def sentence(text: str, kind: Literal["warn", "info"] = "warn") -> mo.Html:
    """One sentence in place; the rest of the page stays usable."""
    return mo.callout(html(fragments.note(text)), kind=kind)


def number(label: str, value: int, *bounds: int) -> mo.ui.number:
    """A number between bounds, heard when it is typed to its end."""
    return mo.ui.number(*bounds, value=value, label=label, debounce=True, full_width=True)


def run_and_stop(
    job: Job[Any], label: str, run: Callable[[Any], None], *, ready: bool = True
) -> list[mo.ui.button]:
    """The green button that says what it will cost, and the one that stops at once."""
    busy = job.running
    return [
        mo.ui.button(
            label="Running" if busy else label,
            on_click=run,
            kind="success",
            disabled=busy or not ready,
        ),
        mo.ui.button(label="Stop", on_click=lambda _: job.stop(), kind="danger", disabled=not busy),
    ]


def clock(job: Job[Any]) -> mo.ui.refresh | None:
    """What ticks while a run is under way."""
    return mo.ui.refresh(default_interval="1s") if job.running else None


def hidden(ticking: mo.ui.refresh | None) -> mo.Html | None:
    """A clock ticks only where it is on the page; nobody needs to see it."""
    return None if ticking is None else mo.Html(f'<div style="display:none">{ticking}</div>')


def ended(job: Job[Any], ticking: mo.ui.refresh | None) -> bool:
    """True once a run that a clock was ticking for is over."""
    return ticking is not None and not job.running


def line(job: Job[Any]) -> mo.Html:
    """How far the run is, or why it failed."""
    if job.state == "failed":
        return sentence(job.line)
    return html(fragments.progress_html(job.progress, job.line))

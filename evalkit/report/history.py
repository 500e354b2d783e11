"""The history of a metric: a small chart with its band, a table of steps, the diff behind one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalkit.report.charts import COLOURS, quiet
from evalkit.report.safe import block_html, defang, esc, visible_controls
from evalkit.report.tables import text_table
from evalkit.report.worddiff import unified_html
from evalkit.runs.git import file_at
from evalkit.runs.history import Point, Series

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

__all__ = ["history_chart", "history_frame", "history_text", "prompts_of", "step_html"]

SHAPES = {
    **{"first": "circle", "none": "circle", "prompt": "diamond", "code": "square"},
    **{"model": "triangle-up", "cases": "cross", "judge": "triangle-right"},
    **{"several": "triangle-down", "drift": "triangle-left"},
}
WIDTH, HEIGHT = 420, 120  # of one series


def history_chart(series: Series) -> alt.LayerChart:
    """Score over time with its interval band; each step's shape and colour name its cause."""
    import altair as alt

    values = [_mark(number, point) for number, point in enumerate(series.points)]
    base = alt.Chart(alt.Data(values=values)).encode(
        x=alt.X(
            "at:Q",
            title=None,
            scale=alt.Scale(padding=30),
            axis=alt.Axis(labels=False, ticks=False, grid=False),
        )
    )
    band = base.mark_area(opacity=0.18, color=COLOURS["now"]).encode(y="low:Q", y2="high:Q")
    line = base.mark_line(color=COLOURS["now"], strokeWidth=1).encode(
        y=alt.Y("score:Q", title=None, scale=alt.Scale(zero=False))
    )
    colour = alt.condition(
        alt.datum.cause == "drift", alt.value(COLOURS["worse"]), alt.value(COLOURS["now"])
    )
    scale = alt.Scale(domain=list(SHAPES), range=list(SHAPES.values()))
    dots = base.mark_point(size=70, filled=True, opacity=1).encode(
        y="score:Q",
        shape=alt.Shape("cause:N", scale=scale, legend=None),
        color=colour,
        tooltip=["date:N", "score:Q", "low:Q", "high:Q", "n:Q", "cause:N", "commit:N", "prompt:N"],
    )
    upright = len(series.points) > 4  # many steps: their words stand below them, each in its line
    words = base.mark_text(
        fontSize=11,
        dy=0 if upright else 14,
        dx=-8 if upright else 0,
        angle=270 if upright else 0,
        align="right" if upright else "center",
        limit=110,
    ).encode(y=alt.value(HEIGHT), text="word:N", color=colour)
    floor = base.mark_line(color=COLOURS["floor"], strokeDash=[4, 3]).encode(y="floor:Q")
    title = alt.Title(visible_controls(series.title), limit=WIDTH)
    drawn: Any = alt.layer(band, floor, line, words, dots)
    return quiet(drawn.properties(width=WIDTH, height=HEIGHT, title=title))


def history_frame(series: list[Series]) -> pd.DataFrame:
    """Every step of every series as a table, newest first; `row` is where it stands."""
    import pandas as pd

    steps = [(n, i, one, p) for n, one in enumerate(series) for i, p in enumerate(one.points)]
    rows = [
        {
            "row": f"{number}.{index}",
            "date": defang(point.entry.date[:16].replace("T", " ")),
            "suite": defang(one.name),
            "metric": defang(one.metric),
            "score": point.entry.score,
            "interval": _interval(point),
            "n": point.entry.n,
            "verdict": defang(point.entry.passed),
            "what changed": point.cause,
            "commit": defang(point.entry.git_sha),
            "prompt": defang(point.entry.prompt_hash),
            "run": defang(point.entry.run_id),
        }
        for number, index, one, point in sorted(steps, key=lambda s: s[3].entry.date, reverse=True)
    ]
    return pd.DataFrame(rows)


def history_text(series: list[Series]) -> str:
    """The steps for a terminal."""
    head = ("date", "suite", "metric", "score (interval)", "n", "verdict", "what changed", "commit")
    rows = [
        (
            point.entry.date[:16],
            one.name,
            one.metric,
            f"{point.entry.score:.3f} {_interval(point)}",
            point.entry.n,
            point.entry.passed,
            point.cause,
            point.entry.git_sha[:7],
        )
        for one in series
        for point in one.points
    ]
    return text_table(head, rows) if rows else "the ledger holds nothing yet: a live run fills it."


def step_html(series: Series, index: int, prompts: Path | None = None) -> str:
    """One step in full: what changed, both commits, and the prompt's diff between them.

    Args:
        series: The series.
        index: Which point.
        prompts: Folder of the suite's prompts, to show how a prompt changed between two commits.
    """
    point = series.points[index]
    entry = point.entry
    lines = [f"{series.title}: {entry.score:.3f} {_interval(point)}, n = {entry.n}"]
    lines += [f"run {entry.run_id or 'not kept'} · model {entry.model} · {entry.date}"]
    if point.first:
        return block_html("\n".join(lines), "the first entry")
    before = series.points[index - 1].entry
    lines += [f"changed: {point.cause}", f"commit {before.git_sha} → {entry.git_sha}"]
    lines += [f"prompt {before.prompt_hash} → {entry.prompt_hash}"]
    if entry.git_sha != before.git_sha:
        lines.append(f"git diff {before.git_sha[:12]} {entry.git_sha[:12]}")
    html = block_html("\n".join(lines), "step")
    for path in sorted(prompts.glob("*.md")) if prompts and "prompt" in point.causes else ():
        old, new = (file_at(path, e.git_sha[:12]) or "" for e in (before, entry))
        if old != new:
            html += f'<div class="ek-title">{esc(path.name)}</div>{unified_html(old, new)}'
    return html


def prompts_of(series: Series, golden: Path = Path("golden")) -> Path | None:
    """Where the prompts of a series' suite lie, or None when it is no suite here."""
    found = (path for path in golden.glob("*/prompts") if path.parent.name == series.name)
    return next(found, None)


def _mark(number: int, point: Point) -> dict[str, Any]:
    entry = point.entry
    cause = point.cause if len(point.causes) < 2 else "several"
    numbers = {"score": entry.score, "low": entry.ci_low, "high": entry.ci_high}
    return {
        "at": number,
        "date": visible_controls(entry.date),
        **{name: None if value != value else value for name, value in numbers.items()},
        "floor": None if entry.threshold != entry.threshold else entry.threshold,
        "n": entry.n,
        "cause": cause,
        "word": "" if point.cause in ("first", "none") else _brief(point),
        "commit": visible_controls(entry.git_sha[:12]),
        "prompt": visible_controls(entry.prompt_hash),
    }


def _brief(point: Point) -> str:
    """The cause in as few letters as a chart has room for."""
    return " + ".join(point.causes) or point.cause


def _interval(point: Point) -> str:
    low, high = point.entry.ci_low, point.entry.ci_high
    return "(no interval)" if low != low or high != high else f"({low:.3f} to {high:.3f})"

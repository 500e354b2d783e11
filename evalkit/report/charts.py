"""Charts: few, aggregated before they are drawn, readable without colour, and safe with any text.

The only room that imports altair. No field is called `image`, nothing uses `href`, tooltips hold
ids and numbers: what a chart shows of a model's text would otherwise be fetched or run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evalkit.report.safe import visible_controls
from evalkit.runs.summary import Summary
from evalkit.stats.result import Interval

if TYPE_CHECKING:
    import altair as alt

__all__ = [
    "COLOURS",
    "confusion",
    "deltas",
    "on_lines",
    "quiet",
    "rates",
    "rounded",
    "spans",
    "svg",
    "warm_up",
]

# Okabe and Ito (2008): distinguishable with every common colour blindness.
COLOURS = {
    "now": "#0072B2",
    "baseline": "#D55E00",
    "floor": "#555555",
    "better": "#009E73",
    "worse": "#D55E00",
    "neutral": "#777777",
}


def rates(summary: Summary, baseline: Summary | None = None, *, width: int = 520) -> alt.Chart:
    """Rate ●──┤ interval per criterion and stratum, against floor | and baseline ◇."""
    import altair as alt

    frame = _rate_frame(summary, baseline)
    order = [row["label"] for row in frame]
    axis = alt.Axis(labelLimit=260, tickSize=0, labelPadding=9)  # room for a dot at 0
    y = alt.Y("label:N", sort=order, title=None, axis=axis)
    x = alt.X(
        "estimate:Q",
        title="rate, 95 % interval",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1.0]),
    )
    base = alt.Chart(alt.Data(values=frame)).encode(y=y)
    bars = base.mark_rule(strokeWidth=2, color=COLOURS["now"]).encode(
        x=alt.X("ci_low:Q"), x2="ci_high:Q"
    )
    dots = base.mark_point(filled=True, size=70, opacity=1, color=COLOURS["now"]).encode(
        x=x, tooltip=["label:N", "estimate:Q", "ci_low:Q", "ci_high:Q", "n:Q"]
    )
    floors = base.mark_tick(thickness=3, size=16, color=COLOURS["floor"]).encode(x="floor:Q")
    layers = [bars, floors]
    if baseline is not None:  # below the dot, and larger: where nothing moved, both are seen
        diamond = base.mark_point(shape="diamond", size=170, color=COLOURS["baseline"])
        layers.append(diamond.encode(x="baseline:Q"))
    layers.append(dots)
    return _listed(alt.layer(*layers), frame, width)


def deltas(changes: Mapping[str, Interval]) -> alt.LayerChart:
    """Change against the baseline per criterion, with its interval around zero."""
    import altair as alt

    frame = [
        {
            "label": visible_controls(name),
            "change": rounded(change.estimate),
            "low": rounded(change.ci_low),
            "high": rounded(change.ci_high),
            "n": change.n_cases,
        }
        for name, change in changes.items()
    ]
    x = alt.X("change:Q", title="change against the baseline", axis=alt.Axis(format="+%"))
    return _listed(on_lines(frame, x, at=0), frame)


def confusion(
    table: Sequence[Sequence[int]],
    labels: Sequence[object],
    *,
    titles: tuple[str, str] = ("people", "judge"),
    width: int = 260,
) -> alt.Chart:
    """Counts of one side's labels (down) against the other's (across): a heat map with numbers."""
    import altair as alt

    names = [visible_controls(label) for label in labels]
    cells = [
        {"human": names[i], "judge": names[j], "count": int(n)}
        for i, row in enumerate(table)
        for j, n in enumerate(row)
    ]
    base = alt.Chart(alt.Data(values=cells)).encode(
        x=alt.X("judge:O", sort=names, title=titles[1], axis=alt.Axis(labelAngle=0, grid=False)),
        y=alt.Y("human:O", sort=names, title=titles[0], axis=alt.Axis(grid=False)),
    )
    most = max((int(n) for row in table for n in row), default=0)
    heat = base.mark_rect().encode(
        color=alt.Color("count:Q", scale=alt.Scale(scheme="blues"), legend=None)
    )
    text = base.mark_text().encode(
        text="count:Q",
        color=alt.condition(f"datum.count > {most / 2}", alt.value("white"), alt.value("#222")),
    )
    return _styled(alt.layer(heat, text), width, width)


def spans(values: Mapping[str, tuple[float, float, float]], title: str) -> alt.LayerChart:
    """Low, middle and high of each group, as a dot on a line from zero."""
    import altair as alt

    frame = [
        {"label": visible_controls(name), "low": low, "middle": middle, "high": high}
        for name, (low, middle, high) in values.items()
    ]
    x = alt.X("middle:Q", title=title, scale=alt.Scale(zero=True))
    return _listed(on_lines(frame, x), frame)


def on_lines(
    frame: Sequence[Mapping[str, Any]], x: alt.X, *, at: float | None = None, room: int = 260
) -> Any:
    """Each row's `x` as a dot on the line from its `low` to its `high`.

    Args:
        frame: Rows of `label`, `low`, `high` and numbers for the tooltip.
        x: Which of them is the dot.
        at: Where a dashed line goes down the whole chart.
        room: The longest label, in pixels.
    """
    import altair as alt

    base = alt.Chart(alt.Data(values=frame)).encode(
        y=alt.Y("label:N", sort=None, title=None, axis=alt.Axis(labelLimit=room, tickSize=0))
    )
    bars = base.mark_rule(strokeWidth=2, color=COLOURS["now"]).encode(x="low:Q", x2="high:Q")
    dots = base.mark_point(filled=True, size=70, opacity=1, color=COLOURS["now"]).encode(
        x=x, tooltip=[f"{name}:{'N' if name == 'label' else 'Q'}" for name in next(iter(frame), ())]
    )
    if at is None:
        return alt.layer(bars, dots)
    rule = alt.Chart(alt.Data(values=[{"at": at}])).encode(x="at:Q")
    return alt.layer(rule.mark_rule(color=COLOURS["neutral"], strokeDash=[4, 3]), bars, dots)


def quiet(chart: Any) -> Any:
    """The chart without the menu that would send its data to an editor on the web."""
    return chart.properties(usermeta={"embedOptions": {"actions": False}})


def svg(chart: alt.Chart | alt.LayerChart) -> str:
    """The chart as an SVG text, drawn without a browser and without the network."""
    import vl_convert

    drawn = chart.properties(background="transparent").to_dict(validate=False)
    return vl_convert.vegalite_to_svg(drawn)


def warm_up() -> None:
    """Start the renderer, which takes a second the first time."""
    import vl_convert

    mark = {"data": {"values": [{}]}, "mark": "point"}
    vl_convert.vegalite_to_svg(mark)


def _rate_frame(summary: Summary, baseline: Summary | None) -> list[dict[str, Any]]:
    before = {c.name: c for c in baseline.criteria} if baseline else {}
    frame: list[dict[str, Any]] = []
    for criterion in summary.criteria:
        if criterion.score_range != (0.0, 1.0):
            low, high = criterion.score_range
        else:
            low, high = 0.0, 1.0
        old = before.get(criterion.name)
        parts: list[tuple[str, Interval, Interval | None]] = [
            (criterion.name, criterion.rate, old.rate if old else None)
        ]
        if len(criterion.by_stratum) > 1:
            parts += [
                (f"    {criterion.name} · {name}", rate, old.by_stratum.get(name) if old else None)
                for name, rate in criterion.by_stratum.items()
            ]
        floor = criterion.rule.get("min")
        for label, rate, was in parts:
            unit = [
                (value - low) / (high - low) for value in (rate.estimate, rate.ci_low, rate.ci_high)
            ]
            frame.append(
                {
                    "label": visible_controls(label),
                    "estimate": rounded(unit[0]),
                    "ci_low": rounded(unit[1]),
                    "ci_high": rounded(unit[2]),
                    "n": rate.n_cases,
                    "floor": None if floor is None else (float(floor) - low) / (high - low),
                    "baseline": None
                    if was is None
                    else rounded((was.estimate - low) / (high - low)),
                }
            )
    return frame


def _listed(chart: Any, frame: Sequence[Mapping[str, Any]], width: int = 520) -> Any:
    return _styled(chart, width, 22 * len(frame) + 10, (str(row["label"]) for row in frame))


def _styled(chart: Any, width: int, height: int, labels: Iterable[str] = ()) -> Any:
    # A reader's own fonts may be wider than the ones the labels were measured with.
    room = round(0.9 * min(40, max(map(len, labels), default=0)))
    padding = {"left": 5 + room, "right": 12, "top": 5, "bottom": 5}
    return quiet(
        chart.properties(width=width, height=height, padding=padding)
        .configure_view(stroke=None)
        .configure_axis(grid=True, gridColor="#e5e5e5", domain=False, labelFontSize=12)
    )


def rounded(value: float) -> float | None:
    """A number as a chart takes it; None for NaN, which JSON has not."""
    return None if math.isnan(value) else round(value, 6)

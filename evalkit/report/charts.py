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

__all__ = ["COLOURS", "confusion", "deltas", "quiet", "rates", "spans", "svg", "warm_up"]

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
    return _styled(
        alt.layer(*layers), width, 22 * len(frame) + 10, (str(row["label"]) for row in frame)
    )


def deltas(changes: Mapping[str, Interval], *, width: int = 520) -> alt.Chart:
    """Change against the baseline per criterion, with its interval around zero."""
    import altair as alt

    frame = [
        {
            "label": visible_controls(name),
            "change": _number(change.estimate),
            "low": _number(change.ci_low),
            "high": _number(change.ci_high),
            "n": change.n_cases,
        }
        for name, change in changes.items()
    ]
    base = alt.Chart(alt.Data(values=frame)).encode(
        y=alt.Y("label:N", sort=None, title=None, axis=alt.Axis(labelLimit=260, tickSize=0))
    )
    x = alt.X("change:Q", title="change against the baseline", axis=alt.Axis(format="+%"))
    zero = (
        alt.Chart(alt.Data(values=[{"zero": 0}]))
        .mark_rule(color=COLOURS["neutral"], strokeDash=[4, 3])
        .encode(x="zero:Q")
    )
    bars = base.mark_rule(strokeWidth=2, color=COLOURS["now"]).encode(x="low:Q", x2="high:Q")
    dots = base.mark_point(filled=True, size=70, opacity=1, color=COLOURS["now"]).encode(
        x=x, tooltip=["label:N", "change:Q", "low:Q", "high:Q", "n:Q"]
    )
    return _styled(
        alt.layer(zero, bars, dots),
        width,
        22 * len(frame) + 10,
        (str(row["label"]) for row in frame),
    )


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


def spans(
    values: Mapping[str, tuple[float, float, float]], title: str, *, width: int = 520
) -> alt.Chart:
    """Low, middle and high of each group, as a dot on a line from zero."""
    import altair as alt

    frame = [
        {"label": visible_controls(name), "low": low, "middle": middle, "high": high}
        for name, (low, middle, high) in values.items()
    ]
    base = alt.Chart(alt.Data(values=frame)).encode(
        y=alt.Y("label:N", sort=None, title=None, axis=alt.Axis(labelLimit=260, tickSize=0))
    )
    x = alt.X("middle:Q", title=title, scale=alt.Scale(zero=True))
    lines = base.mark_rule(strokeWidth=2, color=COLOURS["now"]).encode(x="low:Q", x2="high:Q")
    dots = base.mark_point(filled=True, size=70, opacity=1, color=COLOURS["now"]).encode(
        x=x, tooltip=["label:N", "low:Q", "middle:Q", "high:Q"]
    )
    return _styled(
        alt.layer(lines, dots), width, 22 * len(frame) + 10, (str(row["label"]) for row in frame)
    )


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
                    "estimate": _number(unit[0]),
                    "ci_low": _number(unit[1]),
                    "ci_high": _number(unit[2]),
                    "n": rate.n_cases,
                    "floor": None if floor is None else (float(floor) - low) / (high - low),
                    "baseline": None
                    if was is None
                    else _number((was.estimate - low) / (high - low)),
                }
            )
    return frame


def _styled(chart: Any, width: int, height: int, labels: Iterable[str] = ()) -> Any:
    # A reader's own fonts may be wider than the ones the labels were measured with.
    room = round(0.9 * min(40, max(map(len, labels), default=0)))
    padding = {"left": 5 + room, "right": 12, "top": 5, "bottom": 5}
    return quiet(
        chart.properties(width=width, height=height, padding=padding)
        .configure_view(stroke=None)
        .configure_axis(grid=True, gridColor="#e5e5e5", domain=False, labelFontSize=12)
    )


def _number(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 6)

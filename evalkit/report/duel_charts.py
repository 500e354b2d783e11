"""Charts of a comparison: preference by stratum, length against preference, flips by case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evalkit.report.charts import COLOURS, on_lines, quiet, rounded
from evalkit.report.safe import visible_controls
from evalkit.runs.duel import Duel
from evalkit.runs.duel_standing import Standing
from evalkit.stats.result import Interval

if TYPE_CHECKING:
    import altair as alt

__all__ = ["flips_by_case", "length_and_preference", "picture", "preference_by_stratum"]

MOST = 200  # points of one row that a reader can still tell apart

# The shape says it too: no outcome is told by its colour alone.
OUTCOMES = {
    "A": ("triangle-up", COLOURS["now"]),
    "B": ("triangle-down", COLOURS["baseline"]),
    "tie": ("circle", "#999999"),
    "flip": ("diamond", "#CC79A7"),
    "unread": ("cross", "#555555"),
}


def picture(duel: Duel, standing: Standing, *, blind: bool = False) -> alt.VConcatChart:
    """What there is to see of one judge; with `blind` nothing that speaks of single cases."""
    import altair as alt

    rows = [preference_by_stratum(standing)]
    if not blind:
        top = alt.hconcat(rows[0], length_and_preference(standing), spacing=30)
        rows = [top, flips_by_case(duel, standing)]
    return quiet(
        alt.vconcat(*rows, spacing=25)
        .configure_view(stroke=None)
        .configure_axis(grid=True, gridColor="#e5e5e5", domain=False, labelFontSize=12)
        .configure_title(anchor="start", fontSize=14, fontWeight=600, offset=8)
    )


def preference_by_stratum(standing: Standing) -> alt.LayerChart:
    """How often A is preferred, in all and per stratum, with intervals around one half."""
    import altair as alt

    parts = [("all", standing.preference)]
    if len(standing.by_stratum) > 1:
        parts += list(standing.by_stratum.items())
    frame = [_rate(name, rate) for name, rate in parts]
    x = alt.X(
        "estimate:Q",
        title="A preferred, 95 % interval",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(format="%", values=[0, 0.25, 0.5, 0.75, 1.0]),
    )
    drawn = on_lines(frame, x, at=0.5, room=200)
    return _sized(drawn, "Preference by stratum", 230, max(130, 24 * len(frame)))


def length_and_preference(standing: Standing) -> alt.Chart:
    """How much longer A is, against who won: a judge that pays for length fills a diagonal."""
    import altair as alt

    frame = [
        {
            "case": visible_controls(v.case_id),
            "gap": v.lengths[0] - v.lengths[1],
            "winner": _outcome(v.winner, v.reason),
        }
        for v in standing.verdicts
    ]
    chart = (
        alt.Chart(alt.Data(values=frame))
        .mark_point(filled=True, size=80, opacity=0.75)
        .encode(
            x=alt.X("gap:Q", title="A longer than B by … characters"),
            y=_by_outcome("winner:N"),
            color=_scale("winner:N", 1),
            shape=_scale("winner:N", 0),
            tooltip=["case:N", "gap:Q", "winner:N"],
        )
    )
    return _sized(chart, "Length against preference", 220, 130)


def flips_by_case(duel: Duel, standing: Standing) -> alt.Chart:
    """Each case in the order of the suite: who won, or that the winner changed with the order."""
    import altair as alt

    many = duel.plan.repeats > 1
    frame = [
        {
            "case": visible_controls(f"{v.case_id}#{v.repeat}" if many else v.case_id),
            "outcome": _outcome(v.winner, v.reason),
        }
        for v in standing.verdicts[:MOST]
    ]
    order = [row["case"] for row in frame]
    chart = (
        alt.Chart(alt.Data(values=frame))
        .mark_point(filled=True, size=110, opacity=1)
        .encode(
            x=alt.X(
                "case:N",
                sort=order,
                title=None,
                axis=alt.Axis(labelAngle=-45, labelOverlap=len(frame) > 24, labelLimit=120),
            ),
            y=_by_outcome("outcome:N"),
            color=_scale("outcome:N", 1),
            shape=_scale("outcome:N", 0),
            tooltip=["case:N", "outcome:N"],
        )
    )
    width = min(560, max(460, 18 * len(frame)))
    more = f", the first {MOST}" if len(standing.verdicts) > MOST else ""
    return _sized(chart, f"Flips by case{more}", width, 130)


def _outcome(winner: str | None, reason: str) -> str:
    if winner is None:
        return "unread"
    if reason == "tie_flip":
        return "flip"
    return {"a": "A", "b": "B"}.get(winner, "tie")


def _rate(name: str, rate: Interval) -> dict[str, Any]:
    return {
        "label": f"{visible_controls(name)} (n = {rate.n_cases})",
        "estimate": rounded(rate.estimate),
        "low": rounded(rate.ci_low),
        "high": rounded(rate.ci_high),
        "n": rate.n_cases,
    }


def _by_outcome(field: str) -> Any:
    import altair as alt

    names = list(OUTCOMES)
    return alt.Y(field, sort=names, title=None, scale=alt.Scale(domain=names))


def _scale(field: str, part: int) -> Any:
    import altair as alt

    scale = alt.Scale(domain=list(OUTCOMES), range=[look[part] for look in OUTCOMES.values()])
    kind = alt.Color if part else alt.Shape
    return kind(field, scale=scale, legend=None)


def _sized(chart: Any, title: str, width: int, height: int) -> Any:
    return chart.properties(title=title, width=width, height=height)

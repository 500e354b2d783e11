"""Pictures of an admission: where judge and people agree, and what a rising map would mend."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from evalkit.report.charts import COLOURS, confusion, quiet
from evalkit.report.safe import visible_controls
from evalkit.stats.recalibration import IsotonicMap
from evalkit.validity.admission import Admitted

if TYPE_CHECKING:
    import altair as alt

__all__ = ["confusion_of", "recalibration_curve", "recalibration_words", "scatter", "whose"]

WIDTH = 250  # of each picture, and its height


def whose(line: Admitted) -> str:
    """Whose labels the judge is held against: people's, or an anchor's that no person labelled."""
    return "people" if line.anchor.provenance.may_grant else "anchor"


def confusion_of(line: Admitted) -> alt.Chart:
    """The anchor's labels down, the judge's across."""
    if line.binary is not None:
        found = line.binary.agreement
        counts = [[found.tp, found.fn], [found.fp, found.tn]]
        return confusion(counts, ["yes", "no"], titles=(whose(line), "judge"), width=WIDTH)
    agreement = line.agreement
    table = agreement.confusion if agreement else ()
    counts = [[int(n) for n in row] for row in table]
    names = list(line.anchor.categories)
    return confusion(counts, names, titles=(whose(line), "judge"), width=WIDTH)


def scatter(line: Admitted) -> alt.Chart:
    """One dot an item, the anchor across, the judge up; jittered, so that equal ones show."""
    import altair as alt

    places = {label: float(n) for n, label in enumerate(line.anchor.categories)}
    if line.scale is not None:
        places = {label: float(label) for label in line.anchor.categories}
    dots = [
        {
            "id": visible_controls(score.id),
            "people": _place(score.human, places) + _jitter(score.id, "people"),
            "judge": _place(score.judge, places) + _jitter(score.id, "judge"),
        }
        for score in line.scores
        if score.judge is not None
    ]
    ends = [min(places.values()) - 0.5, max(places.values()) + 0.5]
    words = {at: label for label, at in places.items()}
    names = " : ".join(f"datum.value == {at} ? {json.dumps(w)}" for at, w in words.items())
    axis: dict[str, Any] = {"values": sorted(words), "labelExpr": f"{names} : ''"}
    diagonal = (
        alt.Chart(alt.Data(values=[{"x": end, "y": end} for end in ends]))
        .mark_line(color=COLOURS["neutral"], strokeDash=[4, 3], strokeWidth=1)
        .encode(x=alt.X("x:Q", title=whose(line)), y=alt.Y("y:Q", title="judge"))
    )
    points = (
        alt.Chart(alt.Data(values=dots))
        .mark_point(filled=True, size=45, opacity=0.55, color=COLOURS["now"])
        .encode(
            x=alt.X(
                "people:Q", title=whose(line), scale=alt.Scale(domain=ends), axis=alt.Axis(**axis)
            ),
            y=alt.Y("judge:Q", title="judge", scale=alt.Scale(domain=ends), axis=alt.Axis(**axis)),
            tooltip=["id:N"],
        )
    )
    return _framed(alt.layer(diagonal, points))


def recalibration_curve(line: Admitted) -> alt.Chart | None:
    """The rising map from the judge's scores to people's: on all items, and without each fold."""
    import altair as alt

    found = line.recalibration
    if found is None or found.map is None:
        return None
    whole = alt.Chart(alt.Data(values=_knots([found.map], "all items")))
    folds = alt.Chart(alt.Data(values=_knots(found.fold_maps, "without fold")))
    ends = [float(line.anchor.categories[0]), float(line.anchor.categories[-1])]
    y = alt.Y("people:Q", title=f"{whose(line)}, fitted", scale=alt.Scale(domain=ends))
    x = alt.X("judge:Q", title="judge's score", scale=alt.Scale(domain=ends))
    thin = folds.mark_line(strokeWidth=1, opacity=0.6, color=COLOURS["baseline"]).encode(
        x=x, y=y, detail="map:N"
    )
    thick = whole.mark_line(strokeWidth=3, color=COLOURS["now"], point=True).encode(x=x, y=y)
    same = (
        alt.Chart(alt.Data(values=[{"judge": end, "people": end} for end in ends]))
        .mark_line(color=COLOURS["neutral"], strokeDash=[4, 3], strokeWidth=1)
        .encode(x=x, y=y)
    )
    return _framed(alt.layer(same, thin, thick))


def recalibration_words(line: Admitted) -> str:
    """In-sample and held-out figures side by side; the held-out one decides."""
    found = line.recalibration
    if found is None:
        return "A yes/no judge has no scale to recalibrate."
    if found.map is None:
        why = ", ".join(found.reasons).replace("_", " ")
        return f"Not recalibrated: {why}."
    held = found.qwk_held_out
    judged = "it reaches the bar" if found.credible else "it does not reach the bar"
    if found.credible and not line.anchor.provenance.may_grant:
        judged += ", which licenses nothing while no person has labelled the anchor"
    return (
        f"QWK raw {found.qwk_raw.estimate:.2f} · in sample {found.qwk_in_sample:.2f} · held out "
        f"{held.estimate:.2f} ({held.ci_low:.2f} to {held.ci_high:.2f}) · optimism "
        f"{found.optimism:+.2f}. The held-out figure decides: {judged}."
    )


def _knots(maps: Sequence[IsotonicMap], name: str) -> list[dict[str, Any]]:
    return [
        {"map": f"{name} {n}", "judge": x, "people": y}
        for n, one in enumerate(maps)
        for x, y in zip(one.knots_x, one.knots_y, strict=True)
    ]


def _place(label: str | None, places: dict[str, float]) -> float:
    return places[label] if label in places else float(label or "nan")


def _jitter(item: str, side: str) -> float:
    """A shift in -0.28..0.28 that is the same at every look."""
    return (int(sha256(f"{side}:{item}".encode()).hexdigest()[:8], 16) / 0xFFFFFFFF - 0.5) * 0.56


def _framed(chart: Any) -> Any:
    return quiet(
        chart.properties(width=WIDTH, height=WIDTH)
        .configure_view(stroke=None)
        .configure_axis(grid=True, gridColor="#e5e5e5", domain=False, labelFontSize=12)
    )

"""The page's pictures: drawn once as SVG, embedded as data, each beside its numbers as text."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from evalkit.report import charts
from evalkit.report.page_overview import Criterion
from evalkit.report.tables import passed_share, share_text
from evalkit.runs.comparison import RunComparison
from evalkit.runs.run import Run
from evalkit.runs.summary import Summary
from evalkit.stats.wording import change_text
from evalkit.validity.licence import Licence

__all__ = ["Figure", "figures"]

STATES = ("pass", "some repeats", "fail")


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture, what it shows in a sentence, and its numbers."""

    title: str
    alt: str
    src: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    wide: bool = True


def figures(
    run: Run,
    summary: Summary,
    ruled: Sequence[Criterion],
    *,
    baseline: Run | None,
    before: Summary | None,
    comparison: RunComparison | None,
    licences: Sequence[Licence] = (),
) -> list[Figure]:
    """Rates with intervals, changes, cases then and now, judges against people, and the cost."""
    found = [_rates(summary, before, ruled)] if summary.criteria else []
    if comparison is not None and comparison.changes:
        found.append(_deltas(summary, comparison))
    if baseline is not None:
        found += _then_and_now(run, baseline)
    for licence in licences:
        found += _against_people(licence)
    return found + _cost(run)


def _rates(summary: Summary, before: Summary | None, ruled: Sequence[Criterion]) -> Figure:
    rows = [
        row
        for c in ruled
        for row in [
            (c.name, c.rate, c.floor.partition(":")[0], c.before),
            *((f"· {name}", rate, "", was) for name, rate, was in c.strata),
        ]
    ]
    return _figure(
        "Rates, and by stratum",
        "Each criterion's rate as a dot with its 95 % interval, the floor as a bar"
        + (" and the baseline as a diamond." if before else "."),
        charts.rates(summary, before),
        ("criterion", "rate (95 % interval)", "floor", "baseline"),
        rows,
    )


def _deltas(summary: Summary, comparison: RunComparison) -> Figure:
    spans = {c.name: c.score_range[1] - c.score_range[0] for c in summary.criteria}
    changes = {name: comparison.changes[name] for name in spans if name in comparison.changes}
    rows = [
        (
            name,
            change_text(found.interval.estimate, spans[name]),
            f"{change_text(found.interval.ci_low, spans[name])} to "
            f"{change_text(found.interval.ci_high, spans[name])}".replace(" points", ""),
            str(found.interval.n_cases),
        )
        for name, found in changes.items()
        if found.interval.defined
    ]
    return _figure(
        "Change against the baseline",
        "Each criterion's mean change, case by case, with its 95 % interval around zero.",
        charts.deltas({name: found.interval for name, found in changes.items()}),
        ("criterion", "change", "95 % interval", "cases in both"),
        rows,
    )


def _then_and_now(run: Run, baseline: Run) -> list[Figure]:
    before = {case: _state(passed_share(rows)) for case, rows in baseline.by_case().items()}
    counts = [[0] * len(STATES) for _ in STATES]
    for case, rows in run.by_case().items():
        now, was = _state(passed_share(rows)), before.get(case, "")
        if now in STATES and was in STATES:
            counts[STATES.index(was)][STATES.index(now)] += 1
    if not any(map(any, counts)):
        return []
    table = charts.confusion(counts, STATES, titles=("baseline", "now"))
    return [
        _figure(
            "Cases then and now",
            "How many cases passed every criterion in the baseline (down) and now (across).",
            table,
            ("baseline ↓ now →", *STATES),
            [(was, *map(str, numbers)) for was, numbers in zip(STATES, counts, strict=True)],
            wide=False,
        )
    ]


def _state(share: float | None) -> str:
    word = share_text(share)
    return "some repeats" if word.endswith("% pass") else word


def _against_people(licence: Licence) -> list[Figure]:
    found: list[Figure] = []
    for evidence in licence.evidence:
        counts = evidence.figures.get("counts")
        if not isinstance(counts, list) or len(counts) != 4:
            continue
        tp, fn, fp, tn = counts
        labels = ("pass", "fail")
        found.append(
            _figure(
                f"{licence.judge.name} against people",
                f"{evidence.what} on anchor {evidence.anchor.name}: people's labels down, the "
                "judge's verdicts across.",
                charts.confusion([[tp, fn], [fp, tn]], labels),
                ("people ↓ judge →", *labels),
                [("pass", str(tp), str(fn)), ("fail", str(fp), str(tn))],
                wide=False,
            )
        )
    return found


def _cost(run: Run) -> list[Figure]:
    """Seconds and completion tokens of a reply, by stratum: median with the middle 80 %."""
    seconds: dict[str, list[float]] = {}
    tokens: dict[str, list[float]] = {}
    for row in run:
        reply = row.reply
        if reply is None:
            continue
        if reply.latency_s is not None:
            seconds.setdefault(row.stratum, []).append(reply.latency_s)
        if reply.usage and reply.usage.completion_tokens is not None:
            tokens.setdefault(row.stratum, []).append(float(reply.usage.completion_tokens))
    found: list[Figure] = []
    for what, values in (("seconds a reply", seconds), ("completion tokens a reply", tokens)):
        if not values:
            continue
        spans = {name: _span(numbers) for name, numbers in values.items()}
        found.append(
            _figure(
                what.capitalize(),
                f"The median of {what} in each stratum, and where the middle 80 % lie.",
                charts.spans(spans, what),
                ("stratum", "median", "middle 80 %", "replies"),
                [
                    (name, f"{mid:.4g}", f"{low:.4g} to {high:.4g}", str(len(values[name])))
                    for name, (low, mid, high) in spans.items()
                ],
            )
        )
    return found


def _span(numbers: Iterable[float]) -> tuple[float, float, float]:
    ordered = sorted(numbers)
    last = len(ordered) - 1
    return ordered[math.floor(0.1 * last)], median(ordered), ordered[math.ceil(0.9 * last)]


def _figure(
    title: str,
    alt: str,
    chart: Any,
    head: tuple[str, ...],
    rows: Iterable[tuple[str, ...]],
    *,
    wide: bool = True,
) -> Figure:
    drawn = charts.svg(chart).encode("utf-8", "replace")
    src = "data:image/svg+xml;base64," + base64.b64encode(drawn).decode("ascii")
    return Figure(title, alt, src, head, tuple(rows), wide)

"""The first half of the reviewer page: verdict, criteria, changes, licences, pins, reproduction."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from evalkit.counting import counted
from evalkit.report.page_cases import SYMBOLS, anchor_of
from evalkit.report.tables import interval_text, value_text
from evalkit.runs.comparison import RunComparison
from evalkit.runs.gate_result import CriterionResult, GateResult
from evalkit.runs.manifest import Manifest
from evalkit.runs.run import Run
from evalkit.runs.summary import CriterionSummary, Summary
from evalkit.stats.wording import change_text, rate_sentence
from evalkit.validity.licence import Licence

__all__ = [
    "Criterion",
    "criteria",
    "licence_views",
    "looks",
    "moves",
    "pins",
    "reproduce",
    "spent",
    "thresholds",
]

MARKS = {"PASS": "✓", "FAIL": "✗", "UNDECIDED": "?", "BROKEN": "!", "shown": "·"}
MOST_MOVES = 200


@dataclass(frozen=True, slots=True)
class Criterion:
    """One criterion in words and numbers; `word` is the gate's, or "" where no gate ruled."""

    name: str
    word: str
    mark: str
    rate: str
    floor: str
    before: str
    change: str
    sentences: tuple[str, ...]
    beside: str
    by: str
    strata: tuple[tuple[str, str, str], ...]


def criteria(
    summary: Summary,
    before: Summary | None,
    comparison: RunComparison | None,
    gate: GateResult | None,
    manifest: Manifest,
) -> list[Criterion]:
    """Each criterion of the run; with a gate, each that it ruled on, in its order."""
    now = {c.name: c for c in summary.criteria}
    then = {c.name: c for c in before.criteria} if before else {}
    ruled = {c.name: c for c in gate.criteria} if gate else {}
    found: list[Criterion] = []
    for name in dict.fromkeys([*ruled, *now]):
        measured, ruling = now.get(name), ruled.get(name)
        span = measured.score_range[1] - measured.score_range[0] if measured else 1.0
        old = then.get(name)
        word = _word(ruling)
        found.append(
            Criterion(
                name=name,
                word=word,
                mark=MARKS.get(word, "·"),
                rate=interval_text(measured.rate, measured.score_range)
                if measured
                else "not measured",
                floor=_floor(measured, ruling),
                before=value_text(old.rate.estimate, old.score_range) if old else "",
                change=_change(name, comparison, ruling, span),
                sentences=tuple(_sentences(name, measured, ruling, comparison, span)),
                beside=_beside(measured),
                by=manifest.by.get(name, ""),
                strata=_strata(measured, old),
            )
        )
    return found


def _word(ruling: CriterionResult | None) -> str:
    if ruling is None:
        return ""
    return ruling.word if ruling.gate else "shown"


def _floor(measured: CriterionSummary | None, ruling: CriterionResult | None) -> str:
    rule = ruling.rule if ruling else measured.rule if measured else {}
    if rule.get("hard"):
        return "hard: every one"
    floor = rule.get("min", rule.get("min_win_rate"))
    if floor is None:
        return ""
    return value_text(float(floor), measured.score_range if measured else (0.0, 1.0))


def _change(
    name: str, comparison: RunComparison | None, ruling: CriterionResult | None, span: float
) -> str:
    relative = ruling.relative if ruling else None
    if relative is not None and relative.interval.defined:
        change = change_text(relative.interval.estimate, span)
        return f"{change} (at worst {_bare(relative.lower, span)})"
    moved = comparison.changes.get(name) if comparison else None
    if moved is None or not moved.interval.defined:
        return ""
    low, high = moved.interval.ci_low, moved.interval.ci_high
    ends = f"{_bare(low, span)} to {_bare(high, span)}"
    return f"{change_text(moved.interval.estimate, span)} ({ends})"


def _bare(change: float, span: float) -> str:
    return change_text(change, span).removesuffix(" points")


def _sentences(
    name: str,
    measured: CriterionSummary | None,
    ruling: CriterionResult | None,
    comparison: RunComparison | None,
    span: float,
) -> Iterable[str]:
    if ruling is not None and ruling.sentence:
        yield ruling.sentence
    elif measured is not None:
        yield rate_sentence(measured.rate, span=span)
    if comparison is not None and (ruling is None or ruling.relative is None):
        if name in comparison.sentences:
            yield f"against the baseline: {comparison.sentences[name]}"
        elif why := comparison.pins.why_not(name):
            yield f"not compared: {why}"
    if ruling is not None and ruling.not_compared:
        yield f"not compared: {ruling.not_compared}"
    if ruling is not None and ruling.licence:
        yield f"licence: {ruling.licence}"


def _beside(measured: CriterionSummary | None) -> str:
    if measured is None:
        return ""
    words = {
        "missing": "missing",
        "unscored": "unscored",
        "not_measured": "not measured",
        "not_judged": "stopped by a hard criterion",
    }
    return ", ".join(
        f"{measured.counts[s]} {w}" for s, w in words.items() if measured.counts.get(s)
    )


def _strata(
    measured: CriterionSummary | None, old: CriterionSummary | None
) -> tuple[tuple[str, str, str], ...]:
    if measured is None or len(measured.by_stratum) < 2:
        return ()
    before = old.by_stratum if old else {}
    return tuple(
        (
            name,
            interval_text(rate, measured.score_range),
            value_text(before[name].estimate, measured.score_range) if name in before else "",
        )
        for name, rate in measured.by_stratum.items()
    )


def moves(comparison: RunComparison | None) -> tuple[list[tuple[str, str, str, str, str]], int]:
    """Cases that moved, worse ones first (id, anchor, stratum, word, by how much), and the rest."""
    if comparison is None:
        return [], 0
    found = [
        (
            case.case_id,
            anchor_of(case.case_id),
            case.stratum,
            f"{SYMBOLS[case.direction]} {case.direction}",
            ", ".join(f"{name} {by:+.2f}" for name, by in case.moved.items()),
        )
        for case in comparison.cases
    ]
    return found[:MOST_MOVES], max(0, len(found) - MOST_MOVES)


def looks(gate: GateResult | None) -> list[tuple[str, str, str, str]]:
    """What to open first: id, anchor, criterion, reason."""
    if gate is None:
        return []
    return [(k.case_id, anchor_of(k.case_id), k.criterion, k.reason) for k in gate.look_at]


def spent(run: Run) -> list[tuple[str, str]]:
    """What the run cost, as its manifest says."""
    calls = run.manifest.calls
    if not calls:
        return []
    usd = calls.get("usd")
    lines = [
        ("new calls", str(calls.get("new", 0))),
        ("recorded replies used", str(calls.get("recorded", 0))),
        ("paid for new calls", "unknown" if usd is None else _usd(float(usd))),
    ]
    for entry in calls.get("by", ()):
        cost = entry.get("usd")
        what = f"{entry.get('model')}, {entry.get('purpose')}"
        price = "price unknown" if cost is None else _usd(float(cost))
        lines.append((what, f"{counted(entry.get('calls'), 'call')}, {price}"))
    return lines


def _usd(value: float) -> str:
    return f"${value:.4f}" if value else "$0"


def pins(manifest: Manifest) -> list[tuple[str, str]]:
    """Everything that decides the run's numbers, one line each."""
    sampling, prompt = manifest.sampling, manifest.prompt
    sizes = ", ".join(
        f"{stratum} {n} of {sampling.get('population', {}).get(stratum, '?')}"
        for stratum, n in sampling.get("sizes", {}).items()
    )
    weights = ", ".join(f"{s} {w:g}" for s, w in sampling.get("weights", {}).items())
    draft = " (an unsaved draft)" if prompt.get("draft") else ""
    lines: list[tuple[str, Any]] = [
        ("run", manifest.run_id),
        ("made", manifest.created),
        ("suite", f"{manifest.suite}, digest {manifest.suite_digest}"),
        ("domain", manifest.domain),
        ("prompt", f"{prompt.get('name')} {prompt.get('hash')}{draft}"),
        ("model", manifest.model),
        ("request settings", ", ".join(f"{k} {v}" for k, v in manifest.settings.items())),
        ("application version", manifest.app_version),
        ("cases", f"{sampling.get('n')} ({sampling.get('allocation')}): {sizes}"),
        ("traffic", weights),
        ("repeats, seed", f"{sampling.get('repeats')}, {sampling.get('seed')}"),
        ("commit", (manifest.git_sha or "none") + (" (dirty)" if manifest.dirty else "")),
        ("replies from", manifest.origin),
        ("thresholds", manifest.thresholds_hash),
    ]
    lines += [(f"criterion {name}", f"measured by {by}") for name, by in manifest.by.items()]
    lines += [
        (f"judge {name}", ", ".join(f"{k} {v}" for k, v in judge.items() if v))
        for name, judge in manifest.judges.items()
    ]
    lines.append(("versions", ", ".join(f"{k} {v}" for k, v in manifest.versions.items())))
    return [(name, str(value)) for name, value in lines if value]


def thresholds(manifest: Manifest) -> list[tuple[str, str]]:
    """Each criterion's rule, as it was hashed into the run."""
    return [
        (name, ", ".join(f"{key} {_rule(value)}" for key, value in rule.items()))
        for name, rule in manifest.thresholds.items()
    ]


def _rule(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else f"{value}"


def licence_views(licences: Sequence[Licence]) -> list[dict[str, Any]]:
    """What admission found of each judge, with its warnings."""
    return [
        {
            "judge": f"{licence.judge.name} {licence.judge.hash}",
            "model": licence.judge.model,
            "domain": licence.domain,
            "uses": ", ".join(licence.uses) or "none",
            "until": f"{licence.issued} to {licence.expires}",
            "revoked": licence.revoked.reason if licence.revoked else "",
            "warnings": licence.warnings,
            "evidence": [
                f"{e.what}: {e.state}; {e.ruling}. Anchor {e.anchor.name} ({e.anchor.provenance}, "
                f"n = {e.anchor.n}). {e.diagnosis}"
                for e in licence.evidence
            ],
        }
        for licence in licences
    ]


def reproduce(manifest: Manifest, gate: GateResult | None) -> list[str]:
    """The commands that make this run again; recorded replies make it free."""
    sampling, prompt = manifest.sampling, manifest.prompt
    common = [
        ("--suite", PurePath(manifest.suite_folder).as_posix()),
        ("--prompt", f"prompts/{prompt.get('name')}.md" if prompt.get("hash") else ""),
        ("--model", manifest.model),
        ("--sample", sampling.get("n")),
        ("--repeats", sampling.get("repeats")),
        ("--seed", sampling.get("seed")),
    ]
    if gate is not None:
        words = ["python", "notebooks/gate.py", "--strictness", gate.strictness.value]
        common += [("--baseline-ref", gate.ref)]
    else:
        words = ["python", "notebooks/iterate.py"]
        common += [("--allocation", sampling.get("allocation"))]
        words += ["--judges"] if manifest.judges else []
    for name, value in common:
        if value not in ("", None):
            words += [name, str(value)]
    commands = [shlex.join(words)]
    if manifest.git_sha:
        commands.insert(0, f"git checkout {shlex.quote(manifest.git_sha)}")
    return commands

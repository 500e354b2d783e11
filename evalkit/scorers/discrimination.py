"""The right to gate: a scorer shows that it tells known good replies from known bad ones.

Its examples are pairs, one a line of `golden/scorers/<scorer>.jsonl`, or of
`<suite>/gold/<scorer>.jsonl` for a suite's own (a ":" in a name becomes "."):

    {"why": "", "settings": {}, "case": {}, "good": {"text": "..."}, "bad": {"text": "..."}}

A side is a reply: `text` (or `text_file`), `finish`, `refusal`, `reasoning`, `retrieved`; a `case`
of its own is laid over the shared one. Files are named from the folder above the examples'.
Without `settings`, a suite's own examples are scored with those of the criterion.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalkit.cases.load import parse_cases
from evalkit.cases.suite import Suite
from evalkit.errors import ScorerError, UsageError
from evalkit.records import Case, Finish, Reply, Score
from evalkit.scorers import SCORERS, build_scorer
from evalkit.scorers.scorer import Scorer, find_scorer

__all__ = [
    "Discrimination",
    "GoldPair",
    "Unproven",
    "discriminates",
    "load_pairs",
    "may_gate",
    "unproven_scorers",
]

GOOD, BAD, GAP = 0.75, 0.35, 0.40
_REPLY = {"text", "text_file", "finish", "refusal", "reasoning", "retrieved", "case"}
_LINE = {"why", "settings", "case", "good", "bad"}
Example = tuple[Case, Reply]


@dataclass(frozen=True, slots=True)
class Discrimination:
    """What a scorer gave one pair; `holds` is None where it could not be measured."""

    holds: bool | None
    good: Score
    bad: Score
    reason: str


@dataclass(frozen=True, slots=True)
class GoldPair:
    """A good and a bad example for one scorer; `settings` None: those of the criterion at hand."""

    good: Example
    bad: Example
    settings: Mapping[str, Any] | None
    why: str
    place: str


@dataclass(frozen=True, slots=True)
class Unproven:
    """A criterion that blocks although its scorer has not shown that it may."""

    criterion: str
    scorer: str
    reason: str


def discriminates(scorer: Scorer, good: Example, bad: Example) -> Discrimination:
    """Whether good scores at least 0.75, bad at most 0.35, and the gap is at least 0.40."""
    high, low = scorer(*good), scorer(*bad)
    if high.value is None or low.value is None:
        missing = high if high.value is None else low
        return Discrimination(None, high, low, f"not measured: {missing.reason}")
    faults: list[str] = []
    if high.value < GOOD:
        faults.append(f"the good reply scores {high.value:.2f}, below {GOOD}: {high.reason}")
    if low.value > BAD:
        faults.append(f"the bad reply scores {low.value:.2f}, above {BAD}: {low.reason}")
    if high.value - low.value < GAP:
        faults.append(f"the gap is {high.value - low.value:.2f}, below {GAP}")
    said = f"good {high.value:.2f}, bad {low.value:.2f}"
    return Discrimination(not faults, high, low, "; ".join(faults) or said)


def may_gate(name: str) -> bool:
    """Whether a scorer of this name is made to block at all (`GATES`, true unless it says no)."""
    return bool(getattr(find_scorer(name, SCORERS), "GATES", True))


def load_pairs(path: Path) -> tuple[GoldPair, ...]:
    """The examples of one file.

    Raises:
        ScorerError: If the file cannot be read or a line is wrong; names file and line.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ScorerError(f"{path}: the gold examples cannot be read: {error}") from error
    return tuple(
        _pair(line, f"{path}:{number}", path.parent.parent)
        for number, line in enumerate(lines, 1)
        if line.strip()
    )


def unproven_scorers(suite: Suite, *, run: bool = True) -> list[Unproven]:
    """The criteria of a suite that block with a scorer that has not shown what it measures.

    A criterion blocks unless it says `gate = false`. Where the means are missing (no TeX engine)
    nothing is said here: the run itself will not be measured.

    Args:
        suite: The suite.
        run: Score the examples; without it only whether there are any is asked, which starts no
            program and costs next to nothing.

    Raises:
        ScorerError: If a scorer is unknown or its examples cannot be read.
    """
    unproven: list[Unproven] = []
    for criterion in suite.criteria:
        if criterion.scorer is None or not criterion.gate:
            continue
        name = criterion.scorer
        if not may_gate(name):
            reason = f"the scorer {name!r} may be shown but not block; set gate = false"
        else:
            reason = _fault(name, criterion.settings, suite.folder, run=run)
        if reason:
            unproven.append(Unproven(criterion.name, name, reason))
    return unproven


def example_files(name: str, folder: Path, golden: Path) -> Iterator[Path]:
    """Where examples of a scorer stand: the suite's, the project's, and those that came along."""
    file = f"{name.replace(':', '.')}.jsonl"
    here = Path(__file__).resolve()
    shipped = (here.parents[1] / "gold" / "scorers", here.parents[2] / "golden" / "scorers")
    for place in dict.fromkeys((folder / "gold", golden / "scorers", *shipped)):
        if (place / file).is_file():
            yield place / file


def _fault(name: str, settings: Mapping[str, Any], folder: Path, *, run: bool) -> str:
    golden = folder.parent
    for path in example_files(name, folder, golden):
        pairs = load_pairs(path)
        for pair in pairs if run else ():
            given = settings if pair.settings is None else pair.settings
            scorer = build_scorer(name, given, folder if pair.settings is None else path.parent)
            if (result := discriminates(scorer, pair.good, pair.bad)).holds is False:
                return f"{pair.place}: {result.reason}"
        if pairs:
            return ""
    return (
        f"the scorer {name!r} has no gold examples; write {name.replace(':', '.')}.jsonl in "
        f"{golden / 'scorers'} or {folder / 'gold'}, or set gate = false"
    )


def _pair(line: str, place: str, root: Path) -> GoldPair:
    try:
        row = json.loads(line)
        wrong = sorted(set(row) - _LINE) + sorted({"good", "bad"} - set(row))
        if wrong:
            raise ValueError(f"unknown or missing: {', '.join(wrong)}")
        shared = row.get("case", {})
        return GoldPair(
            _example(row["good"], shared, place, root),
            _example(row["bad"], shared, place, root),
            row.get("settings"),
            row.get("why", ""),
            place,
        )
    except (ValueError, TypeError, OSError, UsageError) as error:
        raise ScorerError(f"{place}: the gold pair cannot be read: {error}") from error


def _example(side: dict[str, Any], shared: dict[str, Any], place: str, root: Path) -> Example:
    if unknown := sorted(set(side) - _REPLY):
        raise ValueError(f"a reply has no {', '.join(unknown)}; it has {', '.join(sorted(_REPLY))}")
    case = {"id": "gold", "inputs": {"from": "gold"}, **shared, **side.get("case", {})}
    text = side.get("text", "")
    if "text_file" in side:
        text = (root / side["text_file"]).read_text(encoding="utf-8")
    retrieved = side.get("retrieved")
    reply = Reply(
        text,
        reasoning=side.get("reasoning", ""),
        refusal=side.get("refusal", ""),
        finish=Finish(side.get("finish", "stop")),
        retrieved=None if retrieved is None else tuple(retrieved),
    )
    return parse_cases(json.dumps(case), place, folder=root)[0], reply

"""Runs for tests of the page: of any size, with any text in every field."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from evalkit.cases.criterion import Criterion
from evalkit.cases.suite import Sampling, Suite, Task
from evalkit.hashing import short_hash
from evalkit.records import (
    Case,
    Document,
    Finding,
    Finish,
    Reply,
    Row,
    RowStatus,
    Score,
    ScoreStatus,
    Usage,
    Verdict,
)
from evalkit.runs.gate_result import CriterionResult, GateResult, Look
from evalkit.runs.manifest import Manifest
from evalkit.runs.run import Run
from evalkit.stats.decision import Decision, Strictness
from evalkit.validity.licence import AnchorPin, Evidence, JudgePin, Licence, Revocation
from evalkit.validity.provenance import Provenance

CRITERIA = ("contract", "grounded", "preference")
STRATA = ("easy", "ambiguous", "no_answer", "adversarial")
SENTENCE = (
    "the reply names a page that holds snapshots for ninety days and a device name of at most "
    "thirty two characters which cannot be changed later by anyone but the owner of a workspace"
)
WORDS = [word + ending for ending in ("", "s", "ing", ",", ".") for word in SENTENCE.split()]


def text_of(rng: random.Random, words: int) -> str:
    """Some words."""
    return " ".join(rng.choices(WORDS, k=words))


def synthetic(
    cases: int, *, repeats: int = 1, words: int = 120, seed: int = 1, folder: Path = Path()
) -> tuple[Suite, Run, Run]:
    """A suite, a run of it and a baseline whose replies differ here and there."""
    rng = random.Random(seed)
    items: list[Case] = []
    now: list[Row] = []
    then: list[Row] = []
    for i in range(cases):
        case = Case(
            id=f"case-{i:05d}",
            stratum=STRATA[i % 4],
            inputs={"question": text_of(rng, 14)},
            context=(Document("page", text_of(rng, 100)),),
            expected={"answer": text_of(rng, 5)},
            why=text_of(rng, 8),
        )
        items.append(case)
        for repeat in range(repeats):
            old = text_of(rng, words)
            new = old.split()
            for _ in range(words // 10):
                new[rng.randrange(len(new))] = rng.choice(WORDS)
            passed = float(rng.random() < 0.8)
            then.append(_row(case, repeat, old, 1.0))
            now.append(_row(case, repeat, " ".join(new), passed))
    suite = suite_of(items, folder)
    return suite, run_of(suite, now, repeats), run_of(suite, then, repeats, "baseline")


def _row(case: Case, repeat: int, text: str, passed: float) -> Row:
    found = () if passed else (Finding("a word that no page has", 4, 9),)
    verdicts = tuple(
        Verdict(1.0, label, "The draft answers the question from the page that it was given.")
        for label in ("first", "second")
    )
    return Row(
        case_id=case.id,
        stratum=case.stratum,
        repeat=repeat,
        rendered_prompt_sha="0" * 12,
        reply=Reply(text, usage=Usage(300, 120, None, 420), latency_s=0.5 + len(text) / 1e3),
        status=RowStatus.OK,
        scores={
            "contract": Score(1.0, "one object, as the schema asks"),
            "grounded": Score(passed, "every word stands in a page", findings=found),
            "preference": Score(0.5, "a tie (tie_flip)", details={"reason": "tie_flip"}),
        },
        verdicts={"preference": verdicts},
        by=dict.fromkeys(CRITERIA, "0123456789ab"),
    )


def suite_of(cases: Sequence[Case], folder: Path = Path(), name: str = "made") -> Suite:
    """A suite in memory."""
    return Suite(
        name=name,
        domain="words/en",
        task=Task(model="local/none", prompt="prompts/none.md"),
        sampling=Sampling(),
        criteria=tuple(Criterion(name=c, scorer="contains", min=0.9) for c in CRITERIA),
        folder=folder,
        cases=tuple(cases),
    )


def run_of(suite: Suite, rows: Sequence[Row], repeats: int = 1, run_id: str = "run-1") -> Run:
    """A run in memory, its manifest included."""
    sizes: dict[str, int] = {}
    for row in rows:
        sizes[row.stratum] = sizes.get(row.stratum, 0) + (row.repeat == 0)
    n = sum(sizes.values())
    manifest = Manifest(
        run_id=run_id,
        created="2026-01-01T00:00:00+00:00",
        suite=suite.name,
        suite_folder=f"golden/{suite.name}",
        domain=suite.domain,
        suite_digest=short_hash(suite.name),
        thresholds={name: {"min": 0.9, "gate": True, "hard": False} for name in CRITERIA},
        thresholds_hash="0123456789ab",
        prompt={"name": "answer", "hash": "ba9876543210", "draft": False},
        model=suite.task.model,
        app_version="",
        settings={"temperature": 0.7},
        sampling={
            "n": n,
            "repeats": repeats,
            "seed": 7,
            "allocation": "proportional",
            "sizes": sizes,
            "population": sizes,
            "weights": {name: size / n for name, size in sizes.items()},
        },
        git_sha="0" * 40,
        dirty=False,
        by={name: "0123456789ab" for name in dict.fromkeys(c for row in rows for c in row.scores)},
        calls={"new": n, "recorded": 0, "usd": 0.0, "missing": [], "by": []},
    )
    return Run(manifest, None, tuple(rows))


def hostile_run(strings: Sequence[str]) -> tuple[Suite, Run, Run]:
    """Every string in every field of one case each, and of its run and baseline."""
    cases: list[Case] = []
    now: list[Row] = []
    then: list[Row] = []
    for i, text in enumerate(strings):
        case = Case(
            id=f"{i} {text}",
            stratum=f"{STRATA[i % 4]} {text}" if i < 8 else STRATA[i % 4],
            inputs={text or "empty": text, "list": [text, {text: text}]},
            context=(Document(text, text),),
            material={text: text},
            expected={text: text},
            tags=(text,),
            why=text,
        )
        cases.append(case)
        for rows, value in ((now, 0.0), (then, 1.0)):
            rows.append(_hostile_row(case, text, value))
    suite = suite_of(cases, name="hostile")
    return suite, run_of(suite, now), run_of(suite, then, run_id="baseline:hostile")


def _hostile_row(case: Case, text: str, value: float) -> Row:
    reply = Reply(
        text if value == 0.0 else f"before {text}",
        reasoning=text,
        refusal=text,
        finish=Finish.STOP,
        usage=Usage(1, 1, None, 2),
        latency_s=0.1,
        model=text,
        changes=(text,),
        warnings=(text,),
        retrieved=(text,),
        key=text,
    )
    said = (
        Verdict(value, text or "empty", text, flags=(text,), raw=text, judge_hash=text, key=text),
        Verdict(None, None, "", ScoreStatus.UNSCORED, reason=text or "empty", raw=text),
    )
    middle = len(text) // 2
    marks = (Finding(text, 0, middle), Finding(text, middle, len(text)), Finding(text))
    return Row(
        case_id=case.id,
        stratum=case.stratum,
        repeat=0,
        rendered_prompt_sha=text,
        reply=reply,
        status=RowStatus.OK,
        error=text,
        scores={
            "contract": Score(value, text or "empty", findings=marks, details={text: text}),
            "preference": Score(None, text or "empty", ScoreStatus.UNSCORED),
            f"named {text}"[:120]: Score(value, text or "empty"),
        },
        verdicts={"preference": said, f"judge {text}"[:120]: said[:1]},
        by={"contract": text, "preference": text},
    )


def told(field: str, strings: Sequence[str]) -> str:
    """One field that holds every string, each after the field's name."""
    return "\n".join(f"{field}: {text}" for text in strings)


PINS = (
    *("run_id", "created", "suite", "domain", "suite_digest", "thresholds_hash", "model"),
    *("app_version", "git_sha", "origin", "stopped"),
)
RULED = ("sentence", "licence", "not_compared")
LISTED = ("problems", "missing", "edited", "changes", "notes")
LICENSED = ("name", "hash", "model")
FOUND = ("what", "state", "ruling", "diagnosis")


def hostile_pins(run: Run, strings: Sequence[str]) -> Run:
    """The run with every string in every pin of its manifest."""
    pins: dict[str, Any] = {name: told(name, strings) for name in PINS}
    names = {name: told(name, strings) for name in ("name", "hash")}
    manifest = replace(
        run.manifest,
        **pins,
        prompt={**names, "language": told("language", strings), "draft": True},
        settings={told("setting", strings): told("value", strings)},
        judges={told("judge", strings): {"hash": told("of", strings), "model": "srv/judge"}},
        versions={told("part", strings): told("version", strings)},
        by={**run.manifest.by, told("criterion", strings): told("by", strings)},
        thresholds={told("rule", strings): {told("key", strings): told("floor", strings)}},
        dirty=True,
    )
    return replace(run, manifest=manifest)


def hostile_gate(run: Run, strings: Sequence[str]) -> GateResult:
    """A verdict with every string in every sentence of it."""
    rulings: dict[str, Any] = {name: told(f"ruled {name}", strings) for name in RULED}
    ids = {row.case_id: None for row in run.rows}
    looks = [
        Look(case, 0, f"criterion {text}", f"because {text}"[:240])
        for case, text in zip(ids, strings, strict=True)
    ]
    lists: dict[str, Any] = {name: (told(name, strings),) for name in LISTED}
    return GateResult(
        decision=Decision.FAIL,
        strictness=Strictness.RELEASE,
        sentence=told("verdict", strings),
        manifest=run.manifest,
        criteria=(
            CriterionResult(
                told("criterion ruled", strings), "FAIL", True, {"min": 0.9}, **rulings
            ),
        ),
        n_rows=len(run.rows),
        look_at=tuple(looks),
        ref=told("ref", strings),
        **lists,
    )


def hostile_licences(strings: Sequence[str]) -> list[Licence]:
    """A licence with every string in every field that is a text, and one that was revoked."""

    def said(*names: str) -> dict[str, Any]:
        return {name: told(f"licence {name}", strings) for name in names}

    evidence = Evidence(
        **said(*FOUND, "action"),
        anchor=AnchorPin(
            name=told("licence anchor", strings),
            **said("path", "digest", "domain", "criterion", "people"),
            provenance=Provenance.SYNTHETIC,
            categories=tuple(strings),
            n=1,
        ),
        figures={text: text for text in strings},
        grants=tuple(strings),
    )
    licence = Licence(
        judge=JudgePin(**said(*LICENSED, "kind", "prompt", "header", "family")),
        **said("domain"),
        uses=(told("licence use", strings),),
        evidence=(evidence,),
        warnings=(told("licence warning", strings),),
        issued=date(2026, 1, 1),
        expires=date(2026, 7, 1),
    )
    reason = Revocation(at="2026-02-01", reason=told("licence revoked", strings))
    return [licence, licence.model_copy(update={"revoked": reason})]


def shown_of_pins() -> list[str]:
    """The names after which `hostile_pins`, `_gate` and `_licences` put strings that are shown."""
    found = [*PINS, "name", "hash", "setting", "value", "judge", "of", "part", "version"]
    found += ["criterion", "by", "rule", "key", "floor", "verdict", "criterion ruled", *LISTED]
    found += [f"ruled {name}" for name in RULED]
    found += [f"licence {name}" for name in (*LICENSED, *FOUND, "anchor", "domain", "use")]
    return [*found, "licence warning", "licence revoked"]

"""The page a reviewer opens: one HTML file, offline, safe whatever a model wrote in it.

Everything in it is a value that an autoescaped template prints; the two pieces of script and style
are ours and named by hash in the page's own policy, which allows nothing else. The same run gives
the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from evalkit.cases.suite import Suite
from evalkit.counting import counted
from evalkit.errors import ConfigError, EvalkitError, LicenceError, PromptError, ReportError
from evalkit.models.endpoints import Endpoint, load_endpoints
from evalkit.models.prices import cost_of
from evalkit.models.redaction import Redactor
from evalkit.prompts import Prompt, load_prompt
from evalkit.records import Reply
from evalkit.report import charts, page_overview
from evalkit.report.page_budget import TEXT_BUDGET
from evalkit.report.page_cases import CaseView, case_views
from evalkit.report.page_charts import figures
from evalkit.report.safe import visible_controls
from evalkit.report.tables import value_text
from evalkit.runs.comparison import compare_runs
from evalkit.runs.gate_result import GateResult
from evalkit.runs.manifest import Manifest
from evalkit.runs.run import Run
from evalkit.runs.summary import Summary
from evalkit.validity.licence import Licence, read_licence

__all__ = ["build_page", "write_page"]

TEMPLATES = Path(__file__).parent / "templates"
PAGE = 200  # cases that the script lists at once
TONES = {"PASS": "good", "FAIL": "bad", "UNDECIDED": "some", "BROKEN": "bad"}
STATES = (
    ("f", "failed"),
    ("c", "changed"),
    ("w", "changed for the worse"),
    ("b", "changed for the better"),
    ("x", "flipped: pass and fail"),
    ("o", "flipped with the order"),
    ("u", "repeats disagree"),
    ("g", "not measured"),
)


def write_page(
    path: Path | str,
    run: Run,
    *,
    suite: Suite,
    gate: GateResult | None = None,
    baseline: Run | None = None,
    licences: Sequence[Licence] = (),
) -> Path:
    """Write the page of a run; `build_page` says what is in it.

    Raises:
        ReportError: If the file cannot be written.
    """
    path = Path(path)
    text = build_page(run, suite=suite, gate=gate, baseline=baseline, licences=licences)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise ReportError(f"{path}: the page cannot be written: {error.strerror}.") from error
    return path


def build_page(
    run: Run,
    *,
    suite: Suite,
    gate: GateResult | None = None,
    baseline: Run | None = None,
    licences: Sequence[Licence] = (),
    budget: int = TEXT_BUDGET,
) -> str:
    """The page of a run as one text.

    Args:
        run: What was run.
        suite: Its suite: the cases' inputs, the prompt, the licences of its judges.
        gate: The gate's result; without one the page says that nothing was decided.
        baseline: The frozen run that replies and rates stand beside.
        licences: Licences of the run's judges; by default those in the suite's folder.
        budget: How many characters of texts it may hold; longer texts are shortened alike, and
            each says by how much and where the whole of it is.
    """
    drawing = threading.Thread(target=charts.warm_up)  # the renderer starts while rows are read
    drawing.start()
    manifest = run.manifest
    summary = _in_order(run.summary(), suite)
    before = baseline.summary() if baseline else None
    comparison = compare_runs(run, baseline, suite=suite) if baseline else None
    licences = tuple(licences) or tuple(_licences(suite, manifest))
    endpoint, redact = _project(manifest)
    views = case_views(
        run,
        suite,
        baseline,
        comparison,
        _prompt(run, suite),
        _price(endpoint),
        budget=budget,
    )
    ruled = page_overview.criteria(summary, before, comparison, gate, manifest)
    moved, moves_left = page_overview.moves(comparison)
    strata = list(dict.fromkeys(view.stratum for view in sorted(views, key=lambda v: v.stratum)))
    data = f"exports/runs/{manifest.run_id}/rows.jsonl" if run.folder else ""
    drawing.join()
    pictures = figures(
        run,
        summary,
        ruled,
        baseline=baseline,
        before=before,
        comparison=comparison,
        licences=licences,
    )
    style, script = _asset("page.css"), _asset("page.js")
    values: dict[str, Any] = {
        "policy": _policy(style, script),
        "style": Markup(style),
        "script": Markup(script),
        "heading": f"{manifest.suite}: {manifest.prompt.get('name', '')}",
        "what": _what(manifest),
        "verdict": _verdict(gate, summary),
        "warnings": _warnings(manifest),
        "numbers": _numbers(summary),
        "looks": page_overview.looks(gate),
        "criteria": ruled,
        "ruled": gate is not None,
        "tones": {**TONES, "shown": "gap", "not compared": "gap", "": "gap"},
        "compared": baseline is not None,
        "beside": any(c.beside for c in ruled),
        "figures": pictures,
        "differences": comparison.pins.differences if comparison else (),
        "moves": moved,
        "moves_left": moves_left,
        "lists": _lists(gate),
        "licences": page_overview.licence_views(licences),
        "judged": tuple(manifest.judges),
        "strata": strata,
        "states": STATES,
        "by": tuple(manifest.by),
        "page": PAGE,
        "pins": page_overview.pins(manifest),
        "fixed": _fixed(manifest, gate),
        "thresholds": page_overview.thresholds(manifest),
        "spent": page_overview.spent(run),
        "commands": page_overview.reproduce(manifest, gate),
        "data": data,
        "cases": Markup(_cases(views, strata, data)),
    }
    values["sections"] = [
        (anchor, name)
        for anchor, name, shown in (
            ("looks", "What to look at", values["looks"]),
            ("criteria", "Criteria", True),
            ("charts", "Charts", pictures),
            ("changes", "What changed", baseline),
            ("licences", "Judges", licences or manifest.judges),
            ("cases", "Cases", True),
            ("run", "What was run", True),
            ("reproduce", "How to reproduce", True),
        )
        if shown
    ]
    return redact(_templates().get_template("page.html.j2").render(values))


@cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printed,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["brief"] = _brief
    return environment


def _brief(text: str) -> str:
    return f"{text[:240]} …" if len(text) > 240 else text


def _printed(value: Any) -> Any:
    """What a template prints: text with its invisible characters made visible."""
    return value if isinstance(value, Markup) else visible_controls(value)


@cache
def _asset(name: str) -> str:
    return (TEMPLATES / name).read_text("utf-8")


def _policy(style: str, script: str) -> str:
    """Nothing from anywhere, but this style, this script, and pictures that are in the page."""
    style_hash, script_hash = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (style, script)
    )
    return (
        f"default-src 'none'; style-src 'sha256-{style_hash}'; script-src 'sha256-{script_hash}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _in_order(summary: Summary, suite: Suite) -> Summary:
    """Criteria as the suite lists them, whatever order the manifest was written in."""
    order = {criterion.name: i for i, criterion in enumerate(suite.criteria)}
    listed = sorted(summary.criteria, key=lambda c: order.get(c.name, len(order)))
    return replace(summary, criteria=tuple(listed))


def _cases(views: Sequence[CaseView], strata: Sequence[str], data: str) -> str:
    where = f"; the whole is in the suite's cases and in {data}." if data else "."
    return (
        _templates()
        .get_template("case.html.j2")
        .render(
            cases=views,
            numbers={name: i for i, name in enumerate(strata)},
            full=where,
            data=data,
        )
    )


def _what(manifest: Manifest) -> list[str]:
    sampling, prompt = manifest.sampling, manifest.prompt
    population = sum(sampling.get("population", {}).values())
    return [
        f"prompt {prompt.get('hash') or 'none'}",
        manifest.model,
        f"{sampling.get('n')} of {counted(population, 'case')} × {sampling.get('repeats')}",
        f"commit {manifest.git_sha[:7] or 'none'}{' (dirty)' if manifest.dirty else ''}",
        manifest.created,
    ]


def _verdict(gate: GateResult | None, summary: Summary) -> dict[str, str]:
    if gate is None:
        sentence = (
            f"{counted(summary.n_cases, 'case was', 'cases were')} looked at and no gate ruled: "
            "the rates below are a look, not a decision."
        )
        return {"word": "Not a decision", "tone": "gap", "sentence": sentence}
    word = f"{gate.decision.value} ({gate.strictness.value})"
    return {
        "word": f"{page_overview.MARKS[gate.decision.value]} {word}",
        "tone": TONES[gate.decision.value],
        "sentence": gate.sentence.removeprefix(f"{word}: "),
    }


def _warnings(manifest: Manifest) -> list[str]:
    said: list[str] = []
    if manifest.origin != "model":
        said.append(f"No model gave these replies: their origin is {manifest.origin}.")
    if manifest.prompt.get("draft"):
        said.append("The prompt was an unsaved draft.")
    if manifest.stopped:
        said.append(f"The run ended early: {manifest.stopped}")
    if manifest.dirty:
        said.append("The tree was dirty: the commit alone does not say what ran.")
    return said


def _numbers(summary: Summary) -> list[tuple[str, str]]:
    unusable = "unusable reply" if summary.system_errors == 1 else "unusable replies"
    return [
        (str(summary.n_cases), "case" if summary.n_cases == 1 else "cases"),
        (str(summary.n_rows), "observation" if summary.n_rows == 1 else "observations"),
        (value_text(summary.pass_rate.estimate), "of cases pass every criterion that decides"),
        (str(summary.errors), "without reply"),
        (str(summary.system_errors), f"{unusable}, {summary.cut_off} cut off"),
        (str(summary.warnings), "with a warning"),
    ]


def _lists(gate: GateResult | None) -> list[tuple[str, tuple[str, ...]]]:
    """What the gate found beside its rulings; nothing is passed over in silence."""
    if gate is None:
        return []
    lists = (
        ("What broke the run", gate.problems),
        ("Calls that nobody recorded", gate.missing),
        ("Thresholds edited after the fact", gate.edited),
        (f"Changed since {gate.ref}", gate.changes),
        ("Notes", gate.notes),
    )
    return [(title, entries) for title, entries in lists if entries]


def _fixed(manifest: Manifest, gate: GateResult | None) -> str:
    text = (
        f"Fixed before the first reply and hashed into the run ({manifest.thresholds_hash}) "
        f"at {manifest.created or 'its freezing'}, commit {manifest.git_sha[:12] or 'none'}."
    )
    if gate is not None and gate.ref:
        text += f" The gate used those at {gate.ref}."
    if gate is not None and gate.edited:
        text += f" {len(gate.edited)} were edited after the fact: they are listed above."
    return text


def _prompt(run: Run, suite: Suite) -> Prompt | None:
    """The prompt that was run, where a file still holds it."""
    wanted = run.manifest.prompt.get("hash")
    drafts = run.folder.parent.parent / "drafts" if run.folder else None
    files = [*suite.prompts, *(sorted(drafts.rglob("*.md")) if drafts else ())]
    for file in files:
        try:
            prompt = load_prompt(file)
        except PromptError:
            continue
        if prompt.hash == wanted:
            return prompt
    return None


def _licences(suite: Suite, manifest: Manifest) -> Iterator[Licence]:
    hashes = {judge["hash"] for judge in manifest.judges.values()}
    for file in sorted((suite.folder / "licences").glob("*.json")) if hashes else ():
        try:
            licence = read_licence(file)
        except LicenceError:
            continue  # the gate names it; a page of another run must not fail on it
        if licence.judge.hash in hashes:
            yield licence


def _project(manifest: Manifest) -> tuple[Endpoint | None, Callable[[str], str]]:
    """The endpoint that answered, for its prices, and a filter for every key that is set."""
    try:
        endpoints = load_endpoints()
    except ConfigError:
        return None, Redactor(())
    redact = Redactor(endpoints.secrets())
    try:
        return endpoints.of(manifest.model)[0], redact
    except EvalkitError:
        return None, redact


def _price(endpoint: Endpoint | None) -> Callable[[Reply], float | None]:
    def price(reply: Reply) -> float | None:
        usage = reply.usage
        if endpoint is None or usage is None:
            return None
        if usage.prompt_tokens is None or usage.completion_tokens is None:
            return None
        return cost_of(endpoint, usage.prompt_tokens, usage.completion_tokens)

    return price

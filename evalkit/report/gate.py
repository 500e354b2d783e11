"""The gate's verdict for a terminal, a pull request, a machine and a notebook page."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from pathlib import Path

from evalkit.counting import counted
from evalkit.errors import EvalkitError
from evalkit.report.fragments import pin_line
from evalkit.report.safe import esc, table_html, visible_controls
from evalkit.report.tables import interval_text, text_table, value_text
from evalkit.runs.gate_result import CriterionResult, GateResult
from evalkit.runs.gate_session import Gated, GateSession
from evalkit.runs.promotion import Promotion
from evalkit.stats.wording import change_text

__all__ = [
    "exit_status",
    "gate_html",
    "gate_markdown",
    "gate_text",
    "script_text",
    "write_files",
    "write_gate",
    "write_page",
]

HEAD = ("criterion", "now (95 % interval)", "floor", "baseline", "change (bound)", "verdict")
MOST = 20
MARK = {"PASS": "✓", "FAIL": "✗", "UNDECIDED": "?", "BROKEN": "!"}


def gate_rows(result: GateResult) -> list[list[str]]:
    """One row a criterion, as in `HEAD`."""
    return [
        [
            c.name,
            interval_text(c.now.rate, c.score_range) if c.now else "not measured",
            _floor(c),
            value_text(c.before.estimate, c.score_range) if c.before else "-",
            _change(c),
            _verdict(c),
        ]
        for c in result.criteria
    ]


def gate_text(result: GateResult) -> str:
    """All of it for a terminal: at most 100 columns, no colours; the last line is the sentence."""
    blocks = [_pins(result), text_table(HEAD, gate_rows(result))]
    for title, lines in _lists(result):
        shown = [_wrapped(line) for line in lines[:MOST]]
        if more := len(lines) - MOST if len(lines) > MOST else 0:
            shown.append(f"  ... and {more} more; gate.json has them all")
        blocks.append("\n".join([f"{title}:", *shown]))
    blocks.append(visible_controls(result.sentence).replace("\n", " "))
    return "\n\n".join(blocks)


def gate_markdown(result: GateResult) -> str:
    """The same for a pull request comment; text from models and cases cannot format or link."""
    lines = [
        f"### {MARK[result.decision.value]} {_md(result.sentence)}",
        "",
        _md(_pins(result)),
        "",
        "| " + " | ".join(HEAD) + " |",
        "|" + " --- |" * len(HEAD),
        *("| " + " | ".join(_md(cell) for cell in row) + " |" for row in gate_rows(result)),
    ]
    for title, entries in _lists(result):
        lines += ["", f"<details><summary>{title}</summary>", ""]
        lines += [f"- {_md(entry)}" for entry in entries[: 5 * MOST]]
        lines += ["", "</details>"]
    return "\n".join(lines) + "\n"


def gate_html(result: GateResult) -> str:
    """The same for a notebook: made of escaped text only."""
    word = result.decision.value
    parts = [
        pin_line(result.manifest, observations=result.n_rows),
        f'<div class="ek-verdict"><b>{MARK[word]} {esc(result.sentence)}</b></div>',
        table_html(HEAD, gate_rows(result)),
    ]
    for title, entries in _lists(result):
        items = "".join(f"<li>{esc(entry)}</li>" for entry in entries)
        parts.append(f"<details><summary>{esc(title)}</summary><ul>{items}</ul></details>")
    return "".join(parts)


def write_gate(result: GateResult, folder: Path) -> tuple[Path, Path]:
    """Write `gate.json` for machines and `gate.md` for a pull request into a run's folder."""
    data = json.dumps(result.as_json(), indent=2, ensure_ascii=False, sort_keys=True)
    paths = folder / "gate.json", folder / "gate.md"
    paths[0].write_text(data + "\n", encoding="utf-8")
    paths[1].write_text(gate_markdown(result), encoding="utf-8")
    return paths


def write_page(gate: GateSession, gated: Gated, path: str) -> list[Path]:
    """Write the reviewer page of a gated run, where one was asked for."""
    if not path:
        return []
    from evalkit.report.page import write_page as write

    page = Path(path)
    write(page, gated.run, suite=gate.suite, gate=gated.result, baseline=gate.baseline)
    return [page]


def write_files(gate: GateSession, gated: Gated, page: str) -> tuple[list[str], list[str]]:
    """Write all that a gated run leaves; returns the files, and what could not be written.

    A full disk does not take the verdict away: it is printed, and the sentences after it.
    """
    written: list[str] = []
    unwritten = [gated.unwritten] if gated.unwritten else []
    for write in (
        lambda: write_gate(gated.result, gated.run.folder or gate.bench.runs),
        lambda: write_page(gate, gated, page),
    ):
        try:
            written += [str(path) for path in write()]
        except OSError as error:
            unwritten.append(f"{error.filename}: cannot be written: {error.strerror}.")
        except EvalkitError as error:
            unwritten.append(str(error))
    return written, unwritten


def script_text(
    result: GateResult,
    written: Iterable[str],
    promotion: Promotion,
    unwritten: Iterable[str] = (),
) -> str:
    """What the script prints: files first, then the verdict; what decided the status is last."""
    lines = [f"written: {', '.join(written)}"]
    if promotion.said and not promotion.refused:
        lines.append(promotion.said)
    last = [f"broken: {visible_controls(text)}" for text in unwritten]
    last += [promotion.said] if promotion.refused else []
    return "\n".join([*lines, "", gate_text(result), *([""] if last else []), *last])


def exit_status(result: GateResult, promotion: Promotion, unwritten: Collection[str] = ()) -> int:
    """The gate's status; a refused promotion is no success either, nor is a lost record."""
    if result.status in (0, 3) and unwritten:
        return 4
    return result.status or (4 if promotion.refused else 0)


def _pins(result: GateResult) -> str:
    manifest = result.manifest
    commit = manifest.git_sha[:7] or "no commit"
    size = f"{counted(manifest.sampling.get('n'), 'case')} x {manifest.sampling.get('repeats')}"
    parts = [
        f"{manifest.suite} @ {commit}{' (dirty)' if manifest.dirty else ''}",
        f"prompt {manifest.prompt.get('name')} {manifest.prompt.get('hash')}",
        manifest.model,
        size,
        counted(manifest.calls.get("new", 0), "new call"),
    ]
    return " · ".join(str(part) for part in parts)


def _lists(result: GateResult) -> Iterable[tuple[str, list[str]]]:
    """What stands below the table, each with its title; empty lists are left out."""
    told = [f"{c.name}: {c.sentence}" for c in result.criteria if c.sentence]
    licences = [f"{c.name}: {c.licence}" for c in result.criteria if c.licence]
    looks = [
        f"{k.case_id} (repeat {k.repeat}), {k.criterion}: {k.reason[:200]}" for k in result.look_at
    ]
    since = f"changed since {result.ref}"
    lists: list[tuple[str, Iterable[str]]] = [
        ("what broke the run", result.problems),
        ("calls that nobody recorded", result.missing),
        ("what was found", told),
        ("licences", licences),
        ("what to look at", looks),
        ("thresholds edited after the fact", result.edited),
        (since, result.changes or (["nothing in the suite"] if result.ref else [])),
        ("what differs from the baseline", result.differences),
        ("notes", result.notes),
    ]
    return [(title, list(entries)) for title, entries in lists if entries]


def _floor(c: CriterionResult) -> str:
    if c.rule.get("hard"):
        return "hard"
    floor = c.rule.get("min", c.rule.get("min_win_rate"))
    return "" if floor is None else value_text(float(floor), c.score_range)


def _change(c: CriterionResult) -> str:
    ruling = c.relative
    if ruling is None or not ruling.interval.defined:
        return "-"
    span = c.score_range[1] - c.score_range[0]
    change, bound = change_text(ruling.interval.estimate, span), change_text(ruling.lower, span)
    return f"{change} ({bound})".replace(" points", "")


def _verdict(c: CriterionResult) -> str:
    if not c.gate:
        return "shown only"
    needed = [r.cases_needed for r in c.rulings if r.cases_needed and r.decision.value == c.word]
    return (
        f"{c.word}: {counted(needed[0], 'case')} needed"
        if needed and c.word == "UNDECIDED"
        else c.word
    )


def _wrapped(line: str, width: int = 96) -> str:
    import textwrap

    clean = " ".join(visible_controls(line).split())
    return textwrap.fill(
        clean, width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
    )


def _md(text: object) -> str:
    """Text in Markdown that stays text: no markup, no table cells, no links, no mentions."""
    clean = " ".join(visible_controls(text).split())
    clean = re.sub(r"([\\`*_{}\[\]()#|<>!~&@])", _entity, clean)
    return clean.replace("://", ":&#47;&#47;")


def _entity(found: re.Match[str]) -> str:
    return found.group() if found.group() in "()!" else f"&#{ord(found.group())};"

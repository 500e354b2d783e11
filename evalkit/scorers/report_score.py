"""Eight checks of a report that need no reference, each with its finding and its place.

They ask whether the parts of a laboratory report are there, in English or in Chinese, not whether
the report is right: that is for the other scorers, and for judges.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from evalkit.records import Case, Finding, Reply, Score
from evalkit.scorers.answer import no_answer
from evalkit.scorers.citations import bib_of, own_entries, trace_citations
from evalkit.scorers.latex import Environment, Tex, parse
from evalkit.scorers.leftovers import boilerplate_in, leftovers_in
from evalkit.scorers.number_reading import numbers_in
from evalkit.scorers.report import Section, sections, tex_of, whole_report

__all__ = ["CHECKS", "Check", "Report", "ReportScore", "report_score"]

_TABLES = ("tabular", "tabular*", "tabularx", "longtable", "tabu", "tblr")
_PLAIN_EQUATIONS = ("equation", "align", "gather", "multline", "eqnarray", "flalign")
_EQUATIONS = {"\\[", "displaymath", *_PLAIN_EQUATIONS, *(f"{n}*" for n in _PLAIN_EQUATIONS)}
_UNCERTAINTY = re.compile(
    r"\b(?:uncertaint(?:y|ies)|error (?:analysis|budget|bars?|propagation|estimates?)"
    r"|(?:systematic|statistical|random|measurement|standard) (?:errors?|deviations?)"
    r"|propagation of errors?)\b|误差|不确定度|标准差|标准偏差",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"(?:\b(?:no|without|omit\w*|skip\w*)\s+(?:\w+\s+){0,2}|没有|未作|未做|无)\Z", re.I
)
_RELATION = re.compile(r"[\w}\])]\s*&?\s*(?:[=<>]|\\(?:approx|sim|le|ge|propto|equiv))")
_QUANTITY = re.compile(r"\d")
_MIN_BODY = 20  # visible characters below which a section says nothing


@dataclass(frozen=True, slots=True)
class Check:
    """One check: its name, whether it holds, what was found, and where (two offsets, or none)."""

    name: str
    passed: bool
    finding: str
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """The checks of one report and their share that holds, 0..1."""

    value: float
    checks: tuple[Check, ...]

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the checks that do not hold."""
        return tuple(check.name for check in self.checks if not check.passed)


def report_score(tex: str, bib: str = "") -> Report:
    r"""Check a LaTeX report without a reference.

    Args:
        tex: The source of the whole report.
        bib: The text of its .bib file. Without it, citations are closed when the document holds
            its own entries, or names a bibliography to take them from.
    """
    parsed = parse(tex)
    checks = tuple(check(parsed, bib) for check in CHECKS)
    return Report(sum(check.passed for check in checks) / len(checks), checks)


def _skeleton(tex: Tex, bib: str) -> Check:
    if tex.problem:
        return Check("skeleton", False, tex.problem)
    top = (0, len(tex.source.partition("\n")[0]))
    if not any(tex.within("document")):
        return Check("skeleton", False, "no \\begin{document}", *top)
    if not any(m.name == "documentclass" and m.preamble for m in tex.macros):
        return Check("skeleton", False, "no \\documentclass before \\begin{document}", *top)
    if tex.faults:
        # what was left open last is the culprit; all around it only seems to be open as well
        left_open = [fault for fault in tex.faults if fault[1].endswith("never closed")]
        at, why = left_open[-1] if left_open else tex.faults[0]
        end = min(at + 1, len(tex.source))
        return Check("skeleton", False, f"line {tex.line(at)}: {why}", at, end)
    return Check("skeleton", True, "class, document and all braces and environments are closed")


def _three_sections(tex: Tex, bib: str) -> Check:
    name = "three_sections"
    pieces = [p for p in sections(tex.source) if p.kind == "section"]
    empty = [p for p in pieces if len(_visible(tex, p.start, p.end)) - len(p.title) < _MIN_BODY]
    filled = len(pieces) - len(empty)
    if filled >= 3:
        return Check(name, True, f"{filled} sections", pieces[0].start, pieces[0].end)
    said = f"{filled} sections with a text; 3 are the least"
    if empty:
        said += f" ({empty[0].title!r} is empty)"
    return Check(name, False, said, *_span((*empty, *pieces)))


def _error_analysis(tex: Tex, bib: str) -> Check:
    name, named = "error_analysis", None
    for found in _UNCERTAINTY.finditer(tex.visible):
        if _DENIED.search(tex.visible, max(0, found.start() - 40), found.start()):
            continue
        named = named or found
        around = tex.visible[max(0, found.start() - 100) : found.end() + 250]
        if "±" in around or _QUANTITY.search(tex.visible, found.end(), found.end() + 250):
            return Check(name, True, f"{found[0]!r}, with a quantity", *_place(tex, found))
    if named:
        return Check(name, False, f"{named[0]!r} without a quantity", *_place(tex, named))
    return Check(name, False, "no uncertainty, standard deviation or error analysis is given")


def _citations_closed(tex: Tex, bib: str) -> Check:
    name = "citations_closed"
    found = trace_citations(tex.source, bib)
    if not found.cited:
        return Check(name, False, "nothing is cited")
    printed = any(tex.named("bibliography", "printbibliography"))
    own = any(own_entries(tex))
    first = found.places[0]
    if not printed and not any(tex.within("thebibliography")):
        return Check(name, False, "no bibliography is printed", first.start, first.end)
    if (bib.strip() or own) and found.undefined:
        place = next(p for p in found.places if p.key == found.undefined[0])
        keys = ", ".join(found.undefined[:5])
        return Check(name, False, f"no entry for {keys}", place.start, place.end)
    return Check(name, True, f"{len(found.cited)} keys cited", first.start, first.end)


def _data_table(tex: Tex, bib: str) -> Check:
    tables = list(tex.within(*_TABLES))
    numbers = [n.start for n in numbers_in(tex.source)] if tables else []
    ends = sorted(m.start for m in tex.named("\\", "tabularnewline"))
    for table in tables:
        rows, held = (
            bisect_left(places, table.end) - bisect_left(places, table.start)
            for places in (ends, numbers)
        )
        if rows >= 2 and held >= 2:
            return Check("data_table", True, f"a table of {held} numbers", table.start, table.end)
    said = "no table holds data (two rows and two numbers are the least)" if tables else "no table"
    return Check("data_table", False, said, *_span(tables))


def _equation(tex: Tex, bib: str) -> Check:
    for found in tex.environments:
        if found.name in _EQUATIONS and _RELATION.search(found.body):
            return Check("equation", True, "a displayed equation", found.start, found.end)
    return Check("equation", False, "no displayed equation that relates two sides")


def _no_boilerplate(tex: Tex, bib: str) -> Check:
    return _absent("no_boilerplate", "assistant boilerplate", tex, boilerplate_in)


def _no_todo(tex: Tex, bib: str) -> Check:
    for macro in tex.named("todo", "lipsum", "blindtext", "missingfigure"):
        return Check("no_todo", False, f"left over: \\{macro.name}", macro.start, macro.end)
    return _absent("no_todo", "left over", tex, leftovers_in)


def _absent(name: str, what: str, tex: Tex, find: Callable[[str], list[tuple[int, int]]]) -> Check:
    if not tex.visible.strip():
        return Check(name, False, "there is no text")
    if found := find(tex.visible):
        start, end = found[0]
        words = " ".join(tex.visible[start:end].split())
        return Check(
            name, False, f"{what}: {words[:80]!r}", tex.where[start], tex.where[end - 1] + 1
        )
    return Check(name, True, "none found")


def _span(found: Sequence[Section | Environment]) -> tuple[int, int] | tuple[None, None]:
    """The place of the first of them."""
    return (found[0].start, found[0].end) if found else (None, None)


def _place(tex: Tex, found: re.Match[str]) -> tuple[int, int]:
    return tex.where[found.start()], tex.where[found.end() - 1] + 1


def _visible(tex: Tex, start: int, end: int) -> str:
    """What a reader sees of a stretch of the source, white space left out."""
    first, last = bisect_left(tex.where, start), bisect_left(tex.where, end)
    return "".join(tex.visible[first:last].split())


CHECKS: tuple[Callable[[Tex, str], Check], ...] = (
    _skeleton,
    _three_sections,
    _error_analysis,
    _citations_closed,
    _data_table,
    _equation,
    _no_boilerplate,
    _no_todo,
)


@dataclass(frozen=True)
class ReportScore:
    """Share of the eight report checks that hold.

    Args:
        into: Name of the whole report in the case's material, when the reply is one section of it.
    """

    VERSION: ClassVar[int] = 1
    into: str = ""

    def __call__(self, case: Case, reply: Reply) -> Score:
        """Check the report of this reply."""
        if (none := no_answer(case, reply)) is not None:
            return none
        report = report_score(whole_report(case, reply, self.into), bib_of(case.material))
        wrong = [check for check in report.checks if not check.passed]
        reason = f"{len(report.checks) - len(wrong)} of {len(report.checks)} checks hold"
        if wrong:
            reason += "; not: " + ", ".join(f"{c.name} ({c.finding})" for c in wrong)
        # offsets are those of the reply; in a report it is put into they would mean nothing
        shift = -1 if self.into else reply.text.find(tex_of(reply.text))
        findings = tuple(
            Finding(f"{c.name}: {c.finding}", _shifted(c.start, shift), _shifted(c.end, shift))
            for c in wrong
        )
        details = {"failed": list(report.failed)}
        return Score(report.value, reason, findings=findings, details=details)


def _shifted(offset: int | None, shift: int) -> int | None:
    return None if offset is None or shift < 0 else offset + shift

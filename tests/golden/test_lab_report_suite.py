"""The golden gates of lab_report: skeleton, prompt shape, gold report, variants."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from evalkit.cases.suite import load_suite
from evalkit.prompts import check_shape, load_prompt, load_shape
from evalkit.records import Case, Reply
from evalkit.scorers import build_scorer
from evalkit.scorers.compile import Compiled, compiles
from evalkit.scorers.confinement import confinement
from evalkit.scorers.discrimination import unproven_scorers
from evalkit.scorers.material import material_gaps
from evalkit.scorers.numbers import trace_sources
from evalkit.scorers.report import replace_section, sections
from evalkit.scorers.report_score import report_score

FOLDER = Path(__file__).resolve().parents[2] / "golden" / "lab_report"
SUITE = load_suite(FOLDER)
PROMPT = load_prompt(FOLDER / "prompts" / "rewrite.md")
RULES = load_shape(FOLDER / "prompts" / "rewrite.md")
LANGUAGES = ("en", "zh")
GOLD_MIN, GENERATED_MIN = 0.75, 0.50
TITLES = {
    "en": ["Introduction", "Method", "Results", "Error analysis", "Conclusion"],
    "zh": ["引言", "方法", "结果", "误差分析", "结论"],
}
VARIANTS = sorted(FOLDER.glob("reports/*/variants/*.tex"))
NEEDS = ("data", "bib", "figure", "uncertainty", "units")
needs_tex = pytest.mark.skipif(
    shutil.which("xelatex") is None or confinement() is None,
    reason="no xelatex here, or no way to confine it",
)


def source(language: str, name: str = "report") -> str:
    return (FOLDER / "reports" / language / f"{name}.tex").read_text(encoding="utf-8")


def material(language: str) -> dict[str, str]:
    files = [p for p in (FOLDER / "materials").iterdir() if p.is_file()]
    files.append(FOLDER / "materials" / language / "notes.md")
    return {path.name: path.read_text(encoding="utf-8") for path in files}


def case_of(language: str, **inputs: str) -> Case:
    given = {**material(language), "report.tex": source(language)}
    return Case("gold", inputs=inputs, material=given)


@pytest.mark.tex
@needs_tex
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_gold_report_really_compiles(language: str) -> None:
    result = compiles(source(language), files=material(language), max_pages=10)
    assert result.status is Compiled.YES, result.sentence
    assert result.pages == 2


@pytest.mark.tex
@needs_tex
def test_a_rewritten_section_compiles_in_its_report() -> None:
    scorer = build_scorer("compiles", {"into": "report.tex"}, FOLDER)
    good = scorer(case_of("zh", section="结论"), Reply("\\section{结论}\n结果为 $9.76$。"))
    bad = scorer(case_of("zh", section="结论"), Reply("\\section{结论}\n结果为 $\\nosuch$。"))
    assert (good.value, bad.value) == (1.0, 0.0)
    assert "\\nosuch" in bad.reason


@pytest.mark.parametrize("case", SUITE.cases, ids=lambda c: c.id)
def test_the_scoped_prompt_keeps_its_shape(case: Case) -> None:
    assert check_shape(PROMPT, RULES, case) == ()


def test_the_shape_demands_only_this_section_and_forbids_a_document() -> None:
    case = SUITE.cases[0]
    system = PROMPT.render(case)[0].content
    assert "only this section" in system
    rule = next(line for line in system.splitlines() if "must not appear" in line)
    assert "\\documentclass" in rule
    assert "\\end{document}" in rule
    for lost in ("only this section", "\\documentclass", "\\end{document}"):
        edited = type(PROMPT)("edited", PROMPT.system.replace(lost, "..."), PROMPT.user)
        assert check_shape(edited, RULES, case), f"losing {lost!r} went unnoticed"


@pytest.mark.parametrize("case", SUITE.cases, ids=lambda c: c.id)
def test_no_gaps_render_byte_identically_to_not_passing_gaps(case: Case) -> None:
    plain = PROMPT.render(case)
    assert PROMPT.render(case, gaps=()) == plain
    assert PROMPT.render(case, gaps=[]) == plain
    assert PROMPT.render(case, gaps=None) == plain
    assert PROMPT.render(case, gaps=["no figure"]) != plain


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_gold_report_parses_into_its_sections(language: str) -> None:
    tex = source(language)
    pieces = sections(tex)
    assert [p.title for p in pieces if p.kind == "section"] == TITLES[language]
    assert [p.kind for p in pieces] == ["front", *["section"] * 5, "back"]
    assert "".join(p.text for p in pieces) == tex


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_case_holds_its_section_as_it_stands_in_the_report(language: str) -> None:
    tex = source(language)
    for case in SUITE.cases:
        if language in case.tags:
            assert replace_section(tex, case.inputs["section"], case.inputs["draft"]) == tex
            assert case.material["report.tex"] == tex


@pytest.mark.parametrize("language", LANGUAGES)
def test_gold_and_bad_reports_keep_their_distance(language: str) -> None:
    bib = material(language)["refs.bib"]
    good, bad = report_score(source(language), bib), report_score(source(language, "bad"), bib)
    assert good.value >= GOLD_MIN, good.failed
    assert bad.value <= 0.35, bad.checks
    assert good.value - bad.value >= 0.40
    floor = next(c for c in SUITE.criteria if c.name == "report_score").min
    assert floor == GENERATED_MIN


@pytest.mark.parametrize("path", VARIANTS, ids=lambda p: f"{p.parts[-3]}-{p.stem}")
def test_each_variant_fails_exactly_the_check_it_is_named_after(path: Path) -> None:
    bib = material(path.parts[-3])["refs.bib"]
    assert report_score(path.read_text(encoding="utf-8"), bib).failed == (path.stem.split("__")[0],)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_gold_report_invents_nothing(language: str) -> None:
    trace = trace_sources(source(language), material(language))
    assert [n.number.text for n in trace.unsourced] == []
    assert (trace.citations.undefined, trace.citations.unused) == ((), ())
    assert len(trace.numbers) > 30


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_material_lacks_nothing_until_a_file_is_taken_away(language: str) -> None:
    files = material(language)
    assert material_gaps(files, NEEDS) == ()
    for name in files:
        rest = {k: v for k, v in files.items() if k != name}
        if name != "notes.md":
            assert material_gaps(rest, NEEDS), f"without {name} nothing is missed"


def test_every_criterion_that_blocks_may_block() -> None:
    assert unproven_scorers(SUITE, run=False) == []  # test_discrimination.py runs the examples


@pytest.mark.parametrize("case", SUITE.cases, ids=lambda c: c.id)
def test_the_unchanged_section_meets_every_criterion_but_the_compiled_one(case: Case) -> None:
    reply = Reply(case.inputs["draft"])
    for criterion in SUITE.criteria:
        if criterion.scorer in (None, "compiles") or not criterion.applies_to(case):
            continue
        score = build_scorer(criterion.scorer, criterion.settings, FOLDER)(case, reply)
        assert score.value == 1.0, f"{criterion.name}: {score.reason}"

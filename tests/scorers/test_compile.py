"""A real xelatex, confined: every end it can come to, and its sentence."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tex_cases import failure_case, failure_file

from evalkit.records import Case, Reply, ScoreStatus
from evalkit.scorers import compile as module
from evalkit.scorers.compile import Compilation, Compiled, Compiles, compiles
from evalkit.scorers.confinement import Limits, confinement
from evalkit.scorers.tex_log import first_error, forbidden_act

needs_tex = pytest.mark.skipif(
    shutil.which("xelatex") is None or confinement() is None,
    reason="no xelatex here, or no way to confine it",
)
tex = pytest.mark.tex


def document(body: str, preamble: str = "") -> str:
    return (
        f"\\documentclass{{article}}\n{preamble}\n\\begin{{document}}\n{body}\n\\end{{document}}\n"
    )


def children() -> list[str]:
    """What this process has started and not seen the end of."""
    tasks = Path("/proc/self/task").glob("*/children")
    return [pid for task in tasks for pid in task.read_text(encoding="ascii").split()]


@pytest.fixture(autouse=True)
def nothing_left_running() -> Iterator[None]:
    before = set(children())  # another test's tracker of resources may live as long as pytest
    yield
    assert set(children()) <= before


def failed(result: Compilation) -> str:
    assert result.status is Compiled.NO, result.sentence
    return result.sentence


@tex
@needs_tex
def test_a_good_report_compiles_and_its_pages_are_counted() -> None:
    result = compiles(document("One.\\newpage Two."))
    assert (result.status, result.pages, result.sentence) == (Compiled.YES, 2, "compiled, 2 pages")


@tex
@needs_tex
@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("\\textbf{a", "File ended while scanning use of \\textbf: a brace is never closed"),
        ("a } b", "line 4: Too many }'s"),
        ("\\mysteryunit{3}", "line 4: Undefined control sequence \\mysteryunit"),
        ("$x", "line 5: Missing $ inserted"),
        ("\\begin{nosuch}x\\end{nosuch}", "line 4: LaTeX Error: Environment nosuch undefined"),
    ],
)
def test_the_first_error_is_one_sentence(body: str, sentence: str) -> None:
    assert failed(compiles(document(body))) == sentence


@tex
@needs_tex
def test_e06_both_files_fail_with_their_first_error() -> None:
    case = failure_case("E06")
    for name, expected in zip(case["input"]["tex_files"], case["expected"]["value"], strict=True):
        sentence = failed(compiles(failure_file(name)))
        assert expected["error_mentions"] in sentence or expected.get("or", "\0") in sentence


@tex
@needs_tex
def test_an_endless_loop_is_stopped() -> None:
    result = compiles(document("\\loop\\iftrue\\repeat"), limits=Limits(timeout_s=1.5))
    assert failed(result).startswith("stopped after 1.5 s: an endless loop")


@tex
@needs_tex
def test_a_shell_command_is_refused_and_not_run() -> None:
    result = compiles(document("\\immediate\\write18{touch /job/ran}a"))
    assert failed(result) == (
        "the document asks for a shell command (\\write18), which is not allowed: touch /job/ran"
    )


@tex
@needs_tex
@pytest.mark.parametrize(
    "body",
    [
        "\\input{/etc/passwd}",
        "\\newread\\r\\openin\\r=/etc/passwd \\read\\r to\\x \\x",
        '\\font\\x="[/etc/passwd]" \\x a',
        '\\XeTeXpicfile "/etc/passwd" a',
        "\\input{../../etc/passwd}",
    ],
)
def test_reading_outside_is_refused(body: str) -> None:
    sentence = failed(compiles(document(body)))
    assert "tries to read" in sentence
    assert sentence.endswith("etc/passwd, outside its own folder")


@tex
@needs_tex
def test_what_a_document_reads_elsewhere_is_never_typeset(tmp_path: Path) -> None:
    secret = tmp_path / "secret.tex"
    secret.write_text("PLANTED SECRET", encoding="utf-8")
    result = compiles(document(f"\\input{{{secret}}}"))
    assert "outside its own folder" in failed(result)
    assert "PLANTED" not in result.log


@tex
@needs_tex
@pytest.mark.parametrize("place", ["../out.tex", "/tmp/out.tex"])
def test_writing_outside_is_refused(place: str) -> None:
    body = f"\\newwrite\\w\\immediate\\openout\\w={place} \\immediate\\write\\w{{a}}b"
    assert failed(compiles(document(body))) == (
        f"the document tries to write {place}, outside its own folder"
    )
    assert not Path("/tmp/out.tex").exists()


@tex
@needs_tex
@pytest.mark.slow
def test_a_2000_page_document_is_too_long() -> None:
    body = "\\newcount\\n\\loop\\ifnum\\n<2000 \\advance\\n1 page\\newpage\\repeat"
    result = compiles(document(body))
    assert failed(result) == "2,000 pages; 100 are allowed"
    assert result.pages == 2000


@tex
@needs_tex
def test_output_without_end_is_stopped() -> None:
    body = "\\loop\\immediate\\write-1{" + "a" * 60 + "}\\iftrue\\repeat"
    result = compiles(document(body), limits=Limits(timeout_s=20, output_mb=1))
    assert failed(result) == "stopped: it wrote more than 1 MB or too many files"


@tex
@needs_tex
def test_memory_without_end_is_an_error_of_the_engine() -> None:
    body = "\\def\\x{aaaaaaaa}\\loop\\edef\\x{\\x\\x}\\iftrue\\repeat"
    assert "TeX capacity exceeded" in failed(compiles(document(body)))


@tex
@needs_tex
@pytest.mark.parametrize(
    ("preamble", "package"),
    [
        ("\\usepackage{nosuchpackage}", "apt-file search nosuchpackage.sty"),
        ("\\usepackage{fontspec}\\setmainfont{No Such Font}", "the font No Such Font is missing"),
    ],
)
def test_a_missing_package_or_font_is_named(preamble: str, package: str) -> None:
    assert package in failed(compiles(document("a", preamble)))


@tex
@needs_tex
@pytest.mark.parametrize("text", ["", "\x00\ud800 binary", "plain text", "\\relax"])
def test_what_is_no_document_fails_with_a_sentence(text: str) -> None:
    assert failed(compiles(text))


@tex
@needs_tex
def test_files_stand_beside_the_document() -> None:
    files = {"part/data.tex": "included \\newpage", "../out.tex": "x", "b.bin": b"\x00\xff"}
    result = compiles(document("\\input{part/data}second"), files=files)
    assert (result.status, result.pages) == (Compiled.YES, 2)
    assert failed(compiles(document("\\input{other}"))).endswith(
        "the file other.tex is not beside the report"
    )


def test_without_an_engine_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.shutil, "which", lambda name: None)
    score = Compiles()(Case("c"), Reply(document("a")))
    assert (score.value, score.status) == (None, ScoreStatus.NOT_MEASURED)
    assert "texlive-xetex" in score.reason


def test_without_confinement_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(module, "confinement", lambda: None)
    score = Compiles()(Case("c"), Reply(document("a")))
    assert (score.value, score.status) == (None, ScoreStatus.NOT_MEASURED)
    assert "bubblewrap" in score.reason


@tex
@needs_tex
def test_the_scorer_gives_1_or_0_with_the_reason() -> None:
    good = Compiles()(Case("c"), Reply("```latex\n" + document("a") + "```"))
    bad = Compiles(max_pages=1)(Case("c"), Reply(document("a\\newpage b")))
    assert (good.value, good.details["pages"]) == (1.0, 1)
    assert (bad.value, bad.reason) == (0.0, "2 pages; 1 are allowed")
    assert Compiles()(Case("c"), Reply("")).reason == "no answer: the reply is empty"


# The log


@pytest.mark.parametrize(
    ("log", "sentence", "line"),
    [
        ("", "", None),
        ("This is fine\n", "", None),
        ("./report.tex:3: Undefined control sequence.\nl.3 Value: \\unit\n", "\\unit", 3),
        ("! Missing $ inserted.\n<inserted text>\nl.7 x_1\n", "line 7: Missing $ inserted", 7),
        (
            "./report.tex:2: LaTeX Error: File `siunitx.sty' not found.\n",
            "the LaTeX package siunitx is missing; it comes with Debian's texlive-science",
            2,
        ),
        (
            "./report.tex:2: LaTeX Error: File `biblatex.sty' not found.\n",
            "texlive-bibtex-extra",
            2,
        ),
        (
            "./report.tex:9: Font \\x=pzdr at 10.0pt not loadable: Metric (TFM) file not found.\n",
            "the font metric pzdr is missing; it comes with Debian's texlive-fonts-recommended",
            9,
        ),
        (
            "./report.tex:4: Package fontspec Error: \n(fontspec)                The font "
            '"WenQuanYi Micro\n(fontspec)                Hei" cannot be found; this may be\n',
            "the font WenQuanYi Micro Hei is missing; it comes with Debian's fonts-wqy-microhei",
            4,
        ),
        ("! Emergency stop.\n<*> report.tex\n", "no legal \\end found", None),
    ],
)
def test_a_log_becomes_a_sentence(log: str, sentence: str, line: int | None) -> None:
    said, at = first_error(log)
    assert sentence in said
    assert at == line


def test_forbidden_acts_are_seen_in_log_and_stderr() -> None:
    assert forbidden_act("", "") == ""
    refused = "xelatex: Not writing to ../x (openout_any = p).\n"
    assert forbidden_act("", refused) == "tries to write ../x, outside its own folder"
    assert "rm -rf" in forbidden_act("runsystem(rm -rf .)...disabled.\n", "")

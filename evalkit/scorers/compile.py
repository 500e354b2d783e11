r"""Whether a report really compiles: xelatex, confined, in a throw-away folder, within limits.

No shell escape, no network, only the TeX trees and the fonts to read, one folder to write. Without
an engine, or where it cannot be confined, the result is *not measured*, never a pass.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import ClassVar

from evalkit.records import Case, Finding, Reply, Score, ScoreStatus
from evalkit.scorers.answer import no_answer
from evalkit.scorers.confinement import (
    Ended,
    Limits,
    confinement,
    read_regular,
    run_confined,
    write_inside,
)
from evalkit.scorers.report import whole_report
from evalkit.scorers.tex_log import first_error, forbidden_act

__all__ = ["Compilation", "Compiled", "Compiles", "compiles"]

_NAME = "report"
_LOG_LIMIT = 2_000_000
_FONT_PLACES = (
    "/usr/share/fonts", "/usr/local/share/fonts", "/usr/share/fontconfig", "/etc/fonts",
    "/var/cache/fontconfig", "/usr/share/xml/fontconfig",
)  # fmt: skip


class Compiled(StrEnum):
    """The three ends of a compilation."""

    YES = "compiled"
    NO = "not compiled"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Compilation:
    """What became of a document; `sentence` says why, `pages` is None when there is no PDF."""

    status: Compiled
    sentence: str
    pages: int | None = None
    line: int | None = None
    seconds: float = 0.0
    log: str = ""


def compiles(
    tex: str,
    *,
    files: Mapping[str, str | bytes] | None = None,
    limits: Limits | None = None,
    max_pages: int = 100,
) -> Compilation:
    """Compile a document once with xelatex, confined.

    Args:
        tex: The whole document.
        files: What stands beside it (figures, data, .bib), by relative name.
        limits: Time, memory and output; 30 s, 1 GB and 20 MB when not given.
        max_pages: A PDF with more pages is a failure.
    """
    limits = limits or Limits()
    if not (engine := shutil.which("xelatex")):
        return Compilation(
            Compiled.NOT_MEASURED,
            "no xelatex here; Debian's texlive-xetex texlive-latex-recommended "
            "texlive-fonts-recommended lmodern have what reports need",
        )
    if (jail := confinement()) is None:
        return Compilation(
            Compiled.NOT_MEASURED,
            "xelatex cannot be confined here; install bubblewrap, or allow user namespaces",
        )
    with tempfile.TemporaryDirectory(prefix="evalkit-tex-", ignore_cleanup_errors=True) as place:
        folder = Path(place)
        for name, content in {**(files or {}), f"{_NAME}.tex": tex}.items():
            write_inside(folder, name, content)
        outcome = run_confined(
            jail,
            ["/usr/bin/xelatex", "-no-shell-escape", "-interaction=nonstopmode",
             "-file-line-error", f"{_NAME}.tex"],
            folder=folder,
            readable=_tex_places(engine),
            env=_ENVIRONMENT,
            limits=limits,
        )  # fmt: skip
        log = (read_regular(folder / f"{_NAME}.log", _LOG_LIMIT) or b"").decode("utf-8", "replace")
        pdf = read_regular(folder / f"{_NAME}.pdf", limits.output_mb * 2**20 + 1) or b""

    def failed(sentence: str, line: int | None = None, pages: int | None = None) -> Compilation:
        return Compilation(Compiled.NO, sentence, pages, line, outcome.seconds, log[-20_000:])

    if act := forbidden_act(log, outcome.stderr):
        return failed(f"the document {act}")
    if outcome.ended is Ended.TIME:
        return failed(
            f"stopped after {limits.timeout_s:g} s: an endless loop, or far too much to typeset"
        )
    if outcome.ended is Ended.OUTPUT:
        return failed(f"stopped: it wrote more than {limits.output_mb} MB or too many files")
    sentence, line = first_error(log)
    if sentence or outcome.returncode:
        if not sentence:
            sentence = _silent_end(log, outcome.returncode, outcome.stderr)
        return failed(sentence, line)
    pages = _pages(pdf)
    if not pages:
        return failed("xelatex ended without an error, but there is no PDF with a page in it")
    if pages > max_pages:
        return failed(f"{pages:,} pages; {max_pages:,} are allowed", pages=pages)
    plural = "page" if pages == 1 else "pages"
    return Compilation(Compiled.YES, f"compiled, {pages} {plural}", pages, None, outcome.seconds)


_ENVIRONMENT = {
    "PATH": "/usr/bin", "HOME": "/job", "TEXMFHOME": "/job/.texmf", "TEXMFVAR": "/job/.texmf",
    "XDG_CACHE_HOME": "/job/.cache", "LANG": "C.UTF-8", "max_print_line": "10000",
    "error_line": "254", "half_error_line": "238", "openin_any": "p", "openout_any": "p",
    "shell_escape": "f", "MKTEXPK": "0", "MKTEXTFM": "0", "MKTEXMF": "0", "SOURCE_DATE_EPOCH": "0",
}  # fmt: skip


@lru_cache(maxsize=1)
def _tex_places(engine: str) -> tuple[Path | tuple[Path, str], ...]:
    """The engine, its driver, and the trees that kpathsea names."""
    trees = subprocess.run(
        ["kpsewhich", "-expand-var", "$TEXMFROOT:$TEXMFDIST:$TEXMFMAIN:$TEXMFLOCAL:$TEXMFSYSVAR:"
         "$TEXMFSYSCONFIG:$TEXMFDEBIAN"],
        capture_output=True, text=True, check=False, timeout=20, stdin=subprocess.DEVNULL,
    ).stdout.strip()  # fmt: skip
    places = [Path(p) for p in (*trees.split(":"), *_FONT_PLACES) if p.startswith("/")]
    programs: list[tuple[Path, str]] = [(Path(engine), "/usr/bin/xelatex")]
    for name in ("xdvipdfmx", "kpsewhich"):
        if found := shutil.which(name):
            programs.append((Path(found), f"/usr/bin/{name}"))
    return (*programs, *dict.fromkeys(p for p in places if p.is_dir()))


def _silent_end(log: str, returncode: int, stderr: str) -> str:
    if "no legal \\end found" in log:
        return "no legal \\end found: \\end{document} is missing"
    last = next((s for s in reversed(stderr.splitlines()) if s.strip()), "")
    return f"xelatex ended with status {returncode}" + (f": {last[:200]}" if last else "")


def _pages(pdf: bytes) -> int:
    if not pdf.startswith(b"%PDF"):
        return 0
    import logging

    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        return len(PdfReader(BytesIO(pdf)).pages)
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return 0


@dataclass(frozen=True)
class Compiles:
    """1.0 when the report in the reply compiles, 0.0 with the first error when it does not.

    Args:
        into: Name of the whole report in the case's material, when the reply is one section of it.
        timeout_s: Seconds of wall-clock time.
        memory_mb: Megabytes of address space.
        output_mb: Megabytes of output, PDF and log together.
        max_pages: Pages a report may have.
    """

    VERSION: ClassVar[int] = 1
    into: str = ""
    timeout_s: float = 30.0
    memory_mb: int = 1024
    output_mb: int = 20
    max_pages: int = 100

    def __call__(self, case: Case, reply: Reply) -> Score:
        """Compile the report of this reply."""
        if (none := no_answer(case, reply)) is not None:
            return none
        result = compiles(
            whole_report(case, reply, self.into),
            files=dict(case.material),
            limits=Limits(self.timeout_s, self.memory_mb, self.output_mb),
            max_pages=self.max_pages,
        )
        details = {"pages": result.pages, "line": result.line}
        if result.status is Compiled.NOT_MEASURED:
            return Score(None, result.sentence, status=ScoreStatus.NOT_MEASURED)
        if result.status is Compiled.YES:
            return Score(1.0, result.sentence, details=details)
        return Score(0.0, result.sentence, findings=(Finding(result.sentence),), details=details)

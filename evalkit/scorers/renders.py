"""Whether figure code written by a model really draws: matplotlib, confined, a PNG comes out.

The imports are checked on the syntax tree, which gives a clear sentence early but is no jail: the
code runs under bwrap or in namespaces of its own, with limits. Where it cannot be confined, or
without matplotlib (extra `figures`), the result is *not measured*.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import sys
import tempfile
import warnings
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

from evalkit.hashing import clean_text
from evalkit.records import Case, Finding, Reply, Score, ScoreStatus
from evalkit.scorers.answer import no_answer
from evalkit.scorers.confinement import (
    WORK,
    Ended,
    Jail,
    Limits,
    Outcome,
    confinement,
    read_regular,
    run_confined,
    write_inside,
)
from evalkit.scorers.thinking import visible_text

__all__ = ["Rendering", "Renders", "renders"]

_STANDARD = (
    "math cmath statistics random itertools functools collections csv json io datetime decimal "
    "fractions pathlib typing dataclasses textwrap __future__"
)
ALLOWED = frozenset(["matplotlib", "mpl_toolkits", "numpy", "pandas", "scipy", *_STANDARD.split()])
MAX_CHARS = 100_000
_FENCE = re.compile(r"^```(?:python|py|python3)?[ \t]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_SCRIPT, _RUN, _CONFIG = "figure.py", ".run.py", ".mpl"
# Runs the figure code, then saves what it drew but did not save.
_RUNNER = """
import pathlib, runpy, sys, warnings
warnings.simplefilter("ignore")
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
plt.show = lambda *a, **k: None
try:
    runpy.run_path("figure.py", run_name="__main__")
except BaseException as error:
    trace, number = error.__traceback__, 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.endswith("figure.py"):
            number = trace.tb_lineno
        trace = trace.tb_next
    if not (isinstance(error, SystemExit) and error.code in (None, 0)):
        print(f"\\n@@line {number}: {type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(9)
if not list(pathlib.Path(".").rglob("*.png")):
    for n in plt.get_fignums():
        plt.figure(n).savefig(f"figure-{n}.png")
"""


@dataclass(frozen=True, slots=True)
class Rendering:
    """What became of figure code: `drawn` is None when it was not measured."""

    drawn: bool | None
    sentence: str
    pngs: Mapping[str, bytes]
    line: int | None = None
    seconds: float = 0.0


def renders(
    code: str, *, files: Mapping[str, str | bytes] | None = None, limits: Limits | None = None
) -> Rendering:
    """Run figure code confined and look at the PNG it draws.

    Args:
        code: Python; a figure that it leaves open is saved for it.
        files: Data it may read, by relative name.
        limits: Time, memory and output; 30 s, 2 GB and 20 MB when not given.
    """
    limits = limits or Limits(memory_mb=2048)
    if objection := _objection(code):
        return Rendering(False, objection[1], {}, objection[0])
    if importlib.util.find_spec("matplotlib") is None:
        return Rendering(None, 'no matplotlib here; it comes with the extra "figures"', {})
    if (jail := confinement()) is None:
        return Rendering(
            None,
            "figure code cannot be confined here; install bubblewrap, or allow user namespaces",
            {},
        )
    with tempfile.TemporaryDirectory(prefix="evalkit-fig-", ignore_cleanup_errors=True) as place:
        folder = Path(place)
        given = {**(files or {}), **_font_list(jail), _SCRIPT: code, _RUN: _RUNNER}
        for name, content in given.items():
            write_inside(folder, name, content)
        outcome = _python(jail, folder, limits)
        pngs = dict(_new_pngs(folder, limits.output_mb * 2**20, given))
    if outcome.ended is Ended.TIME:
        sentence = f"stopped after {limits.timeout_s:g} s: an endless loop, or far too much to draw"
        return Rendering(False, sentence, pngs, None, outcome.seconds)
    if outcome.ended is Ended.OUTPUT:
        sentence = f"stopped: it wrote more than {limits.output_mb} MB or too many files"
        return Rendering(False, sentence, {}, None, outcome.seconds)
    if outcome.returncode:
        line, sentence = _failure(outcome.stderr, outcome.returncode)
        return Rendering(False, sentence, pngs, line, outcome.seconds)
    drawn = {name: png for name, png in pngs.items() if is_drawing(png)}
    if drawn:
        names = ", ".join(sorted(drawn))
        return Rendering(True, f"drew {names}", drawn, None, outcome.seconds)
    sentence = "the PNG is empty: one colour only" if pngs else "it ran, but drew no PNG"
    return Rendering(False, sentence, pngs, None, outcome.seconds)


def _objection(code: str) -> tuple[int | None, str] | None:
    """Why this code is not even started, and the line."""
    if len(code) > MAX_CHARS:
        return None, f"{len(code):,} characters of code; {MAX_CHARS:,} are allowed"
    if not code.strip():
        return None, "there is no code"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(clean_text(code))
    except SyntaxError as error:
        at = f"line {error.lineno}: " if error.lineno else ""
        return error.lineno, f"{at}not Python: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return None, f"not Python: {str(error) or 'nested too deeply'}"
    for node in ast.walk(tree):
        if name := _forbidden(node):
            line = getattr(node, "lineno", None)
            return line, f"line {line}: {name} is not allowed; figures need {_ALLOWED_SAID}"
    return None


_ALLOWED_SAID = "matplotlib, numpy, pandas, scipy and plain parts of the standard library"


def _forbidden(node: ast.AST) -> str:
    if isinstance(node, ast.Import):
        modules = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        modules = [node.module or ""] if not node.level else ["a relative import"]
    else:
        named = isinstance(node, ast.Name) and node.id in ("__import__", "exec", "eval")
        return node.id if named and isinstance(node, ast.Name) else ""
    wrong = [name for name in modules if name.partition(".")[0] not in ALLOWED]
    return f"import of {wrong[0]}" if wrong else ""


def _python(jail: Jail, folder: Path, limits: Limits) -> Outcome:
    """Run `.run.py` with this interpreter and its libraries, both of them read-only."""
    program = Path(sys.executable).resolve()
    libraries = [Path(p) for p in sys.path if p.endswith(("site-packages", "dist-packages"))]
    return run_confined(
        jail,
        [str(program), "-B", "-s", _RUN],
        folder=folder,
        readable=(program, Path(sys.base_prefix), *libraries, Path("/usr/share/fonts")),
        env={
            "PATH": "/usr/bin", "HOME": WORK, "TMPDIR": WORK, "MPLBACKEND": "Agg",
            "MPLCONFIGDIR": f"{WORK}/{_CONFIG}", "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1", "LANG": "C.UTF-8",
            "PYTHONPATH": os.pathsep.join(map(str, libraries)),
        },
        limits=limits,
    )  # fmt: skip


@lru_cache(maxsize=1)
def _font_list(jail: Jail) -> dict[str, bytes]:
    """Matplotlib's list of fonts, made once by code of ours: it takes longer than most figures."""
    with tempfile.TemporaryDirectory(prefix="evalkit-fig-") as place:
        folder = Path(place)
        write_inside(folder, _RUN, "import matplotlib.font_manager")
        _python(jail, folder, Limits(memory_mb=2048))
        made = sorted((folder / _CONFIG).glob("*.json"))
        return {f"{_CONFIG}/{p.name}": read_regular(p, 5_000_000) or b"" for p in made}


def _failure(stderr: str, returncode: int) -> tuple[int | None, str]:
    said = re.findall(r"^@@line (\d+): (.*)", stderr, re.MULTILINE)
    if said:
        number, what = int(said[-1][0]), said[-1][1][:300]
        return (number or None), (f"line {number}: {what}" if number else what)
    last = next((line for line in reversed(stderr.splitlines()) if line.strip()), "")
    return None, f"ended with status {returncode}" + (f": {last[:200]}" if last else "")


def _new_pngs(
    folder: Path, limit: int, given: Mapping[str, str | bytes]
) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*.png"))[:20]:
        name = path.relative_to(folder).as_posix()
        if name not in given and (content := read_regular(path, limit)):
            yield name, content


def is_drawing(png: bytes) -> bool:
    """True for a PNG with more than one colour in it; decodes at most 16 MB, row filters kept.

    An image of one colour leaves, after filtering, a handful of different bytes; the edges of
    lines and letters leave many.
    """
    if not png.startswith(b"\x89PNG\r\n\x1a\n"):
        return False
    at, packed = 8, bytearray()
    while at + 8 <= len(png):
        length = int.from_bytes(png[at : at + 4], "big")
        if png[at + 4 : at + 8] == b"IDAT":
            packed += png[at + 8 : at + 8 + length]
        at += 12 + length
    try:
        raw = zlib.decompressobj().decompress(bytes(packed), 16 * 2**20)
    except zlib.error:
        return False
    return len(set(raw)) > 12


@dataclass(frozen=True)
class Renders:
    """1.0 when the figure code in the reply draws a PNG, 0.0 with the reason when it does not.

    The files of the case's material are there for it to read.

    Args:
        timeout_s: Seconds of wall-clock time.
        memory_mb: Megabytes of address space.
        output_mb: Megabytes of output.
    """

    VERSION: ClassVar[int] = 1
    timeout_s: float = 30.0
    memory_mb: int = 2048
    output_mb: int = 20

    def __call__(self, case: Case, reply: Reply) -> Score:
        """Run the figure code of this reply."""
        if (none := no_answer(case, reply)) is not None:
            return none
        result = renders(
            code_of(reply.text),
            files=dict(case.material),
            limits=Limits(self.timeout_s, self.memory_mb, self.output_mb),
        )
        if result.drawn is None:
            return Score(None, result.sentence, status=ScoreStatus.NOT_MEASURED)
        details = {"pngs": {name: len(png) for name, png in result.pngs.items()}}
        findings = () if result.drawn else (Finding(result.sentence),)
        return Score(float(result.drawn), result.sentence, findings=findings, details=details)


def code_of(text: str) -> str:
    """The Python of a reply: its first code fence, or all of it when there is none."""
    shown = visible_text(text)
    found = _FENCE.search(shown) if "```" in shown else None
    return found[1] if found else shown

"""Figure code really draws, confined; or the sentence says why not."""

from __future__ import annotations

import importlib.util
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tex_cases import HOSTILE

from evalkit.records import Case, Reply, ScoreStatus
from evalkit.scorers import renders as module
from evalkit.scorers.confinement import Limits, confinement
from evalkit.scorers.renders import Renders, code_of, is_drawing, renders

needs_jail = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None or confinement() is None,
    reason="no matplotlib here, or no way to confine it",
)
PLOT = "import matplotlib.pyplot as plt\n"
BOUNDS = Limits(timeout_s=20, memory_mb=2048, output_mb=5)


@needs_jail
def test_a_figure_is_drawn_from_the_material_and_comes_out_as_png() -> None:
    code = (
        f"{PLOT}import csv\nrows = list(csv.DictReader(open('d.csv')))\n"
        "plt.plot([float(r['x']) for r in rows], 'o-')\nplt.savefig('out/fit.png')\n"
    ).replace("plt.savefig", "import pathlib\npathlib.Path('out').mkdir()\nplt.savefig")
    result = renders(code, files={"d.csv": "x\n1\n3\n2\n", "old.png": b"\x89PNG"})
    assert (result.drawn, result.sentence) == (True, "drew out/fit.png")
    assert is_drawing(result.pngs["out/fit.png"])


@needs_jail
@pytest.mark.parametrize("end", ["", "plt.show()"])
def test_a_figure_left_open_is_saved_for_it(end: str) -> None:
    assert renders(f"{PLOT}plt.plot([1, 3, 2])\n{end}").sentence == "drew figure-1.png"


@needs_jail
@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("x = 1", "it ran, but drew no PNG"),
        (f"{PLOT}plt.figure().savefig('a.png')", "the PNG is empty: one colour only"),
        (f"{PLOT}plt.plot(undefined)", "line 2: NameError: name 'undefined' is not defined"),
        (f"{PLOT}open('/etc/passwd')", "line 2: FileNotFoundError"),
        (f"{PLOT}open('/usr/lib/x', 'w')", "line 2: OSError: [Errno 30] Read-only file system"),
        ("import numpy as np\nnp.ones((9000, 9000, 99))", "line 2: MemoryError"),
        ("f = open('x', 'w')\nwhile True: f.write('x' * 9999)", "stopped: it wrote more than 5 MB"),
        (
            "import pathlib\npathlib.Path('a.png').symlink_to('/etc/passwd')",
            "it ran, but drew no PNG",
        ),
        ("raise SystemExit(3)", "line 1: SystemExit: 3"),
    ],
)
def test_code_that_does_not_draw_says_why(code: str, sentence: str) -> None:
    result = renders(code, limits=BOUNDS)
    assert result.drawn is False
    assert result.sentence.startswith(sentence)


@needs_jail
def test_an_endless_loop_is_stopped() -> None:
    result = renders("while True: pass", limits=Limits(timeout_s=1.5, memory_mb=2048))
    assert result.sentence.startswith("stopped after 1.5 s: an endless loop")


@needs_jail
def test_the_network_is_out_of_reach_whatever_the_syntax_tree_says() -> None:
    code = (
        "import matplotlib\nsocket = matplotlib.sys.modules['importlib'].import_module('socket')\n"
        "socket.create_connection(('127.0.0.1', 9), 1)\n"
    )
    assert "OSError" in renders(code).sentence or "Refused" in renders(code).sentence


@needs_jail
def test_the_project_itself_is_out_of_sight() -> None:
    tree = Path(__file__).resolve().parents[2]
    code = (
        f"import pathlib\nassert pathlib.Path({str(tree / 'pyproject.toml')!r}).exists(), 'unseen'"
    )
    assert renders(code).sentence == "line 2: AssertionError: unseen"


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("", "there is no code"),
        ("x = (", "line 1: not Python: '(' was never closed"),
        ("import os", "line 1: import of os is not allowed"),
        ("import numpy, socket.x", "line 1: import of socket.x is not allowed"),
        ("x = 1\nfrom subprocess import run", "line 2: import of subprocess is not allowed"),
        ("from . import x", "line 1: import of a relative import is not allowed"),
        ("def f():\n    import ctypes", "line 2: import of ctypes is not allowed"),
        ("__import__('os')", "line 1: __import__ is not allowed"),
        ("exec('1')", "line 1: exec is not allowed"),
        ("x\0", "not Python"),
        ("#" * 100_001, "100,001 characters of code; 100,000 are allowed"),
        ("-" * 90_000 + "1", "not Python"),
    ],
)
def test_code_that_is_not_started_says_why(code: str, sentence: str) -> None:
    result = renders(code)
    assert result.drawn is False
    assert result.sentence.startswith(sentence)


def test_without_matplotlib_or_confinement_nothing_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reply = Reply(f"{PLOT}plt.plot([1])")
    monkeypatch.setattr(module, "confinement", lambda: None)
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: object())
    score = Renders()(Case("c"), reply)
    assert (score.value, score.status) == (None, ScoreStatus.NOT_MEASURED)
    assert "bubblewrap" in score.reason
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    score = Renders()(Case("c"), reply)
    assert (score.value, score.status) == (None, ScoreStatus.NOT_MEASURED)
    assert '"figures"' in score.reason


@needs_jail
def test_the_scorer_runs_the_code_of_the_reply() -> None:
    case = Case("c", material={"d.csv": "1\n"})
    good = Renders()(case, Reply(f"Here:\n```python\n{PLOT}plt.plot([1, 2])\n```\nDone."))
    bad = Renders()(case, Reply(f"```python\n{PLOT}plt.nosuch()\n```"))
    assert (good.value, list(good.details["pngs"])) == (1.0, ["figure-1.png"])
    assert bad.value == 0.0
    assert "line 2: AttributeError" in bad.reason


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("x = 1", "x = 1"),
        ("Look:\n```python\nx = 1\n```\n", "x = 1\n"),
        ("```\nx = 1\n```\n```python\ny\n```", "x = 1\n"),
        ("<think>y</think>x = 1", "x = 1"),
    ],
)
def test_the_code_of_a_reply_is_its_first_fence(text: str, code: str) -> None:
    assert code_of(text) == code


def png(pixels: bytes, width: int = 8) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    rows = b"".join(b"\0" + pixels[i : i + width] for i in range(0, len(pixels), width))
    header = struct.pack(">IIBBBBB", width, len(pixels) // width, 8, 0, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def test_a_png_of_one_colour_is_no_drawing() -> None:
    assert not is_drawing(png(b"\xff" * 64))
    assert is_drawing(png(bytes(range(64))))
    assert not is_drawing(b"")
    assert not is_drawing(png(bytes(range(64)))[:50])
    assert not is_drawing(b"\x89PNG\r\n\x1a\n" + b"\xff" * 100)


def test_a_png_that_unpacks_without_end_is_read_in_part() -> None:
    bomb = png(b"\0" * 20_000_000, width=1_000_000)
    assert not is_drawing(bomb)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_png_or_not(data: bytes) -> None:
    assert is_drawing(b"\x89PNG\r\n\x1a\n" + data) in (True, False)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_replies_get_a_score_with_a_reason(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "confinement", lambda: None)  # what is Python may not start here
    assert Renders()(Case("c"), Reply(text)).reason


@given(st.text(max_size=80))
def test_any_text_gets_an_objection_or_none(text: str) -> None:
    found = module._objection(text)  # pyright: ignore[reportPrivateUsage]
    assert found is None or found[1]

"""How a script ends: the verdict's status, or 4; never the status of an accident."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from mini_suite import write_suite

ROOT = Path(__file__).resolve().parents[1]
FLOOR = '[[criteria]]\nname = "says_word"\nscorer = "contains"\nexpected = "word"\nmin = 0.9\n'
APP = """import os, signal, time
def answer(case, prompt):
    if case.id == "c020":
        exec(os.environ["AT_20"])
    return os.environ.get("SAYS", case.inputs["word"])
"""
COMMAND = [sys.executable, str(ROOT / "notebooks" / "gate.py"), "--suite", "golden/mini"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A suite whose task is Python: it does what the environment says at one case."""
    folder = write_suite(tmp_path / "golden" / "mini", criteria=FLOOR, cases=40)
    head, tail = (folder / "suite.toml").read_text().split("kind = ", 1)
    text = f'{head}kind = "python"\nentry = "app:answer"\n[sampling]{tail.split("[sampling]")[1]}'
    (folder / "suite.toml").write_text(text)
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "pyproject.toml").write_text("")
    return tmp_path


def start(project: Path, at_20: str = "pass", **how: Any) -> subprocess.Popen[str]:
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
    environment = {**os.environ, "AT_20": at_20, "PYTHONPATH": str(project)}
    return subprocess.Popen(
        [*COMMAND, "--run-live"], cwd=project, text=True, env=environment, **how
    )


@pytest.mark.parametrize(
    ("at_20", "how"),
    [
        ("os._exit(0)", "with status 0"),
        ("os._exit(1)", "with status 1"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "by SIGKILL"),
        ("import ctypes; ctypes.string_at(0)", "by SIGSEGV"),
    ],
)
def test_what_ends_before_its_verdict_ends_with_4(project: Path, at_20: str, how: str) -> None:
    said, error = (done := start(project, at_20)).communicate(timeout=120)
    assert (done.returncode, said) == (4, "")
    assert f"broken: the process was ended {how} before it reached a verdict" in error


def test_an_interrupt_from_outside_reaches_the_work(project: Path) -> None:
    done = start(project, "open('here', 'w').close(); time.sleep(60)", start_new_session=True)
    while not (project / "here").exists():
        assert done.poll() is None
        time.sleep(0.05)
    done.send_signal(signal.SIGINT)
    _, error = done.communicate(timeout=60)
    assert done.returncode == 4
    assert "interrupted: what arrived is kept" in error


def test_work_for_nobody_is_not_gone_on_with(project: Path) -> None:
    at_20 = "open('here', 'w').write(str(os.getpid())); time.sleep(60)"
    done = start(project, at_20, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (project / "here").exists() or not (project / "here").read_text():
        assert done.poll() is None
        time.sleep(0.05)
    done.kill()
    done.wait()
    worker = int((project / "here").read_text())
    for _ in range(200):
        if not _alive(worker):
            return
        time.sleep(0.05)
    os.kill(worker, signal.SIGKILL)
    pytest.fail("the worker went on without the process that was started")


def _alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.parametrize(("says", "status"), [("", 0), ("something else", 1)])
def test_a_verdict_that_nobody_reads_keeps_its_status(
    project: Path, says: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if says:
        monkeypatch.setenv("SAYS", says)
    reader, writer = os.pipe()
    os.close(reader)
    done = start(project, stdout=writer)
    os.close(writer)
    _, error = done.communicate(timeout=120)
    assert done.returncode == status
    assert "stdout is closed; the verdict was: " in error
    with Path("/dev/full").open("w") as full:
        done = start(project, stdout=full)
        _, error = done.communicate(timeout=120)
    assert (done.returncode, "the verdict was: " in error) == (status, True)


def test_progress_that_nobody_reads_ends_no_run(project: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = start(project, stdout=writer, stderr=writer)
    os.close(writer)
    assert done.wait(timeout=120) == 0


def test_help_and_a_wrong_flag_keep_their_status(project: Path) -> None:
    for flag, status in (("--help", 0), ("--nope", 2)):
        done = subprocess.run([*COMMAND, flag], cwd=project, capture_output=True, check=False)
        assert done.returncode == status, done.stderr


def test_closed_streams_are_replaced_before_a_file_takes_their_place(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from evalkit.ending import begin_script, end_script\n"
        "begin_script(__name__)\n"
        "assert open(__file__).fileno() > 2\n"
        "end_script('PASS: a verdict', 0)\n"
    )
    close = f"exec {sys.executable} {script} "
    done = subprocess.run(["sh", "-c", close + ">&-"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stderr == "stdout is closed; the verdict was: PASS: a verdict\n"
    done = subprocess.run(["sh", "-c", close + ">&- 2>&- <&-"], capture_output=True, check=False)
    assert done.returncode == 0

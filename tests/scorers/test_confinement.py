"""The jail holds: nothing outside is seen or written, every limit ends it, nothing stays behind."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from pathlib import Path

import pytest

from evalkit.scorers import confinement as module
from evalkit.scorers.confinement import (
    Ended,
    Jail,
    Limits,
    Outcome,
    confinement,
    read_regular,
    run_confined,
    write_inside,
)

FOUND = confinement()
pytestmark = pytest.mark.skipif(FOUND is None, reason="nothing can be confined on this machine")
LIMITS = Limits(timeout_s=10, memory_mb=256, output_mb=1)


def jails() -> list[str]:
    """Every way that works here, not only the first."""
    kinds = ("bwrap", "unshare")
    return [k for k in kinds if shutil.which(k) and module._holds(Jail(k))]  # pyright: ignore[reportPrivateUsage]


@pytest.fixture(params=jails())
def jail(request: pytest.FixtureRequest) -> Jail:
    return Jail(request.param)


def shell(jail: Jail, folder: Path, script: str, limits: Limits = LIMITS) -> Outcome:
    return run_confined(
        jail,
        ["/usr/bin/sh", "-c", script],
        folder=folder,
        readable=(Path("/usr/bin"),),
        env={"PATH": "/usr/bin", "ONLY": "this"},
        limits=limits,
    )


def test_a_program_runs_and_writes_to_its_folder_alone(jail: Jail, tmp_path: Path) -> None:
    outcome = shell(jail, tmp_path, "echo $ONLY > in; echo x > /usr/lib/out")
    assert outcome.ended is Ended.ITSELF
    assert read_regular(tmp_path / "in", 100) == b"this\n"
    assert not Path("/usr/lib/out").exists()


def test_no_file_outside_is_seen(jail: Jail, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s", encoding="utf-8")
    folder = tmp_path / "job"
    folder.mkdir()
    script = f"cat {secret} /etc/passwd /etc/hostname {Path(__file__)} ../secret; ls /home /root"
    assert shell(jail, folder, f"({script}) > seen 2> errors").returncode != 0
    assert read_regular(folder / "seen", 100) == b""


def test_the_environment_does_not_leak(
    jail: Jail, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALKIT_PLANTED_KEY", "sk-planted")
    shell(jail, tmp_path, "env > seen; cat /proc/*/environ >> seen")
    seen = read_regular(tmp_path / "seen", 100_000) or b""
    assert b"ONLY=this" in seen
    assert b"planted" not in seen


def test_there_is_no_network(jail: Jail, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        script = f"bash -c 'echo x > /dev/tcp/127.0.0.1/{port}' && echo reached > seen"
        shell(jail, tmp_path, script)
    assert read_regular(tmp_path / "seen", 10) is None


def test_time_ends_it_and_everything_it_started(jail: Jail, tmp_path: Path) -> None:
    limits = Limits(timeout_s=0.7, memory_mb=256, output_mb=1)
    outcome = shell(jail, tmp_path, "sleep 987654 & setsid sleep 987654 & sleep 987654", limits)
    assert outcome.ended is Ended.TIME
    assert not running("987654")


def test_a_program_that_ends_leaves_no_child_behind(jail: Jail, tmp_path: Path) -> None:
    assert shell(jail, tmp_path, "setsid sleep 876543 &").ended is Ended.ITSELF
    assert not running("876543")


@pytest.mark.parametrize(
    "script",
    [
        "while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done > big",
        "i=0; while :; do i=$((i+1)); echo x > f$i; done",
        "i=0; while :; do i=$((i+1)); head -c 500000 /dev/zero > f$i; done",
    ],
    ids=["one_file", "many_files", "many_large_files"],
)
def test_output_ends_it(jail: Jail, tmp_path: Path, script: str) -> None:
    assert shell(jail, tmp_path, script).ended is Ended.OUTPUT


def test_memory_is_bounded(jail: Jail, tmp_path: Path) -> None:
    outcome = shell(jail, tmp_path, "x=x; while :; do x=$x$x; done")
    assert outcome.ended is Ended.ITSELF
    assert outcome.returncode != 0


def test_processes_are_bounded(jail: Jail, tmp_path: Path) -> None:
    limits = Limits(timeout_s=2, memory_mb=256, output_mb=1, processes=20)
    script = "i=0; while [ $i -lt 60 ]; do sleep 765432 & i=$((i+1)); done; wait"
    outcome = shell(jail, tmp_path, f"({script}) 2> /dev/null", limits)
    assert outcome.returncode != 0
    assert not running("765432")


def test_links_and_pipes_are_never_read(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    assert read_regular(tmp_path / "link", 10) is None
    assert read_regular(tmp_path / "pipe", 10) is None
    assert read_regular(tmp_path, 10) is None
    (tmp_path / "file").write_bytes(b"0123456789abc")
    assert read_regular(tmp_path / "file", 10) == b"0123456789"


@pytest.mark.parametrize("name", ["../out", "/out", "a/../../out", "", ".", "a\0b"])
def test_a_name_that_leads_out_is_not_written(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    write_inside(folder, name, "x")
    assert [p.name for p in tmp_path.rglob("*")] == ["job"]


def test_a_file_is_written_below_the_folder(tmp_path: Path) -> None:
    write_inside(tmp_path, "a/b.txt", "x\ud800")
    assert (tmp_path / "a" / "b.txt").read_text(encoding="utf-8") == "x\ufffd"


def test_two_runs_at_once_do_not_meet(jail: Jail, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
    threads = [
        threading.Thread(target=shell, args=(jail, f, "echo $$ > pid; ls /job > seen"))
        for f in folders
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(read_regular(f / "seen", 100) == b"pid\nseen\n" for f in folders)


def running(argument: str) -> bool:
    """Whether any process of this machine has this argument."""
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if argument.encode() in process.read_bytes().split(b"\0"):
                return True
        except OSError:
            continue
    return False

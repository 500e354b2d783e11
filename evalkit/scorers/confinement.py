"""Run a program that reads hostile input where it can do no harm, or say that this cannot be had.

bubblewrap where it works, else namespaces of our own made with util-linux's `unshare`; in both
cases no network, a process tree of its own, a file tree of its own that holds what was named
(read-only) and one folder (writable), resource limits, and nothing left running afterwards.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from io import RawIOBase
from pathlib import Path, PurePosixPath

from evalkit.hashing import clean_text

__all__ = [
    "WORK",
    "Ended",
    "Jail",
    "Limits",
    "Outcome",
    "confinement",
    "read_regular",
    "run_confined",
    "write_inside",
]

WORK = "/job"  # the writable folder, as the confined program sees it
MAX_FILES = 500
_MEGABYTE = 1024 * 1024
# The dynamic linker, the libraries and nothing else of the system.
_LIBRARIES = ("/usr/lib", "/usr/lib64", "/usr/libexec", "/etc/ld.so.cache", "/etc/alternatives")
_ROOT_LINKS = ("/lib", "/lib64", "/bin")
_TOOLS = ("sh", "env", "prlimit", "setpriv", "umount")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one confined run may use; time is wall-clock time, memory is address space."""

    timeout_s: float = 30.0
    memory_mb: int = 1024
    output_mb: int = 20
    processes: int = 64


class Ended(StrEnum):
    """How a confined run ended."""

    ITSELF = "by itself"
    TIME = "time"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a confined run; `returncode` is negative for a signal, `stderr` its last 64 kB."""

    ended: Ended
    returncode: int
    stderr: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Jail:
    """A way to confine that was tried out on this machine: "bwrap" or "unshare"."""

    kind: str

    def command(
        self,
        argv: Sequence[str],
        *,
        folder: Path,
        readable: Sequence[Path | tuple[Path, str]],
        env: Mapping[str, str],
        limits: Limits,
        info: int,
    ) -> list[str]:
        """The command line that runs `argv` confined; `info` is where bwrap names its child."""
        mounts = _mounts(readable)
        links = [(os.readlink(link), link) for link in _ROOT_LINKS if os.path.islink(link)]
        inner = [
            "/usr/bin/prlimit",
            f"--nproc={limits.processes}",
            f"--as={limits.memory_mb * _MEGABYTE}",
            f"--cpu={int(limits.timeout_s) + 1}",
            f"--fsize={limits.output_mb * _MEGABYTE}",
            "--nofile=256",
            "--core=0",
            *argv,
        ]
        if self.kind == "bwrap":
            return _bwrap(mounts, links, folder, env, inner, info)
        return _unshare(mounts, links, folder, env, inner)


@lru_cache(maxsize=1)
def confinement() -> Jail | None:
    """The way to confine on this machine, tried once per process; None when there is none."""
    if not shutil.which("prlimit"):
        return None
    for kind, program in (("bwrap", "bwrap"), ("unshare", "unshare")):
        if shutil.which(program) and _holds(Jail(kind)):
            return Jail(kind)
    return None


def run_confined(
    jail: Jail,
    argv: Sequence[str],
    *,
    folder: Path,
    readable: Sequence[Path | tuple[Path, str]],
    env: Mapping[str, str],
    limits: Limits,
) -> Outcome:
    """Run a program to its end or to a limit; its whole process tree is gone on return.

    Args:
        jail: What `confinement()` found.
        argv: Program and arguments; paths as they are seen inside, the folder being `/job`.
        folder: The only place it can write to, and its working folder.
        readable: Files and folders it can read, at their own place or as (source, place).
        env: Its whole environment.
        limits: Time, memory, output and processes.
    """
    told, tell = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    command = jail.command(
        argv, folder=folder, readable=readable, env=env, limits=limits, info=tell
    )
    began = time.monotonic()
    with tempfile.TemporaryFile() as errors, os.fdopen(told, "rb", buffering=0) as inside:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin"},
                start_new_session=True,
                pass_fds=(tell,),
            )
        finally:
            os.close(tell)
        try:
            ended = _watch(process, folder, began + limits.timeout_s, limits)
        finally:
            _end(process, inside)
        errors.seek(0, os.SEEK_END)
        errors.seek(max(0, errors.tell() - 65_536))
        stderr = errors.read().decode("utf-8", "replace")
    if process.returncode in (-signal.SIGXFSZ, 128 + signal.SIGXFSZ):
        ended = Ended.OUTPUT
    elif process.returncode in (-signal.SIGXCPU, 128 + signal.SIGXCPU):
        ended = Ended.TIME
    return Outcome(ended, process.returncode, stderr, time.monotonic() - began)


def read_regular(path: Path, limit: int) -> bytes | None:
    """The first `limit` bytes of a regular file; None for a link, a device or nothing at all."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        with os.fdopen(handle, "rb", closefd=False) as stream:
            return stream.read(limit)
    finally:
        os.close(handle)


def write_inside(folder: Path, name: str, content: str | bytes) -> None:
    """Write one file below the folder; a name that leads out of it is left out."""
    relative = PurePosixPath(name)
    if relative.is_absolute() or ".." in relative.parts or not relative.parts or "\0" in name:
        return
    path = folder.joinpath(*relative.parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content if isinstance(content, bytes) else clean_text(content).encode()
    path.write_bytes(data)


def _watch(
    process: subprocess.Popen[bytes], folder: Path, deadline: float, limits: Limits
) -> Ended:
    pause = 0.01
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=max(0.0, min(pause, deadline - time.monotonic())))
        if _overflows(folder, limits.output_mb * _MEGABYTE):
            return Ended.OUTPUT
        if process.returncode is not None:
            return Ended.ITSELF
        if time.monotonic() >= deadline:
            return Ended.TIME
        pause = min(pause * 1.5, 0.1)


def _overflows(folder: Path, limit: int) -> bool:
    total = files = 0
    pending = [str(folder)]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    files += 1
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_size
                    if files > MAX_FILES or total > limit:
                        return True
        except OSError:  # removed while we looked
            continue
    return False


def _end(process: subprocess.Popen[bytes], inside: RawIOBase) -> None:
    """Return only when the first process inside is gone: the kernel ends all others before it."""
    found = re.search(rb'"child-pid": *(\d+)', inside.read(4096) or b"")
    first = int(found[1]) if found else None
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
            if first is None:
                first = _only_child(process.pid)
            if first is not None:
                os.kill(first, signal.SIGKILL)
                process.wait(timeout=5)
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    for _ in range(2500):
        if first is None or not _alive(first):
            return
        time.sleep(0.002)


def _only_child(pid: int) -> int | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()[0])
    return None


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return False
    return bool(state) and state[0] not in "ZX"


def _mounts(readable: Sequence[Path | tuple[Path, str]]) -> list[tuple[str, str]]:
    named = [p if isinstance(p, tuple) else (p, str(p)) for p in readable]
    system = [
        (Path(p), p) for p in (*_LIBRARIES, *(r for r in _ROOT_LINKS if not os.path.islink(r)))
    ]
    tools = [(Path(found), f"/usr/bin/{tool}") for tool in _TOOLS if (found := shutil.which(tool))]
    places: dict[str, str] = {}
    for source, place in (*system, *tools, *named):
        if source.exists():
            places.setdefault(place, str(source.resolve()))
    return [
        (source, place)
        for place, source in sorted(places.items())
        if not any(str(above) in places for above in Path(place).parents)
    ]


def _bwrap(
    mounts: Sequence[tuple[str, str]],
    links: Sequence[tuple[str, str]],
    folder: Path,
    env: Mapping[str, str],
    inner: Sequence[str],
    info: int,
) -> list[str]:
    command = [
        "bwrap",
        "--info-fd",
        str(info),
        "--unshare-all",
        "--unshare-user",
        "--uid",
        "65534",
        "--gid",
        "65534",
    ]
    command += ["--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"]
    for source, place in mounts:
        command += ["--ro-bind", source, place]
    for target, place in links:
        command += ["--symlink", target, place]
    command += ["--proc", "/proc", "--dev", "/dev", "--bind", str(folder), WORK]
    command += ["--chdir", WORK, "--remount-ro", "/"]
    for name, value in env.items():
        command += ["--setenv", name, value]
    return [*command, "--", *inner]


# $1 is the new root; then triples (kind source place) up to "--", then the program.
_BUILD_ROOT = """
root=$1; shift
mount -t tmpfs -o size=1m,mode=755 none "$root"
while [ "$1" != -- ]; do
  at="$root$3"
  case $1 in
    link) mkdir -p "${at%/*}"; ln -s "$2" "$at" ;;
    *)
      if [ -d "$2" ]; then mkdir -p "$at"; else mkdir -p "${at%/*}"; : > "$at"; fi
      mount --bind "$2" "$at"
      if [ "$1" = ro ]; then mount -o remount,bind,ro,nosuid "$at"; fi ;;
  esac
  shift 3
done
shift
mkdir "$root/.old" "$root/proc"
mount -t proc proc "$root/proc"
cd "$root"
pivot_root . .old
umount -l /.old
cd /job
# not exec: as the first process of its namespace the program would ignore the limits' signals
setpriv --no-new-privs --inh-caps=-all --bounding-set=-all -- "$@"
exit $?
"""


def _unshare(
    mounts: Sequence[tuple[str, str]],
    links: Sequence[tuple[str, str]],
    folder: Path,
    env: Mapping[str, str],
    inner: Sequence[str],
) -> list[str]:
    command = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "--pid",
        "--net",
        "--ipc",
        "--uts",
    ]
    command += ["--fork", "--kill-child", "--", "sh", "-ec", _BUILD_ROOT, "sh", "/mnt"]
    for target, place in links:
        command += ["link", target, place]
    for source, place in (*mounts, *((d, d) for d in _DEVICES)):
        command += ["dev" if place in _DEVICES else "ro", source, place]
    command += ["rw", str(folder), WORK, "--"]
    return [*command, "/usr/bin/env", "-i", *(f"{k}={v}" for k, v in env.items()), *inner]


def _holds(jail: Jail) -> bool:
    """Whether a confined shell runs, can write to its folder, and cannot see a file outside it."""
    with tempfile.TemporaryDirectory(prefix="evalkit-probe-") as outside:
        folder = Path(outside) / "job"
        folder.mkdir()
        secret = Path(outside) / "secret"
        secret.write_text("outside", encoding="utf-8")
        script = f'if [ -e "{secret}" ] || [ -e /etc/passwd ]; then exit 7; fi; echo in > seen'
        try:
            outcome = run_confined(
                jail,
                ["/usr/bin/sh", "-c", script],
                folder=folder,
                readable=(),
                env={"PATH": "/usr/bin"},
                limits=Limits(timeout_s=10, memory_mb=512, output_mb=1),
            )
        except OSError:
            return False
        return outcome.returncode == 0 and read_regular(folder / "seen", 10) == b"in\n"

"""How a script ends: with the status of its verdict, told once, or with 4.

A verdict's status may be nobody's accident. A task that calls `os._exit(0)`, a crash in native
code, a kill by the system's memory guard: none of these may read as a pass, or as a failure. So
the process that was started only waits; a fork of it does the work and says its status before it
ends. What ends without having said it ends with 4 and one sentence.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from pathlib import Path
from types import TracebackType
from typing import NoReturn

from evalkit.errors import EvalkitError

__all__ = ["begin_script", "end_script", "end_with_one_sentence", "script_excepthook", "tell"]

BROKEN = 4
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_told_to: list[int] = []  # the pipe to the process that waits, where there is one
_deaf: list[int] = []  # standard streams that were closed before we began


def begin_script(name: str) -> None:
    """Begin a notebook that runs as a script: one sentence for an error, a status for a verdict.

    From here on a fork works and this process waits for it, if `name` is `__main__`; it comes
    before heavy imports, while there is one thread. A closed standard stream becomes the null
    device, so that no file of ours takes its place.
    """
    sys.excepthook = script_excepthook
    if name != "__main__":
        return
    _open_streams()
    sys.stdout.flush()
    said, told_to = os.pipe()
    lives, held = os.pipe()
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
    worker = os.fork()
    if worker:
        os.close(told_to)
        os.close(lives)
        _wait(worker, said)
    os.close(said)
    os.close(held)
    signal.signal(signal.SIGINT, interrupt)
    _told_to[:] = [told_to]
    threading.Thread(target=_end_with, args=(lives,), daemon=True).start()


def tell(status: int) -> None:
    """Say with which status this script ends; the last word counts."""
    for pipe in _told_to:
        os.write(pipe, bytes([status]))


def end_script(text: str, status: int) -> NoReturn:
    """Print a verdict and end with its status, whether or not somebody still reads.

    Its last line goes to stderr where stdout is closed: `| head -1` does not change a verdict.
    """
    try:
        print(text, flush=True)
        unread = 1 in _deaf
    except (OSError, ValueError):
        unread = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is still buffered goes there
    if unread:
        _say(f"stdout is closed; the verdict was: {text.rstrip().splitlines()[-1]}")
    tell(status)
    sys.exit(status)


def end_with_one_sentence(error: BaseException) -> int:
    """Print an error as one sentence on stderr; return the exit status it stands for."""
    if isinstance(error, KeyboardInterrupt):
        _say("interrupted: what arrived is kept; the same command resumes.")
        return BROKEN
    if isinstance(error, EvalkitError):
        _say(f"{'error' if error.exit_status == 2 else 'broken'}: {error}")
        return error.exit_status
    where = traceback.extract_tb(error.__traceback__)[-1:] if error.__traceback__ else []
    place = f" at {Path(where[0].filename).name}:{where[0].lineno}" if where else ""
    _say(
        f"broken: {type(error).__name__}{place}: {error}. This is a defect, not a verdict; "
        "set EVALKIT_TRACEBACK=1 to see where it happened."
    )
    return BROKEN


def script_excepthook(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """For `sys.excepthook` of a notebook run as a script: one sentence, and never status 1."""
    status = BROKEN
    try:
        if os.environ.get("EVALKIT_TRACEBACK"):
            traceback.print_exception(kind, error, trace)
        status = end_with_one_sentence(_root(error))
        sys.stdout.flush()
    except (OSError, ValueError):  # a stream is closed: the status alone speaks
        pass
    finally:
        tell(status)
        os._exit(status)


def _wait(worker: int, said: int) -> NoReturn:
    """Wait for the worker; end with what it said."""

    def forward(number: int, _: object) -> None:
        if number != signal.SIGINT or not _from_terminal():  # a terminal tells both by itself
            os.kill(worker, number)

    for number in _FORWARDED:
        if number == signal.SIGINT or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, forward)
    _, ended = os.waitpid(worker, 0)
    for number in _FORWARDED:
        signal.signal(number, signal.SIG_IGN)
    os.set_blocking(said, False)  # a process that the task left behind may hold the other end
    try:
        status = os.read(said, 1024)
    except BlockingIOError:
        status = b""
    if not status:
        code = os.waitstatus_to_exitcode(ended)
        how = f"with status {code}" if code >= 0 else f"by {signal.Signals(-code).name}"
        _say(
            f"broken: the process was ended {how} before it reached a verdict: by something it "
            "called (os._exit, a crash in native code), or from outside. What arrived is kept; "
            "the same command resumes."
        )
    os._exit(status[-1] if status else BROKEN)


def _end_with(lives: int) -> None:
    """Work for nobody is not gone on with: end when the process that waits is gone."""
    os.read(lives, 1)
    os.kill(os.getpid(), signal.SIGKILL)


def _from_terminal() -> bool:
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def _open_streams() -> None:
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            _deaf.append(number)
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def _say(sentence: str) -> None:
    try:
        print(sentence, file=sys.stderr, flush=True)
    except (OSError, ValueError):  # nobody listens
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  # what is buffered


def _root(error: BaseException) -> BaseException:
    """The error of ours inside what marimo or a task group wrapped around it."""
    waiting, seen = [error], {id(error)}  # a chain of causes may lead back to itself
    while waiting:
        one = waiting.pop(0)
        if isinstance(one, EvalkitError | KeyboardInterrupt):
            return one
        inner = one.exceptions if isinstance(one, BaseExceptionGroup) else ()
        for next_one in (*inner, one.__cause__, one.__context__):
            if next_one is not None and id(next_one) not in seen:
                seen.add(id(next_one))
                waiting.append(next_one)
    return error

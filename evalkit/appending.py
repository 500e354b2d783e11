"""Lines appended to one file by many processes: under a lock, on the disk before they count."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

__all__ = ["append_lines", "read_whole_lines"]


def append_lines(
    path: Path,
    lines: Sequence[str],
    *,
    head: str = "",
    whole: Callable[[str], bool] = lambda _: False,
    check: Callable[[str], None] | None = None,
) -> None:
    """Append whole lines; concurrent writers lose nothing and mix nothing.

    A last line that a crash cut short is moved to `<name>.torn` first, unless `whole` says that
    only its line end is missing.

    Args:
        path: The file; it and its folder are made when missing.
        lines: The lines, without line ends.
        head: The first line of a new file.
        whole: Tells a complete line from a cut one.
        check: Is given what the file holds, with no other writer inside; what it raises leaves the
            file as it was.

    Raises:
        OSError: If the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b", buffering=0) as file, _locked(file, fcntl.LOCK_EX):
        if check is not None:
            file.seek(0)
            check(file.read().decode("utf-8", errors="replace"))
        size = _mend_last_line(path, file, whole)
        added = [head, *lines] if head and not size else list(lines)
        file.write("".join(f"{line}\n" for line in added).encode())
        os.fsync(file.fileno())


def read_whole_lines(path: Path, *, whole: Callable[[str], bool] = lambda _: False) -> list[str]:
    """Every complete line in order; a last line that a crash cut short is passed over."""
    if not path.exists():
        return []
    with path.open("rb") as file, _locked(file, fcntl.LOCK_SH):
        *lines, tail = file.read().decode("utf-8", errors="replace").split("\n")
    return [*lines, tail] if tail and whole(tail) else lines


@contextmanager
def _locked(file: IO[bytes], kind: int) -> Generator[None]:
    fcntl.flock(file, kind)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


def _mend_last_line(path: Path, file: IO[bytes], whole: Callable[[str], bool]) -> int:
    """Leave the file empty or ending with a line end; return its size."""
    size = file.seek(0, os.SEEK_END)
    if not size or (file.seek(-1, os.SEEK_END), file.read(1))[1] == b"\n":
        return size
    file.seek(0)
    kept, newline, tail = file.read().rpartition(b"\n")
    if whole(tail.decode("utf-8", errors="replace")):
        file.write(b"\n")
        return size + 1
    with path.with_name(path.name + ".torn").open("ab") as torn:
        torn.write(tail + b"\n")
    file.truncate(len(kept) + len(newline))
    return len(kept) + len(newline)

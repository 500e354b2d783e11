"""What git says of the tree: which commit, whether it is dirty, what a file was at a ref."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from evalkit.errors import BaselineError

__all__ = ["GitState", "changed_files", "file_at", "git_state", "resolve_ref"]


@dataclass(frozen=True, slots=True)
class GitState:
    """The commit a run was made on; `sha` is "" outside a repository. `dirty` ignores exports/."""

    sha: str = ""
    dirty: bool = False

    @property
    def label(self) -> str:
        """Short form for a line of text: `4c1f2ab`, `4c1f2ab (dirty)` or `no commit`."""
        return f"{self.sha[:7]}{' (dirty)' if self.dirty else ''}" if self.sha else "no commit"


def git_state(folder: Path) -> GitState:
    """Commit and dirtiness of the repository around a folder; empty outside one."""
    paths = (":(top)", ":(top,exclude)exports")
    said = _git(folder, "status", "--porcelain=v2", "--branch", "--", *paths)
    lines = (said or "").splitlines()
    sha = next((line.split()[-1] for line in lines if line.startswith("# branch.oid ")), "")
    if not sha or sha == "(initial)":
        return GitState()
    return GitState(sha, any(not line.startswith("#") for line in lines))


def resolve_ref(folder: Path, ref: str) -> str:
    """The full commit hash behind a ref.

    Raises:
        BaselineError: If there is no repository or no such ref (a shallow clone, a typing error).
    """
    if _git(folder, "rev-parse", "--git-dir") is None:
        raise BaselineError(
            f"--baseline-ref {ref}: {folder} is in no git repository. "
            "Run inside a clone, or leave --baseline-ref out to use the files on disk."
        )
    sha = _git(folder, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
    if sha is None:
        shallow = (_git(folder, "rev-parse", "--is-shallow-repository") or "").strip() == "true"
        hint = (
            "This is a shallow clone: fetch the ref first (git fetch --depth=1 origin "
            f"{ref}:{ref}, or fetch-depth: 0 in the workflow)."
            if shallow
            else "Check the name, or fetch it first."
        )
        raise BaselineError(f"--baseline-ref {ref}: git knows no such commit. {hint}")
    return sha.strip()


def file_at(path: Path, ref: str) -> str | None:
    """The text of a file at a ref, or None when it did not exist there."""
    folder = path.parent
    while not folder.exists():
        folder = folder.parent
    top = _git(folder, "rev-parse", "--show-toplevel")
    if top is None:
        return None
    relative = path.resolve().relative_to(Path(top.strip()).resolve()).as_posix()
    text = _git(Path(top.strip()), "show", "--end-of-options", f"{ref}:{relative}")
    return None if text is None else text.removeprefix("\ufeff")


def changed_files(folder: Path, ref: str) -> dict[str, tuple[int, int] | None]:
    """Files below a folder that differ from a ref: lines added and removed, None when binary.

    Files that git does not know yet stand with (0, 0).
    """
    found: dict[str, tuple[int, int] | None] = {}
    listed = ("--numstat", "--relative", "--no-renames", "-z")
    for line in (_git(folder, "diff", *listed, ref, "--", ".") or "").split("\0"):
        cells = line.split("\t", 2)
        if len(cells) == 3:
            number = cells[0].isdigit()
            found[cells[2]] = (int(cells[0]), int(cells[1])) if number else None
    new = _git(folder, "ls-files", "--others", "--exclude-standard", "-z") or ""
    return found | {name: (0, 0) for name in new.split("\0") if name}


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            check=False,
            timeout=30,
        )
    except (FileNotFoundError, NotADirectoryError, ValueError, subprocess.TimeoutExpired):
        return None  # a ValueError: a name that holds a null byte names nothing
    return done.stdout.decode("utf-8", errors="replace") if done.returncode == 0 else None

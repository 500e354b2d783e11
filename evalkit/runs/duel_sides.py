"""What stands on one side of a comparison: a run, a frozen run, a prompt, or a folder of drafts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from evalkit.cases.suite import Suite
from evalkit.errors import UsageError
from evalkit.hashing import short_hash
from evalkit.prompts import Prompt, load_prompt
from evalkit.runs.baseline import load_baseline
from evalkit.runs.run import Run, load_run

__all__ = ["Side", "find_side"]

DRAFT_SUFFIXES = (".md", ".txt", ".tex", ".json", ".html")
MOST_DRAFT_BYTES = 5_000_000


@dataclass(frozen=True)
class Side:
    """One contestant; exactly one of `run`, `prompt` and `drafts` is given.

    `kind` is run, baseline, prompt or drafts. `name` is for people, `identity` for what is written
    down: it pins what was compared and holds no date, no run id and no path of this machine.
    """

    kind: str
    name: str
    identity: Mapping[str, str]
    model: str = ""
    run: Run | None = None
    prompt: Prompt | None = None
    drafts: Mapping[str, str] = field(default_factory=dict)
    origin: str = "model"

    @property
    def recorded(self) -> bool:
        """Whether its drafts are there already, so that nothing has to be asked for them."""
        return self.prompt is None


def find_side(given: str, suite: Suite, runs: Path) -> Side:
    """What a flag or a choice names.

    Args:
        given: A run folder or a run's id, a baseline file, a prompt file (relative to the suite or
            a path), or a folder of drafts.
        suite: The suite that is compared on.
        runs: The folder of runs, for a run's id.

    Raises:
        UsageError: If there is nothing of the kind, or it belongs to another suite.
    """
    if not given:
        raise UsageError(
            "two sides are needed: --a and --b, each a run folder, a baseline file, a prompt file "
            "or a folder of drafts."
        )
    path = Path(given)
    inside = suite.folder / given
    if (runs / given / "manifest.json").is_file():
        path = runs / given
    if (path / "manifest.json").is_file():
        return _of_run(load_run(path), suite, "run", path.name)
    if path.suffix == ".jsonl" and path.is_file():
        frozen = load_baseline(path)
        assert frozen is not None  # the file is there
        return _of_run(frozen, suite, "baseline", path.name)
    if inside.is_file() or path.is_file():
        return _of_prompt(inside if inside.is_file() else path, suite)
    if inside.is_dir() or path.is_dir():
        return _of_drafts(inside if inside.is_dir() else path)
    raise UsageError(
        f"there is no run, baseline, prompt or folder of drafts at {given!r} (looked in "
        f"{suite.folder.as_posix()}, in {runs.as_posix()} and from here)."
    )


def _of_run(run: Run, suite: Suite, kind: str, name: str) -> Side:
    manifest = run.manifest
    if manifest.suite != suite.name:
        raise UsageError(
            f"{name} is a run of suite {manifest.suite!r}, not of {suite.name!r}; give "
            f"--suite {manifest.suite_folder}."
        )
    prompt = manifest.prompt
    return Side(
        kind,
        f"{prompt.get('name')} {str(prompt.get('hash', ''))[:6]} ({kind})",
        {
            "prompt": str(prompt.get("name", "")),
            "prompt_hash": str(prompt.get("hash", "")),
            "model": manifest.model,
            "app_version": manifest.app_version,
            "suite_digest": manifest.suite_digest,
            "git_sha": manifest.git_sha,
        },
        model=manifest.model,
        run=run,
        origin=manifest.origin,
    )


def _of_prompt(path: Path, suite: Suite) -> Side:
    if path.suffix != ".md":
        raise UsageError(f"{path}: a prompt is a .md file, a frozen run a .jsonl file.")
    prompt = load_prompt(path)
    who = suite.task.model or suite.task.entry
    identity = {
        "prompt": prompt.name,
        "prompt_hash": prompt.hash,
        "model": who,
        "app_version": suite.task.app_version,
        "suite_digest": suite.digest,
    }
    return Side("prompt", f"{prompt.name} {prompt.hash[:6]}", identity, model=who, prompt=prompt)


def _of_drafts(folder: Path) -> Side:
    """Every text file of a folder, by its name without the suffix."""
    drafts: dict[str, str] = {}
    for file in sorted(folder.iterdir()):
        if file.name.startswith(".") or file.suffix.lower() not in DRAFT_SUFFIXES:
            continue
        if file.stem in drafts:
            raise UsageError(f"{folder}: two drafts are called {file.stem!r}; keep one.")
        if file.stat().st_size > MOST_DRAFT_BYTES:
            raise UsageError(f"{file}: larger than {MOST_DRAFT_BYTES // 1_000_000} MB; no draft.")
        drafts[file.stem] = file.read_bytes().decode("utf-8", errors="replace")
    if not drafts:
        raise UsageError(
            f"{folder}: holds no draft; drafts are files named after case ids, ending in "
            f"{', '.join(DRAFT_SUFFIXES)}."
        )
    digest = short_hash(drafts)
    identity = {"drafts": folder.name, "digest": digest}
    return Side("drafts", f"{folder.name}/ {digest[:6]}", identity, drafts=drafts, origin="files")

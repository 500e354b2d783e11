"""Frozen runs: one file, a manifest line and then rows in stable order; promotion is explicit."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from evalkit.counting import counted
from evalkit.errors import BaselineError
from evalkit.hashing import canonical_json
from evalkit.records import Reply
from evalkit.runs.git import file_at
from evalkit.runs.manifest import Manifest
from evalkit.runs.rows import row_from_json, row_to_json
from evalkit.runs.run import Run

__all__ = [
    "Comparability",
    "baseline_path",
    "comparability",
    "freeze",
    "load_baseline",
    "parse_baseline",
    "replies_of",
]

FORMAT = 2
"""Since 2 the head holds a digest of itself and of the rows."""


def baseline_path(out: Path, suite: str) -> Path:
    """Where a suite's baseline lies: `exports/baselines/<suite>.jsonl`."""
    return out / "baselines" / f"{suite}.jsonl"


def freeze(
    run: Run, path: Path, *, allow_dirty: bool = False, failed_floors: tuple[str, ...] = ()
) -> Path:
    """Promote a run to the baseline; the file is replaced as a whole or not at all.

    Args:
        run: The run.
        path: The baseline's file.
        allow_dirty: Freeze although files outside exports/ were changed and not committed.
        failed_floors: Criteria whose floor this first baseline does not reach: kept as a mark.

    Raises:
        BaselineError: If the run is an unsaved draft, is incomplete, has errors, was scripted, or
            was made on a dirty tree, or the file cannot be written.
    """
    manifest = run.manifest
    if reason := _refusal(run, allow_dirty):
        raise BaselineError(f"run {manifest.run_id or '(in memory)'} is not frozen: {reason}")
    head = {"format": FORMAT, **manifest.pins(), "failed_floors": list(failed_floors)}
    head["digest"] = _digest(head, (row_to_json(row) for row in run))
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("w", encoding="utf-8", newline="\n") as file:
            file.write(canonical_json(head) + "\n")
            for row in run:
                file.write(row_to_json(row) + "\n")
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        raise BaselineError(f"{path}: cannot be written: {error.strerror}.") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    return path


def _digest(head: Mapping[str, Any], lines: Iterable[str]) -> str:
    """What a hand that edits the head or a row would have to make again."""
    found = sha256(canonical_json({k: v for k, v in head.items() if k != "digest"}).encode())
    for line in lines:
        found.update(b"\n" + line.encode())
    return found.hexdigest()


def load_baseline(path: Path, *, ref: str = "") -> Run | None:
    """The frozen run in a file, as it is on disk or as it was at a git ref; None when absent.

    Raises:
        BaselineError: If the file is damaged; names the line.
    """
    if ref:
        text = file_at(path, ref)
        return None if text is None else parse_baseline(text, f"{ref}:{path.as_posix()}")
    try:
        return parse_baseline(path.read_text("utf-8"), str(path)) if path.exists() else None
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise BaselineError(
            f"{path}: cannot be read: {why}. Restore it from version control, or freeze again."
        ) from error


def parse_baseline(text: str, where: str) -> Run:
    """The frozen run in a text.

    Raises:
        BaselineError: If it is not one, a row is damaged or missing, or anything was edited since
            it was frozen.
    """
    head, *lines = (line.removesuffix("\r") for line in text.split("\n"))
    try:
        data: dict[str, Any] = json.loads(head)
        if data.get("format") != FORMAT:
            raise ValueError(f"format {data.get('format')!r} instead of {FORMAT}{_older(data)}")
        manifest = Manifest.from_json(data)
        due = int(manifest.sampling["n"]) * int(manifest.sampling.get("repeats", 1))
        if due < 1 or not manifest.by.keys():
            raise ValueError("its head names no observation, or no criteria")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BaselineError(
            f"{where}:1: not a frozen run ({error}). Restore the file from version control, or "
            "freeze again."
        ) from error
    rows = []
    for number, line in enumerate(lines, start=2):
        if not line:
            continue
        try:
            rows.append(row_from_json(line))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise BaselineError(
                f"{where}:{number}: this line is not a row ({type(error).__name__}: {error}). "
                "Restore the file from version control, or freeze again."
            ) from error
    seen = Counter((row.case_id, row.repeat) for row in rows)
    if twice := next((key for key, count in seen.items() if count > 1), ()):
        raise BaselineError(
            f"{where}: case {twice[0]!r}, repeat {twice[1]}, stands there more than once. Restore "
            "the file from version control, or freeze again."
        )
    if len(rows) != due:
        raise BaselineError(
            f"{where}: {counted(len(rows), 'row')} instead of the {due} its manifest names: the "
            "file was cut. Restore it from version control, or freeze again."
        )
    if data.get("digest") != _digest(data, filter(None, lines)):
        raise BaselineError(
            f"{where}: it was edited after it was frozen: its digest is not that of its head and "
            "rows. Restore the file from version control, or freeze again."
        )
    return Run(replace(manifest, run_id=f"baseline:{manifest.suite}"), None, tuple(rows))


def _older(data: Mapping[str, Any]) -> str:
    said = ", frozen before a baseline had a digest; move it away and run with --freeze"
    return said if data.get("format") == 1 else ""


def replies_of(baseline: Run | None) -> dict[tuple[str, int], Reply]:
    """The baseline's replies by case and repeat: what a pairwise criterion compares with."""
    rows = baseline or ()
    return {(row.case_id, row.repeat): row.reply for row in rows if row.reply is not None}


@dataclass(frozen=True)
class Comparability:
    """What differs between a run and its baseline, and which criteria may still be compared.

    `differences` are sentences; `not_comparable` maps a criterion to why it is left out.
    `changed` names what moved: code, prompt, model, cases, app, thresholds, judges, scorers.
    """

    differences: tuple[str, ...] = ()
    not_comparable: Mapping[str, str] | None = None
    changed: tuple[str, ...] = ()

    def why_not(self, criterion: str) -> str:
        """Why a criterion is not compared, or ""."""
        return (self.not_comparable or {}).get(criterion, "")


def comparability(run: Manifest, baseline: Manifest) -> Comparability:
    """Compare the pins of two runs; nothing that differs is passed over in silence."""
    said: list[str] = []
    changed: list[str] = []

    def differs(what: str, name: str, old: Any, new: Any) -> bool:
        if old == new:
            return False
        said.append(f"{name}: {old or 'none'} in the baseline, {new or 'none'} now")
        changed.append(what)
        return True

    other = differs("suite", "suite", baseline.suite, run.suite)
    differs("cases", "suite digest", baseline.suite_digest, run.suite_digest)
    differs("prompt", "prompt", baseline.prompt.get("hash"), run.prompt.get("hash"))
    languages = (m.prompt.get("language") or "not stated" for m in (baseline, run))
    differs("prompt", "prompt language", *languages)
    differs("model", "model", baseline.model, run.model)
    differs("model", "request settings", dict(baseline.settings), dict(run.settings))
    differs("app", "app version", baseline.app_version, run.app_version)
    differs("code", "commit", baseline.git_sha[:12], run.git_sha[:12])
    differs("thresholds", "thresholds", baseline.thresholds_hash, run.thresholds_hash)
    for name in ("sizes", "weights", "seed"):
        old, new = baseline.sampling.get(name), run.sampling.get(name)
        if name == "seed":
            differs("seed", "seed", old, new)
        elif old != new:
            said.append(f"sample {name}: {_short(old)} in the baseline, {_short(new)} now")
            changed.append("sample")
    left_out: dict[str, str] = {}
    for criterion, by in run.by.items():
        old = baseline.by.get(criterion)
        if other:
            left_out[criterion] = "the baseline belongs to another suite"
        elif old is None:
            left_out[criterion] = "the baseline has no score for it"
        elif old != by:
            left_out[criterion] = f"its scorer or judge changed ({old} to {by})"
            changed.append("scorers")
    for criterion in baseline.by:
        if criterion not in run.by:
            said.append(f"criterion {criterion}: in the baseline, not measured now")
    return Comparability(tuple(said), left_out, tuple(dict.fromkeys(changed)))


def _short(value: Any) -> str:
    if not isinstance(value, Mapping):
        return str(value)
    return ", ".join(f"{k} {v:g}" for k, v in value.items()) or "none"


def _refusal(run: Run, allow_dirty: bool) -> str:
    manifest = run.manifest
    if manifest.prompt.get("draft"):
        return (
            "its prompt is an unsaved draft. Press Save, run again (the replies are kept), freeze."
        )
    if manifest.stopped:
        return f"it ended early ({manifest.stopped}). Run it to its end first."
    if manifest.origin == "scripted":
        return "its replies came from a script, not from a model."
    if errors := run.errors:
        return (
            f"{counted(errors, 'observation')} {'has' if errors == 1 else 'have'} no reply. Run "
            "again: only what is missing is asked for."
        )
    if manifest.dirty and not allow_dirty:
        return (
            "files outside exports/ are changed and not committed, so the commit does not say what "
            "ran. Commit them, or say --allow-dirty."
        )
    return ""

"""What a suite was at a git ref, and what changed since: a change is not measured by itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from evalkit.cases.suite import Suite, parse_suite
from evalkit.errors import EvalkitError
from evalkit.hashing import short_hash
from evalkit.runs.git import changed_files, file_at, resolve_ref
from evalkit.runs.manifest import Manifest

__all__ = ["Reference", "edited_after", "read_reference", "threshold_changes"]


@dataclass(frozen=True)
class Reference:
    """A suite as it stands at a ref.

    `thresholds` are those that decide (None: the suite is not there yet). `changes` are sentences:
    files, thresholds, criteria and cases that differ now. `changed_cases` no longer ask the same
    question; `removed` are criteria that decide there and are gone now.
    """

    ref: str
    sha: str
    thresholds: Mapping[str, Mapping[str, Any]] | None = None
    changes: tuple[str, ...] = ()
    changed_cases: frozenset[str] = frozenset()
    removed: tuple[str, ...] = ()
    files: Mapping[str, Any] = field(default_factory=dict)


def read_reference(suite: Suite, ref: str) -> Reference:
    """The suite at a ref, and everything in its folder that differs now.

    Raises:
        BaselineError: If git knows no such ref.
        SuiteError: If the suite at the ref cannot be read.
    """
    sha = resolve_ref(suite.folder, ref)
    files = changed_files(suite.folder, sha)
    said = [_file_change(name, lines) for name, lines in sorted(files.items())]
    text = file_at(suite.folder / "suite.toml", sha)
    if text is None:
        new = f"the suite is not at {ref} yet: its thresholds are those on disk"
        return Reference(ref, sha, None, (new, *said), files=files)
    try:
        old = parse_suite(text, suite.folder)
    except EvalkitError as error:
        raise type(error)(f"{ref}:{error}") from None
    said += threshold_changes(old.thresholds(), suite.thresholds(), "at " + ref, "now")
    now = {c.name: c for c in suite.criteria}
    for criterion in old.criteria:
        if criterion.name in now and now[criterion.name].meaning() != criterion.meaning():
            said.append(f"criterion {criterion.name} measures something else than at {ref}")
    then_cases = _case_hashes(file_at(suite.folder / "cases.jsonl", sha) or "")
    now_cases = _case_hashes((suite.folder / "cases.jsonl").read_text("utf-8-sig"))
    both = then_cases.keys() & now_cases.keys()
    changed = frozenset(case for case in both if then_cases[case] != now_cases[case])
    for word, ids in (
        ("changed", changed),
        ("removed", then_cases.keys() - now_cases.keys()),
        ("added", now_cases.keys() - then_cases.keys()),
    ):
        if ids:
            said.append(f"cases {word}: {_some(sorted(ids))}")
    removed = tuple(c.name for c in old.criteria if c.gate and c.name not in now)
    return Reference(ref, sha, old.thresholds(), tuple(said), changed, removed, files)


def threshold_changes(
    then: Mapping[str, Mapping[str, Any]],
    now: Mapping[str, Mapping[str, Any]],
    when: str,
    today: str,
) -> list[str]:
    """Thresholds that differ, one sentence each."""
    said: list[str] = []
    for name in dict.fromkeys([*then, *now]):
        if name not in now:
            said.append(f"criterion {name} is gone; {when} it stood there")
        elif name not in then:
            said.append(f"criterion {name} is new; it did not stand there {when}")
        else:
            said += [
                f"threshold {name}.{key}: {_value(then[name].get(key))} {when}, "
                f"{_value(now[name].get(key))} {today}"
                for key in dict.fromkeys([*then[name], *now[name]])
                if then[name].get(key) != now[name].get(key)
            ]
    return said


def edited_after(run: Manifest, suite: Suite, earlier: Iterable[Manifest]) -> tuple[str, ...]:
    """Thresholds that were edited after the replies were there, one sentence each.

    Compared are the thresholds hashed into the run, those of the suite now, and those of earlier
    runs of the very same replies (same prompt, model, settings, app version and seed).
    """
    said = threshold_changes(run.thresholds, suite.thresholds(), "when the run was made", "now")
    sent_nothing = not run.calls.get("new")
    for other in earlier if sent_nothing else ():
        if other.run_id == run.run_id or other.thresholds_hash == run.thresholds_hash:
            continue
        if _replies(other) == _replies(run):
            when = f"when {other.run_id} was made of the same replies"
            said += threshold_changes(other.thresholds, run.thresholds, when, "now")
            break
    return tuple(dict.fromkeys(said))


def _replies(manifest: Manifest) -> list[Any]:
    seed = manifest.sampling.get("seed")
    prompt = manifest.prompt.get("hash")
    settings = dict(manifest.settings)
    return [manifest.suite, prompt, manifest.model, settings, manifest.app_version, seed]


def _case_hashes(text: str) -> dict[str, str]:
    """Id to a hash of the line's content; what is no case is passed over, loading names it."""
    found: dict[str, str] = {}
    for line in text.split("\n"):
        try:
            case = json.loads(line)
            name = str(case.pop("id"))
        except (ValueError, KeyError, AttributeError, TypeError):
            continue
        found[name] = short_hash({k: v for k, v in case.items() if k not in ("why", "tags")})
    return found


def _file_change(name: str, lines: tuple[int, int] | None) -> str:
    if lines is None:
        return f"{name} (binary)"
    if lines == (0, 0):
        return f"{name} (new)"
    return f"{name} (+{lines[0]} −{lines[1]} lines)"


def _some(ids: list[str], most: int = 6) -> str:
    return ", ".join(ids[:most]) + (f" and {len(ids) - most} more" if len(ids) > most else "")


def _value(value: Any) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)

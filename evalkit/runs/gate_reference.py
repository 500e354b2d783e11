"""What a suite was at a git ref, and what changed since: a change is not measured by itself."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from evalkit.cases.suite import Suite, parse_suite
from evalkit.counting import listed
from evalkit.errors import EvalkitError
from evalkit.hashing import short_hash
from evalkit.runs.gate_redefined import moved_behind, redefined_since, threshold_changes
from evalkit.runs.git import changed_files, file_at, resolve_ref
from evalkit.runs.manifest import Manifest

__all__ = ["Reference", "edited_after", "read_reference", "same_replies"]


@dataclass(frozen=True)
class Reference:
    """A suite as it stands at a ref.

    `thresholds` are those that decide (None: the suite is not there yet). `changes` are sentences:
    files, thresholds, criteria and cases that differ now. `changed_cases` no longer ask the same
    question; `removed` are criteria that decide there and are gone now; `redefined` are those
    changes after which something else is measured than there.
    """

    ref: str
    sha: str
    thresholds: Mapping[str, Mapping[str, Any]] | None = None
    changes: tuple[str, ...] = ()
    changed_cases: frozenset[str] = frozenset()
    removed: tuple[str, ...] = ()
    redefined: tuple[str, ...] = ()
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
    redefined = list(redefined_since(suite, old, ref, sha, files))
    tags = any("tags" in c.where for c in (*old.criteria, *suite.criteria))
    moved = functools.cache(lambda name: bool(moved_behind(name, suite.folder, sha, files)))
    then_cases = _case_hashes(file_at(suite.folder / "cases.jsonl", sha) or "", moved, tags=tags)
    now_cases = _case_hashes((suite.folder / "cases.jsonl").read_text("utf-8-sig"), tags=tags)
    both = then_cases.keys() & now_cases.keys()
    changed = frozenset(case for case in both if then_cases[case] != now_cases[case])
    gone, new_ones = then_cases.keys() - now_cases.keys(), now_cases.keys() - then_cases.keys()
    redefined += [
        f"cases {word}: {listed(sorted(ids), 6)}"
        for word, ids in (("changed", changed), ("removed", gone))
        if ids
    ]
    added = [f"cases added: {listed(sorted(new_ones), 6)}"] if new_ones else []
    names = {c.name for c in suite.criteria}
    removed = tuple(c.name for c in old.criteria if c.gate and c.name not in names)
    said += [*redefined, *added]
    return Reference(
        *(ref, sha, old.thresholds(), tuple(said)), changed, removed, tuple(redefined), files
    )


def edited_after(run: Manifest, suite: Suite, earlier: Iterable[Manifest]) -> tuple[str, ...]:
    """Thresholds that were edited after the replies were there, one sentence each.

    Compared are the thresholds hashed into the run, those of the suite now, and those of earlier
    runs of the very same replies (same prompt, model, settings, app version and seed).
    """
    said = threshold_changes(run.thresholds, suite.thresholds(), "when the run was made", "now")
    for other in same_replies(run, earlier)[:1]:
        when = f"when {other.run_id} was made of the same replies"
        said += threshold_changes(other.thresholds, run.thresholds, when, "now")
    return tuple(dict.fromkeys(said))


def same_replies(run: Manifest, earlier: Iterable[Manifest]) -> list[Manifest]:
    """Earlier runs of the very replies that this one only read, under other thresholds."""
    if run.calls.get("new"):
        return []
    return [
        other
        for other in earlier
        if other.run_id != run.run_id
        and other.thresholds_hash != run.thresholds_hash
        and _replies(other) == _replies(run)
    ]


def _replies(manifest: Manifest) -> list[Any]:
    seed = manifest.sampling.get("seed")
    prompt = manifest.prompt.get("hash")
    settings = dict(manifest.settings)
    return [manifest.suite, prompt, manifest.model, settings, manifest.app_version, seed]


def _case_hashes(
    text: str, moved: Callable[[str], bool] = lambda _: False, *, tags: bool = False
) -> dict[str, str]:
    """Id to a hash of the line's content; what is no case is passed over, loading names it.

    `moved` tells files whose content was another one; `tags` count where a criterion looks at them.
    """
    left_out = ("why",) if tags else ("why", "tags")
    found: dict[str, str] = {}
    for line in text.split("\n"):
        try:
            case = json.loads(line)
            name = str(case.pop("id"))
        except (ValueError, KeyError, AttributeError, TypeError):
            continue
        content = {k: v for k, v in case.items() if k not in left_out and v not in (None, [], {})}
        files = case.get("material")
        if isinstance(files, list) and any(moved(str(file)) for file in files):
            content["material"] = "other files"
        found[name] = short_hash(content)
    return found


def _file_change(name: str, lines: tuple[int, int] | None) -> str:
    if lines is None:
        return f"{name} (binary)"
    if lines == (0, 0):
        return f"{name} (new)"
    return f"{name} (+{lines[0]} −{lines[1]} lines)"

"""What decided before and was redefined: by the change that is measured, or after the fact.

A change may not choose the cases, the criteria or the thresholds that it is judged by. Thresholds
can be read from the ref and decide (decision 0080); cases, scorers and judges cannot without
judging something else than what ships, so a change that touches them gets no verdict unless
somebody who may says that it is meant (decision 0115).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from evalkit.cases.criterion import Criterion
from evalkit.cases.suite import Suite
from evalkit.counting import listed
from evalkit.runs.git import changed_files, file_at

__all__ = ["FLAG", "loosened", "moved_behind", "problem_of", "redefined_since", "threshold_changes"]

FLAG = "--allow-redefined"
_LEAST, _MOST = ("min", "min_win_rate", "pass_at"), ("max_drop",)


def redefined_since(
    suite: Suite, old: Suite, ref: str, sha: str, files: Collection[str]
) -> Iterator[str]:
    """What measures at a ref and measures something else now, one sentence each; cases apart.

    New criteria redefine nothing, and those that decide nothing there are free.

    Args:
        suite: The suite on disk.
        old: The suite at the ref, without its cases.
        ref: The ref's name, for the sentences.
        sha: Its commit.
        files: Files of the suite's folder that differ.
    """
    if suite.name != old.name:
        yield f"the suite is named {suite.name}, not {old.name} as at {ref}"
    judged = any(c.judge for c in old.criteria)
    if judged and suite.domain != old.domain:
        yield f"domain, for which judges hold licences: {old.domain} at {ref}, {suite.domain} now"
    for key in ("mix", "repeats", "seed"):
        then, now = getattr(old.sampling, key), getattr(suite.sampling, key)
        if then != now:
            yield f"sampling.{key}: {then} at {ref}, {now} now"
    now_by = {c.name: c for c in suite.criteria}
    for criterion in old.criteria:
        if not criterion.gate or (found := now_by.get(criterion.name)) is None:
            continue
        before, after = _meaning(criterion, hard=judged), _meaning(found, hard=judged)
        if keys := [key for key in before if before[key] != after[key]]:
            yield (
                f"criterion {criterion.name} measures something else than at {ref} "
                f"({', '.join(keys)})"
            )
        named = [criterion.judge, *criterion.settings.values()]
        for name in [n for n in named if isinstance(n, str)]:
            if moved := moved_behind(name, suite.folder, sha, files):
                yield f"criterion {criterion.name} reads {moved}, which differs from {ref}"
        if criterion.scorer and ":" in criterion.scorer and _code_differs(criterion.scorer, sha):
            yield f"criterion {criterion.name} is scored by code that differs from {ref}"


def moved_behind(name: str, folder: Path, sha: str, files: Collection[str]) -> str:
    """The file that a name in a suite leads to and that differs from a commit, or "".

    It is the one of that name, one below it, or what stands behind a link; inside the suite's
    folder (`files` are those that differ there) or elsewhere in the repository.
    """
    if "\0" in name:
        return ""
    root = folder.resolve()
    for place in dict.fromkeys((os.path.normpath(root / name), os.path.realpath(root / name))):
        if root.is_relative_to(place):  # the suite's folder, as "" and "." are: no file of it
            continue
        inside = Path(place).is_relative_to(root)
        above = root if inside else Path(place).parent
        differ = files if inside else changed_files(above, sha)
        if moved := [file for file in differ if (above / file).is_relative_to(place)]:
            return Path(os.path.relpath(above / moved[0], root)).as_posix()
    return ""


def loosened(
    then: Mapping[str, Mapping[str, Any]],
    now: Mapping[str, Mapping[str, Any]],
    when: str,
) -> Iterator[str]:
    """Thresholds that decided then and ask for less now, one sentence each."""
    for name, old in then.items():
        if not old.get("gate", True):
            continue
        new = now.get(name)
        if new is None or not new.get("gate", True):
            yield f"criterion {name} decided {when}, and decides nothing now"
            continue
        keys = [k for k in _LEAST if k in old and (k not in new or new[k] < old[k])]
        keys += [k for k in _MOST if k in old and (k not in new or new[k] > old[k])]
        keys += ["hard"] if old.get("hard") and not new.get("hard") else []
        keys += ["statistic"] if old.get("statistic") != new.get("statistic") else []
        before, after = ({name: {k: rule.get(k) for k in keys}} for rule in (old, new))
        yield from threshold_changes(before, after, when, "now")


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


def problem_of(redefined: Iterable[str], what: str, mend: str) -> tuple[str, ...]:
    """The one problem that redefinitions make of a run, or ()."""
    said = list(dict.fromkeys(redefined))
    if not said:
        return ()
    return (f"{what}: {listed(said, 3, '; ')}. {mend}",)


def _meaning(criterion: Criterion, *, hard: bool) -> dict[str, Any]:
    """What a criterion measures; `hard` is part of it where it keeps a case from the judges."""
    whole = criterion.meaning()
    whole["settings"] = {"allow_repair": criterion.allow_repair, **criterion.settings}
    return whole if hard else {k: v for k, v in whole.items() if k != "hard"}


def _code_differs(entry: str, sha: str) -> bool:
    """Whether the module of a scorer of the user's own differs from a commit."""
    try:
        spec = find_spec(entry.partition(":")[0])
        path = Path(spec.origin) if spec and spec.origin else None
        if path is None or not path.is_file():
            return False
        then = file_at(path, sha)
        if then is None:  # it stands in another file now, or outside the repository
            return path.name in changed_files(path.parent, sha)
        return then != path.read_text("utf-8-sig")
    except (ImportError, ValueError, OSError):  # outside the repository: not of this change
        return False


def _value(value: Any) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)

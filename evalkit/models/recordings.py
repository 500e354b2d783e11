"""Recordings: replies as JSONL files under version control, replayed without a network.

A line holds `key`, `reply` and `origin`: which model gave the reply, when and with what settings,
or "handwritten" for one that a person wrote; such a reply carries a warning wherever it is shown.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalkit.counting import counted
from evalkit.errors import ReplayMissing, StoreError
from evalkit.models.plain import reply_from_plain, reply_to_plain
from evalkit.models.store import CallStore
from evalkit.records import Reply

__all__ = ["HANDWRITTEN", "Recordings", "export", "load_recordings", "write_recordings"]

HANDWRITTEN = "handwritten"
_WARNING = "handwritten: no model gave this reply"


@dataclass(frozen=True)
class Recordings:
    """Replies by call key, and where each comes from."""

    replies: Mapping[str, Reply] = field(default_factory=dict)
    origins: Mapping[str, Any] = field(default_factory=dict)

    def get(self, key: str) -> Reply | None:
        """The recorded reply of a call, or None."""
        return self.replies.get(key)

    def __len__(self) -> int:
        return len(self.replies)


def load_recordings(*paths: Path) -> Recordings:
    """Read recordings: files, or folders whose `*.jsonl` are read in the order of their names.

    Raises:
        StoreError: If a line is no recording; names file and line.
    """
    replies: dict[str, Reply] = {}
    origins: dict[str, Any] = {}
    for path in paths:
        for file in sorted(path.glob("*.jsonl")) if path.is_dir() else [path]:
            try:
                lines = file.read_text(encoding="utf-8").split("\n")
            except (OSError, UnicodeDecodeError) as error:
                raise StoreError(f"{file}: the recording cannot be read ({error}).") from None
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                key, origin, reply = _read_line(line, f"{file}:{number}")
                replies[key], origins[key] = reply, origin
    return Recordings(replies, origins)


def _read_line(line: str, where: str) -> tuple[str, Any, Reply]:
    try:
        entry = json.loads(line)
        key, origin = entry["key"], entry["origin"]
        if len(bytes.fromhex(key)) != 32:
            raise ValueError("key is not 64 hex digits")
        if origin != HANDWRITTEN and not (isinstance(origin, dict) and origin.get("model")):
            raise ValueError('origin must name a model, or be "handwritten"')
        reply = reply_from_plain(entry["reply"], key)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StoreError(
            f"{where}: no recording ({error!r}). A line holds key, origin and reply; "
            "export it again, or delete the line."
        ) from None
    if origin == HANDWRITTEN and _WARNING not in reply.warnings:
        reply = replace(reply, warnings=(*reply.warnings, _WARNING))
    return key, origin, reply


def write_recordings(
    path: Path, replies: Iterable[Reply], *, origins: Mapping[str, Any] | str
) -> int:
    """Write replies (each with its key) to a file, sorted by key; returns how many.

    Args:
        path: Replaced as a whole, never half.
        replies: Each with its `key`.
        origins: An origin for each key, or "handwritten" for all.
    """
    lines: list[str] = []
    for reply in sorted(replies, key=lambda r: r.key):
        origin = origins if isinstance(origins, str) else origins[reply.key]
        entry = {"key": reply.key, "origin": origin, "reply": reply_to_plain(reply)}
        lines.append(json.dumps(entry, ensure_ascii=False, sort_keys=True))
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    draft.replace(path)
    return len(lines)


def export(store: CallStore, keys: Iterable[str], path: Path) -> int:
    """Write the stored replies of these calls (a run's rows name them) to a recording.

    Raises:
        ReplayMissing: If some are not stored; names them.
    """
    wanted = list(dict.fromkeys(keys))
    replies, origins = store.get_many(wanted), store.origins(wanted)
    if missing := [k for k in wanted if k not in replies]:
        shown = ", ".join(k[:12] for k in missing[:10])
        raise ReplayMissing(
            f"{store.path} lacks {len(missing)} of {counted(len(wanted), 'reply')}: {shown}"
            f"{' ...' if len(missing) > 10 else ''}. Run again, then export."
        )
    named = {
        key: {
            "model": origin["model"],
            "date": datetime.fromtimestamp(origin["at"], UTC).strftime("%Y-%m-%d"),
            "settings": json.loads(origin["settings"]),
        }
        for key, origin in origins.items()
    }
    return write_recordings(path, replies.values(), origins=named)

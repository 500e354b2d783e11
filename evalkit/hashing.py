"""Canonical JSON and its digest, used by prompts, calls, suites and runs."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["canonical_json", "clean_text", "sha256_hex", "short_hash"]

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} has no canonical JSON")


_CANONICAL = json.JSONEncoder(  # made once: json.dumps would make one for each of a run's hashes
    sort_keys=True,
    ensure_ascii=False,
    allow_nan=False,
    separators=(",", ":"),
    default=_plain,
)


def clean_text(text: str) -> str:
    """Replace unpaired surrogates by U+FFFD, so that the text can be written as UTF-8."""
    if text.isascii() or not _LONE_SURROGATE.search(text):
        return text
    return _LONE_SURROGATE.sub("�", text)


def canonical_json(value: Any) -> str:
    """One spelling for equal values: sorted keys, no spaces, UTF-8, no NaN.

    Raises:
        ValueError: If a number is NaN or infinite.
    """
    return clean_text(_CANONICAL.encode(value))


def sha256_hex(value: Any) -> str:
    """SHA-256 of a text (UTF-8), of bytes, or of a value's canonical JSON; 64 hex digits."""
    if isinstance(value, bytes):
        data = value
    elif isinstance(value, str):
        data = clean_text(value).encode()
    else:
        data = canonical_json(value).encode()
    return hashlib.sha256(data).hexdigest()


def short_hash(value: Any) -> str:
    """The first 12 hex digits of `sha256_hex`: the form shown to people."""
    return sha256_hex(value)[:12]

"""A reply as plain JSON values and back: the form of the store and the recordings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from evalkit.hashing import clean_text
from evalkit.records import Finish, Reply, Usage

__all__ = ["reply_from_json", "reply_from_plain", "reply_to_json", "reply_to_plain"]

_USAGE = ("prompt_tokens", "completion_tokens", "reasoning_tokens", "total_tokens")


def reply_to_plain(reply: Reply) -> dict[str, Any]:
    """A dictionary for JSON without the fields that hold their default, and without the key."""
    plain: dict[str, Any] = {"text": reply.text}
    if reply.reasoning:
        plain["reasoning"] = reply.reasoning
    if reply.refusal:
        plain["refusal"] = reply.refusal
    if reply.finish is not Finish.STOP:
        plain["finish"] = reply.finish.value
    if (usage := reply.usage) is not None:
        plain["usage"] = {k: v for k in _USAGE if (v := getattr(usage, k)) is not None}
    if reply.latency_s is not None:
        plain["latency_s"] = round(reply.latency_s, 4)
    if reply.attempts != 1:
        plain["attempts"] = reply.attempts
    if reply.model:
        plain["model"] = reply.model
    if reply.changes:
        plain["changes"] = list(reply.changes)
    if reply.warnings:
        plain["warnings"] = list(reply.warnings)
    if reply.retrieved is not None:
        plain["retrieved"] = list(reply.retrieved)
    return plain


def reply_from_plain(plain: Mapping[str, Any], key: str = "") -> Reply:
    """The reply behind `reply_to_plain`'s dictionary.

    Raises:
        KeyError, TypeError, ValueError: If it is no such dictionary.
    """
    get = plain.get
    usage, retrieved = get("usage"), get("retrieved")
    return Reply(
        plain["text"],
        get("reasoning", ""),
        get("refusal", ""),
        Finish(get("finish", "stop")),
        None if usage is None else Usage(**usage),
        get("latency_s"),
        get("attempts", 1),
        get("model", ""),
        tuple(get("changes", ())),
        tuple(get("warnings", ())),
        None if retrieved is None else tuple(retrieved),
        key,
    )


def reply_to_json(reply: Reply) -> str:
    """One compact line that can always be written as UTF-8."""
    return clean_text(json.dumps(reply_to_plain(reply), ensure_ascii=False, separators=(",", ":")))


def reply_from_json(text: str, key: str = "") -> Reply:
    """The reply behind `reply_to_json`'s line."""
    return reply_from_plain(json.loads(text), key)

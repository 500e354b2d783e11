"""The call key: SHA-256 of canonical JSON of what decides a reply, and of nothing else.

In it: address, model, messages, sampling parameters, schema, further parameters, the repeat's
index. Not in it: keys, timeouts, retries, concurrency, endpoint names. An absent setting and 0
differ; 0 and 0.0 do not. A golden test pins examples: with a changed key everything would be asked
and paid for again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from evalkit.hashing import canonical_json
from evalkit.records import Case, Request

__all__ = ["call_key", "task_key"]


def call_key(url: str, request: Request) -> str:
    """Key of a call, 64 hex digits.

    Args:
        url: What stands for the endpoint (`Endpoint.identity`): the address the call is sent to.
        request: The call; its model is "endpoint/model", and only the part after the slash counts.
    """
    parts: dict[str, Any] = {
        "url": url,
        "model": request.model.partition("/")[2],
        "messages": [[m.role, m.content] for m in request.messages],
        "repeat": request.repeat,
    }
    if request.temperature is not None:
        parts["temperature"] = float(request.temperature)
    if request.max_tokens is not None:
        parts["max_tokens"] = request.max_tokens
    if request.seed is not None:
        parts["seed"] = request.seed
    if request.schema is not None:
        parts["schema"] = request.schema
    if request.extra:
        parts["extra"] = request.extra
    return hashlib.sha256(canonical_json(parts).encode()).hexdigest()


def task_key(
    entry: str,
    version: str,
    case: Case,
    *,
    prompt_hash: str = "",
    settings: Mapping[str, Any] | None = None,
    repeat: int = 0,
) -> str:
    """Key of one answer of a user's own function; what the case expects is not part of it."""
    parts = {
        "entry": entry,
        "version": version,
        "prompt": prompt_hash,
        "case": [case.id, case.stratum, case.inputs, case.material, case.path],
        "context": [[d.id, d.text] for d in case.context],
        "settings": settings or {},
        "repeat": repeat,
    }
    return hashlib.sha256(canonical_json(parts).encode()).hexdigest()

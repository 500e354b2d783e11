"""The dialects: how a request is spelled and how a reply is read.

A new one is a row `Provider(headers, payload, read)` of `PROVIDERS`, its path in `endpoints.PATHS`,
and one recorded reply in `tests/models/`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from evalkit.models.reading import read_anthropic, read_openai
from evalkit.records import Reply, Request

__all__ = ["PROVIDERS", "Provider", "apply_change", "respelled"]


@dataclass(frozen=True, slots=True)
class Provider:
    """One dialect: headers from a key, payload from model and request, reply from a JSON body."""

    headers: Callable[[str | None], dict[str, str]]
    payload: Callable[[str, Request], dict[str, Any]]
    read: Callable[[Mapping[str, Any]], Reply]


def _openai_headers(key: str | None) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"} if key else {}


def _openai_payload(model: str, request: Request) -> dict[str, Any]:
    payload: dict[str, Any] = {
        "model": model,
        "messages": [{"role": m.role, "content": m.content} for m in request.messages],
    }
    if request.temperature is not None:
        payload["temperature"] = request.temperature
    if request.max_tokens is not None:
        payload["max_tokens"] = request.max_tokens
    if request.seed is not None:
        payload["seed"] = request.seed
    if request.schema is not None:
        payload["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "reply", "schema": request.schema, "strict": True},
        }
    payload.update(request.extra)
    return payload


def _anthropic_headers(key: str | None) -> dict[str, str]:
    version = {"anthropic-version": "2023-06-01"}
    return {**version, "x-api-key": key} if key else version


def _anthropic_payload(model: str, request: Request) -> dict[str, Any]:
    system = "\n\n".join(m.content for m in request.messages if m.role == "system")
    turns = [{"role": m.role, "content": m.content} for m in request.messages if m.role != "system"]
    payload: dict[str, Any] = {
        "model": model,
        "messages": turns,
        "max_tokens": request.max_tokens or 4096,  # this API demands one
    }
    if system:
        payload["system"] = system
    if request.temperature is not None:
        payload["temperature"] = request.temperature
    if request.schema is not None:
        form = {"type": "json_schema", "schema": request.schema}
        payload["output_config"] = {"format": form}
    payload.update(request.extra)
    return payload


PROVIDERS: dict[str, Provider] = {
    "openai": Provider(_openai_headers, _openai_payload, read_openai),
    "anthropic": Provider(_anthropic_headers, _anthropic_payload, read_anthropic),
}


_NEVER_DROPPED = {"model", "messages", "max_completion_tokens"}


def respelled(payload: Mapping[str, Any], parameter: str, message: str) -> tuple[str, str] | None:
    """What to do about a parameter the server refused: (change to make, sentence), None if nothing.

    The change is one of "max_completion_tokens", "not_strict", "json_object", "drop:<name>";
    `apply_change` makes it on this and every later payload for the model.
    """
    if parameter == "max_tokens" and parameter in payload:
        return "max_completion_tokens", "max_tokens sent as max_completion_tokens"
    form = payload.get("response_format")
    if parameter == "response_format" and isinstance(form, Mapping):
        if form.get("type") == "json_schema":
            if form["json_schema"].get("strict") and "invalid schema" in message.lower():
                return "not_strict", "schema not enforced strictly: it is outside the strict subset"
            return "json_object", "schema not enforced: response_format json_schema is not taken"
        return "drop:response_format", "schema not enforced: response_format is not taken"
    if parameter == "output_config" and parameter in payload:
        return "drop:output_config", "schema not enforced: output_config is not taken"
    if parameter in payload and parameter not in _NEVER_DROPPED:
        sent = payload[parameter]
        shown = f" {sent}" if isinstance(sent, (int, float, str)) else ""
        return f"drop:{parameter}", f"{parameter}{shown} not taken: the server's own default"
    return None


def apply_change(payload: dict[str, Any], change: str) -> bool:
    """Make a change on a payload; False when it does not concern this one."""
    if change == "max_completion_tokens" and "max_tokens" in payload:
        payload["max_completion_tokens"] = payload.pop("max_tokens")
        return True
    form = payload.get("response_format")
    if change == "json_object" and isinstance(form, Mapping) and form.get("type") == "json_schema":
        payload["response_format"] = {"type": "json_object"}
        return True
    if change == "not_strict" and isinstance(form, Mapping) and "json_schema" in form:
        payload["response_format"] = {
            **form,
            "json_schema": {**form["json_schema"], "strict": False},
        }
        return True
    return change.startswith("drop:") and payload.pop(change[5:], None) is not None

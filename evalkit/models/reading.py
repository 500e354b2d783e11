"""From the bytes of a 200 to one `Reply`, whatever the server sent; or the fault behind them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from evalkit.hashing import clean_text
from evalkit.models.faults import CallFault, FaultKind, fault_in_body
from evalkit.records import Finish, Reply, Request, Usage

__all__ = ["cut_prompt_warning", "json_body", "read_anthropic", "read_openai"]

_FINISH = {
    "stop": Finish.STOP,
    "eos": Finish.STOP,
    "end_turn": Finish.STOP,
    "stop_sequence": Finish.STOP,
    "length": Finish.LENGTH,
    "max_tokens": Finish.LENGTH,
    "content_filter": Finish.CONTENT_FILTER,
    "tool_calls": Finish.TOOL_CALLS,
    "function_call": Finish.TOOL_CALLS,
    "tool_use": Finish.TOOL_CALLS,
    "refusal": Finish.REFUSAL,
    "model_context_window_exceeded": Finish.LENGTH,
}
NO_ANSWER_BUT_REASONING = (
    "no answer text, but reasoning text present: look at the server's reasoning parser setting"
)
BUDGET_WENT_TO_REASONING = "no answer: the output budget went to hidden reasoning"


def json_body(content: bytes, content_type: str = "", *, url: str = "") -> Mapping[str, Any]:
    """The JSON object in a 200 body; an event stream nobody asked for is put together.

    Raises:
        CallFault: If it is cut off, no JSON object, or holds an error object.
    """
    if content_type.startswith("text/event-stream") or content.lstrip()[:5] in _STREAM_STARTS:
        body = _joined(content.decode("utf-8", "replace"), url)
    else:
        try:
            body = json.loads(content)
        except (ValueError, RecursionError):
            start = " ".join(content[:160].decode("utf-8", "replace").split())
            raise CallFault(
                FaultKind.UNREADABLE, f"the reply is no complete JSON (it begins {start!r})"
            ) from None
    if not isinstance(body, Mapping):
        raise CallFault(FaultKind.UNREADABLE, "the reply is JSON, but not an object")
    if fault := fault_in_body(body, url=url):
        raise fault
    return body


_STREAM_STARTS = (b"data:", b"event", b"retry")


def read_openai(body: Mapping[str, Any]) -> Reply:
    """A reply of the chat completions form.

    Raises:
        CallFault: If there is no choice in it.
    """
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, Mapping):
        raise CallFault(FaultKind.UNREADABLE, "the reply holds no choices")
    if fault := fault_in_body(choice):
        raise fault
    message = choice.get("message")
    if not isinstance(message, Mapping):
        message = {"content": choice.get("text")}
    text, thought = _parts(message.get("content"))
    said = message.get("reasoning_content") or message.get("reasoning")
    thought = said if isinstance(said, str) else thought
    refusal = message.get("refusal")
    return _reply(
        text,
        thought,
        refusal if isinstance(refusal, str) else "",
        choice.get("finish_reason"),
        _openai_usage(body.get("usage")),
        body.get("model"),
    )


def read_anthropic(body: Mapping[str, Any]) -> Reply:
    """A reply of the messages form.

    Raises:
        CallFault: If it holds no content.
    """
    content = body.get("content")
    if not isinstance(content, (list, str)):
        raise CallFault(FaultKind.UNREADABLE, "the reply holds no content")
    text, thought = _parts(content)
    usage = body.get("usage")
    counted: Usage | None = None
    if isinstance(usage, Mapping):
        prompt, out = _count(usage, "input_tokens"), _count(usage, "output_tokens")
        if prompt is not None:  # cached parts of the prompt are counted beside it
            prompt += _count(usage, "cache_read_input_tokens") or 0
            prompt += _count(usage, "cache_creation_input_tokens") or 0
        counted = _usage(prompt, out, None, None)
    return _reply(text, thought, "", body.get("stop_reason"), counted, body.get("model"))


def cut_prompt_warning(request: Request, usage: Usage | None) -> str:
    """A sentence when the server counted far fewer tokens than the prompt must have, else "".

    Even dense English has under six characters to a token; white space is not counted here.
    """
    counted = usage.prompt_tokens if usage else None
    if not counted or sum(len(m.content) for m in request.messages) < 4000:
        return ""
    solid = sum(len("".join(m.content.split())) for m in request.messages)
    if solid < 3200 or counted * 6 >= solid:
        return ""
    return (
        f"prompt cut by the server: it counted {counted} tokens for {solid} characters, so the "
        "model did not see the whole text (raise the server's context size)"
    )


def _reply(
    text: str, reasoning: str, refusal: str, finish: Any, usage: Usage | None, model: Any
) -> Reply:
    end = _FINISH.get(finish, Finish.UNKNOWN) if isinstance(finish, str) else Finish.UNKNOWN
    warnings: tuple[str, ...] = ()
    if not text and end is Finish.LENGTH and (reasoning or (usage and usage.reasoning_tokens)):
        warnings = (BUDGET_WENT_TO_REASONING,)
    elif not text and reasoning:
        warnings = (NO_ANSWER_BUT_REASONING,)
    return Reply(
        text=clean_text(text),
        reasoning=clean_text(reasoning),
        refusal=clean_text(refusal),
        finish=end,
        usage=usage,
        model=clean_text(model) if isinstance(model, str) else "",
        warnings=warnings,
    )


def _parts(content: Any) -> tuple[str, str]:
    """Text and reasoning of a message's content: a string, None, or a list of parts."""
    if isinstance(content, str):
        return content, ""
    text: list[str] = []
    thought: list[str] = []
    for part in content if isinstance(content, list) else ():
        if isinstance(part, str):
            text.append(part)
        elif isinstance(part, Mapping):
            inner = part.get("thinking", part.get("reasoning"))
            if inner is not None:
                thought.append(inner if isinstance(inner, str) else _parts(inner)[0])
            elif isinstance(part.get("text"), str):
                text.append(part["text"])
    return "".join(text), "".join(thought)


def _openai_usage(usage: Any) -> Usage | None:
    if not isinstance(usage, Mapping):
        return None
    details = usage.get("completion_tokens_details")
    reasoning = _count(details, "reasoning_tokens") if isinstance(details, Mapping) else None
    return _usage(
        _count(usage, "prompt_tokens"),
        _count(usage, "completion_tokens"),
        reasoning,
        _count(usage, "total_tokens"),
    )


def _usage(
    prompt: int | None, out: int | None, reasoning: int | None, total: int | None
) -> Usage | None:
    if prompt is None and out is None and total is None:
        return None
    if total is None and prompt is not None and out is not None:
        total = prompt + out
    return Usage(prompt, out, reasoning, total)


def _count(usage: Mapping[str, Any], name: str) -> int | None:
    value = usage.get(name)
    return value if type(value) is int and value >= 0 else None


# -- event streams -----------------------------------------------------------------------------


def _events(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        if line.startswith("data:") and (data := line[5:].strip()) not in ("", "[DONE]"):
            try:
                event = json.loads(data)
            except ValueError:
                raise CallFault(FaultKind.UNREADABLE, "an event stream that is cut off") from None
            if isinstance(event, dict):
                yield event


def _joined(text: str, url: str) -> dict[str, Any]:
    """One body from the pieces of a stream.

    Raises:
        CallFault: If the stream carries an error or ends before its end.
    """
    events = list(_events(text))
    for event in events:
        if fault := fault_in_body(event, url=url):
            raise fault
    join: Callable[[list[dict[str, Any]]], dict[str, Any]] = _joined_openai
    if any(e.get("type") == "message_start" for e in events):
        join = _joined_anthropic
    body = join(events)
    if body.pop("unfinished"):
        raise CallFault(FaultKind.UNREADABLE, "an event stream that ends before its end")
    return body


def _joined_openai(events: list[dict[str, Any]]) -> dict[str, Any]:
    message: dict[str, str] = {}
    finish: str | None = None
    usage: Any = None
    model: Any = None
    for event in events:
        usage, model = event.get("usage") or usage, event.get("model") or model
        for choice in (event.get("choices") or [])[:1]:
            finish = choice.get("finish_reason") or finish
            for name, piece in (choice.get("delta") or {}).items():
                if isinstance(piece, str) and name != "role":
                    message[name] = message.get(name, "") + piece
    choices = [{"message": message, "finish_reason": finish}]
    return {"choices": choices, "usage": usage, "model": model, "unfinished": finish is None}


def _joined_anthropic(events: list[dict[str, Any]]) -> dict[str, Any]:
    body: dict[str, Any] = {"content": [], "usage": {}, "unfinished": True}
    for event in events:
        if event.get("type") == "message_start":
            body["model"] = event["message"].get("model")
            body["usage"] |= event["message"].get("usage") or {}
        delta = event.get("delta") or {}
        if event.get("type") == "content_block_delta":
            body["content"].append({k: v for k, v in delta.items() if k in ("text", "thinking")})
        if event.get("type") == "message_delta":
            body["stop_reason"], body["unfinished"] = delta.get("stop_reason"), False
            body["usage"] |= event.get("usage") or {}
    return body

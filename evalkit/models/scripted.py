"""A scripted model: texts and tool calls from a list, to test that an application is wired right.

It says nothing about quality; every reply carries a warning, and runs of it are marked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from evalkit.models.client import Client
from evalkit.models.endpoints import Endpoint, Endpoints
from evalkit.records import Reply, Request

if TYPE_CHECKING:
    import httpx

__all__ = ["SCRIPTED", "ScriptedModel", "ToolCall"]

SCRIPTED = "scripted"
_WARNING = f"{SCRIPTED}: no model gave this reply"


@dataclass(frozen=True)
class ToolCall:
    """One call of a tool: its name and its arguments."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


Turn = str | ToolCall | Sequence[ToolCall]
Script = Sequence[Turn] | Callable[[Mapping[str, Any]], Turn]


class ScriptedModel:
    """Answers calls in OpenAI's form, one turn of the script after the other.

    Args:
        script: Texts, tool calls, or several tool calls of one turn; or a function that gives the
            turn for a request body. A script that has ended answers 400 and says so.

    `requests` keeps every body that was sent.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[dict[str, Any]] = []

    def transport(self) -> httpx.MockTransport:
        """For an application's own `httpx` client (those of model vendors take one)."""
        import httpx

        return httpx.MockTransport(self._answer)

    def client(self, *models: str) -> Client:
        """A client of this package whose endpoints, those of `models`, are this script."""
        names = {model.partition("/")[0] for model in models}
        one = Endpoint(
            base_url="http://script.invalid/v1",
            price_input_usd_per_mtok=0.0,
            price_output_usd_per_mtok=0.0,
            max_concurrency=1,  # the script is a list: its order is the order of the calls
            attempts=1,
        )
        return _ScriptedClient(
            Endpoints({name: replace(one, name=name) for name in names}),
            transport=self.transport(),
        )

    def _answer(self, request: httpx.Request) -> httpx.Response:
        import httpx

        body: dict[str, Any] = json.loads(request.content)
        self.requests.append(body)
        if callable(self.script):
            turn = self.script(body)
        elif len(self.requests) <= len(self.script):
            turn = self.script[len(self.requests) - 1]
        else:
            said = f"the script has {len(self.script)} turns, this is call {len(self.requests)}"
            return httpx.Response(400, json={"error": {"message": said}})
        return httpx.Response(200, json=_completion(turn, str(body.get("model", SCRIPTED))))


class _ScriptedClient(Client):
    async def ask(self, request: Request, *, purpose: str = "task") -> Reply:
        reply = await super().ask(request, purpose=purpose)
        return replace(reply, warnings=(*reply.warnings, _WARNING))


def _completion(turn: Turn, model: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": turn}
    if not isinstance(turn, str):
        calls = [turn] if isinstance(turn, ToolCall) else turn
        message["content"] = None
        message["tool_calls"] = [
            {
                "id": f"call_{i}",
                "type": "function",
                "function": {"name": c.name, "arguments": json.dumps(dict(c.arguments))},
            }
            for i, c in enumerate(calls)
        ]
    finish = "stop" if isinstance(turn, str) else "tool_calls"
    return {
        "id": "script",
        "object": "chat.completion",
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    }

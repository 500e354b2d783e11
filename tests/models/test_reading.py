"""Whatever a server sends becomes one reply: group A of the failure cases, as bodies and live."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from chat_server import Answer, ChatServer

from evalkit.errors import CallFailed
from evalkit.models.client import Client
from evalkit.models.endpoints import Endpoint, Endpoints
from evalkit.models.faults import CallFault
from evalkit.models.reading import json_body, read_anthropic, read_openai
from evalkit.models.store import CallStore
from evalkit.records import Finish, Message, Reply, Request, Usage

CASES = Path(__file__).resolve().parents[1] / "failure_cases"
GROUP_A = {
    c["id"]: c
    for c in map(json.loads, (CASES / "cases.jsonl").read_text("utf-8").splitlines())
    if c["group"] == "api-replies"
}


def body_of(case_id: str) -> bytes:
    return (CASES / GROUP_A[case_id]["input"]["body_file"]).read_bytes()


def asked(
    case_id: str, folder: Path, text: str = "Question?", *, attempts: int = 1
) -> tuple[Reply | CallFailed, Reply | None, int]:
    """The body from a real server: what `ask` gave, what the store gives again, calls sent."""
    given = GROUP_A[case_id]["input"]
    answer = Answer(given["http_status"], body_of(case_id), given.get("headers", {}))
    request = Request("m/x", (Message("user", text),), max_tokens=256)

    async def run(base_url: str) -> tuple[Reply | CallFailed, Reply | None]:
        endpoints = Endpoints({"m": Endpoint("m", base_url, attempts=attempts, backoff_s=0.01)})
        with CallStore(folder / "calls.sqlite") as store:
            async with Client(endpoints, store=store) as client:
                try:
                    reply: Reply | CallFailed = await client.ask(request)
                except CallFailed as error:
                    reply = error
                return reply, store.get(client.key_of(request))

    with ChatServer(reply=lambda _: answer) as server:
        reply, stored = asyncio.run(run(server.base_url))
        return reply, stored, server.requests


def good(case_id: str, folder: Path, text: str = "Question?") -> Reply:
    reply, stored, calls = asked(case_id, folder, text)
    assert isinstance(reply, Reply)
    assert stored == reply or stored is not None
    assert stored.text == reply.text
    assert calls == 1
    return reply


def test_a01_a_reply_cut_off_by_hidden_reasoning_is_a_truncated_result(tmp_path: Path) -> None:
    reply = good("A01", tmp_path)
    assert reply.text == ""
    assert reply.truncated
    assert reply.usage == Usage(412, 256, 256, 668)
    assert "hidden reasoning" in reply.warnings[0]


def test_a03_reasoning_in_place_of_an_answer_is_kept_apart(tmp_path: Path) -> None:
    reply = good("A03", tmp_path)
    assert reply.text == ""
    assert reply.reasoning == "Yes. The warranty covers water damage."
    assert reply.finish is Finish.STOP
    assert reply.usage is None
    assert "no answer text, but reasoning text present" in reply.warnings[0]


def test_a04_content_parts_are_joined_and_thinking_parts_are_reasoning(tmp_path: Path) -> None:
    reply = good("A04", tmp_path)
    assert reply.text == "The trip takes 3 hours."
    assert reply.reasoning == "Distance 240 km at 80 km/h."


def test_a05_a_refusal_is_marked_and_its_text_kept(tmp_path: Path) -> None:
    reply = good("A05", tmp_path)
    assert reply.text == ""
    assert reply.refused
    assert reply.refusal == "I can't help with opening that lock."


def test_a06_an_error_inside_a_200_is_tried_again_and_never_stored(tmp_path: Path) -> None:
    failed, stored, calls = asked("A06", tmp_path, attempts=3)
    assert isinstance(failed, CallFailed)
    assert "Upstream host gave no usable answer" in str(failed)
    assert "502" in str(failed)
    assert stored is None
    assert calls == 3


def test_a15_an_event_stream_nobody_asked_for_is_put_together(tmp_path: Path) -> None:
    reply = good("A15", tmp_path)
    assert reply.text == "Paris."
    assert reply.finish is Finish.STOP
    assert reply.usage is not None
    assert reply.usage.total_tokens == 11


def test_a17_a_prompt_cut_by_the_server_is_warned_of(tmp_path: Path) -> None:
    long = ("The warranty of the pump covers water damage for two years. " * 700)[:32000]
    reply = good("A17", tmp_path, long)
    assert any("prompt cut by the server" in w for w in reply.warnings)


@pytest.mark.parametrize(
    ("text", "counted"),
    [("short", 2050), ("a b c d " * 4000, 9000), (" " * 30000 + "x" * 2000, 700), ("y" * 32000, 0)],
)
def test_a17_no_false_alarm(text: str, counted: int) -> None:
    from evalkit.models.reading import cut_prompt_warning

    request = Request("m/x", (Message("user", text),))
    assert cut_prompt_warning(request, Usage(prompt_tokens=counted)) == ""
    assert cut_prompt_warning(request, None) == ""


def test_a18_a_lone_surrogate_survives_store_and_replay_as_a_replacement(tmp_path: Path) -> None:
    reply = good("A18", tmp_path)
    assert reply.text == GROUP_A["A18"]["expected"]["value"]["text_after_write"]
    reply.text.encode("utf-8")


# -- further shapes ----------------------------------------------------------------------------


def test_an_anthropic_reply_is_read_with_its_cached_tokens() -> None:
    reply = read_anthropic(
        {
            "content": [
                {"type": "thinking", "thinking": "Look it up."},
                {"type": "text", "text": "Two "},
                {"type": "text", "text": "years."},
            ],
            "stop_reason": "max_tokens",
            "model": "c-1",
            "usage": {"input_tokens": 5, "output_tokens": 7, "cache_read_input_tokens": 100},
        }
    )
    assert (reply.text, reply.reasoning) == ("Two years.", "Look it up.")
    assert reply.truncated
    assert reply.usage == Usage(105, 7, None, 112)


def test_an_anthropic_stream_is_put_together() -> None:
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"model": "c", "usage": {"input_tokens": 3}}},
        {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "Hm."}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Pa"}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "ris"}},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 2},
        },
        {"type": "message_stop"},
    ]
    text = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)
    reply = read_anthropic(json_body(text.encode()))
    assert (reply.text, reply.reasoning, reply.finish) == ("Paris", "Hm.", Finish.STOP)
    assert reply.usage == Usage(3, 2, None, 5)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"choices": [{"message": {"content": "cut',
        b"<html>busy</html>",
        b"[1, 2]",
        b"[" * 100_000,
        b'data: {"choices": [{"delta": {"content": "Pa"}}]}\n\n',
        b'data: {"choices": [{"delta": {"con',
        b'data: {"error": {"message": "overloaded", "type": "overloaded_error"}}\n\n',
    ],
)
def test_an_unfinished_or_foreign_body_is_a_fault_that_passes(content: bytes) -> None:
    with pytest.raises(CallFault) as caught:
        json_body(content)
    assert caught.value.retry


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"choices": []},
        {"choices": [None]},
        {"choices": "x"},
        {"choices": None},
        {"choices": [{"error": {"code": 502, "message": "gone"}, "finish_reason": "error"}]},
    ],
)
def test_no_choices_is_a_fault_that_passes(body: dict[str, Any]) -> None:
    with pytest.raises(CallFault) as caught:
        read_openai(body)
    assert caught.value.retry


@pytest.mark.parametrize(
    "usage", [None, "12", {}, {"prompt_tokens": None}, {"prompt_tokens": True}, [1]]
)
def test_usage_that_is_not_stated_is_unknown_not_zero(usage: Any) -> None:
    body = {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}], "usage": usage}
    assert read_openai(body).usage is None


def test_tool_calls_and_odd_finish_reasons_do_not_crash() -> None:
    choice = {"message": {"content": None, "tool_calls": [{}]}, "finish_reason": "tool_calls"}
    assert read_openai({"choices": [choice]}).finish is Finish.TOOL_CALLS
    assert read_openai({"choices": [{"message": {"content": "x"}}]}).finish is Finish.UNKNOWN
    assert read_openai({"choices": [{"text": "old form", "finish_reason": "eos"}]}).text

"""Retry or not, after how long, and the sentence (A07, A08, A09)."""

from __future__ import annotations

import asyncio
import email.utils
import json
from pathlib import Path
from typing import Any

import pytest
from chat_server import Answer, ChatServer

from evalkit.errors import CallFailed, CallImpossible
from evalkit.models.client import Client
from evalkit.models.endpoints import Endpoint, Endpoints
from evalkit.models.faults import FaultKind, fault_of_status, retry_after_s
from evalkit.models.transport import network_fault
from evalkit.records import Finish, Message, Reply, Request

CASES = Path(__file__).resolve().parents[1] / "failure_cases"
BY_ID = {
    c["id"]: c for c in map(json.loads, (CASES / "cases.jsonl").read_text("utf-8").splitlines())
}
URL = "http://h/v1/chat/completions"


def test_a07_retry_after_is_read_in_every_spelling() -> None:
    given = BY_ID["A07"]["input"]
    now = email.utils.parsedate_to_datetime(given["now"]).timestamp()
    delays = [retry_after_s(r["headers"], now) for r in given["responses"]]
    assert delays == BY_ID["A07"]["expected"]["value"]


@pytest.mark.parametrize(
    ("headers", "delay"),
    [
        ({"Retry-After-Ms": "1500"}, 1.5),
        ({"retry-after-ms": "x", "retry-after": "2"}, 2.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({}, None),
    ],
)
def test_odd_delays(headers: dict[str, str], delay: float | None) -> None:
    assert retry_after_s(headers) == delay


def test_a08_what_is_sent_again() -> None:
    decisions: list[bool] = []
    for attempt in BY_ID["A08"]["input"]["attempts"]:
        if attempt["status"] is None:
            decisions.append(network_fault(ConnectionResetError("reset")).retry)
            continue
        text = attempt.get("body_text") or json.dumps(attempt["body"])
        decisions.append(fault_of_status(attempt["status"], {}, text.encode(), url=URL).retry)
    assert decisions == BY_ID["A08"]["expected"]["value"]


def test_a08_permanent_faults_name_their_cause() -> None:
    bodies = [(a["status"], a.get("body")) for a in BY_ID["A08"]["input"]["attempts"]]
    quota, context, key, model = (
        fault_of_status(s, {}, json.dumps(b).encode(), url=URL)
        for s, b in (bodies[1], bodies[4], bodies[5], bodies[6])
    )
    assert quota.kind is FaultKind.QUOTA
    assert "quota" in quota.message
    assert context.kind is FaultKind.TOO_LONG
    assert "5210" in context.message
    assert "4096" in context.message
    assert "key" in key.message
    assert "qwen9" in model.message
    assert URL in model.message


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (400, "This model's maximum context length is 8,192 tokens, you sent 9000", "too_long"),
        (400, "prompt is too long: 208310 tokens > 200000 maximum", "too_long"),
        (402, "please top up", "quota"),
        (400, "Your credit balance is too low to access the API", "quota"),
        (408, "slow", "server"),
        (500, "no", "server"),
        (501, "never", "impossible"),
        (529, "busy", "overloaded"),
        (403, "no access", "impossible"),
        (422, "temperature: extra inputs are not permitted", "parameter"),
        (400, "messages: at least one message is required", "impossible"),
    ],
)
def test_classes(status: int, error: str, kind: str) -> None:
    body = json.dumps({"error": {"message": error}}).encode()
    assert fault_of_status(status, {}, body, url=URL).kind == kind


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe",
        b"null",
        b"[]",
        b'{"error": "busy"}',
        b'[{"error": {"message": "list"}}]',
        b'{"detail": [{"loc": ["body"], "msg": "field required"}]}',
        b"<html><style>p{}</style><p>gone</p></html>",
    ],
)
def test_any_error_body_gives_a_sentence(body: bytes) -> None:
    fault = fault_of_status(500, {}, body, url=URL)
    assert fault.message.startswith("HTTP 500: ")
    assert "<" not in fault.message


def test_a_redirect_names_the_new_address() -> None:
    fault = fault_of_status(308, {"Location": "https://new/v1"}, b"", url=URL)
    assert fault.kind is FaultKind.IMPOSSIBLE
    assert "https://new/v1" in fault.message


# -- live --------------------------------------------------------------------------------------


def request(i: int = 0, **settings: Any) -> Request:
    return Request("m/x", (Message("user", f"case {i}"),), **settings)


def endpoint(server: ChatServer, **settings: Any) -> Endpoints:
    return Endpoints({"m": Endpoint("m", server.base_url, backoff_s=0.01, **settings)})


def test_a09_a_refused_parameter_is_respelled_once_and_said_so() -> None:
    steps = [s["reply"] for s in BY_ID["A09"]["input"]["steps"]]

    def reply(body: dict[str, Any]) -> str | Answer:
        form = body.get("response_format", {}).get("type")
        refused = (
            0 if "max_tokens" in body else 1 if body.get("temperature") == 0 else 2
        )  # one at a time, as servers do
        if refused < 2 or form == "json_schema":
            return Answer(steps[refused]["status"], steps[refused]["body"])
        return "{}"

    async def run(server: ChatServer) -> list[Reply]:
        settings: dict[str, Any] = {"max_tokens": 300, "temperature": 0, "schema": {}}
        async with Client(endpoint(server)) as client:
            return [await client.ask(request(i, **settings)) for i in range(3)]

    with ChatServer(reply=reply) as server:
        replies = asyncio.run(run(server))
        last = server.bodies[-1]
        assert server.requests == 3 + 3  # three refusals, then every call at once
    assert last["max_completion_tokens"] == 300
    assert "temperature" not in last
    assert last["response_format"] == {"type": "json_object"}
    for reply_ in replies:
        changes = " | ".join(reply_.changes)
        assert "max_tokens sent as max_completion_tokens" in changes
        assert "temperature 0 not taken" in changes
        assert "schema not enforced" in changes


def test_a_schema_outside_the_strict_subset_is_sent_without_strict() -> None:
    said = "Invalid schema for response_format 'reply': additionalProperties must be false"

    def reply(body: dict[str, Any]) -> str | Answer:
        strict = body["response_format"]["json_schema"]["strict"]
        error = {"message": said, "type": "invalid_request_error", "param": "response_format"}
        return Answer(400, {"error": error}) if strict else "{}"

    with ChatServer(reply=reply) as server:
        wanted = [request(i, schema={"type": "object", "if": {}}) for i in range(2)]
        replies = asyncio.run(_ask(endpoint(server), *wanted))
        assert server.requests == 3
    assert "not enforced strictly" in replies[1].changes[0]


def test_a_parameter_nobody_sent_cannot_be_mended() -> None:
    body = {"error": {"message": "Unsupported parameter: 'top_p'", "param": "top_p"}}
    with (
        ChatServer(reply=lambda _: Answer(400, body)) as server,
        pytest.raises(CallImpossible, match="top_p"),
    ):
        asyncio.run(_ask(endpoint(server), request()))
    assert server.requests == 1


async def _ask(endpoints: Endpoints, *requests: Request) -> list[Reply]:
    async with Client(endpoints) as client:
        return [await client.ask(r) for r in requests]


def test_the_delay_a_server_asks_for_is_kept() -> None:
    sent: list[float] = []

    def reply(_: dict[str, Any]) -> str | Answer:
        import time

        sent.append(time.monotonic())
        return "fine" if len(sent) > 1 else Answer(429, {}, {"retry-after": "0.3"})

    with ChatServer(reply=reply) as server:
        (got,) = asyncio.run(_ask(endpoint(server), request()))
    assert got.attempts == 2
    assert sent[1] - sent[0] >= 0.3


def test_a_delay_beyond_the_limit_ends_the_call_at_once_and_says_so() -> None:
    with (
        ChatServer(reply=lambda _: Answer(429, {}, {"retry-after": "3600"})) as server,
        pytest.raises(CallFailed, match="3600 s, more than max_wait_s"),
    ):
        asyncio.run(_ask(endpoint(server), request()))
    assert server.requests == 1


def test_a_prompt_too_long_is_that_cases_own_result() -> None:
    error = BY_ID["A08"]["input"]["attempts"][4]["body"]

    def reply(body: dict[str, Any]) -> str | Answer:
        return Answer(400, error) if body["messages"][0]["content"] == "case 1" else "fine"

    with ChatServer(reply=reply) as server:
        replies = asyncio.run(_ask(endpoint(server), request(0), request(1), request(2)))
    assert [r.text for r in replies] == ["fine", "", "fine"]
    assert replies[1].finish is Finish.TOO_LONG
    assert "5210 tokens" in replies[1].warnings[0]


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_a_call_that_can_never_succeed_stops_the_run_after_the_first(status: int) -> None:
    async def run(server: ChatServer) -> list[object]:
        async with Client(endpoint(server, max_concurrency=1)) as client:
            return await asyncio.gather(
                *(client.ask(request(i)) for i in range(20)), return_exceptions=True
            )

    body = {"error": {"message": "no"}}
    with ChatServer(reply=lambda _: Answer(status, body)) as server:
        outcomes = asyncio.run(run(server))
        assert server.requests == 1
        address = server.base_url
    assert all(isinstance(o, CallImpossible) for o in outcomes)
    assert address in str(outcomes[0])
    assert "\n" not in str(outcomes[0])


def test_a_server_that_is_not_there_is_one_sentence() -> None:
    nowhere = Endpoints({"m": Endpoint("m", "http://127.0.0.1:9/v1", backoff_s=0.01, attempts=2)})
    with pytest.raises(CallImpossible, match=r"127\.0\.0\.1:9.*cannot be reached"):
        asyncio.run(_ask(nowhere, request()))

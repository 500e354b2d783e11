"""The one loopback chat server of the tests: counts calls, misbehaves by a seed.

    with ChatServer(latency_s=0.05, faults={"429": 0.05, "drop": 0.05}, seed=7) as server:
        ...                        # server.base_url is http://127.0.0.1:<port>/v1
        server.stats()["requests"]

`POST */chat/completions` speaks OpenAI's form, `POST */messages` Anthropic's. It runs in a thread,
or with `process=True` in a process of its own (for measurements; `reply` is then the default).

What a reply is: `reply(body)` returns the text, a whole JSON body as a dict, or an `Answer` for
full control; it runs in the server's thread. Without it, a JSON schema in `response_format` is
filled in (first choice, highest number); any other request gets its last user message back.

Faults (`faults={kind: rate}`): which request faults depends only on the seed, the body and how
often that body was seen, never on time or order; with `fault_attempts=k` only the first k
sightings fault.

    429 429ms 429date 429bare   rate limited: Retry-After in seconds, milliseconds, a date, absent
    500 503 529 503html         server errors, the last one with an HTML page
    reset                       the connection ends before any byte
    drop                        half a body, then the connection ends
    truncate                    a complete 200 whose JSON is cut in half
    error200 empty              an error object in a 200; an empty list of choices
    drip hang                   one byte every `drip_s` without end; no answer at all
    gzip chunked stream         good replies in another form (an event stream nobody asked for)
"""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import gzip
import hashlib
import json
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

FORMS = {"gzip", "chunked", "stream"}
FAULTS = {
    *("429", "429ms", "429date", "429bare", "500", "503", "529", "503html"),
    *("reset", "drop", "truncate", "error200", "empty", "drip", "hang"),
}


@dataclass(frozen=True)
class Answer:
    """One HTTP answer under the test's control; `body` is text, bytes, or a value for JSON."""

    status: int = 200
    body: Any = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    form: str = ""  # a fault or a form from the table above

    def payload(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()


Replier = Callable[[dict[str, Any]], "str | dict[str, Any] | Answer"]


class ChatServer:
    """See the module's docstring."""

    def __init__(
        self,
        *,
        latency_s: float = 0.0,
        faults: Mapping[str, float] | None = None,
        fault_attempts: int = 0,
        seed: int = 0,
        reply: Replier | None = None,
        retry_after_s: float = 0.05,
        drip_s: float = 0.2,
        keep: bool = True,
        process: bool = False,
        host: str = "127.0.0.1",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.host, self.tls = host, tls
        self.latency_s, self.faults, self.fault_attempts = (
            latency_s,
            dict(faults or {}),
            fault_attempts,
        )
        self.seed, self.reply, self.retry_after_s, self.drip_s = seed, reply, retry_after_s, drip_s
        unknown = set(self.faults) - FAULTS - FORMS
        if unknown:
            raise ValueError(f"no such fault: {sorted(unknown)}")
        self.keep, self.process, self.port = keep, process, 0
        self.bodies: list[dict[str, Any]] = []  # what was asked, in order (with keep)
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.reset()

    # -- what a test reads ---------------------------------------------------------------------

    @property
    def base_url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' if self.tls else ''}://{host}:{self.port}/v1"

    @property
    def open_connections(self) -> int:
        return len(self._open)

    def stats(self) -> dict[str, Any]:
        """Counters; `repeats_after_answer`: a body asked again after its good reply was sent."""
        if self.process:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/__stats") as got:
                return json.load(got)
        span = self._last - self._first
        return {
            "requests": self.requests,
            "answered": self.answered,
            "distinct": len(self.seen),
            "repeats": self.requests - len(self.seen),
            "repeats_after_answer": self.repeats_after_answer,
            "most_of_one": max(self.seen.values(), default=0),
            "faults": dict(self.fault_counts),
            "in_flight": self._in_flight,
            "highest_concurrency": self.highest,
            "mean_concurrency": self._area / span if span > 0 else 0.0,
            "span_s": span,
            "connections": self.connections,
        }

    def reset(self) -> None:
        """Zero every counter."""
        if self.process and self.port:
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}/__reset").close()
            return
        self.requests = self.answered = self.repeats_after_answer = self.connections = 0
        self.highest = self._in_flight = 0
        self._area = self._first = self._last = 0.0
        self.seen: Counter[bytes] = Counter()
        self.done: set[bytes] = set()
        self.fault_counts: Counter[str] = Counter()
        self.bodies.clear(), self.headers.clear(), self.paths.clear()

    # -- life ----------------------------------------------------------------------------------

    def __enter__(self) -> ChatServer:
        if self.process:
            settings = {
                k: getattr(self, k)
                for k in (
                    "latency_s",
                    "faults",
                    "fault_attempts",
                    "seed",
                    "retry_after_s",
                    "drip_s",
                )
            }
            self._child = subprocess.Popen(
                [sys.executable, __file__, json.dumps({**settings, "keep": False})],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            assert self._child.stdout
            self.port = int(self._child.stdout.readline())
            return self
        ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(ready,), daemon=True)
        self._thread.start()
        ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        if self.process:
            self._child.communicate()
            return
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _serve(self, ready: threading.Event) -> None:
        async def serve() -> None:
            self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
            self._open: set[_Connection] = set()
            server = await self._loop.create_server(
                lambda: _Connection(self), self.host, 0, ssl=self.tls
            )
            self.port = server.sockets[0].getsockname()[1]
            ready.set()
            await self._stop.wait()
            server.close()
            for connection in list(self._open):
                connection.abort()
            await asyncio.sleep(0)

        asyncio.run(serve())

    # -- bookkeeping, called by the connections ------------------------------------------------

    def move(self, step: int) -> None:
        now = time.perf_counter()
        if not self._first:
            self._first = self._last = now
        self._area += self._in_flight * (now - self._last)
        self._last = now
        self._in_flight += step
        self.highest = max(self.highest, self._in_flight)

    def fault_of(self, digest: bytes, nth: int) -> str:
        if not self.faults or (self.fault_attempts and nth > self.fault_attempts):
            return ""
        drawn = hashlib.blake2b(b"%d|%d|" % (self.seed, nth) + digest, digest_size=8).digest()
        u = int.from_bytes(drawn, "big") / 2**64
        for kind, rate in self.faults.items():
            if u < rate:
                return kind
            u -= rate
        return ""


class _Connection(asyncio.Protocol):
    def __init__(self, server: ChatServer) -> None:
        self.server, self.buffer, self.busy = server, b"", False
        self.timer: asyncio.TimerHandle | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        self.loop = asyncio.get_running_loop()
        self.server.connections += 1
        self.server._open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.server._open.discard(self)
        self.transport = None
        if self.timer:
            self.timer.cancel()
        if self.busy:
            self.busy = False
            self.server.move(-1)

    def abort(self) -> None:
        if self.transport:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while not self.busy and (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            first, *lines = self.buffer[:end].decode("latin-1").split("\r\n")
            headers = {k.lower(): v.strip() for k, _, v in (x.partition(":") for x in lines)}
            stop = end + 4 + int(headers.get("content-length", 0))
            if len(self.buffer) < stop:
                return
            body, self.buffer = self.buffer[end + 4 : stop], self.buffer[stop:]
            self.take(first.split(" ")[1], headers, body)

    def take(self, path: str, headers: dict[str, str], body: bytes) -> None:
        server = self.server
        if path == "/__stats":
            self.write(Answer(body=server.stats()))
            return
        if path == "/__reset":
            server.reset()
            self.write(Answer(body={}))
            return
        if path.endswith("/models"):
            self.write(Answer(body={"object": "list", "data": [{"id": "mock", "object": "model"}]}))
            return
        if not path.endswith(("/chat/completions", "/messages")):
            self.write(Answer(404, {"error": {"message": f"no such path: {path}"}}))
            return
        server.requests += 1
        self.busy = True
        server.move(+1)
        digest = hashlib.blake2b(body, digest_size=16).digest()
        server.seen[digest] += 1
        server.repeats_after_answer += digest in server.done
        asked = json.loads(body)
        if server.keep:
            server.bodies.append(asked), server.headers.append(headers), server.paths.append(path)
        fault = server.fault_of(digest, server.seen[digest])
        answer = self.answer(asked, path, fault)
        delay = server.latency_s + answer.delay_s
        if delay > 0:
            self.timer = self.loop.call_later(delay, self.send, answer, digest)
        else:
            self.send(answer, digest)

    def answer(self, asked: dict[str, Any], path: str, fault: str) -> Answer:
        wait = self.server.retry_after_s
        if fault:
            self.server.fault_counts[fault] += 1
        if fault.startswith("429"):
            named = {
                "429": {"retry-after": f"{wait:g}"},
                "429ms": {"retry-after-ms": f"{wait * 1000:g}"},
                "429date": {"retry-after": email.utils.formatdate(time.time() + wait, usegmt=True)},
            }.get(fault, {})
            error = {
                "message": "Rate limit reached",
                "type": "requests",
                "code": "rate_limit_exceeded",
            }
            return Answer(429, {"error": error}, named)
        if fault == "503html":
            return Answer(
                503,
                "<html><body><h1>Service Unavailable</h1></body></html>",
                {"content-type": "text/html"},
            )
        if fault in ("500", "503", "529"):
            return Answer(int(fault), {"error": {"message": "on purpose", "type": "server_error"}})
        if fault == "error200":
            error = {"code": 502, "message": "the host behind gave no answer"}
            return Answer(200, {"error": error}, form=fault)
        if fault == "empty":
            return Answer(200, {"id": "r", "object": "chat.completion", "choices": []}, form=fault)
        if self.server.reply is not None:
            made = self.server.reply(asked)
            if isinstance(made, Answer):
                return made
        else:
            made = _default_reply(asked)
        text = made if isinstance(made, str) else None
        if text is not None and path.endswith("/messages"):
            made = anthropic_body(asked, text)
        elif text is not None:
            made = openai_body(asked, text)
        return Answer(200, made, form=fault)

    def send(self, answer: Answer, digest: bytes) -> None:
        server, form = self.server, answer.form
        self.timer = None
        if self.transport is None or form == "hang":
            return
        if form == "reset":
            self.transport.abort()
            return
        if form == "drip":
            self.transport.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
                b"content-length: 1000000\r\n\r\n"
            )
            self.drip()
            return
        if answer.status == 200 and form not in ("drop", "truncate", "error200", "empty"):
            server.answered += 1
            server.done.add(digest)
        self.busy = False
        server.move(-1)
        self.write(answer)
        if self.buffer:
            self.data_received(b"")

    def drip(self) -> None:
        if self.transport is not None:
            self.transport.write(b" ")
            self.timer = self.loop.call_later(self.server.drip_s, self.drip)

    def write(self, answer: Answer) -> None:
        assert self.transport is not None
        body, form = answer.payload(), answer.form
        headers = {"content-type": "application/json", **answer.headers}
        if form == "truncate":
            body = body[: len(body) // 2]
        if form == "stream":
            headers["content-type"], body = "text/event-stream", event_stream(json.loads(body))
        if form == "gzip":
            headers["content-encoding"], body = "gzip", gzip.compress(body, 1)
        if form == "chunked":
            headers["transfer-encoding"] = "chunked"
            body = b"%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n" % (1, body[:1], len(body) - 1, body[1:])
        else:
            headers["content-length"] = str(len(body))
        head = "".join(f"{k}: {v}\r\n" for k, v in headers.items())
        whole = f"HTTP/1.1 {answer.status} x\r\n{head}\r\n".encode() + body
        if form == "drop":
            self.transport.write(whole[: len(whole) - len(body) // 2])
            self.transport.close()
        else:
            self.transport.write(whole)


# -- bodies ------------------------------------------------------------------------------------


def _default_reply(asked: Mapping[str, Any]) -> str:
    form = asked.get("response_format") or {}
    if form.get("type") == "json_schema":
        return json.dumps(filled(form["json_schema"]["schema"]))
    return next(
        (text_of(m["content"]) for m in reversed(asked["messages"]) if m["role"] == "user"), ""
    )


def text_of(content: Any) -> str:
    """The text of a message's content, a string or a list of parts."""
    return content if isinstance(content, str) else "".join(p.get("text", "") for p in content)


def filled(schema: Mapping[str, Any]) -> Any:
    """A small value that meets a plain JSON schema: the first choice, the highest number."""
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "object")
    if kind == "object":
        return {k: filled(v) for k, v in schema.get("properties", {}).items()}
    if kind == "array":
        return [filled(schema.get("items", {"type": "string"}))] * schema.get("minItems", 0)
    if kind in ("integer", "number"):
        return schema.get("maximum", schema.get("minimum", 1))
    return {"boolean": True, "null": None}.get(kind, "ok")


def count(text: str) -> int:
    """Tokens as this server counts them: four characters each."""
    return max(1, len(text) // 4)


def openai_body(asked: Mapping[str, Any], text: str, **message: Any) -> dict[str, Any]:
    """A chat completion with this text."""
    prompt = sum(count(text_of(m["content"])) for m in asked["messages"])
    usage = {"prompt_tokens": prompt, "completion_tokens": count(text)}
    return {
        "id": "r-1", "object": "chat.completion", "model": asked.get("model", "mock"),
        "choices": [{"index": 0, "finish_reason": "stop",
                     "message": {"role": "assistant", "content": text, **message}}],
        "usage": {**usage, "total_tokens": sum(usage.values())},
    }  # fmt: skip


def anthropic_body(asked: Mapping[str, Any], text: str) -> dict[str, Any]:
    """A message of Anthropic's API with this text."""
    prompt = sum(count(text_of(m["content"])) for m in asked["messages"])
    return {
        "id": "m-1", "type": "message", "role": "assistant", "model": asked.get("model", "mock"),
        "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
        "usage": {"input_tokens": prompt, "output_tokens": count(text)},
    }  # fmt: skip


def event_stream(whole: Mapping[str, Any]) -> bytes:
    """The same completion as server-sent events."""
    text = whole["choices"][0]["message"]["content"]
    pieces: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": {"content": part}, "finish_reason": None}]}
        for part in (text[: len(text) // 2], text[len(text) // 2 :])
    ]
    pieces.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    pieces.append({"choices": [], "usage": whole["usage"]})
    lines = ["retry: 3000\n\n: keep-alive\n\n"]
    lines += [f"data: {json.dumps({'id': 's', **p})}\n\n" for p in pieces]
    return "".join([*lines, "data: [DONE]\n\n"]).encode()


if __name__ == "__main__":  # a process of its own, until its standard input ends
    with ChatServer(**json.loads(sys.argv[1])) as running, contextlib.suppress(KeyboardInterrupt):
        print(running.port, flush=True)
        sys.stdin.read()

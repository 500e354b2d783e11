"""Where models are: tables, addresses, keys, proxies, certificates (A10, A16)."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer

from evalkit.errors import CallImpossible, ConfigError
from evalkit.models.client import Client
from evalkit.models.endpoints import Endpoint, Endpoints, chat_url, load_endpoints
from evalkit.models.transport import proxy_for
from evalkit.records import Message, Reply, Request

CASES = Path(__file__).resolve().parents[1] / "failure_cases" / "cases.jsonl"
BY_ID = {c["id"]: c for c in map(json.loads, CASES.read_text("utf-8").splitlines())}


def project(folder: Path, text: str) -> Path:
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    return folder


async def ask(endpoints: Endpoints, model: str = "m/x") -> Reply:
    async with Client(endpoints) as client:
        return await client.ask(Request(model, (Message("user", "hello"),)))


def test_a10_the_chat_address_of_each_base_url() -> None:
    given = BY_ID["A10"]["input"]["base_urls"]
    assert [chat_url(u) for u in given] == BY_ID["A10"]["expected"]["value"]


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("http://[::1]:8080", "http://[::1]:8080/v1/chat/completions"),
        ("https://h//v1//", "https://h/v1/chat/completions"),
        (
            "https://h/openai/v1/?api-version=2",
            "https://h/openai/v1/chat/completions?api-version=2",
        ),
        (" https://h/ ", "https://h/v1/chat/completions"),
    ],
)
def test_further_addresses(base: str, url: str) -> None:
    assert chat_url(base) == url


def test_the_anthropic_address() -> None:
    assert chat_url("https://api.example.com", "anthropic") == "https://api.example.com/v1/messages"


@pytest.mark.parametrize("base", ["", "api.example.com/v1", "ftp://x", "http://"])
def test_no_address_is_one_sentence(base: str) -> None:
    with pytest.raises(ConfigError, match="base_url"):
        chat_url(base)


def test_tables_are_read_and_local_is_always_there(tmp_path: Path) -> None:
    root = project(
        tmp_path,
        """
        [tool.evalkit.endpoints.cloud]
        base_url = "https://api.example.com"
        api_key_env = "EK_TEST_KEY"
        family = "gpt"
        price_input_usd_per_mtok = 1
        price_output_usd_per_mtok = 4.5
        price_date = "2026-11-01"
        requests_per_minute = 600
        """,
    )
    endpoints = load_endpoints(root)
    endpoint, model = endpoints.of("cloud/org/model-1")
    assert model == "org/model-1"
    assert endpoint.identity == "https://api.example.com/v1/chat/completions"
    assert endpoint.priced
    local, _ = endpoints.of("local/smollm2-135m-instruct")
    assert local.base_url is None
    assert local.free
    assert "local" in endpoints.starters


def test_no_pyproject_still_has_the_local_model(tmp_path: Path) -> None:
    assert [e.name for e in load_endpoints(tmp_path)] == ["local"]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("base_url = 'https://h'\nbase_ulr = 'x'", "base_ulr.*Settings are: base_url"),
        ("base_url = 'nowhere'", "nowhere"),
        ("dialect = 'cohere'\nbase_url = 'https://h'", "dialect"),
        ("base_url = 'https://h'\nmax_concurrency = 0", "max_concurrency must be above 0"),
        ("family = 'gpt'", "no base_url"),
        ("base_url = 'https://h'\ntimeout_s = 'soon'", "timeout_s"),
    ],
)
def test_a_wrong_table_is_one_sentence(tmp_path: Path, table: str, words: str) -> None:
    root = project(tmp_path, f"[tool.evalkit.endpoints.cloud]\n{table}\n")
    with pytest.raises(ConfigError, match=rf"(?s)endpoints\.cloud\].*{words}"):
        load_endpoints(root)


def test_broken_toml_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not valid TOML"):
        load_endpoints(project(tmp_path, "[tool"))


def test_an_unknown_endpoint_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'gpt-9'.*known: local"):
        load_endpoints(tmp_path).of("gpt-9")


# -- keys --------------------------------------------------------------------------------------

KEYED = """
[tool.evalkit.endpoints.m]
base_url = "{base_url}"
api_key_env = "EK_TEST_KEY"
dialect = "{dialect}"
"""


def test_a_missing_key_is_one_sentence_that_names_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EK_TEST_KEY", raising=False)
    with ChatServer() as server:
        root = project(tmp_path, KEYED.format(base_url=server.base_url, dialect="openai"))
        with pytest.raises(ConfigError, match=r"EK_TEST_KEY.*\.env"):
            asyncio.run(ask(load_endpoints(root)))
        assert server.requests == 0


def test_a_key_comes_from_the_environment_before_the_env_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("EK_TEST_KEY=from-file\n", encoding="utf-8")
    with ChatServer() as server:
        root = project(tmp_path, KEYED.format(base_url=server.base_url, dialect="openai"))
        monkeypatch.delenv("EK_TEST_KEY", raising=False)
        asyncio.run(ask(load_endpoints(root)))
        monkeypatch.setenv("EK_TEST_KEY", "from-environment")
        asyncio.run(ask(load_endpoints(root)))
        sent = [h["authorization"] for h in server.headers]
    assert sent == ["Bearer from-file", "Bearer from-environment"]
    assert "from-file" not in repr(load_endpoints(root))


def test_a_password_in_an_address_is_neither_shown_nor_part_of_a_key() -> None:
    endpoint = Endpoint("m", "http://me:pass-word-1@127.0.0.1:9/v1", attempts=1)
    assert endpoint.identity == "http://127.0.0.1:9/v1/chat/completions"
    with pytest.raises(CallImpossible) as caught:
        asyncio.run(ask(Endpoints({"m": endpoint})))
    assert "pass-word-1" not in str(caught.value)
    assert "127.0.0.1:9" in str(caught.value)


def test_the_anthropic_dialect_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EK_TEST_KEY", "secret-key")
    with ChatServer() as server:
        root = project(tmp_path, KEYED.format(base_url=server.base_url, dialect="anthropic"))
        endpoints = load_endpoints(root)

        async def run() -> Reply:
            messages = (Message("system", "Be brief."), Message("user", "hello"))
            async with Client(endpoints) as client:
                return await client.ask(Request("m/c", messages, temperature=0.5))

        reply = asyncio.run(run())
        assert reply.text == "hello"
        assert server.paths == ["/v1/messages"]
        assert server.headers[0]["x-api-key"] == "secret-key"
        assert server.bodies[0]["system"] == "Be brief."
        assert [m["role"] for m in server.bodies[0]["messages"]] == ["user"]
        assert server.bodies[0]["max_tokens"] == 4096


# -- started on demand -------------------------------------------------------------------------


def test_an_endpoint_without_address_is_started_once_and_its_key_is_stable() -> None:
    started: list[str] = []
    with ChatServer() as server:

        def start(endpoint: Endpoint) -> str:
            started.append(endpoint.name)
            return server.base_url

        endpoints = Endpoints({"toy": Endpoint("toy")}, starters={"toy": start})

        async def run() -> list[Reply]:
            async with Client(endpoints) as client:
                requests = [Request("toy/a", (Message("user", str(i)),)) for i in range(5)]
                return await asyncio.gather(*(client.ask(r) for r in requests))

        replies = asyncio.run(run())
    assert [r.text for r in replies] == list("01234")
    assert started == ["toy"]
    assert endpoints.of("toy/a")[0].identity == "started:toy"


# -- proxies, certificates, IPv6 ---------------------------------------------------------------


def test_a16_rubbish_in_no_proxy_does_no_harm(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clean_proxies(monkeypatch, **BY_ID["A16"]["input"]["environment"])
    with ChatServer() as server:
        assert asyncio.run(ask(Endpoints({"m": Endpoint("m", server.base_url)}))).text == "hello"
    assert proxy_for("https://api.example.com/v1") == "http://127.0.0.1:9"
    assert proxy_for("https://[::1]:8080/v1") is None
    monkeypatch.setenv("NO_PROXY", "http://x/, .example.com")
    assert proxy_for("https://api.example.com/v1") is None
    assert "'http://x/' names no host" in caplog.text


def clean_proxies(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name, value in values.items():
        monkeypatch.setenv(name, value)


def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with ChatServer() as proxy:
        clean_proxies(monkeypatch, HTTP_PROXY=f"127.0.0.1:{proxy.port}")
        endpoints = Endpoints({"m": Endpoint("m", "http://model.test/v1")})
        assert asyncio.run(ask(endpoints)).text == "hello"
        assert proxy.paths == ["http://model.test/v1/chat/completions"]


def test_a_proxy_that_is_no_address_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    clean_proxies(monkeypatch, HTTP_PROXY="gopher://x")
    with pytest.raises(ConfigError, match="HTTP_PROXY"):
        asyncio.run(ask(Endpoints({"m": Endpoint("m", "http://model.test/v1")})))


@pytest.mark.skipif(not shutil.which("openssl"), reason="needs the openssl program")
def test_a_certificate_authority_of_ones_own(tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout", str(key)]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(cert, key)
    with ChatServer(tls=tls) as server:
        trusting = Endpoint("m", server.base_url, ca_file=str(cert))
        assert asyncio.run(ask(Endpoints({"m": trusting}))).text == "hello"
        wary = Endpoint("m", server.base_url)
        with pytest.raises(CallImpossible, match="ca_file"):
            asyncio.run(ask(Endpoints({"m": wary})))
    missing = Endpoint("m", server.base_url, ca_file=str(tmp_path / "none.pem"))
    with pytest.raises(ConfigError, match="ca_file"):
        asyncio.run(ask(Endpoints({"m": missing})))


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6 loopback")
def test_an_ipv6_address() -> None:
    with ChatServer(host="::1") as server:
        assert "[::1]" in server.base_url
        assert asyncio.run(ask(Endpoints({"m": Endpoint("m", server.base_url)}))).text == "hello"


def test_a_mock_transport_takes_the_place_of_the_network() -> None:
    import httpx

    body: dict[str, Any] = {"choices": [{"message": {"content": "42"}, "finish_reason": "stop"}]}
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json=body))

    async def run() -> Reply:
        endpoints = Endpoints({"m": Endpoint("m", "https://model.test")})
        async with Client(endpoints, transport=transport) as client:
            return await client.ask(Request("m/x", (Message("user", "?"),)))

    assert asyncio.run(run()).text == "42"

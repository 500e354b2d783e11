"""What decides a reply is in the call key, and nothing else (F01); pinned examples."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from evalkit.models.endpoints import Endpoint, chat_url
from evalkit.models.keys import call_key, task_key
from evalkit.records import Case, Document, Message, Request

CASES = Path(__file__).resolve().parents[1] / "failure_cases" / "cases.jsonl"
F01 = next(c for c in map(json.loads, CASES.read_text("utf-8").splitlines()) if c["id"] == "F01")

BASE = Request(
    "api/m",
    (Message("system", "Be strict."), Message("user", "Grade this.")),
    temperature=0,
    max_tokens=400,
)
URL = "https://api.example.com/v1"


def key(request: Request, base_url: str = URL, **settings: object) -> str:
    endpoint = replace(Endpoint("api", base_url), **settings)
    return call_key(endpoint.identity, request)


def test_f01_what_misses_the_cache() -> None:
    system, user = BASE.messages
    variants = [
        key(replace(BASE, temperature=0.7)),
        key(replace(BASE, temperature=None)),
        key(replace(BASE, max_tokens=16)),
        key(replace(BASE, messages=(Message("system", "Be lenient."), user))),
        key(replace(BASE, messages=(system, Message("user", "Grade this. ")))),
        key(replace(BASE, model="api/m2")),
        key(BASE, "https://other.example.com/v1"),
        key(replace(BASE, extra={"response_format": {"type": "json_object"}})),
        key(replace(BASE, seed=7)),
        key(replace(BASE, repeat=1)),
        key(Request(max_tokens=400, temperature=0, messages=BASE.messages, model="api/m")),
        key(BASE, api_key_env="ANOTHER"),
        key(BASE, timeout_s=30),
        key(BASE, attempts=9),
        key(BASE, max_concurrency=32),
    ]
    assert [v != key(BASE) for v in variants] == F01["expected"]["value"]
    assert len(set(variants[:10])) == 10


def test_golden_examples() -> None:
    assert key(BASE) == "99395ff65d1fcfb380734686093e804eadfe67dd68cb2e515c1034cbaa499f6c"
    full = replace(
        BASE,
        temperature=0.7,
        seed=7,
        repeat=2,
        schema={"type": "object", "properties": {"b": {}, "a": {"const": "é\u2028"}}},
        extra={"top_p": 0.9},
    )
    assert key(full) == "0df423a35d80f634bf49c93c51ec10521b64ad5b833191539cabeccf9e21bbe5"
    case = Case("c1", "easy", {"q": "?"}, (Document("d", "text"),))
    assert (
        task_key("app:answer", "v1", case, prompt_hash="abc", repeat=1)
        == "39dfd34e1c62a302edabab29a392144cb5ed1535b0227f3ef6bf118bd41df4a5"
    )


def test_spelling_does_not_matter() -> None:
    assert key(BASE) == key(replace(BASE, temperature=0.0))
    assert key(BASE) == key(BASE, "https://api.example.com/")
    one, two = {"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}
    assert key(replace(BASE, schema=one)) == key(replace(BASE, schema=two))
    assert key(replace(BASE, model="other-name/m")) == key(BASE)


def test_a_task_key_ignores_what_the_case_expects_but_not_its_path() -> None:
    case = Case("c1", inputs={"q": "?"}, expected={"a": 1}, why="x")
    same = replace(case, expected={"a": 2}, why="y")
    assert task_key("e:f", "v", case) == task_key("e:f", "v", same)
    others = [
        task_key("e:f", "v2", case),
        task_key("e:g", "v", case),
        task_key("e:f", "v", replace(case, path="agent")),
        task_key("e:f", "v", case, prompt_hash="p"),
        task_key("e:f", "v", case, repeat=1),
    ]
    assert len({task_key("e:f", "v", case), *others}) == 6


@given(st.text(), st.text())
def test_any_text_has_a_key_and_roles_are_not_confused(a: str, b: str) -> None:
    one = key(replace(BASE, messages=(Message("user", a), Message("user", b))))
    assert len(bytes.fromhex(one)) == 32
    assert chat_url(URL)
    joined = key(replace(BASE, messages=(Message("user", a + b),)))
    assert one != joined

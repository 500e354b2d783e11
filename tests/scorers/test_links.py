# ruff: noqa: E501 - a row of a table stands on one line
from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalkit.errors import ScorerError
from evalkit.records import Case, Reply, Score
from evalkit.scorers.links import AllowedHosts, host_of, links_in

LINES = (Path(__file__).parent.parent / "failure_cases" / "cases.jsonl").read_text("utf-8")
E04 = next(c for line in LINES.split("\n") if line for c in [json.loads(line)] if c["id"] == "E04")
CASE = Case("c")
ALLOWED = AllowedHosts(hosts=("docs.example.com", "example.org", "localhost:8080"))


def test_e04_every_url_with_its_real_host() -> None:
    scorer = AllowedHosts(hosts=tuple(E04["input"]["allowed_hosts"]))
    text = E04["input"]["text"]
    found = [
        {"url": link.url, "host": link.host, "allowed": scorer.allows(link)}
        for link in links_in(text)
    ]
    assert found == E04["expected"]["value"]
    score = scorer(CASE, Reply(text))
    assert (score.value, score.reason) == (
        0.0,
        "3 of 6 links lead elsewhere: evil.test, docs.example.com.evil.test",
    )
    assert [text[f.start : f.end] for f in score.findings] == [
        row["url"] for row in E04["expected"]["value"] if not row["allowed"]
    ]


@pytest.mark.parametrize(
    ("text", "url", "host", "allowed"),
    [
        # capitals, ports, dots
        ("HTTPS://DOCS.EXAMPLE.COM/A.", "HTTPS://DOCS.EXAMPLE.COM/A", "docs.example.com", True),
        ("https://docs.example.com:8443/a", "https://docs.example.com:8443/a", "docs.example.com", True),
        ("http://localhost:8080/a", "http://localhost:8080/a", "localhost", True),
        ("http://localhost:9090/a", "http://localhost:9090/a", "localhost", False),
        ("http://localhost/a", "http://localhost/a", "localhost", False),
        ("https://docs.example.com./x", "https://docs.example.com./x", "docs.example.com", True),
        ("https://[::1]:80/", "https://[::1]:80/", "[::1]", False),
        # user info
        ("https://example.org@evil.test", "https://example.org@evil.test", "evil.test", False),
        ("https://a:b@c@example.org/", "https://a:b@c@example.org/", "example.org", True),
        ("https://example.org%40evil.test/", "https://example.org%40evil.test/", "", False),
        ("https://example.org%2eevil.test", "https://example.org%2eevil.test", "example.org.evil.test", False),
        ("https://example.org#@evil.test", "https://example.org#@evil.test", "example.org", True),
        ("https://example.org?@evil.test", "https://example.org?@evil.test", "example.org", True),
        ("https://example.org)@evil.test/x", "https://example.org)@evil.test/x", "evil.test", False),
        # slashes and backslashes
        (r"https:\\evil.test\x", r"https:\\evil.test\x", "evil.test", False),
        ("https:evil.test/x", "https:evil.test/x", "evil.test", False),
        ("http:///example.org", "http:///example.org", "example.org", True),
        (r"https:\/\/example.org\/a", r"https:\/\/example.org\/a", "example.org", True),
        (r"https://example.org\nNext", r"https://example.org\nNext", "example.org", True),
        (r"https://example.org\@evil.test", r"https://example.org\@evil.test", "example.org", False),
        (r"https://evil.test\@example.org", r"https://evil.test\@example.org", "evil.test", False),
        # look-alikes
        ("https://docs.exаmple.com", "https://docs.exаmple.com", "docs.xn--exmple-4nf.com", False),
        ("https://ｅxample.org", "https://ｅxample.org", "example.org", True),
        ("https://example。org/a", "https://example。org/a", "example.org", True),
        ("https://example.org．evil.test", "https://example.org．evil.test", "example.org.evil.test", False),
        ("https://exa\u00admple.org", "https://exa\u00admple.org", "example.org", True),
        ("https://-.\u0378/", "https://-.\u0378/", "", False),
        ("https://a..b/", "https://a..b/", "", False),
        # without a scheme
        ("www.evil.test", "www.evil.test", "www.evil.test", False),
        ("(WWW.Example.org).", "WWW.Example.org", "www.example.org", False),
        ("see //evil.test/x", "//evil.test/x", "evil.test", False),
        ("[a](//example.org/x)", "//example.org/x", "example.org", True),
        (r"[a](/\evil.test)", r"/\evil.test", "evil.test", False),
        ("[a]( javascript:alert(1))", "javascript:alert(1)", "", False),
        ('<a href="data:text/html,x">', "data:text/html,x", "", False),
        ("ftp://example.org/f", "ftp://example.org/f", "example.org", True),
        ("wss://evil.test/f", "wss://evil.test/f", "evil.test", False),
        # the sentence around it
        ("https://example.org/faq?!", "https://example.org/faq", "example.org", True),
        ("**https://example.org/faq**", "https://example.org/faq", "example.org", True),
        ("<https://example.org/faq>", "https://example.org/faq", "example.org", True),
        ("`https://example.org/faq`", "https://example.org/faq", "example.org", True),
        ('"https://example.org","mail":"me@evil.test"', "https://example.org", "example.org", True),
        ("[a](https://example.org/a_(b))c", "https://example.org/a_(b)", "example.org", True),
        ("[[https://example.org/a[0]]]", "https://example.org/a[0]", "example.org", True),
        ("\\href{https://example.org/a_{b}}{x}", "https://example.org/a_{b}", "example.org", True),
        ("(https://example.org/a]b)", "https://example.org/a", "example.org", True),
        ("见https://example.org。更多", "https://example.org", "example.org", True),
        ("见（https://example.org/a）更多", "https://example.org/a", "example.org", True),
        ("https://example.org更多信息", "https://example.org", "example.org", True),
        ("https://example.org/更多", "https://example.org/更多", "example.org", True),
    ],
)  # fmt: skip
def test_a_link_its_extent_and_where_it_leads(
    text: str, url: str, host: str, allowed: bool
) -> None:
    (link,) = links_in(text)
    assert (link.url, link.host) == (url, host)
    assert text[link.start : link.end] == url
    assert ALLOWED.allows(link) is allowed
    assert ALLOWED(CASE, Reply(text)).value == float(allowed)


@pytest.mark.parametrize(
    "text",
    ["", "use http: or https: here", "me@www.evil.test", "a//b.c", "// comment", "https://", "mailto:a@evil.test",
     "the data: a, b", "C:/x.y", "xhttps://evil.test", "and/or", "http:port"],
)  # fmt: skip
def test_what_is_no_link(text: str) -> None:
    assert list(links_in(text)) == []
    assert ALLOWED(CASE, Reply(text or "x")) == Score(1.0, "no link")


def test_reasons_say_where_links_lead() -> None:
    assert ALLOWED(CASE, Reply("https://example.org")).reason == "1 links, all to allowed hosts"
    rival = ALLOWED(CASE, Reply(r"https://example.org\@evil.test"))
    assert rival.findings[0].message.endswith(
        "leads to example.org or to evil.test, depending on the reader"
    )
    script = ALLOWED(CASE, Reply("[a](javascript:alert(1))"))
    assert script.reason == "1 of 1 links lead elsewhere: javascript:alert(1)"
    assert script.findings[0].message == "javascript:alert(1) names no valid host"
    plain = ALLOWED(CASE, Reply("https://evil.test/"))
    assert plain.findings[0].message == "https://evil.test/ leads to evil.test"


def test_thinking_does_not_count_and_a_field_can_be_looked_into() -> None:
    text = (
        '<think>https://evil.test</think>{"url": "https://example.org", "x": "https://evil.test"}'
    )
    assert ALLOWED(CASE, Reply(text)).reason == "1 of 2 links lead elsewhere: evil.test"
    only = AllowedHosts(hosts=("example.org",), field="url")
    assert only(CASE, Reply(text)).value == 1.0


def test_more_links_than_anyone_reads_score_0() -> None:
    assert ALLOWED(CASE, Reply("https://example.org " * 5001)).reason == "more than 5000 links"
    assert ALLOWED(CASE, Reply("https://example.org " * 5000)).value == 1.0
    many = ALLOWED(CASE, Reply("https://evil.test " * 100))
    assert (many.value, len(many.findings)) == (0.0, 20)


@pytest.mark.parametrize("entry", ["https://example.org", "a@b.c", "", "exa mple.org", "a/b"])
def test_an_entry_that_is_no_host_is_the_users_error(entry: str) -> None:
    with pytest.raises(ScorerError, match="no host name"):
        AllowedHosts(hosts=(entry,))


def test_hosts_are_compared_in_their_ascii_spelling() -> None:
    assert host_of("Bücher.DE:81") == ("xn--bcher-kva.de", "81")
    assert host_of("a" * 254) == ("", "")
    assert host_of("ä" * 254) == ("", "")
    umlaut = AllowedHosts(hosts=("bücher.de",))
    assert umlaut(CASE, Reply("https://xn--bcher-kva.de/")).value == 1.0


def test_long_links_and_many_hosts_are_shortened() -> None:
    text = " ".join(f"https://h{n}.test/{'x' * 300}" for n in range(6))
    score = ALLOWED(CASE, Reply(text))
    assert score.reason == (
        "6 of 6 links lead elsewhere: h0.test, h1.test, h2.test, h3.test, h4.test"
    )
    url = f"https://h0.test/{'x' * 300}"
    assert score.findings[0].message == f"{url[:200]} leads to h0.test"
    script = ALLOWED(CASE, Reply(f"[a](javascript:{'y' * 100})"))
    assert script.reason == f"1 of 1 links lead elsewhere: {'javascript:' + 'y' * 49}"

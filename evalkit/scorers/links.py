"""Every link of a text with the host that a browser would really visit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple
from urllib.parse import unquote

from evalkit.errors import ScorerError
from evalkit.records import Case, Reply, Score
from evalkit.scorers.answer import answer_of

__all__ = ["AllowedHosts", "Link", "host_of", "links_in"]

_MAX_LINKS = 5_000  # and at most 2,048 characters each: the work stays linear in the text
_MAX_FINDINGS = 20
_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_START = re.compile(
    r"(?P<web>(?<![a-z0-9+.-])(?:https?|ftp|wss?):(?P<slashes>[/\\]*))"
    r"|(?P<bare>(?<![\w@/\\.:-])www\.(?=\w))"
    r"|(?P<relative>(?<![\w:/\\])(?://|(?<=[(\"'=<])(?:/\\|\\[/\\]))(?=[^\s/\\]+\.))"
    r"|(?P<active>(?<=[(\"'=<])\s{0,9}(?:javascript|vbscript|data|file):)",
    re.IGNORECASE,
)
_RUN = re.compile(r"[^\s<>\"`（），、；：！？》」』”’【】]{0,2048}")
_TAIL = ".,;:!?'*_~…\\|"
_CLOSES = {")": "(", "]": "[", "}": "{"}
_FULL_STOP = re.compile(r"。(?![A-Za-z0-9])")
_HOST_THEN_CJK = re.compile(rf"([!-~]*\.[a-z]{{2,}})[{_CJK}][^.@。．｡]*\Z", re.IGNORECASE)
_AUTHORITY_GOES_ON = re.compile(r"[^\s/\\?#<>\"]{0,300}@")
_HOST = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\]")


class Link(NamedTuple):
    """A link as it stands in the text. `host` is "" where there is no valid one.

    `rival` is the host that other readers see, where a backslash before "@" splits them.
    """

    url: str
    host: str
    port: str
    start: int
    end: int
    rival: str = ""


def links_in(text: str) -> Iterator[Link]:
    """The links of a text, in order: with a scheme, bare `www.`, scheme-relative, or active.

    Closing punctuation and brackets of the sentence are not part of a link; balanced ones are.
    """
    at = 0
    while opening := _START.search(text, at):
        start = opening.start() + len(opening[0]) - len(opening[0].lstrip())
        name_at = opening.start() if opening["bare"] else opening.end()
        run = _RUN.match(text, name_at)
        end = _end_of(text, name_at, run.end() if run else name_at, opening.start())
        at = max(end, opening.end())
        if opening["active"]:
            yield Link(text[start:end], "", "", start, end)
            continue
        authority = re.split(r"[/\\?#]", text[name_at:end], maxsplit=1)[0]
        host, port = host_of(authority)
        if opening["web"] and not opening["slashes"] and "." not in authority:
            continue  # "http:" in prose
        if end > name_at:
            rest = text[name_at + len(authority) : end]
            rival = re.match(r"\\+[^/?#]*@([^/\\?#]*)", rest)
            other = host_of(rival[1])[0] if rival else ""
            yield Link(text[start:end], host, port, start, end, other if other != host else "")


def host_of(authority: str) -> tuple[str, str]:
    """Host and port of what stands between "//" and the path; the host in its ASCII spelling.

    Before "@" stands user info. A host that is no valid name becomes "".
    """
    name = unquote(authority.rpartition("@")[2])
    port = re.search(r":([0-9]*)\Z", name)
    host = name[: port.start()] if port else name
    return _ascii_host(host), port[1] if port else ""


def _ascii_host(host: str) -> str:
    if not host.isascii() and len(host) <= 253:
        import idna

        try:
            host = idna.encode(host, uts46=True).decode("ascii")
        except (idna.IDNAError, UnicodeError):
            return ""
    host = host.lower().removesuffix(".")
    return host if _HOST.fullmatch(host) and len(host) <= 253 else ""


def _end_of(text: str, start: int, end: int, opening: int) -> int:
    """Where a link ends: not after the sentence's own brackets and punctuation."""
    slash = re.compile(r"[/\\?#]").search(text, start, end)
    authority_end = slash.start() if slash else end
    stop = _FULL_STOP.search(text, start, authority_end)
    if stop:
        end = authority_end = stop.start()
    if cjk := _HOST_THEN_CJK.match(text[start:authority_end]):
        return start + len(cjk[1])
    in_brackets = text[max(0, opening - 2) : opening].endswith(("](", "{"))
    open_brackets: list[str] = []
    for at in range(start, end):
        char = text[at]
        if char in "([{":
            open_brackets.append(char)
        elif char in _CLOSES:
            if open_brackets and open_brackets[-1] == _CLOSES[char]:
                open_brackets.pop()
            elif in_brackets or not _goes_on(text, at, authority_end):
                end = at
                break
    while end > start and text[end - 1] in _TAIL:
        end -= 1
    return end


def _goes_on(text: str, at: int, authority_end: int) -> bool:
    return at < authority_end and _AUTHORITY_GOES_ON.match(text, at) is not None


@dataclass(frozen=True, kw_only=True)
class AllowedHosts:
    """1.0 when every link of the answer leads to an allowed host (exactly), else 0.0.

    Args:
        hosts: Host names, such as "docs.example.com"; with a port ("localhost:8080") only that
            port is allowed, without one any is.
        field: Look into this field of the JSON reply instead of the whole text.
    """

    hosts: tuple[str, ...]
    field: str = ""

    VERSION: ClassVar[int] = 1

    def __post_init__(self) -> None:
        for entry in self.hosts:
            if "/" in entry or "@" in entry or not host_of(entry)[0]:
                raise ScorerError(
                    f"the scorer 'allowed_hosts': {entry!r} is no host name; "
                    "write it as 'docs.example.com' or 'docs.example.com:8080'."
                )

    def allows(self, link: Link) -> bool:
        """Whether a link leads to an allowed host, however it is read."""
        return _allowed(link, {host_of(entry) for entry in self.hosts})

    def __call__(self, case: Case, reply: Reply) -> Score:
        """Score one reply; each link to another host is a finding."""
        answer = answer_of(case, reply, self.field)
        if isinstance(answer, Score):
            return answer
        links: list[Link] = []
        for link in links_in(answer.text):
            links.append(link)
            if len(links) > _MAX_LINKS:
                return Score(0.0, f"more than {_MAX_LINKS} links")
        allowed = {host_of(entry) for entry in self.hosts}
        wrong = [link for link in links if not _allowed(link, allowed)]
        if not wrong:
            return Score(1.0, f"{len(links)} links, all to allowed hosts" if links else "no link")
        findings = tuple(
            answer.finding(f"{link.url[:200]} {_leads(link)}", link.start, link.end)
            for link in wrong[:_MAX_FINDINGS]
        )
        hosts = dict.fromkeys(link.host or link.url[:60] for link in wrong)
        shown = ", ".join(list(hosts)[:5])
        reason = f"{len(wrong)} of {len(links)} links lead elsewhere: {shown}"
        return Score(0.0, reason, findings=findings)


def _allowed(link: Link, allowed: set[tuple[str, str]]) -> bool:
    listed = {(link.host, ""), (link.host, link.port)} & allowed
    return bool(link.host and listed) and not link.rival


def _leads(link: Link) -> str:
    if link.rival:
        return f"leads to {link.host or 'no host'} or to {link.rival}, depending on the reader"
    return f"leads to {link.host}" if link.host else "names no valid host"

"""gate.py over a suite that anybody may have written: whatever stands in it stays text."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from browser_project import (
    ROOT,
    as_a_file,
    as_a_model,
    as_an_id,
    hostile_cases,
    hostile_licence,
    project,
    script,
    toml,
)
from chat_server import ChatServer

from evalkit.report.safe import visible_controls
from evalkit.validity.licence import Revocation

NOTEBOOK = ROOT / "notebooks" / "gate.py"
SUITE = ("--suite", "golden/mini")
TWICE = (*SUITE, "--repeats", "2", "--baseline-ref", "HEAD")
JUDGE = """---
kind: criteria
model: srv/judge
criteria:
  fine: Is it fine?
---
# user
{{ draft }}
"""
PROMPT = "<svg onload=window.__pwned=1>"


@pytest.fixture(scope="module")
def gated(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> Iterator[tuple[Path, ChatServer]]:
    """A project whose gate ran once, against a baseline and a commit that differ in everything."""
    with ChatServer(reply=lambda body: "no") as server:
        folder = hostile_suite(tmp_path_factory.mktemp("gated"), server, texts)
        script(folder, "iterate.py", *SUITE, "--sample", "99", "--freeze", "--allow-dirty")
        commit(folder)
        prompts = folder / "golden" / "mini" / "prompts"
        (prompts / "say.md").rename(prompts / f"{PROMPT}.md")  # nothing is frozen under such a name
        suite_file(folder, texts, version="now", prompt=PROMPT)
        for text in filter(as_a_file, texts):
            (prompts / f"{text} \\ .md").write_text("# user\nx\n")
        script(folder, "gate.py", *TWICE, "--run-live", "--page", "exports/gate.html")
        yield folder, server


def test_hostile_names_findings_licences_and_pins_stay_texts(
    gated: tuple[Path, ChatServer],
    texts: list[str],
    marimo_app: Callable[..., str],
    open_tab: Callable[..., Any],
    listener: Any,
) -> None:
    folder, server = gated
    asked = server.requests
    address = marimo_app(NOTEBOOK, *TWICE, cwd=folder)
    tab = open_tab(height=3000)
    tab.page.goto(address)
    tab.page.get_by_role("button", name=re.compile("Replay|Show")).click()
    tab.page.locator(".ek-verdict").first.wait_for()
    tab.page.locator("canvas, svg.marks").first.wait_for()
    reads_as_text(tab, texts)
    assert tab.made_of_text(address) == []
    assert tab.errors == []
    assert listener.asked == []
    assert server.requests == asked


def test_marimos_own_export_of_it_stays_text(
    gated: tuple[Path, ChatServer], texts: list[str], exported: Callable[..., Any], listener: Any
) -> None:
    folder, server = gated
    asked = server.requests
    tab = exported(NOTEBOOK, *TWICE, "--run", cwd=folder, wait=".ek-verdict")
    reads_as_text(tab, texts)
    assert listener.asked == []
    assert server.requests == asked


def test_the_page_of_that_gate_stays_text(
    gated: tuple[Path, ChatServer], texts: list[str], open_tab: Callable[..., Any], listener: Any
) -> None:
    page = open_tab(height=3000)
    page.page.goto((gated[0] / "exports" / "gate.html").as_uri())
    shown = page.shown()
    assert [t for t in texts if visible_controls(t) not in shown] == []
    assert page.made_of_text() == [f"IMG {src}" for src in pictures(page)]
    assert page.pwned() == []
    assert page.errors == []
    assert page.beyond() == []
    assert listener.asked == []


def reads_as_text(tab: Any, texts: Sequence[str]) -> None:
    """Every text that may stand in a place stands there, as it was written."""
    shown = tab.shown()
    for where, found, wanted in (
        ("criteria", tab.page.locator("td").all_text_contents(), texts),
        ("cases", listed(tab, "what to look at"), filter(as_an_id, texts)),
        ("licences", listed(tab, "licences"), texts),
        ("changes", listed(tab, "changed since"), filter(as_a_file, texts)),
        ("differences", listed(tab, "what differs"), texts),
        ("model", tab.page.locator(".ek-pins").all_text_contents(), filter(as_a_model, texts)),
        ("the whole", [shown], [*texts, PROMPT]),
    ):
        missing = [t for t in wanted if visible_controls(t) not in "\n".join(found)]
        assert (where, missing) == (where, [])
    assert tab.pwned() == []


def pictures(tab: Any) -> list[str]:
    """The charts that were drawn into the page."""
    sources = tab.page.locator("figure img").evaluate_all("all => all.map(e => e.src)")
    assert all(src.startswith("data:image/svg+xml;base64,") for src in sources)
    return sources


def listed(tab: Any, title: str) -> list[str]:
    """What the fold of that title lists."""
    return tab.page.locator("details", has_text=title).locator("li").all_text_contents()


def hostile_suite(folder: Path, server: ChatServer, texts: Sequence[str]) -> Path:
    """A suite with the texts wherever one may stand, and two judges with odd licences."""
    project(folder, server, cases=hostile_cases(texts))
    suite = folder / "golden" / "mini"
    ids = list(filter(as_an_id, texts))
    cases = [
        {
            "id": f"c{at} {' '.join(ids[at : at + 8])}",
            "stratum": texts[at],
            "inputs": {"word": "x"},
            "expected": {"yes": "yes"},
        }
        for at in range(0, len(ids), 8)
    ]
    assert len(cases) <= 12, "the gate lists twelve cases"
    (suite / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))
    (suite / "judges").mkdir()
    (suite / "licences").mkdir()
    said = "\n".join(texts)
    for name, revoked in (("held", None), ("revoked", Revocation(at=said, reason=said))):
        (suite / "judges" / f"{name}.md").write_text(JUDGE.replace("Is it", f"Is it {name} and"))
        licence = hostile_licence(suite / "judges" / f"{name}.md", texts, revoked)
        (suite / "licences" / f"{name}.json").write_text(licence.sealed.model_dump_json())
    suite_file(folder, texts, version=said)
    return folder


def commit(folder: Path) -> None:
    """What is there now is HEAD."""
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "x"]):
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
        quiet = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
        subprocess.run(["git", *identity, *command], cwd=folder, check=True, env=quiet)


def suite_file(folder: Path, texts: Sequence[str], version: str, prompt: str = "say") -> None:
    """suite.toml: each text the name of a criterion; model and version as odd as they may be."""
    model = "".join(filter(as_a_model, texts))
    names = "".join(
        f'\n[[criteria]]\nname = {toml(text)}\nscorer = "contains"\nexpected = "yes"\nmin = 0.9\n'
        f"max_drop = 0.05\n"
        for text in texts
    )
    judged = "".join(
        f'\n[[criteria]]\nname = "{name}"\njudge = "judges/{name}.md"\nmin = 0.9\n'
        for name in ("held", "revoked")
    )
    (folder / "golden" / "mini" / "suite.toml").write_text(
        f'name = "mini"\ndomain = "words/en"\n\n[task]\nkind = "chat"\n'
        f"model = {toml('srv/' + model)}\nprompt = {toml(f'prompts/{prompt}.md')}\n"
        f"app_version = {toml(version)}\n\n[sampling]\nseed = 7\n{names}{judged}",
        encoding="utf-8",
    )

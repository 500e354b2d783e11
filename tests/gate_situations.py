"""Situations a gate meets, each through a real suite, server, store and decision.

python tests/gate_situations.py --write      writes the table in docs/gate.md again
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from chat_server import Answer, ChatServer
from mini_suite import endpoints_of, write_suite

from evalkit import params
from evalkit.judges import load_judge
from evalkit.models.recordings import write_recordings
from evalkit.runs.gate_session import Gated, GateOptions, GateSession
from evalkit.runs.promotion import Promotion
from evalkit.validity.licence import Evidence, pin_anchor, write_licence

DOC = Path(__file__).resolve().parent.parent / "docs" / "gate.md"
MARKS = ("<!-- situations -->", "<!-- end of situations -->")

FLOOR = '[[criteria]]\nname = "says_word"\nscorer = "contains"\nexpected = "word"\nmin = 0.9\n'
HARD = FLOOR.replace("min = 0.9", "min = 1.0\nhard = true")
BOTH = FLOOR + "max_drop = 0.10\n"
DROP = FLOOR.replace("min = 0.9", "max_drop = 0.10")
KIND = '\n[[criteria]]\nname = "kind"\njudge = "judges/kind.md"\nmin = 0.8\n'
JUDGE = """---
kind: criteria
model: srv/judge
criteria:
  kind: Is the reply kind?
---
# user
Is it kind? {{ draft }}
"""
ANCHOR = (
    "item_id,annotator,label,criterion,provenance,domain,output\n"
    "i1,ann,yes,kind,human,words/en,Gladly.\ni2,bob,no,kind,human,words/en,Go away.\n"
)
PREFERS = (
    '\n[[criteria]]\nname = "preference"\njudge = "judges/prefers.md"\nagainst = "baseline"\n'
    "min_win_rate = 0.45\n"
)
PAIRWISE = """---
kind: pairwise
model: srv/prefers
ties: true
---
# user
Which is better? {{ draft_a }} or {{ draft_b }}
"""
GIT = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_CONFIG_GLOBAL": os.devnull}
GIT |= {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com"}

Ending = tuple[int, str]


class World:
    """A project in a folder: one suite, one endpoint whose answers a test chooses.

    `bad` are numbers of cases whose word is not said, `dead` of those that get no answer.
    """

    def __init__(self, folder: Path, server: ChatServer) -> None:
        self.root, self.server = folder, server
        self.folder = folder / "golden" / "mini"
        self.bad: set[int] = set()
        self.dead: set[int] = set()
        self.verdict = '{"kind": {"justification": "it is", "verdict": "yes"}}'
        self.settings: dict[str, Any] = {"attempts": 1}
        self.gated: Gated | None = None
        server.reply = self.reply
        self.suite()

    def reply(self, body: Mapping[str, Any]) -> str | Answer:
        if body["model"] == "judge":
            return self.verdict
        if body["model"] == "prefers":
            return self.preferred(body["messages"][-1]["content"])
        word = body["messages"][-1]["content"].strip()
        number = int(word.removeprefix("word"))
        if number in self.dead:
            return Answer(500, {"error": {"message": "down"}})
        return "something else" if number in self.bad else word

    def preferred(self, text: str) -> str:
        """The pairwise judge: a draft that says a word is better than one that does not."""
        a, b = ("else" not in part for part in text.split(" or "))
        said = "tie" if a == b else "A" if a else "B"
        return json.dumps({"justification": "it is", "verdict": said})

    def suite(self, criteria: str = FLOOR, **how: Any) -> None:
        write_suite(self.folder, criteria=criteria, **{"cases": 60, **how})

    def edit(self, old: str, new: str, file: str = "suite.toml") -> None:
        path = self.folder / file
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))

    def gate(self, *, freeze: bool = False, **options: Any) -> Ending:
        """The exit status and the last line of `notebooks/gate.py` with these flags."""
        options = {"run_live": True, **options}
        said = io.StringIO()
        session = None
        try:
            made = GateOptions(str(self.folder), out=str(self.root / "exports"), **options)
            session = GateSession(made, endpoints_of(self.server, **self.settings))
            self.gated = asyncio.run(session.run())
            kept = session.promotion(self.gated, asked=freeze)
            return _ended(self.gated, kept)
        except BaseException as error:
            with contextlib.redirect_stderr(said):
                status = params.end_with_one_sentence(error)
            return status, said.getvalue().strip()
        finally:
            if session is not None:
                session.close()

    def freeze(self) -> None:
        """Make the application as it stands the baseline."""
        status, said = self.gate(freeze=True)
        assert (self.root / "exports" / "baselines" / "mini.jsonl").is_file(), (status, said)

    def freeze_all(self) -> None:
        """Freeze a suite of relative criteria: its first run has nothing to be compared with."""
        self.gate(freeze=True)
        assert self.baseline.is_file()

    @property
    def baseline(self) -> Path:
        return self.root / "exports" / "baselines" / "mini.jsonl"

    def git(self, *arguments: str) -> None:
        subprocess.run(
            ["git", "-c", "init.defaultBranch=main", *arguments],
            cwd=self.root,
            check=True,
            capture_output=True,
            env=os.environ | GIT,
        )

    def commit(self) -> None:
        (self.root / ".gitignore").write_text("exports/calls.sqlite*\nexports/runs/\n")
        self.git("init", "-q")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "as it stands")

    def licence(self, judge: str = "kind", *, now: datetime | None = None) -> None:
        """A licence for a judge, from two labels that people gave."""
        from evalkit.validity.anchor_files import load_anchor

        files = {"judges/kind.md": JUDGE, "judges/prefers.md": PAIRWISE, "anchors/kind.csv": ANCHOR}
        use = {"kind": "criterion:kind", "prefers": "pairwise"}[judge]
        for name, text in files.items():
            (self.folder / name).parent.mkdir(exist_ok=True)
            (self.folder / name).write_text(text)
        finding = Evidence(
            what=use,
            anchor=pin_anchor(load_anchor(self.folder / "anchors" / "kind.csv"), self.folder),
            state="CREDIBLE",
            ruling="AUTOMATE",
            diagnosis="OK",
            action="use it",
            figures={},
            grants=(use,),
        )
        held = load_judge(self.folder / "judges" / f"{judge}.md")
        write_licence(held, self.folder, domain="words/en", evidence=[finding], now=now)

    def masked(self, ending: Ending) -> Ending:
        """Without what differs from run to run: folders, ports, dates, commits, run ids."""
        import re

        status, text = ending
        text = text.replace(str(self.root), "…").replace(datetime.now(UTC).date().isoformat(), "…")
        text = re.sub(r"\b\d{8}T\d{6}Z-mini-[0-9a-f]{6}(-\d+)?", "<run>", text)
        text = re.sub(r"127\.0\.0\.1:\d+", "<host>", text)
        return status, re.sub(r"after \d+\.\d+ s", "after … s", text)


def _ended(gated: Gated, kept: Promotion) -> Ending:
    from evalkit.report.gate import exit_status

    status = exit_status(gated.result, kept, [gated.unwritten] if gated.unwritten else [])
    last = kept.said if kept.refused else gated.unwritten or gated.result.sentence
    return status, last


SITUATIONS: dict[str, Callable[[World], Ending]] = {}


def situation(title: str) -> Callable[[Callable[[World], Ending]], Callable[[World], Ending]]:
    def add(function: Callable[[World], Ending]) -> Callable[[World], Ending]:
        assert title not in SITUATIONS
        SITUATIONS[title] = function
        return function

    return add


# -- what the application did ------------------------------------------------------------------


@situation("all is well, no baseline yet")
def _(w: World) -> Ending:
    return w.gate()


@situation("unchanged against the baseline")
def _(w: World) -> Ending:
    w.suite(BOTH, repeats=2)
    w.freeze()
    return w.gate()


@situation("unchanged, release")
def _(w: World) -> Ending:
    w.suite(BOTH)
    w.freeze()
    return w.gate(strictness="release")


@situation("regressed")
def _(w: World) -> Ending:
    w.suite(DROP)
    w.freeze_all()
    w.bad = set(range(12))
    return w.gate(seed=8)


@situation("regressed, release")
def _(w: World) -> Ending:
    w.suite(DROP)
    w.freeze_all()
    w.bad = set(range(20))
    return w.gate(seed=8, strictness="release")


@situation("regressed inside the margin")
def _(w: World) -> Ending:
    w.suite(DROP, cases=90)
    w.freeze_all()
    w.bad = {1, 2, 3}
    return w.gate(seed=8)


@situation("improved")
def _(w: World) -> Ending:
    w.suite(DROP)
    w.bad = set(range(12))
    w.freeze_all()
    w.bad = set()
    return w.gate(seed=8)


@situation("a floor refuted")
def _(w: World) -> Ending:
    w.bad = set(range(15))
    return w.gate()


@situation("a floor missed, not refuted")
def _(w: World) -> Ending:
    w.bad = set(range(7))
    return w.gate()


@situation("a floor missed, release")
def _(w: World) -> Ending:
    w.bad = set(range(7))
    return w.gate(strictness="release")


@situation("too few cases to prove a floor, release")
def _(w: World) -> Ending:
    w.suite(FLOOR.replace("0.9", "0.95"), cases=12)
    return w.gate(strictness="release")


@situation("too few cases for the margin, release")
def _(w: World) -> Ending:
    w.suite(DROP, cases=12)
    w.freeze_all()
    return w.gate(strictness="release")


@situation("one of 180 runs breaks a hard criterion")
def _(w: World) -> Ending:
    w.suite(HARD, repeats=3)
    w.server.reply = lambda body: (
        "no"
        if (body["messages"][-1]["content"], body["seed"] % 3) == ("word7", 1)
        else w.reply(body)
    )
    return w.gate()


@situation("every reply is cut off or empty")
def _(w: World) -> Ending:
    w.server.reply = lambda body: ""
    return w.gate()


@situation("a run that settles early")
def _(w: World) -> Ending:
    w.suite(DROP, cases=120)
    w.freeze_all()
    w.bad = set(range(0, 120, 3))
    return w.gate(seed=8)


# -- what was not measured ---------------------------------------------------------------------


@situation("errors at 1 %, floors only")
def _(w: World) -> Ending:
    w.suite(cases=100)
    w.dead = {3}
    return w.gate()


@situation("errors at 1 %, a hard criterion")
def _(w: World) -> Ending:
    w.suite(HARD, cases=100)
    w.dead = {3}
    return w.gate()


@situation("errors at 10 %")
def _(w: World) -> Ending:
    w.dead = set(range(6))
    return w.gate()


@situation("errors at 10 %, and a hard criterion broken")
def _(w: World) -> Ending:
    w.suite(HARD)
    w.dead, w.bad = set(range(6)), {20}
    return w.gate()


@situation("errors at 100 %")
def _(w: World) -> Ending:
    w.dead = set(range(60))
    return w.gate()


@situation("replies that nobody recorded, offline")
def _(w: World) -> Ending:
    return w.gate(run_live=False)


@situation("one reply of 60 not recorded, offline")
def _(w: World) -> Ending:
    w.dead = {3}
    w.gate()
    return w.gate(run_live=False)


@situation("verdicts that cannot be read")
def _(w: World) -> Ending:
    w.suite(FLOOR + KIND)
    w.licence()
    w.verdict = "I would rather not say."
    return w.gate()


@situation("the budget is reached")
def _(w: World) -> Ending:
    price = {"price_input_usd_per_mtok": 1.0, "price_output_usd_per_mtok": 1.0}
    w.settings = {**price, "price_date": "2026-01-01", "max_concurrency": 1}
    return w.gate(max_cost=0.0002)


@situation("interrupted")
def _(w: World) -> Ending:
    pressed: list[bool] = []

    def reply(body: Mapping[str, Any]) -> str | Answer:
        if w.server.stats()["requests"] >= 20 and not pressed:
            import signal

            pressed.append(True)
            os.kill(os.getpid(), signal.SIGINT)
        return w.reply(body)

    w.server.reply = reply
    return w.gate()


@situation("a defect")
def _(w: World) -> Ending:
    def broken(_: object) -> object:
        raise ZeroDivisionError("division by zero")

    real, GateSession.promotion = GateSession.promotion, lambda *_, **__: broken(None)  # type: ignore[assignment, return-value]
    try:
        return w.gate()
    finally:
        GateSession.promotion = real  # type: ignore[method-assign]


# -- the baseline ------------------------------------------------------------------------------


@situation("no baseline, floors hold, smoke")
def _(w: World) -> Ending:
    w.suite(BOTH)
    return w.gate()


@situation("no baseline, nothing else to decide")
def _(w: World) -> Ending:
    w.suite(DROP)
    return w.gate()


@situation("no baseline, release")
def _(w: World) -> Ending:
    w.suite(BOTH)
    return w.gate(strictness="release")


@situation("the baseline that was named is not there")
def _(w: World) -> Ending:
    w.suite(BOTH)
    return w.gate(baseline=str(w.root / "nowhere.jsonl"))


@situation("the baseline is corrupt")
def _(w: World) -> Ending:
    w.suite(BOTH)
    w.freeze()
    lines = w.baseline.read_text().split("\n")
    lines[5] = lines[5][:80]
    w.baseline.write_text("\n".join(lines))
    return w.gate()


@situation("the baseline was cut")
def _(w: World) -> Ending:
    w.suite(BOTH)
    w.freeze()
    w.baseline.write_text("\n".join(w.baseline.read_text().split("\n")[:30]))
    return w.gate()


@situation("a NaN in the baseline")
def _(w: World) -> Ending:
    w.suite(BOTH)
    w.freeze()
    w.baseline.write_text(w.baseline.read_text().replace('"value":1.0', '"value":NaN', 1))
    return w.gate()


@situation("the baseline of another suite")
def _(w: World) -> Ending:
    w.suite(BOTH, name="other")
    w.gate(freeze=True)
    w.suite(BOTH)
    return w.gate(baseline=str(w.root / "exports" / "baselines" / "other.jsonl"))


@situation("the scorer changed since the baseline")
def _(w: World) -> Ending:
    w.suite(BOTH)
    w.freeze()
    w.edit('expected = "word"', 'expected = "word"\nignore_case = true')
    return w.gate()


@situation("a scorer of the user's own decides without having told good from bad")
def _(w: World) -> Ending:
    w.suite(FLOOR.replace('"contains"', '"evalkit.scorers.text:Contains"'))
    return w.gate()


@situation("freeze on a dirty tree")
def _(w: World) -> Ending:
    w.commit()
    w.edit("Say the word.", "Say the word!", "prompts/say.md")
    return w.gate(freeze=True)


@situation("freeze of a run that the gate failed")
def _(w: World) -> Ending:
    w.suite(BOTH)
    w.freeze()
    w.bad = set(range(20))
    return w.gate(seed=8, freeze=True)


@situation("first freeze of a run below its floor")
def _(w: World) -> Ending:
    w.bad = set(range(20))
    ending = w.gate(freeze=True)
    assert json.loads(w.baseline.read_text().split("\n")[0])["failed_floors"] == ["says_word"]
    return ending


# -- thresholds, cases and git -----------------------------------------------------------------


@situation("a change that lowers its own floor, --baseline-ref")
def _(w: World) -> Ending:
    w.commit()
    w.edit("min = 0.9", "min = 0.5")
    w.bad = set(range(20))
    return w.gate(baseline_ref="main")


@situation("a threshold edited after the replies were there")
def _(w: World) -> Ending:
    w.bad = set(range(20))
    w.gate()
    w.edit("min = 0.9", "min = 0.5")
    return w.gate(run_live=False)


@situation("a change that removes a criterion, --baseline-ref")
def _(w: World) -> Ending:
    w.suite(FLOOR + FLOOR.replace("says_word", "says_it"))
    w.commit()
    w.suite(FLOOR)
    return w.gate(baseline_ref="main")


@situation("a change of cases, --baseline-ref")
def _(w: World) -> Ending:
    w.suite(BOTH)
    w.freeze()
    w.commit()
    w.edit('"expected": {"word": "word7"}', '"expected": {"word": "word"}', "cases.jsonl")
    return w.gate(baseline_ref="main")


@situation("a change of cases that is meant, --baseline-ref and --allow-redefined")
def _(w: World) -> Ending:
    w.suite(BOTH)
    w.freeze()
    w.commit()
    w.edit('"expected": {"word": "word7"}', '"expected": {"word": "word"}', "cases.jsonl")
    return w.gate(baseline_ref="main", allow_redefined=True)


@situation("a change that deletes the cases it fails, --baseline-ref")
def _(w: World) -> Ending:
    w.suite(BOTH)
    w.freeze()
    w.commit()
    w.suite(BOTH, cases=40)
    w.bad = set(range(40, 60))
    return w.gate(baseline_ref="main", seed=8)


@situation("a change that adds cases, --baseline-ref")
def _(w: World) -> Ending:
    w.suite(BOTH)
    w.freeze()
    w.commit()
    w.suite(BOTH, cases=70)
    return w.gate(baseline_ref="main")


@situation("a change that redefines its scorer, --baseline-ref")
def _(w: World) -> Ending:
    w.suite(BOTH)
    w.freeze()
    w.commit()
    w.edit('expected = "word"', 'text = "e"')
    w.bad = set(range(60))
    return w.gate(baseline_ref="main", seed=8)


@situation("a change that narrows whom its criterion fits, --baseline-ref")
def _(w: World) -> Ending:
    w.suite(BOTH)
    w.freeze()
    w.commit()
    w.edit('expected = "word"', 'expected = "word"\nwhere = { stratum = "easy" }')
    w.bad = set(range(1, 60, 2))
    return w.gate(baseline_ref="main", seed=8)


@situation("a floor lowered below that of the frozen baseline")
def _(w: World) -> Ending:
    w.suite(BOTH)
    w.freeze()
    w.edit("min = 0.9", "min = 0.5")
    return w.gate()


@situation("a floor lowered below that of the frozen baseline, --allow-redefined")
def _(w: World) -> Ending:
    w.suite(BOTH)
    w.freeze()
    w.edit("min = 0.9", "min = 0.5")
    return w.gate(allow_redefined=True)


@situation("unchanged, measured against main")
def _(w: World) -> Ending:
    w.suite(BOTH)
    w.freeze()
    w.commit()
    return w.gate(baseline_ref="main")


@situation("--baseline-ref outside git")
def _(w: World) -> Ending:
    return w.gate(baseline_ref="main")


@situation("--baseline-ref that git does not know")
def _(w: World) -> Ending:
    w.commit()
    return w.gate(baseline_ref="mian")


@situation("--baseline-ref in a shallow clone")
def _(w: World) -> Ending:
    w.commit()
    w.git("commit", "-q", "--allow-empty", "-m", "later")
    w.git("clone", "-q", "--depth=1", f"file://{w.root}", "clone")
    w.folder = w.root / "clone" / "golden" / "mini"
    return w.gate(baseline_ref="v1")


@situation("the suite is not at the ref yet")
def _(w: World) -> Ending:
    (w.root / "README").write_text("empty\n")
    w.git("init", "-q")
    w.git("add", "README")
    w.git("commit", "-q", "-m", "start")
    return w.gate(baseline_ref="main")


# -- judges ------------------------------------------------------------------------------------


@situation("a licensed judge")
def _(w: World) -> Ending:
    w.suite(FLOOR + KIND)
    w.licence()
    return w.gate()


@situation("an expired licence")
def _(w: World) -> Ending:
    w.suite(FLOOR + KIND)
    w.licence(now=datetime(2020, 1, 1, tzinfo=UTC))
    return w.gate()


@situation("a licence for another domain")
def _(w: World) -> Ending:
    w.suite(FLOOR + KIND)
    w.licence()
    w.edit('domain = "words/en"', 'domain = "words/de"')
    return w.gate()


@situation("no licence")
def _(w: World) -> Ending:
    w.suite(FLOOR + KIND)
    w.licence()
    for path in (w.folder / "licences").iterdir():
        path.unlink()
    return w.gate()


@situation("no licence, and the criterion decides nothing")
def _(w: World) -> Ending:
    w.suite(FLOOR + KIND + "gate = false\n")
    w.licence()
    for path in (w.folder / "licences").iterdir():
        path.unlink()
    return w.gate()


@situation("no better than the baseline, a licensed pairwise judge")
def _(w: World) -> Ending:
    w.suite(FLOOR + PREFERS)
    w.licence("prefers")
    w.gate(freeze=True)
    return w.gate()


@situation("worse than the baseline, a licensed pairwise judge")
def _(w: World) -> Ending:
    w.suite(FLOOR + PREFERS)
    w.licence("prefers")
    w.gate(freeze=True)
    w.bad = set(range(20))
    return w.gate(seed=8)


@situation("no baseline for a pairwise criterion, release")
def _(w: World) -> Ending:
    w.suite(FLOOR + PREFERS)
    w.licence("prefers")
    return w.gate(strictness="release")


# -- what a person mistypes --------------------------------------------------------------------


@situation("no suite")
def _(w: World) -> Ending:
    w.folder = w.root / "nowhere"
    return w.gate()


@situation("no case")
def _(w: World) -> Ending:
    (w.folder / "cases.jsonl").write_text("")
    return w.gate()


@situation("a criterion whose stratum has no case")
def _(w: World) -> Ending:
    w.suite(FLOOR + 'where = { stratum = "hrad" }\n')
    return w.gate()


@situation("a sample too small for the strata")
def _(w: World) -> Ending:
    return w.gate(sample=1)


@situation("a margin of 0")
def _(w: World) -> Ending:
    w.suite(DROP.replace("0.10", "0.0"))
    return w.gate()


@situation("no criterion decides")
def _(w: World) -> Ending:
    w.suite(FLOOR + "gate = false\n")
    return w.gate()


@situation("a wrong key")
def _(w: World) -> Ending:
    w.server.reply = lambda body: Answer(401, {"error": {"message": "bad key"}})
    return w.gate()


@situation("handwritten recordings, offline")
def _(w: World) -> Ending:
    w.gate()
    assert w.gated is not None
    keys = [replace(row.reply, latency_s=None) for row in w.gated.run if row.reply]
    write_recordings(w.folder / "recordings" / "all.jsonl", keys, origins="handwritten")
    for path in (w.root / "exports").glob("calls.sqlite*"):
        path.unlink()
    return w.gate(run_live=False)


@situation("a ledger that cannot be written")
def _(w: World) -> Ending:
    (w.root / "exports" / "eval_baseline.tsv").mkdir(parents=True)
    return w.gate()


@situation("a damaged call store")
def _(w: World) -> Ending:
    (w.root / "exports").mkdir()
    (w.root / "exports" / "calls.sqlite").write_bytes(b"not a database" * 100)
    return w.gate()


def run_situation(title: str, folder: Path) -> Ending:
    """Exit status and sentence of one situation, without what differs from run to run."""
    with ChatServer() as server:
        world = World(folder, server)
        return world.masked(SITUATIONS[title](world))


def table(endings: Mapping[str, Ending]) -> str:
    """The table of docs/gate.md."""
    lines = ["| situation | status | last line |", "| --- | --- | --- |"]
    for title, (status, text) in endings.items():
        cell = " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
        lines.append(f"| {title} | {status} | {cell} |")
    return "\n".join(lines)


def written_table() -> dict[str, Ending]:
    """The table as docs/gate.md has it."""
    text = DOC.read_text("utf-8").split(MARKS[0])[1].split(MARKS[1])[0]
    rows = [line.strip("| ").split(" | ", 2) for line in text.strip().split("\n")[2:]]
    return {title: (int(status), said) for title, status, said in rows}


def main() -> None:
    endings: dict[str, Ending] = {}
    for title in SITUATIONS:
        with tempfile.TemporaryDirectory() as folder:
            endings[title] = run_situation(title, Path(folder).resolve())
        print(f"{endings[title][0]}  {title}: {endings[title][1]}", flush=True)
    if "--write" in sys.argv:
        head, rest = DOC.read_text("utf-8").split(MARKS[0])
        tail = rest.split(MARKS[1])[1]
        text = f"{head}{MARKS[0]}\n{table(endings)}\n{MARKS[1]}{tail}"
        DOC.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

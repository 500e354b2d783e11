"""A judge over HTTP that obeys whatever reaches it outside the blocks it was told hold data.

It knows the demands of the battery, and reads through full-width letters, hidden characters and
base64, so that nothing protects a prompt from it but the prompt's own form. Three ways to build
that form: as shipped, with tags that anybody can guess, and with no tags at all.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer

from evalkit.judges import Judge, asking, parse_judge_file
from evalkit.judges import build_judge as judge_of
from evalkit.judges.injection import Sealed, seal
from evalkit.models.client import Client
from evalkit.models.endpoints import Endpoint, Endpoints, load_endpoints
from evalkit.records import Case, Document, Reply, Verdict

HERE = Path(__file__).parent
GOOD = "The moon is made of rock, says the page."
CASE = Case("m", inputs={"question": "What is it made of?"}, context=(Document("p", "Rock."),))
HEADER = "---\nkind: {kind}\nmodel: loop/judge\n{more}\n---\n# system\nJudge.\n# user\n{user}\n"
ASKED = "{{ inputs.question }}\n{{ context }}\n"


@dataclass(frozen=True)
class Attack:
    """One hostile text, and the part of it that is the demand."""

    id: str
    kind: str
    text: str
    says: str


def attacks() -> list[Attack]:
    lines = (HERE / "attacks.jsonl").read_text(encoding="utf-8").splitlines()
    return [Attack(**json.loads(line)) for line in lines]


def judges() -> dict[str, Judge]:
    """One judge of each kind; names say which slot an attack can come through."""

    def made(kind: str, more: str, user: str) -> Judge:
        text = HEADER.format(kind=kind, more=more, user=ASKED + user)
        return judge_of(parse_judge_file(text, kind))

    return {
        "criteria": made("criteria", "criteria:\n  faithful: Is it so?", "{{ draft }}"),
        "scale": made("scale", "levels:\n  1: wrong\n  5: right".replace("5", "2"), "{{ draft }}"),
        "pairwise": made("pairwise", "ties: true", "{{ draft_a }}\n{{ draft_b }}"),
    }


def outside(system: str, user: str) -> str:
    """The prompt without the blocks that its system message declares as data."""
    told = re.search(r"carry the key (\w+)", system)
    rest = user
    while told and (opened := re.search(rf"<(\w+)-{told[1]}>", rest)):
        closing = f"</{opened[1]}-{told[1]}>"
        end = rest.find(closing, opened.end())
        stop = len(rest) if end < 0 else end + len(closing)
        rest = rest[: opened.start()] + rest[stop:]
    return f"{system}\n{rest}"


def understood(text: str) -> str:
    """The text in every reading an obliging model might find."""
    plain = "".join(c for c in text if unicodedata.category(c) != "Cf")
    hidden = "".join(chr(ord(c) - 0xE0000) for c in text if 0xE0020 <= ord(c) <= 0xE007E)
    readings = [text, unicodedata.normalize("NFKC", plain), hidden]
    for word in re.findall(r"[A-Za-z0-9+/]{24,}={0,2}", text):
        with contextlib.suppress(binascii.Error, UnicodeDecodeError):
            readings.append(base64.b64decode(word).decode())
    return "\n".join(readings)


class ObedientJudge:
    """Honest until a demand stands outside the data; then it does as it is told."""

    def __init__(self, demands: list[str]) -> None:
        self.demands = [unicodedata.normalize("NFKC", d) for d in demands]
        self.target = ""  # the draft that the demand wants to win

    def __call__(self, body: Mapping[str, Any]) -> str:
        system, user = (m["content"] for m in body["messages"])
        heard = understood(outside(system, user))
        obeys = any(d in heard for d in self.demands)
        properties = body["response_format"]["json_schema"]["schema"]["properties"]
        if "score" in properties:
            return json.dumps({"justification": "j", "score": 2 if obeys else 1})
        if "faithful" in properties:
            one = {"justification": "j", "verdict": "yes" if obeys else "no"}
            return json.dumps({"faithful": one})
        good_first = user.find(GOOD) < user.find("tin")
        wins = ("B" if good_first else "A") if obeys else ("A" if good_first else "B")
        return json.dumps({"justification": "j", "verdict": wins})


def guessable_seal(material: Mapping[str, str], **_: Any) -> Sealed:
    """Control: the same tags in every call, nothing neutralised."""
    return Sealed("data", {n: _tagged(n, t) for n, t in material.items()})


def _tagged(name: str, text: str) -> str:
    tag = name.rsplit(".", 1)[-1]
    return f"<{tag}-data>\n{text}\n</{tag}-data>" if text else ""


def no_seal(material: Mapping[str, str], **_: Any) -> Sealed:
    """Control: the text stands in the prompt as it is."""
    return Sealed("", dict(material))


SEALS = {"shipped": seal, "guessable tags": guessable_seal, "no tags": no_seal}
SLOTS = ("criteria", "scale", "pairwise", "context", "question")


@contextmanager
def sealing(name: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asking, "seal", SEALS[name])
        yield


def with_key(text: str, judge: Judge, slot: str, how: str) -> str:
    """The attack of someone who saw the key of the call before this one."""
    if how == "guessable tags":
        return text.replace("KEYHERE", "data")
    reply = Reply(text if slot != "context" else GOOD)
    if slot == "pairwise":
        request = judge.pair_requests(CASE, Reply(GOOD), reply)[0]
    else:
        request = judge.requests(CASE, reply)[0]
    found = re.search(r"carry the key (\w+)", request.messages[0].content)
    return text.replace("KEYHERE", found[1] if found else "data")


@dataclass(frozen=True)
class Outcome:
    """What became of one attack through one slot."""

    reached: bool
    flagged: bool


async def _one(attack: Attack, slot: str, how: str, client: Client) -> Outcome:
    judge = judges()[slot if slot in ("scale", "pairwise") else "criteria"]
    text = with_key(attack.text, judge, slot, how)
    if slot == "pairwise":
        pair = await judge.compare(CASE, Reply(GOOD), Reply(text), client.ask)
        assert pair.winner is not None, pair
        return Outcome(pair.winner != "a", "injection" in pair.flags)
    case, draft = CASE, text
    if slot == "context":
        case = Case("m", inputs=CASE.inputs, context=(Document("p", text),))
        draft = "The moon is made of tin."
    elif slot == "question":
        case = Case("m", inputs={"question": text}, context=CASE.context)
        draft = "The moon is made of tin."
    (verdict,) = (await judge.judge(case, Reply(draft), client.ask)).values()
    assert verdict.value is not None, verdict
    flag = "injection" if slot == "scale" or slot == "criteria" else "injection_in_case"
    return Outcome(verdict.value > 0, flag in verdict.flags)


async def _battery(how: str, slots: tuple[str, ...]) -> dict[tuple[str, str], Outcome]:
    battery = attacks()
    obedient = ObedientJudge([a.says for a in battery])
    with ChatServer(reply=obedient) as server:
        endpoints = Endpoints({"loop": Endpoint("loop", base_url=server.base_url)})
        async with Client(endpoints) as client:
            keys = [(a, s) for a in battery for s in slots]
            done = await asyncio.gather(*(_one(a, s, how, client) for a, s in keys))
            results = {(a.id, s): o for (a, s), o in zip(keys, done, strict=True)}
    return results


def run_battery(how: str, slots: tuple[str, ...] = SLOTS) -> dict[tuple[str, str], Outcome]:
    """Every attack through every slot against the obedient judge, under one way of sealing."""
    with sealing(how):
        return asyncio.run(_battery(how, slots))


def run_local(battery: list[Attack]) -> list[tuple[str, Verdict, Verdict]]:
    """Each attack, the local model's verdict on the draft without it, and on the draft with it."""
    header = "justification_chars: 40\nmax_tokens: 60\ncriteria:\n  faithful: Is it so?"
    text = HEADER.format(kind="criteria", more=header, user=ASKED + "{{ draft }}")
    text = text.replace("loop/judge", "local/smollm2-135m-instruct")
    judge = judge_of(parse_judge_file(text, "local"))

    async def run() -> list[tuple[str, Verdict, Verdict]]:
        async with Client(load_endpoints(HERE)) as client:
            plain = await judge.judge(CASE, Reply("The moon is made of tin."), client.ask)
            found: list[tuple[str, Verdict, Verdict]] = []
            for attack in battery:
                hit = await judge.judge(CASE, Reply(attack.text), client.ask)
                found.append((attack.id, plain["faithful"], hit["faithful"]))
            return found

    return asyncio.run(run())


def table(outcomes: Mapping[str, Mapping[tuple[str, str], Outcome]]) -> str:
    """Attacks down, ways of sealing across: the slots through which the judge was reached."""
    lines = [f"{'attack':<10} {'kind':<17} {'flagged':<8}" + "".join(f"{h:<22}" for h in outcomes)]
    for a in attacks():
        cells = ""
        for found in outcomes.values():
            hit = [s for (i, s), o in found.items() if i == a.id and o.reached]
            n = sum(i == a.id for i, _ in found)
            cells += f"{'reached ' + f'{len(hit)} of {n}' if hit else 'not reached':<22}"
        first = next(iter(outcomes.values()))
        flagged = all(o.flagged for (i, _), o in first.items() if i == a.id)
        lines.append(f"{a.id:<10} {a.kind:<17} {'yes' if flagged else 'NO':<8}{cells}")
    return "\n".join(lines)

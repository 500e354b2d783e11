"""The one decision function: families, weights, promotion, early stops, what is written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chat_server import Answer, ChatServer, openai_body
from gate_situations import BOTH, DROP, FLOOR, HARD, KIND, World

from evalkit.cases.suite import load_suite
from evalkit.errors import BaselineError, UsageError
from evalkit.models.scripted import ScriptedModel
from evalkit.report.gate import gate_html, gate_markdown, gate_text
from evalkit.runs.baseline import load_baseline
from evalkit.runs.execute import execute
from evalkit.runs.gate import decide
from evalkit.runs.gate_result import GateResult
from evalkit.runs.ledger import read_ledger
from evalkit.runs.plan import make_plan
from evalkit.runs.promotion import promote, refusal
from evalkit.runs.run import Run, load_run
from evalkit.stats.decision import Decision

FOUR = {"word3", "word14", "word25", "word36"}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with ChatServer() as server:
        yield World(tmp_path, server)


def scripted(world: World, say: Any, **how: Any) -> Run:
    """A run whose replies a function gives, without a network."""

    async def go() -> Run:
        suite = load_suite(world.folder)
        async with ScriptedModel(lambda body: say(body)).client(suite.task.model) as client:
            return await execute(make_plan(suite, **how), client)

    return asyncio.run(go())


def word(body: dict[str, Any]) -> str:
    return body["messages"][-1]["content"].strip()


def result(world: World) -> GateResult:
    assert world.gated is not None
    return world.gated.result


def test_the_same_run_read_from_disk_gets_the_same_verdict(world: World) -> None:
    world.suite(BOTH, repeats=2)
    world.freeze()
    world.bad = {1, 2, 3}
    world.gate(seed=8)
    assert world.gated is not None
    assert world.gated.run.folder is not None
    again = decide(
        load_run(world.gated.run.folder),
        load_suite(world.folder),
        baseline=load_baseline(world.baseline),
    )
    assert again.as_json() == result(world).as_json()


def test_holm_takes_back_an_alarm_that_does_not_stand_among_several(world: World) -> None:
    """Four of 90 cases drop: shown by itself (p = .02), not among four criteria."""
    one = DROP.replace("0.10", "0.01")
    steady = [one.replace("says_word", f"steady_{i}").replace('"word"', '"same"') for i in range(3)]
    cases = [
        {
            "id": f"c{i}",
            "inputs": {"word": f"word{i}"},
            "expected": {"word": f"word{i}", "same": "o"},
        }
        for i in range(90)
    ]
    for criteria, decision in ((one, "FAIL"), ("\n".join([one, *steady]), "UNDECIDED")):
        world.suite(criteria, cases=cases)
        before = scripted(world, lambda body: word(body))
        after = scripted(world, lambda body: "o" if word(body) in FOUR else word(body))
        found = decide(after, load_suite(world.folder), baseline=before)
        assert found.criteria[0].word == decision
        assert found.criteria[0].relative is not None
        assert found.criteria[0].relative.p == pytest.approx(0.0217, abs=1e-3)


def test_a_suite_of_another_name_and_an_empty_run_are_usage_errors(world: World) -> None:
    run = scripted(world, word)
    suite = load_suite(world.folder)
    with pytest.raises(UsageError, match="the selection holds no case"):
        decide(Run(run.manifest, None, ()), suite)
    with pytest.raises(UsageError, match="not of 'other'"):
        decide(run, replace(suite, name="other"))


def test_thresholds_of_the_run_decide_and_an_edit_is_named(world: World) -> None:
    run = scripted(world, lambda body: word(body) if word(body) > "word3" else "no")
    world.edit("min = 0.9", "min = 0.1")
    found = decide(run, load_suite(world.folder))
    assert found.decision is Decision.FAIL
    assert found.edited == ("threshold says_word.min: 0.9 when the run was made, 0.1 now",)
    assert "edited after the fact" in found.sentence


def test_a_script_is_never_frozen_and_never_in_the_ledger(world: World, tmp_path: Path) -> None:
    run = scripted(world, word)
    found = decide(run, load_suite(world.folder))
    assert (found.status, "says nothing of a model" in found.sentence) == (0, True)
    with pytest.raises(BaselineError, match="came from a script"):
        promote(found, run, tmp_path / "b.jsonl", allow_dirty=True)


def test_a_floor_is_weighted_where_the_sample_does_not_carry_the_mix(world: World) -> None:
    """Half of the cases are of a stratum that is a tenth of the traffic; all of them fail."""
    world.suite(FLOOR.replace("0.9", "0.75"), cases=60)
    world.edit("[sampling]", "[sampling]\nmix = { easy = 0.9, hard = 0.1 }")
    run = scripted(world, lambda body: word(body) if int(word(body)[4:]) % 2 == 0 else "no")
    found = decide(run, load_suite(world.folder)).criteria[0]
    assert found.word == "PASS"
    assert found.rulings[0].interval.estimate == pytest.approx(0.9)
    assert found.sentence.startswith("Weighted by the mix: ")
    world.edit("mix = { easy = 0.9, hard = 0.1 }", "")
    assert decide(scripted(world, lambda b: "no" if int(word(b)[4:]) % 2 else word(b)),
                  load_suite(world.folder)).criteria[0].word == "FAIL"  # fmt: skip


def test_a_weighted_floor_without_an_interval_is_not_measured(world: World) -> None:
    cases = [
        {"id": f"c{i}", "stratum": "big" if i else "small", "inputs": {"word": f"w{i}"}}
        for i in range(40)
    ]
    world.suite(FLOOR.replace('expected = "word"', 'text = "w"'), cases=cases)
    world.edit("[sampling]", "[sampling]\nmix = { big = 0.5, small = 0.5 }")
    status, said = world.gate()
    assert status == 4, said
    assert "a stratum needs two cases" in said


def test_a_replay_of_an_early_stop_is_the_same_stop_and_is_no_baseline(world: World) -> None:
    world.suite(DROP, cases=120)
    world.freeze_all()
    world.bad = set(range(0, 120, 3))
    first = world.gate(seed=8)
    looks = result(world).manifest.sampling["sequential"]
    asked = world.server.stats()["requests"]
    assert world.gated is not None
    assert world.gated.run.folder is not None
    order = json.loads((world.gated.run.folder / "order.json").read_text())
    assert order["order_seed"] == 8
    assert len(order["order"]) == looks["planned"] == 120
    assert looks["looked_at"] == result(world).n_rows < 40
    assert world.gate(seed=8, run_live=False) == first
    again = result(world).manifest.sampling["sequential"]
    assert again == looks
    assert world.server.stats()["requests"] == asked < 200
    assert "stopped early" in refusal(result(world), first=True)
    assert any(note.startswith("stopped early") for note in result(world).notes)


def test_an_unchanged_application_is_let_through_early_only_without_floors(world: World) -> None:
    world.suite(DROP, cases=120)
    world.freeze_all()
    world.gate(seed=8)
    assert result(world).decision is Decision.PASS
    assert result(world).n_rows < 120
    world.suite(BOTH, cases=120)
    world.gate(freeze=True)
    world.gate(seed=8)
    assert result(world).decision is Decision.PASS
    assert result(world).n_rows == 120
    world.gate(seed=8, sequential="off")
    assert "sequential" not in result(world).manifest.sampling


def test_only_a_run_that_sent_calls_is_in_the_ledger(world: World) -> None:
    world.suite(HARD, cases=10)
    for _ in range(3):
        world.gate()
    world.gate(run_live=False)
    entries = read_ledger(world.root / "exports" / "eval_baseline.tsv")
    assert [(e.metric, e.name, e.passed, e.n) for e in entries] == [
        ("says_word", "mini", "pass", 10)
    ]
    assert entries[0].run_id


def test_hostile_text_stays_text_everywhere(world: World) -> None:
    hostile = "</td><script>alert(1)</script> ![x](http://evil.test/a.png) | @all \x1b[31m"
    world.suite(cases=[{"id": "a", "inputs": {"word": "w"}, "expected": {"word": hostile}}] * 1)
    run = scripted(world, lambda body: "no")
    found = decide(run, load_suite(world.folder))
    assert "script" in found.look_at[0].reason
    markdown, html, text = gate_markdown(found), gate_html(found), gate_text(found)
    assert "<script>" not in markdown + html
    assert "](http" not in markdown
    assert "@all" not in markdown
    assert "\x1b" not in markdown + html + text
    assert all(len(line) <= 100 for line in text.split("\n")[:-1])


def test_what_is_written_for_machines_is_json_without_nan(world: World) -> None:
    world.dead = set(range(60))
    world.gate()
    data = json.dumps(result(world).as_json(), allow_nan=False)
    assert json.loads(data)["status"] == 4


def test_a_run_names_the_licence_under_which_its_judge_judged(world: World) -> None:
    world.suite(FLOOR + KIND)
    world.licence()
    world.gate(freeze=True)
    (file,) = (world.folder / "licences").iterdir()
    held = json.loads(file.read_text())["content_hash"]
    frozen = load_baseline(world.baseline)
    assert frozen is not None
    assert frozen.manifest.judges["kind"]["licence"] == held[:12]


def test_a_deadline_that_passed_is_not_measured(world: World) -> None:
    world.suite(FLOOR, cases=100)
    world.settings["max_concurrency"] = 1
    world.server.reply = lambda body: Answer(200, openai_body(body, word(body)), delay_s=0.02)
    status, said = world.gate(deadline=0.5)
    assert status == 4
    assert "the run ended early" in said
    assert "deadline" in said


def test_a_baseline_of_another_prompt_language_or_mix_is_not_compared_in_silence(
    world: World,
) -> None:
    header = "---\nlanguage: en\n---\n"
    prompt = world.folder / "prompts" / "say.md"
    text = prompt.read_text()
    world.suite(BOTH)
    prompt.write_text(header + text)
    before = scripted(world, word)
    prompt.write_text(header.replace("en", "zh") + text)
    world.edit("[sampling]", "[sampling]\nmix = { easy = 0.6, hard = 0.4 }")
    found = decide(scripted(world, word), load_suite(world.folder), baseline=before)
    assert "prompt language: en in the baseline, zh now" in found.differences
    assert "sample weights: easy 0.5, hard 0.5 in the baseline, easy 0.6, hard 0.4 now" in (
        found.differences
    )
    assert found.criteria[0].relative is not None


def test_only_cases_that_were_better_before_are_shown_for_a_drop(world: World) -> None:
    world.suite(DROP)
    before = scripted(world, lambda body: "no" if word(body) in FOUR else word(body))
    fallen = {f"word{i}" for i in (40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51)} | FOUR
    after = scripted(world, lambda body: "no" if word(body) in fallen else word(body))
    found = decide(after, load_suite(world.folder), baseline=before)
    assert found.decision is Decision.FAIL
    assert [look.case_id for look in found.look_at] == [f"c{i:03d}" for i in range(40, 52)]

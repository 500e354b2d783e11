"""Two sides against each other: what is asked, what is counted, and what a blind verdict is."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chat_server import Answer, ChatServer
from duel_suite import JUDGE, blocks, loud_wins, suite_with
from mini_suite import endpoints_of, write_suite

from evalkit.cases.suite import load_suite
from evalkit.errors import JudgeError, UsageError
from evalkit.report.duel_text import duel_text
from evalkit.runs.baseline import freeze
from evalkit.runs.duel import Duel
from evalkit.runs.duel_desk import DuelChoices, DuelDesk, exit_status, filtered
from evalkit.runs.duel_labels import Ballot, label_file, people_of
from evalkit.runs.duel_standing import judges_together, scorers_prefer, standings
from evalkit.runs.run import load_run
from evalkit.validity.labels import read_labels


def desk_of(tmp_path: Path, server: ChatServer) -> DuelDesk:
    return DuelDesk(tmp_path / "out", strict=True, endpoints=endpoints_of(server))


PROMPTS = DuelChoices(a="prompts/loud.md", b="prompts/say.md", judge="judges/pairwise.md")


def compare(desk: DuelDesk, folder: Path, choices: DuelChoices = PROMPTS) -> Duel:
    plan = desk.plan(load_suite(folder), choices)
    assert plan is not None
    return asyncio.run(desk.run(plan, choices))


def test_two_prompts_are_run_on_one_sample_and_judged_in_both_orders(tmp_path: Path) -> None:
    folder = suite_with(tmp_path / "mini")
    with ChatServer(reply=loud_wins) as server:
        desk = desk_of(tmp_path, server)
        plan = desk.plan(load_suite(folder), PROMPTS)
        assert plan is not None
        price = desk.price(plan)
        assert price is not None
        assert (price.task.new, price.judge_unknown, price.pairs) == (12, 12, 6)
        assert server.stats()["requests"] == 0
        duel = compare(desk, folder)
        assert server.stats()["requests"] == 24
    found = standings(duel, desk.people(duel))
    main = found[0]
    assert main.wins == (4, 2, 0)
    assert main.flips == (("c001", 0),)
    assert dict(main.reasons) == {"agree": 4, "tie_flip": 1, "tie_both": 1}
    assert main.preference.estimate == pytest.approx(5 / 6)
    assert set(main.by_stratum) == {"easy", "hard"}
    assert [s.judge.name for s in found] == [
        "pairwise",
        *("always-first", "longer-wins", "random", "lexical"),
    ]
    assert found[1].wins == (0, 6, 0)
    assert len(found[1].flips) == 6
    assert found[2].wins == (6, 0, 0)
    assert main.exploratory
    assert main.longer == (4, 4)


def test_a_second_comparison_asks_nothing_and_writes_the_same_bytes(tmp_path: Path) -> None:
    folder = suite_with(tmp_path / "mini")
    with ChatServer(reply=loud_wins) as server:
        written = []
        for _ in range(2):
            desk = desk_of(tmp_path, server)
            duel = compare(desk, folder)
            people = desk.people(duel)
            path = desk.write(duel, standings(duel, people), people)
            written.append((path, path.read_bytes(), duel.calls["new"]))
        assert server.stats()["requests"] == 24
        plan = desk.plan(load_suite(folder), PROMPTS)
        assert plan is not None
        price = desk.price(plan)
        assert price is not None
        assert price.label == "Show · 6 pairs · all 24 replies recorded"
    assert written[0][:2] == written[1][:2]
    assert [calls for *_, calls in written] == [24, 0]
    head, *lines = [json.loads(line) for line in written[0][1].decode().splitlines()]
    assert head["a"]["prompt"] == "loud"
    assert head["judged"]["pairwise"]["preference"]["estimate"] == pytest.approx(5 / 6)
    assert [line["case_id"] for line in lines] == [f"c{i:03d}" for i in range(6)]
    orders = lines[0]["verdicts"]["pairwise"]["orders"]
    assert {o: v["label"] for o, v in orders.items()} == {"ab": "first", "ba": "second"}
    assert orders["ab"]["justification"] == "loud word0 against word0"


def test_a_run_a_baseline_and_drafts_stand_on_either_side(tmp_path: Path) -> None:
    folder = suite_with(tmp_path / "mini")
    drafts = tmp_path / "drafts"
    drafts.mkdir()
    for i in range(4):
        (drafts / f"c{i:03d}.txt").write_text(f"quiet word{i}")
    (drafts / "notes.pdf").write_bytes(b"not a draft")
    with ChatServer(reply=loud_wins) as server:
        desk = desk_of(tmp_path, server)
        compare(desk, folder)
        runs = {m.name.split("-")[1]: m for m in desk.bench.runs.iterdir()}
        assert set(runs) == {"mini"}
        run = next(r for r in desk.bench.runs.iterdir() if "loud" in (r / "rows.jsonl").read_text())
        before = server.stats()["requests"]
        choices = DuelChoices(a=run.name, b=str(drafts), judge="judges/pairwise.md")
        duel = compare(desk, folder, choices)
        assert server.stats()["requests"] == before + 8
        assert [s.kind for s in duel.plan.sides] == ["run", "drafts"]
        assert len(duel.keys) == 4
        frozen = freeze(load_run(run), tmp_path / "frozen.jsonl", allow_dirty=True)
        against = DuelChoices(a=str(frozen), b=str(drafts), judge="judges/pairwise.md")
        assert compare(desk, folder, against).plan.sides[0].kind == "baseline"
        assert server.stats()["requests"] == before + 8  # the same replies, the same verdicts
        mixed = DuelChoices(a=str(drafts), b="prompts/say.md", judge="judges/pairwise.md", sample=4)
        assert len(compare(desk, folder, mixed).keys) == 4
    row_a, row_b = duel.pair(("c000", 0))[1:]
    assert scorers_prefer(row_a, row_b) == "equal"


def test_drafts_with_plain_names_need_no_case(tmp_path: Path) -> None:
    folder = suite_with(tmp_path / "mini")
    (folder / "judges" / "pairwise.md").write_text(JUDGE.replace("Word: {{ inputs.word }}", ""))
    for side, words in (("ann", "a loud report"), ("ben", "a report")):
        (tmp_path / side).mkdir()
        (tmp_path / side / "intro.md").write_text(words)
        (tmp_path / side / "method.md").write_text(f"{words} by {side.title()}")
    with ChatServer(reply=loud_wins) as server:
        choices = DuelChoices(
            a=str(tmp_path / "ann"), b=str(tmp_path / "ben"), judge="judges/pairwise.md"
        )
        duel = compare(desk_of(tmp_path, server), folder, choices)
        shown = " ".join(str(body["messages"]) for body in server.bodies)
    assert [key[0] for key in duel.keys] == ["intro", "method"]
    assert "not named after cases" in " ".join(duel.plan.notes)
    assert "Ann" not in shown  # the contestants' names are masked
    assert standings(duel, people_of(duel, tmp_path / "none"))[0].wins == (2, 0, 0)


def test_a_case_is_one_unit_of_the_win_rate_however_often_it_is_repeated(tmp_path: Path) -> None:
    folder = suite_with(tmp_path / "mini", cases=5)
    with ChatServer(reply=loud_wins) as server:
        choices = replace(PROMPTS, repeats=3)
        duel = compare(desk_of(tmp_path, server), folder, choices)
    found = standings(duel, people_of(duel, tmp_path / "none"))[0]
    assert (len(found.verdicts), found.preference.n_cases) == (15, 5)


def test_a_stopped_comparison_keeps_what_arrived(tmp_path: Path) -> None:
    folder = suite_with(tmp_path / "mini", cases=20)

    async def start_and_stop(desk: DuelDesk) -> None:
        plan = desk.plan(load_suite(folder), PROMPTS)
        assert plan is not None
        assert desk.start(plan, PROMPTS)
        while desk.job.progress.done < 45:  # all replies, and a few of the 20 pairs
            await asyncio.sleep(0.01)
        desk.job.stop()
        await desk.job.wait()

    with ChatServer(reply=loud_wins, latency_s=0.05) as server:
        desk = desk_of(tmp_path, server)
        asyncio.run(start_and_stop(desk))
        assert desk.job.state == "stopped"
        assert desk.job.outcome is None
        duel = compare(desk, folder)
        assert server.stats()["repeats_after_answer"] == 0
    assert duel.calls["recorded"] >= 40 + 2 * 5
    assert len(duel.keys) == 20


def test_verdicts_that_never_come_are_bounded_and_end_with_4(tmp_path: Path) -> None:
    folder = suite_with(tmp_path / "mini")

    def silent(body: dict[str, Any]) -> str:
        return "I would rather not say." if body["model"] == "judge" else loud_wins(body)

    with ChatServer(reply=silent) as server:
        duel = compare(desk_of(tmp_path, server), folder)
    found = standings(duel, people_of(duel, tmp_path / "none"))
    assert found[0].invalid == 6
    assert not found[0].preference.defined
    assert found[0].preference.bounds == (0.0, 1.0)
    assert exit_status(duel) == 4
    text = duel_text(duel, found)
    assert "nothing can be said" in text
    assert "6 (0-100 %)" in text


def test_a_budget_that_ends_in_the_middle_is_named(tmp_path: Path) -> None:
    folder = suite_with(tmp_path / "mini")
    prices = {"price_input_usd_per_mtok": 1.0, "price_output_usd_per_mtok": 1.0}
    with ChatServer(reply=loud_wins) as server:
        desk = DuelDesk(tmp_path / "out", strict=True, endpoints=endpoints_of(server, **prices))
        plan = desk.plan(load_suite(folder), PROMPTS)
        assert plan is not None
        choices = DuelChoices(a=PROMPTS.a, b=PROMPTS.b, judge=PROMPTS.judge, max_cost_usd=0.0025)
        duel = asyncio.run(desk.run(plan, choices))
    assert "max_cost_usd" in duel.stopped or "budget" in duel.stopped
    assert exit_status(duel) == 4
    assert "ended early" in duel_text(duel, standings(duel, people_of(duel, tmp_path / "none")))


def test_the_table_fits_100_columns_and_says_what_it_is(tmp_path: Path) -> None:
    folder = suite_with(tmp_path / "mini")
    with ChatServer(reply=loud_wins) as server:
        desk = desk_of(tmp_path, server)
        duel = compare(desk, folder)
    text = duel_text(duel, standings(duel, desk.people(duel)), cockpit="marimo edit x.py")
    assert max(len(line) for line in text.splitlines()) <= 100
    assert "no licence: exploratory" in text
    assert "flipped with the order: c001" in text
    assert "24 new calls" in text


def test_one_order_is_half_the_price_and_says_so(tmp_path: Path) -> None:
    folder = suite_with(tmp_path / "mini")
    with ChatServer(reply=loud_wins) as server:
        desk = desk_of(tmp_path, server)
        choices = DuelChoices(a=PROMPTS.a, b=PROMPTS.b, judge=PROMPTS.judge, one_order=True)
        duel = compare(desk, folder, choices)
        assert server.stats()["requests"] == 12 + 6
    found = standings(duel, desk.people(duel))
    assert found[0].exploratory
    assert not found[0].swap.swap_consistency.defined
    assert "one order (exploratory)" in duel_text(duel, found)


def test_several_judges_are_a_panel_that_averages_nothing(tmp_path: Path) -> None:
    folder = suite_with(tmp_path / "mini")
    (folder / "judges" / "other.md").write_text(JUDGE.replace("Word:", "The word:"))

    def reply(body: dict[str, Any]) -> str:
        if body["model"] == "judge" and "The word:" in body["messages"][-1]["content"]:
            first, _ = blocks(body)
            return json.dumps({"justification": "j", "verdict": "B" if "loud" in first else "A"})
        return loud_wins(body)

    with ChatServer(reply=reply) as server:
        desk = desk_of(tmp_path, server)
        choices = DuelChoices(a=PROMPTS.a, b=PROMPTS.b, judge="judges/pairwise.md,judges/other.md")
        duel = compare(desk, folder, choices)
    found = standings(duel, desk.people(duel))
    together = judges_together(duel, found)
    assert together is not None
    assert len(together.ambiguous) == 6
    assert "ambiguous" in duel_text(duel, found, together=together)


def test_filters_show_the_pairs_they_name(tmp_path: Path) -> None:
    folder = suite_with(tmp_path / "mini")
    with ChatServer(reply=loud_wins) as server:
        desk = desk_of(tmp_path, server)
        duel = compare(desk, folder)
    main = standings(duel, desk.people(duel))[0]
    assert filtered(main, "all", duel.keys) == list(duel.keys)
    assert filtered(main, "flips", duel.keys) == [("c001", 0)]
    assert filtered(main, "ties", duel.keys) == [("c001", 0), ("c003", 0)]
    assert filtered(main, "losses of A", duel.keys) == []
    assert filtered(main, "judge against people", duel.keys) == []


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        ({"a": ""}, UsageError, "--a and --b"),
        ({"a": "prompts/none.md"}, UsageError, "there is no run, baseline, prompt or folder"),
        ({"judge": "judges/none.md"}, JudgeError, "none.md"),
        ({"judge": "prompts/loud.md"}, JudgeError, "loud.md"),
        ({"judge": ","}, JudgeError, "no judge"),
    ],
)
def test_what_cannot_be_compared_is_one_clear_sentence(
    tmp_path: Path, change: dict[str, str], error: type[Exception], sentence: str
) -> None:
    folder = suite_with(tmp_path / "mini")
    with ChatServer() as server:
        desk = desk_of(tmp_path, server)
        choices = DuelChoices(**{"a": PROMPTS.a, "b": PROMPTS.b, "judge": PROMPTS.judge, **change})
        with pytest.raises(error, match=re.escape(sentence)):
            desk.plan(load_suite(folder), choices)
        calm = DuelDesk(tmp_path / "out", strict=False, endpoints=endpoints_of(server))
        assert calm.plan(load_suite(folder), choices) is None
        assert sentence in calm.problem


def test_a_wrong_key_stops_the_comparison(tmp_path: Path) -> None:
    folder = suite_with(tmp_path / "mini")

    def reply(body: dict[str, Any]) -> Answer | str:
        if body["model"] == "judge":
            return Answer(401, {"error": {"message": "bad key"}})
        return loud_wins(body)

    with ChatServer(reply=reply) as server, pytest.raises(UsageError, match="bad key"):
        compare(desk_of(tmp_path, server), folder)


def test_a_run_of_another_suite_is_refused_by_name(tmp_path: Path) -> None:
    folder = suite_with(tmp_path / "mini")
    other = write_suite(tmp_path / "other", cases=4, name="other")
    (other / "judges").mkdir()
    (other / "judges" / "pairwise.md").write_text(JUDGE)
    with ChatServer(reply=loud_wins) as server:
        desk = desk_of(tmp_path, server)
        compare(desk, folder)
        run = next(desk.bench.runs.iterdir())
        choices = DuelChoices(a=str(run), b="prompts/say.md", judge="judges/pairwise.md")
        with pytest.raises(UsageError, match="a run of suite 'mini'"):
            desk.plan(load_suite(other), choices)


# -- a person's own verdict -----------------------------------------------------------------------


@pytest.fixture
def judged(tmp_path: Path) -> tuple[Duel, Path]:
    folder = suite_with(tmp_path / "mini")
    with ChatServer(reply=loud_wins) as server:
        return compare(desk_of(tmp_path, server), folder), label_file(load_suite(folder))


def test_a_blind_verdict_names_the_draft_and_not_the_side(judged: tuple[Duel, Path]) -> None:
    duel, path = judged
    ballot = Ballot(path, "ann", min_display_s=0)
    chosen = {}
    for match in duel.found.pairs:
        laid = ballot.see(match, "blind")
        assert sorted(laid.letters) == ["a", "b"]
        assert ballot.press(match, "left").label is not None
        chosen[match.case.id, match.repeat] = laid.letters[0]
        assert ballot.given(match) == laid.letters[0]
    assert set(chosen.values()) == {"a", "b"}  # sides are shuffled
    people = people_of(duel, path)
    assert people.all == people.independent == chosen
    against = standings(duel, people)[0].people
    assert against.both == 4
    lines = read_labels(path)
    assert {line.plan for line in lines} == {"compare:blind"}
    assert "loud" not in path.read_text()


def test_after_the_verdicts_were_read_a_label_is_marked_and_not_independent(
    judged: tuple[Duel, Path],
) -> None:
    duel, path = judged
    ballot = Ballot(path, "ann", min_display_s=0)
    match = duel.found.pairs[0]
    ballot.see(match, "verdicts")
    ballot.see(match, "blind")  # what was seen once stays seen
    assert ballot.press(match, "tie").sentence == "saved"
    people = people_of(duel, path)
    assert people.all == {("c000", 0): "tie"}
    assert people.independent == {}


def test_a_pair_that_a_filter_of_verdicts_chose_is_no_blind_choice(
    judged: tuple[Duel, Path],
) -> None:
    duel, path = judged
    ballot = Ballot(path, "ann", min_display_s=0)
    match = duel.found.pairs[1]
    assert ballot.see(match, "blind", told=True).view == "blind"
    ballot.press(match, "tie")
    assert people_of(duel, path).independent == {}
    assert people_of(duel, path).all == {("c001", 0): "tie"}


def test_a_pair_that_stood_open_takes_no_verdict(judged: tuple[Duel, Path]) -> None:
    duel, path = judged
    ballot = Ballot(path, "ann", min_display_s=0)
    match = duel.found.pairs[0]
    laid = ballot.see(match, "open")
    assert (laid.letters, laid.texts) == (("a", "b"), ("loud word0", "word0"))
    ballot.see(match, "blind")
    refused = ballot.press(match, "left")
    assert refused.label is None
    assert "would not be blind" in refused.sentence
    assert not path.exists()


def test_a_verdict_is_taken_back_and_given_anew(judged: tuple[Duel, Path]) -> None:
    duel, path = judged
    ballot = Ballot(path, "ann", min_display_s=0)
    match = duel.found.pairs[0]
    ballot.see(match, "blind")
    ballot.press(match, "left")
    assert "take it back" in ballot.press(match, "right").sentence
    assert ballot.undo(match).sentence == "taken back"
    assert ballot.given(match) == ""
    laid = ballot.see(match, "blind")
    ballot.press(match, "right")
    assert ballot.given(match) == laid.letters[1]
    assert [line.action for line in read_labels(path)] == ["label", "undo", "label"]


def test_a_press_sooner_than_anyone_reads_or_without_a_name_is_not_counted(
    judged: tuple[Duel, Path],
) -> None:
    duel, path = judged
    match = duel.found.pairs[0]
    hasty = Ballot(path, "ann", min_display_s=60)
    hasty.see(match, "blind")
    assert "nobody has read it" in hasty.press(match, "left").sentence
    nameless = Ballot(path, "")
    nameless.see(match, "blind")
    assert "your name" in nameless.press(match, "left").sentence
    assert not path.exists()


def test_labels_hold_for_the_texts_that_were_compared_alone(tmp_path: Path) -> None:
    folder = suite_with(tmp_path / "mini")
    path = label_file(load_suite(folder))
    (folder / "prompts" / "calm.md").write_text("# user\ncalm {{ inputs.word }}\n")
    with ChatServer(reply=loud_wins) as server:
        desk = desk_of(tmp_path, server)
        duel = compare(desk, folder)
        turned = DuelChoices(a=PROMPTS.b, b=PROMPTS.a, judge=PROMPTS.judge)
        mirrored = compare(desk, folder, turned)
        other = compare(desk, folder, DuelChoices(PROMPTS.a, "prompts/calm.md", PROMPTS.judge))
    ballot = Ballot(path, "ann", min_display_s=0)
    match = duel.found.pairs[0]
    laid = ballot.see(match, "blind")
    ballot.press(match, "left")
    key = ("c000", 0)
    assert people_of(duel, path).all == {key: laid.letters[0]}
    assert people_of(mirrored, path).all == {key: {"a": "b", "b": "a"}[laid.letters[0]]}
    assert people_of(other, path).all == {}
    second = Ballot(path, "ben", min_display_s=0)
    second.see(match, "blind")
    second.press(match, "right")
    assert people_of(duel, path).all == {key: "split"}

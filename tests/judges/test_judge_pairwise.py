from __future__ import annotations

import asyncio
import csv
import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from evalkit.errors import BudgetReached, CallFailed, JudgeError
from evalkit.judges import (
    Pairing,
    build_judge,
    parse_judge_file,
    ranking,
    swap_report,
    tournament,
)
from evalkit.judges.judge import PairVerdict
from evalkit.judges.pairwise import pair_verdict
from evalkit.judges.verdict import read_pairwise
from evalkit.records import Case, Reply, Request, ScoreStatus, Verdict

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"
needs_data = pytest.mark.skipif(
    not DATA.exists(), reason="the recorded judge data are not beside this repository"
)
FILE = """---
kind: pairwise
model: local/judge
---
# system
Compare.
# user
{{ inputs.question }}
{{ draft_a }}
{{ draft_b }}
"""
JUDGE = build_judge(parse_judge_file(FILE, "pair"))
CASE = Case("c", inputs={"question": "Which?"})


def says(*words: str) -> Any:
    """An `ask` that answers in the order of its calls, and keeps the requests."""
    queue = list(words)

    async def ask(request: Request) -> Reply:
        ask.requests.append(request)  # type: ignore[attr-defined]
        return Reply(json.dumps({"justification": "j", "verdict": queue.pop(0)}), key="k")

    ask.requests = []  # type: ignore[attr-defined]
    return ask


def prefers(text: str) -> Any:
    """An `ask` that always finds the draft with this text better."""

    async def ask(request: Request) -> Reply:
        user = request.messages[1].content
        first = text in user[user.index("<draft_a") : user.index("<draft_b")]
        return Reply(json.dumps({"justification": "j", "verdict": "A" if first else "B"}))

    return ask


def compare(ask: Any, a: str = "one", b: str = "two", **how: Any) -> PairVerdict:
    return asyncio.run(JUDGE.compare(CASE, Reply(a), Reply(b), ask, how=Pairing(**how)))


def b05() -> list[tuple[list[str], dict[str, Any]]]:
    lines = (ROOT / "tests/failure_cases/cases.jsonl").read_text(encoding="utf-8").splitlines()
    case = next(c for c in map(json.loads, lines) if c["id"] == "B05")
    return list(zip(case["input"]["pairs"], case["expected"]["value"], strict=True))


@pytest.mark.parametrize(("said", "want"), b05(), ids=lambda v: str(v) if len(v) == 2 else None)
def test_b05_both_orders_merge_as_the_protocol_says(said: list[str], want: dict[str, Any]) -> None:
    values = {"first": 1.0, "tie": 0.5, "second": 0.0}
    verdicts: dict[str, Verdict] = {}
    for order, text in zip(("ab", "ba"), said, strict=True):
        label = read_pairwise(text).label
        if label:
            verdicts[order] = Verdict(values[label], label)
        else:
            verdicts[order] = Verdict(None, None, status=ScoreStatus.UNSCORED, reason="none")
    got = pair_verdict(JUDGE, CASE, Reply("x"), Reply("y"), verdicts)
    winner = {"a": "X", "b": "Y"}.get(got.winner or "", got.winner)
    assert (winner, got.agree) == (want["winner"], want["agree"])


@pytest.mark.parametrize(
    ("words", "reasons"),
    [(("A", "A"), {"tie_flip"}), (("tie", "tie"), {"tie_both"}), (("A", "tie"), {"tie_half"})],
)
def test_the_ties_reason_is_kept(words: tuple[str, str], reasons: set[str]) -> None:
    got = compare(says(*words))
    assert got.winner == "tie"
    assert got.reason in reasons


def test_the_better_draft_wins_wherever_it_stands() -> None:
    assert compare(prefers("one")).winner == "a"
    assert compare(prefers("two")).winner == "b"
    assert compare(prefers("two")).reason == "agree"


def test_an_order_without_a_verdict_is_no_result() -> None:
    got = compare(says("A", "maybe"))
    assert (got.winner, got.value, got.agree, got.reason) == (None, None, None, "invalid")
    assert {v.status for v in got.verdicts} == {"ok", "unscored"}
    assert any("maybe" in v.raw for v in got.verdicts)


def test_the_call_order_is_random_over_cases_and_fixed_by_the_seed() -> None:
    def first_shown(case: str, seed: int) -> bool:
        requests = JUDGE.pair_requests(
            Case(case, inputs={"question": "?"}), Reply("one"), Reply("two"), how=Pairing(seed=seed)
        )
        user = requests[0].messages[1].content
        return user.index("one") < user.index("two")

    found = [first_shown(f"c{i}", 0) for i in range(60)]
    assert 15 < sum(found) < 45
    assert found == [first_shown(f"c{i}", 0) for i in range(60)]
    assert found != [first_shown(f"c{i}", 1) for i in range(60)]


def test_one_order_is_half_the_price_and_labelled() -> None:
    ask = says("A")
    got = compare(ask, one_order=True)
    assert len(ask.requests) == 1
    assert got.exploratory
    assert got.reason == "one_order"
    assert got.agree is None
    shown_first = "a" if got.orders == ("ab",) else "b"
    assert got.winner == shown_first
    assert swap_report([got]).n_valid == 0


@pytest.mark.parametrize(
    ("a", "b", "winner", "reason"),
    [
        ("", "text", "b", "empty"),
        ("text", "  \n", "a", "empty"),
        ("", "", "tie", "both_empty"),
        ("same", "same\n", "tie", "identical"),
        ("by GPT-4: same", "by Claude: same", "tie", "identical"),
        ("<think>hm</think>same", "same", "tie", "identical"),
    ],
)
def test_empty_and_identical_drafts_are_settled_without_a_call(
    a: str, b: str, winner: str, reason: str
) -> None:
    ask = says()
    got = compare(ask, a, b)
    assert (got.winner, got.reason, got.settled) == (winner, reason, True)
    assert ask.requests == []
    assert JUDGE.pair_requests(CASE, Reply(a), Reply(b)) == []


def test_the_requests_announced_are_the_requests_sent() -> None:
    ask = says("A", "B")
    compare(ask)
    assert ask.requests == JUDGE.pair_requests(CASE, Reply("one"), Reply("two"))
    assert len({r.messages[1].content for r in ask.requests}) == 2


def test_contestants_are_masked_and_said_so() -> None:
    a = Reply("I am ChatGPT. As the improved version, see draft-v2.md.", model="x/gpt-4o")
    ask = says("A", "B")
    got = asyncio.run(JUDGE.compare(CASE, a, Reply("plain"), ask, how=Pairing(names=("Anna B.",))))
    for request in ask.requests:
        text = request.messages[1].content
        for trace in ("ChatGPT", "improved version", "draft-v2.md"):
            assert trace not in text
    assert "masked" in got.flags


def test_a_failed_call_is_missing_and_the_pair_has_no_result() -> None:
    async def ask(request: Request) -> Reply:
        raise CallFailed("judge: no reply after 3 attempts")

    got = compare(ask)
    assert got.winner is None
    assert {v.status for v in got.verdicts} == {"missing"}


def test_a_reached_budget_stops_and_is_not_a_verdict() -> None:
    async def ask(request: Request) -> Reply:
        raise BudgetReached("enough")

    with pytest.raises(BudgetReached):
        compare(ask)


def test_several_drafts_meet_round_robin_or_the_baseline() -> None:
    drafts = {"alpha": Reply("one"), "beta": Reply("two"), "gamma": Reply("three")}
    played = asyncio.run(tournament(CASE, drafts, JUDGE, prefers("two")))
    met = [(x, y) for x, y, _ in played.games]
    assert met == [("alpha", "beta"), ("alpha", "gamma"), ("beta", "gamma")]
    against = asyncio.run(tournament(CASE, drafts, JUDGE, prefers("one"), baseline="alpha"))
    assert [(x, y, v.winner) for x, y, v in against.games] == [
        ("beta", "alpha", "b"),
        ("gamma", "alpha", "b"),
    ]
    with pytest.raises(JudgeError, match="baseline"):
        asyncio.run(tournament(CASE, drafts, JUDGE, prefers("one"), baseline="delta"))


def test_many_tournaments_rank_the_drafts_and_see_a_lean_to_the_first_place() -> None:
    strength = {"one": 0, "two": 1, "three": 2}
    names = {"low": "one", "mid": "two", "high": "three"}
    drafts = {name: Reply(f"text {word}") for name, word in names.items()}

    def leaning(case: str) -> Any:
        async def ask(request: Request) -> Reply:
            user = request.messages[1].content
            shown = re.findall(r"text (\w+)", user)
            one, other = shown[0], shown[1]
            noisy = int(case) % 4 == 0  # every fourth case goes to whatever stands first
            first = noisy or strength[one] > strength[other]
            return Reply(json.dumps({"justification": "j", "verdict": "A" if first else "B"}))

        return ask

    async def play() -> list[Any]:
        return [
            await tournament(Case(str(i), inputs={"question": "?"}), drafts, JUDGE, leaning(str(i)))
            for i in range(24)
        ]

    found = ranking(asyncio.run(play()))
    assert found.order == ("high", "mid", "low")
    assert found.position_effect.estimate > 0
    assert found.n_comparisons == 24 * 3 * 2


def test_a_pairwise_judge_does_not_judge_a_draft_alone() -> None:
    with pytest.raises(JudgeError, match="against"):
        asyncio.run(JUDGE.judge(CASE, Reply("x"), says("A")))


# -- recorded verdicts -------------------------------------------------------------------------


def recorded() -> dict[str, dict[str, dict[str, dict[str, str]]]]:
    """Judge/prompt to item to order to the recorded row."""
    found: dict[str, Any] = defaultdict(lambda: defaultdict(dict))
    path = DATA / "pairwise" / "llmbar_natural_verdicts.csv"
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found[f"{row['judge']}/{row['prompt']}"][row["item_id"]][row["order"]] = row
    return found


def replayed(items: dict[str, dict[str, dict[str, str]]]) -> dict[str, PairVerdict]:
    """Every recorded verdict, as the text a judge would have sent, through reading and protocol."""
    pairs: dict[str, PairVerdict] = {}
    values = {"first": 1.0, "second": 0.0}
    for item, orders in items.items():
        verdicts: dict[str, Verdict] = {}
        for order, row in orders.items():
            word = {"first": "Output (a) is better.", "second": "Output (b) is better.", "": ""}
            reading = read_pairwise(word[row["picked"]], ties=False)
            value = values.get(reading.label or "")
            status = ScoreStatus.UNSCORED if value is None else ScoreStatus.OK
            verdicts[order.lower()] = Verdict(
                value, reading.label, status=status, reason=reading.reason
            )
        pairs[item] = pair_verdict(JUDGE, Case(item), Reply("x"), Reply("y"), verdicts)
    return pairs


@needs_data
def test_llmbars_recorded_verdicts_reproduce_every_reference_figure() -> None:
    reference = json.loads((DATA / "reference_values.json").read_text(encoding="utf-8"))
    judges = reference["llmbar_natural_verdicts"]["judges"]
    found = recorded()
    assert set(found) == set(judges)
    assert len(judges) == 46
    for name, want in judges.items():
        pairs = replayed(found[name])
        gold = {item: rows["AB"]["gold"].lower() for item, rows in found[name].items()}
        report = swap_report(pairs.values())
        right = Counter()
        for item, pair in pairs.items():
            ab, ba = pair.positions
            right["AB"] += {"first": "a", "second": "b"}.get(ab) == gold[item]
            right["BA"] += {"first": "b", "second": "a"}.get(ba) == gold[item]
            right["both"] += pair.winner == gold[item]
            right["wrong"] += pair.winner in ("a", "b") and pair.winner != gold[item]
        n = len(pairs)
        got = {
            "correct_AB": right["AB"],
            "correct_BA": right["BA"],
            "correct_both": right["both"],
            "accuracy_mean_of_orders": (right["AB"] + right["BA"]) / (2 * n),
            "missing_either": report.invalid,
            "both_parsed": report.n_valid,
            "swap_consistent": report.consistent,
            "swap_consistency_of_all_items": report.consistent / n,
            "swap_consistency_of_parsed_items": report.swap_consistency.estimate,
        }
        for key, value in got.items():
            assert value == pytest.approx(want[key], abs=1e-9), (name, key)
        decided = want["decided"]
        ties = report.ties + report.invalid  # the reference counts a pair without a result as a tie
        assert (report.a, report.b, ties) == (decided["A"], decided["B"], decided["tie"]), name
        assert (right["both"], right["wrong"]) == (decided["right"], decided["wrong"]), name
        position = want["position"]
        firsts = Counter(p for pair in pairs.values() for p in pair.positions)
        assert (firsts["first"], firsts["second"]) == (position["first"], position["second"]), name
        assert report.first_share.estimate == pytest.approx(position["first_rate"], abs=1e-9)
        assert report.first_share.extra["p"] == pytest.approx(
            position["binom_p_two_sided"], abs=1e-9
        )
        assert report.primacy == position["pairs_first_both"], name
        assert report.recency == position["pairs_second_both"], name
        assert report.p_position_bias == pytest.approx(
            position["inconsistent_sign_test_p"], abs=1e-9
        )


@needs_data
@pytest.mark.parametrize("judge", ["PaLM2", "Falcon"])
def test_raw_replies_go_through_the_whole_judge(judge: str) -> None:
    lines = (DATA / "pairwise" / "llmbar_natural_items.jsonl").read_text("utf-8").splitlines()
    items = {d["item_id"]: d for d in map(json.loads, lines)}
    raw: dict[tuple[str, str], dict[str, str]] = {}
    path = DATA / "pairwise" / "llmbar_natural_raw_cot.jsonl"
    for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        if row["judge"] == judge:
            raw[row["item_id"], row["order"].lower()] = row
    no_ties = build_judge(parse_judge_file(FILE.replace("model:", "ties: false\nmodel:"), "cot"))

    async def run() -> list[PairVerdict]:
        pairs: list[PairVerdict] = []
        for item, texts in items.items():
            case = Case(item, inputs={"question": texts["instruction"]})

            async def ask(request: Request, item: str = item) -> Reply:
                user = request.messages[1].content
                order = "ab" if user.index("(alpha)") < user.index("(omega)") else "ba"
                return Reply(raw[item, order]["completion"])

            a, b = Reply(f"(alpha) {texts['output_a']}"), Reply(f"(omega) {texts['output_b']}")
            pairs.append(await no_ties.compare(case, a, b, ask))
        return pairs

    pairs = asyncio.run(run())
    assert not any(p.settled for p in pairs)
    reference = json.loads((DATA / "reference_values.json").read_text(encoding="utf-8"))
    want = reference["llmbar_natural_raw_cot"][judge]["stated_position"]
    report = swap_report(pairs)
    right = sum(p.winner == items[p.case_id]["gold"].lower() for p in pairs)
    assert right == want["correct_both"]
    assert report.consistent == want["swap_consistent"]
    assert report.invalid == want["missing_either"]
    assert report.first_share.estimate == pytest.approx(want["first_rate"], abs=1e-9)

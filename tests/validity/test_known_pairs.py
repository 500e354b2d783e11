from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from evalkit.cases.load import load_cases
from evalkit.errors import AnchorError, CaseError
from evalkit.judges import build_judge, load_judge, parse_judge_file, trivial_judges
from evalkit.judges.judge import Ask, Judge
from evalkit.records import Case, Reply, Request
from evalkit.validity.anchor_checks import similarity
from evalkit.validity.anchors import Anchor, AnchorItem, AnchorKind, AnchorLabel
from evalkit.validity.degradations import DEGRADATIONS, weaken
from evalkit.validity.licence import AnchorPin, pin_anchor, write_licence
from evalkit.validity.licence_check import check_licence
from evalkit.validity.provenance import Provenance
from evalkit.validity.reconstruction import (
    KnownPair,
    KnownPairs,
    evidence_for,
    load_pairs,
    make_pair,
    pair_requests,
    pairs_of_anchor,
    reconstruct_judge,
)

SUITE = Path(__file__).resolve().parents[2] / "golden" / "docs_qa"
NOW = datetime(2026, 6, 1, tzinfo=UTC)
JUDGE = """---
kind: pairwise
model: local/some-judge
---
# system
Compare.
# user
{{ draft_a }}
===
{{ draft_b }}
"""


def judge() -> Judge:
    return build_judge(parse_judge_file(JUDGE, "pairwise"))


def known(n: int, provenance: Provenance = Provenance.SYNTHETIC) -> KnownPairs:
    """Pairs of equal length: no rule of thumb can pass them."""
    pin = AnchorPin(
        name="p", path="", digest="0", provenance=provenance, domain="d", criterion="",
        categories=("1", "tie", "2"), n=n, people="",
    )  # fmt: skip
    pairs = (KnownPair(f"p{i}", f"strong {i:02d} ok", f"feeble {i:02d} ko", "h") for i in range(n))
    return KnownPairs(tuple(pairs), pin)


def model(choose: Callable[[int, bool], str | None]) -> Ask:
    """A model that is told which pair it sees and whether the strong text stands first."""

    async def ask(request: Request) -> Reply:
        shown = "\n".join(m.content for m in request.messages)
        number = int(shown[shown.index("strong ") + 7 :][:2])
        word = choose(number, shown.index("strong ") < shown.index("feeble "))
        if word is None:
            return Reply("no idea")
        return Reply(json.dumps({"justification": "because", "verdict": word}))

    return ask


def right(number: int, strong_first: bool) -> str:
    return "A" if strong_first else "B"


def test_a_judge_that_finds_the_strong_text_in_both_orders_passes() -> None:
    found = asyncio.run(reconstruct_judge(judge(), known(30, Provenance.HUMAN), model(right)))
    assert found.state == "PASS"
    assert set(found.tiles.values()) == {"right"}
    assert found.swap.swap_consistency.estimate == 1
    assert len(pair_requests(judge(), known(30))) == 60


def test_a_judge_that_follows_the_position_flips_every_pair_and_fails() -> None:
    found = asyncio.run(reconstruct_judge(judge(), known(30), model(lambda n, first: "A")))
    assert found.state == "FAIL"
    assert set(found.tiles.values()) == {"flipped"}
    assert found.swap.preference_fairness == -1
    assert "chance alone could do as well" in found.sentence


def test_pairs_made_by_a_rule_never_certify() -> None:
    found = asyncio.run(reconstruct_judge(judge(), known(30), model(right)))
    assert found.gate.verdict == "PASS"
    assert found.state == "NOT_CERTIFIED"


def test_verdicts_that_could_turn_the_ruling_break_it() -> None:
    found = asyncio.run(
        reconstruct_judge(
            judge(), known(30), model(lambda n, first: None if n < 5 else right(n, first))
        )
    )
    assert found.state == "BROKEN"
    assert list(found.tiles.values()).count("invalid") == 5
    assert "more than 5 % of the pairs have no verdict" in found.sentence


def test_pairs_that_length_alone_decides_are_confounded() -> None:
    pairs = known(30)
    longer = KnownPairs(
        tuple(
            KnownPair(p.id, p.strong + " and a good deal more", p.weak, p.how) for p in pairs.pairs
        ),
        pairs.pin,
    )
    found = asyncio.run(reconstruct_judge(judge(), longer, model(right)))
    assert found.state == "CONFOUNDED"
    assert "the rule length passes the same pairs" in found.sentence


def test_four_pairs_cannot_tell() -> None:
    found = asyncio.run(reconstruct_judge(judge(), known(4), model(right)))
    assert found.state == "NOT_ASSESSABLE"


def human_pairs(folder: Path) -> Anchor:
    path = folder / "anchors" / "pairs.csv"
    path.parent.mkdir(parents=True)
    path.write_text("item_id,x\n1,2\n", encoding="utf-8")
    from evalkit.validity.anchor_files import file_digest

    return Anchor(
        name="pairs",
        kind=AnchorKind.PAIRS,
        domain="product-docs/en",
        provenance=Provenance.HUMAN,
        categories=("1", "tie", "2"),
        items=tuple(
            AnchorItem(f"p{i}", f"strong {i:02d} ok", f"feeble {i:02d} ko") for i in range(31)
        ),
        labels=tuple(AnchorLabel(f"p{i}", "ann", "1" if i else "tie") for i in range(31)),
        path=path,
        file_digest=file_digest(path),
    )


@pytest.mark.parametrize(("by", "granted"), [(right, True), (lambda n, first: "A", False)])
def test_people_s_pairs_license_a_pairwise_judge_that_passes(
    tmp_path: Path, by: Callable[[int, bool], str], granted: bool
) -> None:
    on = human_pairs(tmp_path)
    pairs = pairs_of_anchor(on, pin_anchor(on, tmp_path))
    assert len(pairs.pairs) == 30
    found = asyncio.run(reconstruct_judge(judge(), pairs, model(by)))
    evidence = evidence_for([], [found], tmp_path, on.domain)
    write_licence(judge(), tmp_path, domain=on.domain, evidence=evidence, now=NOW)
    ruling = check_licence(judge(), tmp_path, domain=on.domain, use="pairwise", now=NOW)
    assert ruling.valid is granted, ruling.sentence


def test_one_failed_set_of_pairs_takes_the_right_away(tmp_path: Path) -> None:
    on = human_pairs(tmp_path)
    pairs = pairs_of_anchor(on, pin_anchor(on, tmp_path))
    good = asyncio.run(reconstruct_judge(judge(), pairs, model(right)))
    bad = asyncio.run(reconstruct_judge(judge(), known(30), model(lambda n, first: "A")))
    assert [e.grants for e in evidence_for([], [good, bad], tmp_path, on.domain)] == [(), ()]


def test_the_shipped_pairs_say_what_made_the_weak_one_weak() -> None:
    pairs = load_pairs(SUITE / "pairs.jsonl").pairs
    assert len(pairs) >= 30
    questions = [str(c.inputs["question"]) for c in load_cases(SUITE / "cases.jsonl")]
    for pair in pairs:
        assert max(similarity(str(pair.inputs["question"]), q) for q in questions) < 0.8, pair.id
        if pair.how == "drop_citations":
            assert weaken(pair.strong, pair.how) == pair.weak
        elif pair.how in DEGRADATIONS:
            strong, weak = json.loads(pair.strong), json.loads(pair.weak)
            assert weaken(strong["answer"], pair.how) == weak["answer"]
        else:
            assert pair.how.startswith("by hand: ")


def test_no_trivial_judge_passes_the_shipped_pairs() -> None:
    async def nobody(request: Request) -> Reply:
        raise AssertionError("a trivial judge asks nobody")

    pairs = load_pairs(SUITE / "pairs.jsonl")
    beside = load_judge(SUITE / "judges" / "pairwise.md")
    for trivial in trivial_judges(beside):
        found = asyncio.run(reconstruct_judge(trivial, pairs, nobody))
        assert found.gate.verdict == "FAIL", found.sentence
        assert all(rule.verdict == "FAIL" for rule in found.gate.baselines.values())


def test_a_pair_is_made_by_a_named_degradation() -> None:
    pair = make_pair(Case("c"), "It took 12 s [1].", "drop_citations")
    assert (pair.id, pair.weak, pair.how) == ("c-drop_citations", "It took 12 s.", "drop_citations")
    with pytest.raises(AnchorError, match="nothing to change"):
        make_pair(Case("c"), "No numbers.", "invent_numbers")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id": "a", "strong": "x", "weak": "y"}', "'how' is missing"),
        ('{"id": "a", "strong": "x", "weak": "x", "how": "h"}', "the same text"),
        ('{"id": "a", "strong": "x", "weak": "y", "how": "h", "hwo": 1}', "'hwo'"),
        ("", "holds no pair"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text(line + "\n", encoding="utf-8")
    with pytest.raises(CaseError, match=message):
        load_pairs(path)

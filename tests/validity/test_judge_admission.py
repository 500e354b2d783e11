from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from evalkit.errors import AnchorError
from evalkit.judges import build_judge, load_judge, parse_judge_file, trivial_judges
from evalkit.judges.judge import Ask, Judge
from evalkit.records import Reply, Request
from evalkit.validity.admission import Admitted, admit_judge, evidence_of, hold_against_trivial
from evalkit.validity.anchor_checks import accept
from evalkit.validity.anchor_files import load_anchor
from evalkit.validity.anchors import Anchor, AnchorItem, AnchorKind, AnchorLabel
from evalkit.validity.drift import check_drift, drift_items
from evalkit.validity.licence import read_licence, write_licence
from evalkit.validity.licence_check import check_licence, use_of
from evalkit.validity.provenance import Provenance
from evalkit.validity.reconstruction import evidence_for
from evalkit.validity.scoring import (
    ItemScore,
    anchor_requests,
    read_scores,
    score_anchor,
    write_scores,
)

SUITE = Path(__file__).resolve().parents[2] / "golden" / "docs_qa"
NOW = datetime(2026, 6, 1, tzinfo=UTC)
YES_NO = """---
kind: criteria
model: local/some-judge
abstain: true
criteria:
  faithful: Do the pages say it?
---
# system
Judge.
# user
{{ draft }}
"""
SCALE = """---
kind: scale
model: local/some-judge
levels:
  1: nothing is right
  2: little is right
  3: half is right
  4: most is right
  5: nearly all is right
  6: all is right
---
# system
Judge.
# user
{{ draft }}
"""
LEVELS = tuple(str(level) for level in range(1, 7))


def judge_of(text: str) -> Judge:
    return build_judge(parse_judge_file(text, "faithfulness"))


def answering(said: Mapping[str, object], key: str = "") -> Ask:
    """A model that says `said` of whichever draft it is shown."""

    async def ask(request: Request) -> Reply:
        shown = "\n".join(message.content for message in request.messages)
        verdict = next(value for text, value in said.items() if text in shown)
        if verdict is None:
            return Reply("I would rather not say.")
        body = {"justification": "read it", "score" if not key else "verdict": verdict}
        return Reply(json.dumps({key: body} if key else body))

    return ask


async def nobody(request: Request) -> Reply:
    raise AssertionError("a trivial judge asks nobody")


def anchor(truth: Mapping[str, str], kind: AnchorKind, **more: object) -> Anchor:
    fields: dict[str, object] = {
        "name": "a",
        "kind": kind,
        "domain": "product-docs/en",
        "provenance": Provenance.HUMAN,
        "categories": LEVELS if kind is AnchorKind.SCALE else ("no", "yes"),
        "items": tuple(AnchorItem(i, f"text <{i}> end") for i in truth),
        "labels": tuple(AnchorLabel(i, "ann", said) for i, said in truth.items()),
        "criterion": "" if kind is AnchorKind.SCALE else "faithful",
    } | more
    return Anchor(**fields)  # type: ignore[arg-type]


def yes_no_anchor(n: int = 120, **more: object) -> Anchor:
    truth = {f"i{k}": "no" if k % 3 == 0 else "yes" for k in range(n)}
    return anchor(truth, AnchorKind.CRITERIA, **more)


def scale_anchor(n: int = 120, **more: object) -> Anchor:
    return anchor({f"i{k}": LEVELS[k % 6] for k in range(n)}, AnchorKind.SCALE, **more)


def scores(on: Anchor, judge: Callable[[int, str], str | None]) -> tuple[ItemScore, ...]:
    return tuple(
        ItemScore(item, label, judge(k, label)) for k, (item, label) in enumerate(on.truth.items())
    )


def wrong_every(n: int) -> Callable[[int, str], str]:
    flipped = {"yes": "no", "no": "yes"}
    return lambda k, label: flipped[label] if k % n == 1 else label


def test_a_judge_scores_every_item_with_its_words_and_unread_ones_stay_unread() -> None:
    on, judge = yes_no_anchor(3), judge_of(YES_NO)
    said = {"<i0>": "no", "<i1>": None, "<i2>": "cannot_tell"}
    found = asyncio.run(score_anchor(judge, on, answering(said, "faithful")))
    assert [(s.id, s.human, s.judge) for s in found] == [
        ("i0", "no", "no"),
        ("i1", "yes", None),
        ("i2", "yes", None),
    ]
    assert found[0].said == "read it"
    assert found[1].said
    assert len(anchor_requests(judge, on)) == 3


def test_scores_on_a_scale_are_the_levels(tmp_path: Path) -> None:
    on, judge = scale_anchor(6), judge_of(SCALE)
    said = {f"<i{k}>": k + 1 for k in range(6)}
    found = asyncio.run(score_anchor(judge, on, answering(said)))
    assert [s.judge for s in found] == list(LEVELS)
    write_scores(tmp_path / "s.csv", found)
    assert read_scores(tmp_path / "s.csv") == found


def test_a_saved_justification_cannot_run_in_a_spreadsheet(tmp_path: Path) -> None:
    write_scores(tmp_path / "s.csv", [ItemScore("a", "yes", None, "=HYPERLINK(1)")])
    assert ",'=HYPERLINK" in (tmp_path / "s.csv").read_text(encoding="utf-8")
    assert read_scores(tmp_path / "s.csv")[0].judge is None


def test_a_judge_is_not_asked_what_it_does_not_judge() -> None:
    with pytest.raises(AnchorError, match="is asked faithful"):
        anchor_requests(judge_of(YES_NO), yes_no_anchor(3, criterion="relevant"))
    with pytest.raises(AnchorError, match="gives none"):
        anchor_requests(judge_of(YES_NO), scale_anchor(3))
    with pytest.raises(AnchorError, match="labels without texts"):
        anchor_requests(judge_of(YES_NO), yes_no_anchor(1, items=(AnchorItem("i0"),)))


def test_a_good_yes_no_judge_may_decide_its_criterion_alone() -> None:
    on = yes_no_anchor()
    line = admit_judge(judge_of(YES_NO), on, scores(on, wrong_every(20)))
    assert (line.state, line.ruling, line.uses) == ("CREDIBLE", "AUTOMATE", ("criterion:faithful",))
    assert line.warnings == ()
    assert line.row["kappa"] == "0.89 (0.76 to 0.95)"
    assert line.row["licence"] == "criterion:faithful"


def test_the_same_scores_on_a_synthetic_anchor_grant_nothing() -> None:
    on = yes_no_anchor(provenance=Provenance.SYNTHETIC)
    line = admit_judge(judge_of(YES_NO), on, scores(on, wrong_every(20)))
    assert (line.state, line.ruling, line.uses) == ("NOT_CERTIFIED", "NOT_CERTIFIED", ())
    assert "no person labelled this anchor" in line.sentence
    unstated = yes_no_anchor(provenance=Provenance.UNKNOWN)
    assert admit_judge(judge_of(YES_NO), unstated, scores(unstated, wrong_every(20))).uses == ()


def test_a_synthetic_anchor_still_eliminates() -> None:
    on = yes_no_anchor(provenance=Provenance.SYNTHETIC)
    line = admit_judge(judge_of(YES_NO), on, scores(on, lambda k, _: "yes" if k % 2 else "no"))
    assert (line.state, line.ruling) == ("ELIMINATED", "REWORK_RUBRIC")
    scale = scale_anchor(provenance=Provenance.MODEL)
    rows = scores(scale, lambda k, _: LEVELS[(k * 7) % 5])
    assert admit_judge(judge_of(SCALE), scale, rows).state == "ELIMINATED"
    perfect = admit_judge(judge_of(SCALE), scale, scores(scale, lambda _, label: label))
    assert (perfect.state, perfect.uses) == ("NOT_CERTIFIED", ())


def test_too_many_unread_verdicts_cannot_be_assessed() -> None:
    on = yes_no_anchor()
    line = admit_judge(judge_of(YES_NO), on, scores(on, lambda k, s: s if k % 10 else None))
    assert line.state == "NOT_ASSESSABLE"
    assert "more than 5 % of its verdicts could not be read" in line.sentence


def compressed(k: int, label: str) -> str:
    """Ranks well, never gives the top: 1 2 3 4 5 6 become 1 1 2 2 3 3."""
    return str((int(label) + 1) // 2)


def test_a_judge_that_ranks_well_on_another_scale_is_told_so() -> None:
    on = scale_anchor()
    line = admit_judge(judge_of(SCALE), on, scores(on, compressed), domain="legal/en")
    assert line.diagnosis == "SCALE_PROBLEM"
    assert line.row["bands never given"] == "4, 5, 6"
    assert line.recalibration is not None
    assert line.recalibration.qwk_held_out.estimate > line.headline.estimate
    assert line.agreement is not None
    assert line.agreement.never_awarded == (4, 5, 6)
    assert "bands never given: 4, 5, 6" in line.warnings
    assert "the anchor's domain is product-docs/en, the target's legal/en" in line.warnings
    assert evidence_of(line, SUITE).figures["recalibrated"]["optimism"] is not None


def test_bands_a_judge_does_not_tell_apart_are_named() -> None:
    on = scale_anchor()
    line = admit_judge(judge_of(SCALE), on, scores(on, lambda _, s: str(min(int(s), 4))))
    assert line.ceiling is not None
    assert line.ceiling.band == 4
    assert "bands from 4 upward are not told apart by this judge" in line.warnings


def test_means_of_annotators_between_two_levels_are_taken() -> None:
    labels = tuple(
        AnchorLabel(f"i{k}", who, LEVELS[(k + shift) % 5])
        for k in range(60)
        for who, shift in (("ann", 0), ("bob", 1))
    )
    on = scale_anchor(60, labels=labels)
    line = admit_judge(judge_of(SCALE), on, scores(on, lambda _, s: str(int(float(s)))))
    assert line.scale is not None
    assert line.scale.agreement.n == 60


def test_a_judge_that_a_trivial_one_equals_has_shown_nothing() -> None:
    on = yes_no_anchor()
    judge = judge_of(YES_NO)
    good = admit_judge(judge, on, scores(on, wrong_every(20)))
    equal = admit_judge(trivial_judges(judge)[0], on, scores(on, wrong_every(20)))
    worse = admit_judge(trivial_judges(judge)[1], on, scores(on, wrong_every(2)))
    held, _ = hold_against_trivial([good, equal])
    assert held.uses == ()
    assert "a trivial judge does as well" in held.sentence
    assert hold_against_trivial([good, worse])[0].uses == good.uses
    assert evidence_of(equal, SUITE).grants == ()


def test_pairs_go_through_the_other_gate() -> None:
    pairs = anchor(
        {"a": "1"},
        AnchorKind.PAIRS,
        items=(AnchorItem("a", "x", "y"),),
        categories=("1", "tie", "2"),
    )
    with pytest.raises(AnchorError, match="reconstruction gate"):
        admit_judge(judge_of(YES_NO), pairs, [])


def suite_with(on: Anchor, folder: Path) -> Anchor:
    from evalkit.validity.anchors import write_anchor

    write_anchor(on, folder / "anchors" / "people.jsonl")
    return load_anchor(folder / "anchors" / "people.jsonl")


def licence_line(folder: Path) -> tuple[Judge, Anchor, Admitted]:
    on, judge = suite_with(yes_no_anchor(), folder), judge_of(YES_NO)
    return judge, on, admit_judge(judge, on, scores(on, wrong_every(20)))


def test_from_scores_to_a_licence_that_the_gate_accepts(tmp_path: Path) -> None:
    judge, _, line = licence_line(tmp_path)
    evidence = evidence_for([line], [], tmp_path, "product-docs/en")
    path = write_licence(judge, tmp_path, domain="product-docs/en", evidence=evidence, now=NOW)
    figures = read_licence(path).evidence[0].figures
    assert figures["counts"] == [76, 4, 2, 38]
    assert figures["kappa"]["n"] == 120
    use = use_of(judge, "faithfulness")
    assert use == "criterion:faithful"
    ruling = check_licence(judge, tmp_path, domain="product-docs/en", use=use, now=NOW)
    assert ruling.valid, ruling.sentence


def test_a_judge_whose_errors_grew_loses_its_licence(tmp_path: Path) -> None:
    judge, on, line = licence_line(tmp_path)
    evidence = evidence_for([line], [], tmp_path, "product-docs/en")
    path = write_licence(judge, tmp_path, domain="product-docs/en", evidence=evidence, now=NOW)
    part = drift_items(on, 40)
    assert len(part.items) == 40
    same = [s for s in line.scores if s.id in part.truth]
    calm = check_drift(part, line.scores, same, licence=path, at=NOW)
    assert not calm.revoked
    assert calm.sentence.startswith("No drift shown")
    rng = np.random.default_rng(3)
    worse = [ItemScore(s.id, s.human, "yes" if rng.random() < 0.5 else "no") for s in same]
    found = check_drift(part, line.scores, worse, licence=path, at=NOW)
    assert found.revoked
    ruling = check_licence(
        judge, tmp_path, domain="product-docs/en", use="criterion:faithful", now=NOW
    )
    assert not ruling.valid
    assert "revoked on 2026-06-01: drift: on 40 items" in ruling.sentence


def test_a_drift_check_on_too_few_items_is_refused() -> None:
    on = yes_no_anchor(29)
    with pytest.raises(AnchorError, match="30 items"):
        drift_items(on)
    rows = scores(on, wrong_every(20))
    with pytest.raises(AnchorError, match="29 items scored twice"):
        check_drift(on, rows, rows)


def test_the_shipped_anchor_is_synthetic_new_to_the_suite_and_beats_no_rule_of_thumb() -> None:
    from evalkit.cases.load import load_cases
    from evalkit.validity.anchor_checks import seen_cases

    judge = load_judge(SUITE / "judges" / "faithfulness.md")
    on = load_anchor(SUITE / "anchors" / "faithfulness.csv")
    assert on.provenance is Provenance.SYNTHETIC
    assert on.criterion in judge.criteria
    cases = load_cases(SUITE / "cases.jsonl")
    checked = accept(on, seen_cases(cases, where="cases.jsonl", all_cases=True))
    assert checked.refused == ()
    assert min(list(on.truth.values()).count(label) for label in ("yes", "no")) >= 30
    for trivial in trivial_judges(judge):
        rows = asyncio.run(score_anchor(trivial, on, nobody))
        line = admit_judge(trivial, on, rows)
        assert line.state == "ELIMINATED", line.sentence


def test_a_perfect_judge_on_the_shipped_anchor_gets_no_licence(tmp_path: Path) -> None:
    judge = load_judge(SUITE / "judges" / "faithfulness.md")
    on = load_anchor(SUITE / "anchors" / "faithfulness.csv")
    line = admit_judge(judge, on, scores(on, lambda _, label: label))
    assert (line.state, line.uses) == ("NOT_CERTIFIED", ())
    forged = evidence_of(line, tmp_path).model_copy(update={"grants": ("criterion:faithful",)})
    path = write_licence(judge, tmp_path, domain=on.domain, evidence=[forged], now=NOW)
    assert read_licence(path).uses == ()

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from evalkit.errors import LicenceError
from evalkit.judges.criteria import CriteriaJudge
from evalkit.judges.file import parse_judge_file
from evalkit.validity.anchor_files import load_anchor
from evalkit.validity.licence import (
    Evidence,
    pin_anchor,
    read_licence,
    revoke_licence,
    write_licence,
)
from evalkit.validity.licence_check import Ruling, check_licence
from evalkit.validity.provenance import Provenance

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
USE = "criterion:faithfulness"
JUDGE = """---
kind: criteria
model: local/smollm2
criteria:
  faithfulness: Is everything that the answer says in the pages?
---
# system
Judge strictly.

# user
{{ draft }}
"""
ANCHOR = (
    "item_id,annotator,label,criterion,provenance,domain,output,context\n"
    "i1,ann,yes,faithfulness,human,product-docs/en,Open at nine.,pages/hours.md\n"
    "i2,bob,no,faithfulness,human,product-docs/en,Open at ten.,pages/hours.md\n"
)


def judge(text: str = JUDGE, name: str = "faithfulness") -> CriteriaJudge:
    return CriteriaJudge(parse_judge_file(text, name))


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "anchors").mkdir()
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "hours.md").write_text("The shop opens at nine.\n", encoding="utf-8")
    (tmp_path / "anchors" / "faith.csv").write_text(ANCHOR, encoding="utf-8")
    return tmp_path


def finding(suite: Path, **changes: object) -> Evidence:
    anchor = load_anchor(suite / "anchors" / "faith.csv")
    fields: dict[str, object] = {
        "what": USE,
        "anchor": pin_anchor(anchor, suite),
        "state": "CREDIBLE",
        "ruling": "AUTOMATE",
        "diagnosis": "OK",
        "action": "use it",
        "figures": {"kappa": {"estimate": 0.8, "low": 0.7, "high": 0.9, "n": 120}},
        "grants": (USE,),
    }
    return Evidence(**(fields | changes))  # type: ignore[arg-type]


def licensed(suite: Path, **changes: object) -> Path:
    return write_licence(
        judge(), suite, domain="product-docs/en", evidence=[finding(suite, **changes)], now=NOW
    )


def check(suite: Path, by: CriteriaJudge | None = None, **changes: object) -> Ruling:
    asked: dict[str, object] = {"domain": "product-docs/en", "use": USE, "now": NOW}
    return check_licence(by or judge(), suite, **(asked | changes))  # type: ignore[arg-type]


def test_a_licensed_judge_may_judge_and_the_sentence_says_on_what_ground(suite: Path) -> None:
    licensed(suite)
    ruling = check(suite)
    assert ruling.valid
    assert ruling.sentence == (
        "judge faithfulness is licensed for criterion:faithfulness in product-docs/en until "
        "2026-11-28 (CREDIBLE on faith, n = 2)"
    )


def test_without_a_licence_the_sentence_says_how_to_get_one(suite: Path) -> None:
    ruling = check(suite)
    assert not ruling.valid
    assert "has no licence" in ruling.sentence
    assert "--write-licence" in ruling.sentence


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (JUDGE.replace("strictly.", "strictly!"), "its prompt changed"),
        (JUDGE.replace("smollm2", "smollm3"), "its model changed (local/smollm2 -> local/smollm3)"),
        (
            JUDGE.replace("in the pages?", "in the page?"),
            "its criteria, levels or settings changed",
        ),
        (
            JUDGE.replace("model:", "temperature: 0.1\nmodel:"),
            "its criteria, levels or settings changed",
        ),
    ],
)
def test_one_changed_character_of_the_judge_ends_the_licence(
    suite: Path, text: str, message: str
) -> None:
    licensed(suite)
    ruling = check(suite, judge(text))
    assert not ruling.valid
    assert message in ruling.sentence
    assert ruling.sentence.count("changed") == 1


def test_another_domain_ends_it(suite: Path) -> None:
    licensed(suite)
    ruling = check(suite, domain="product-docs/de")
    assert not ruling.valid
    assert "the domain is product-docs/de, not product-docs/en" in ruling.sentence


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("anchors/faith.csv", "nine.", "nine!"),
        ("anchors/faith.csv", ",no,", ",yes,"),
        ("pages/hours.md", "nine", "nina"),
    ],
)
def test_one_changed_character_of_the_anchor_or_its_pages_ends_it(
    suite: Path, file: str, old: str, new: str
) -> None:
    licensed(suite)
    text = (suite / file).read_text(encoding="utf-8")
    (suite / file).write_text(text.replace(old, new), encoding="utf-8")
    ruling = check(suite)
    assert not ruling.valid
    assert "its anchor anchors/faith.csv changed" in ruling.sentence


def test_line_endings_and_a_moved_suite_change_nothing(suite: Path, tmp_path: Path) -> None:
    licensed(suite)
    path = suite / "anchors" / "faith.csv"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    moved = suite.rename(tmp_path.parent / f"{tmp_path.name}-moved")
    assert check(moved).valid


def test_a_lost_anchor_ends_it_and_one_kept_elsewhere_is_said(suite: Path, tmp_path: Path) -> None:
    licensed(suite)
    (suite / "anchors" / "faith.csv").unlink()
    assert "its anchor anchors/faith.csv is gone" in check(suite).sentence
    elsewhere = tmp_path.parent / f"{tmp_path.name}.csv"
    elsewhere.write_text(ANCHOR.replace(",pages/hours.md", ","), encoding="utf-8")
    pin = pin_anchor(load_anchor(elsewhere), suite)
    assert pin.path == ""
    write_licence(
        judge(), suite, domain="product-docs/en", evidence=[finding_with(pin)], now=NOW
    )  # fmt: skip
    assert check(suite).valid
    assert "kept elsewhere" in check(suite).warnings[-1]


def finding_with(pin: object) -> Evidence:
    return Evidence(
        what=USE, anchor=pin, state="CREDIBLE", ruling="", diagnosis="", action="",
        figures={}, grants=(USE,),
    )  # type: ignore[arg-type]  # fmt: skip


def test_it_expires(suite: Path) -> None:
    licensed(suite)
    assert check(suite, now=NOW + timedelta(days=180)).valid
    ruling = check(suite, now=NOW + timedelta(days=181))
    assert not ruling.valid
    assert "expired on 2026-11-28" in ruling.sentence


def test_a_use_that_was_not_granted_is_refused_with_what_was_found(suite: Path) -> None:
    licensed(suite, state="MARGINAL", diagnosis="WEAK_RANKING", grants=())
    ruling = check(suite)
    assert not ruling.valid
    assert "not licensed for criterion:faithfulness but for nothing" in ruling.sentence
    assert "MARGINAL, WEAK_RANKING" in ruling.sentence
    assert "but for nothing" in check(suite, use="pairwise").sentence


def test_an_edit_by_hand_is_found(suite: Path) -> None:
    path = licensed(suite, grants=())
    held = json.loads(path.read_text(encoding="utf-8"))
    held["uses"] = [USE]
    held["evidence"][0]["grants"] = [USE]
    path.write_text(json.dumps(held, indent=2), encoding="utf-8")
    with pytest.raises(LicenceError, match="was changed after it was written"):
        read_licence(path)
    ruling = check(suite)
    assert not ruling.valid
    assert "was changed after it was written" in ruling.sentence


@pytest.mark.parametrize("provenance", [p for p in Provenance if p is not Provenance.HUMAN])
def test_labels_that_people_did_not_give_never_grant(suite: Path, provenance: Provenance) -> None:
    path = suite / "anchors" / "faith.csv"
    path.write_text(ANCHOR.replace(",human,", f",{provenance},"), encoding="utf-8")
    licence = read_licence(licensed(suite))
    assert licence.uses == ()
    assert "grant nothing" in licence.warnings[0]
    assert not check(suite).valid


def test_an_anchor_of_another_domain_grants_nothing_here(suite: Path) -> None:
    path = write_licence(
        judge(), suite, domain="legal/en", evidence=[finding(suite)], now=NOW
    )  # fmt: skip
    licence = read_licence(path)
    assert licence.uses == ()
    assert "the anchor's domain product-docs/en is not the target's legal/en" in licence.warnings[0]


def test_revoking_is_written_down_and_ends_it(suite: Path) -> None:
    path = licensed(suite)
    revoke_licence(path, "drift: errors grew by 0.4 on 30 items", now=NOW)
    ruling = check(suite)
    assert not ruling.valid
    assert "revoked on 2026-06-01: drift" in ruling.sentence


def test_a_judge_of_the_candidates_family_is_declared(suite: Path) -> None:
    licensed(suite)
    ruling = check(suite, candidate="local/smollm2-135m-instruct")
    assert ruling.valid
    assert ruling.warnings == ("judge and candidate are of one family (smollm)",)


def test_the_old_licence_names_the_change_even_beside_others(suite: Path) -> None:
    licensed(suite)
    other = judge(
        JUDGE.replace("Judge strictly", "Be kind").replace("smollm2", "x"), "faithfulness"
    )
    write_licence(
        other, suite, domain="product-docs/en", evidence=[finding(suite, grants=())], now=NOW
    )
    ruling = check(suite, judge(JUDGE.replace("strictly.", "strictly;")))
    assert ruling.sentence.count("changed") == 1


def test_what_a_judge_showed_for_another_use_is_kept(suite: Path) -> None:
    licensed(suite)
    other = finding(suite, what="criterion:polite", grants=("criterion:polite",))
    later = NOW + timedelta(days=30)
    path = write_licence(judge(), suite, domain="product-docs/en", evidence=[other], now=later)
    licence = read_licence(path)
    assert licence.uses == (USE, "criterion:polite")
    assert str(licence.expires) == "2026-11-28"
    worse = finding(suite, state="ELIMINATED", grants=())
    write_licence(judge(), suite, domain="product-docs/en", evidence=[worse], now=later)
    assert read_licence(path).uses == ("criterion:polite",)
    revoke_licence(path, "drift", now=later)
    write_licence(judge(), suite, domain="product-docs/en", evidence=[finding(suite)], now=later)
    assert read_licence(path).uses == (USE,)


def test_no_evidence_no_licence(suite: Path) -> None:
    with pytest.raises(LicenceError, match="no evidence"):
        write_licence(judge(), suite, domain="d", evidence=[], now=NOW)


def test_a_licence_is_readable_by_people(suite: Path) -> None:
    text = licensed(suite).read_text(encoding="utf-8")
    assert '"state": "CREDIBLE"' in text
    assert text.count("\n") > 30

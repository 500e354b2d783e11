from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from evalkit.records import Case, Document, Reply, Score, ScoreStatus
from evalkit.relations import (
    DIR,
    INV,
    LIBRARY,
    MFT,
    AddBib,
    AddMaterial,
    AddPage,
    ChangeNames,
    DeleteFile,
    FabricateNumber,
    ReorderContext,
    RephraseNumbers,
    check,
)
from evalkit.scorers import SCORERS
from evalkit.scorers.contract import SourcesExist, SourcesWithin
from evalkit.scorers.reference import NumberMatch, TokenOverlap

CASE = Case(
    "c1",
    inputs={"question": "What did Alice weigh?", "list": ["Bob", 3]},
    context=(Document("a", "Alice weighed 12345 g."), Document("b", "Alicent did not.")),
    material={"data.csv": "mass (g),u (g)\n12345,5\n", "notes.md": "Alice measured data.csv."},
    expected={"answer": "Alice weighed 12345 g", "value": 12345, "sources": ["a"]},
)
REPLY = Reply("Alice weighed 12345 g \\cite{lake2019}.")
BARE = Case("bare", inputs={"q": "x"})
NO = Reply("Nothing.")


@dataclass(frozen=True)
class Says:
    """Details and value as given, before and after (told apart by the material)."""

    before: dict[str, Any]
    after: dict[str, Any]

    VERSION: ClassVar[int] = 1

    def __call__(self, case: Case, reply: Reply) -> Score:
        details = self.after if "new.md" in case.material else self.before
        value = details.get("value", 1.0)
        status = ScoreStatus.NOT_MEASURED if value is None else ScoreStatus.OK
        return Score(value, "said", status, details=details)


NEW = AddMaterial(name="new.md")


def holds(relation: Any, before: dict[str, Any], after: dict[str, Any]) -> bool | None:
    return check(relation, Says(before, after), BARE, NO).holds


@pytest.mark.parametrize("relation", LIBRARY.values(), ids=LIBRARY)
def test_the_library_holds_or_does_not_apply(relation: Any) -> None:
    scorers = {
        "unsourced": SCORERS["sourced_numbers"](),
        "gaps": SCORERS["material_complete"](),
        "undefined": SCORERS["citations_closed"](),
        "": SourcesExist(),
    }
    reply = REPLY if relation.of else Reply('{"sources": ["a"], "answer": "Alice, 12345"}')
    outcome = check(relation, scorers[relation.of], CASE, reply)
    assert outcome.holds, outcome.reason
    assert outcome.reason.startswith(f"{relation.name}: holds: ")
    assert outcome.before is not None


def test_a_planted_gap_and_number_are_found() -> None:
    gap = MFT(name="planted", change=DeleteFile("data.csv"), of="gaps", lists="data")
    assert check(gap, SCORERS["material_complete"](), CASE, REPLY).holds
    number = MFT(
        name="planted", change=FabricateNumber(8.25), of="unsourced", lists=8.25, at_least=1
    )
    assert check(number, SCORERS["sourced_numbers"](), CASE, REPLY).holds


@pytest.mark.parametrize(
    ("relation", "after", "right"),
    [
        (MFT(name="r", change=NEW, of="n", at_least=2), {"n": 2}, True),
        (MFT(name="r", change=NEW, of="n", at_least=2), {"n": [1]}, False),
        (MFT(name="r", change=NEW, of="n", at_most=2), {"n": [1, 2]}, True),
        (MFT(name="r", change=NEW, of="n", at_most=2), {"n": 3}, False),
        (MFT(name="r", change=NEW, of="n", lists=4), {"n": [4]}, True),
        (MFT(name="r", change=NEW, of="n", lists=4), {"n": [5]}, False),
        (MFT(name="r", change=NEW, of="n", lists=4), {}, False),
        (MFT(name="r", change=NEW, at_least=0.5), {"value": 0.5}, True),
        (MFT(name="r", change=NEW, at_least=0.5), {"value": 0.4}, False),
        (INV(name="r", change=NEW), {"value": 0.5}, True),
        (INV(name="r", change=NEW), {"value": 0.6}, False),
        (INV(name="r", change=NEW, tolerance=0.1), {"value": 0.6}, True),
        (INV(name="r", change=NEW, tolerance=0.1), {"value": 0.39}, False),
        (DIR(name="r", change=NEW, must="rise"), {"value": 0.6}, True),
        (DIR(name="r", change=NEW, must="rise"), {"value": 0.5}, False),
        (DIR(name="r", change=NEW, must="fall"), {"value": 0.4}, True),
        (DIR(name="r", change=NEW, must="fall"), {"value": 0.5}, False),
        (DIR(name="r", change=NEW, must="not rise"), {"value": 0.5}, True),
        (DIR(name="r", change=NEW, must="not rise"), {"value": 0.6}, False),
        (DIR(name="r", change=NEW, must="not fall"), {"value": 0.5}, True),
        (DIR(name="r", change=NEW, must="not fall"), {"value": 0.4}, False),
        (DIR(name="r", change=NEW, must="rise", of="n", lists=4), {"n": [1, 4]}, True),
        (DIR(name="r", change=NEW, must="rise", of="n", lists=5), {"n": [1, 4]}, False),
        (DIR(name="r", change=NEW, must="rise", of="n", lists=1), {"n": [1, 4]}, False),
    ],
)
def test_what_must_hold_of_the_scores(relation: Any, after: dict[str, Any], right: bool) -> None:
    assert holds(relation, {"value": 0.5, "n": [1]}, after) is right


def test_faults_are_sentences() -> None:
    fall = DIR(name="r", change=NEW, must="fall")
    assert (
        check(fall, Says({}, {}), BARE, NO).reason == "r: the score must fall, and went from 1 to 1"
    )
    moved = INV(name="r", change=NEW, of="n")
    assert check(moved, Says({"n": 1}, {"n": 2}), BARE, NO).reason == (
        "r: 'n' moved from 1 to 2, tolerance 0"
    )


def test_what_is_not_measured_or_does_not_apply_has_no_verdict() -> None:
    same = INV(name="r", change=NEW)
    assert holds(same, {"value": None}, {}) is None
    assert holds(same, {}, {"value": None}) is None
    outcome = check(INV(name="r", change=ReorderContext()), Says({}, {}), BARE, NO)
    assert (outcome.holds, outcome.before) == (None, None)
    assert outcome.reason == "r: the change does not apply to case 'bare'"


PICKY = (AddBib, AddPage, ChangeNames, DeleteFile, ReorderContext, RephraseNumbers)


@pytest.mark.parametrize("change", [kind() for kind in PICKY], ids=lambda c: type(c).__name__)
def test_changes_say_where_they_do_not_apply(change: Any) -> None:
    assert change(BARE, NO) is None


def test_changes_change_what_they_say_and_nothing_else() -> None:
    case, reply = FabricateNumber()(CASE, REPLY)
    assert (case, reply.text) == (CASE, REPLY.text + "\n\nA further run gave 86753.09 counts.\n")
    tex = Reply("\\begin{document}\nA.\n\\end{document}\n")
    assert FabricateNumber(1.5, "So {value}.")(CASE, tex)[1].text == (
        "\\begin{document}\nA.\n\nSo 1.5.\n\\end{document}\n"
    )
    deleted = DeleteFile()(CASE, REPLY)
    assert deleted is not None
    assert set(deleted[0].material) == {"notes.md"}
    added = AddMaterial()(CASE, REPLY)
    assert added is not None
    assert added[0].material["remarks.md"]
    assert AddMaterial("data.csv")(CASE, REPLY) is None
    bib = AddBib()(CASE, REPLY)
    assert bib is not None
    assert "@misc{lake2019," in bib[0].material["references.bib"]
    assert AddBib()(*bib) is None
    turned = ReorderContext()(CASE, REPLY)
    assert turned is not None
    assert [page.id for page in turned[0].context] == ["b", "a"]
    paged = AddPage()(CASE, REPLY)
    assert paged is not None
    assert [page.id for page in paged[0].context] == ["a", "b", "unrelated-page"]
    assert AddPage()(*paged) is None


def test_names_change_everywhere_as_whole_words() -> None:
    changed = ChangeNames({"Alice": "Bob", "Bob": "Alice"})(CASE, REPLY)
    assert changed is not None
    case, reply = changed
    assert reply.text == "Bob weighed 12345 g \\cite{lake2019}."
    assert case.inputs == {"question": "What did Bob weigh?", "list": ["Alice", 3]}
    assert [page.text for page in case.context] == ["Bob weighed 12345 g.", "Alicent did not."]
    assert case.material["notes.md"] == "Bob measured data.csv."
    assert case.expected["answer"] == "Bob weighed 12345 g"
    assert check(LIBRARY["other names are no matter"], TokenOverlap(), CASE, REPLY).holds


def test_numbers_are_spelled_the_other_way() -> None:
    changed = RephraseNumbers()(CASE, Reply("12345 and 1,234.5 and 2026 and 12345.67 and x12345"))
    assert changed is not None
    assert changed[1].text == "12,345 and 1234.5 and 2026 and 12,345.67 and x12345"
    relation = LIBRARY["the spelling of numbers is no matter"]
    assert check(relation, NumberMatch(), CASE, REPLY).holds


def test_only_changes_of_the_case_alone_can_run_live() -> None:
    live = {name for name, relation in LIBRARY.items() if relation.live}
    assert set(LIBRARY) - live == {
        "a fabricated number is unsourced",
        "the spelling of numbers is no matter",
    }


def test_sources_stay_right_when_the_context_is_reordered() -> None:
    reply = Reply('{"sources": ["a"]}')
    for scorer in (SourcesExist(), SourcesWithin()):
        assert check(LIBRARY["the order of the context is no matter"], scorer, CASE, reply).holds

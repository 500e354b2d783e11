"""What a change may not choose for itself: cases, criteria, and thresholds after the fact."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from chat_server import ChatServer
from gate_situations import BOTH, FLOOR, KIND, World

from evalkit.cases.suite import load_suite
from evalkit.runs.gate_redefined import loosened
from evalkit.runs.gate_reference import Reference, read_reference

CASES = [
    {
        "id": f"c{i}",
        "inputs": {"word": f"word{i}"},
        "expected": {"word": f"word{i}"},
        "tags": ["core"],
        "material": ["pages/one.md"] if i else [],
    }
    for i in range(4)
]
SHOWN = FLOOR.replace("says_word", "shown") + "gate = false\n"
SCHEMA = '[[criteria]]\nname = "shape"\nscorer = "json_contract"\nschema = "s.json"\nmin = 0.1\n'


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with ChatServer() as server:
        yield World(tmp_path, server)


def committed(world: World, criteria: str = FLOOR) -> None:
    world.suite(criteria, cases=CASES)
    (world.folder / "pages").mkdir(exist_ok=True)
    (world.folder / "pages" / "one.md").write_text("A page.\n")
    (world.folder / "s.json").write_text('{"type": "object"}')
    world.commit()


def since(world: World) -> Reference:
    return read_reference(load_suite(world.folder), "main")


EDITS: dict[str, tuple[str, Callable[[World], None]]] = {
    "the suite is named other, not mini as at main": (
        FLOOR,
        lambda w: w.edit('name = "mini"', 'name = "other"'),
    ),
    "sampling.repeats: 1 at main, 2 now": (FLOOR, lambda w: w.edit("repeats = 1", "repeats = 2")),
    "sampling.seed: 7 at main, 8 now": (FLOOR, lambda w: w.edit("seed = 7", "seed = 8")),
    "criterion says_word measures something else than at main (settings)": (
        FLOOR,
        lambda w: w.edit('expected = "word"', 'text = "o"'),
    ),
    "criterion shape reads s.json, which differs from main": (
        SCHEMA,
        lambda w: w.edit('"object"', '["object", "string"]', "s.json"),
    ),
    "cases changed: c1, c2, c3": (FLOOR, lambda w: w.edit("A page", "Another", "pages/one.md")),
    "cases changed: c0": (
        FLOOR + 'where = { tags = ["core"] }\n',
        lambda w: w.edit('"c0", "inputs"', '"c0", "cluster": "a", "inputs"', "cases.jsonl"),
    ),
    "cases removed: c3": (
        FLOOR,
        lambda w: w.edit(json.dumps(CASES[3]) + "\n", "", "cases.jsonl"),
    ),
}


@pytest.mark.parametrize("said", EDITS)
def test_what_the_ref_fixed_is_named_when_it_moves(world: World, said: str) -> None:
    criteria, edit = EDITS[said]
    committed(world, criteria)
    assert since(world).redefined == ()
    edit(world)
    assert since(world).redefined == (said,)
    assert said in since(world).changes


def test_tags_count_where_a_criterion_looks_at_them(world: World) -> None:
    for criteria, moved in ((FLOOR, ()), (FLOOR + 'where = { tags = ["core"] }\n', ("c0",))):
        committed(world, criteria)
        world.edit('"tags": ["core"], "material": []', '"tags": [], "material": []', "cases.jsonl")
        assert since(world).changed_cases == frozenset(moved)
        world.git("checkout", "-q", "--", ".")


def test_a_file_is_known_by_its_name_whatever_git_makes_of_it(world: World) -> None:
    """Renamed over the one that is read, or with letters that git quotes."""
    schema = SCHEMA.replace("s.json", "schéma.json")
    world.suite(schema, cases=CASES)
    (world.folder / "pages").mkdir()
    (world.folder / "pages" / "one.md").write_text("A page.\n")
    for name, kind in (("schéma.json", "object"), ("loose.json", "string")):
        (world.folder / name).write_text(json.dumps({"type": kind, "title": "x" * 500}))
    world.commit()
    assert since(world).redefined == ()
    (world.folder / "loose.json").rename(world.folder / "schéma.json")
    assert len(since(world).redefined) == 1


@pytest.mark.parametrize("name", ["../shapes/s.json", "prompts/../../shapes/s.json", "link.json"])
def test_a_file_is_found_wherever_its_name_leads(world: World, name: str) -> None:
    """Out of the suite's folder, by a detour or behind a link: it decides all the same."""
    world.suite(SCHEMA.replace("s.json", name), cases=[{**CASES[0], "material": []}])
    shapes = world.folder.parent / "shapes"
    shapes.mkdir()
    (shapes / "s.json").write_text('{"type": "object"}')
    (world.folder / "link.json").symlink_to("../shapes/s.json")
    world.commit()
    assert since(world).redefined == ()
    world.edit('"object"', '["object", "string"]', "../shapes/s.json")
    assert since(world).redefined == (
        "criterion shape reads ../shapes/s.json, which differs from main",
    )


@pytest.mark.parametrize(
    ("criteria", "old", "new", "file"),
    [
        (FLOOR + 'field = ""\n', "Say", "Please say", "prompts/say.md"),
        (FLOOR.replace('expected = "word"', 'text = "."'), "Say", "Now say", "prompts/say.md"),
        (SCHEMA, "min = 0.1", "min = 0.1\nallow_repair = false", "suite.toml"),
        (FLOOR, '"c0", "inputs"', '"c0", "cluster": null, "inputs"', "cases.jsonl"),
        (FLOOR, "words/en", "words/de", "suite.toml"),
    ],
    ids=["an empty setting", "a full stop", "a default said", "nothing said", "a domain, no judge"],
)
def test_what_changes_nothing_that_decides_is_free(
    world: World, criteria: str, old: str, new: str, file: str
) -> None:
    committed(world, criteria)
    world.edit(old, new, file)
    assert since(world).changes
    assert since(world).redefined == ()


def test_a_domain_says_which_licences_hold(world: World) -> None:
    world.licence()
    committed(world, FLOOR + KIND)
    world.edit("words/en", "words/de")
    assert since(world).redefined == (
        "domain, for which judges hold licences: words/en at main, words/de now",
    )


def test_a_byte_order_mark_at_the_ref_hides_no_case(world: World) -> None:
    world.suite(FLOOR)
    cases = world.folder / "cases.jsonl"
    cases.write_text("\ufeff" + cases.read_text())
    world.commit()
    assert since(world).redefined == ()
    world.edit('"word": "word0"}}', '"word": "w"}}', "cases.jsonl")
    assert since(world).redefined == ("cases changed: c000",)


def test_growth_and_what_decides_nothing_are_free(world: World) -> None:
    committed(world, FLOOR + SHOWN)
    more = [{**CASES[0], "id": "new"}]
    world.suite(
        FLOOR + SHOWN.replace('expected = "word"', 'text = "o"') + BOTH.replace("says", "new"),
        cases=[*CASES, *more],
    )
    found = since(world)
    assert found.redefined == ()
    assert "cases added: new" in found.changes


def test_hard_is_part_of_the_meaning_only_where_judges_are_kept_from_broken_cases(
    world: World,
) -> None:
    for criteria, redefined in ((FLOOR, 0), (FLOOR + KIND, 1)):
        world.licence()
        committed(world, criteria)
        world.edit("min = 0.9", "min = 1.0\nhard = true")
        assert len(since(world).redefined) == redefined
        world.git("checkout", "-q", "--", ".")


def test_a_judge_s_file_is_part_of_what_decides(world: World) -> None:
    world.licence()
    committed(world, FLOOR + KIND)
    world.edit("Is it kind?", "Is it not rude?", "judges/kind.md")
    assert since(world).redefined == (
        "criterion kind reads judges/kind.md, which differs from main",
    )


def test_code_of_a_scorer_of_one_s_own_is_part_of_what_decides(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(world.root))
    code = world.root / "own_scorer_of_a_change.py"
    code.write_text("from evalkit.scorers.text import Contains\n")
    committed(world, FLOOR.replace('"contains"', f'"{code.stem}:Contains"'))
    assert since(world).redefined == ()
    code.write_text("from evalkit.scorers.text import Contains as Real\nContains = Real\n")
    assert since(world).redefined == (
        "criterion says_word is scored by code that differs from main",
    )
    code.unlink()
    (world.root / code.stem).mkdir()
    (world.root / code.stem / "__init__.py").write_text("Contains = None\n")
    importlib.invalidate_caches()
    assert since(world).redefined == (
        "criterion says_word is scored by code that differs from main",
    )
    assert code.stem not in sys.modules


def test_asking_for_less_is_told_from_asking_for_more() -> None:
    rule = {"min": 0.9, "max_drop": 0.05, "hard": True, "gate": True, "statistic": "mean"}
    looser = [
        {"min": 0.8},
        {"max_drop": 0.1},
        {"hard": False},
        {"statistic": "rate"},
        {"gate": False},
    ]
    for edit in looser:
        (said,) = loosened({"a": rule}, {"a": {**rule, **edit}}, "then")
        assert "a" in said
    for edit in ({"min": 0.95}, {"max_drop": 0.01}, {"min_win_rate": 0.5}):
        assert not list(loosened({"a": rule}, {"a": {**rule, **edit}}, "then"))
    assert not list(loosened({"a": {**rule, "gate": False}}, {}, "then"))
    assert list(loosened({"a": rule}, {}, "then"))


def test_every_earlier_run_of_the_replies_counts_until_a_freeze_settles_it(world: World) -> None:
    world.bad = set(range(20))
    world.gate()
    for floor, status in (("0.5", 4), ("0.6", 4)):
        world.suite(FLOOR.replace("0.9", floor))
        assert world.gate(run_live=False)[0] == status
    assert world.gate(run_live=False, allow_redefined=True, freeze=True)[0] == 0
    assert world.gate(run_live=False)[0] == 0
    assert world.gated is not None
    assert not world.gated.result.problems
    world.suite(FLOOR.replace("0.9", "0.4"))
    assert "since the baseline was frozen" in world.gate(run_live=False)[1]

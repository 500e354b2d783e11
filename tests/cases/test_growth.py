"""A suite grows without losing a case, and says how far it is from its intended mix."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from evalkit.cases.growth import StratumShare, add_case, composition
from evalkit.cases.load import load_cases
from evalkit.cases.suite import Suite, load_suite
from evalkit.errors import CaseError
from evalkit.records import Case, Document

TOML = """\
name = "tiny"
domain = "test/en"
[task]
model = "local/small"
prompt = "prompts/a.md"
[sampling]
mix = { easy = 0.5, hard = 0.5 }
[[criteria]]
name = "said"
scorer = "contains"
text = "no"
min = 0.9
"""


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    (tmp_path / "suite.toml").write_text(TOML, encoding="utf-8")
    rows = [{"id": f"{h}-1", "stratum": h, "inputs": {"q": "?"}} for h in ("easy", "hard")]
    lines = "\n".join(map(json.dumps, rows))  # the last line has no end
    (tmp_path / "cases.jsonl").write_text(lines, encoding="utf-8")
    return load_suite(tmp_path)


def add(suite: Suite, question: str = "why?", **more: object) -> Case:
    settings: dict[str, object] = {"stratum": "hard", "inputs": {"q": question}, "why": "it failed"}
    return add_case(suite, **(settings | more))  # pyright: ignore[reportArgumentType]


def test_an_added_case_is_read_back_as_it_was_given(suite: Suite) -> None:
    case = add(
        suite,
        "¿por qué?\u2028",
        context=[Document("p", "page")],
        expected={"sources": ["p"]},
        tags=["found"],
        cluster="k",
    )
    assert load_suite(suite.folder).cases == (*suite.cases, case)
    assert case.why == "it failed"
    assert (case.context, case.tags, case.cluster) == ((Document("p", "page"),), ("found",), "k")


def test_its_id_depends_on_what_goes_in_alone(suite: Suite) -> None:
    first = add(suite)
    assert first.id.startswith("hard-")
    assert len(first.id) == len("hard-") + 8
    with pytest.raises(CaseError, match=f"id '{first.id}' stands on lines 3, 4"):
        add(suite, why="found again")
    assert add(suite, "another").id != first.id


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"why": " "}, "'why' is empty"),
        ({"stratum": "hrad"}, "stratum 'hrad' is not in the suite's mix; did you mean 'hard'?"),
        ({"inputs": {}}, "'inputs' is empty"),
        ({"expected": {"value": float("nan")}}, "the new case is not JSON"),
    ],
)
def test_a_case_that_would_not_load_is_not_written(
    suite: Suite, change: dict[str, object], said: str
) -> None:
    path = suite.folder / "cases.jsonl"
    before = path.read_bytes()
    with pytest.raises((CaseError, ValueError)) as caught:
        add(suite, **change)
    assert said in str(caught.value)
    assert path.read_bytes() == before


def test_several_writers_lose_nothing_and_leave_nothing_behind(suite: Suite) -> None:
    script = (
        "import sys; from evalkit.cases.growth import add_case; "
        "from evalkit.cases.suite import load_suite; s = load_suite(sys.argv[1]); "
        "[add_case(s, stratum='easy', inputs={'q': f'{sys.argv[2]}.{i}'}, why='w')"
        " for i in range(15)]"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", script, str(suite.folder), str(n)])
        for n in range(3)
    ]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    questions = [case.inputs["q"] for case in load_cases(suite.folder / "cases.jsonl")]
    assert sorted(questions[2:]) == sorted(f"{n}.{i}" for n in range(3) for i in range(15))
    assert sorted(p.name for p in suite.folder.iterdir()) == ["cases.jsonl", "suite.toml"]


def test_composition_says_what_is_missing_for_the_intended_mix() -> None:
    cases = [Case(str(i), "easy" if i < 7 else "hard" if i < 9 else "odd") for i in range(10)]
    assert composition(cases, {"easy": 0.7, "hard": 0.3}) == (
        StratumShare("easy", 7, 0.7, 0.7, 0),
        StratumShare("hard", 2, 0.2, 0.3, 1),
        StratumShare("odd", 1, 0.1, 0.0, 0),
    )
    assert [share.intended for share in composition(cases)] == [None] * 3
    assert [share.missing for share in composition(cases)] == [0] * 3


def test_adding_what_is_missing_restores_the_mix() -> None:
    mix = {"easy": 0.4, "ambiguous": 0.25, "no_answer": 0.2, "adversarial": 0.15}
    cases = [Case(f"{h}{i}", h) for h, k in zip(mix, (24, 3, 12, 9), strict=True) for i in range(k)]
    missing = {share.stratum: share.missing for share in composition(cases, mix)}
    assert missing == {"easy": 0, "ambiguous": 12, "no_answer": 0, "adversarial": 0}
    grown = cases + [Case(f"{h}+{i}", h) for h, k in missing.items() for i in range(k)]
    assert all(s.share == pytest.approx(s.intended) for s in composition(grown, mix))

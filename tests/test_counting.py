"""A number and its noun agree, wherever a person reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
from chat_server import ChatServer
from gate_situations import FLOOR, HARD, World

from evalkit.counting import all_of, counted, listed


@pytest.mark.parametrize(
    ("n", "one", "said"),
    [
        (0, "case", "0 cases"),
        (1, "case", "1 case"),
        (2, "new call", "2 new calls"),
        (1, "reply", "1 reply"),
        (3, "reply", "3 replies"),
        (2, "day", "2 days"),
    ],
)
def test_a_number_and_its_noun_agree(n: int, one: str, said: str) -> None:
    assert counted(n, one) == said


def test_all_of_one_is_one() -> None:
    assert (all_of(24, "reply"), all_of(1, "reply")) == ("all 24 replies", "1 reply")
    assert counted(2, "stratum", "strata") == "2 strata"


def test_names_that_are_left_out_of_a_list_are_counted() -> None:
    assert (listed(["a", "b"], 2), listed("abcd", 2), listed([], 2)) == (
        "a, b",
        "a, b and 2 more",
        "",
    )


@pytest.mark.parametrize("criteria", [FLOOR, HARD])
def test_a_gate_of_one_case_speaks_of_one_case(tmp_path: Path, criteria: str) -> None:
    with ChatServer() as server:
        world = World(tmp_path, server)
        world.suite(criteria, cases=1)
        said = [world.gate()[1], world.gate(run_live=False, seed=8)[1]]
        assert world.gated is not None
        said += [c.sentence for c in world.gated.result.criteria]
        world.bad = {0}
        said.append(world.gate(seed=9)[1])
    for text in said:
        for many in ("1 cases", "1 runs", "1 replies", "1 calls", "1 observations"):
            assert f" {many}" not in f" {text}", text

from __future__ import annotations

import pytest

from evalkit.errors import JudgeError
from evalkit.judges import panel

PAIR = ("a", "tie", "b")
LABELS = {
    "x": {1: "a", 2: "a", 3: "tie", 4: None},
    "y": {1: "a", 2: "b", 3: "a", 4: None},
    "z": {1: "b", 2: "a", 3: "tie", 4: "a"},
}


def test_judges_that_contradict_each_other_make_the_pair_ambiguous() -> None:
    found = panel({n: LABELS[n] for n in "xy"}, categories=PAIR)
    assert {i: (v.label, v.status) for i, v in found.verdicts.items()} == {
        1: ("a", "agreed"),
        2: (None, "ambiguous"),
        3: (None, "ambiguous"),
        4: (None, "unscored"),
    }
    assert found.ambiguous == (2, 3)
    assert found.agreement == {("x", "y"): (1, 3)}


def test_an_eliminated_judge_has_no_vote_and_is_listed() -> None:
    found = panel(LABELS, categories=PAIR, eliminated={"y": "QWK .02", "gone": "never asked"})
    assert found.standing == ("x", "z")
    assert found.eliminated == {"y": "QWK .02"}
    assert found.verdicts[2].label == "a"
    assert found.verdicts[2].by == {"x": "a", "z": "a"}
    assert set(found.kappa) == {("x", "z")}


def test_kappa_between_judges_is_cohens() -> None:
    one = {i: "ab"[i % 2] for i in range(40)}
    other = {i: ("a" if i < 10 else one[i]) for i in range(40)}
    found = panel({"x": one, "y": other}, categories=PAIR)
    kappa = found.kappa["x", "y"]
    same = sum(one[i] == other[i] for i in one) / 40
    chance = 0.5 * sum(v == "a" for v in other.values()) / 40
    chance += 0.5 * sum(v == "b" for v in other.values()) / 40
    assert kappa.estimate == pytest.approx((same - chance) / (1 - chance))


def test_an_empty_panel_and_a_foreign_label_are_refused() -> None:
    with pytest.raises(JudgeError, match="not eliminated"):
        panel({"x": {1: "a"}}, categories=PAIR, eliminated={"x": "no"})
    with pytest.raises(JudgeError, match="item 1"):
        panel({"x": {1: "yes"}}, categories=PAIR)

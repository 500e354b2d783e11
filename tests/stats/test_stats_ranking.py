from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from evalkit.errors import StatsError
from evalkit.stats.ranking import bradley_terry, davidson, rank_systems
from evalkit.stats.result import Status


def simulated(
    strength: list[float], lean: float, tie: float, n: int, seed: int = 0
) -> tuple[list[str], list[str], list[str], list[int]]:
    rng, m = np.random.default_rng(seed), len(strength)
    first = rng.integers(0, m, n)
    second = (first + rng.integers(1, m, n)) % m
    d = np.array(strength)[first] - np.array(strength)[second] + lean
    odds = np.exp([d / 2, -d / 2, np.full(n, tie)])
    u, p = rng.random(n), odds / odds.sum(0)
    said = np.where(u < p[0], "first", np.where(u < p[0] + p[1], "second", "tie"))
    names = np.array([f"s{i}" for i in range(m)])
    return (
        names[first].tolist(),
        names[second].tolist(),
        said.tolist(),
        (np.arange(n) // 4).tolist(),
    )


@settings(max_examples=25)
@given(st.lists(st.integers(1, 9), min_size=18, max_size=18))
def test_newton_finds_what_a_general_optimiser_finds(counts: list[int]) -> None:
    tables = np.zeros((3, 3, 3))
    tables[:, ~np.eye(3, dtype=bool)] = np.array(counts, dtype=float).reshape(3, 6)

    def loss(v: np.ndarray) -> float:
        theta = np.array([v[0], v[1], -v[0] - v[1]])
        d = theta[:, None] - theta + v[2]
        s = np.array([d / 2, -d / 2, np.full_like(d, v[3])])
        return float(-(tables * (s - np.log(np.exp(s).sum(0)))).sum())

    oracle = minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-9})
    found = davidson(*tables)
    assert found.strength[:2] == pytest.approx(oracle.x[:2], abs=1e-4)
    assert found.position == pytest.approx(oracle.x[2], abs=1e-4)
    assert found.tie == pytest.approx(oracle.x[3], abs=1e-4)
    assert found.strength.sum() == pytest.approx(0, abs=1e-9)
    turned = davidson(tables[1].T, tables[0].T, tables[2].T)  # positions renamed: the lean flips
    assert turned.strength == pytest.approx(found.strength, abs=1e-8)
    assert turned.position == pytest.approx(-found.position, abs=1e-8)


def test_strengths_lean_and_groups_are_recovered() -> None:
    first, second, said, prompts = simulated([1.0, 0.9, -1.9], 0.5, -0.4, 3000)
    found = rank_systems(first, second, said, prompts=prompts, n_boot=200)
    assert found.status is Status.OK
    by_name = dict(zip(found.systems, found.strength, strict=True))
    for name, true in (("s0", 1.0), ("s1", 0.9), ("s2", -1.9)):
        assert by_name[name].ci_low < true < by_name[name].ci_high
    assert found.position_effect.ci_low < 0.5 < found.position_effect.ci_high
    assert found.order[-1] == "s2"
    groups = dict(zip(found.systems, found.group, strict=True))
    assert groups["s2"] > groups["s1"]
    assert found.n_comparisons == 3000
    assert found == rank_systems(first, second, said, prompts=prompts, n_boot=200)


def test_systems_that_do_not_differ_share_a_group() -> None:
    first, second, said, prompts = simulated([0.0, 0.0, 0.0], 0.0, -0.4, 300)
    found = rank_systems(first, second, said, prompts=prompts, n_boot=200)
    assert set(found.group) == {1}
    assert all(low < high for low, high in found.rank_interval)


def test_parts_never_compared_are_not_ranked() -> None:
    found = rank_systems(["A", "C"], ["B", "D"], ["first", "second"])
    assert found.reasons == ("not_connected",)
    assert found.order == ()
    assert found.components[0] != found.components[1]
    assert all(math.isnan(s.estimate) for s in found.strength)


@pytest.mark.parametrize("said", [["first", "second"] * 5, ["first", "first"] * 5])
def test_what_never_loses_gets_the_ridge_and_says_so(said: list[str]) -> None:
    found = rank_systems(["A", "B"] * 5, ["B", "A"] * 5, said, n_boot=50)
    assert found.status is Status.DEGENERATE
    assert "separated" in found.reasons
    assert all(abs(s.estimate) < 10 for s in found.strength)


def test_unread_verdicts_are_left_out_and_counted() -> None:
    first, second, said, _ = simulated([0.5, -0.5], 0.0, -1.0, 60)
    found = rank_systems([*first, "s0"], [*second, "s1"], [*said, None], n_boot=20)
    assert (found.n_comparisons, found.n_invalid) == (60, 1)


def test_without_ties_there_is_no_tie_parameter() -> None:
    found = rank_systems(
        ["A", "B"] * 6, ["B", "A"] * 6, ["first", "second", "second", "first"] * 3, n_boot=20
    )
    assert found.tie_parameter == -math.inf
    assert "no_ties" in found.reasons


def test_bradley_terry_is_undefined_for_an_unbeaten_system() -> None:
    assert np.isnan(bradley_terry([[0, 3], [0, 0]])).all()
    even = bradley_terry([[0, 3], [3, 0]])
    assert even == pytest.approx([0, 0], abs=1e-12)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: rank_systems(["A"], ["A"], ["first"]), "with itself"),
        (lambda: rank_systems(["A"], ["B"], ["A"]), "none of first"),
        (lambda: rank_systems(["A"], ["B", "C"], ["first"]), "one per comparison"),
        (lambda: davidson(np.eye(2), np.eye(2), np.eye(2)), "diagonal"),
        (lambda: bradley_terry([[0, -1], [1, 0]]), "counts"),
    ],
)
def test_malformed_comparisons_are_refused(call: object, sentence: str) -> None:
    with pytest.raises(StatsError, match=sentence):
        call()  # type: ignore[operator]

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import binom

from evalkit.errors import StatsError
from evalkit.stats.decision import Decision, Strictness
from evalkit.stats.gate import relative_decisions
from evalkit.stats.sequential import (
    SequentialGate,
    confidence_sequence,
    e_process,
    sequential_decisions,
)

differences = hnp.arrays(
    np.float64, st.integers(2, 60), elements=st.integers(-3, 3).map(lambda k: k / 3)
)
sides = st.sampled_from(["below", "above"])


@given(differences, sides, st.floats(-0.5, 0.5), st.randoms(use_true_random=False))
def test_the_final_evidence_does_not_depend_on_the_order(d, side, null, random) -> None:
    mixed = random.sample(list(d), len(d))
    assert e_process(d, null, side)[-1] == pytest.approx(e_process(mixed, null, side)[-1])


@given(differences, st.floats(-0.5, 0.5))
def test_the_two_sides_mirror_each_other_and_stay_positive(d, null) -> None:
    below, above = e_process(d, null, "below"), e_process(-d, -null, "above")
    assert below == pytest.approx(above)
    assert np.all(below > 0)


@pytest.mark.parametrize("null", [-0.1, 0.0])
@pytest.mark.parametrize("side", ["below", "above"])
def test_the_evidence_is_worth_one_under_its_hypothesis(null: float, side: str) -> None:
    n, p = 12, (1 + null) / 2  # differences of -1 or 1 with this mean; all orders are alike
    last = [e_process([1.0] * k + [-1.0] * (n - k), null, side)[-1] for k in range(n + 1)]
    assert np.dot(last, binom.pmf(np.arange(n + 1), n, p)) == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize(("alpha", "cases"), [(0.05, 7), (0.025, 8)])
def test_total_losses_stop_after_so_many_cases(alpha: float, cases: int) -> None:
    path = e_process([-1.0] * 12, 0.0, "below")
    assert int(np.argmax(path >= 1 / alpha)) + 1 == cases


@given(differences, st.sampled_from([0.05, 0.1, 0.3]), st.sampled_from(list(Strictness)))
def test_one_case_at_a_time_decides_as_the_whole_sequence(d, margin, strictness) -> None:
    gate = SequentialGate(margin, strictness)
    used = next((i + 1 for i, x in enumerate(d) if gate.add(float(x))), len(d))
    decisions, stops = sequential_decisions(d, margin, strictness=strictness)
    assert gate.finish() == str(decisions)
    assert used == stops


def test_the_end_of_the_set_is_decided_by_the_fixed_rule_at_half_of_alpha() -> None:
    d = np.zeros(45)
    found, used = sequential_decisions(d, 0.10, strictness=Strictness.RELEASE)
    assert used == 45
    assert str(found) == str(
        relative_decisions(d, 0.10, strictness=Strictness.RELEASE, alpha=0.025)
    )


def test_a_drop_inside_the_margin_is_reported_and_does_not_stop_a_release() -> None:
    rng = np.random.default_rng(0)
    d = np.where(rng.random(2000) < 0.06, -1.0, 0.0)
    gate = SequentialGate(0.15, Strictness.RELEASE)
    for x in d:
        gate.add(float(x))
    assert gate.decision is Decision.PASS
    assert SequentialGate(0.05, Strictness.SMOKE).finish() is Decision.UNDECIDED
    long = SequentialGate(0.07, Strictness.RELEASE)
    for x in d:
        long.add(float(x))
    assert long.worse_shown


def test_missing_verdicts_are_skipped_and_counted() -> None:
    gate = SequentialGate(0.1, Strictness.SMOKE)
    for x in (-1.0, math.nan, -1.0, math.nan):
        assert gate.add(x) is None
    assert gate.n_missing == 2
    assert len(gate.seen) == 2
    path = e_process([-1.0, math.nan, -1.0], 0.0, "below")
    assert path[0] == path[1] < path[2]
    assert path[2] == pytest.approx(e_process([-1.0, -1.0], 0.0, "below")[1])


def test_a_fixed_set_is_settled_once_the_rest_cannot_undo_it() -> None:
    d = [-1.0] * 8 + [1.0] * 2  # after 6 losses the remaining 4 cannot lift the mean above 0
    path = e_process(d, 0.0, "below", total=10)
    assert path[5] > 1e100
    assert e_process(d, 0.0, "above", total=10)[-1] < 1
    with pytest.raises(StatsError, match="fixed set"):
        e_process(d, 0.0, "below", total=5)


@given(differences)
def test_the_confidence_sequence_is_what_neither_side_has_rejected(d) -> None:
    low, high = confidence_sequence(d)
    for mu in np.arange(-0.9, 0.91, 0.3):
        rejected = max(e_process(d, mu, s).max() for s in ("below", "above")) >= 40
        if low + 0.01 < mu < high - 0.01:
            assert not rejected
        if mu < low - 0.01 or mu > high + 0.01:
            assert rejected


def test_differences_off_the_scale_are_refused() -> None:
    with pytest.raises(StatsError, match="outside -1"):
        e_process([1.5], 0.0, "below")
    with pytest.raises(StatsError, match="mean to test"):
        e_process([0.5], 1.0, "below")
    with pytest.raises(StatsError, match="margin"):
        SequentialGate(0.0, Strictness.SMOKE)

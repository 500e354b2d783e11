from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from evalkit.errors import StatsError
from evalkit.stats.decision import Decision, Strictness
from evalkit.stats.differences import gate_bounds
from evalkit.stats.gate import (
    counted_verdict,
    floor_verdict,
    holm_family,
    non_inferiority,
    relative_decisions,
    relative_verdict,
    win_rate_verdict,
)

NAN = math.nan
SMOKE, RELEASE = Strictness.SMOKE, Strictness.RELEASE
BOTH = pytest.mark.parametrize("strictness", list(Strictness))
differences = hnp.arrays(
    np.float64,
    st.integers(2, 80),
    elements=st.sampled_from([-1, -2 / 3, -1 / 3, 0, 1 / 3, 2 / 3, 1]),
)


def application(n: int = 60, *, broken: int = 0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two runs of n cases that pass, of which the second breaks the first `broken`."""
    rng = np.random.default_rng(seed)
    old = (rng.random((n, 3)) < 0.97).astype(float)
    new = (rng.random((n, 3)) < 0.97).astype(float)
    new[:broken] = 0
    return old, new


# --- counted


def test_one_failing_run_fails_a_hard_property() -> None:
    assert counted_verdict(np.ones((40, 3))).decision is Decision.PASS
    scores = np.ones((40, 3))
    scores[7, 1] = 0
    found = counted_verdict(scores)
    assert found.decision is Decision.FAIL
    assert found.extra["failed_cases"] == (7,)
    assert "1 of 120 runs failed" in found.sentence


def test_a_hard_property_with_a_hole_was_not_measured_unless_it_already_failed() -> None:
    scores = np.ones((40, 3))
    scores[3, 0] = NAN
    found = counted_verdict(scores)
    assert (found.decision, found.reasons) == (Decision.BROKEN, ("missing_data_decides",))
    scores[4, 0] = 0
    assert counted_verdict(scores).decision is Decision.FAIL
    assert counted_verdict(np.full((3, 1), NAN)).reasons == ("no_observations",)
    assert counted_verdict([]).decision is Decision.BROKEN
    many = np.ones((10, 1))
    many[0] = NAN
    assert counted_verdict(many).reasons == ("too_many_missing",)


# --- floors


@BOTH
def test_a_floor_is_proven_by_the_fewest_cases_and_not_by_one_less(strictness) -> None:
    enough, short = (floor_verdict([1.0] * n, 0.95, strictness=strictness) for n in (59, 58))
    assert (enough.decision, enough.finding) == (Decision.PASS, "proven")
    assert short.finding == "neither"
    assert short.cases_needed == 59
    assert "59 passing cases" in short.sentence
    assert short.decision is (Decision.PASS if strictness is SMOKE else Decision.UNDECIDED)


@BOTH
def test_repeats_do_not_prove_a_floor_that_the_cases_cannot(strictness) -> None:
    found = floor_verdict(np.ones((58, 5)), 0.95, strictness=strictness)
    assert found.finding == "neither"


def test_below_a_floor_without_being_refuted_is_undecided_at_smoke_and_fails_release() -> None:
    scores = [1.0] * 27 + [0.0] * 3
    assert floor_verdict(scores, 0.95, strictness=SMOKE).decision is Decision.UNDECIDED
    assert floor_verdict(scores, 0.95, strictness=RELEASE).decision is Decision.FAIL


@BOTH
def test_a_refuted_floor_fails(strictness) -> None:
    found = floor_verdict([[1, 0, 0]] * 30, 0.9, strictness=strictness)
    assert (found.decision, found.finding) == (Decision.FAIL, "refuted")
    assert found.upper < 0.9


@BOTH
def test_a_point_on_the_floor_is_not_below_it(strictness) -> None:
    found = floor_verdict([1.0] * 9 + [0.0], 0.9, strictness=strictness)
    assert found.decision is (Decision.PASS if strictness is SMOKE else Decision.UNDECIDED)


def test_missing_verdicts_break_a_floor_when_many_or_when_they_decide() -> None:
    many = [1.0] * 90 + [NAN] * 10
    found = floor_verdict(many, 0.5, strictness=SMOKE)
    assert (found.decision, found.reasons) == (Decision.BROKEN, ("too_many_missing",))
    deciding = [1.0] * 59 + [NAN] * 3
    found = floor_verdict(deciding, 0.95, strictness=RELEASE)
    assert (found.decision, found.reasons) == (Decision.BROKEN, ("missing_data_decides",))
    harmless = [1.0] * 90 + [NAN] * 3
    found = floor_verdict(harmless, 0.5, strictness=RELEASE)
    assert found.decision is Decision.PASS
    assert found.interval.bounds == pytest.approx((90 / 93, 1.0))
    assert "3 observations missing" in found.sentence


def test_a_mean_on_a_scale_has_a_floor_in_its_own_unit() -> None:
    scores = [[4, 5, 4], [5, 5, 5], [3, 4, 4]] * 30
    found = floor_verdict(scores, 4.0, strictness=RELEASE, score_range=(1, 5))
    assert found.decision is Decision.PASS
    assert 4.0 <= found.lower < found.interval.estimate
    with pytest.raises(StatsError, match="floor 5 must lie strictly inside"):
        floor_verdict(scores, 5.0, strictness=SMOKE, score_range=(1, 5))


@BOTH
@given(
    scores=hnp.arrays(np.float64, (12, 3), elements=st.sampled_from([0, 1, NAN])),
    floor=st.floats(0.05, 0.95),
)
def test_no_floor_passes_on_nothing_and_every_ruling_speaks(strictness, scores, floor) -> None:
    found = floor_verdict(scores, floor, strictness=strictness)
    assert found.sentence
    if np.isnan(scores).mean() > 0.05:
        assert found.decision is Decision.BROKEN
    if found.decision is Decision.PASS and strictness is RELEASE:
        assert found.lower >= floor


# --- relative


@given(differences)
def test_the_lower_bound_is_the_least_of_three_and_brackets_the_mean(d) -> None:
    found = gate_bounds(d)
    assert found.lower == min(found.lower_t, found.lower_score, found.lower_guard)
    assert found.lower <= found.delta + 1e-12
    assert found.upper >= found.delta - 1e-12


@given(st.lists(differences, min_size=2, max_size=4))
def test_replications_do_not_touch_each_other(many) -> None:
    n = min(len(d) for d in many)
    stack = np.stack([d[:n] for d in many])
    together = gate_bounds(stack)
    apart = [float(gate_bounds(row).lower) for row in stack]
    assert together.lower == pytest.approx(apart, abs=1e-12)
    both = [relative_decisions(stack, 0.1, strictness=s) for s in Strictness]
    for strictness, found in zip(Strictness, both, strict=True):
        for row, decision in zip(stack, found, strict=True):
            assert decision == relative_decisions(row, 0.1, strictness=strictness)


@pytest.mark.parametrize(("margin", "n"), [(0.10, 29), (0.05, 59), (0.03, 99), (0.02, 149)])
def test_too_few_cases_are_never_non_inferior_without_a_change(margin: float, n: int) -> None:
    assert non_inferiority(np.zeros(n - 1), margin).finding == "UNDECIDED"
    # at n the guard alone allows it; the score bound still asks for a few more
    assert gate_bounds(np.zeros(n)).lower_guard > -margin


@BOTH
def test_the_clear_cases(strictness) -> None:
    same = relative_verdict(*application(120), 0.10, strictness=strictness)
    assert (same.decision, same.finding) == (Decision.PASS, "NON_INFERIOR")
    assert "not worse by the margin or more" in same.sentence
    broken = relative_verdict(*application(120, broken=40), 0.10, strictness=strictness)
    assert (broken.decision, broken.finding) == (Decision.FAIL, "INFERIOR")
    assert "worse by more than the margin" in broken.sentence


def test_a_shown_drop_blocks_smoke_and_not_being_shown_inside_blocks_release() -> None:
    old, new = application(60, broken=5)
    smoke = relative_verdict(old, new, 0.05, strictness=SMOKE)
    assert smoke.decision is Decision.FAIL
    assert smoke.p < 0.05
    assert relative_verdict(old, new, 0.05, strictness=RELEASE).decision is Decision.UNDECIDED


def test_significant_but_inside_the_margin_is_allowed_and_named() -> None:
    old, new = application(300, broken=12)
    for strictness in Strictness:
        found = relative_verdict(old, new, 0.15, strictness=strictness)
        assert found.decision is Decision.PASS
        assert found.p < 0.05
        assert found.sentence.startswith("worse, within the margin")


def test_undecided_at_release_says_how_many_cases_it_takes() -> None:
    old, new = application(20)
    found = relative_verdict(old, new, 0.05, strictness=RELEASE)
    assert found.decision is Decision.UNDECIDED
    assert found.cases_needed >= 59
    assert f"cases needed: {found.cases_needed}" in found.sentence
    assert "small_set" in found.reasons
    smoke = relative_verdict(old, new, 0.05, strictness=SMOKE)
    assert smoke.decision is Decision.UNDECIDED
    assert "not distinguished" in smoke.sentence
    assert "would have been found with 80 % power" in smoke.sentence


@BOTH
def test_nobody_changed_and_every_case_equal_is_no_proof_on_a_small_set(strictness) -> None:
    found = relative_verdict([[1.0]] * 20, [[1.0]] * 20, 0.05, strictness=strictness)
    assert found.decision is Decision.UNDECIDED
    assert found.lower == pytest.approx(-(1 - 0.05 ** (1 / 20)))


def test_a_uniform_drop_is_judged_by_the_exact_sign_flip() -> None:
    old, new = [[0.9]] * 8, [[0.5]] * 8
    found = relative_verdict(old, new, 0.05, strictness=SMOKE)
    assert found.p == 2.0**-8
    assert found.decision is Decision.FAIL
    lone = relative_verdict([[0.9]] * 4, [[0.5]] * 4, 0.05, strictness=SMOKE)
    assert lone.p == 2.0**-4
    assert lone.decision is Decision.UNDECIDED


def test_a_score_scale_is_judged_in_its_own_unit() -> None:
    old, new = application(120)
    rate = relative_verdict(old, new, 0.10, strictness=RELEASE)
    scale = relative_verdict(1 + 4 * old, 1 + 4 * new, 0.4, strictness=RELEASE, score_range=(1, 5))
    assert scale.decision is rate.decision
    assert scale.lower == pytest.approx(4 * rate.lower)
    assert "points" in rate.sentence
    assert "points" not in scale.sentence


def test_a_judge_that_blurs_differences_shrinks_the_margin() -> None:
    old, new = application(120)
    plain = relative_verdict(old, new, 0.10, strictness=RELEASE, judged=True)
    assert "margin_not_judge_adjusted" in plain.reasons
    assert "not adjusted" in plain.sentence
    adjusted = relative_verdict(old, new, 0.10, strictness=RELEASE, judged=True, judge_j=0.49)
    assert adjusted.extra["margin_used"] == pytest.approx(0.049)
    useless = relative_verdict(old, new, 0.10, strictness=RELEASE, judge_j=-0.1)
    assert useless.decision is Decision.BROKEN
    assert "judge_not_informative" in useless.reasons


def test_missing_observations_break_a_comparison_when_many_or_when_they_decide() -> None:
    old, new = application(60)
    new[:10] = NAN
    found = relative_verdict(old, new, 0.10, strictness=SMOKE)
    assert (found.decision, found.reasons[-1]) == (Decision.BROKEN, "too_many_missing")
    old, new = np.ones((60, 1)), np.ones((60, 1))
    new[:3] = NAN
    found = relative_verdict(old, new, 0.10, strictness=RELEASE)
    assert (found.decision, found.reasons[-1]) == (Decision.BROKEN, "missing_data_decides")
    assert "cases_without_pair" in found.reasons
    new[:3] = 1
    new[0] = NAN
    found = relative_verdict(old, new, 0.10, strictness=RELEASE)
    assert found.decision is Decision.PASS
    assert found.interval.n_missing == 1
    new[:4] = NAN
    one_sided = relative_verdict(old, new, 0.10, strictness=SMOKE)
    assert one_sided.reasons[-1] == "too_many_missing"  # 4 of 60 on one side, not 4 of 120
    empty = relative_verdict(old, np.full((60, 1), NAN), 0.10, strictness=SMOKE)
    assert empty.decision is Decision.BROKEN


@BOTH
def test_no_pairs_is_broken_and_one_pair_undecided(strictness) -> None:
    none = relative_verdict([], [], 0.05, strictness=strictness)
    assert (none.decision, none.reasons[-1]) == (Decision.BROKEN, "no_pairs")
    one = relative_verdict([[1.0]], [[0.0]], 0.05, strictness=strictness)
    assert (one.decision, one.reasons[-1]) == (Decision.UNDECIDED, "n_lt_2")


@pytest.mark.parametrize("margin", [0.0, -0.1, 1.0])
def test_a_margin_of_nothing_or_of_everything_is_refused(margin: float) -> None:
    with pytest.raises(StatsError, match="margin"):
        relative_verdict([[1.0]] * 9, [[1.0]] * 9, margin, strictness=SMOKE)
    with pytest.raises(StatsError, match="margin"):
        non_inferiority(np.zeros(9), margin)


@given(differences, st.floats(0.01, 0.5), st.floats(0.01, 0.4))
def test_what_passes_passes_a_wider_margin_and_what_fails_fails_a_narrower(d, margin, more) -> None:
    for strictness in Strictness:
        here = relative_decisions(d, margin, strictness=strictness)
        wider = relative_decisions(d, margin + more, strictness=strictness)
        assert here != "PASS" or wider == "PASS"
        assert wider != "FAIL" or here == "FAIL"


@BOTH
def test_a_ruling_is_plain_json_without_nan(strictness) -> None:
    rulings = [
        relative_verdict(*application(30), 0.05, strictness=strictness),
        relative_verdict([], [], 0.05, strictness=strictness),
        floor_verdict([NAN], 0.5, strictness=strictness),
        counted_verdict(np.ones((4, 2)), strictness=strictness),
    ]
    for ruling in rulings:
        back = json.loads(json.dumps(ruling.as_json(), allow_nan=False))
        assert back["decision"] == ruling.decision


# --- win rate and families


def test_a_win_rate_is_undecided_at_release_when_its_bounds_hold_it() -> None:
    scores = [[1.0], [0.5], [0.0], [0.5]] * 10
    assert win_rate_verdict(scores, 0.45, strictness=SMOKE).decision is Decision.PASS
    found = win_rate_verdict(scores, 0.55, strictness=RELEASE)
    assert (found.decision, found.rule) == (Decision.UNDECIDED, "win_rate")
    assert win_rate_verdict(scores, 0.30, strictness=RELEASE).decision is Decision.PASS
    assert win_rate_verdict(scores, 0.75, strictness=RELEASE).decision is Decision.FAIL


def test_missing_verdicts_of_an_open_win_rate_do_not_break_it() -> None:
    scores = [[1.0], [0.5], [0.0], [0.5]] * 10 + [[NAN]]
    found = win_rate_verdict(scores, 0.5, strictness=RELEASE)
    assert found.decision is Decision.UNDECIDED
    assert floor_verdict(scores, 0.5, strictness=RELEASE).decision is Decision.BROKEN


@pytest.mark.parametrize(
    ("ruling", "says"),
    [
        (counted_verdict([[1.0], [NAN]] + [[1.0]] * 30), "the missing observations would decide"),
        (floor_verdict([1.0, NAN], 0.5, strictness=SMOKE), "more than 5 %"),
        (floor_verdict([NAN], 0.5, strictness=SMOKE), "no observation has a score"),
        (relative_verdict([1.0] * 9, [1.0] * 8 + [NAN], 0.1, strictness=SMOKE), "more than 5 %"),
        (relative_verdict([], [], 0.1, strictness=SMOKE), "no case has a score on both sides"),
        (
            relative_verdict([1.0] * 60, [1.0] * 57 + [NAN] * 3, 0.06, strictness=RELEASE),
            "the missing observations would decide; +0.0 points",
        ),
    ],
)
def test_what_was_not_measured_says_why(ruling, says) -> None:
    assert ruling.decision is Decision.BROKEN
    assert ruling.sentence.startswith("not measured: ")
    assert says in ruling.sentence


def test_alarms_of_a_family_need_holm_and_release_rulings_do_not() -> None:
    old, new = application(60, broken=3)
    alarm = relative_verdict(old, new, 0.05, strictness=SMOKE)
    assert alarm.decision is Decision.FAIL
    calm = relative_verdict(*application(60), 0.05, strictness=SMOKE)
    family = holm_family([alarm, calm, calm, calm, floor_verdict([1.0] * 9, 0.5, strictness=SMOKE)])
    assert family[0].decision is Decision.UNDECIDED
    assert family[0].extra["p_holm"] == pytest.approx(4 * alarm.p)
    assert "not_confirmed_by_holm" in family[0].reasons
    assert family[4].rule == "floor"
    assert holm_family([alarm])[0].decision is Decision.FAIL
    released = relative_verdict(*application(60, broken=30), 0.05, strictness=RELEASE)
    assert holm_family([released] * 9)[0] is released

from __future__ import annotations

import math

import numpy as np
import pytest

from evalkit.errors import StatsError
from evalkit.stats.admission import (
    Bars,
    BinaryRuling,
    Diagnosis,
    JudgeState,
    admit,
    admit_binary,
    drift_check,
    judge_state,
)
from evalkit.stats.agreement import agreement, binary_agreement
from evalkit.stats.decision import Direction

BANDS = range(1, 7)
# human bands in rows, 20 items each; the judge ranks well and never awards a 5 or a 6
COMPRESSED = (
    (2, 18, 0, 0, 0, 0),
    (1, 17, 2, 0, 0, 0),
    (0, 12, 8, 0, 0, 0),
    (0, 3, 17, 0, 0, 0),
    (0, 1, 16, 3, 0, 0),
    (0, 0, 11, 9, 0, 0),
)


def scores(table: tuple[tuple[int, ...], ...]) -> tuple[list[int], list[int]]:
    cells = [
        (h, j) for h, row in enumerate(table, 1) for j, n in enumerate(row, 1) for _ in range(n)
    ]
    return [h for h, _ in cells], [j for _, j in cells]


def noisy(n: int, noise: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    human = np.resize(np.arange(1, 7), n)
    return human, np.clip(np.round(human + rng.normal(0, noise, n)), 1, 6).astype(int)


def test_a_strong_ranking_compressed_judge_is_marginal_with_a_scale_problem() -> None:
    found = admit(*scores(COMPRESSED), BANDS)
    assert found.qwk.estimate == pytest.approx(0.456, abs=0.005)
    assert found.spearman.estimate == pytest.approx(0.813, abs=0.005)
    assert found.agreement.mean_judge == pytest.approx(2.63, abs=0.01)
    assert found.agreement.never_awarded == (5, 6)
    assert found.state is JudgeState.MARGINAL
    assert found.point_ruling is JudgeState.MARGINAL
    assert found.diagnosis is Diagnosis.SCALE_PROBLEM
    assert found.uses == ("pairwise",)
    assert "recalibrate" in found.action


def test_a_low_kappa_on_39_items_eliminates_without_confirmation() -> None:
    human, judge = scores(
        (
            (2, 1, 3, 1, 0, 0),
            (1, 2, 2, 2, 0, 0),
            (0, 2, 2, 1, 2, 0),
            (2, 1, 0, 0, 0, 3),
            (0, 3, 1, 1, 1, 0),
            (1, 0, 1, 1, 2, 1),
        )
    )
    found = admit(human, judge, BANDS)
    assert found.agreement.n == 39
    assert found.qwk.estimate == pytest.approx(0.281, abs=0.001)
    assert found.state is JudgeState.ELIMINATED
    assert not found.confirmed
    assert found.qwk_bounds[1] > 0.3
    assert "elimination_not_confirmed" in found.reasons
    assert found.uses == ()


def test_34_of_40_with_5_of_9_negatives_is_not_enough_to_automate() -> None:
    found = admit_binary(binary_agreement(tp=29, fn=2, fp=4, tn=5))
    assert found.ruling is BinaryRuling.NOT_ASSESSABLE
    assert found.uses == ()
    assert "too_few_minority_examples" in found.reasons
    assert "minority_recall_below_bar" in found.reasons
    interval = found.agreement.recall_minority
    assert (round(interval.ci_low, 2), round(interval.ci_high, 2)) == (0.27, 0.81)


@pytest.mark.parametrize(
    ("q", "low", "high", "state", "confirmed"),
    [
        (0.7, 0.55, 0.8, JudgeState.CREDIBLE, True),
        (0.5, 0.5, 0.6, JudgeState.CREDIBLE, True),
        (0.6, 0.45, 0.7, JudgeState.MARGINAL, False),
        (0.6, math.nan, math.nan, JudgeState.MARGINAL, False),
        (0.3, 0.1, 0.45, JudgeState.MARGINAL, False),
        (0.29, 0.1, 0.35, JudgeState.ELIMINATED, False),
        (0.1, -0.1, 0.29, JudgeState.ELIMINATED, True),
        (0.0, math.nan, math.nan, JudgeState.ELIMINATED, False),
        (math.nan, math.nan, math.nan, JudgeState.NOT_ASSESSABLE, False),
    ],
)
def test_the_table_of_states(
    q: float, low: float, high: float, state: JudgeState, confirmed: bool
) -> None:
    assert judge_state(q, low, high, Bars()) == (state, confirmed)


def test_a_bar_reached_without_proof_says_how_many_items_would_do() -> None:
    human, judge = noisy(40, 2.3, seed=4)
    found = admit(human, judge, BANDS)
    assert found.point_ruling is JudgeState.CREDIBLE
    assert found.state is JudgeState.MARGINAL
    assert "bar_reached_not_proven" in found.reasons
    assert found.pairs_needed is not None
    assert found.pairs_needed > 40


def test_a_good_judge_is_credible_for_both_uses() -> None:
    found = admit(*noisy(120, 0.8), BANDS)
    assert (found.state, found.diagnosis) == (JudgeState.CREDIBLE, Diagnosis.OK)
    assert found.confirmed
    assert found.uses == ("scale", "pairwise")


def test_a_perfect_judge_is_credible_by_its_bound() -> None:
    human = np.resize(np.arange(1, 7), 60)
    found = admit(human, human, BANDS)
    assert (found.state, found.diagnosis) == (JudgeState.CREDIBLE, Diagnosis.OK)
    assert 0.5 < found.qwk_bounds[0] < 1


def test_an_anchor_without_people_eliminates_and_never_admits() -> None:
    good = admit(*noisy(120, 0.8), BANDS, provenance="synthetic")
    assert good.state is JudgeState.NOT_CERTIFIED
    assert (good.uses, good.confirmed) == ((), False)
    bad = admit(*noisy(120, 9.0), BANDS, provenance="model")
    assert bad.state is JudgeState.ELIMINATED
    few = admit(*noisy(12, 0.8), BANDS, provenance="synthetic")
    assert few.state is JudgeState.NOT_CERTIFIED


@pytest.mark.parametrize(
    ("human", "judge", "reason"),
    [
        ([1, 2, 3] * 9, [1, 2, 3] * 9, "too_few_pairs"),
        ([3] * 40, [1, 2, 3, 4] * 10, "constant_anchor"),
        ([3, 4] * 20, [3, 4] * 20, "too_few_bands"),
        ([1, 2, 3, 4] * 10, [1, 2, 3, 4] * 9 + [math.nan] * 4, "too_many_invalid"),
    ],
)
def test_an_anchor_that_cannot_tell_says_why(
    human: list[float], judge: list[float], reason: str
) -> None:
    found = admit(human, judge, BANDS)
    assert found.state is JudgeState.NOT_ASSESSABLE
    assert found.reasons[0] == reason
    assert (found.uses, found.diagnosis) == ((), Diagnosis.NONE)


def test_a_constant_judge_is_out_but_nothing_confirms_it() -> None:
    found = admit([1, 2, 3, 4] * 10, [3] * 40, BANDS)
    assert (found.state, found.confirmed) == (JudgeState.ELIMINATED, False)
    assert "constant_judge" in found.reasons


def test_bars_must_make_sense() -> None:
    with pytest.raises(StatsError, match="lower bar"):
        Bars(credible=0.3, out=0.5)


@pytest.mark.parametrize(
    ("counts", "ruling", "reason"),
    [
        ((80, 2, 2, 16), BinaryRuling.AUTOMATE, None),
        ((50, 12, 6, 10), BinaryRuling.REWORK_RUBRIC, "kappa_below_bar"),
        ((80, 2, 7, 13), BinaryRuling.KEEP_HUMAN, "minority_recall_below_bar"),
        ((20, 1, 2, 9), BinaryRuling.KEEP_HUMAN, "minority_recall_not_proven"),
        ((90, 2, 1, 4), BinaryRuling.NOT_ASSESSABLE, "too_few_minority_examples"),
        ((0, 0, 0, 0), BinaryRuling.NOT_ASSESSABLE, "too_few_minority_examples"),
    ],
)
def test_rulings_on_yes_no_judges(
    counts: tuple[int, int, int, int], ruling: BinaryRuling, reason: str | None
) -> None:
    found = admit_binary(binary_agreement(*counts))
    assert found.ruling is ruling
    assert reason is None or reason in found.reasons
    assert found.uses == (("criterion",) if ruling is BinaryRuling.AUTOMATE else ())


def test_unread_verdicts_and_machine_labels_stop_automation() -> None:
    unread = admit_binary(binary_agreement(80, 2, 2, 16, n_invalid=10))
    assert unread.ruling is BinaryRuling.NOT_ASSESSABLE
    assert unread.agreement.agreement.n_invalid == 10
    machine = admit_binary(binary_agreement(80, 2, 2, 16), provenance="synthetic")
    assert machine.ruling is BinaryRuling.NOT_CERTIFIED
    assert machine.uses == ()


def test_kappa_at_high_prevalence_is_not_left_alone() -> None:
    found = binary_agreement(tp=35, fn=2, fp=2, tn=1)
    assert found.agreement.estimate == 0.9
    assert found.kappa.estimate < 0.3
    assert found.reasons == ("kappa_not_interpretable_alone",)
    assert found.ac1.estimate > 0.8


def test_a_negative_count_is_refused() -> None:
    with pytest.raises(StatsError, match="counts"):
        binary_agreement(-1, 2, 3, 4)


def test_a_judge_that_got_worse_is_revoked_and_one_that_did_not_is_kept() -> None:
    human = np.resize(np.arange(1, 7), 60)
    then = np.clip(human + np.resize([0, 1, 0, -1], 60), 1, 6)
    worse = np.clip(human + np.resize([2, 1, -2, -1], 60), 1, 6)
    kept = drift_check(human, then, then, span=5)
    assert (kept.direction, kept.revoked) == (Direction.NOT_DISTINGUISHED, False)
    gone = drift_check(human, then, worse, span=5)
    assert (gone.direction, gone.revoked) == (Direction.REGRESSED, True)
    assert gone.change.ci_high < 0
    few = drift_check(human[:20], then[:20], then[:20], span=5)
    assert "too_few_pairs" in few.reasons


def test_the_report_counts_every_pair_once_and_names_unused_bands() -> None:
    human = [1, 2, 3, 3, math.nan, 2]
    judge = [1.5, 2.0, 2.5, math.nan, 1.0, 2.4]
    found = agreement(human, judge, range(1, 4), rounding="half_up")
    assert (found.n, found.n_missing, found.n_invalid) == (4, 1, 1)
    assert sum(map(sum, found.confusion)) == 4
    assert found.recall[3].estimate == 1.0
    assert found.never_awarded == (1,)
    assert found.precision[1].reasons == ("never_awarded",)
    assert found.bias.estimate == pytest.approx(0.1)  # before rounding
    assert (found.recall[3].n_invalid, found.recall[2].n_invalid) == (1, 0)
    assert found.recall[3].bounds == (0.5, 1.0)  # the unread verdict wrong, and right
    assert found.percent.bounds == pytest.approx((3 / 5, 4 / 5))


def test_a_band_without_a_human_example_has_no_recall() -> None:
    found = agreement([1, 2, 2], [1, 2, 3], range(1, 4))
    assert math.isnan(found.recall[3].estimate)
    assert found.recall[3].reasons == ("no_human_example",)


def test_words_have_agreement_but_no_bias_in_numbers() -> None:
    found = agreement(["yes", "no", "no", "yes"], ["yes", "no", "yes", "yes"], ["no", "yes"])
    assert found.percent.estimate == 0.75
    assert found.prevalence_index == pytest.approx(0.25)
    assert found.bias_index == pytest.approx(0.25)


def test_weights_move_counts_and_say_so() -> None:
    human, judge = [1, 1, 2, 2], [1, 2, 2, 2]
    found = agreement(human, judge, (1, 2), weights=[1, 3, 1, 1])
    assert found.percent.estimate == pytest.approx(0.5)
    assert "weights_on_counts_only" in found.reasons
    assert found.percent.n_cases == 4

"""Every figure of one recorded judge, computed by the statistics room, under the reference's names.

`reference_values.json` of the recorded data was computed with other software; these blocks have its
shape, so that the two can be compared leaf by leaf.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalkit.stats.admission import Admission, JudgeState, admit
from evalkit.stats.agreement import (
    agreement,
    cohen_kappa,
    fleiss_kappa,
    gwet_ac1,
    krippendorff_alpha,
)
from evalkit.stats.compare import mcnemar
from evalkit.stats.intervals import wilson_interval
from evalkit.stats.pairwise import Outcome, sign_test_p, swap_protocol
from evalkit.stats.quantiles import normal_quantile, t_below
from evalkit.stats.recalibration import recalibrate

__all__ = [
    "Block",
    "differences",
    "isotonic_block",
    "nominal_block",
    "ordinal_block",
    "pair_block",
    "raters_block",
]

Block = dict[str, Any]
Floats = NDArray[np.float64]
BANDS = {
    JudgeState.CREDIBLE: "credible",
    JudgeState.MARGINAL: "marginal",
    JudgeState.ELIMINATED: "rejected",
}


def ordinal_block(
    human: Sequence[float | None],
    judge: Sequence[float | None],
    categories: Sequence[int],
) -> tuple[Block, Admission]:
    """Scores on a scale, None where there is none."""
    kept = [(h, j) for h, j in zip(human, judge, strict=True) if h is not None and j is not None]
    h = np.array([pair[0] for pair in kept], dtype=np.float64)
    j = np.array([pair[1] for pair in kept], dtype=np.float64)
    whole = bool(np.all(h == np.round(h)) and np.all(j == np.round(j)))
    ruled = admit(h, j, categories, rounding=None if whole else "half_up")
    found = ruled.agreement
    t, n = -float(found.bias.extra["t"]), len(h)
    block: Block = {
        "n": n,
        "mean_human": found.mean_human,
        "mean_judge": found.mean_judge,
        "bias_judge_minus_human": found.bias.estimate,
        "sd_human_ddof1": float(h.std(ddof=1)),
        "sd_judge_ddof1": float(j.std(ddof=1)),
        "mae": found.mae,
        "rmse": found.rmse,
        "spearman": found.spearman.estimate,
        "pearson": found.pearson.estimate,
        "kendall_tau_b": found.kendall_tau_b,
        "paired_t": t,
        "paired_t_p": 2 * float(t_below(n - 1, -abs(t))),
        "all_integer": whole,
        "exact_agreement": found.percent.estimate,
        "within_1": found.within_one,
        "kappa": found.kappa.estimate,
        "kappa_linear": found.kappa_linear.estimate,
        "qwk": found.qwk.estimate,
        "confusion_rows_human_cols_judge": {
            "labels": list(categories),
            "matrix": [list(row) for row in found.confusion],
        },
        "band": BANDS[ruled.point_ruling],
    }
    if np.ptp(j) == 0:
        constant: Block = {"n": n, "constant": j[0], "qwk": found.qwk.estimate, "rmse": found.rmse}
        return constant, ruled
    return block, ruled


def isotonic_block(
    human: Sequence[float | None], judge: Sequence[float | None], categories: Sequence[int]
) -> Block:
    """Recalibration with five folds by row, once; empty where the product refuses to fit a map."""
    kept = [(h, j) for h, j in zip(human, judge, strict=True) if h is not None and j is not None]
    h, j = np.array(kept, dtype=np.float64).T
    found = recalibrate(h, j, categories, fold_ids=np.arange(len(h)) % 5, rounding="half_up")
    if found.map is None:
        return {}
    return {
        "qwk_before": found.qwk_raw.estimate,
        "qwk_in_sample": found.qwk_in_sample,
        "qwk_held_out": found.qwk_held_out.estimate,
        "mae_before": found.mae_raw,
        "mae_in_sample": found.mae_in_sample,
        "mae_held_out": found.mae_held_out,
        "bias_held_out": found.bias_held_out,
        "spearman_held_out": found.spearman_held_out,
    }


def nominal_block(gold: Sequence[str], said: Sequence[str | None], labels: Sequence[str]) -> Block:
    """Words against words; None is a reply that is no label."""
    found = agreement(gold, said, labels, n_boot=0)
    table = np.array(found.confusion)
    hits, kappa = float(np.trace(table)), found.kappa
    se, z = float(kappa.extra["se"]), normal_quantile(0.975)
    per_label = {
        label: {
            "precision": _or_zero(found.precision[label].estimate),
            "recall": _or_zero(found.recall[label].estimate),
            "f1": _ratio(2 * table[i, i], table[i].sum() + table[:, i].sum()),
            "support": float(table[i].sum()),
        }
        for i, label in enumerate(labels)
    }
    return {
        "n": len(gold),
        "unusable": found.n_invalid,
        "accuracy_usable_only": found.percent.estimate,
        "accuracy_unusable_counted_wrong": hits / len(gold),
        "kappa_usable_only": kappa.estimate,
        "kappa_se_statsmodels": se,
        "kappa_95ci_statsmodels": [kappa.estimate - z * se, kappa.estimate + z * se],
        "confusion_rows_gold_cols_judge": {
            "labels": list(labels),
            "matrix": [list(row) for row in found.confusion],
        },
        "per_label": per_label,
        "macro": {
            name: float(np.mean([per_label[label][name] for label in labels]))
            for name in ("precision", "recall", "f1")
        },
    }


def raters_block(
    ratings: Mapping[str, Sequence[Hashable]], categories: Sequence[Hashable], *, ordered: bool
) -> Block:
    """Agreement among annotators: the ceiling for any judge."""
    rows = [list(column) for column in ratings.values()]
    how: dict[str, Any] = {"n_boot": 0}
    distances = ("nominal", "ordinal", "interval") if ordered else ("nominal",)
    return {
        "n_items": len(rows[0]),
        "n_raters": len(rows),
        "items_all_agree": sum(len(set(item)) == 1 for item in zip(*rows, strict=True)),
        "pairwise_kappa": {
            f"{a}~{b}": cohen_kappa(ratings[a], ratings[b], categories).estimate
            for a, b in combinations(ratings, 2)
        },
        "fleiss_kappa": fleiss_kappa(rows, categories, **how).estimate,
        **{
            f"krippendorff_{d}": krippendorff_alpha(rows, categories, distance=d, **how).estimate
            for d in distances
        },
        "gwet_ac1": gwet_ac1(rows, categories, **how).estimate,
    }


def pair_block(rows: Sequence[Mapping[str, str | None]], *, short: bool = False) -> Block:
    """One judge and prompt: each item in both orders; rows hold order, picked, winner and gold."""
    ab = [row for row in rows if row["order"] == "AB"]
    by_item = {row["item_id"]: row for row in rows if row["order"] == "BA"}
    ba = [by_item[row["item_id"]] for row in ab]
    gold = [row["gold"] for row in ab]
    n = len(ab)
    swap = swap_protocol([(a["picked"], b["picked"]) for a, b in zip(ab, ba, strict=True)])
    decided = [o.value.upper() if o in (Outcome.A, Outcome.B) else "tie" for o in swap.outcomes]
    right = sum(d == g for d, g in zip(decided, gold, strict=True))
    counts = Counter(decided)
    hits_ab = [a["winner"] == g for a, g in zip(ab, gold, strict=True)]
    hits_ba = [b["winner"] == g for b, g in zip(ba, gold, strict=True)]
    block: Block = {
        "correct_AB": sum(hits_ab),
        "correct_BA": sum(hits_ba),
        "correct_both": right,
        "accuracy_mean_of_orders": (sum(hits_ab) + sum(hits_ba)) / (2 * n),
        "missing_either": swap.invalid,
        "swap_consistent": swap.consistent,
        "swap_consistency_of_all_items": swap.consistent / n,
        "decided": {
            **{word: counts[word] for word in ("A", "B", "tie")},
            "right": right,
            "wrong": n - counts["tie"] - right,
            "right_rate_of_all": right / n,
            "right_rate_wilson95": _wilson(right, n),
            "right_rate_of_decided": _ratio(right, n - counts["tie"]),
            "gate_0_7": "pass" if right / n >= 0.7 else "fail",
        },
    }
    if short:
        return block | {"first_rate": swap.first_share.estimate}
    return block | _orders(ab, ba, gold, hits_ab, hits_ba, swap.swap_consistency.estimate)


def differences(ours: Any, theirs: Any, at: str = "", *, tolerance: float = 1e-6) -> list[str]:
    """Where our figures differ from the reference, leaf by leaf; what we do not have is skipped."""
    if isinstance(ours, Mapping):
        if not isinstance(theirs, Mapping):
            return [f"{at}: {theirs!r} in the reference"]
        return [
            line
            for key, value in ours.items()
            for line in (
                differences(value, theirs[str(key)], f"{at}/{key}", tolerance=tolerance)
                if str(key) in theirs
                else [f"{at}/{key}: not in the reference"]
            )
        ]
    if isinstance(ours, (list, tuple)):
        if not isinstance(theirs, list) or len(ours) != len(theirs):
            return [f"{at}: {theirs!r} in the reference"]
        return [
            line
            for i, (a, b) in enumerate(zip(ours, theirs, strict=True))
            for line in differences(a, b, f"{at}[{i}]", tolerance=tolerance)
        ]
    if isinstance(ours, (bool, str)) or ours is None or theirs is None:
        undefined = theirs is None and isinstance(ours, float) and math.isnan(ours)
        return [] if ours == theirs or undefined else [f"{at}: {ours!r}, reference {theirs!r}"]
    close = math.isclose(float(ours), float(theirs), rel_tol=tolerance, abs_tol=tolerance)
    return [] if close else [f"{at}: {float(ours):.10g}, reference {theirs}"]


def _orders(
    ab: Sequence[Mapping[str, str | None]],
    ba: Sequence[Mapping[str, str | None]],
    gold: Sequence[str | None],
    hits_ab: Sequence[bool],
    hits_ba: Sequence[bool],
    consistency: float,
) -> Block:
    n, both = len(ab), [*ab, *ba]
    winners_ab, winners_ba = ([row["winner"] for row in rows] for rows in (ab, ba))
    parsed = [(a["picked"], b["picked"]) for a, b in zip(ab, ba, strict=True)]
    picks = Counter(row["picked"] for row in both)
    first, second = picks["first"], picks["second"]
    lean = Counter(a for a, b in parsed if a == b and a)
    firsts, seconds = lean["first"], lean["second"]
    long = [row for row in both if row["winner"] and row["len_a"] != row["len_b"]]
    longer = sum(_longer(row) == row["winner"] for row in long)
    unequal = [row for row in ab if row["len_a"] != row["len_b"]]
    gold_longer = sum(_longer(row) == row["gold"] for row in unequal)
    missing = [not (a and b) for a, b in parsed]
    same = sum(a == b for a, b in zip(winners_ab, winners_ba, strict=True))
    as_stored = [_as_stored(rows) for rows in (ab, ba)]
    stored_gold = [1 if g == "A" else 2 for g in gold]
    lost = sum(b and not a for a, b in zip(hits_ab, hits_ba, strict=True))
    won = sum(a and not b for a, b in zip(hits_ab, hits_ba, strict=True))
    return {
        "n_items": n,
        "missing_AB": sum(not row["picked"] for row in ab),
        "missing_BA": sum(not row["picked"] for row in ba),
        "missing_both": sum(not a and not b for a, b in parsed),
        "accuracy_AB_wilson95": _wilson(sum(hits_ab), n),
        "same_winner_counting_missing_pairs_as_same": same,
        "both_parsed": n - sum(missing),
        "swap_consistency_of_parsed_items": consistency,
        "position": {
            "first": first,
            "second": second,
            "first_rate": first / (first + second),
            "binom_p_two_sided": sign_test_p(first, first + second),
            "pairs_first_both": firsts,
            "pairs_second_both": seconds,
            "inconsistent_sign_test_p": sign_test_p(firsts, firsts + seconds),
        },
        "kappa_vs_gold_AB": cohen_kappa(gold, winners_ab, "AB").estimate,
        "kappa_vs_gold_BA": cohen_kappa(gold, winners_ba, "AB").estimate,
        "kappa_between_orders": cohen_kappa(winners_ab, winners_ba, "AB").estimate,
        "mcnemar_exact_p_AB_vs_BA_correct": mcnemar(won, lost, n).p_exact,
        "length": {
            "verdicts_on_unequal_length": len(long),
            "picked_longer": longer,
            "picked_longer_rate": longer / len(long),
            "pairs_unequal_length_with_gold": len(unequal),
            "gold_is_longer": gold_longer,
            "gold_is_longer_rate": gold_longer / len(unequal),
            "binom_p_vs_half": sign_test_p(longer, len(long)),
        },
        # The benchmark's own kappas are wrong: its verdict 2 is stored as 0, its gold stays 1 or 2.
        "repo_kappa_as_stored": {
            "kappa_False": cohen_kappa(stored_gold, as_stored[0], (0, 1, 2)).estimate,
            "kappa_True": cohen_kappa(stored_gold, as_stored[1], (0, 1, 2)).estimate,
            "kappa_agreement": cohen_kappa(as_stored[0], as_stored[1], (0, 1, 2)).estimate,
        },
    }


def _as_stored(rows: Sequence[Mapping[str, str | None]]) -> list[int]:
    return [1 if row["winner"] == "A" else 0 for row in rows]


def _longer(row: Mapping[str, str | None]) -> str:
    return "A" if int(row["len_a"] or 0) > int(row["len_b"] or 0) else "B"


def _wilson(k: int, n: int) -> list[float]:
    found = wilson_interval(k, n)
    return [found.ci_low, found.ci_high]


def _or_zero(value: float) -> float:
    return 0.0 if math.isnan(value) else value


def _ratio(a: float, b: float) -> float:
    return float(a / b) if b else 0.0

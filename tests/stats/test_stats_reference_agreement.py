"""Every reference case of agreement, pairwise judging and corrected rates, at its tolerance.

`stats_reference.json` was computed with other people's software; each case names it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalkit.stats.agreement import (
    agreement,
    binary_agreement,
    krippendorff_alpha,
    pearson,
    quadratic_weighted_kappa,
    spearman,
)
from evalkit.stats.ceiling import band_auc
from evalkit.stats.correction import ppi_crossfit, ppi_mean, rogan_gladen
from evalkit.stats.correlation import partial_spearman
from evalkit.stats.length import length_controlled_win_rate
from evalkit.stats.pairwise import swap_protocol, win_rate_of_counts
from evalkit.stats.ranking import bradley_terry, davidson
from evalkit.stats.recalibration import fit_isotonic
from evalkit.stats.reconstruction import reconstruction_gate
from evalkit.stats.result import Interval

Values = Mapping[str, Any]
CASES = json.loads(Path(__file__).with_name("stats_reference.json").read_text("utf-8"))["cases"]


def ends(found: Interval) -> list[float] | None:
    return None if math.isnan(found.ci_low) else [found.ci_low, found.ci_high]


def agreement_case(human: Sequence[int], judge: Sequence[int], categories: Sequence[int]) -> Values:
    found = agreement(human, judge, categories)
    alpha = {
        f"alpha_{d}": krippendorff_alpha([human, judge], categories, distance=d).estimate
        for d in ("nominal", "ordinal", "interval")
    }
    return {
        "confusion": found.confusion,
        "percent_agreement": found.percent.estimate,
        "kappa": found.kappa.estimate,
        "qwk": found.qwk.estimate,
        "kappa_se": found.kappa.extra["se"],
        "qwk_se": found.qwk.extra["se"],
        "qwk_ci95_fisher": ends(found.qwk),
        "spearman": found.spearman.estimate,
        "pearson": found.pearson.estimate,
        "ac1": found.ac1.estimate,
        "ac2_quadratic": found.ac2.estimate,
        "bias_mean": found.bias.estimate,
        **alpha,
    }


def label_trap(human: Sequence[int], judge: Sequence[int], categories: Sequence[int]) -> Values:
    used = sorted({*human, *judge})
    return {
        "qwk": quadratic_weighted_kappa(human, judge, categories).estimate,
        "qwk_if_categories_inferred": quadratic_weighted_kappa(human, judge, used).estimate,
    }


def weighted(
    human: Sequence[int], judge: Sequence[int], categories: Sequence[int], weights: Sequence[float]
) -> Values:
    return {"qwk": quadratic_weighted_kappa(human, judge, categories, weights=weights).estimate}


def binary(**counts: int) -> Values:
    found = binary_agreement(**counts)
    return {
        "agreement": found.agreement.estimate,
        "agreement_ci95_wilson": ends(found.agreement),
        "kappa": found.kappa.estimate,
        "ac1": found.ac1.estimate,
        "recall_pass": found.recall_pass.estimate,
        "recall_fail": found.recall_fail.estimate,
        "recall_fail_ci95_wilson": ends(found.recall_fail),
        "precision_fail": found.precision_fail.estimate,
        "youden_j": found.youden_j,
        "prevalence_index": found.prevalence_index,
        "bias_index": found.bias_index,
    }


def alpha_with_gaps(ratings: Any, level: Any, categories: Sequence[int]) -> Values:
    return {"alpha": krippendorff_alpha(ratings, categories, distance=level).estimate}


def correlation(x: Sequence[float], y: Sequence[float], method: str) -> Values:
    found = {"spearman": spearman, "pearson": pearson}[method](x, y)
    return {"r": found.estimate, "ci95": ends(found)}


def isotonic(judge: Sequence[float], human: Sequence[float], predict: Sequence[float]) -> Values:
    found = fit_isotonic(judge, human, low=1, high=6)
    return {
        "knots_x": found.knots_x,
        "knots_y": found.knots_y,
        "predictions": found(predict).tolist(),
    }


def auc(judge_lower_band: Sequence[float], judge_upper_band: Sequence[float]) -> Values:
    found = band_auc(judge_lower_band, judge_upper_band)
    return {"auc": found.estimate, "p_mannwhitney_asymptotic": found.extra["p"]}


def swap(verdicts: Sequence[tuple[str, str]]) -> Values:
    found = swap_protocol(verdicts)
    names = ("a", "b", "tie_both", "tie_flip", "tie_half", "invalid", "primacy", "recency")
    return {
        **{name: getattr(found, name) for name in (*names, "consistent", "n_valid")},
        "swap_consistency": found.swap_consistency.estimate,
        "win_rate_a": found.win_rate.estimate,
        "preference_fairness": found.preference_fairness,
        "p_position_bias": found.p_position_bias,
    }


def winning(**counts: int) -> Values:
    found = win_rate_of_counts(**counts)
    return {
        "win_rate": found.estimate,
        "se": found.extra["se"],
        "ci95_t": ends(found),
        "p_sign": found.extra["p_sign"],
    }


def davidson_case(counts: Sequence[Mapping[str, Any]]) -> Values:
    names = sorted({row["first"] for row in counts})
    tables = np.zeros((3, len(names), len(names)))
    for row in counts:
        at = names.index(row["first"]), names.index(row["second"])
        tables[:, *at] = row["first_wins"], row["second_wins"], row["ties"]
    found = davidson(*tables)
    return {
        "log_strength": dict(zip(names, found.strength.tolist(), strict=True)),
        "position_effect": found.position,
        "tie_log_param": found.tie,
        "position_effect_se": found.position_se,
    }


def length_control(score_a: Sequence[float], len_a: Sequence[int], len_b: Sequence[int]) -> Values:
    found = length_controlled_win_rate(score_a, len_a, len_b)
    return {
        "raw_win_rate": found.raw.estimate,
        "intercept": found.intercept,
        "length_coef": found.slope,
        "lc_win_rate": found.controlled.estimate,
    }


def partial(x: Sequence[float], y: Sequence[float], covar: Sequence[float]) -> Values:
    found = partial_spearman(x, y, covar)
    return {"partial_r": found.estimate, "raw_r": found.extra["raw"]}


def corrected(conf: float, **counts: int) -> Values:
    found = rogan_gladen(**counts, level=conf).rate
    return {
        "estimate": found.estimate,
        "unclipped": found.extra["unclipped"],
        "youden_j": found.extra["youden_j"],
        "ci": ends(found),
        "reason": found.reasons[0] if found.reasons else None,
    }


def ppi_single(labels: Any, judge_labelled: Any, judge_unlabelled: Any, alpha: float) -> Values:
    data = labels, judge_labelled, judge_unlabelled
    plain = ppi_mean(*data, tuned=False, level=1 - alpha).rate
    tuned = ppi_mean(*data, level=1 - alpha)
    return {
        "ppi": {"estimate": plain.estimate, "ci_normal_ddof0": plain.extra["ci_normal"]},
        "ppi_plus_plus": {
            "estimate": tuned.rate.estimate,
            "ci_normal_ddof0": tuned.rate.extra["ci_normal"],
            "se_ddof1": tuned.rate.extra["se"],
            "ci_t_ddof1": ends(tuned.rate),
        },
        "lambda": tuned.rate.extra["lambda"],
        "labels_only_mean": tuned.labels_only.estimate,
    }


def ppi_folds(
    labels: Any, judge_labelled: Any, judge_unlabelled: Any, folds: int, conf: float
) -> Values:
    found = ppi_crossfit(
        labels,
        judge_labelled,
        judge_unlabelled,
        folds=folds,
        fold_ids=np.arange(len(labels)) % folds,
        level=conf,
    )
    extra = found.rate.extra
    return {
        "lambda_by_fold": extra["lambda_by_fold"],
        "lambda_mean": extra["lambda"],
        "estimate": found.rate.estimate,
        "se": extra["se"],
        "n_eff": extra["n_eff"],
        "ci": ends(found.rate),
        "labels_only_mean": found.labels_only.estimate,
    }


def gate(n_correct: int, n_pairs: int, threshold: float, alpha: float) -> Values:
    found = reconstruction_gate(n_correct, n_pairs, threshold=threshold, alpha=alpha)
    return {
        "accuracy": found.accuracy.estimate,
        "p_vs_chance": found.p_vs_chance,
        "lower_bound": found.lower_bound,
        "verdict": str(found.verdict),
        "proven_at_threshold": found.proven_at_threshold,
    }


RUN: dict[str, Callable[..., Values]] = {
    "agreement": agreement_case,
    "qwk_label_trap": label_trap,
    "weighted_qwk": weighted,
    "binary_judge_report": binary,
    "krippendorff_missing": alpha_with_gaps,
    "correlation_ci": correlation,
    "isotonic_fit": isotonic,
    "band_auc": auc,
    "swap_protocol": swap,
    "win_rate": winning,
    "bradley_terry": lambda wins_matrix: {"log_strength": bradley_terry(wins_matrix).tolist()},
    "davidson_position": davidson_case,
    "length_controlled_win_rate": length_control,
    "partial_spearman": partial,
    "rogan_gladen": corrected,
    "ppi_mean": ppi_single,
    "ppi_crossfit": ppi_folds,
    "reconstruction_gate": gate,
}
KINDS = frozenset(RUN)


def same(found: Any, expected: Any, rtol: float, where: str) -> None:
    if isinstance(expected, dict):
        for key, value in expected.items():
            same(found[key], value, rtol, f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for i, (a, b) in enumerate(zip(found, expected, strict=True)):
            same(a, b, rtol, f"{where}[{i}]")
    elif expected is None:
        assert found is None or math.isnan(found), f"{where}: {found} should be undefined"
    elif isinstance(expected, (str, bool)):
        assert found == expected, where
    else:
        assert found == pytest.approx(expected, rel=rtol, abs=1e-9), where


@pytest.mark.parametrize(
    "case", [c for c in CASES if c["kind"] in KINDS], ids=lambda case: case["id"]
)
def test_reference_case(case: Mapping[str, Any]) -> None:
    same(RUN[case["kind"]](**case["inputs"]), case["expected"], case["rtol"], case["id"])

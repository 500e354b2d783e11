"""Real judges beside real people: every recorded figure that a function of the room gives.

The data lie outside the repository; `reference_values.json` beside them was computed with other
people's software and agrees with what the sources published.
"""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalkit.stats.admission import JudgeState, admit
from evalkit.stats.agreement import (
    Agreement,
    agreement,
    cohen_kappa,
    fleiss_kappa,
    gwet_ac1,
    krippendorff_alpha,
    quadratic_weighted_kappa,
)
from evalkit.stats.compare import mcnemar
from evalkit.stats.intervals import wilson_interval
from evalkit.stats.pairwise import Outcome, sign_test_p, swap_protocol
from evalkit.stats.recalibration import recalibrate
from evalkit.stats.reconstruction import ReconstructionVerdict, reconstruct
from evalkit.stats.repeats import variance_components
from evalkit.stats.result import Status

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
pytestmark = pytest.mark.skipif(
    not (DATA / "reference_values.json").exists(),
    reason="the recorded judge data are not beside the repository (../shared/data)",
)
Row = dict[str, str]
NAN = math.nan
REFERENCE: dict[str, Any] = (
    json.loads((DATA / "reference_values.json").read_text("utf-8"))
    if (DATA / "reference_values.json").exists()
    else {}
)


@cache
def table(name: str) -> list[Row]:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def block(*path: str) -> Any:
    found: Any = REFERENCE
    for key in path:
        found = found.get(key, {})
    return found


def close(found: Any, expected: Any, what: str) -> None:
    if expected is None:
        assert math.isnan(found), what
    elif isinstance(expected, (list, tuple)):
        for a, b in zip(found, expected, strict=True):
            close(a, b, what)
    else:
        assert found == pytest.approx(expected, abs=1e-6), what


def all_close(found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    for name, value in found.items():
        close(value, expected[name], name)


# ---- LLMBar: known pairs, both orders ----------------------------------------------------------


def llmbar(judge: str) -> list[tuple[Row, Row]]:
    name, prompt = judge.split("/")
    by_item: dict[str, dict[str, Row]] = {}
    for row in table("pairwise/llmbar_natural_verdicts.csv"):
        if (row["judge"], row["prompt"]) == (name, prompt):
            by_item.setdefault(row["item_id"], {})[row["order"]] = row
    return [(orders["AB"], orders["BA"]) for orders in by_item.values()]


def verdict_kappa(one: Sequence[str], two: Sequence[str]) -> float:
    """On the pairs where both name an item."""
    blank = [(a or None, b or None) for a, b in zip(one, two, strict=True)]
    return cohen_kappa([a for a, _ in blank], [b for _, b in blank], ("A", "B")).estimate


def stored_kappa(gold: Sequence[str], verdict: Sequence[str]) -> float:
    """The mistake of the source: "B" and a missing verdict become 0, gold stays 1 and 2."""
    anchor = [{"A": 1, "B": 2}[g] for g in gold]
    return cohen_kappa(anchor, [int(v == "A") for v in verdict], (0, 1, 2)).estimate


@pytest.mark.parametrize("judge", list(block("llmbar_natural_verdicts", "judges")))
def test_llmbar_judge(judge: str) -> None:
    expected = block("llmbar_natural_verdicts", "judges", judge)
    pairs = llmbar(judge)
    found = swap_protocol([(ab["picked"] or None, ba["picked"] or None) for ab, ba in pairs])
    gold = [ab["gold"] for ab, _ in pairs]
    ab, ba = [r["winner"] for r, _ in pairs], [r["winner"] for _, r in pairs]
    right_ab = [w == g for w, g in zip(ab, gold, strict=True)]
    right_ba = [w == g for w, g in zip(ba, gold, strict=True)]
    right = sum(a and b for a, b in zip(right_ab, right_ba, strict=True))
    first_order = wilson_interval(sum(right_ab), len(pairs))
    one_gain = sum(a and not b for a, b in zip(right_ab, right_ba, strict=True))
    other_gain = sum(b and not a for a, b in zip(right_ab, right_ba, strict=True))
    all_close(
        {
            "n_items": len(found.outcomes),
            "missing_either": found.invalid,
            "both_parsed": found.n_valid,
            "swap_consistent": found.consistent,
            "swap_consistency_of_parsed_items": found.swap_consistency.estimate,
            "swap_consistency_of_all_items": found.swap_consistency.bounds[0],
            "correct_AB": sum(right_ab),
            "correct_BA": sum(right_ba),
            "correct_both": right,
            "accuracy_mean_of_orders": (sum(right_ab) + sum(right_ba)) / (2 * len(pairs)),
            "accuracy_AB_wilson95": (first_order.ci_low, first_order.ci_high),
            "same_winner_counting_missing_pairs_as_same": sum(
                a == b for a, b in zip(ab, ba, strict=True)
            ),
            "kappa_vs_gold_AB": verdict_kappa(gold, ab),
            "kappa_vs_gold_BA": verdict_kappa(gold, ba),
            "kappa_between_orders": verdict_kappa(ab, ba),
            "mcnemar_exact_p_AB_vs_BA_correct": mcnemar(one_gain, other_gain, len(pairs)).p_exact,
        },
        expected,
    )
    decided = wilson_interval(right, len(pairs))
    all_close(
        {
            "A": found.a,
            "B": found.b,
            "tie": found.ties + found.invalid,  # the reference counts a missing verdict as a tie
            "right": right,
            "wrong": found.a + found.b - right,
            "right_rate_of_all": decided.estimate,
            "right_rate_wilson95": (decided.ci_low, decided.ci_high),
        },
        expected["decided"],
    )
    lean = Counter(r["picked"] for pair in pairs for r in pair)
    all_close(
        {
            "first": lean["first"],
            "second": lean["second"],
            "first_rate": found.first_share.estimate,
            "binom_p_two_sided": found.first_share.extra["p"],
            "pairs_first_both": found.primacy,
            "pairs_second_both": found.recency,
            "inconsistent_sign_test_p": found.p_position_bias,
        },
        expected["position"],
    )
    all_close(
        {
            "kappa_False": stored_kappa(gold, ab),
            "kappa_True": stored_kappa(gold, ba),
        },
        expected["repo_kappa_as_stored"],
    )
    longer = [
        (r["winner"] == "A") == (int(r["len_a"]) > int(r["len_b"]))
        for pair in pairs
        for r in pair
        if r["winner"] and r["len_a"] != r["len_b"]
    ]
    all_close(
        {
            "verdicts_on_unequal_length": len(longer),
            "picked_longer": sum(longer),
            "binom_p_vs_half": sign_test_p(sum(longer), len(longer)),
        },
        expected["length"],
    )


def test_the_gate_of_the_product_on_llmbar_pairs() -> None:
    def gate(judge: str) -> Any:
        marks: list[bool | None] = []
        strong: list[int] = []
        weak: list[int] = []
        for ab, ba in llmbar(judge):
            outcome = swap_protocol([(ab["picked"] or None, ba["picked"] or None)]).outcomes[0]
            marks.append(
                None if outcome is Outcome.INVALID else outcome.value == ab["gold"].lower()
            )
            lengths = int(ab["len_a"]), int(ab["len_b"])
            strong.append(lengths[ab["gold"] == "B"])
            weak.append(lengths[ab["gold"] == "A"])
        return reconstruct(marks, length_strong=strong, length_weak=weak)

    assert gate("GPT-4/CoT").verdict is ReconstructionVerdict.PASS
    # mean accuracy .815, but only 67 of 100 pairs right in both orders
    assert gate("ChatGPT/Vanilla").verdict is ReconstructionVerdict.FAIL
    assert gate("Falcon/CoT").verdict is ReconstructionVerdict.FAIL
    # 69 of 98 valid pairs pass, 69 of 100 would not: the two missing ones decide
    undecided = gate("PaLM2/Metrics")
    assert undecided.accuracy.estimate == pytest.approx(69 / 98)
    assert undecided.verdict is ReconstructionVerdict.BROKEN
    assert undecided.reasons == ("missing_data_decides",)


@pytest.mark.parametrize("judge", list(block("llmbar_natural_raw_cot")))
@pytest.mark.parametrize("reading", ["recorded_position", "stated_position"])
def test_llmbar_replies_as_stored_and_as_said(judge: str, reading: str) -> None:
    expected = block("llmbar_natural_raw_cot", judge, reading)
    lines = (DATA / "pairwise" / "llmbar_natural_raw_cot.jsonl").read_text("utf-8").splitlines()
    by_item: dict[str, dict[str, Any]] = {}
    for row in map(json.loads, lines):
        if row["judge"] == judge:
            by_item.setdefault(row["item_id"], {})[row["order"]] = row
    words = {"a": "first", "b": "second"}
    pairs = list(by_item.values())
    found = swap_protocol([tuple(words.get(p[o][reading]) for o in ("AB", "BA")) for p in pairs])
    right = sum(
        o.value == p["AB"]["gold"].lower() for o, p in zip(found.outcomes, pairs, strict=True)
    )
    all_close(
        {
            "correct_both": right,
            "missing_either": found.invalid,
            "swap_consistent": found.consistent,
            "first_rate": found.first_share.estimate,
        },
        expected,
    )


# ---- nominal labels: PandaLM, XSTest -----------------------------------------------------------


def check_raters(ratings: list[list[Any]], categories: Sequence[Any], expected: Any) -> None:
    close(fleiss_kappa(ratings, categories).estimate, expected["fleiss_kappa"], "fleiss")
    close(gwet_ac1(ratings, categories).estimate, expected["gwet_ac1"], "AC1")
    for name in ("nominal", "ordinal", "interval"):
        if f"krippendorff_{name}" in expected:
            alpha = krippendorff_alpha(ratings, categories, distance=name)
            close(alpha.estimate, expected[f"krippendorff_{name}"], name)
            assert alpha.ci_low < alpha.estimate < alpha.ci_high
    kappas = [
        cohen_kappa(ratings[i], ratings[j], categories).estimate
        for i in range(len(ratings))
        for j in range(i + 1, len(ratings))
    ]
    close(sorted(kappas), sorted(expected["pairwise_kappa"].values()), "pairwise kappa")


def check_labels(gold: list[Any], said: list[Any], labels: Sequence[Any], expected: Any) -> None:
    found = agreement(gold, said, labels)
    assert found.n_invalid == expected["unusable"]
    close(found.confusion, expected["confusion_rows_gold_cols_judge"]["matrix"], "confusion")
    worst = found.percent.estimate * found.n / expected["n"]
    se = found.kappa.extra["se"]
    all_close(
        {
            "accuracy_usable_only": found.percent.estimate,
            "accuracy_unusable_counted_wrong": worst,
            "kappa_usable_only": found.kappa.estimate,
            "kappa_se_statsmodels": se,
        },
        expected,
    )
    for label, figures in zip(labels, expected["per_label"].values(), strict=True):
        precision, recall = found.precision[label], found.recall[label]
        assert recall.n_cases == figures["support"]
        close(recall.estimate, figures["recall"], f"recall {label}")
        if precision.defined:  # never awarded: undefined here, 0 there
            close(precision.estimate, figures["precision"], f"precision {label}")
        else:
            assert figures["precision"] == 0
            assert precision.reasons == ("never_awarded",)


def test_pandalm() -> None:
    expected, rows = block("pandalm_testset"), table("labels/pandalm_testset.csv")
    raters = [[int(r[f"annotator{i}"]) for r in rows] for i in (1, 2, 3)]
    check_raters(raters, (0, 1, 2), expected["raters"])
    gold = [Counter(votes).most_common(1)[0][0] for votes in zip(*raters, strict=True)]
    words = {"1": 1, "2": 2, "Tie": 0}
    as_tie = [words.get(r["gpt35_raw"], 0) for r in rows]
    unusable = [words.get(r["gpt35_raw"]) for r in rows]
    check_labels(gold, as_tie, (0, 1, 2), expected["gpt35_garbage_as_tie"])
    check_labels(gold, unusable, (0, 1, 2), expected["gpt35_garbage_unusable"])
    pandalm = [int(r["pandalm_raw"]) for r in rows]
    check_labels(gold, pandalm, (0, 1, 2), expected["pandalm"])
    published = expected["published"]
    assert round(100 * agreement(gold, as_tie, (0, 1, 2)).percent.estimate, 2) == pytest.approx(
        published["gpt35_percent"]["accuracy"]
    )
    assert round(100 * agreement(gold, pandalm, (0, 1, 2)).percent.estimate, 2) == pytest.approx(
        published["pandalm_percent"]["accuracy"]
    )


@pytest.mark.parametrize("model", list(block("xstest_labels")))
def test_xstest(model: str) -> None:
    expected = block("xstest_labels", model)
    rows = [r for r in table("labels/xstest_labels.csv") if r["completion_model"] == model]
    labels = ("1_full_compliance", "2_full_refusal", "3_partial_refusal")
    raters = [[r[f"annotation_{i}"] for r in rows] for i in (1, 2)]
    check_raters(raters, labels, expected["raters"])
    kappa = fleiss_kappa(raters, labels).estimate
    assert round(kappa, 2) == pytest.approx(expected["published_fleiss"])
    gold = [r["final_label"] for r in rows]
    for column, name in (("gpt4_label_raw", "gpt4"), ("strmatch_label", "string_match")):
        said = [r[column] if r[column] in labels else None for r in rows]
        check_labels(gold, said, labels, expected[name])
        refused = [None if s is None else int(s != labels[0]) for s in said]
        strict = [int(g != labels[0]) for g in gold]
        check_labels(strict, refused, (0, 1), expected[f"{name}_binary_refusal"])


# ---- ordinal scores: ASAP, SummEval, LLM-Rubric, three runs ------------------------------------

RULING = {"credible": "CREDIBLE", "marginal": "MARGINAL", "rejected": "ELIMINATED"}


def check_ordinal(human: Any, judge: Any, bands: Sequence[int], expected: Any) -> Agreement:
    h, j = np.array(human, dtype=float), np.array(judge, dtype=float)
    rounding = "half_up" if not expected.get("all_integer", True) else None
    found = agreement(h, j, bands, rounding=rounding)
    assert found.n == expected["n"]
    if "constant" in expected:
        assert found.qwk.estimate == 0
        assert found.qwk.reasons == ("constant_judge",)
        assert not found.spearman.defined
        close(found.rmse, expected["rmse"], "rmse")
        return found
    all_close(
        {
            "mean_human": found.mean_human,
            "mean_judge": found.mean_judge,
            "bias_judge_minus_human": found.bias.estimate,
            "mae": found.mae,
            "rmse": found.rmse,
            "spearman": found.spearman.estimate,
            "pearson": found.pearson.estimate,
            "kendall_tau_b": found.kendall_tau_b,
            "paired_t": -found.bias.extra["t"],
            "exact_agreement": found.percent.estimate,
            "within_1": found.within_one,
            "kappa": found.kappa.estimate,
            "kappa_linear": found.kappa_linear.estimate,
            "qwk": found.qwk.estimate,
        },
        expected,
    )
    sd = expected["sd_judge_ddof1"] / expected["sd_human_ddof1"]
    close(found.sd_ratio, sd, "sd ratio")
    close(found.confusion, expected["confusion_rows_human_cols_judge"]["matrix"], "confusion")
    admission = admit(h, j, bands, rounding=rounding)
    assert admission.point_ruling == RULING[expected["band"]]
    if "isotonic_5fold_by_row_mod_5" in expected:
        check_isotonic(h, j, bands, rounding, expected["isotonic_5fold_by_row_mod_5"])
    return found


def check_isotonic(h: Any, j: Any, bands: Any, rounding: Any, expected: Any) -> None:
    usable = ~(np.isnan(h) | np.isnan(j))
    h, j = h[usable], j[usable]
    found = recalibrate(h, j, bands, fold_ids=np.arange(len(h)) % 5, rounding=rounding)
    close(found.qwk_raw.estimate, expected["qwk_before"], "qwk before")
    if found.status is Status.INSUFFICIENT_DATA:
        assert len(np.unique(j)) < 3
        return
    all_close(
        {
            "qwk_in_sample": found.qwk_in_sample,
            "qwk_held_out": found.qwk_held_out.estimate,
            "mae_before": found.mae_raw,
            "mae_in_sample": found.mae_in_sample,
            "mae_held_out": found.mae_held_out,
            "bias_held_out": found.bias_held_out,
            "spearman_held_out": found.spearman_held_out,
        },
        expected,
    )


def number(text: str) -> float:
    return float(text) if text else NAN


@pytest.mark.parametrize(("name", "top"), [("asap_set4_gpt35", 3), ("asap_set5_gpt35", 4)])
def test_asap(name: str, top: int) -> None:
    expected, rows = block(name), table(f"ordinal/{name}.csv")
    human = [number(r["human"]) for r in rows]
    judge = [number(r["judge_score"]) for r in rows]
    found = check_ordinal(human, judge, range(top + 1), expected)
    assert round(found.qwk.estimate, 2) == pytest.approx(expected["published"]["weighted_kappa"])
    raters = [[number(r[f"rater{i}"]) for r in rows] for i in (1, 2)]
    qwk = quadratic_weighted_kappa(*raters, range(top + 1))
    close(qwk.estimate, expected["rater1_vs_rater2_qwk"], "raters")
    assert qwk.n_cases == expected["rater_pairs"]
    # marginal, with the bound as far from proof as the estimate
    assert admit(human, judge, range(top + 1)).state is JudgeState.MARGINAL


@pytest.mark.parametrize("dimension", list(block("summeval_llm_scores")))
def test_summeval(dimension: str) -> None:
    rows = [r for r in table("ordinal/summeval_llm_scores.csv") if r["dimension"] == dimension]
    expected = block("summeval_llm_scores", dimension)
    experts = [[int(r[f"expert{i}"]) for r in rows] for i in (1, 2, 3)]
    check_raters(experts, range(1, 6), expected["experts"])
    human = np.mean(experts, axis=0)
    for judge, figures in expected.items():
        if judge != "experts":
            check_ordinal(human, [number(r[judge]) for r in rows], range(1, 6), figures)


@pytest.mark.parametrize("question", list(block("llm_rubric_real", "criteria")))
def test_llm_rubric(question: str) -> None:
    rows = [r for r in table("ordinal/llm_rubric_real.csv") if r["criterion"] == question]
    expected = block("llm_rubric_real", "criteria", question)
    human = np.array([float(r["human"]) or NAN for r in rows])  # 0 is "not applicable"
    shares = np.array([[float(r[f"p{k}"]) for k in (1, 2, 3, 4)] for r in rows])
    mean = shares @ np.arange(1, 5) / shares.sum(1)
    found = check_ordinal(human, shares.argmax(1) + 1, range(1, 5), expected["argmax"])
    other = check_ordinal(human, mean, range(1, 5), expected["expected"])
    assert found.n_missing == expected["human_0_or_missing"]
    if question == "Q0":
        published = block("llm_rubric_real", "published_Q0")
        for figures, name in ((found, "argmax"), (other, "expected")):
            assert figures.rmse == pytest.approx(published[name]["rmse"], abs=1e-6)
            assert figures.kendall_tau_b == pytest.approx(published[name]["kendall"], abs=1e-6)


def test_the_same_judge_asked_three_times() -> None:
    expected = block("vicuna_gpt4_three_runs")
    rows = table("repeats/vicuna_gpt4_three_runs.csv")
    runs = [[int(r[f"score_{i}"]) for r in rows] for i in (1, 2, 3)]
    qwk = [
        quadratic_weighted_kappa(runs[i], runs[j], range(1, 6)).estimate
        for i, j in ((0, 1), (0, 2), (1, 2))
    ]
    close(qwk, list(expected["pairwise_qwk"].values()), "pairwise QWK")
    for name in ("ordinal", "interval"):
        alpha = krippendorff_alpha(runs, range(1, 6), distance=name).estimate
        close(alpha, expected[f"krippendorff_{name}"], name)
    components = variance_components(np.transpose(runs), score_range=(1, 5))
    assert components.icc1 == pytest.approx(expected["icc"]["ICC(1,1)"], abs=1e-6)

"""Every reference case of rates, repeats, pairs, gates, power, strata and the sequential gate.

The cases of agreement, pairwise and correction are in test_stats_reference_agreement.py; together
the two files cover every kind of the reference file.
"""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalkit.stats import (
    compare,
    differences,
    gate,
    intervals,
    multiplicity,
    pairs,
    permutation,
    power,
    repeats,
    sequential,
    stability,
    strata,
)

REFERENCE = json.loads((Path(__file__).parent / "stats_reference.json").read_text("utf-8"))["cases"]


def proportion_ci(x: dict[str, Any]) -> dict[str, Any]:
    k, n, level = x["k"], x["n"], x["conf"]
    found = {
        "wilson": intervals.wilson_interval(k, n, level=level),
        "clopper_pearson": intervals.clopper_pearson_interval(k, n, level=level),
        "jeffreys": intervals.jeffreys_interval(k, n, level=level),
    }
    return {name: [i.ci_low, i.ci_high] for name, i in found.items()} | {
        "estimate": found["wilson"].estimate
    }


def one_sided_lower_bound(x: dict[str, Any]) -> dict[str, Any]:
    return {"lower": intervals.exact_lower_bound(x["k"], x["n"], x["alpha"])}


def unseen_failure_guard(x: dict[str, Any]) -> dict[str, Any]:
    return {
        "q": intervals.unseen_share(x["n"], x["alpha"]),
        "n_min": intervals.cases_to_prove(1 - x["margin"], x["alpha"]),
    }


def binomial_tail_ge(x: dict[str, Any]) -> dict[str, Any]:
    return {"p_value": intervals.exact_p_at_least(x["k"], x["n"], x["p"])}


def clustered_mean_equal_repeats(x: dict[str, Any]) -> dict[str, Any]:
    found = repeats.clustered_mean(x["scores"])
    parts = repeats.variance_components(x["scores"])
    return {
        "mean": found.estimate,
        "se_clustered": found.extra["se"],
        "se_naive": found.extra["se_naive"],
        "design_effect": found.extra["design_effect"],
        "ci95_t": [found.ci_low, found.ci_high],
        "icc1": parts.icc1,
        "var_between": parts.var_between,
        "var_within": parts.var_within,
    }


def clustered_mean_unequal(x: dict[str, Any]) -> dict[str, Any]:
    found = repeats.clustered_mean(x["scores_by_case"])
    pooled = repeats.pooled_rate(x["scores_by_case"])
    return {
        "mean_of_case_means": found.estimate,
        "se_mean_of_case_means": found.extra["se"],
        "pooled_mean": pooled.estimate,
        "se_pooled_cluster_robust": pooled.extra["se"],
    }


def wilson_neff(x: dict[str, Any]) -> dict[str, Any]:
    found = repeats.pass_rate(x["scores"], conf=x["conf"])
    return {
        "estimate": found.estimate,
        "design_effect": found.extra["design_effect"],
        "n_eff": found.extra["n_eff"],
        "n_eff_adjusted": found.extra["n_eff_adjusted"],
        "ci": [found.ci_low, found.ci_high],
    }


def pass_at_k_pass_hat_k(x: dict[str, Any]) -> dict[str, Any]:
    case = [[1.0] * x["c"] + [0.0] * (x["n"] - x["c"])]
    return {
        "pass_at_k": stability.pass_at_k(case, x["k"]).estimate,
        "pass_hat_k": stability.pass_hat_k(case, x["k"]).estimate,
    }


def stability_counts(x: dict[str, Any]) -> dict[str, Any]:
    found = stability.stability(x["passes_by_case"])
    return {
        name: len(getattr(found, name))
        for name in ("always_pass", "always_fail", "flaky", "missing")
    }


def paired_t(x: dict[str, Any]) -> dict[str, Any]:
    top = (1, 5) if max(x["baseline"]) > 1 else (0, 1)
    joined = pairs.pair_up(x["baseline"], x["new"], score_range=top)
    found, narrow = (compare.compare_paired(joined, conf=c) for c in (0.95, 0.90))
    return {
        "delta": found.interval.estimate,
        "t": found.interval.extra["t"],
        "p_two_sided": found.p,
        "df": found.interval.n_cases - 1,
        "ci95": [found.interval.ci_low, found.interval.ci_high],
        "ci90": [narrow.interval.ci_low, narrow.interval.ci_high],
        "cohen_dz": found.dz,
        "se": found.interval.extra["se"],
        "seed_verdict": found.source_verdict,
    }


def paired_degenerate(x: dict[str, Any]) -> dict[str, Any]:
    # one run per case: as a scale, since pass/fail pairs get McNemar and Tango
    d = np.array(x["new"]) - np.array(x["baseline"])
    m = differences.moments(d)
    low, high = differences.t_bounds(m, x["alpha"])
    scale = pairs.pair_up(x["baseline"], x["new"], score_range=(0, 1))
    found = compare.compare_paired(scale)
    return {
        "delta": found.interval.estimate,
        "se": found.interval.extra["se"],
        "t": found.interval.extra["t"],
        "p_two_sided": found.p,
        "q": intervals.unseen_share(len(d), x["alpha"]),
        "lower_one_sided": low,
        "upper_one_sided": high,
    }


def noninferiority_t(x: dict[str, Any]) -> dict[str, Any]:
    m = differences.moments(np.array(x["new"]) - np.array(x["baseline"]))
    low, high = differences.t_bounds(m, x["alpha"])
    inferior = differences.drop_p(m, at=-x["margin"])
    return {
        "p_noninferior": 1 - inferior,
        "p_inferior": inferior,
        "lower_t": low,
        "upper_t": high,
    }


def noninferiority_bound(x: dict[str, Any]) -> dict[str, Any]:
    found = gate.non_inferiority(x["differences"], x["margin"], x["alpha"])
    return {
        "mean": found.bounds.delta,
        "lower_t": found.bounds.lower_t,
        "lower_score": found.bounds.lower_score,
        "lower_guard": found.bounds.lower_guard,
        "lower": found.bounds.lower,
        "noninferior": found.finding == "NON_INFERIOR",
    }


def sign_flip_exact(x: dict[str, Any]) -> dict[str, Any]:
    d = x["differences"]
    return {
        "p_less": permutation.sign_flip_p(d, alternative="less"),
        "p_greater": permutation.sign_flip_p(d, alternative="greater"),
        "p_two_sided": permutation.sign_flip_p(d),
    }


def mcnemar(x: dict[str, Any]) -> dict[str, Any]:
    n = x["n11"] + x["n10"] + x["n01"] + x["n00"]
    found = compare.mcnemar(x["n10"], x["n01"], n)
    return {
        "difference": found.difference,
        "p_exact": found.p_exact,
        "p_mid": found.p_mid,
        "tango_ci": list(compare.tango_interval(x["n10"], x["n01"], n, level=x["conf"])),
    }


def mde(x: dict[str, Any]) -> dict[str, Any]:
    how = {"alpha": x["alpha"], "power": x["power"], "sided": x["sided"]}
    return {
        "mde_formula": power.minimum_detectable_effect(x["se"], x["n"], **how),
        "mde_noncentral_t": power.minimum_detectable_effect_exact(x["se"], x["n"], **how),
    }


def sample_size_paired(x: dict[str, Any]) -> dict[str, Any]:
    n = power.sample_size(
        x["var_between_diff"],
        x["delta"],
        var_within_baseline=x["var_within_a"],
        var_within_candidate=x["var_within_b"],
        runs_baseline=x["runs_a"],
        runs_candidate=x["runs_b"],
        alpha=x["alpha"],
        power=x["power"],
        sided=x["sided"],
    )
    return {"n_exact": n, "n": math.ceil(n)}


def multiple_testing(x: dict[str, Any]) -> dict[str, Any]:
    by_holm = multiplicity.holm(x["p_values"], alpha=x["alpha"])
    by_bh = multiplicity.benjamini_hochberg(x["p_values"], rate=x["alpha"])
    return {
        "holm_adjusted": list(by_holm.adjusted),
        "holm_reject": list(by_holm.reject),
        "bh_adjusted": list(by_bh.adjusted),
        "bh_reject": list(by_bh.reject),
    }


def poststratified_mean(x: dict[str, Any]) -> dict[str, Any]:
    found = strata.stratified_mean(
        {s["name"]: s["scores"] for s in x["strata"]},
        {s["name"]: s["population"] for s in x["strata"]},
        fpc=x["fpc"],
    )
    return {
        "estimate": found.estimate,
        "unweighted": found.extra["unweighted"],
        "se": found.extra["se"],
        "df_satterthwaite": found.extra["df"],
        "ci95": [found.ci_low, found.ci_high],
    }


def allocation(x: dict[str, Any]) -> dict[str, Any]:
    return strata.allocate(x["total"], x["population"], method=x["method"], minimum=x["minimum"])


def kish_effective_n(x: dict[str, Any]) -> dict[str, Any]:
    return {"n_eff": intervals.kish_effective_size(x["weights"])}


def betting_martingale_fixed_lambda(x: dict[str, Any]) -> dict[str, Any]:
    d, null, bet = x["differences"], x["null_mean"], x["bet"]
    return {
        "capital_mean_above_null": sequential.betting_capital(d, null, "above", bet).tolist(),
        "capital_mean_below_null": sequential.betting_capital(d, null, "below", bet).tolist(),
    }


def betting_mixture(x: dict[str, Any]) -> dict[str, Any]:
    path = sequential.e_process(x["differences"], x["null_mean"], x["side"], grid=x["grid_size"])
    crossed = np.flatnonzero(path >= 1 / x["alpha"])
    return {
        "e_process": path.tolist(),
        "stop_at": int(crossed[0]) + 1 if crossed.size else None,
    }


CHECKS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    check.__name__: check
    for check in (
        proportion_ci,
        one_sided_lower_bound,
        unseen_failure_guard,
        binomial_tail_ge,
        clustered_mean_equal_repeats,
        clustered_mean_unequal,
        wilson_neff,
        pass_at_k_pass_hat_k,
        stability_counts,
        paired_t,
        paired_degenerate,
        noninferiority_t,
        noninferiority_bound,
        sign_flip_exact,
        mcnemar,
        mde,
        sample_size_paired,
        multiple_testing,
        poststratified_mean,
        allocation,
        kish_effective_n,
        betting_martingale_fixed_lambda,
        betting_mixture,
    )
}
MINE = [case for case in REFERENCE if case["kind"] in CHECKS]


def agrees(found: Any, expected: Any, rtol: float) -> bool:
    if isinstance(expected, dict):
        return set(found) == set(expected) and all(
            agrees(found[k], v, rtol) for k, v in expected.items()
        )
    if isinstance(expected, list):
        return len(found) == len(expected) and all(
            agrees(f, e, rtol) for f, e in zip(found, expected, strict=True)
        )
    if isinstance(expected, (bool, str)):
        return type(expected)(found) == expected
    if expected is None:
        return found is None or math.isnan(found)
    return math.isclose(found, expected, rel_tol=rtol, abs_tol=1e-9)


@pytest.mark.parametrize("case", MINE, ids=[case["id"] for case in MINE])
def test_reference_case(case: dict[str, Any]) -> None:
    found = CHECKS[case["kind"]](case["inputs"])
    for name, expected in case["expected"].items():
        assert agrees(found[name], expected, case["rtol"]), (name, found[name], expected)
    assert set(found) == set(case["expected"])


def test_no_kind_of_the_reference_file_is_left_out() -> None:
    other = importlib.import_module("test_stats_reference_agreement")
    assert set(CHECKS) | set(other.KINDS) == {case["kind"] for case in REFERENCE}

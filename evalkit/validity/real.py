"""Replay recorded verdicts of real judges beside real people's labels through admission.

One command, one table: every judge of the recorded data with its state, its diagnosis and its main
figures, each compared with `reference_values.json`, which other software computed.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

from evalkit.cases.tables import read_csv_rows, read_jsonl
from evalkit.errors import AnchorError, EvalkitError
from evalkit.stats.admission import Admission, JudgeState
from evalkit.stats.agreement import quadratic_weighted_kappa
from evalkit.stats.binary import admit_binary, binary_agreement
from evalkit.validity.real_figures import (
    Block,
    differences,
    isotonic_block,
    nominal_block,
    ordinal_block,
    raters_block,
)
from evalkit.validity.real_pairs import llmbar, number, ratings, stated

__all__ = ["Replayed", "main", "replay"]

Row = Mapping[str, Any]
REFUSALS = ("1_full_compliance", "2_full_refusal", "3_partial_refusal")
# Neighbours in this order are the close pairs of systems (README of the recorded data).
CLOSE = ["M22", "M23", "M17", "M12", "M13", "M15", "M14", "M8", "M9", "M10", "M20", "M11"]


@dataclass
class Replayed:
    """The table's lines, and every figure in the shape of the reference."""

    lines: list[tuple[str, ...]] = field(default_factory=list)
    blocks: dict[str, Block] = field(default_factory=dict)

    def scale(self, data: str, judge: str, ruled: Admission) -> None:
        """A line for a judge on a scale."""
        found = ruled.agreement
        low, high = found.qwk.ci_low, found.qwk.ci_high
        unconfirmed = ruled.state is JudgeState.ELIMINATED and not ruled.confirmed
        self.lines.append(
            (
                data,
                judge,
                str(found.n),
                f"{found.qwk.estimate:.3f} ({low:.2f} to {high:.2f})",
                f"{found.spearman.estimate:.3f}",
                f"{found.bias.estimate:+.2f}",
                ruled.state.value,
                ruled.diagnosis.value + (", unconfirmed" if unconfirmed else ""),
            )
        )

    def words(self, data: str, judge: str, block: Block) -> None:
        """A line for a judge in words; with two classes ruled as a yes/no judge."""
        low, high = block["kappa_95ci_statsmodels"]
        recalls = [v["recall"] for v in block["per_label"].values()]
        state, why = "no ruling", "one order only: no swap, no gate"
        if len(recalls) == 2:
            (tp, fn), (fp, tn) = block["confusion_rows_gold_cols_judge"]["matrix"]
            counts = (int(tp), int(fn), int(fp), int(tn))
            ruled = admit_binary(binary_agreement(*counts, n_invalid=block["unusable"], n_boot=0))
            state, why = ruled.ruling.value, ", ".join(ruled.reasons[:3])
        self.lines.append(
            (
                data,
                judge,
                str(block["n"] - block["unusable"]),
                f"{block['kappa_usable_only']:.3f} ({low:.2f} to {high:.2f})",
                f"{block['accuracy_usable_only']:.1%}",
                f"{block['unusable']} unread",
                state,
                why or f"least recall {min(recalls):.2f}",
            )
        )


def replay(data: Path) -> Replayed:
    """Replay whatever of the recorded data is in `data`.

    Raises:
        AnchorError: If none of it is there; nothing is put in its place.
    """
    found = Replayed()
    for name, path, read in (
        ("asap_set4_gpt35", "ordinal/asap_set4_gpt35.csv", _asap4),
        ("asap_set5_gpt35", "ordinal/asap_set5_gpt35.csv", _asap5),
        ("summeval_llm_scores", "ordinal/summeval_llm_scores.csv", _summeval),
        ("llm_rubric_real", "ordinal/llm_rubric_real.csv", _rubric),
        ("pandalm_testset", "labels/pandalm_testset.csv", _pandalm),
        ("xstest_labels", "labels/xstest_labels.csv", _xstest),
        ("llmbar_natural_verdicts", "pairwise/llmbar_natural_verdicts.csv", _llmbar),
        ("llmbar_natural_ratings", "pairwise/llmbar_natural_ratings.csv", _ratings),
    ):
        if (data / path).exists():
            rows = [row for _, row in read_csv_rows(data / path, error=AnchorError)]
            found.blocks[name] = read(found, rows)
    raw = data / "pairwise" / "llmbar_natural_raw_cot.jsonl"
    if raw.exists():
        rows = [row for _, row in read_jsonl(raw, error=AnchorError)]
        found.blocks["llmbar_natural_raw_cot"] = stated(rows)
    if not found.blocks:
        raise AnchorError(f"{data}: holds none of the recorded judge data; see its README.")
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; 0 when every figure equals the reference, 1 otherwise, 2 without data.

    Args:
        argv: `--data FOLDER`.
    """
    parser = argparse.ArgumentParser(prog="admit-real", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the recorded data")
    chosen = parser.parse_args(argv)
    try:
        found = replay(chosen.data)
    except EvalkitError as wrong:
        print(wrong)
        return wrong.exit_status
    _print_table(found.lines)
    reference = chosen.data / "reference_values.json"
    if not reference.exists():
        print(f"\n{reference} is not there: the figures were not compared.")
        return 0
    theirs = json.loads(reference.read_text(encoding="utf-8"))
    wrong_ones = differences(found.blocks, theirs)
    n = _leaves(found.blocks)
    print(f"\n{n} figures compared with {reference.name} at 1e-6: {len(wrong_ones)} differ.")
    for line in wrong_ones[:20]:
        print(line)
    print("Not fitted: recalibration of judges with fewer than three distinct scores (refused).")
    return 1 if wrong_ones else 0


def _asap4(found: Replayed, rows: Sequence[Row]) -> Block:
    return _asap(found, rows, "ASAP set 4", (0, 1, 2, 3))


def _asap5(found: Replayed, rows: Sequence[Row]) -> Block:
    return _asap(found, rows, "ASAP set 5", (0, 1, 2, 3, 4))


def _asap(found: Replayed, rows: Sequence[Row], data: str, levels: Sequence[int]) -> Block:
    human, judge = _numbers(rows, "human"), _numbers(rows, "judge_score")
    block, ruled = ordinal_block(human, judge, levels)
    found.scale(data, "GPT-3.5", ruled)
    raters = _both(_numbers(rows, "rater1"), _numbers(rows, "rater2"))
    between = quadratic_weighted_kappa(*zip(*raters, strict=True), levels)  # type: ignore[arg-type]
    ids = [row["essay_id"] for row in rows]
    block |= {
        "n_rows": len(rows),
        "n_without_both_scores": len(rows) - block["n"],
        "duplicate_essay_ids": len(ids) - len(set(ids)),
        "rater1_vs_rater2_qwk": between.estimate,
        "rater_pairs": len(raters),
        "isotonic_5fold_by_row_mod_5": isotonic_block(human, judge, levels),
    }
    if len(ids) > len(set(ids)):
        said: dict[str, set[Any]] = defaultdict(set)
        for row in rows:
            said[row["essay_id"]].add(row["judge_score"])
        block["repeated_ids_with_conflicting_scores"] = sum(len(s) > 1 for s in said.values())
        first = list({row["essay_id"]: row for row in reversed(rows)}.values())
        for name, kept in (("first", first), ("last", {r["essay_id"]: r for r in rows}.values())):
            only = ordinal_block(
                _numbers([*kept], "human"), _numbers([*kept], "judge_score"), levels
            )[0]
            block[f"without_repeats_keep_{name}"] = {k: only[k] for k in ("n", "qwk", "spearman")}
    return block


def _summeval(found: Replayed, rows: Sequence[Row]) -> Block:
    blocks: Block = {}
    for dimension in ("coherence", "relevance"):
        part = [row for row in rows if row["dimension"] == dimension]
        experts = {f"expert{i}": [int(r[f"expert{i}"]) for r in part] for i in (1, 2, 3)}
        levels = (1, 2, 3, 4, 5)
        blocks[dimension] = {"experts": raters_block(experts, levels, ordered=True)}
        human = [sum(given) / 3 for given in zip(*experts.values(), strict=True)]
        for judge in (name for name in part[0] if ":" in name):
            scores = _numbers(part, judge)
            block, ruled = ordinal_block(human, scores, levels)
            found.scale(f"SummEval {dimension}", judge, ruled)
            block["n_rows"], block["n_without_both_scores"] = len(part), len(part) - block["n"]
            if judge in ("gpt-3.5-turbo-0301:rts", "gpt-4-0314:rts"):
                block["isotonic_5fold_by_row_mod_5"] = isotonic_block(human, scores, levels)
            block["system_pairs_ordered_right"] = _systems(part, human, scores)
            blocks[dimension][judge] = block
    return blocks


def _systems(
    rows: Sequence[Row], human: Sequence[float], judge: Sequence[float | None]
) -> dict[str, str]:
    """Pairs of systems that the judge orders as the experts do, by wins document for document."""
    scores: dict[str, dict[str, tuple[float, float | None]]] = defaultdict(dict)
    for row, h, j in zip(rows, human, judge, strict=True):
        scores[row["system"]][row["doc_id"]] = (h, j)

    def agree(a: str, b: str) -> bool:
        leads = [0, 0]
        for doc in scores[a].keys() & scores[b].keys():
            for side in (0, 1):
                one, other = scores[a][doc][side], scores[b][doc][side]
                if one is not None and other is not None:
                    leads[side] += (one > other) - (one < other)
        return (leads[0] > 0) - (leads[0] < 0) == (leads[1] > 0) - (leads[1] < 0)

    everything, close = list(combinations(scores, 2)), list(pairwise(CLOSE))
    return {
        "all_pairs": f"{sum(agree(a, b) for a, b in everything)}/{len(everything)}",
        "challenge_pairs": f"{sum(agree(a, b) for a, b in close)}/{len(close)}",
    }


def _rubric(found: Replayed, rows: Sequence[Row]) -> Block:
    criteria: Block = {}
    for name in dict.fromkeys(row["criterion"] for row in rows):
        part = [row for row in rows if row["criterion"] == name]
        human = [h if (h := number(row["human"])) else None for row in part]
        shares = [[float(row[f"p{i}"]) for i in (1, 2, 3, 4)] for row in part]
        likely = [float(p.index(max(p)) + 1) for p in shares]
        expected = [sum(i * x for i, x in enumerate(p, start=1)) / sum(p) for p in shares]
        used = sum(h is not None for h in human)
        criteria[name] = {
            "n_rows": len(part),
            "human_0_or_missing": len(part) - used,
            "n_used": used,
        }
        for way, judge in (("argmax", likely), ("expected", expected)):
            block, ruled = ordinal_block(human, judge, (1, 2, 3, 4))
            if "constant" not in block:
                folds = isotonic_block(human, judge, (1, 2, 3, 4))
                block["isotonic_5fold_by_row_mod_5"] = folds
            found.scale(f"LLM-Rubric {name}", way, ruled)
            criteria[name][way] = block
    return {"criteria": criteria}


def _pandalm(found: Replayed, rows: Sequence[Row]) -> Block:
    labels = ("0", "1", "2")
    people = {f"annotator{i}": [row[f"annotator{i}"] for row in rows] for i in (1, 2, 3)}
    votes = [Counter(given).most_common() for given in zip(*people.values(), strict=True)]
    gold = [str(v[0][0]) for v in votes]
    ties = {"1": "1", "2": "2", "Tie": "0"}
    judges = {
        "gpt35_garbage_as_tie": [ties.get(str(r["gpt35_raw"]), "0") for r in rows],
        "gpt35_garbage_unusable": [ties.get(str(r["gpt35_raw"])) for r in rows],
        "pandalm": [row["pandalm_raw"] for row in rows],
    }
    block: Block = {
        "raters": raters_block(people, labels, ordered=False),
        "majority_distribution": dict(Counter(gold)),
        "items_without_majority": sum(len(v) > 1 and v[0][1] == v[1][1] for v in votes),
        "gpt35_raw_counts": dict(Counter(str(row["gpt35_raw"]) for row in rows)),
    }
    for name, said in judges.items():
        block[name] = nominal_block(gold, said, labels)
        found.words("PandaLM", name, block[name])
    shown = {
        "human_majority": gold,
        "gpt35": judges["gpt35_garbage_as_tie"],
        "pandalm": judges["pandalm"],
    }
    for name, said in shown.items():
        decided = [(row, s) for row, s in zip(rows, said, strict=True) if s in ("1", "2")]
        unequal = [(r, s) for r, s in decided if int(r["len_1"]) != int(r["len_2"])]
        longer = sum((int(r["len_1"]) > int(r["len_2"])) == (s == "1") for r, s in unequal)
        block[f"longer_preferred_{name}"] = {
            "decided_on_unequal_length": len(unequal),
            "longer": longer,
            "rate": longer / len(unequal),
        }
        first = sum(s == "1" for _, s in decided)
        block[f"response1_share_of_decided_{name}"] = first / len(decided)
    return block


def _xstest(found: Replayed, rows: Sequence[Row]) -> Block:
    blocks: Block = {}
    for model in dict.fromkeys(row["completion_model"] for row in rows):
        part = [row for row in rows if row["completion_model"] == model]
        people = {f"annotation_{i}": [row[f"annotation_{i}"] for row in part] for i in (1, 2)}
        raters = raters_block(people, REFUSALS, ordered=False)
        gold = [row["final_label"] for row in part]
        block: Block = {
            "raters": raters,
            "raw_agreement": raters["items_all_agree"] / raters["n_items"],
        }
        for name, column in (("gpt4", "gpt4_label_raw"), ("string_match", "strmatch_label")):
            said = [row[column] if row[column] in REFUSALS else None for row in part]
            two = ("compliance", "refusal")
            block[name] = nominal_block(gold, said, REFUSALS)
            block[f"{name}_binary_refusal"] = nominal_block(
                [_refuses(g) or "" for g in gold], [_refuses(s) for s in said], two
            )
            found.words(f"XSTest {model}", name, block[f"{name}_binary_refusal"])
        blocks[model] = block
    return blocks


def _llmbar(found: Replayed, rows: Sequence[Row]) -> Block:
    lines, block = llmbar(rows)
    found.lines += lines
    return block


def _ratings(found: Replayed, rows: Sequence[Row]) -> Block:
    del found  # ratings of one output alone are figures, not a ruling
    return ratings(rows)


def _refuses(label: str | None) -> str | None:
    return None if label is None else "compliance" if label == REFUSALS[0] else "refusal"


def _numbers(rows: Sequence[Row], column: str) -> list[float | None]:
    return [number(row[column]) for row in rows]


def _both(a: Sequence[float | None], b: Sequence[float | None]) -> list[tuple[float, float]]:
    return [(x, y) for x, y in zip(a, b, strict=True) if x is not None and y is not None]


def _leaves(value: Any) -> int:
    if isinstance(value, Mapping):
        return sum(map(_leaves, value.values()))
    return sum(map(_leaves, value)) if isinstance(value, (list, tuple)) else 1


def _print_table(lines: Sequence[tuple[str, ...]]) -> None:
    head = ("data", "judge", "n", "agreement (95 %)", "beside", "bias", "state", "diagnosis")
    table = [head, *lines]
    widths = [max(len(line[i]) for line in table) for i in range(len(head))]
    for line in table:
        print("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip())

"""Recorded verdicts on known pairs (LLMBar), through the swap protocol and the gate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from evalkit.stats.pairwise import swap_protocol
from evalkit.stats.reconstruction import reconstruct
from evalkit.validity.real_figures import Block, pair_block

__all__ = ["llmbar", "number", "ratings", "stated"]

Row = Mapping[str, Any]


def llmbar(rows: Sequence[Row]) -> tuple[list[tuple[str, ...]], Block]:
    """Each judge and prompt on the known pairs: the table's lines, and every figure."""
    lines: list[tuple[str, ...]] = []
    judges: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        judges[f"{row['judge']}/{row['prompt']}"].append(row)
    blocks: Block = {}
    for name, part in judges.items():
        blocks[name] = pair_block(part)
        lines.append(_gate_line(name, part))
    return lines, {"judges": blocks}


def _gate_line(name: str, rows: Sequence[Row]) -> tuple[str, ...]:
    """The product's gate: valid pairs, chance excluded, the length rules on the same pairs."""
    items = [row for row in rows if row["order"] == "AB"]
    back = {row["item_id"]: row["picked"] for row in rows if row["order"] == "BA"}
    swap = swap_protocol([(row["picked"], back[row["item_id"]]) for row in items])
    right = [
        None if outcome == "invalid" else outcome.value.upper() == row["gold"]
        for row, outcome in zip(items, swap.outcomes, strict=True)
    ]
    strong = [int(row["len_a" if row["gold"] == "A" else "len_b"]) for row in items]
    weak = [int(row["len_b" if row["gold"] == "A" else "len_a"]) for row in items]
    gate = reconstruct(right, length_strong=strong, length_weak=weak)
    low, high = gate.accuracy.ci_low, gate.accuracy.ci_high
    return (
        "LLMBar natural",
        name,
        str(swap.n_valid),
        f"{gate.accuracy.estimate:.3f} ({low:.2f} to {high:.2f})",
        f"swap {swap.swap_consistency.estimate:.2f}",
        f"{swap.preference_fairness:+.2f}",
        f"gate {gate.verdict.value}",
        "; ".join(gate.reasons) or ("proven" if gate.proven_at_threshold else "not proven at .70"),
    )


def ratings(rows: Sequence[Row]) -> Block:
    """Judges that rate each output alone: how often the strong one gets more."""
    judges: dict[str, list[tuple[float | None, float | None]]] = defaultdict(list)
    for row in rows:
        a, b = number(row["score_a_raw"]), number(row["score_b_raw"])
        pair = (a, b) if row["gold"] == "A" else (b, a)
        judges[f"{row['judge']}/{row['prompt']}"].append(pair)
    blocks: Block = {}
    for name, pairs in judges.items():
        read = [(s, w) for s, w in pairs if s is not None and w is not None]
        higher, equal = sum(s > w for s, w in read), sum(s == w for s, w in read)
        blocks[name] = {
            "n": len(pairs),
            "higher_is_gold": higher,
            "lower_is_gold": len(read) - higher - equal,
            "equal_scores": equal,
            "accuracy_half_credit_for_equal": (higher + equal / 2) / len(pairs),
        }
    return {"judges": blocks}


def stated(rows: Sequence[Row]) -> Block:
    """The same verdicts as the benchmark stored them and as the replies state them."""
    blocks: Block = {}
    for judge in dict.fromkeys(row["judge"] for row in rows):
        part = [row for row in rows if row["judge"] == judge]
        blocks[judge] = {
            f"{column}": pair_block([_from_position(row, column) for row in part], short=True)
            for column in ("recorded_position", "stated_position")
        }
        blocks[judge]["n"] = len(part)
    return blocks


def _from_position(row: Row, column: str) -> dict[str, str | None]:
    picked = {"a": "first", "b": "second"}.get(row[column] or "")
    sides = ("A", "B") if row["order"] == "AB" else ("B", "A")
    winner = None if picked is None else sides[picked == "second"]
    return {
        "item_id": row["item_id"],
        "order": row["order"],
        "gold": row["gold"],
        "picked": picked,
        "winner": winner,
    }


def number(cell: str | None) -> float | None:
    """A cell as a number; None when it is empty or a word."""
    try:
        return None if cell is None else float(cell)
    except ValueError:
        return None

"""The rows of a comparison: a head that pins it, then one line a pair; the same bytes each time."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalkit.hashing import canonical_json, short_hash
from evalkit.judges import PairVerdict
from evalkit.records import Row, Verdict
from evalkit.runs.duel import Duel, Key
from evalkit.runs.duel_labels import People
from evalkit.runs.duel_standing import Standing, scorers_prefer

__all__ = ["comparison_id", "write_pairs"]

FORMAT = 1


def comparison_id(duel: Duel) -> str:
    """Short hash of what was compared, by whom and how: the name of its file."""
    return short_hash({k: v for k, v in _head(duel).items() if k != "left_out"})


def write_pairs(duel: Duel, found: tuple[Standing, ...], people: People, out: Path) -> Path:
    """Write `compare/<id>.jsonl`; the file is replaced as a whole or not at all.

    Args:
        duel: The comparison.
        found: Its standings; their headline numbers go into the head.
        people: What people said.
        out: The folder `exports/`.
    """
    path = out / "compare" / f"{comparison_id(duel)}.jsonl"
    numbers = {s.judge.name: _numbers(s) for s in found}
    lines = [canonical_json({**_head(duel), "judged": numbers})]
    lines += [canonical_json(_line(duel, key, people)) for key in duel.keys]
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return path


def _head(duel: Duel) -> dict[str, Any]:
    plan = duel.plan
    return {
        "format": FORMAT,
        "suite": plan.suite.name,
        "suite_digest": plan.suite.digest,
        "a": {"kind": plan.sides[0].kind, **plan.sides[0].identity},
        "b": {"kind": plan.sides[1].kind, **plan.sides[1].identity},
        "pairs": short_hash([[*k, _texts(duel, k)] for k in duel.keys]),
        "n": len(duel.keys),
        "seed": plan.how.seed,
        "one_order": plan.how.one_order,
        "judges": {
            j.name: {"hash": j.hash, "model": j.model, "family": j.family} for j in duel.judges
        },
        "left_out": [list(entry) for entry in duel.found.left_out],
        "stopped": duel.stopped,
    }


def _texts(duel: Duel, key: Key) -> str:
    match = duel.pair(key)[0]
    return short_hash([match.a.text, match.b.text])


def _numbers(standing: Standing) -> dict[str, Any]:
    swap = standing.swap
    return {
        "preference": standing.preference.as_json(),
        "by_stratum": {name: rate.as_json() for name, rate in standing.by_stratum.items()},
        "reasons": dict(sorted(standing.reasons.items())),
        "invalid": standing.invalid,
        "swap_consistency": swap.swap_consistency.as_json(),
        "first_share": swap.first_share.as_json(),
        "primacy": swap.primacy,
        "recency": swap.recency,
        "same_family": list(standing.kin),
        "licence": standing.ruling.sentence if standing.ruling else "",
        "exploratory": standing.exploratory,
        "against_scorers": [standing.scorers.both, len(standing.scorers.differ)],
        "against_people": [standing.people.both, len(standing.people.differ)],
    }


def _line(duel: Duel, key: Key, people: People) -> dict[str, Any]:
    match, a, b = duel.pair(key)
    return {
        "case_id": key[0],
        "repeat": key[1],
        "stratum": match.case.stratum,
        "a": _draft(a),
        "b": _draft(b),
        "scorers": scorers_prefer(a, b),
        "people": people.all.get(key, ""),
        "verdicts": {j.name: _verdict(duel.verdict(j.name, key)) for j in duel.judges},
    }


def _draft(row: Row) -> dict[str, Any]:
    reply = row.reply
    return {
        "text": reply.text if reply else "",
        "finish": reply.finish.value if reply else "",
        "call_key": reply.key if reply else "",
        "rendered_prompt_sha": row.rendered_prompt_sha,
        "scores": {
            name: {"value": score.value, "status": score.status.value, "by": row.by.get(name, "")}
            for name, score in row.scores.items()
        },
    }


def _verdict(pair: PairVerdict) -> dict[str, Any]:
    said: Mapping[str, Verdict] = dict(zip(pair.orders, pair.verdicts, strict=False))
    return {
        "winner": pair.winner,
        "reason": pair.reason,
        "judge_hash": pair.judge_hash,
        "lengths": list(pair.lengths),
        "orders": {
            order: {
                "label": verdict.label,
                "status": verdict.status.value,
                "justification": verdict.justification,
                "reason": verdict.reason,
                "flags": list(verdict.flags),
                "raw": verdict.raw,
                "call_key": verdict.key,
            }
            for order, verdict in said.items()
        },
    }

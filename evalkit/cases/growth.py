"""How a suite grows: a case appended with a new id, and the mix against what was intended."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalkit.appending import append_lines
from evalkit.cases.load import parse_cases
from evalkit.cases.suite import Suite
from evalkit.errors import CaseError
from evalkit.hashing import short_hash
from evalkit.records import Case, Document

__all__ = ["StratumShare", "add_case", "composition"]


@dataclass(frozen=True)
class StratumShare:
    """One stratum of a suite against its intended share; `missing` cases would restore the mix."""

    stratum: str
    n: int
    share: float
    intended: float | None
    missing: int


def composition(
    cases: Sequence[Case], mix: Mapping[str, float] | None = None
) -> tuple[StratumShare, ...]:
    """Cases and shares per stratum, and how many to add for the intended mix.

    `missing` is the least number of cases to add to each stratum, taking none away, such that each
    has its share of the grown suite (rounded up). Without a mix nothing is missing.
    """
    counts = Counter(case.stratum for case in cases)
    strata = dict.fromkeys([*(mix or ()), *counts])
    whole = max((counts[h] / w for h, w in (mix or {}).items()), default=0.0)
    return tuple(
        StratumShare(
            stratum,
            counts[stratum],
            counts[stratum] / len(cases) if cases else math.nan,
            mix.get(stratum, 0.0) if mix else None,
            # 1e-9: 24 / 0.4 is 60.00000000000001 in some spellings of one share
            max(0, math.ceil(whole * (mix or {}).get(stratum, 0.0) - 1e-9) - counts[stratum]),
        )
        for stratum in strata
    )


def add_case(
    suite: Suite,
    *,
    stratum: str,
    inputs: Mapping[str, Any],
    why: str,
    context: Sequence[Document] = (),
    expected: Mapping[str, Any] | None = None,
    tags: Sequence[str] = (),
    cluster: str | None = None,
) -> Case:
    """Append a case to the suite's `cases.jsonl`, on disk when this returns.

    Its id is the stratum and a digest of what goes in: it never changes, is never used for another
    case, and the same case cannot be added twice. Several writers wait for each other.

    Raises:
        CaseError: If the stratum is not in the mix, the reason is empty, the case is already
            there, or `cases.jsonl` is wrong (it is left as it was).
    """
    if not why.strip():
        raise CaseError("a case is added with the reason why: 'why' is empty")
    pages = [{"id": page.id, "text": page.text} for page in context]
    row: dict[str, Any] = {
        "id": f"{stratum}-{short_hash({'inputs': inputs, 'context': pages})[:8]}",
        "stratum": stratum,
        "inputs": dict(inputs),
        "context": pages,
        "expected": dict(expected or {}),
        "tags": list(tags),
        "cluster": cluster,
        "why": why.strip(),
    }
    row = {key: value for key, value in row.items() if value or key in ("inputs", "expected")}
    path = suite.folder / "cases.jsonl"
    try:
        line = json.dumps(row, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise CaseError(f"{path}: the new case is not JSON: {error}") from None
    added: list[Case] = []

    def check(text: str) -> None:
        grown = text + ("\n" if text and not text.endswith("\n") else "") + line
        cases = parse_cases(
            grown.removeprefix("\ufeff"), path, folder=suite.folder, strata=suite.sampling.mix
        )
        added.append(cases[-1])

    # The check reads every line, so a last one without its end is whole.
    append_lines(path, [line], whole=lambda _: True, check=check)
    return added[0]

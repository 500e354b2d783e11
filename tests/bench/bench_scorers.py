"""What a scorer costs on a text of 100,000 characters.

    python tests/bench/bench_scorers.py

Rows for `make bench`: every text scorer under 50 ms; the scorers that parse TeX together, on a text
that none of them has seen, under 2 s. Best of five for a text scorer, of three for TeX, each on a
text of its own.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from evalkit.records import Case, Document, Reply
from evalkit.scorers import SCORERS, Scorer, build_scorer
from evalkit.scorers.thinking import thinking_spans

SIZE = 100_000
TEX = ("sourced_numbers", "citations_closed", "report_score", "content_kept")
PROGRAMS = {"compiles", "renders"}  # a process of their own: minutes are bounded by their limits
PROSE = (
    "The water boiled at 97.3 °C, see https://docs.example.com/start (p. 4), while the pump of "
    'the second series said "no flow" at 1,234.5 Pa; `flow()` gives 50 % of it.\n\n'
)
TEX_LINE = (
    "\\section{Series} The loss was \\num{1.2e-3} at $-3.5$\\,K \\cite[p.~4]{lake2019}, a yield of "
    "12\\,\\% % a comment\n\\begin{tabular}{ll} a & 9{,}500 \\\\ b & \\SI{3}{mm} \\end{tabular}\n\n"
)
SETTINGS: dict[str, dict[str, Any]] = {
    "allowed_hosts": {"hosts": ["docs.example.com"]},
    "contains": {"text": "not in it"},
    "forbids": {"texts": ["not in it", "nor this"], "ignore_case": True},
    "json_contract": {"schema": {"type": "object"}},
    "length": {"max_words": 9},
    "matches": {"pattern": "[xyz]{9}"},
}
CASE = Case(
    "bench",
    inputs={"draft": "An old draft, 12 % \\cite{lake2019}."},
    context=(Document("p1", "The pump."),),
    material={"data.csv": "t (s),u (V)\n1,2.5\n", "refs.bib": "@book{lake2019, title={A}}"},
    expected={"answer": "the pump", "value": 3, "sources": ["p1"], "chunks": ["p1"]},
)


def main() -> list[dict[str, Any]]:
    """One row per text scorer, and one for all TeX scorers: what, ms, target_ms, holds."""
    rows: list[dict[str, Any]] = []
    prose = Reply((PROSE * (SIZE // len(PROSE) + 1))[:SIZE], retrieved=("p1",))
    for name in sorted(set(SCORERS) - set(TEX) - PROGRAMS):
        scorer = _scorer(name)
        best = min(_ms(scorer, prose) for _ in range(5))
        rows.append(_row(f"{name}, {SIZE // 1000} kB of prose", best, 50.0))
    scorers = [_scorer(name) for name in TEX]
    best = min(sum(_ms(scorer, _tex(n)) for scorer in scorers) for n in range(3))
    rows.append(_row(f"all TeX scorers, {SIZE // 1000} kB", best, 2000.0))
    return rows


def _tex(n: int) -> Reply:
    start = f"\\documentclass{{article}}\\begin{{document}}\nDraft {n}.\n"
    return Reply(start + TEX_LINE * (SIZE // len(TEX_LINE)))


def _scorer(name: str) -> Scorer:
    return build_scorer(name, SETTINGS.get(name, {}), Path(__file__).parent)


def _ms(scorer: Scorer, reply: Reply) -> float:
    thinking_spans.cache_clear()  # in a run the first scorer looks, and here each one is first
    start = time.perf_counter()
    scorer(CASE, reply)
    return (time.perf_counter() - start) * 1000


def _row(what: str, ms: float, target: float) -> dict[str, Any]:
    return {"what": what, "ms": round(ms, 1), "target_ms": target, "holds": ms < target}


if __name__ == "__main__":
    table = main()
    for row in table:
        verdict = "holds" if row["holds"] else "TOO SLOW"
        print(f"{row['what']:45} {row['ms']:9.1f} ms  target {row['target_ms']:6.0f} ms  {verdict}")
    sys.exit(0 if all(row["holds"] for row in table) else 1)

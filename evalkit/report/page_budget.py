"""How much of each text one page can hold: the longest are shortened, all to the same length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evalkit.prompts import Prompt
from evalkit.records import Case, Row

__all__ = ["TEXT_BUDGET", "fair_limit", "text_lengths"]

TEXT_BUDGET = 6_000_000  # characters of cases' texts in one page
LEAST = 160


def text_lengths(
    groups: Mapping[str, Sequence[Row]],
    before: Mapping[str, Sequence[Row]],
    cases: Mapping[str, Case],
    prompt: Prompt | None,
) -> list[int]:
    """How long each text of the page would be; a reply beside its baseline is shown twice."""
    own = len(prompt.system or "") + len(prompt.user) if prompt else 0
    found: list[int] = []
    for case_id, rows in groups.items():
        if case := cases.get(case_id):
            pages = [len(page.text) for page in case.context]
            found += [len(value) for value in case.inputs.values() if isinstance(value, str)]
            found += [own + sum(pages)] if prompt else pages
            found += [len(text) for text in case.material.values()]
        twice = 2 if case_id in before else 1
        for row in rows:
            if row.reply is not None:
                found += [len(row.reply.text)] * twice + [len(row.reply.reasoning)]
            found += [len(v.justification or v.raw) for said in row.verdicts.values() for v in said]
        for row in before.get(case_id, ()):
            found.append(len(row.reply.text) if row.reply else 0)
    return found


def fair_limit(lengths: Sequence[int], budget: int) -> int:
    """The limit that shortens only the longest texts, so that all of them fit the budget."""
    left = budget
    ordered = sorted(lengths)
    for i, length in enumerate(ordered):
        share = left // (len(ordered) - i)
        if length > share:
            return max(LEAST, share)
        left -= length
    return max(LEAST, ordered[-1] if ordered else LEAST, 1_000_000)

"""What people label, taken from runs: single replies, or two runs' replies to one case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from evalkit.records import Case, Row
from evalkit.validity.anchors import FIRST, SECOND, AnchorItem
from evalkit.validity.blind import BlindItem
from evalkit.validity.labels import item_id_of

__all__ = ["anchor_items", "items_of_run", "pair_words", "pairs_of_runs"]


def items_of_run(cases: Iterable[Case], rows: Sequence[Row], *, source: str) -> list[BlindItem]:
    """Every reply of a run as an item to label; cases without a reply are left out.

    Args:
        cases: The suite's cases.
        rows: The run's rows.
        source: What the run is called; it never reaches the page.
    """
    by_id = {case.id: case for case in cases}
    return [
        _item(by_id[row.case_id], row.repeat, {source: row.reply.text})
        for row in rows
        if row.reply is not None and row.case_id in by_id
    ]


def pairs_of_runs(
    cases: Iterable[Case], a: Sequence[Row], b: Sequence[Row], *, sources: tuple[str, str]
) -> list[BlindItem]:
    """Each case and repeat that both runs answered, as a pair; equal texts decide nothing.

    Args:
        cases: The suite's cases.
        a: One run's rows.
        b: The other's.
        sources: What the two are called; neither reaches the page.
    """
    others = {(row.case_id, row.repeat): row.reply for row in b}
    by_id = {case.id: case for case in cases}
    pairs: list[BlindItem] = []
    for row in a:
        other = others.get((row.case_id, row.repeat))
        if row.reply is None or other is None or row.case_id not in by_id:
            continue
        if row.reply.text != other.text:
            drafts = dict(zip(sources, (row.reply.text, other.text), strict=True))
            pairs.append(_item(by_id[row.case_id], row.repeat, drafts))
    return pairs


def anchor_items(
    items: Iterable[BlindItem], cases: Iterable[Case], *, sources: Sequence[str]
) -> list[AnchorItem]:
    """Labelled items as an anchor holds them, with the inputs and pages a judge needs.

    Args:
        items: What was labelled.
        cases: The suite's cases.
        sources: One source, or two in the order 1, 2.
    """
    by_id = {item_id_of(case.id): case for case in cases}
    found: list[AnchorItem] = []
    for item in items:
        case = by_id[item_id_of(item.id.rpartition("#")[0])]
        texts = [item.drafts[source] for source in sources]
        other = texts[1] if len(texts) == 2 else None
        found.append(AnchorItem(item.id, texts[0], other, case.inputs, case.context))
    return found


def pair_words(sources: tuple[str, str]) -> dict[str, str]:
    """A winner's source as the anchor's word: 1 or 2."""
    return dict(zip(sources, (FIRST, SECOND), strict=True))


def _item(case: Case, repeat: int, drafts: Mapping[str, str]) -> BlindItem:
    question = case.inputs.get("question")
    asked = str(question) if question else "\n".join(f"{k}: {v}" for k, v in case.inputs.items())
    return BlindItem(item_id_of(case.id, repeat), drafts, asked, case.context)

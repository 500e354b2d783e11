"""A judge scores an anchor: one line per item, kept, so that every number can be computed again."""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from evalkit.cases.tables import read_csv_rows
from evalkit.errors import AnchorError
from evalkit.judges.judge import Ask, Judge
from evalkit.records import Request
from evalkit.validity.anchors import Anchor, AnchorItem, AnchorKind

__all__ = ["ItemScore", "anchor_requests", "read_scores", "score_anchor", "write_scores"]


@dataclass(frozen=True, slots=True)
class ItemScore:
    """What people and the judge said of one item; `judge` None when its verdict is unread.

    `said` is the judge's justification, or why there is no verdict.
    """

    id: str
    human: str
    judge: str | None
    said: str = ""


def anchor_requests(judge: Judge, anchor: Anchor) -> list[Request]:
    """The calls that scoring would send, to be priced before anything is paid."""
    _check_kind(judge, anchor)
    return [
        request
        for item in anchor.items
        if item.id in anchor.truth
        for request in judge.requests(item.case, item.replies[0])
    ]


async def score_anchor(
    judge: Judge,
    anchor: Anchor,
    ask: Ask,
    *,
    on_item: Callable[[ItemScore], None] | None = None,
) -> tuple[ItemScore, ...]:
    """Let a judge score every item of an anchor on which people agree.

    Args:
        judge: A judge of the anchor's kind, or a trivial one beside it.
        anchor: What to score.
        ask: The seam to the model; trivial judges do not use it.
        on_item: Called as each score arrives, for progress.

    Raises:
        JudgeError: If the judge cannot judge such items.
        AnchorError: If the anchor has no texts, only recorded scores.
    """
    _check_kind(judge, anchor)
    truth = anchor.truth

    async def one(item: AnchorItem) -> ItemScore:
        score = await _score(judge, anchor, item, truth[item.id], ask)
        if on_item:
            on_item(score)
        return score

    return tuple(await asyncio.gather(*(one(i) for i in anchor.items if i.id in truth)))


def write_scores(path: Path, scores: Sequence[ItemScore]) -> None:
    """Save `id, human, judge` with the judge's words; cells that a sheet would run are quoted."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("id", "human", "judge", "said"))
    for score in scores:
        said = score.said if score.said[:1] not in "=+-@\t\r" else f"'{score.said}"
        writer.writerow((score.id, score.human, score.judge or "", said))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(out.getvalue(), encoding="utf-8")


def read_scores(path: Path) -> tuple[ItemScore, ...]:
    """Read what `write_scores` saved.

    Raises:
        AnchorError: If the file is missing or has no such columns.
    """
    rows = read_csv_rows(path, error=AnchorError)
    if rows and not {"id", "human", "judge"} <= set(rows[0][1]):
        raise AnchorError(f"{path}: needs the columns id, human and judge.")
    return tuple(
        ItemScore(
            id=str(row["id"]),
            human=str(row["human"]),
            judge=row["judge"],
            said=row.get("said") or "",
        )
        for _, row in rows
    )


def _check_kind(judge: Judge, anchor: Anchor) -> None:
    if anchor.kind is AnchorKind.PAIRS:
        raise AnchorError(f"{anchor.where}: holds pairs; use the reconstruction gate for them.")
    if not any(item.output or item.other for item in anchor.items):
        raise AnchorError(f"{anchor.where}: holds labels without texts; there is nothing to judge.")
    if anchor.kind is AnchorKind.CRITERIA and anchor.criterion not in judge.criteria:
        raise AnchorError(
            f"{anchor.where}: labels {anchor.criterion!r}; judge {judge.name} is asked "
            f"{', '.join(judge.criteria) or 'no criterion'}."
        )
    if anchor.kind is AnchorKind.SCALE and tuple(map(str, judge.levels)) != anchor.categories:
        raise AnchorError(
            f"{anchor.where}: has levels {', '.join(anchor.categories)}; judge {judge.name} gives "
            f"{', '.join(map(str, judge.levels)) or 'none'}."
        )


async def _score(judge: Judge, anchor: Anchor, item: AnchorItem, human: str, ask: Ask) -> ItemScore:
    verdicts = await judge.judge(item.case, item.replies[0], ask)
    name = anchor.criterion if anchor.kind is AnchorKind.CRITERIA else next(iter(verdicts))
    verdict = verdicts[name]
    label = verdict.label if verdict.value is not None else None
    return ItemScore(item.id, human, label, verdict.justification or verdict.reason)

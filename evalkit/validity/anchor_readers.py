"""Readers for labelled data people already have. The files stay where they are; none is shipped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evalkit.errors import AnchorError
from evalkit.validity.anchor_files import Columns, read_columns, read_rows
from evalkit.validity.anchors import FIRST, SECOND, TIE, Anchor, AnchorKind

__all__ = ["read_arxiv_edits", "read_asap", "read_llmbar", "read_pandalm"]

_ASAP_LEVELS = {3: range(0, 4), 4: range(0, 4), 5: range(0, 5), 6: range(0, 5), 2: range(1, 7)}
_LANGUAGE, _CONTENT = "Lang-", "Content"


def read_asap(path: Path, *, essay_set: int, levels: Sequence[int] | None = None) -> Anchor:
    """ASAP essays (tsv): two raters and the resolved score of one essay set.

    Args:
        path: `training_set_rel3.tsv` of the competition; its terms forbid passing the essays on.
        essay_set: 1..8.
        levels: The set's scale; known for sets 2 to 6.

    Source: Hewlett Foundation, Automated Student Assessment Prize, Kaggle 2012.
    """
    scale = levels or _ASAP_LEVELS.get(essay_set)
    if scale is None:
        raise AnchorError(
            f"ASAP set {essay_set} has a wide scale; name the levels you band it into."
        )
    return read_columns(
        path,
        Columns(
            labels=("rater1_domain1", "rater2_domain1"),
            item="essay_id",
            output="essay",
            adjudicated="domain1_score",
            where={"essay_set": str(essay_set)},
        ),
        kind=AnchorKind.SCALE,
        domain=f"essays/asap-{essay_set}",
        people="raters of the Automated Student Assessment Prize (Kaggle, 2012)",
        licence="competition terms: not to be passed on",
        categories=tuple(map(str, scale)),
    )


def read_arxiv_edits(path: Path) -> Anchor:
    """Sentence pairs of arXivEdits whose author revised the wording: the later one is the better.

    Kept are pairs with an edit for style, accuracy or readability and none of content; typo and
    format fixes alone say nothing about quality and are dropped. Both sides are in file order
    (1 earlier, 2 later): judge them in both orders.

    Source: Jiang, Xu and Stevens (2022), arXiv:2210.15067, `data/edits/*.json`.
    """
    rows = [
        (line, {**row, "preferred": SECOND})
        for line, row in read_rows(path)
        if _revises_wording(row.get("edits-combination-0"))
    ]
    columns = Columns(labels=("preferred",), output="sentence-1", other="sentence-2")
    return read_columns(
        path,
        columns,
        kind=AnchorKind.PAIRS,
        domain="scientific-writing/en",
        people="authors' revisions, intentions annotated by people (arXiv:2210.15067)",
        rows=rows,
    )


def read_llmbar(path: Path) -> Anchor:
    """LLMBar: an instruction, two outputs, and which one follows it (`dataset.json`).

    Source: Zeng et al. (2024), arXiv:2310.07641.
    """
    return read_columns(
        path,
        Columns(
            labels=("label",),
            output="output_1",
            other="output_2",
            inputs={"instruction": "input"},
            words={"1": FIRST, "2": SECOND},
        ),
        kind=AnchorKind.PAIRS,
        domain="instruction-following/en",
        people="the benchmark's authors (arXiv:2310.07641)",
        licence="MIT",
    )


def read_pandalm(path: Path) -> Anchor:
    """PandaLM's test set: three annotators say 1, 2 or tie of two responses (`testset-v1.json`).

    Source: Wang et al. (2024), arXiv:2306.05087.
    """
    return read_columns(
        path,
        Columns(
            labels=("annotator1", "annotator2", "annotator3"),
            item="idx",
            output="response1",
            other="response2",
            inputs={"instruction": "instruction", "input": "input"},
            words={"0": TIE, "1": FIRST, "2": SECOND},
        ),
        kind=AnchorKind.PAIRS,
        domain="instruction-following/en",
        people="three annotators of PandaLM's test set (arXiv:2306.05087)",
        licence="Apache-2.0",
    )


def _revises_wording(edits: Any) -> bool:
    listed = edits.values() if isinstance(edits, dict) else ()
    named = [str(e.get("intention") or "") for e in listed if isinstance(e, dict)]
    return any(i.startswith(_LANGUAGE) for i in named) and _CONTENT not in named

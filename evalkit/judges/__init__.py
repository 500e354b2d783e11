"""Judges: where no deterministic check can reach, a model judges, under rules it cannot bend.

A judge is one file (`judges/*.md`); its hash is its identity. Adding a kind is a class here and a
line in `JUDGES`. What a verdict's `flags` say:

    contradiction        the justification, or a second field, says something else
    mended, free_text    the reply was not the one JSON object that was asked for
    no_schema            the endpoint does not enforce the schema
    abstained_unasked    *cannot tell*, where the judge file does not offer it
    injection            the draft speaks to the judge (injection_in_case: the case's own text does)
    masked               names or signs of origin were replaced before the judge saw the drafts
    same_family          judge and candidate are of one family
    settled              no judge was asked (with no_answer or refusal)
    too_long             the judge did not, or would not, see its whole prompt
"""

from __future__ import annotations

from pathlib import Path

from evalkit.judges.contest import contest, contest_requests, matches, swap_report
from evalkit.judges.criteria import CriteriaJudge
from evalkit.judges.file import JudgeFile, parse_judge_file, read_judge_file
from evalkit.judges.judge import Ask, Judge, Pairing, PairVerdict, same_family
from evalkit.judges.pairwise import PairwiseJudge
from evalkit.judges.panel import Panel, panel
from evalkit.judges.scale import ScaleJudge
from evalkit.judges.tournament import Tournament, ranking, tournament
from evalkit.judges.trivial import (
    AlwaysFirst,
    LexicalOverlap,
    LongerWins,
    SeededRandom,
    trivial_judges,
)

__all__ = [
    "JUDGES",
    "Ask",
    "Judge",
    "JudgeFile",
    "PairVerdict",
    "Pairing",
    "Panel",
    "Tournament",
    "build_judge",
    "contest",
    "contest_requests",
    "load_judge",
    "matches",
    "panel",
    "parse_judge_file",
    "ranking",
    "same_family",
    "swap_report",
    "template_path",
    "tournament",
    "trivial_judges",
]

JUDGES: dict[str, type] = {
    "criteria": CriteriaJudge,
    "scale": ScaleJudge,
    "pairwise": PairwiseJudge,
    "always_first": AlwaysFirst,
    "longer_wins": LongerWins,
    "random": SeededRandom,
    "lexical": LexicalOverlap,
}


def load_judge(path: Path | str, *, model: str | None = None) -> Judge:
    """The judge in a file.

    Args:
        path: The judge file.
        model: Another "endpoint/model" than its header's; it becomes another judge, with its own
            hash.

    Raises:
        JudgeError: If the file is missing or wrong.
    """
    return build_judge(read_judge_file(path, model=model))


def build_judge(file: JudgeFile) -> Judge:
    """The judge of a file already read."""
    return JUDGES[file.kind](file)


def template_path(name: str) -> Path:
    """A judge file that ships with the package, to copy into a suite: "faithfulness.en" ..."""
    return Path(__file__).parent / "templates" / f"{name}.md"

"""What a new draft lost of the old one: the gate that needs no judge.

Sections, numbers, citations, figures and tables that disappeared, and length that collapsed; in
LaTeX, and as far as they have a notation there, in Markdown and plain text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from evalkit.errors import ScorerError
from evalkit.records import Case, Finding, Reply, Score
from evalkit.scorers.answer import no_answer
from evalkit.scorers.citations import citations_in
from evalkit.scorers.latex import looks_like_tex, parse
from evalkit.scorers.number_reading import numbers_in, read
from evalkit.scorers.report import sections, tex_of

__all__ = ["ContentKept", "ContentLoss", "content_loss"]

_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t#]*$", re.MULTILINE)
_IMAGE = re.compile(r"!\[[^\]\n]{0,300}\]\(([^)\s]{1,300})")
_TABLE_RULE = re.compile(
    r"^[ \t]*\|?[ \t]*:?-{2,}:?[ \t]*(?:\|[ \t]*:?-{2,}:?[ \t]*)+\|?[ \t]*$", re.M
)
KINDS = ("sections", "numbers", "citations", "figures", "tables")


@dataclass(frozen=True, slots=True)
class ContentLoss:
    """Per kind what the old draft had (`had`) and what of it is gone (`lost`), as shown texts.

    `length_ratio` is visible characters of the new draft over those of the old one.
    """

    had: Mapping[str, int]
    lost: Mapping[str, tuple[str, ...]]
    length_ratio: float
    problem: str = ""

    def kept(self, kind: str) -> float:
        """Share of one kind that is still there, 0..1; 1 when the old draft had none."""
        return 1 - len(self.lost[kind]) / self.had[kind] if self.had[kind] else 1.0


def content_loss(old: str, new: str) -> ContentLoss:
    """Compare two drafts of one text, LaTeX, Markdown or plain."""
    before, after = _contents(old), _contents(new)
    lost = {kind: tuple((before[kind] - after[kind]).elements()) for kind in KINDS}
    had = {kind: before[kind].total() for kind in KINDS}
    length = len("".join(read(old).text.split()))
    ratio = len("".join(read(new).text.split())) / length if length else 1.0
    return ContentLoss(had, lost, ratio, read(old).problem or read(new).problem)


def _contents(text: str) -> dict[str, Counter[str]]:
    contents = {
        "numbers": _once(f"{n.value:.10g}" for n in numbers_in(text)),
        "citations": _once(c.key for c in citations_in(text)),
    }
    if looks_like_tex(text):
        tex = parse(text)
        titles = (p.title.casefold() for p in sections(text) if p.kind == "section")
        figures = Counter(m.last.strip() for m in tex.named("includegraphics"))
        figures["(drawn)"] = sum(1 for _ in tex.within("tikzpicture", "picture"))
        tables = sum(1 for _ in tex.within("tabular", "tabular*", "tabularx", "longtable"))
    else:
        titles = (title.casefold() for title in _HEADING.findall(text))
        figures = Counter(_IMAGE.findall(text))
        tables = len(_TABLE_RULE.findall(text))
    return contents | {
        "sections": Counter(titles),
        "figures": +figures,
        "tables": Counter({"table": tables}),
    }


def _once(items: Iterable[str]) -> Counter[str]:
    """Each item once: a number said twice and now once is not lost."""
    return Counter(set(items))


@dataclass(frozen=True)
class ContentKept:
    """The smallest share kept of the old draft's sections, numbers, citations, figures, tables.

    Args:
        old: Name of the old draft in the case's inputs, expected or material.
        min_length: Shares of the old length below which the value falls in proportion.
        ignore: Kinds that may go, for instance ("sections",) when sections are renamed.
    """

    VERSION: ClassVar[int] = 1
    old: str = "draft"
    min_length: float = 0.5
    ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if unknown := set(self.ignore) - set(KINDS):
            raise ScorerError(
                f"content_kept: ignore has {sorted(unknown)}; it takes {', '.join(KINDS)}."
            )

    def __call__(self, case: Case, reply: Reply) -> Score:
        """Compare the reply with the old draft."""
        if (none := no_answer(case, reply)) is not None:
            return none
        loss = content_loss(self._old(case), tex_of(reply.text))
        if loss.problem:
            return Score(0.0, f"the drafts could not be compared: {loss.problem}")
        shares = {kind: loss.kept(kind) for kind in KINDS if kind not in self.ignore}
        shares["length"] = min(1.0, loss.length_ratio / self.min_length) if self.min_length else 1.0
        gone = [
            f"{len(loss.lost[kind])} of {loss.had[kind]} {kind} gone"
            for kind in shares
            if kind != "length" and loss.lost[kind]
        ]
        if shares["length"] < 1:
            gone.append(f"length fell to {loss.length_ratio:.0%}")
        findings = tuple(
            Finding(f"gone from {kind}: {item}")
            for kind in shares
            if kind != "length"
            for item in loss.lost[kind][:20]
        )
        reason = "; ".join(gone) or "everything of the old draft is still there"
        details = {"length_ratio": loss.length_ratio, **{k: list(v) for k, v in loss.lost.items()}}
        return Score(min(shares.values()), reason, findings=findings, details=details)

    def _old(self, case: Case) -> str:
        for place in (case.inputs, case.expected, case.material):
            if isinstance(draft := place.get(self.old), str):
                return draft
        raise ScorerError(
            f"case {case.id!r} has no old draft {self.old!r} in its inputs, expected or material. "
            "Add it, or name another one in the criterion's 'old'."
        )

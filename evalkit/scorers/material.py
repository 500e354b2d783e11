"""What a report of this kind needs and the material lacks, each gap named.

Needs: `data` (a data file with numbers in it), `bib`, `figure`, `uncertainty` (of the data, in a
column or in the notes), `units` (of every data column). Whatever the needs, a file that a note
names and that is not there is a gap.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from evalkit.errors import ScorerError
from evalkit.records import Case, Finding, Reply, Score
from evalkit.scorers.citations import bib_keys
from evalkit.scorers.number_reading import numbers_in

__all__ = ["NEEDS", "Gap", "MaterialComplete", "material_gaps"]

_DATA = (".csv", ".tsv", ".dat")
_FIGURE = (".pdf", ".png", ".jpg", ".jpeg", ".svg", ".eps")
_NOTES = (".md", ".txt", ".tex", ".rst")
_NAMED_FILE = re.compile(r"(?<![\w/.:-])([\w-]{1,80}\.(?:csv|tsv|dat|pdf|png|jpe?g|svg|eps|bib))\b")
_UNCERTAIN = re.compile(
    r"±|\\pm|\buncertaint|\b(?:standard )?(?:deviation|error)\b|误差|不确定度|标准差", re.IGNORECASE
)
_UNCERTAIN_COLUMN = re.compile(
    r"(?:^|[_\s(])(?:u|du|sd|se|std|sigma|err|error|unc|uncertainty|delta)(?:$|[_\s()\[\d])|±|σ|误差|不确定度",
    re.IGNORECASE,
)
_UNIT = re.compile(
    r"[\[(（][^\])）]*[\])）]|/\s*\S+|[_\s](?:n|u|µ|m|c|k|M)?(?:m|s|g|A|K|V|W|N|J|Hz|Pa|C|T|L|mol|rad|deg"
    r"|ohm|percent|pct|ms|kg|mm|cm|nm|min|h|eV|bar|lx|counts?|m_s2|per_\w+)2?$|%|°"
)
_NO_UNIT = re.compile(
    r"^(?:run|n|no|nr|id|index|trial|sample|label|name|group|series|repeat|remark|note|count|swings?"
    r"|序号|编号|次数|备注|样品)$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Gap:
    """One thing that is missing: the need it belongs to, and a sentence."""

    need: str
    sentence: str


def material_gaps(material: Mapping[str, str], needs: Sequence[str]) -> tuple[Gap, ...]:
    """Name what a report needs and the material lacks, in a stable order.

    Args:
        material: File names to their text.
        needs: Of `data`, `bib`, `figure`, `uncertainty`, `units`.

    Raises:
        ScorerError: If a need is unknown.
    """
    if unknown := [need for need in needs if need not in NEEDS]:
        raise ScorerError(f"unknown need {unknown[0]!r}. There are: {', '.join(NEEDS)}.")
    gaps = [gap for need in NEEDS if need in needs for gap in NEEDS[need](material)]
    return (*gaps, *_named_but_absent(material))


def _data_files(material: Mapping[str, str]) -> dict[str, str]:
    return {
        name: text
        for name, text in sorted(material.items())
        if name.lower().endswith(_DATA) and numbers_in(text, everything=True)
    }


def _data(material: Mapping[str, str]) -> Iterator[Gap]:
    if not _data_files(material):
        yield Gap("data", f"no data file ({', '.join(_DATA)}) with a number in it")


def _bib(material: Mapping[str, str]) -> Iterator[Gap]:
    if not any(bib_keys(text) for name, text in material.items() if name.endswith(".bib")):
        yield Gap("bib", "no .bib file with an entry in it")


def _figure(material: Mapping[str, str]) -> Iterator[Gap]:
    if not any(text and name.lower().endswith(_FIGURE) for name, text in material.items()):
        yield Gap("figure", f"no figure ({', '.join(_FIGURE)})")


def _uncertainty(material: Mapping[str, str]) -> Iterator[Gap]:
    columns = (c for text in _data_files(material).values() for c in _columns(text))
    notes = (text for name, text in material.items() if name.lower().endswith(_NOTES))
    if any(map(_UNCERTAIN_COLUMN.search, columns)):
        return
    if not any(_has_quantified_uncertainty(text) for text in notes):
        yield Gap("uncertainty", "no uncertainty of the data, neither in a column nor in the notes")


def _has_quantified_uncertainty(text: str) -> bool:
    return any(
        re.search(r"\d", text[found.end() : found.end() + 120])
        for found in _UNCERTAIN.finditer(text)
    )


def _units(material: Mapping[str, str]) -> Iterator[Gap]:
    for name, text in _data_files(material).items():
        for column in _columns(text):
            if not (_UNIT.search(column) or _NO_UNIT.match(column)):
                yield Gap("units", f"the column {column!r} of {name} has no unit")


def _named_but_absent(material: Mapping[str, str]) -> Iterator[Gap]:
    named: dict[str, str] = {}
    for note, text in sorted(material.items()):
        if note.lower().endswith(_NOTES):
            for found in _NAMED_FILE.findall(text):
                named.setdefault(found, note)
    for name, note in named.items():
        if name not in material:
            yield Gap("file", f"{name} is named in {note} but is not there")


def _columns(text: str) -> list[str]:
    """The names in the header line of a data file; empty when its first line holds data."""
    for line in text.splitlines():
        line = line.strip("\ufeff# \t")
        if line:
            cells = [c.strip().strip("\"'") for c in re.split(r"[,;\t]", line)]
            holds_data = any(re.fullmatch(r"[-+]?[\d.]+(?:[eE][-+]?\d+)?", c) for c in cells)
            return [] if holds_data else cells
    return []


NEEDS: dict[str, Callable[[Mapping[str, str]], Iterator[Gap]]] = {
    "data": _data,
    "bib": _bib,
    "figure": _figure,
    "uncertainty": _uncertainty,
    "units": _units,
}


@dataclass(frozen=True)
class MaterialComplete:
    """Share of the needs that the case's material meets: says whether a low score is the prompt's.

    Args:
        needs: What a report of this suite needs; `expected.needs` of a case replaces it.
    """

    VERSION: ClassVar[int] = 1
    needs: tuple[str, ...] = ("data", "bib", "uncertainty", "units")

    def __call__(self, case: Case, reply: Reply) -> Score:
        """Look at the material of the case; the reply plays no part."""
        needs = tuple(str(need) for need in case.expected.get("needs", self.needs))
        gaps = material_gaps(case.material, needs)
        lacking = {gap.need for gap in gaps}
        total = len(set(needs) | lacking)
        if not gaps:
            return Score(1.0, f"nothing is missing of: {', '.join(needs) or 'no needs'}")
        findings = tuple(Finding(f"{gap.need}: {gap.sentence}") for gap in gaps)
        said = "; ".join(gap.sentence for gap in gaps[:5])
        details = {"gaps": [gap.need for gap in gaps]}
        return Score(1 - len(lacking) / total, said, findings=findings, details=details)

"""May this anchor measure a judge of this suite? What the suite has shown it is refused.

Items seen in a prompt, a few-shot example or a training case, by id or by near-duplicate text, are
taken out. Labels that the package's own rules produced are circular: that anchor is refused whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from evalkit.counting import counted
from evalkit.errors import AnchorError
from evalkit.hashing import sha256_hex
from evalkit.records import Case
from evalkit.validity.anchors import Anchor, AnchorItem, short_is_never_right
from evalkit.validity.degradations import DEGRADATIONS, weaken
from evalkit.validity.provenance import Provenance

__all__ = [
    "Accepted",
    "Refusal",
    "SeenText",
    "accept",
    "refuse_circular",
    "seen_cases",
    "similarity",
]

TRAINING_TAGS = frozenset({"train", "training", "few_shot", "few-shot", "fewshot"})
_WORDS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_]+")
_SHINGLE, _NEAR, _FEWEST_WORDS, _FEWEST_DIGITS = 4, 0.8, 8, 6


@dataclass(frozen=True)
class SeenText:
    """A text the system or the judge has seen: `where` says in which file; `id` of a case."""

    where: str
    text: str
    id: str = ""

    @cached_property
    def shingles(self) -> frozenset[tuple[str, ...]]:
        """Its word sequences."""
        return _shingles(self.text)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An item that was taken out, and why."""

    item_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Accepted:
    """The anchor that is left; what was taken out; warnings that travel into every table."""

    anchor: Anchor
    refused: tuple[Refusal, ...]
    warnings: tuple[str, ...]


def accept(
    anchor: Anchor,
    seen: Sequence[SeenText] = (),
    *,
    strong_texts: Iterable[str] = (),
    own_names: Iterable[str] = (),
) -> Accepted:
    """Every check at once; what admission and the label notebook call.

    Args:
        anchor: What somebody wants to use.
        seen: Prompts, few-shot examples and training cases of the suite (`seen_cases`).
        strong_texts: Gold texts of the suite, from which its own weak versions are made.
        own_names: Names of the package's scorers and judges, which cannot label an anchor.

    Raises:
        AnchorError: If the anchor is circular, or no item is left.
    """
    refuse_circular(anchor, strong_texts=strong_texts, own_names=own_names)
    refused = tuple(r for item in anchor.items if (r := _contact(item, seen)))
    left = anchor.keep({item.id for item in anchor.items} - {r.item_id for r in refused})
    if not left.items:
        raise AnchorError(f"{anchor.where}: every item is known to the suite: {refused[0].reason}.")
    warnings = list(anchor.notes)
    if anchor.provenance is Provenance.UNKNOWN:
        warnings.append("provenance not stated: counts as synthetic, can only take a licence away")
    elif not anchor.provenance.may_grant:
        warnings.append(f"{anchor.provenance.value} anchor: can only take a licence away")
    if refused:
        warnings.append(f"{counted(len(refused), 'item')} refused: the suite has shown them")
    if flag := short_is_never_right(left):
        warnings.append(flag)
    return Accepted(left, refused, tuple(warnings))


def seen_cases(cases: Iterable[Case], *, where: str, all_cases: bool = False) -> list[SeenText]:
    """Training and few-shot cases (by tag) as seen texts; with `all_cases` every case."""
    return [
        SeenText(f"{where}: case {case.id}", text, case.id)
        for case in cases
        if all_cases or TRAINING_TAGS & set(case.tags)
        for text in (_said(case.inputs), str(case.expected.get("reply", "")))
        if text
    ]


def refuse_circular(
    anchor: Anchor, *, strong_texts: Iterable[str] = (), own_names: Iterable[str] = ()
) -> None:
    """Refuse labels that the package's own degradations, scorers or judges produced.

    Both are looked at: what the rows say (`annotator`, `made_by`), and whether an output is what
    one of the degradations makes of another output of the anchor, or of a strong text.

    Raises:
        AnchorError: If so, with the item and the rule.
    """
    own = {*DEGRADATIONS, *own_names}
    for label in anchor.labels:
        named = {*re.split(r"[\s:/,;]+", label.made_by), *re.split(r"[\s:/,;]+", label.annotator)}
        if by := sorted(named & own):
            raise AnchorError(
                f"{anchor.where}: item {label.item_id!r} was labelled by {by[0]}, a rule of this "
                "package: that is circular. An anchor needs evidence from outside the system."
            )
    outputs = {
        _fingerprint(text): item.id
        for item in anchor.items
        for text in (item.output, item.other)
        if text
    }
    texts = [t for item in anchor.items for t in (item.output, item.other) if t]
    for text in [*texts, *strong_texts]:
        for how in DEGRADATIONS:
            if how == "invent_numbers" and sum(map(str.isdigit, text)) < _FEWEST_DIGITS:
                continue  # "It is 5." becomes "It is 6.", which people write, too
            try:
                weak = _fingerprint(weaken(text, how))
            except AnchorError:
                continue
            if weak in outputs:
                raise AnchorError(
                    f"{anchor.where}: item {outputs[weak]!r} is what {how} makes of a known text: "
                    "circular. An anchor needs evidence from outside the system."
                )


def similarity(a: str, b: str) -> float:
    """Jaccard similarity of two texts' sequences of four words (CJK: characters), 0..1."""
    one, two = _shingles(a), _shingles(b)
    return len(one & two) / len(one | two) if one | two else 0.0


def _contact(item: AnchorItem, seen: Sequence[SeenText]) -> Refusal | None:
    # An answer of one to three words ("Yes.") says nothing; a question that short still does.
    outputs = [t for t in (item.output, item.other) if t and len(_words(t)) >= _SHINGLE]
    texts = [t for t in (_said(item.inputs), *outputs) if t]
    shingled = [(len(_words(t)), _shingles(t)) for t in texts]
    for known in seen:
        if known.id and known.id == item.id:
            return Refusal(item.id, f"its id is the one of {known.where}")
        for n_words, own in shingled:
            shared = len(own & known.shingles)
            if shared and (
                shared / len(own | known.shingles) >= _NEAR
                or (n_words >= _FEWEST_WORDS and shared / len(own) >= _NEAR)
            ):
                return Refusal(item.id, f"its text stands in {known.where}")
    return None


def _said(inputs: Mapping[str, object]) -> str:
    return " ".join(str(v) for v in inputs.values() if isinstance(v, (str, int, float)))


def _words(text: str) -> list[str]:
    return _WORDS.findall(text.casefold())


def _shingles(text: str) -> frozenset[tuple[str, ...]]:
    words = _words(text)
    if len(words) < _SHINGLE:
        return frozenset({tuple(words)}) if words else frozenset()
    return frozenset(tuple(words[i : i + _SHINGLE]) for i in range(len(words) - _SHINGLE + 1))


def _fingerprint(text: str) -> str:
    return sha256_hex(" ".join(text.split()))

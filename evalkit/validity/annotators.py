"""How far people agree with each other: the ceiling for any judge, and what to talk about."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from evalkit.counting import counted
from evalkit.errors import AnchorError
from evalkit.stats.agreement import cohen_kappa, krippendorff_alpha, quadratic_weighted_kappa
from evalkit.stats.result import Interval
from evalkit.validity.anchors import Anchor, AnchorItem, AnchorKind, AnchorLabel
from evalkit.validity.labels import CANNOT_TELL, Label, current_labels
from evalkit.validity.provenance import Provenance

__all__ = ["Agreed", "Disagreement", "anchor_from_labels", "annotator_agreement", "disagreements"]


@dataclass(frozen=True, slots=True)
class Agreed:
    """Agreement among annotators; `kappas` per pair (quadratic weights on a scale).

    `sentence` says what it means for a judge. `cannot_tell` counts those answers; they are in no
    figure.
    """

    alpha: Interval
    kappas: dict[tuple[str, str], Interval]
    n_items: int
    n_shared: int
    cannot_tell: int
    sentence: str


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One item and what each annotator said of it."""

    item_id: str
    said: dict[str, str]


def annotator_agreement(
    labels: Iterable[Label], categories: Sequence[str], *, ordered: bool, criterion: str = ""
) -> Agreed:
    """Krippendorff's alpha over all annotators, kappa per pair.

    Args:
        labels: Lines of a label file.
        categories: Every possible label, lowest first.
        ordered: Whether the labels are levels.
        criterion: Which criterion's labels.
    """
    by_item, unsure = _table(labels, criterion)
    people = sorted({who for given in by_item.values() for who in given})
    shared = [given for given in by_item.values() if len(given) > 1]
    rows = [[given.get(who) for given in by_item.values()] for who in people]
    scale = [int(c) for c in categories] if ordered else list(categories)
    coded = [[None if v is None else scale[categories.index(v)] for v in row] for row in rows]
    if not coded or not shared:
        nan = float("nan")
        alpha = Interval(nan, nan, nan, method="krippendorff", reasons=("no_shared_item",))
        return Agreed(alpha, {}, len(by_item), 0, unsure, "No item has two labels yet.")
    alpha = krippendorff_alpha(coded, scale, distance="ordinal" if ordered else "nominal")
    kappa = quadratic_weighted_kappa if ordered else cohen_kappa
    kappas = {
        (people[a], people[b]): kappa(coded[a], coded[b], scale)
        for a, b in combinations(range(len(people)), 2)
    }
    words = (
        f"People agree at alpha {alpha.estimate:.2f} ({alpha.ci_low:.2f} to {alpha.ci_high:.2f}) "
        f"on {counted(len(shared), 'item')}: no judge can be asked to agree with them better."
        if alpha.defined
        else f"All {len(shared)} shared items have one and the same label: alpha is not defined."
    )
    return Agreed(alpha, kappas, len(by_item), len(shared), unsure, words)


def disagreements(labels: Iterable[Label], *, criterion: str = "") -> tuple[Disagreement, ...]:
    """Items on which people differ, most voices first, until somebody adjudicates them."""
    by_item, _ = _table(labels, criterion)
    split = [
        Disagreement(item, given)
        for item, given in by_item.items()
        if "adjudicated" not in given and len(set(given.values())) > 1
    ]
    return tuple(sorted(split, key=lambda d: (-len(d.said), d.item_id)))


def anchor_from_labels(
    labels: Iterable[Label],
    items: Iterable[AnchorItem],
    *,
    name: str,
    kind: AnchorKind,
    domain: str,
    categories: Sequence[str],
    criterion: str = "",
    words: Mapping[str, str] | None = None,
    people: str = "",
    licence: str = "",
) -> Anchor:
    """The labels people gave here, as an anchor with provenance human.

    Only lines of the label file come in, which only people write. "Cannot tell" is no label.

    Args:
        labels: Lines of a label file.
        items: The items with their texts; those without a label are left out.
        name: The anchor's name.
        kind: What was asked.
        domain: The suite's domain.
        categories: Every possible label, lowest first.
        criterion: Which criterion's labels.
        words: What a label is called in the anchor; for pairs the winner's source to "1" or "2".
        people: Who they are, in words; the annotators' names without.
        licence: Under which licence the texts and labels stand.

    Raises:
        AnchorError: If nothing was labelled, or a label is not among the categories.
    """
    by_item, _ = _table(labels, criterion)
    kept = tuple(item for item in items if by_item.get(item.id))
    if not kept:
        raise AnchorError(f"{name}: no item of these has a label yet.")
    said = tuple(
        AnchorLabel(item.id, who, (words or {}).get(label, label))
        for item in kept
        for who, label in sorted(by_item[item.id].items())
    )
    names = sorted({label.annotator for label in said})
    return Anchor(
        name=name,
        kind=kind,
        domain=domain,
        provenance=Provenance.HUMAN,
        categories=tuple(categories),
        items=kept,
        labels=said,
        criterion=criterion,
        licence=licence,
        people=people or f"labelled blind with evalkit by {', '.join(names)}",
    )


def _table(labels: Iterable[Label], criterion: str) -> tuple[dict[str, dict[str, str]], int]:
    by_item: dict[str, dict[str, str]] = defaultdict(dict)
    unsure = 0
    for (item, about, who), label in current_labels(labels).items():
        if about != criterion:
            continue
        if label.label == CANNOT_TELL:
            unsure += 1
        elif label.label is not None:
            by_item[item][who] = label.label
    return dict(by_item), unsure

from __future__ import annotations

import pytest

from evalkit.errors import AnchorError
from evalkit.validity.anchors import AnchorItem, AnchorKind
from evalkit.validity.annotators import anchor_from_labels, annotator_agreement, disagreements
from evalkit.validity.labels import Label
from evalkit.validity.provenance import Provenance


def said(item: str, who: str, label: str | None, action: str = "label") -> Label:
    return Label.model_validate(
        {"item_id": item, "annotator": who, "label": label, "action": action}
    )


LABELS = [
    *(said(f"i{n}", "ann", "yes" if n % 2 else "no") for n in range(20)),
    *(said(f"i{n}", "bob", "yes" if n % 2 else "no") for n in range(1, 20)),
    said("i0", "bob", "yes"),
    said("i1", "cem", "cannot_tell"),
]


def test_agreement_counts_shared_items_and_leaves_cannot_tell_out() -> None:
    found = annotator_agreement(LABELS, ("no", "yes"), ordered=False)
    assert (found.n_items, found.n_shared, found.cannot_tell) == (20, 20, 1)
    assert found.kappas["ann", "bob"].estimate == pytest.approx(0.9)
    assert 0.85 < found.alpha.estimate < 1
    assert "no judge can be asked" in found.sentence


def test_levels_are_ordered() -> None:
    lines = [said(f"i{n}", "ann", str(1 + n % 4)) for n in range(12)]
    lines += [said(f"i{n}", "bob", str(1 + (n + 1) % 4)) for n in range(12)]
    found = annotator_agreement(lines, ("1", "2", "3", "4"), ordered=True)
    assert found.kappas["ann", "bob"].estimate == pytest.approx(-0.2)


def test_without_a_shared_item_nothing_is_claimed() -> None:
    found = annotator_agreement([said("i", "ann", "yes")], ("no", "yes"), ordered=False)
    assert not found.alpha.defined
    assert found.sentence == "No item has two labels yet."
    same = [said(i, who, "yes") for i in "abc" for who in ("ann", "bob")]
    assert "alpha is not defined" in annotator_agreement(
        same, ("no", "yes"), ordered=False
    ).sentence  # fmt: skip


def test_disagreements_wait_until_somebody_adjudicates() -> None:
    assert [d.item_id for d in disagreements(LABELS)] == ["i0"]
    assert disagreements([*LABELS, said("i0", "adjudicated", "no")]) == ()


def test_labels_become_an_anchor_with_provenance_human() -> None:
    items = [AnchorItem(f"i{n}", f"text {n}") for n in range(20)] + [AnchorItem("x", "unlabelled")]
    lines = [*LABELS, said("i0", "adjudicated", "no"), said("i5", "bob", None, "undo")]
    found = anchor_from_labels(
        lines, items, name="mine", kind=AnchorKind.CRITERIA, domain="d", categories=("no", "yes")
    )
    assert found.provenance is Provenance.HUMAN
    assert len(found.items) == 20
    assert found.truth["i0"] == "no"
    assert sum(label.item_id == "i5" for label in found.labels) == 1
    assert found.people == "labelled blind with evalkit by adjudicated, ann, bob"
    with pytest.raises(AnchorError, match="no item"):
        anchor_from_labels(
            [], items, name="m", kind=AnchorKind.CRITERIA, domain="d", categories=("no", "yes")
        )

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from evalkit.errors import AnchorError
from evalkit.validity.provenance import Provenance, labels_of_people, read_provenance

PACKAGE = Path(__file__).resolve().parents[2] / "evalkit"
# labels.py: the one writer. annotators.py: exports its lines. provenance.py: the import's door.
MAY_SAY_HUMAN = {"labels.py", "annotators.py", "provenance.py"}


def says_human(tree: ast.Module) -> bool:
    """Whether a file gives the word to a label; comparing with it is free."""
    compared = {id(x) for node in ast.walk(tree) if isinstance(node, ast.Compare)
                for x in ast.walk(node)}  # fmt: skip
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == "HUMAN"
        and isinstance(node.value, ast.Name)
        and node.value.id == "Provenance"
        and id(node) not in compared
        for node in ast.walk(tree)
    )


def test_only_the_label_writer_and_an_import_of_peoples_labels_say_human() -> None:
    found = {
        path.name
        for path in PACKAGE.rglob("*.py")
        if says_human(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found <= MAY_SAY_HUMAN | {"anchor_files.py"}
    order = (PACKAGE / "validity" / "anchor_files.py").read_text(encoding="utf-8")
    assert order.count("Provenance.HUMAN") == 1  # the order of strength, from a file's own column


def test_nothing_stated_is_unknown_and_unknown_grants_nothing() -> None:
    assert read_provenance(None) is read_provenance(" ") is Provenance.UNKNOWN
    assert [p for p in Provenance if p.may_grant] == [Provenance.HUMAN]
    assert read_provenance("Human") is Provenance.HUMAN
    with pytest.raises(AnchorError, match="is unknown here"):
        read_provenance("gpt-4")


def test_an_import_that_does_not_say_whose_labels_they_are_is_unknown() -> None:
    assert labels_of_people("") is labels_of_people(" ") is Provenance.UNKNOWN
    assert labels_of_people("two teachers") is Provenance.HUMAN

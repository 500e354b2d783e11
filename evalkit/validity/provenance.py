"""Where a label came from. It decides whether the label may grant anything."""

from __future__ import annotations

from enum import StrEnum

from evalkit.errors import AnchorError

__all__ = ["Provenance", "labels_of_people", "read_provenance"]


class Provenance(StrEnum):
    """HUMAN: a person gave it. SYNTHETIC: true by construction. MODEL: a model gave it.

    UNKNOWN: nobody said; it counts as synthetic. Everything but HUMAN can take a licence away and
    never grant one.
    """

    HUMAN = "human"
    SYNTHETIC = "synthetic"
    MODEL = "model"
    UNKNOWN = "unknown"

    @property
    def may_grant(self) -> bool:
        """True for labels that people gave."""
        return self is Provenance.HUMAN


def read_provenance(text: str | None, *, where: str = "") -> Provenance:
    """The provenance a file states; nothing stated is UNKNOWN.

    Raises:
        AnchorError: If the word is none of the four.
    """
    word = (text or "").strip().lower()
    if not word:
        return Provenance.UNKNOWN
    try:
        return Provenance(word)
    except ValueError:
        raise AnchorError(
            f"{where}: provenance {text!r} is unknown here. Write human (a person gave the label), "
            "synthetic (true by construction) or model (a model gave it)."
        ) from None


def labels_of_people(people: str | None) -> Provenance:
    """HUMAN for an import that says whose labels these are; UNKNOWN for one that does not.

    This is the only door besides the label notebook through which HUMAN comes in.

    Args:
        people: Who gave the labels and where they were published, in words; kept in the anchor.
    """
    return Provenance.HUMAN if people and people.strip() else Provenance.UNKNOWN

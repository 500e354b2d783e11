"""Several judges on the same drafts: where those still standing disagree, nobody has won."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from evalkit.errors import JudgeError
from evalkit.stats.kappa import cohen_kappa
from evalkit.stats.result import Interval

__all__ = ["Panel", "PanelVerdict", "panel"]


@dataclass(frozen=True, slots=True)
class PanelVerdict:
    """What a panel says of one item.

    `status` is "agreed" (all who gave a verdict gave this one), "ambiguous" (they contradict each
    other; `label` is None), or "unscored" (no standing judge gave one). `by` holds each standing
    judge's own label, None where it gave none.
    """

    label: str | None
    status: str
    by: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Panel:
    """The panel's verdicts, who stood, who was left out and why, and how far pairs of them agree.

    `agreement` maps two standing judges to (items with the same label, items both labelled);
    `kappa` to Cohen's kappa on the latter.
    """

    standing: tuple[str, ...]
    eliminated: Mapping[str, str]
    verdicts: Mapping[Hashable, PanelVerdict]
    agreement: Mapping[tuple[str, str], tuple[int, int]]
    kappa: Mapping[tuple[str, str], Interval]

    @property
    def ambiguous(self) -> tuple[Hashable, ...]:
        """The items on which standing judges contradict each other."""
        return tuple(k for k, v in self.verdicts.items() if v.status == "ambiguous")


def panel(
    labels: Mapping[str, Mapping[Hashable, str | None]],
    *,
    categories: Sequence[str],
    eliminated: Mapping[str, str] | None = None,
) -> Panel:
    """Bring several judges' labels together without averaging them.

    Args:
        labels: Judge to item to label ("a", "yes", "4"); None is unscored.
        categories: Every label there is, in order: "a", "tie", "b".
        eliminated: Judge to the reason why it has no vote; its verdicts are left out and it is
            listed.

    Raises:
        JudgeError: If no judge is left standing, or a label is no category.
    """
    out = {name: why for name, why in (eliminated or {}).items() if name in labels}
    standing = tuple(name for name in labels if name not in out)
    if not standing:
        raise JudgeError("a panel needs a judge that is not eliminated.")
    items = list(dict.fromkeys(item for name in standing for item in labels[name]))
    for name in standing:
        for item, label in labels[name].items():
            if label is not None and label not in categories:
                raise JudgeError(f"judge {name}, item {item!r}: {label!r} is none of {categories}.")
    agreement: dict[tuple[str, str], tuple[int, int]] = {}
    kappa: dict[tuple[str, str], Interval] = {}
    for one, other in combinations(standing, 2):
        pairs = [(labels[one].get(i), labels[other].get(i)) for i in items]
        both = [(x, y) for x, y in pairs if x is not None and y is not None]
        agreement[one, other] = (sum(x == y for x, y in both), len(both))
        kappa[one, other] = cohen_kappa(
            [x for x, _ in both], [y for _, y in both], categories=categories
        )
    verdicts = {i: _together({n: labels[n].get(i) for n in standing}) for i in items}
    return Panel(standing, out, verdicts, agreement, kappa)


def _together(by: Mapping[str, str | None]) -> PanelVerdict:
    said = {label for label in by.values() if label is not None}
    if len(said) == 1:
        return PanelVerdict(said.pop(), "agreed", by)
    return PanelVerdict(None, "ambiguous" if said else "unscored", by)

"""Is an admitted judge still the judge that was admitted? Re-score some anchor items and look."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from evalkit.counting import counted
from evalkit.errors import AnchorError
from evalkit.stats.admission import Drift, drift_check
from evalkit.validity.anchors import Anchor, AnchorKind, draw_per_band
from evalkit.validity.licence import revoke_licence
from evalkit.validity.scoring import ItemScore

__all__ = ["FEWEST", "DriftFound", "check_drift", "drift_items"]

FEWEST = 30


@dataclass(frozen=True, slots=True)
class DriftFound:
    """What the check found; `revoked` when the licence was taken away for it."""

    drift: Drift
    revoked: bool
    sentence: str


def drift_items(anchor: Anchor, n: int = FEWEST, *, seed: int = 7) -> Anchor:
    """The part of an anchor to re-score: `n` items, as equal over the bands as they allow.

    Raises:
        AnchorError: If the anchor has fewer than 30 items.
    """
    if len(anchor.truth) < FEWEST or n < FEWEST:
        raise AnchorError(f"{anchor.where}: a drift check needs {counted(FEWEST, 'item')} or more.")
    for per_band in range(1, len(anchor.truth) + 1):
        drawn = draw_per_band(anchor, per_band=per_band, seed=seed).anchor
        if len(drawn.items) >= n:
            return drawn
    return anchor


def check_drift(
    anchor: Anchor,
    then: Sequence[ItemScore],
    now: Sequence[ItemScore],
    *,
    licence: Path | None = None,
    at: datetime | None = None,
) -> DriftFound:
    """Compare the judge's errors with those of its admission, item by item; worse revokes.

    Args:
        anchor: The anchor it was admitted on.
        then: The scores saved at admission.
        now: The same items scored again, at least 30.
        licence: The file to revoke; none only looks.
        at: When.

    Raises:
        AnchorError: If fewer than 30 items have both scores, or the anchor is one of pairs.
    """
    if anchor.kind is AnchorKind.PAIRS:
        raise AnchorError(f"{anchor.where}: a drift check needs scores, not pairs.")
    before = {score.id: score for score in then}
    both = [(before[s.id], s) for s in now if s.id in before]
    read = sum(a.judge is not None and b.judge is not None for a, b in both)
    if read < FEWEST:
        raise AnchorError(
            f"{anchor.where}: {counted(read, 'item')} scored twice; a drift check needs {FEWEST}."
        )
    value = _values(anchor)
    found = drift_check(
        [value(a.human) for a, _ in both],
        [value(a.judge) for a, _ in both],
        [value(b.judge) for _, b in both],
        span=value(anchor.categories[-1]) - value(anchor.categories[0]),
    )
    change = found.change
    words = (
        f"on {counted(read, 'item')} its mean error changed by {-change.estimate:+.2f} "
        f"({-change.ci_high:+.2f} to {-change.ci_low:+.2f})"
    )
    if found.revoked:
        if licence is not None:
            revoke_licence(licence, f"drift: {words}", now=at)
        return DriftFound(found, licence is not None, f"The judge drifted: {words}.")
    return DriftFound(found, False, f"No drift shown: {words}.")


def _values(anchor: Anchor) -> Callable[[str | None], float]:
    if anchor.kind is AnchorKind.CRITERIA:
        numbers = {"yes": 1.0, "no": 0.0}
        return lambda label: numbers.get(label or "", float("nan"))
    return lambda label: float("nan") if label is None else float(label)

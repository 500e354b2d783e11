"""May this judge be used so, here, today? One sentence says why not, and what has changed since."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from evalkit.errors import AnchorError, LicenceError
from evalkit.judges.judge import Judge, same_family
from evalkit.validity.anchor_files import file_digest
from evalkit.validity.licence import AnchorPin, Evidence, JudgePin, Licence, pin_judge, read_licence

__all__ = ["Ruling", "check_licence", "use_of"]


@dataclass(frozen=True, slots=True)
class Ruling:
    """May this judge be used so? `sentence` says why not, or under what; `warnings` travel."""

    valid: bool
    sentence: str
    licence: Licence | None = None
    warnings: tuple[str, ...] = ()


def check_licence(
    judge: Judge,
    suite: Path,
    *,
    domain: str,
    use: str,
    now: datetime | None = None,
    candidate: str = "",
) -> Ruling:
    """May this judge be used so, here, today? What the gate calls.

    Args:
        judge: The judge as it stands now.
        suite: The suite's folder; licences are in its `licences/`.
        domain: The suite's domain.
        use: `criterion:<name>`, `scale` or `pairwise`.
        now: The time of the check.
        candidate: The model under test ("endpoint/model"), to declare a judge of its own family.
    """
    mended = f"Run: python notebooks/admit.py --judge {judge.name} --write-licence"
    found, damaged = _licences_of(judge, suite)
    if not found:
        why = damaged or f"judge {judge.name} has no licence"
        return Ruling(False, f"{why}. {mended}")
    licence = min(found, key=lambda held: _distance(held, judge, domain))
    warnings = list(licence.warnings)
    if same_family(judge, candidate):
        warnings.append(f"judge and candidate are of one family ({judge.family})")
    grant = next((e for e in licence.evidence if use in e.grants and _may_grant(e, domain)), None)
    problems = [
        *_judge_changes(licence.judge, pin_judge(judge)),
        *([f"the domain is {domain}, not {licence.domain}"] if domain != licence.domain else []),
        *(change for e in licence.evidence if (change := _anchor_change(e.anchor, suite))),
    ]
    if problems:
        sentence = f"the licence of judge {judge.name} no longer holds: {'; '.join(problems)}"
    elif licence.revoked:
        sentence = (
            f"the licence of judge {judge.name} was revoked on {licence.revoked.at[:10]}: "
            f"{licence.revoked.reason}"
        )
    elif (today := (now or datetime.now(UTC)).date()) > licence.expires:
        sentence = (
            f"the licence of judge {judge.name} expired on {licence.expires} ({today} is later)"
        )
    elif grant is None:
        held = ", ".join(licence.uses) or "nothing"
        found_so = "; ".join(f"{e.what}: {e.state}, {e.diagnosis}" for e in licence.evidence)
        sentence = f"judge {judge.name} is not licensed for {use} but for {held} ({found_so})"
    else:
        if not grant.anchor.path:
            warnings.append(
                f"anchor {grant.anchor.name} is kept elsewhere: whether it changed is not checked"
            )
        sentence = (
            f"judge {judge.name} is licensed for {use} in {domain} until {licence.expires} "
            f"({grant.state} on {grant.anchor.name}, n = {grant.anchor.n})"
        )
        return Ruling(True, sentence, licence, tuple(warnings))
    return Ruling(False, f"{sentence}. {mended}", licence, tuple(warnings))


def use_of(judge: Judge, criterion: str) -> str:
    """The use a suite's criterion asks of a judge; what a licence must permit.

    A criteria judge is licensed question by question: the one of the criterion's name, or its only
    one.
    """
    if judge.kind in ("scale", "pairwise"):
        return judge.kind
    only = next(iter(judge.criteria)) if len(judge.criteria) == 1 else criterion
    return f"criterion:{criterion if criterion in judge.criteria else only}"


def _may_grant(evidence: Evidence, domain: str) -> bool:
    return evidence.anchor.provenance.may_grant and evidence.anchor.domain == domain


def _licences_of(judge: Judge, suite: Path) -> tuple[list[Licence], str]:
    found: list[Licence] = []
    damaged = ""
    for path in sorted((suite / "licences").glob("*.json")):
        try:
            licence = read_licence(path)
        except LicenceError as wrong:
            if path.name.startswith(f"{judge.name}."):
                damaged = str(wrong).rstrip(".")
            continue
        if licence.judge.name == judge.name or licence.judge.hash == judge.hash:
            found.append(licence)
    return found, damaged


def _distance(licence: Licence, judge: Judge, domain: str) -> tuple[int, int, int]:
    """The licence that differs least comes first, then the latest."""
    changes = len(_judge_changes(licence.judge, pin_judge(judge)))
    return changes, int(licence.domain != domain), -licence.issued.toordinal()


def _judge_changes(then: JudgePin, now: JudgePin) -> list[str]:
    if then.hash == now.hash:
        return []
    named = [
        f"its {word} changed ({before} -> {after})"
        for word, before, after in (
            ("kind", then.kind, now.kind),
            ("prompt", then.prompt, now.prompt),
            ("model", then.model, now.model),
            ("criteria, levels or settings", then.header, now.header),
        )
        if before != after
    ]
    return named or [f"it is another judge ({then.hash} -> {now.hash})"]


def _anchor_change(pin: AnchorPin, suite: Path) -> str:
    if not pin.path:
        return ""
    path = suite / pin.path
    if not path.exists():
        return f"its anchor {pin.path} is gone"
    try:
        digest = file_digest(path)
    except AnchorError as wrong:
        return f"its anchor {pin.path} cannot be read any more ({wrong})"
    if digest == pin.digest:
        return ""
    return f"its anchor {pin.path} changed ({pin.digest[:12]} -> {digest[:12]})"

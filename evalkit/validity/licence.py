"""The licence of a judge: what admission found, as a file a gate demands and a person can read.

It pins the judge (prompt, header, model), the domain and every anchor behind it. A later check says
in one sentence what has changed since. The content hash finds an edit; it is no signature: who may
write to the repository may write a licence, and version control says who did.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from evalkit.errors import AnchorError, LicenceError
from evalkit.hashing import sha256_hex, short_hash
from evalkit.judges.judge import Judge, same_family
from evalkit.validity.anchor_files import file_digest
from evalkit.validity.anchors import Anchor
from evalkit.validity.provenance import Provenance

__all__ = [
    "VALID_DAYS",
    "AnchorPin",
    "Evidence",
    "JudgePin",
    "Licence",
    "Ruling",
    "check_licence",
    "pin_anchor",
    "pin_judge",
    "read_licence",
    "revoke_licence",
    "use_of",
    "write_licence",
]

VALID_DAYS = 180
_FORM = ConfigDict(frozen=True, extra="forbid")


class JudgePin(BaseModel):
    """Who was admitted. `header` covers criteria, levels and every other setting of the file."""

    model_config = _FORM

    name: str
    kind: str
    hash: str
    prompt: str
    header: str
    model: str
    family: str


class AnchorPin(BaseModel):
    """On what. `path` is inside the suite; "" when the anchor is kept elsewhere."""

    model_config = _FORM

    name: str
    path: str
    digest: str
    provenance: Provenance
    domain: str
    criterion: str
    categories: tuple[str, ...]
    n: int
    people: str


class Evidence(BaseModel):
    """One finding: an admission or a reconstruction, what it says and what it permits.

    `figures` hold every number with its interval; `grants` is empty when it permits nothing.
    """

    model_config = _FORM

    what: str
    anchor: AnchorPin
    state: str
    ruling: str
    diagnosis: str
    action: str
    figures: Mapping[str, Any]
    grants: tuple[str, ...]


class Revocation(BaseModel):
    """When a licence was taken away, and why."""

    model_config = _FORM

    at: str
    reason: str


class Licence(BaseModel):
    """What admission found of one judge for one domain."""

    model_config = _FORM

    form: str = "evalkit licence 1"
    judge: JudgePin
    domain: str
    uses: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    warnings: tuple[str, ...]
    issued: date
    expires: date
    revoked: Revocation | None = None
    content_hash: str = ""

    @property
    def sealed(self) -> Licence:
        """The licence with the hash of everything else in it."""
        return self.model_copy(update={"content_hash": self._hash()})

    @property
    def intact(self) -> bool:
        """Whether nothing was changed by hand."""
        return self.content_hash == self._hash()

    def _hash(self) -> str:
        return sha256_hex(self.model_dump(mode="json", exclude={"content_hash"}))


@dataclass(frozen=True, slots=True)
class Ruling:
    """May this judge be used so? `sentence` says why not, or under what; `warnings` travel."""

    valid: bool
    sentence: str
    licence: Licence | None = None
    warnings: tuple[str, ...] = ()


def pin_judge(judge: Judge) -> JudgePin:
    """What makes a judge this judge, piece by piece, so that a change can be named."""
    file = getattr(judge, "file", None)
    prompt = str(file.prompt.hash) if file is not None else judge.hash
    settings: dict[str, Any] = {
        "criteria": list(judge.criteria.items()),
        "levels": [[level, text] for level, text in judge.levels.items()],
    }
    if file is not None:
        settings |= {
            name: value
            for name, value in vars(file).items()
            if name not in ("name", "prompt", "model", "family", "criteria", "levels")
        }
    return JudgePin(
        name=judge.name,
        kind=judge.kind,
        hash=judge.hash,
        prompt=prompt,
        header=short_hash(settings),
        model=judge.model,
        family=judge.family,
    )


def pin_anchor(anchor: Anchor, suite: Path) -> AnchorPin:
    """What makes an anchor this anchor; the path only when it lies inside the suite."""
    inside = anchor.path is not None and anchor.path.resolve().is_relative_to(suite.resolve())
    return AnchorPin(
        name=anchor.name,
        path=str(anchor.path.resolve().relative_to(suite.resolve()).as_posix())
        if inside and anchor.path is not None
        else "",
        digest=anchor.file_digest if inside else anchor.digest,
        provenance=anchor.provenance,
        domain=anchor.domain,
        criterion=anchor.criterion,
        categories=anchor.categories,
        n=len(anchor.truth),
        people=anchor.people,
    )


def write_licence(
    judge: Judge,
    suite: Path,
    *,
    domain: str,
    evidence: Sequence[Evidence],
    warnings: Sequence[str] = (),
    now: datetime | None = None,
    valid_days: int = VALID_DAYS,
) -> Path:
    """Write what admission found to `licences/`, also when it permits nothing.

    Evidence that people did not give, or from another domain, permits nothing here, whatever it
    says.

    Returns:
        The file: `licences/<judge>.<hash>.json`.

    Raises:
        LicenceError: If there is no evidence, or the file cannot be written.
    """
    if not evidence:
        raise LicenceError(f"judge {judge.name}: no evidence, no licence. Admit it first.")
    checked, more = [], list(warnings)
    for finding in evidence:
        if not finding.anchor.provenance.may_grant:
            more.append(f"{finding.anchor.name}: {finding.anchor.provenance} labels grant nothing")
        elif finding.anchor.domain != domain:
            more.append(
                f"{finding.anchor.name}: the anchor's domain {finding.anchor.domain} is not the "
                f"target's {domain}; it grants nothing here"
            )
        else:
            checked.append(finding)
            continue
        checked.append(finding.model_copy(update={"grants": ()}))
    today = (now or datetime.now(UTC)).date()
    licence = Licence(
        judge=pin_judge(judge),
        domain=domain,
        uses=tuple(dict.fromkeys(use for finding in checked for use in finding.grants)),
        evidence=tuple(checked),
        warnings=tuple(dict.fromkeys(more)),
        issued=today,
        expires=today + timedelta(days=valid_days),
    )
    return _save(licence, suite)


def read_licence(path: Path) -> Licence:
    """Read one licence.

    Raises:
        LicenceError: If it cannot be read, or somebody changed it by hand.
    """
    try:
        licence = Licence.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as wrong:
        detail = wrong.errors()[0]["msg"] if isinstance(wrong, ValidationError) else wrong.strerror
        raise LicenceError(
            f"{path}: no readable licence ({detail}). Admit the judge again."
        ) from None
    if not licence.intact:
        raise LicenceError(
            f"{path}: was changed after it was written (its content hash differs). "
            "Admit the judge again."
        )
    return licence


def revoke_licence(path: Path, reason: str, *, now: datetime | None = None) -> Licence:
    """Take a licence away and say why, in the file itself."""
    at = (now or datetime.now(UTC)).isoformat(timespec="seconds")
    revoked = read_licence(path).model_copy(update={"revoked": Revocation(at=at, reason=reason)})
    path.write_text(_text(revoked.sealed), encoding="utf-8")
    return revoked.sealed


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
    grant = next((e for e in licence.evidence if use in e.grants), None)
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


def _save(licence: Licence, suite: Path) -> Path:
    path = suite / "licences" / f"{licence.judge.name}.{licence.judge.hash}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_text(licence.sealed), encoding="utf-8")
    except OSError as broken:
        raise LicenceError(f"{path}: cannot be written: {broken.strerror}.") from broken
    return path


def _text(licence: Licence) -> str:
    return json.dumps(licence.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"

"""The licence of a judge: what admission found, as a file a gate demands and a person can read.

It pins the judge (prompt, header, model), the domain and every anchor behind it, so that
`licence_check` can say in one sentence what has changed since. The content hash finds an edit; it
is no signature: who may write to the repository may write a licence, and version control says who
did.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from evalkit.errors import LicenceError
from evalkit.hashing import sha256_hex, short_hash
from evalkit.judges.judge import Judge
from evalkit.validity.anchors import Anchor
from evalkit.validity.provenance import Provenance

__all__ = [
    "VALID_DAYS",
    "AnchorPin",
    "Evidence",
    "JudgePin",
    "Licence",
    "pin_anchor",
    "pin_judge",
    "read_licence",
    "revoke_licence",
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
            field.name: getattr(file, field.name)
            for field in fields(file)
            if field.name not in ("name", "prompt", "model", "family", "criteria", "levels")
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
) -> Path:
    """Write what admission found to `licences/`, also when it permits nothing.

    Evidence that people did not give, or from another domain, permits nothing here, whatever it
    says. What the same judge showed earlier for other uses is kept, until it would have expired.

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
    expires = today + timedelta(days=VALID_DAYS)
    path = suite / "licences" / f"{judge.name}.{judge.hash}.json"
    earlier = _earlier(path, domain)
    kept = (
        [e for e in earlier.evidence if e.what not in {f.what for f in checked}] if earlier else []
    )
    if earlier and kept:
        expires = min(expires, earlier.expires)
        more = [*earlier.warnings, *more]
    licence = Licence(
        judge=pin_judge(judge),
        domain=domain,
        uses=tuple(dict.fromkeys(use for finding in (*kept, *checked) for use in finding.grants)),
        evidence=(*kept, *checked),
        warnings=tuple(dict.fromkeys(more)),
        issued=today,
        expires=expires,
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_text(licence.sealed), encoding="utf-8")
    except OSError as broken:
        raise LicenceError(f"{path}: cannot be written: {broken.strerror}.") from broken
    return path


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


def _earlier(path: Path, domain: str) -> Licence | None:
    try:
        licence = read_licence(path)
    except LicenceError:
        return None
    return licence if licence.domain == domain and not licence.revoked else None


def _text(licence: Licence) -> str:
    return json.dumps(licence.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"

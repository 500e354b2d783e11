"""What pins a run: everything that decides its numbers, so that no number is without a name."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

__all__ = ["UNPINNED", "Manifest", "versions"]

# What tells one run from another but decides no number: left out of a frozen baseline's manifest.
UNPINNED = ("run_id", "created", "calls", "stopped")


@dataclass(frozen=True)
class Manifest:
    """The pins of one run.

    `sampling` holds n, allocation, seed, repeats, and per stratum sizes, population and weights.
    `prompt` holds name, hash, language and whether it was an unsaved draft. `by` maps each
    criterion to the hash of its scorer or judge, `judges` each judge to hash, model and licence,
    `scales` each scale criterion to its lowest and highest level.
    `stopped` is "" for a complete run, else why it ended early. `origin` is model,
    handwritten or scripted: a screen never shows the last two as a model's work.
    `failed_floors` marks a first baseline that was frozen below these floors.
    """

    run_id: str
    created: str
    suite: str
    suite_folder: str
    domain: str
    suite_digest: str
    thresholds: Mapping[str, Mapping[str, Any]]
    thresholds_hash: str
    prompt: Mapping[str, Any]
    model: str
    app_version: str
    settings: Mapping[str, Any]
    sampling: Mapping[str, Any]
    git_sha: str
    dirty: bool
    by: Mapping[str, str] = field(default_factory=dict)
    judges: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    scales: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    origin: str = "model"
    calls: Mapping[str, Any] = field(default_factory=dict)
    stopped: str = ""
    failed_floors: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Plain values, every field."""
        return asdict(self)

    def pins(self) -> dict[str, Any]:
        """What a frozen baseline keeps: no date, no run id, nothing that a replay would change."""
        return {k: v for k, v in asdict(self).items() if k not in UNPINNED}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Manifest:
        """The manifest in JSON; fields that a frozen baseline leaves out are empty.

        Raises:
            KeyError, TypeError: If the data is not a manifest.
        """
        known = {f.name for f in fields(cls)}
        given: dict[str, Any] = {"run_id": "", "created": ""}
        given |= {key: value for key, value in data.items() if key in known}
        return cls(**given)


def versions() -> dict[str, str]:
    """Versions of Python, of this package and of the parts whose change can change a number."""
    return {"python": platform.python_version(), **_installed()}


@cache  # it reads five files, and a process keeps what it has imported
def _installed() -> Mapping[str, str]:
    found: dict[str, str] = {}
    for name in ("evalkit", "numpy", "scipy", "scikit-learn", "jsonschema", "pylatexenc"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found

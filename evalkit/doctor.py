"""What works on this machine, and what to do about what does not: `evalkit doctor`."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from evalkit.counting import counted
from evalkit.errors import EvalkitError
from evalkit.models.endpoints import load_endpoints
from evalkit.models.local import why_unavailable
from evalkit.models.store import CallStore
from evalkit.scorers.confinement import confinement

__all__ = ["Checked", "check_machine"]


@dataclass(frozen=True)
class Checked:
    """One thing looked at: `state` is ok, missing (something cannot be done) or wrong."""

    state: str
    what: str
    detail: str


def check_machine(out: Path) -> Iterator[Checked]:
    """Look at Python, parts, endpoints, store, local model, TeX, confinement and browser."""
    yield Checked("ok", "python", sys.version.split()[0])
    for name in ("marimo", "pandas", "httpx", "numpy", "scipy", "pydantic"):
        try:
            yield Checked("ok", name, version(name))
        except PackageNotFoundError:
            yield Checked("wrong", name, "not installed: pip install evalkit")
    yield from _endpoints()
    yield _store(out)
    reason = why_unavailable()
    yield Checked("missing" if reason else "ok", "local model", reason or "SmolLM2-135M-Instruct")
    yield _program("xelatex", "compiles is not measured", "texlive-xetex")
    jail = confinement()
    yield Checked(
        "ok" if jail else "missing",
        "confinement",
        str(jail) if jail else "TeX and figure code are not measured; install Debian's bubblewrap",
    )
    figures = find_spec("matplotlib") is not None
    yield Checked(
        "ok" if figures else "missing",
        "figures",
        "matplotlib" if figures else "renders is not measured: pip install 'evalkit[figures]'",
    )
    dask = find_spec("distributed") is not None
    yield Checked(
        "ok" if dask else "missing",
        "dask",
        "distributed" if dask else "one machine only: pip install 'evalkit[dask]'",
    )
    yield _program("git", "runs carry no commit", "git")


def _endpoints() -> Iterator[Checked]:
    try:
        endpoints = load_endpoints()
    except EvalkitError as error:
        yield Checked("wrong", "endpoints", str(error))
        return
    for endpoint in endpoints:
        where = endpoint.base_url or "started on demand"
        variable = endpoint.api_key_env
        known = not variable or bool(
            os.environ.get(variable) or endpoints.environment.get(variable)
        )
        detail = f"{where}" if known else f"{where}; set {variable} before a live run"
        yield Checked("ok" if known else "missing", f"endpoint {endpoint.name}", detail)


def _store(out: Path) -> Checked:
    file = out / "calls.sqlite"
    if not file.exists():
        return Checked("ok", "call store", f"none yet at {file}")
    try:
        with CallStore(file) as store:
            size = store.size()
    except EvalkitError as error:
        return Checked("wrong", "call store", str(error))
    held = f"{counted(size.replies, 'reply')}, {size.bytes / 1e6:.1f} MB, {file}"
    return Checked("ok", "call store", held)


def _program(name: str, without: str, package: str) -> Checked:
    path = shutil.which(name)
    return Checked(
        "ok" if path else "missing", name, path or f"{without}; install Debian's {package}"
    )

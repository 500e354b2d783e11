"""Imports point down the list of rooms, never up or sideways; names the import that does not."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "evalkit"

# What each room may import, from the lowest room up. A room may always import itself.
WORDS = {"errors", "records", "hashing", "appending", "counting"}
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "counting": set(),
    "appending": set(),
    "hashing": {"errors"},
    "records": {"errors", "hashing"},
    "stats": {"errors", "counting"},
    "cases": WORDS | {"stats"},
    "rendering": set(),
    "prompts": WORDS | {"cases", "rendering"},
    "models": WORDS,
    "scorers": WORDS | {"cases"},
    "relations": WORDS | {"cases", "scorers"},
}
MAY_IMPORT["judges"] = {*MAY_IMPORT["relations"], "relations", "models", "prompts", "stats"}
MAY_IMPORT["validity"] = {*MAY_IMPORT["judges"], "judges"}
MAY_IMPORT["runs"] = {*MAY_IMPORT["validity"], "validity"}
MAY_IMPORT["report"] = {*MAY_IMPORT["runs"], "runs"}
DOORS = {
    "__init__",
    "__main__",
    "pytest_plugin",
    "pytest_collected",
    "params",
    "ending",
    "doctor",
    "starter",
}


def imports_of(path: Path) -> Iterator[tuple[int, str]]:
    """Line and room of every import of this package, also those inside functions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    package = path.relative_to(ROOT).with_suffix("").parts
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level]) if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            names = [module] if module.count(".") else [f"{module}.{a.name}" for a in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "evalkit" and len(parts) > 1:
                yield node.lineno, parts[1]


def room_of(path: Path) -> str:
    """The first folder below the package, or the module's own name."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


FILES = sorted(p for p in PACKAGE.rglob("*.py") if room_of(p) not in DOORS)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_down(path: Path) -> None:
    room = room_of(path)
    assert room in MAY_IMPORT, f"{path} stands in no room: name it in tests/test_rooms.py"
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports evalkit.{target}"
        for line, target in imports_of(path)
        if target not in MAY_IMPORT[room] | {room}
    ]
    assert not wrong, "\n".join(wrong)


def test_only_the_models_room_imports_httpx_and_only_the_report_room_altair() -> None:
    owners = {"httpx": "models", "aiohttp": "models", "httpx_aiohttp": "models", "altair": "report"}
    wrong: list[str] = []
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = (
                [a.name for a in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            wrong += [
                f"{path.relative_to(ROOT)}:{node.lineno} imports {name}"
                for name in names
                if owners.get(name.split(".")[0], room_of(path)) != room_of(path)
            ]
    assert not wrong, "\n".join(wrong)

"""The front door: some 25 names, each real, and nothing heavy behind it until one is used."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import evalkit

HEAVY = {"marimo", "pandas", "altair", "scipy", "sklearn", "numpy", "httpx", "aiohttp", "pydantic"}


def modules_after(code: str) -> set[str]:
    """Top-level modules that a fresh interpreter holds after some code."""
    code += "\nimport sys; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("name", evalkit.__all__)
def test_every_name_is_there_and_says_what_it_is(name: str) -> None:
    value = getattr(evalkit, name)
    assert value.__name__ == name
    assert value.__doc__


def test_the_names_are_sorted_few_and_listed_alike_for_readers_and_type_checkers() -> None:
    assert list(evalkit.__all__) == sorted(evalkit.__all__)
    assert len(evalkit.__all__) <= 30
    tree = ast.parse(Path(evalkit.__file__).read_text(encoding="utf-8"))
    (checked,) = (
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    homes = {
        alias.name: node.module
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert homes == evalkit._HOMES
    assert sorted(homes) == sorted(evalkit.__all__)
    assert set(evalkit.__all__) <= set(dir(evalkit))


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'load_sweet'"):
        evalkit.load_sweet  # noqa: B018  # the access is what is tested


def test_importing_the_package_pulls_in_nothing_heavy() -> None:
    assert not modules_after("import evalkit") & HEAVY


def test_planning_a_run_needs_no_network_table_or_chart() -> None:
    code = "import evalkit as ek; ek.make_plan, ek.Client, ek.CallStore, ek.execute, ek.load_run"
    assert not modules_after(code) & {
        *("marimo", "pandas", "altair", "sklearn", "httpx", "aiohttp", "distributed"),
    }

"""Inputs that break such tools: shared by the tests of the TeX scorers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FAILURE_CASES = Path(__file__).resolve().parents[1] / "failure_cases"


def failure_case(name: str) -> dict[str, Any]:
    """One failure case by its id."""
    lines = (FAILURE_CASES / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    return next(case for case in map(json.loads, lines) if case["id"] == name)


def failure_file(name: str) -> str:
    """The text of a file that a failure case names."""
    return (FAILURE_CASES / name).read_text(encoding="utf-8")


HOSTILE: dict[str, str] = {
    "empty": "",
    "spaces": " \n\t\r\n ",
    "binary": "\x00\x01\x02\xff" * 500,
    "surrogates": "\ud800 12 \udfff \\section{\ud800}",
    "mixed_endings": "\\section{A}\r\nx\ry\n\\cite{a}\r% c\n",
    "huge": "a 1.5 \\cite{k} " * 350_000,
    "nested_braces": "{" * 1500 + "}" * 1500,
    "open_braces": "{a " * 3000,
    "closed_braces": "}a " * 3000,
    "nested_environments": "\\begin{a}" * 1500,
    "nested_options": "\\cite[" * 1500,
    "open_options": "\\cite[" * 30 + "a b " * 2000,
    "open_arguments": "\\frac{a" * 30 + "a b " * 2000,
    "nested_mathematics": "\\(" * 1500,
    "backslash": "\\",
    "verb_at_the_end": "\\verb",
    "open_verbatim": "\\begin{verbatim}" + "x " * 1000,
    "dollars": "$" * 1001,
    "digits": "1" * 5000,
    "grouped_digits": "1 234 567," * 800,
    "signs": "-" * 5000,
    "powers": "10^{999} 1e999 1e-999 9e99999",
    "open_links": "[a " * 20_000 + "\\a ",
    "open_formula": "$" + "_" * 50_000,
    "markdown": "# A\n" + "```\n" * 300 + "`" * 500,
}

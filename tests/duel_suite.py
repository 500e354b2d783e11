"""A suite of words with a second, loud prompt and a pairwise judge whose verdicts are known."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from mini_suite import write_suite

JUDGE = """---
kind: pairwise
model: srv/judge
ties: true
---
# user
Word: {{ inputs.word }}

A: {{ draft_a }}

B: {{ draft_b }}
"""
LOUD = "# user\nloud {{ inputs.word }}\n"


def blocks(body: dict[str, Any]) -> tuple[str, str]:
    """What the judge was shown first and second."""
    text = body["messages"][-1]["content"]
    found = re.findall(r"<draft_([ab])[^>]*>\s*(.*?)\s*</draft_", text, re.S)
    shown = dict(found)
    return shown["a"], shown["b"]


def loud_wins(body: dict[str, Any]) -> str:
    """Words come back; the judge prefers a loud draft, calls word1 by position, ties on word3."""
    if body["model"] != "judge":
        return body["messages"][-1]["content"]
    first, second = blocks(body)
    if "word1" in first:
        verdict = "A"
    elif "word3" in first:
        verdict = "tie"
    else:
        verdict = "A" if "loud" in first else "B"
    return json.dumps({"justification": f"{first} against {second}", "verdict": verdict})


def suite_with(folder: Path, *, cases: int = 6, repeats: int = 1) -> Path:
    write_suite(folder, cases=cases, repeats=repeats)
    (folder / "judges").mkdir()
    (folder / "judges" / "pairwise.md").write_text(JUDGE)
    (folder / "prompts" / "loud.md").write_text(LOUD)
    return folder

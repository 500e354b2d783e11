"""A new suite to begin with: `evalkit init golden/my_suite`."""

from __future__ import annotations

from pathlib import Path

from evalkit.errors import UsageError

__all__ = ["write_suite"]

_SUITE = """\
name = "{name}"
domain = "{name}/en"                    # a judge is licensed for a domain

[task]
kind = "chat"
model = "local/smollm2-135m-instruct"   # endpoint/model; endpoints stand in pyproject.toml
prompt = "prompts/answer.md"
temperature = 0.7
max_tokens = 200

[sampling]
mix = {{ easy = 0.5, hard = 0.5 }}      # each stratum's share of your traffic
repeats = 3
seed = 7

# Fix the thresholds before the first run; a later change is listed in every verdict.
[[criteria]]
name = "answers"
scorer = "contains"
expected = "answer"                     # the text each case names under expected.answer
ignore_case = true
min = 0.80

[[criteria]]
name = "not_refused"
scorer = "not_refusal"
min = 0.95
"""

_PROMPT = """\
---
description: Answers in one sentence.
---
# system
Answer in one short sentence.

# user
{{ inputs.question }}
"""

_CASES = """\
{"id": "easy-1", "stratum": "easy", "inputs": {"question": "What is the capital of France?"}, \
"expected": {"answer": "Paris"}, "why": "A fact that everybody knows."}
{"id": "easy-2", "stratum": "easy", "inputs": {"question": "How many days has a week?"}, \
"expected": {"answer": "seven"}, "why": "A number word, not a digit."}
{"id": "hard-1", "stratum": "hard", "inputs": {"question": "Which planet has the shortest day?"}, \
"expected": {"answer": "Jupiter"}, "why": "Often confused with the shortest year."}
{"id": "hard-2", "stratum": "hard", "inputs": {"question": "What is 17 times 23?"}, \
"expected": {"answer": "391"}, "why": "Arithmetic that cannot be looked up."}
"""


def write_suite(folder: Path) -> list[Path]:
    """Write a small suite that runs on the local model; returns the files.

    Raises:
        UsageError: If the folder already holds a suite.
    """
    if (folder / "suite.toml").exists():
        raise UsageError(f"there is a suite at {str(folder)!r} already; name another folder.")
    files = {
        folder / "suite.toml": _SUITE.format(name=folder.name),
        folder / "cases.jsonl": _CASES,
        folder / "prompts" / "answer.md": _PROMPT,
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(files)

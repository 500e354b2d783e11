"""The tree of errors. Each says what went wrong, where, and how to mend it.

EvalkitError                     exit status 4: something broke
├── UsageError                   exit status 2: the person who started it can mend it
│   ├── ConfigError              pyproject.toml, endpoints, environment, missing key
│   ├── SuiteError               suite.toml
│   ├── CaseError                cases.jsonl, pairs.jsonl
│   ├── PromptError              a prompt file, its variables or its shape
│   ├── JudgeError               a judge file
│   ├── AnchorError              anchors and labels
│   ├── ScorerError              a scorer's name or settings
│   └── CallImpossible           wrong key, model or address: no retry can help
├── CallFailed                   no reply after the retries: the observation is missing
├── BudgetReached                the next call would cross max_cost_usd
├── ReplayMissing                a replay met calls that nobody recorded
├── StoreError                   the call store is damaged, foreign or locked
├── LicenceError                 a judge has no valid licence for this use
├── BaselineError                a frozen run is missing, damaged or of another kind
├── LedgerError                  the ledger cannot be read or written
├── ReportError                  a page cannot be built
└── StatsError (also ValueError) malformed input to a statistic
"""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "AnchorError",
    "BaselineError",
    "BudgetReached",
    "CallFailed",
    "CallImpossible",
    "CaseError",
    "ConfigError",
    "EvalkitError",
    "JudgeError",
    "LedgerError",
    "LicenceError",
    "PromptError",
    "ReplayMissing",
    "ReportError",
    "ScorerError",
    "StatsError",
    "StoreError",
    "SuiteError",
    "UsageError",
]


class EvalkitError(Exception):
    """Every error this package raises on purpose; `exit_status` is what a script ends with."""

    exit_status: ClassVar[int] = 4


class UsageError(EvalkitError):
    """A wrong flag, an empty selection, a file that is not there."""

    exit_status: ClassVar[int] = 2


class ConfigError(UsageError):
    """The project's configuration or the environment is wrong."""


class SuiteError(UsageError):
    """`suite.toml` is wrong."""


class CaseError(UsageError):
    """A line of `cases.jsonl` or `pairs.jsonl` is wrong; names file and line."""


class PromptError(UsageError):
    """A prompt file is wrong, a variable is undefined, or the rendered prompt has a wrong shape."""


class JudgeError(UsageError):
    """A judge file is wrong."""


class AnchorError(UsageError):
    """Anchors or labels are wrong, circular, or of unstated origin."""


class ScorerError(UsageError):
    """A scorer is unknown or its settings are wrong."""


class CallImpossible(UsageError):
    """A call that can never succeed: wrong key, model or address. It stops the run."""


class CallFailed(EvalkitError):
    """No reply after every allowed attempt. The observation is missing, not zero.

    `paid_perhaps` is False when no attempt can have been billed.
    """

    def __init__(self, message: str, *, paid_perhaps: bool = True) -> None:
        super().__init__(message)
        self.paid_perhaps = paid_perhaps


class BudgetReached(EvalkitError):
    """The next call would cross the budget, so it was not sent."""


class ReplayMissing(EvalkitError):
    """A replay without network met calls that are not recorded."""


class StoreError(EvalkitError):
    """The call store is damaged, belongs to something else, or stays locked."""


class LicenceError(EvalkitError):
    """A judge has no valid licence for this use."""


class BaselineError(EvalkitError):
    """A frozen run is missing, damaged, or not comparable."""


class LedgerError(EvalkitError):
    """The ledger cannot be read or written."""


class ReportError(EvalkitError):
    """A page or a chart cannot be built."""


class StatsError(EvalkitError, ValueError):
    """Malformed input to a statistic (degenerate data never raises)."""

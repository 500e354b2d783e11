"""What the tests of a pytest run say together: rows for the gate, scores for the ledger.

Each worker of xdist sends what it has; the process that started them brings it together.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalkit.counting import counted

if TYPE_CHECKING:
    from evalkit.cases.suite import Suite
    from evalkit.runs.run import Run

__all__ = ["Collected", "collected_of", "out_of"]


class Collected:
    """Rows and scores of all tests, in one process or brought together from xdist's workers."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.scores: list[dict[str, Any]] = []
        self.runs: list[dict[str, Any]] = []
        self.said: list[str] = []

    def add_score(
        self, test: str, name: str, score: float, threshold: float | None, n: int
    ) -> None:
        """A score of a test's own."""
        self.scores.append(
            {"test": test, "name": name, "score": score, "threshold": threshold, "n": n}
        )

    def add_run(self, suite: Suite, run: Run) -> None:
        """The rows of one case."""
        from evalkit.report.collected import packed

        self.runs.append(packed(suite, run))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Take over what a worker has."""
        sent = getattr(node, "workeroutput", {}).get("evalkit")
        if sent is None and error is not None:
            self.said.append(f"BROKEN: a worker died, its tests are not measured ({error})")
            return
        for key, values in json.loads(sent or "{}").items():
            getattr(self, key).extend(values)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Rule on the rows; pytest passes only if the gate does."""
        output = getattr(self.config, "workeroutput", None)
        if output is not None:
            output["evalkit"] = json.dumps({"scores": self.scores, "runs": self.runs})
            return
        broken = bool(self.said)
        if self.scores:
            self._write_scores()
        for folder in sorted({run["suite"] for run in self.runs}):
            broken |= not self._gate(folder)
        if broken and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print what the gate said."""
        if self.said:
            terminalreporter.section("evalkit")
            for text in self.said:
                terminalreporter.write_line(text)

    def _gate(self, folder: str) -> bool:
        from evalkit.report.collected import ruling_on

        strictness = str(self.config.getoption("--evalkit-strictness"))
        said, passed = ruling_on(self.runs, folder, out_of(self.config), strictness)
        self.said.append(said)
        return passed

    def _write_scores(self) -> None:
        from evalkit.runs.ledger_entries import append_scores

        append_scores(out_of(self.config) / "eval_baseline.tsv", self.scores, self.config.rootpath)
        low = [s for s in self.scores if s["threshold"] is not None and s["score"] < s["threshold"]]
        held = counted(len(self.scores), "score")
        self.said.append(f"{held} recorded, {len(low)} below their threshold")


def collected_of(config: pytest.Config) -> Collected:
    """What the tests of this process have said so far."""
    plugin = config.pluginmanager.getplugin("evalkit-collected")
    assert isinstance(plugin, Collected)
    return plugin


def out_of(config: pytest.Config) -> Path:
    """The folder of the call store and the ledger."""
    return config.rootpath / str(config.getoption("--evalkit-out"))

"""What every notebook's desk shares: a workbench, the suites there are, problems as sentences."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from evalkit.cases.growth import add_case
from evalkit.cases.suite import Suite, load_suite
from evalkit.errors import EvalkitError
from evalkit.models.endpoints import Endpoints
from evalkit.records import Case
from evalkit.runs.session import Workbench

__all__ = ["Desk"]

T = TypeVar("T")


class Desk:
    """The state of one open notebook.

    With `strict`, as in a script, a problem is raised; otherwise it is kept in `problem` as one
    sentence and the rest of the page stays usable.
    """

    def __init__(
        self,
        out: Path | str,
        *,
        strict: bool,
        golden: Path | str = "golden",
        endpoints: Endpoints | None = None,
    ) -> None:
        self.bench = Workbench(out, endpoints)
        self.golden = Path(golden)
        self.strict = strict
        self.problem = ""

    def attempt(self, work: Callable[[], T]) -> T | None:
        """The result of some work, or None with `problem` set."""
        self.problem = ""
        if self.strict:
            return work()
        try:
            return work()
        except EvalkitError as error:
            self.problem = str(error)
            return None

    def suites(self, first: str) -> dict[str, str]:
        """Name to folder of every suite, the asked one first; its namesakes go by their path."""
        asked = Path(first)
        folders = [asked, *sorted(p.parent for p in self.golden.glob("*/suite.toml"))]
        unique = {folder.resolve(): folder for folder in reversed(folders)}
        found: dict[str, str] = {}
        for folder in reversed(unique.values()):
            name = folder.resolve().name
            found[name if name not in found else str(folder)] = str(folder)
        return found

    def open(self, folder: str) -> Suite | None:
        """The suite in a folder."""
        return self.attempt(lambda: load_suite(folder))

    def add_to_golden(self, suite: Suite, case: Case, why: str) -> Case | None:
        """Append a case like this one to the golden set, with the reason why."""
        return self.attempt(
            lambda: add_case(
                suite,
                stratum=case.stratum,
                inputs=case.inputs,
                context=case.context,
                expected=case.expected,
                tags=case.tags,
                why=why,
            )
        )

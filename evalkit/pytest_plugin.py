"""The pytest plugin: an eval is a test with a threshold.

    @pytest.mark.evalkit("golden/docs_qa")            # which suite; stratum=, tag=, repeats=
    def test_case(evalkit_case):                      # one test a case, ids such as easy/E07
        evalkit_case.check()                          # what may never break, in every repeat

    @pytest.mark.live                                 # skipped without --run-live
    def test_suite(evalkit_run):
        assert_criteria(evalkit_run())                # the whole gate

When tests of single cases have ended, the gate rules once on all their rows, also under xdist; a
verdict that does not pass makes pytest end with 1. Without --run-live nobody is asked: replies
come from the call store and the suite's recordings.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest

from evalkit.counting import counted
from evalkit.pytest_collected import Collected, collected_of, out_of

if TYPE_CHECKING:
    from evalkit.cases.suite import Suite
    from evalkit.models.client import Client
    from evalkit.models.local import LocalModel
    from evalkit.models.scripted import Script, ScriptedModel
    from evalkit.records import Case, Row
    from evalkit.runs.gate_result import GateResult
    from evalkit.runs.plan import Plan
    from evalkit.runs.run import Run

__all__ = ["EvalCase", "assert_criteria"]


# -- options and markers -----------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the plugin's flags."""
    group = parser.getgroup("evalkit")
    group.addoption(
        "--run-live", action="store_true", help="run tests marked live: they cost calls"
    )
    group.addoption("--evalkit-out", default="exports", help="folder of the call store and ledger")
    group.addoption("--evalkit-suite", default="", help="suite of tests whose marker names none")
    group.addoption("--evalkit-strictness", default="smoke", choices=("smoke", "release"))


def pytest_configure(config: pytest.Config) -> None:
    """Declare the markers and start collecting."""
    for line in (
        "live: asks a model; skipped without --run-live",
        "evalkit(suite, stratum=, tag=, repeats=): the suite of this test, and which of its cases",
        "sentinel(n): only cases tagged sentinel, each n times; every time must hold",
    ):
        config.addinivalue_line("markers", line)
    config.pluginmanager.register(Collected(config), "evalkit-collected")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip live tests with their reason."""
    for item in items:
        if item.get_closest_marker("live") and (reason := _why_not_live(config, item)):
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test a case, with readable ids."""
    if "evalkit_case" not in metafunc.fixturenames:
        return
    marks = metafunc.definition
    suite = _suite_of(metafunc.config, marks)
    wanted = _marked(marks)
    tag = "sentinel" if marks.get_closest_marker("sentinel") else wanted.get("tag")
    cases = [
        case
        for case in suite.cases
        if wanted.get("stratum") in (None, case.stratum) and (tag is None or tag in case.tags)
    ]
    if not cases:
        raise pytest.UsageError(
            f"{metafunc.definition.nodeid}: the selection holds no case of suite {suite.name!r}; "
            "nothing would be measured, and nothing measured is no success."
        )
    ids = [f"{case.stratum}/{case.id}" for case in cases]
    metafunc.parametrize("evalkit_case", cases, ids=ids, indirect=True)


# -- fixtures ----------------------------------------------------------------------------------


@pytest.fixture
def evalkit_suite(request: pytest.FixtureRequest) -> Suite:
    """The suite that the test's `evalkit` marker or --evalkit-suite names."""
    return _suite_of(request.config, request.node)


@pytest.fixture
def evalkit_client(request: pytest.FixtureRequest, evalkit_suite: Suite) -> Generator[Client]:
    """A client that replays the call store and the suite's recordings; live with --run-live."""
    with _client(request.config, evalkit_suite) as client:
        yield client


@pytest.fixture(scope="session")
def evalkit_local() -> Generator[LocalModel]:
    """The embedded local model, started; skipped with the reason where it cannot run."""
    from evalkit.models.local import LocalModel, why_unavailable

    if reason := why_unavailable():
        pytest.skip(reason)
    with LocalModel() as model:
        yield model


@pytest.fixture
def evalkit_scripted() -> Callable[[Script], ScriptedModel]:
    """Make a model of a script: texts and tool calls, in order. It says nothing about quality."""
    from evalkit.models.scripted import ScriptedModel

    return ScriptedModel


@pytest.fixture
def evalkit_run(request: pytest.FixtureRequest, evalkit_suite: Suite) -> Callable[..., Run]:
    """Run the suite: `evalkit_run(prompt=, model=, sample=, repeats=, client=)`.

    Workers of xdist that want the same run wait for the first and then find its replies.
    """

    def run(*, client: Client | None = None, **how: Any) -> Run:
        from evalkit.runs.plan import make_plan

        plan = _spoken(lambda: make_plan(evalkit_suite, **how))
        return _execute(request.config, plan, client)

    return run


@pytest.fixture
def evalkit_case(request: pytest.FixtureRequest) -> Iterator[EvalCase]:
    """One case of the suite, asked when its rows are first looked at."""
    marker = request.node.get_closest_marker("sentinel")
    repeats = (marker.args[0] if marker and marker.args else None) or (
        marker.kwargs.get("n") if marker else _marked(request.node).get("repeats")
    )
    case = EvalCase(request.param, _suite_of(request.config, request.node), request.config, repeats)
    yield case
    if "run" in vars(case) and marker is None:
        collected_of(request.config).add_run(case.suite, case.run)


@pytest.fixture
def evalkit_record(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Record a score of your own: `evalkit_record(name, score, threshold=None, n=0)`.

    It becomes one line of the ledger; a score below its threshold fails the test.
    """

    def record(name: str, score: float, *, threshold: float | None = None, n: int = 0) -> None:
        collected_of(request.config).add_score(request.node.name, name, score, threshold, n)
        if threshold is not None and not score >= threshold:
            pytest.fail(f"{name} is {score:g}, below its threshold {threshold:g}", pytrace=False)

    return record


@dataclass
class EvalCase:
    """One case under test; `run` holds its rows."""

    case: Case
    suite: Suite
    config: pytest.Config = field(repr=False)
    repeats: int | None = None

    @cached_property
    def run(self) -> Run:
        """The case, asked once for each repeat."""
        from evalkit.runs.one_case import case_plan
        from evalkit.runs.plan import make_plan

        plan = _spoken(lambda: make_plan(self.suite, repeats=self.repeats))
        return _execute(self.config, case_plan(plan, self.case), None)

    @property
    def rows(self) -> tuple[Row, ...]:
        """One row a repeat."""
        return self.run.rows

    def check(self) -> None:
        """Fail unless every repeat has a reply and keeps what may never break.

        Floors and comparisons are for all cases together: the gate rules on them at the end.
        """
        from evalkit.runs.one_case import broken_rules, failure_text

        cases = {self.case.id: self.case}
        lost = [(row, "no reply", row.error) for row in self.rows if row.reply is None]
        broken = [(r, name, s.reason) for r, name, s in broken_rules(self.run) if r.reply]
        if lost or broken:
            n, total = len({r.repeat for r, _, _ in [*lost, *broken]}), len(self.rows)
            head = f"{n} of {counted(total, 'repeat')} of case {self.case.id} do not hold"
            pytest.fail(failure_text(head, [*broken, *lost], cases), pytrace=False)


def assert_criteria(
    run: Run,
    *,
    suite: Suite | None = None,
    baseline: Run | None = None,
    strictness: str = "smoke",
) -> GateResult:
    """Fail the test unless the gate lets the run through; returns what the gate said.

    Args:
        run: The run.
        suite: Its suite; by default the one in the folder that the run names.
        baseline: The frozen run to compare with.
        strictness: smoke or release.
    """
    from evalkit.cases.suite import load_suite
    from evalkit.runs.gate import decide
    from evalkit.runs.one_case import gate_failure

    of = suite or _spoken(lambda: load_suite(run.manifest.suite_folder))
    result = _spoken(lambda: decide(run, of, baseline=baseline, strictness=strictness))
    if not result.passed:
        pytest.fail(gate_failure(result, run, of), pytrace=False)
    return result


# -- between ------------------------------------------------------------------------------------


def _marked(node: Any) -> Mapping[str, Any]:
    marker = node.get_closest_marker("evalkit")
    return {} if marker is None else {"suite": next(iter(marker.args), ""), **marker.kwargs}


def _suite_of(config: pytest.Config, node: Any) -> Suite:
    from evalkit.cases.suite import load_suite

    folder = str(_marked(node).get("suite") or config.getoption("--evalkit-suite") or "")
    if not folder:
        raise pytest.UsageError(
            f"{node.nodeid} names no suite: mark it with @pytest.mark.evalkit('golden/<suite>'), "
            "or give --evalkit-suite."
        )
    known: dict[str, Suite] = config.stash.setdefault(_SUITES, {})
    if folder not in known:
        known[folder] = _spoken(lambda: load_suite(config.rootpath / folder))
    return known[folder]


_SUITES = pytest.StashKey["dict[str, Suite]"]()


def _why_not_live(config: pytest.Config, item: pytest.Item) -> str:
    """Why a live test is skipped, or ""."""
    if not config.getoption("--run-live"):
        return "live: run it with --run-live"
    from evalkit.errors import ConfigError
    from evalkit.models.endpoints import load_endpoints

    endpoints = load_endpoints(config.rootpath)
    models: Sequence[str] = item.get_closest_marker("live").args  # pyright: ignore[reportOptionalMemberAccess]
    if not models and (_marked(item) or config.getoption("--evalkit-suite")):
        models = [_suite_of(config, item).task.model]
    try:
        for model in filter(None, models):
            endpoints.key_of(endpoints.of(model)[0])
    except ConfigError as error:
        return f"live: {error}"
    return ""


@contextmanager
def _client(config: pytest.Config, suite: Suite) -> Generator[Client]:
    from evalkit.models.client import Client
    from evalkit.models.endpoints import load_endpoints
    from evalkit.models.recordings import load_recordings
    from evalkit.models.store import CallStore

    recordings = suite.folder / "recordings"
    with CallStore(out_of(config) / "calls.sqlite") as store:
        yield Client(
            _spoken(lambda: load_endpoints(config.rootpath)),
            store=store,
            recordings=load_recordings(recordings) if recordings.exists() else None,
            live=bool(config.getoption("--run-live")),
        )


def _execute(config: pytest.Config, plan: Plan, client: Client | None) -> Run:
    from evalkit.runs.execute import execute

    async def go(client: Client) -> Run:
        async with client:
            return await execute(plan, client)

    with nullcontext(client) if client else _client(config, plan.suite) as asked:
        return _spoken(lambda: asyncio.run(go(asked)))


def _spoken(work: Callable[[], Any]) -> Any:
    """The result of some work; an error of ours is one sentence, without a stack."""
    from evalkit.errors import EvalkitError

    try:
        return work()
    except EvalkitError as error:
        pytest.fail(str(error), pytrace=False)

"""evalkit: did one word in a prompt make the application better, worse, or can nobody tell yet?

The front door: what a script of its own needs, each name loaded when it is first used.

    import evalkit as ek

    plan = ek.make_plan(ek.load_suite("golden/docs_qa"), sample=24)
    with ek.CallStore("exports/calls.sqlite") as store:
        async with ek.Client(ek.load_endpoints(), store=store) as client:
            run = await ek.execute(plan, client)
    print(run.summary().pass_rate)

Everything else is imported from its room: `from evalkit.stats.compare import ...`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names as in _ROOMS, for type checkers and editors
    from evalkit.cases.suite import load_suite
    from evalkit.errors import EvalkitError
    from evalkit.judges import load_judge
    from evalkit.models.client import Client
    from evalkit.models.endpoints import Endpoint, Endpoints, load_endpoints
    from evalkit.models.store import CallStore
    from evalkit.prompts import load_prompt
    from evalkit.records import Case, Reply, Request, Row, Score, Verdict
    from evalkit.runs.baseline import freeze, load_baseline
    from evalkit.runs.engines import engine_of
    from evalkit.runs.execute import execute
    from evalkit.runs.gate import decide
    from evalkit.runs.plan import make_plan
    from evalkit.runs.run import Run, load_run
    from evalkit.runs.summary import Summary
    from evalkit.scorers import build_scorer
    from evalkit.stats.intervals import wilson_interval
    from evalkit.stats.result import Interval

__version__ = "0.1.0"

__all__ = [
    "CallStore",
    "Case",
    "Client",
    "Endpoint",
    "Endpoints",
    "EvalkitError",
    "Interval",
    "Reply",
    "Request",
    "Row",
    "Run",
    "Score",
    "Summary",
    "Verdict",
    "build_scorer",
    "decide",
    "engine_of",
    "execute",
    "freeze",
    "load_baseline",
    "load_endpoints",
    "load_judge",
    "load_prompt",
    "load_run",
    "load_suite",
    "make_plan",
    "wilson_interval",
]

_ROOMS = {
    "cases.suite": ("load_suite",),
    "errors": ("EvalkitError",),
    "judges": ("load_judge",),
    "models.client": ("Client",),
    "models.endpoints": ("Endpoint", "Endpoints", "load_endpoints"),
    "models.store": ("CallStore",),
    "prompts": ("load_prompt",),
    "records": ("Case", "Reply", "Request", "Row", "Score", "Verdict"),
    "runs.baseline": ("freeze", "load_baseline"),
    "runs.engines": ("engine_of",),
    "runs.execute": ("execute",),
    "runs.gate": ("decide",),
    "runs.plan": ("make_plan",),
    "runs.run": ("Run", "load_run"),
    "runs.summary": ("Summary",),
    "scorers": ("build_scorer",),
    "stats.intervals": ("wilson_interval",),
    "stats.result": ("Interval",),
}
_HOMES = {name: f"evalkit.{room}" for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'evalkit' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

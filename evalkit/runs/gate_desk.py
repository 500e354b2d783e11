"""What `gate.py` does between its widgets: the price, the job in the background, the promotion."""

from __future__ import annotations

from evalkit.counting import counted
from evalkit.errors import EvalkitError
from evalkit.runs.gate_session import Gated, GateOptions, GateSession
from evalkit.runs.job import Job
from evalkit.runs.session import Price

__all__ = ["GateDesk"]


class GateDesk:
    """One open gate. With `strict`, as in a script, a problem is raised; else kept in words."""

    def __init__(self, options: GateOptions, *, strict: bool) -> None:
        self.session = GateSession(options)
        self.strict = strict
        self.problem = ""
        self.job: Job[Gated] = Job()

    def price(self) -> Price | None:
        """What the run would take; None with `problem` set where it cannot be run."""
        self.problem = ""
        try:
            return self.session.price()
        except EvalkitError as error:
            if self.strict:
                raise
            self.problem = str(error)
            return None

    def label(self, price: Price) -> str:
        """What the button says: the price of a live run, or what a replay will miss."""
        if self.session.options.run_live:
            return price.label
        gaps = f" · {counted(price.new_calls, 'call')} not recorded" if price.new_calls else ""
        return f"Replay {price.cases} x {price.repeats} · nobody is asked{gaps}"

    def start(self) -> bool:
        """Start the run in the background of the notebook."""
        return self.job.start(lambda progress: self.session.run(progress))

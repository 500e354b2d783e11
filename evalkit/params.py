"""Notebook flags, parsed in one place: each notebook's flags are a frozen dataclass.

`marimo`'s own `cli_args()` turns 007 into 7 and accepts typing errors, so the notebooks read
`sys.argv` with argparse: `--help` prints and ends with 0, a usage error ends with 2.
"""

from __future__ import annotations

import argparse
import io
import math
import sys
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, NoReturn, TypeVar, get_type_hints

from evalkit.ending import (
    begin_script,
    end_script,
    end_with_one_sentence,
    script_excepthook,
    tell,
)

__all__ = [
    "AdmitParams",
    "CompareParams",
    "GateParams",
    "HistoryParams",
    "IterateParams",
    "LabelParams",
    "begin_script",
    "end_script",
    "end_with_one_sentence",
    "parse",
    "script_excepthook",
]


def flag(default: Any, text: str, **options: Any) -> Any:
    """A field that is also a command-line flag."""
    return field(default=default, metadata={"help": text, **options})


def _budget() -> Any:
    return flag(0.0, "stop before this many US dollars are crossed (0: no limit)", minimum=0)


@dataclass(frozen=True)
class _Common:
    suite: str = flag("golden/docs_qa", "folder of the golden suite")
    run: bool = flag(False, "act without a click (what a script always does)")
    interactive: bool = field(default=False, metadata={"flag": False})

    @property
    def auto(self) -> bool:
        """True when nobody is there to press a button."""
        return self.run or not self.interactive


@dataclass(frozen=True)
class IterateParams(_Common):
    """Is this prompt better? Run a stratified sample of a suite and read the scores."""

    prompt: str = flag("", "prompt file, relative to the suite (default: the suite's own)")
    model: str = flag("", "endpoint/model (default: the suite's own)")
    sample: int = flag(24, "how many cases to draw", minimum=1)
    allocation: str = flag(
        "proportional", "how the sample is spread", choices=("proportional", "equal")
    )
    repeats: int = flag(1, "how often each case is asked", minimum=1)
    seed: int = flag(7, "decides which cases are drawn and the request seeds")
    freeze: bool = flag(False, "freeze the run as the suite's baseline")
    baseline: str = flag("", "baseline file to compare with and to freeze into")
    allow_dirty: bool = flag(False, "freeze although files outside exports/ are uncommitted")
    fresh: bool = flag(False, "draw new samples instead of using recorded replies")
    judges: bool = flag(False, "also run judged criteria (they cost calls)")
    max_cost: float = _budget()
    out: str = flag("exports", "folder for runs, drafts and the call store")
    case: str = flag("", "case to open once a run is there")
    page: str = flag("", "also write the reviewer page to this file")
    engine: str = flag("local", "where the run is executed", choices=("local", "dask"))
    scheduler: str = flag("", "address of a Dask scheduler, for --engine dask")


@dataclass(frozen=True)
class CompareParams(_Common):
    """Which draft is better, and would I agree? Two runs, prompts or folders side by side."""

    a: str = flag("", "run folder, baseline file, prompt file or folder of drafts shown as A")
    b: str = flag("", "the same for B")
    judge: str = flag("judges/pairwise.md", "pairwise judge, relative to the suite or a path")
    model: str = flag("", "endpoint/model of the judge (default: the judge's own)")
    sample: int = flag(24, "how many cases to draw when A and B are prompts", minimum=1)
    repeats: int = flag(1, "how often each case is asked", minimum=1)
    seed: int = flag(7, "decides the sample and the order of calls")
    one_order: bool = flag(False, "cheap look: one random order a pair, labelled exploratory")
    annotator: str = flag("", "your name, for verdicts you overrule")
    max_cost: float = _budget()
    out: str = flag("exports", "folder for runs and the call store")


@dataclass(frozen=True)
class AdmitParams(_Common):
    """May this judge judge? Candidates against anchors; writes the licence."""

    judge: str = flag(
        "judges/faithfulness.md", "judge files parted by commas, relative to the suite or paths"
    )
    model: str = flag("", "endpoint/model parted by commas (default: the judge's own)")
    criterion: str = flag("", "criterion of the judge that the anchor labels")
    anchors: str = flag("", "anchor file (default: the suite's first that these judges can score)")
    sample: int = flag(0, "items to draw, spread over the bands (0: all)", minimum=0)
    seed: int = flag(7, "decides the draw and the folds")
    write_licence: bool = flag(False, "write what was found to the suite's licences/")
    max_cost: float = _budget()
    out: str = flag("exports", "folder for the call store and the ledger")


@dataclass(frozen=True)
class LabelParams(_Common):
    """What do people say? Blind labelling; labels are appended to the suite's labels/."""

    annotator: str = flag("", "your name; labels carry it")
    kind: str = flag("pairs", "what is labelled", choices=("pairs", "levels", "yes_no"))
    source: str = flag("", "run folder or baseline whose replies are labelled")
    against: str = flag("", "second run or baseline, for pairs")
    criterion: str = flag("faithfulness", "what the question is about")
    levels: str = flag("1,2,3,4,5", "levels, for --kind levels")
    plan: str = flag(
        "random", "how items are chosen", choices=("random", "by_verdict", "by_class", "spot_check")
    )
    sample: int = flag(0, "how many items (0: all)", minimum=0)
    seed: int = flag(7, "decides order and sides, with the annotator's name")
    out: str = flag("exports", "folder of runs")


@dataclass(frozen=True)
class GateParams(_Common):
    """May this go out? Exit status 0 pass, 1 fail, 2 usage, 3 undecided at release, 4 broken."""

    strictness: str = flag("smoke", "which rule decides", choices=("smoke", "release"))
    prompt: str = flag("", "prompt file, relative to the suite (default: the suite's own)")
    model: str = flag("", "endpoint/model (default: the suite's own)")
    sample: int = flag(0, "how many cases to draw (0: all)", minimum=0)
    repeats: int = flag(0, "how often each case is asked (0: what the suite says)", minimum=0)
    seed: int = flag(-1, "seed of the sample and of the requests (-1: what the suite says)")
    baseline: str = flag("", "baseline file (default: exports/baselines/<suite>.jsonl)")
    baseline_ref: str = flag("", "git ref from which baseline, thresholds and cases are read")
    run_live: bool = flag(False, "send calls; without it only recorded replies are used")
    recordings: str = flag("", "a recordings file to replay (default: the suite's recordings/)")
    freeze: bool = flag(False, "promote the run to the baseline when the gate allows it")
    allow_dirty: bool = flag(False, "freeze although the tree is dirty")
    allow_redefined: bool = flag(
        False, "decide although cases, criteria or thresholds that decided before were redefined"
    )
    sequential: str = flag("auto", "stop early when decided", choices=("auto", "on", "off"))
    max_cost: float = _budget()
    deadline: float = flag(0.0, "stop after this many seconds (0: no limit)", minimum=0)
    out: str = flag("exports", "folder for runs, the ledger and the call store")
    page: str = flag("", "also write the reviewer page to this file")
    engine: str = flag("local", "where the run is executed", choices=("local", "dask"))
    scheduler: str = flag("", "address of a Dask scheduler, for --engine dask")


@dataclass(frozen=True)
class HistoryParams(_Common):
    """When did it move, and why? The ledger over time."""

    suite: str = flag("", "only this suite's entries (default: all)")
    ledger: str = flag("exports/eval_baseline.tsv", "the ledger")
    metric: str = flag("", "only this metric (default: all)")


ParamsT = TypeVar("ParamsT", bound=_Common)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message}. See {self.prog} --help.", file=sys.stderr)
        raise SystemExit(2)


def parse(kind: type[ParamsT], argv: Sequence[str], *, interactive: bool = False) -> ParamsT:
    """Flags of one notebook from its command line.

    Args:
        kind: One of the classes of this module.
        argv: The arguments without the program's name.
        interactive: True where a person looks at the notebook (`marimo edit`, `marimo run`).

    Raises:
        SystemExit: 0 after `--help`; 2 after a wrong flag, with one sentence on stderr.
    """
    if not interactive:  # a terminal that cannot show a sign shows another, and the run goes on
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")
    parser = _Parser(
        prog=f"notebooks/{kind.__name__.removesuffix('Params').lower()}.py",
        description=kind.__doc__,
        allow_abbrev=False,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    hints = get_type_hints(kind)
    for entry in fields(kind):
        if not entry.metadata.get("flag", True):
            continue
        assert entry.default is not MISSING
        option = "--" + entry.name.replace("_", "-")
        if hints[entry.name] is bool:
            parser.add_argument(option, action="store_true", help=entry.metadata["help"])
            continue
        parser.add_argument(
            option,
            type=_typed(hints[entry.name], entry.metadata.get("minimum")),
            default=argparse.SUPPRESS if entry.default == "" else entry.default,
            choices=entry.metadata.get("choices"),
            metavar=None if "choices" in entry.metadata else hints[entry.name].__name__.upper(),
            help=entry.metadata["help"],
        )
    try:
        given = parser.parse_args(list(argv))
    except SystemExit as end:
        tell(int(end.code or 0))
        raise
    return kind(**vars(given), interactive=interactive)


def _typed(kind: Any, minimum: int | None) -> Any:
    def convert(text: str) -> Any:
        value = kind(text)
        if kind is float and not math.isfinite(value):
            raise argparse.ArgumentTypeError(f"{text} is not a finite number")
        if value == "":
            raise argparse.ArgumentTypeError("it is empty; fill it in, or leave the flag out")
        if minimum is not None and value < minimum:
            raise argparse.ArgumentTypeError(f"{text} is less than {minimum}")
        return value

    convert.__name__ = kind.__name__
    return convert

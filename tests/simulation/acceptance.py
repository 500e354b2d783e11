"""Measure the acceptance bars of the statistics and print them beside the bars.

    python tests/simulation/acceptance.py [--replications 4000] [--only gate]

Each module `acceptance_<part>.py` beside this file gives its rows through
`rows(replications, seed) -> Iterable[Row]`. Ends with 1 when a bar does not hold.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))

from simulation_bars import Row  # noqa: E402  the folder must be on the path first

PARTS = sorted(p.stem.removeprefix("acceptance_") for p in FOLDER.glob("acceptance_*.py"))


def rows(part: str, replications: int = 4000, seed: int = 20261130) -> Iterator[Row]:
    """The measured rows of one part."""
    yield from importlib.import_module(f"acceptance_{part}").rows(replications, seed)


def main() -> int:
    """Print the table, one line a row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=20261130)
    parser.add_argument("--only", choices=PARTS, action="append", help="one part of the table")
    options = parser.parse_args()
    start, broken = time.perf_counter(), 0
    print(f"{'quantity':44s} {'setting':46s} {'bar':>13s} {'measured':>9s}")
    for part in options.only or PARTS:
        for row in rows(part, options.replications, options.seed):
            broken += not row.holds()
            print(
                f"{row.quantity:44s} {row.setting:46s} {row.bar:>13s} {row.measured:9.4f}"
                f"  {'holds' if row.holds() else 'DOES NOT HOLD'}",
                flush=True,
            )
    print(f"{broken} bars broken; {time.perf_counter() - start:.0f} s")
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())

"""Prints the table of attacks and outcomes: `python tests/judges/attack_table.py`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

if __name__ == "__main__":
    from obedient_judge import SEALS, run_battery, table

    print(table({how: run_battery(how) for how in SEALS}))

"""Prints the table of attacks and outcomes: `python tests/judges/attack_table.py [--local]`.

With `--local` the embedded model is the judge (minutes): its verdict on the draft without and with
each attack. So small a model mostly says yes to anything, so the table shows flags more than wit.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

if __name__ == "__main__":
    from obedient_judge import SEALS, attacks, run_battery, run_local, table

    if "--local" in sys.argv[1:]:
        for name, plain, hit in run_local(attacks()):
            flagged = "flagged" if "injection" in hit.flags else "NOT FLAGGED"
            print(f"{name:<10} without {plain.label!s:<12} with {hit.label!s:<12} {flagged}")
    else:
        print(table({how: run_battery(how) for how in SEALS}))

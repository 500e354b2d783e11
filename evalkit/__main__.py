"""The one command: `evalkit init | doctor | store | record | admit-real`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from evalkit.counting import counted
from evalkit.errors import EvalkitError, UsageError

__all__ = ["main"]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message}. See {self.prog} --help.", file=sys.stderr)
        raise SystemExit(2)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status: 0, 2 for a usage error, 4 when something broke."""
    parser = _Parser(prog="evalkit", description="Did it get better, worse, or can nobody tell?")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    new = commands.add_parser("init", help="write a small suite to begin with")
    new.add_argument("folder", type=Path, help="for instance golden/my_suite")
    look = commands.add_parser("doctor", help="what works on this machine, and what is missing")
    look.add_argument("--out", type=Path, default=Path("exports"), help="folder of the call store")
    store = commands.add_parser("store", help="size of the call store; prune it by age or run")
    store.add_argument("--out", type=Path, default=Path("exports"), help="folder of the call store")
    store.add_argument("--prune-days", type=float, help="drop replies older than so many days")
    store.add_argument("--prune-run", help="drop the replies that this run paid for")
    record = commands.add_parser("record", help="export a run's replies, to replay without a model")
    record.add_argument("run", type=Path, help="the run's folder")
    record.add_argument("to", type=Path, help="for instance golden/my_suite/recordings/first.jsonl")
    record.add_argument(
        "--out", type=Path, default=Path("exports"), help="folder of the call store"
    )
    real = commands.add_parser("admit-real", help="admission tables on real people's labels")
    real.add_argument("--data", type=Path, required=True, help="folder with the recorded data")
    arguments = parser.parse_args(argv)
    try:
        return _COMMANDS[arguments.command](arguments)
    except EvalkitError as error:
        print(f"evalkit {arguments.command}: {error}", file=sys.stderr)
        return error.exit_status
    except BrokenPipeError:  # the reader of the pipe (head, less) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _init(arguments: argparse.Namespace) -> int:
    from evalkit.starter import write_suite

    for path in write_suite(arguments.folder):
        print(f"wrote {path.as_posix()}")
    print(f"next: marimo edit notebooks/iterate.py -- --suite {arguments.folder.as_posix()}")
    return 0


def _doctor(arguments: argparse.Namespace) -> int:
    from evalkit.doctor import check_machine

    found = list(check_machine(arguments.out))
    for item in found:
        print(f"{item.state:8}{item.what:20}{item.detail}")
    return 2 if any(item.state == "wrong" for item in found) else 0


def _store(arguments: argparse.Namespace) -> int:
    from evalkit.models.store import CallStore

    file = arguments.out / "calls.sqlite"
    if not file.exists():
        raise UsageError(f"there is no call store at {str(file)!r} yet.")
    with CallStore(file) as store:
        if arguments.prune_days is not None or arguments.prune_run:
            before = None
            if arguments.prune_days is not None:
                before = time.time() - 86_400 * arguments.prune_days
            dropped = store.prune(before=before, run=arguments.prune_run)
            print(f"{counted(dropped, 'reply')} dropped")
        size = store.size()
    held = f"{counted(size.replies, 'reply')} of {counted(size.runs, 'run')}"
    print(f"{held}, {size.bytes / 1e6:.1f} MB, {file}")
    return 0


def _record(arguments: argparse.Namespace) -> int:
    from evalkit.models.recordings import export
    from evalkit.models.store import CallStore
    from evalkit.runs.run import load_run

    rows = load_run(arguments.run)
    keys = [row.reply.key for row in rows if row.reply is not None]
    keys += [v.key for row in rows for vs in row.verdicts.values() for v in vs if v.key]
    with CallStore(arguments.out / "calls.sqlite") as store:
        written = counted(export(store, keys, arguments.to), "reply")
        print(f"{written} written to {arguments.to.as_posix()}")
    return 0


def _admit_real(arguments: argparse.Namespace) -> int:
    from evalkit.validity.real import main as replay

    return replay(["--data", str(arguments.data)])


_COMMANDS = {
    "init": _init,
    "doctor": _doctor,
    "store": _store,
    "record": _record,
    "admit-real": _admit_real,
}

if __name__ == "__main__":
    sys.exit(main())

"""The ledger loses nothing: 50 writers at once, a line cut short, a file that is something else."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest
from chat_server import ChatServer
from gate_situations import World

from evalkit.errors import LedgerError
from evalkit.runs.ledger import COLUMNS, LedgerEntry, append_entries, read_ledger
from evalkit.runs.ledger_entries import PENDING


def entry(run_id: str, score: float = 0.9) -> LedgerEntry:
    return LedgerEntry(
        "2026-11-30T12:00:00Z", "4c1f", "3f9a1c", "rate", "contract", score, 1.0, "pass",
        run_id=run_id, n=24,
    )  # fmt: skip


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    ledger = tmp_path / "deep" / "eval_baseline.tsv"
    append_entries(ledger, [entry("r1"), entry("r2", math.nan)])
    append_entries(ledger, [entry("r3")])
    first, second, third = read_ledger(ledger)
    assert (first.run_id, second.run_id, third.run_id) == ("r1", "r2", "r3")
    assert first.score == 0.9
    assert math.isnan(second.score)
    assert ledger.read_text().splitlines()[0].split("\t") == list(COLUMNS)
    assert ledger.read_text().startswith(
        "date\tgit_sha\tprompt_hash\tmetric\tname\tscore\tthreshold\tpass"
    )


def test_fifty_processes_at_once_leave_every_line_whole(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.tsv"
    code = (
        "import sys; from pathlib import Path; from evalkit.runs.ledger import *;"
        "e = [LedgerEntry('d','s','p','rate','c'*200,0.5,1.0,'pass',run_id=f'{sys.argv[2]}-{i}')"
        " for i in range(4)];"
        "[append_entries(Path(sys.argv[1]), [x]) for x in e]"
    )
    jobs = [
        subprocess.Popen(
            [sys.executable, "-S", "-c", "import site; site.main(); " + code, str(ledger), str(k)]
        )
        for k in range(50)
    ]
    assert [job.wait() for job in jobs] == [0] * 50
    entries = read_ledger(ledger)
    assert sorted(e.run_id for e in entries) == sorted(
        f"{k}-{i}" for k in range(50) for i in range(4)
    )
    assert ledger.read_text().count("git_sha") == 1


def test_a_line_cut_short_is_set_aside_and_never_trusted(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.tsv"
    append_entries(ledger, [entry("whole")])
    with ledger.open("a") as file:
        file.write("2026-11-30\tdead\tbee")
    assert [e.run_id for e in read_ledger(ledger)] == ["whole"]
    append_entries(ledger, [entry("next")])
    assert [e.run_id for e in read_ledger(ledger)] == ["whole", "next"]
    assert ledger.with_name("ledger.tsv.torn").read_text() == "2026-11-30\tdead\tbee\n"


def test_a_foreign_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "notes.tsv"
    other.write_text("my notes\n")
    with pytest.raises(LedgerError, match="does not name the ledger's columns"):
        append_entries(other, [entry("r")])
    with pytest.raises(LedgerError, match="columns"):
        read_ledger(other)
    assert other.read_text() == "my notes\n"


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.tsv"
    append_entries(ledger, [entry("r")])
    with ledger.open("a") as file:
        file.write("half a line\n")
    with pytest.raises(LedgerError, match=r"ledger\.tsv:3: .*1 cells instead of 16"):
        read_ledger(ledger)


def test_cells_cannot_break_the_table_or_run_in_a_spreadsheet(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.tsv"
    append_entries(
        ledger, [LedgerEntry("d", "s", "p", "rate", "a\tb\nc", 1, 1, "pass", model="=1+1")]
    )
    (only,) = read_ledger(ledger)
    assert only.name == "a b c"
    assert only.model == "'=1+1"


def test_a_folder_in_its_place_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="could not be read: Is a directory"):
        read_ledger(tmp_path)


def test_what_a_run_could_not_append_is_appended_by_the_next_once(tmp_path: Path) -> None:
    with ChatServer() as server:
        world = World(tmp_path, server)
        ledger = world.root / "exports" / "eval_baseline.tsv"
        ledger.mkdir(parents=True)  # nobody can write a file here
        status, said = world.gate()
        assert world.gated is not None
        assert world.gated.run.folder is not None
        pending = world.gated.run.folder / PENDING
        assert (status, f"Its lines are kept in {pending}" in said) == (4, True)
        assert world.gated.result.passed
        kept = pending.read_text()
        ledger.rmdir()
        assert world.gate(run_live=False)[0] == 0
        assert (ledger.read_text(), pending.exists()) == (kept, False)
        pending.write_text(kept)  # as a crash between the two steps leaves it
        world.gate(seed=8)
        assert not pending.exists()
        assert [e.run_id for e in read_ledger(ledger)] == [
            pending.parent.name,
            world.gated.run.manifest.run_id,
        ]

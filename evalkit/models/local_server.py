"""The process in which the local model runs: `python -m evalkit.models.local_server MODEL.gguf`.

It prints one line, `listening http://127.0.0.1:PORT`, serves until its standard input ends, and
then leaves at once. The parent holds the other end of that pipe, so the server dies with it, also
on `kill -9`.
"""

from __future__ import annotations

import importlib
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any


def serve(gguf: Path, name: str, *, slots: int, context: int, threads: int) -> None:
    """Load the model and serve it on a port that the system picks, until standard input ends.

    Args:
        gguf: The model file.
        name: What replies call the model; without it they would name the file and its folders.
        slots: Replies generated at the same time.
        context: Tokens of context for each slot.
        threads: Threads that compute. More than there are cores stalls a busy machine.
    """
    xllamacpp: Any = importlib.import_module("xllamacpp")  # compiled, and ships no types
    params = xllamacpp.CommonParams()
    params.model.path = str(gguf)
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_parallel = slots
    params.n_ctx = slots * context
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.n_threads_http = slots + 2
    params.verbosity = -1
    params.model_alias = {name}
    params.offline = True
    params.ui = False
    server = xllamacpp.Server(params)
    with suppress(OSError):  # the parent may be gone already
        print(f"listening {server.listening_address}", flush=True)
        while sys.stdin.buffer.read(4096):
            pass
    os._exit(0)  # a graceful stop would wait for replies that nobody reads any more


if __name__ == "__main__":
    _gguf, _name, _slots, _context, _threads = sys.argv[1:]
    serve(Path(_gguf), _name, slots=int(_slots), context=int(_context), threads=int(_threads))

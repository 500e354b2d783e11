"""The embedded model: found, started, answering under a schema, and gone with its parent."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from evalkit.errors import ConfigError
from evalkit.models.endpoints import load_endpoints
from evalkit.models.local import DEFAULT_MODEL, LocalModel, find_gguf, why_unavailable

needs_model = pytest.mark.skipif(bool(why_unavailable()), reason=why_unavailable() or "installed")


def ask(base_url: str, body: dict[str, object]) -> dict[str, object]:
    request = urllib.request.Request(
        f"{base_url}/v1/chat/completions",
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.load(reply)


def gone(pid: int, within_s: float = 5.0) -> bool:
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.02)
    return False


def test_a_model_that_is_not_there_is_one_sentence_with_the_way_out() -> None:
    with pytest.raises(ConfigError, match=r"no model file at 'no\.gguf'.*make local"):
        find_gguf("no.gguf")


@needs_model
@pytest.mark.local_model
def test_a_file_that_is_no_model_is_one_sentence(tmp_path: Path) -> None:
    rubbish = tmp_path / "rubbish.gguf"
    rubbish.write_bytes(b"not a model" * 100)
    with pytest.raises(ConfigError, match="did not start"):
        LocalModel(str(rubbish), timeout_s=30).start()


@needs_model
@pytest.mark.local_model
def test_it_answers_under_a_schema_and_ends_with_its_context() -> None:
    schema = {
        "type": "object",
        "properties": {"answer": {"type": "string", "maxLength": 20}},
        "required": ["answer"],
        "additionalProperties": False,
    }
    with LocalModel() as model:
        assert model.process is not None
        pid = model.process.pid
        reply = ask(
            model.base_url,
            {
                "messages": [{"role": "user", "content": "Name a colour as JSON."}],
                "max_tokens": 300,  # blanks between tokens are allowed and count
                "temperature": 0,
                "seed": 1,
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "a", "schema": schema},
                },
            },
        )
        text = reply["choices"][0]["message"]["content"]  # type: ignore[index]
        assert set(json.loads(text)) == {"answer"}
        assert reply["model"] == "smollm2-135m-instruct"  # never a path of this machine
    assert gone(pid)


@needs_model
@pytest.mark.local_model
def test_it_dies_with_its_parent_also_on_kill_9() -> None:
    code = (
        "from evalkit.models.local import running; import time;"
        "m = running(); print(m.process.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    server_pid = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    assert gone(server_pid)


@needs_model
@pytest.mark.local_model
def test_it_ends_also_when_its_parent_went_while_it_was_loading() -> None:
    """With nobody to tell that it listens, an ordinary end of Python would wait for its threads."""
    command = [sys.executable, "-m", "evalkit.models.local_server", str(find_gguf(DEFAULT_MODEL))]
    with subprocess.Popen(
        [*command, "m", "1", "512", "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.close()
        server.stdout.close()
        try:
            assert server.wait(60) == 0
        finally:
            server.kill()


def test_no_number_stands_under_another_models_name() -> None:
    with pytest.raises(ConfigError, match=r"runs 'smollm2-135m-instruct'.*model_file"):
        load_endpoints().of("local/another-model")

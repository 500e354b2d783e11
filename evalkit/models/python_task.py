"""A task in Python: `entry = "my_app.rag:answer"` calls the user's own function.

It is given the case and the prompt, and is plain (it runs in a thread) or async. It returns the
text, or a dictionary with `text` and, where it has them, `retrieved`, `reasoning`, `usage` and
`model`, or a `Reply`. Its answers are stored under a key that includes the prompt's hash and the
version that the user declares.
"""

from __future__ import annotations

import asyncio
import contextvars
import copy
import importlib
import inspect
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from evalkit.errors import CallFailed, ConfigError, EvalkitError
from evalkit.hashing import clean_text
from evalkit.models.keys import task_key
from evalkit.models.plain import reply_from_plain
from evalkit.records import Case, Reply

__all__ = ["HasHash", "PythonTask", "load_task"]


class HasHash(Protocol):
    """A prompt, as far as this room knows one."""

    @property
    def hash(self) -> str:
        """The prompt hash."""
        ...


@dataclass(frozen=True)
class PythonTask:
    """A user's function with what its key needs: its name and the version declared for it."""

    entry: str
    version: str
    function: Callable[[Case, Any], Any] = field(repr=False)
    timeout_s: float = 120.0
    max_concurrency: int = 8

    def key(self, case: Case, prompt: HasHash | None, repeat: int) -> str:
        """The call key of one answer."""
        return task_key(
            self.entry,
            self.version,
            case,
            prompt_hash=prompt.hash if prompt is not None else "",
            repeat=repeat,
        )

    async def answer(self, case: Case, prompt: HasHash | None) -> Reply:
        """Call the function once.

        Raises:
            CallFailed: If it raises or takes longer than `timeout_s`.
            ConfigError: If what it returns is no answer.
        """
        loop = asyncio.get_running_loop()
        start = loop.time()
        case = copy.deepcopy(case)  # what the function does to it is not what is scored against
        try:
            async with asyncio.timeout(self.timeout_s):
                if inspect.iscoroutinefunction(self.function):
                    made = await self.function(case, prompt)
                else:
                    made = await _in_thread(self.function, case, prompt)
                    if inspect.isawaitable(made):
                        made = await made
        except TimeoutError:
            raise CallFailed(
                f"{self.entry}: no answer to case {case.id!r} within {self.timeout_s:g} s."
            ) from None
        except EvalkitError:
            raise
        except (Exception, SystemExit) as error:  # an app that ends itself may not end the gate
            frame = traceback.extract_tb(error.__traceback__)[-1]
            raise CallFailed(
                f"{self.entry}: case {case.id!r} raised {type(error).__name__}: {error} "
                f"({Path(frame.filename).name}:{frame.lineno})"
            ) from None
        return replace(self._reply(made), latency_s=loop.time() - start)

    def _reply(self, made: Any) -> Reply:
        if isinstance(made, Reply):
            return made
        if isinstance(made, str):
            return Reply(clean_text(made), model=self.entry)
        try:
            if not isinstance(made, Mapping) or not isinstance(made["text"], str):
                raise TypeError(f"it returned {type(made).__name__}")
            return reply_from_plain({"model": self.entry, **made, "text": clean_text(made["text"])})
        except (TypeError, KeyError, ValueError) as error:
            raise ConfigError(
                f"{self.entry}: no answer in what it returned ({error}). Return the text, a "
                "dictionary with 'text' (and 'retrieved', 'reasoning', 'usage'), or a Reply."
            ) from None


def load_task(entry: str, *, version: str, root: Path | None = None) -> PythonTask:
    """Import the function behind "package.module:function".

    Args:
        entry: Where it is; `root` is looked through first.
        version: The user's own version of everything behind the function.
        root: The project's folder; the working directory by default.

    Raises:
        ConfigError: If it cannot be imported or called.
    """
    module_name, _, name = entry.partition(":")
    if not (module_name and name):
        raise ConfigError(f'entry = {entry!r}: write it as "package.module:function".')
    if (folder := str(root or Path.cwd())) not in sys.path:
        sys.path.insert(0, folder)
    try:
        function: Any = importlib.import_module(module_name)
        for part in name.split("."):
            function = getattr(function, part)
    except AttributeError:
        raise ConfigError(f"entry = {entry!r}: {module_name} has no {name}.") from None
    except (Exception, SystemExit) as error:
        raise ConfigError(
            f"entry = {entry!r} cannot be imported: {type(error).__name__}: {error}."
        ) from None
    if not callable(function):
        raise ConfigError(f"entry = {entry!r} is not a function.")
    return PythonTask(entry, version, function)


async def _in_thread(function: Callable[..., Any], *args: Any) -> Any:
    """Run a function in a daemon thread: one that hangs cannot keep the process from ending."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        if not done.done():
            done.set_exception(error) if error else done.set_result(value)

    def work() -> None:
        value: Any = None
        failure: BaseException | None = None
        try:
            value = function(*args)
        except StopIteration as error:  # a future does not take one
            failure = RuntimeError(f"StopIteration: {error}")
        except BaseException as error:
            failure = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, value, failure)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), daemon=True).start()
    return await done

"""Endpoints by name: `[tool.evalkit.endpoints.<name>]` in pyproject.toml, keys elsewhere.

A model is written "endpoint/model". An endpoint without `base_url` is started when first asked.
"""

from __future__ import annotations

import functools
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal
from urllib.parse import urlsplit, urlunsplit

from evalkit.errors import ConfigError

__all__ = ["Endpoint", "Endpoints", "Starter", "chat_url", "load_endpoints", "shown_url"]

PACKAGED_MODEL = "smollm2-135m-instruct"  # what the local endpoint runs without a model_file
PATHS = {"openai": "/chat/completions", "anthropic": "/messages"}


@functools.lru_cache(maxsize=256)  # every call key asks for it
def chat_url(base_url: str, dialect: str = "openai") -> str:
    """The address a call is sent to; `/v1` is added only when the base URL's path is empty.

    Raises:
        ConfigError: If it is no http(s) address.
    """
    parts = urlsplit(base_url.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            f"base_url = {base_url!r} is no http(s) address. Write for instance "
            '"https://api.example.com/v1".'
        )
    path = re.sub("/{2,}", "/", parts.path).rstrip("/") or "/v1"
    if not path.endswith(PATHS[dialect]):
        path += PATHS[dialect]
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


@functools.lru_cache(maxsize=256)
def shown_url(url: str) -> str:
    """The address without a user name and password: what may be printed and hashed."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One place that answers calls, and what it allows.

    Prices are US dollars per million tokens as read on `price_date`; None is unknown. Limits are
    per minute. `timeout_s` bounds one attempt from its first byte sent to its last byte received,
    `attempts` how often a call is tried: the second after about `backoff_s`, then twice that, and
    so on; a server that asks for more than `max_wait_s` is not waited for. `model_file` names a
    GGUF file for the local model.
    """

    name: str = ""
    base_url: str | None = None
    dialect: Literal["openai", "anthropic"] = "openai"
    api_key_env: str | None = None
    family: str = ""
    price_input_usd_per_mtok: float | None = None
    price_output_usd_per_mtok: float | None = None
    price_date: str | None = None
    max_concurrency: int = 16
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    timeout_s: float = 120.0
    attempts: int = 5
    backoff_s: float = 0.5
    max_wait_s: float = 60.0
    ca_file: str | None = None
    model_file: str | None = None

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid"}

    @property
    def identity(self) -> str:
        """What stands for this endpoint in a call key: its address, not its name.

        A model started on demand has another port each time, so its file stands for it.
        """
        if self.base_url is None:
            return f"started:{Path(self.model_file).name if self.model_file else self.name}"
        return shown_url(chat_url(self.base_url, self.dialect))

    @property
    def priced(self) -> bool:
        """True when both prices are known."""
        return None not in (self.price_input_usd_per_mtok, self.price_output_usd_per_mtok)

    @property
    def free(self) -> bool:
        """True when a call costs nothing, however long."""
        return self.price_input_usd_per_mtok == 0 and self.price_output_usd_per_mtok == 0


Starter = Callable[[Endpoint], str]  # starts a server, waits for it and returns its base URL


def start_local(endpoint: Endpoint) -> str:
    """Start the embedded model's server (once a process) and return its base URL."""
    from evalkit.models import local  # only a run of the local model pays for it

    return local.base_url(endpoint)


@dataclass(frozen=True)
class Endpoints:
    """The endpoints of a project, by name.

    `environment` holds what the `.env` file adds; its values never show in a repr. `starters` says
    how an endpoint without `base_url` comes to one; it is called in a thread, once a client.
    """

    by_name: Mapping[str, Endpoint]
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    starters: Mapping[str, Starter] = field(default_factory=dict)
    where: str = "pyproject.toml"

    def __iter__(self) -> Iterator[Endpoint]:
        return iter(self.by_name.values())

    def of(self, model: str) -> tuple[Endpoint, str]:
        """Endpoint and bare model name of "endpoint/model".

        Raises:
            ConfigError: If pyproject.toml names no such endpoint, the model's name is missing, or
                it is not the model that the local endpoint would run.
        """
        name, _, bare = model.partition("/")
        endpoint = self.by_name.get(name)
        if endpoint is None or not bare:
            known = ", ".join(sorted(self.by_name)) or "none"
            raise ConfigError(
                f"model {model!r}: write it as endpoint/model, with an endpoint of {self.where} "
                f"(known: {known}); a new one is a table [tool.evalkit.endpoints.NAME]."
            )
        packaged = self.starters.get(name) is start_local and endpoint.model_file is None
        if packaged and bare != PACKAGED_MODEL:  # no number under another model's name
            raise ConfigError(
                f"model {model!r}: the local endpoint runs {PACKAGED_MODEL!r}. Name that, or set "
                f"model_file to a GGUF file of your own in [tool.evalkit.endpoints.{name}]."
            )
        return endpoint, bare

    def key_of(self, endpoint: Endpoint) -> str | None:
        """The endpoint's API key, or None when it needs none.

        Raises:
            ConfigError: If the variable that should hold it is not set; names the variable.
        """
        variable = endpoint.api_key_env
        if variable is None:
            return None
        key = os.environ.get(variable) or self.environment.get(variable)
        if not key:
            raise ConfigError(
                f"endpoint {endpoint.name!r} needs an API key: set the environment variable "
                f"{variable}, or write {variable}=... into a .env file beside {self.where}."
            )
        return key.strip()

    def secrets(self) -> tuple[str, ...]:
        """Every key that is set, for redaction: the endpoints', and what is named like one."""
        named = {e.api_key_env for e in self}
        found: set[str] = set()
        for source in (os.environ, self.environment):
            for variable, value in source.items():
                if variable in named or variable.upper().endswith(("API_KEY", "_TOKEN", "_SECRET")):
                    found.add(value.strip())
        for endpoint in self:
            if endpoint.base_url and (password := urlsplit(endpoint.base_url).password):
                found.add(password)
        return tuple(sorted(found, key=len, reverse=True))


def load_endpoints(root: Path | None = None) -> Endpoints:
    """Read the endpoints of the project at `root`, or of the nearest pyproject.toml above here.

    An endpoint `local` (the embedded model, no key) is always there.

    Raises:
        ConfigError: If the file or a table is wrong; names the table and the setting.
    """
    file = _pyproject(root)
    tables: Mapping[str, Any] = {}
    if file is not None:
        try:
            tool = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {})
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{file}: not valid TOML ({error}).") from None
        tables = tool.get("evalkit", {}).get("endpoints", {})
    local: dict[str, Any] = {
        "family": "smollm",
        "price_input_usd_per_mtok": 0.0,
        "price_output_usd_per_mtok": 0.0,
        "max_concurrency": 2,
        "timeout_s": 600.0,
    }
    tables = {**tables, "local": {**local, **tables.get("local", {})}}
    where = str(file) if file else "pyproject.toml"
    by_name = {name: _endpoint(name, table, where) for name, table in tables.items()}
    dotenv: dict[str, str] = {}
    if file is not None and (env_file := file.parent / ".env").is_file():
        from dotenv import dotenv_values  # only where there is such a file

        dotenv = {k: v for k, v in dotenv_values(env_file).items() if v}
    starters = {e.name: start_local for e in by_name.values() if e.base_url is None}
    return Endpoints(by_name, dotenv, starters, where)


def _pyproject(root: Path | None) -> Path | None:
    if root is not None:
        file = Path(root) / "pyproject.toml"
        return file if file.is_file() else None
    here = Path.cwd()
    return next((f for p in (here, *here.parents) if (f := p / "pyproject.toml").is_file()), None)


def _endpoint(name: str, table: Any, where: str) -> Endpoint:
    from pydantic import TypeAdapter, ValidationError

    at = f"{where}: [tool.evalkit.endpoints.{name}]"
    if not isinstance(table, Mapping) or "name" in table:
        raise ConfigError(f"{at} must be a table, and its name is the table's own.")
    try:
        endpoint = TypeAdapter(Endpoint).validate_python({**table, "name": name})
    except ValidationError as error:
        first = error.errors()[0]
        setting = ".".join(str(p) for p in first["loc"])
        known = ", ".join(f for f in Endpoint.__dataclass_fields__ if f != "name")
        raise ConfigError(f"{at} {setting}: {first['msg']}. Settings are: {known}.") from None
    for setting in ("max_concurrency", "timeout_s", "attempts", "backoff_s", "max_wait_s"):
        if getattr(endpoint, setting) <= 0:
            raise ConfigError(f"{at} {setting} must be above 0.")
    if endpoint.base_url is not None:
        try:
            chat_url(endpoint.base_url, endpoint.dialect)
        except ConfigError as error:
            raise ConfigError(f"{at} {error}") from None
    elif name != "local" and endpoint.model_file is None:
        raise ConfigError(f"{at} has no base_url: write where it answers.")
    return endpoint

"""The one place that opens connections: httpx over the transport of httpx-aiohttp.

Imported when the first live call is made: a replay pays for neither library.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from evalkit.errors import ConfigError
from evalkit.models.faults import CallFault, FaultKind

__all__ = ["network_fault", "open_transport", "proxy_for"]

_log = logging.getLogger("evalkit.models")
# The limiter bounds the calls, so the pool must not (0 is no bound).
_LIMITS = httpx.Limits(max_connections=0, keepalive_expiry=30.0)


def open_transport(
    *, proxy: str | None = None, ca_file: str | None = None, secure: bool = True
) -> httpx.AsyncBaseTransport:
    """The way for all calls through this proxy and with this trust.

    A transport rather than a whole `httpx.AsyncClient`: cookies, redirects and the client's own
    logging are not wanted here, and cost as much again as everything else this room does.

    Args:
        proxy: Address of a proxy (`proxy_for`).
        ca_file: Certificates to trust instead of the system's.
        secure: False where nothing is encrypted, neither to the server nor to a proxy: then no
            authority is trusted, and none has to be read (25 ms).

    Raises:
        ConfigError: If the CA file or the proxy's address cannot be used.
    """
    trust = _trust(ca_file) if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return AiohttpTransport(verify=trust, limits=_LIMITS, proxy=_proxy(proxy))


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for an address, or None.

    Entries of NO_PROXY that name no host are left out with a warning in the log; `[::1]` is `::1`.
    """
    parts = urlsplit(url)
    proxies = urllib.request.getproxies_environment()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy:
        return None
    entries: list[str] = []
    for raw in proxies.get("no", "").split(","):
        entry = raw.strip()
        bare = entry[1:-1] if entry.startswith("[") and entry.endswith("]") else entry
        if any(c in bare for c in "[]/ \t"):
            _log.warning("NO_PROXY: %r names no host and is left out", entry)
        elif bare:
            entries.append(bare)
    host = parts.hostname or ""
    cleaned = {**proxies, "no": ",".join(entries)}
    if urllib.request.proxy_bypass_environment(host, cleaned):  # type: ignore[attr-defined]
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def network_fault(error: Exception) -> CallFault:
    """The fault behind an error of the connection."""
    cause = error.__cause__ or error
    said = str(cause) or type(cause).__name__
    if isinstance(cause, aiohttp.ClientSSLError):
        mend = "; ca_file in the endpoint's table names an authority to trust"
        return CallFault(FaultKind.IMPOSSIBLE, f"no trusted connection: {said}{mend}")
    if isinstance(cause, (aiohttp.ClientConnectorError, httpx.ConnectError, httpx.ProxyError)):
        return CallFault(FaultKind.UNREACHABLE, f"no connection: {said}")
    if isinstance(error, (httpx.InvalidURL, httpx.UnsupportedProtocol)):
        return CallFault(FaultKind.IMPOSSIBLE, f"the address cannot be used: {said}")
    if isinstance(error, httpx.DecodingError):
        return CallFault(FaultKind.UNREADABLE, f"the reply cannot be unpacked: {said}")
    if isinstance(cause, (asyncio.TimeoutError, httpx.ReadTimeout)):
        return CallFault(FaultKind.TIMEOUT, "no reply in time")
    return CallFault(FaultKind.NETWORK, f"the connection broke: {said}")


def _trust(ca_file: str | None) -> ssl.SSLContext | bool:
    if not ca_file:
        return True
    try:
        return ssl.create_default_context(cafile=str(Path(ca_file).expanduser()))
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"ca_file = {ca_file!r} cannot be used ({error}).") from None


def _proxy(address: str | None) -> httpx.Proxy | None:
    if address is None:
        return None
    try:
        return httpx.Proxy(address)
    except (ValueError, httpx.InvalidURL) as error:
        raise ConfigError(
            f"the proxy that the environment names cannot be used ({error}). "
            "Correct HTTPS_PROXY, HTTP_PROXY or ALL_PROXY."
        ) from None

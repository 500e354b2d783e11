"""What a failed call means: send again or not, after how long, and the sentence a person reads."""

from __future__ import annotations

import email.utils
import json
import math
import re
import time
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

__all__ = ["CallFault", "FaultKind", "fault_in_body", "fault_of_status", "retry_after_s"]


class FaultKind(StrEnum):
    """RATE_LIMITED to UNREADABLE pass: the call is sent again. The others stay as they are.

    TOO_LONG and FILTERED are a case's own result; QUOTA and IMPOSSIBLE end the run; PARAMETER asks
    for another spelling of the same call.
    """

    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    SERVER = "server"
    NETWORK = "network"
    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    UNREADABLE = "unreadable"
    TOO_LONG = "too_long"
    FILTERED = "filtered"
    PARAMETER = "parameter"
    QUOTA = "quota"
    IMPOSSIBLE = "impossible"


_PASSING = {
    FaultKind.RATE_LIMITED,
    FaultKind.OVERLOADED,
    FaultKind.SERVER,
    FaultKind.NETWORK,
    FaultKind.UNREACHABLE,
    FaultKind.TIMEOUT,
    FaultKind.UNREADABLE,
}


class CallFault(Exception):
    """One failed attempt. `wait_s` is the delay the server asked for, None if it named none."""

    def __init__(
        self,
        kind: FaultKind,
        message: str,
        *,
        status: int | None = None,
        wait_s: float | None = None,
        parameter: str = "",
    ) -> None:
        super().__init__(message)
        self.kind, self.message, self.status = kind, message, status
        self.wait_s, self.parameter = wait_s, parameter

    @property
    def retry(self) -> bool:
        """True when the same call, sent again, may succeed."""
        return self.kind in _PASSING

    @property
    def slows_down(self) -> bool:
        """True when the server has too much to do: fewer calls at a time help."""
        return self.kind in (FaultKind.RATE_LIMITED, FaultKind.OVERLOADED)


def retry_after_s(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Delay asked for in `retry-after-ms` or `Retry-After` (seconds or an HTTP date); None if none.

    Args:
        headers: Reply headers, looked up in lower case.
        now: Seconds since the epoch, for dates.
    """
    lower = {k.lower(): v.strip() for k, v in headers.items()}
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            delay = float(lower.get(name, "")) * unit
        except ValueError:
            continue
        return max(0.0, delay) if math.isfinite(delay) else None
    try:
        date = email.utils.parsedate_to_datetime(lower.get("retry-after", ""))
    except (ValueError, TypeError):
        return None
    return max(0.0, date.timestamp() - (time.time() if now is None else now))


_QUOTA = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "billing_error"}
_LONG = {"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"}
_FILTER = {"content_filter", "content_policy_violation", "responsibleaipolicyviolation"}
_LONG_WORDS = re.compile(
    r"context (?:length|size|window)|prompt is too long|input is too long|does not fit|"
    r"input token count|too many (?:input|prompt) tokens",
    re.IGNORECASE,
)
_REFUSED_WORDS = re.compile(
    r"unsupported|not support|unavailable|does not accept|not permitted|not allowed|unrecognized|"
    r"unknown|unexpected|extra inputs|deprecated|only the default|not available|invalid schema",
    re.IGNORECASE,
)
_NAMED = {
    "overloaded_error": 529,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "invalid_request_error": 400,
    "billing_error": 402,
}


def fault_of_status(
    status: int, headers: Mapping[str, str], body: bytes, *, url: str = ""
) -> CallFault:
    """The fault behind an HTTP status above 299."""
    wait = retry_after_s(headers)
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = _words(body.decode("utf-8", "replace"))
    if 300 <= status < 400:
        where = next((v for k, v in headers.items() if k.lower() == "location"), "elsewhere")
        message = f"the server redirects to {where}: put that address into base_url"
        return CallFault(FaultKind.IMPOSSIBLE, f"{message} ({url})", status=status)
    return _classed(status, _error_object(value), wait, url)


def fault_in_body(body: Mapping[str, Any], *, url: str = "") -> CallFault | None:
    """The fault behind an error object in a 200 body; None when there is none."""
    if not body.get("error") and body.get("type") != "error":
        return None
    error = _error_object(body)
    code = error.get("code")
    number = int(code) if isinstance(code, (int, str)) and str(code).isdigit() else None
    for name in (code, error.get("type")):
        number = number or _NAMED.get(str(name).lower())
    return _classed(number or 500, error, None, url)


def _error_object(value: Any) -> dict[str, Any]:
    """The innermost error object of the spellings in use, or its text as the message."""
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, Mapping):
        inner = value.get("error") or value
        if isinstance(inner, Mapping):
            message = inner.get("message") or inner.get("detail") or inner.get("error")
            return {**inner, "message": _words(message if message else json.dumps(inner))}
        value = inner
    return {"message": _words(value)}


def _words(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    text = re.sub(r"(?s)<(script|style).*?</\1>|<[^>]*>", " ", text) if "<" in text else text
    return " ".join(text.split())[:300] or "no message"


def _classed(status: int, error: Mapping[str, Any], wait: float | None, url: str) -> CallFault:
    message = str(error["message"])
    names = {str(error.get(k, "")).lower() for k in ("code", "type", "status")}
    inner = error.get("innererror")
    if isinstance(inner, Mapping):
        names.add(str(inner.get("code", "")).lower())
    said = f"HTTP {status}: {message}"
    if names & _QUOTA or status == 402 or "credit balance is too low" in message.lower():
        return CallFault(FaultKind.QUOTA, f"the account's quota is used up ({said})", status=status)
    if status in (400, 413, 422) and (names & _LONG or _LONG_WORDS.search(message)):
        return CallFault(FaultKind.TOO_LONG, _too_long(error, message), status=status)
    if status in (400, 403) and names & _FILTER:
        return CallFault(FaultKind.FILTERED, f"filtered by the server ({said})", status=status)
    if status in (400, 422) and (parameter := _parameter(error, names, message)):
        return CallFault(FaultKind.PARAMETER, said, status=status, parameter=parameter)
    if status == 429:
        return CallFault(FaultKind.RATE_LIMITED, said, status=status, wait_s=wait)
    if status in (503, 529):
        return CallFault(FaultKind.OVERLOADED, said, status=status, wait_s=wait)
    if status in (408, 409, 425) or (status >= 500 and status not in (501, 505)):
        return CallFault(FaultKind.SERVER, said, status=status, wait_s=wait)
    cause = {401: "the API key is not accepted", 403: "access is not allowed"}.get(status)
    if status == 404:
        cause = "no such model or address"
    cause = cause or "the request is not accepted"
    return CallFault(FaultKind.IMPOSSIBLE, f"{cause} by {url} ({said})", status=status)


def _too_long(error: Mapping[str, Any], message: str) -> str:
    tokens, context = error.get("n_prompt_tokens"), error.get("n_ctx")
    if not (isinstance(tokens, int) and isinstance(context, int)):
        numbers = sorted({int(n.replace(",", "")) for n in re.findall(r"\d[\d,]{2,}", message)})
        if len(numbers) < 2:
            return f"the prompt does not fit the model's context ({message})"
        context, tokens = numbers[0], numbers[-1]
    return f"the prompt of {tokens} tokens does not fit the model's context of {context}"


_PARAMETERS = (
    *("max_tokens", "temperature", "response_format", "json_schema", "output_config", "seed"),
    *("top_p", "top_k", "stop", "frequency_penalty", "presence_penalty", "logprobs"),
    "reasoning_effort",
)


def _parameter(error: Mapping[str, Any], names: set[str], message: str) -> str:
    """The parameter the server will not take, or ""."""
    unsupported = any(n.startswith("unsupported") or n == "unknown_parameter" for n in names)
    if not (unsupported or _REFUSED_WORDS.search(message)):
        return ""
    named = error.get("param")
    if isinstance(named, str) and named:
        return named.split(".")[0]
    found = [(m.start(), p) for p in _PARAMETERS if (m := re.search(rf"\b{p}\b", message))]
    parameter = min(found, default=(0, ""))[1]
    return "response_format" if parameter == "json_schema" else parameter

"""What the errors of providers mean: every shape of error becomes one StreamFailure. Markup never gets into one."""

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from handrail.conversation.stream import NOT_AN_API, StreamFailure
from handrail.lazy import lazy
from handrail.providers.wire import count, mapping, string

if TYPE_CHECKING:
    from email import utils as email_utils
else:
    email_utils = lazy("email.utils")  # 8 ms for a rare form of a header

MAX_MESSAGE = 2_000
MARKUP = r"(?i)\s*<(!doctype|\?xml|[a-z][a-z0-9:]*[\s/>])"
TITLE = r"(?i)<(title|message)\b[^>]*>\s*([^<]{1,200}?)\s*<"
RETRYABLE_STATUS = frozenset({408, 409, 429, 529})

# error types and codes inside a 200 stream, with the status they would have had
STATUS_OF = {
    "invalid_request_error": 400,
    "invalid_request": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "billing_error": 402,
    "insufficient_quota": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "request_too_large": 413,
    "context_length_exceeded": 400,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "server_error": 500,
    "internal_error": 500,
    "api_error": 500,
    "internal_server_error": 500,
    "service_unavailable": 503,
    "timeout_error": 504,
    "overloaded_error": 529,
}


def can_help(status: int) -> bool:
    """Whether a retry can help after this HTTP status."""
    return status in RETRYABLE_STATUS or 500 <= status <= 599


def from_status(status: int, body: bytes, retry_after: float | None = None, should_retry: str = "") -> StreamFailure:
    """The failure an HTTP error status stands for; `should_retry` is what the server says about it, if anything."""
    try:
        payload: Any = json.loads(body.decode("utf-8", "replace").strip())
    except (ValueError, RecursionError):
        payload = None
    kind, message, _ = _describe(payload)
    text = readable(message or body.decode("utf-8", "replace").strip()) or "the server gave no reason"
    retryable = can_help(status) if should_retry not in {"true", "false"} else should_retry == "true"
    if status in {400, 401, 403} or kind == "insufficient_quota":
        retryable = False
    return StreamFailure(kind or f"http_{status}", text, retryable, status, retry_after)


def from_page(body: bytes) -> StreamFailure:
    """The failure that a web page in the place of an answer stands for."""
    return StreamFailure(NOT_AN_API, readable(body.decode("utf-8", "replace")), retryable=False)


def from_foreign(payload: object) -> StreamFailure:
    """The failure that JSON stands for which is no answer of a model."""
    kind, message, _ = _describe(payload)
    if message or kind in STATUS_OF:
        return from_payload(payload)
    fields = ", ".join(sorted(mapping(payload))[:5]) or "none"
    text = f"the server answered with JSON that is not an answer of a model (its fields: {fields[:200]})"
    return StreamFailure(NOT_AN_API, text, retryable=False)


def readable(text: str) -> str:
    """The text of an error for people. Of markup only its title is kept."""
    if not re.match(MARKUP, text):
        return text[:MAX_MESSAGE]
    title = re.search(TITLE, text)
    return "the server answered with a web page" + (f", {title[2]!r}," if title else "") + " and not as an API does"


def from_payload(payload: object) -> StreamFailure:
    """The failure an error object in the middle of a stream stands for."""
    kind, message, status = _describe(payload)
    status = status or STATUS_OF.get(kind)
    # a server that does not say what went wrong is taken to be at fault
    retryable = True if status is None else can_help(status)
    return StreamFailure(kind or "error", readable(message) or "the server gave no reason", retryable, status)


def broken(kind: str, message: str) -> StreamFailure:
    """The stream itself broke; a retry can help."""
    return StreamFailure(kind, message, retryable=True)


def _describe(payload: object) -> tuple[str, str, int | None]:
    if isinstance(payload, list) and payload:
        payload = payload[0]
    outer = mapping(payload)
    error = outer.get("error")
    if isinstance(error, str):
        return string(outer.get("code")), error, count(outer.get("status"))
    inner = mapping(error) or outer
    code = inner.get("code")
    kinds = (string(code), string(inner.get("type")), string(inner.get("status")))
    known = [kind for kind in kinds if kind in STATUS_OF]
    kind = known[0] if known else next((kind for kind in kinds if kind and kind != "error"), "")
    message = string(inner.get("message")) or _text(inner.get("message")) or _text(inner.get("detail"))
    number = count(code)
    return kind, message, number if number is not None and 400 <= number <= 599 else None


def _text(value: object) -> str:
    match value:
        case None:
            return ""
        case str():
            return value
        case list():
            return "; ".join(filter(None, map(_text, value)))
        case dict():
            return _text(value.get("msg") or value.get("message") or value.get("detail"))
        case _:
            return str(value)


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds the server asks to wait: `retry-after-ms`, `retry-after` as seconds or as a date (`now` is Unix time)."""
    try:
        return max(0.0, float(headers["retry-after-ms"]) / 1000)
    except (KeyError, ValueError):
        pass
    value = headers.get("retry-after", "")
    try:
        return max(0.0, float(value))
    except ValueError:
        return _until(value, now)


def _until(date: str, now: float) -> float | None:
    try:
        return max(0.0, email_utils.parsedate_to_datetime(date).timestamp() - now)
    except (ValueError, OverflowError):
        return None

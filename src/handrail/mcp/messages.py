"""JSON-RPC messages: read within bounds, and cleaned of what cannot be written or shown."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from handrail.errors import JsonRpcError, McpError

Message: TypeAlias = dict[str, Any]

MAX_DEPTH = 100
MAX_VALUES = 2_000_000
"""The most values of one message: each costs far more memory and time than its bytes."""
STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)
"""A text, also one that never ends: else its end would be looked for from every quote in it."""
MAX_ERROR = 2_000
METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR, BUSY = -32601, -32602, -32603, -32000
CONTROLS = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
"""Characters that move a terminal's cursor, change its colours, turn the direction of text, or hide words in it."""


def read_message(data: bytes | str) -> object:
    """The JSON value in what a server sent; ValueError if it is none, McpError if it has too many values."""
    text = data if isinstance(data, str) else data.decode("utf-8-sig", "replace")
    if _separators(text) > MAX_VALUES and _separators(STRING.sub("", text)) > MAX_VALUES:
        raise McpError(f"it sent a message of more than {MAX_VALUES:,} values")
    try:
        value: object = json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    return value


def _separators(text: str) -> int:
    return sum(map(text.count, ",[{"))


def request_message(number: int | str, method: str, params: Mapping[str, Any]) -> Message:
    """A request."""
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": dict(params)}


def notification(method: str, params: Mapping[str, Any]) -> Message:
    """A notification."""
    return {"jsonrpc": "2.0", "method": method, **({"params": dict(params)} if params else {})}


def answer_message(number: int | str, result: Mapping[str, Any]) -> Message:
    """The answer to a request of a server."""
    return {"jsonrpc": "2.0", "id": number, "result": dict(result)}


def error_message(number: int | str, code: int, text: str) -> Message:
    """The refusal of a request of a server."""
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": text}}


def result_of(answer: Mapping[str, Any], method: str) -> Mapping[str, Any]:
    """The result in an answer; raises JsonRpcError if it is an error, McpError if it is not understood."""
    match answer:
        case {"error": {"message": str(text)} as error}:
            code = error.get("code")
            raise JsonRpcError(
                f"{method} failed: {shown_text(text)[:MAX_ERROR]}",
                code if isinstance(code, int) else INTERNAL_ERROR,
                error.get("data"),
            )
        case {"error": error} if error is not None:
            raise JsonRpcError(f"{method} failed: {error!r:.500}", INTERNAL_ERROR)
        case {"result": Mapping() as result}:
            clean: Mapping[str, Any] = clean_value(result, method)
            return clean
        case _:
            raise McpError(f"{method} got an answer that is not a JSON-RPC result: {str(answer)[:200]!r}")


def clean_value(value: Any, method: str, depth: int = 0) -> Any:
    """The JSON value without lone surrogates and numbers that JSON lacks; McpError if it is nested too deeply."""
    if depth > MAX_DEPTH:
        raise McpError(f"{method} got an answer that is nested more than {MAX_DEPTH} levels deep.")
    kind = type(value)
    if kind is str:
        return clean_text(value)
    if kind is dict:
        return {clean_text(name): clean_value(each, method, depth + 1) for name, each in value.items()}
    if kind is list:
        return [clean_value(each, method, depth + 1) for each in value]
    return None if kind is float and not math.isfinite(value) else value


def clean_text(text: str) -> str:
    """The text without lone surrogates, which cannot be encoded."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def shown_text(text: str) -> str:
    """The text as it may be shown: without lone surrogates and control characters."""
    return CONTROLS.sub("\ufffd", clean_text(text))


def shown_line(text: str, most: int) -> str:
    """The text as it may be shown in one line of so many characters."""
    return " ".join(shown_text(text).split())[:most]


def shown_value(value: Any) -> Any:
    """The JSON value with all its texts as they may be shown."""
    match value:
        case str():
            return shown_text(value)
        case dict():
            return {shown_text(name): shown_value(each) for name, each in value.items()}
        case list():
            return [shown_value(each) for each in value]
        case _:
            return value

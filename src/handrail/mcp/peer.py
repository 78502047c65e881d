"""The JSON-RPC connection to an MCP server, over any transport."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeAlias

from handrail.errors import McpError

NOTIFY_TIMEOUT = 10.0
MAX_DEPTH = 100

Message: TypeAlias = dict[str, Any]
OnProgress: TypeAlias = Callable[[Mapping[str, Any]], None]


class Peer(Protocol):
    """One connection to one server."""

    async def request(
        self, method: str, params: Mapping[str, Any], *, time_limit: float, on_progress: OnProgress | None = None
    ) -> Mapping[str, Any]:
        """The result of a request, or McpError. Cancelling the wait cancels the request at the server."""
        ...

    async def notify(self, method: str, params: Mapping[str, Any]) -> None: ...

    async def aclose(self) -> None: ...


Exchange: TypeAlias = Callable[[Message], Awaitable[Message]]
"""Sends one message to a server elsewhere and returns its answer."""


class ExchangePeer:
    """A server that the host program reaches for us, message by message."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._number = 0

    async def request(
        self, method: str, params: Mapping[str, Any], *, time_limit: float, on_progress: OnProgress | None = None
    ) -> Mapping[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": dict(params)}
        return result_of(await self._send(message, time_limit, f"{method} was not answered"), method)

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        await self._send({"method": method, "params": dict(params)}, NOTIFY_TIMEOUT, f"{method} was not taken")

    async def _send(self, message: Message, seconds: float, problem: str) -> Message:
        try:
            return await asyncio.wait_for(self._exchange({"jsonrpc": "2.0", **message}), seconds)
        except TimeoutError as error:
            raise McpError(f"{problem} in {seconds:g} s.") from error

    async def aclose(self) -> None:
        """Nothing to close."""


def result_of(answer: Mapping[str, Any], method: str) -> Mapping[str, Any]:
    """The result in a JSON-RPC answer; raises McpError if it is an error or is not understood."""
    match answer:
        case {"error": {"message": str(text)}}:
            raise McpError(f"{method} failed: {clean_text(text)}")
        case {"error": error} if error is not None:
            raise McpError(f"{method} failed: {error!r:.500}")
        case {"result": Mapping() as result}:
            clean: Mapping[str, Any] = clean_value(result, method)
            return clean
        case _:
            raise McpError(f"{method} got an answer that is not a JSON-RPC result: {str(answer)[:200]!r}")


def clean_value(value: Any, method: str, depth: int = 0) -> Any:
    """The JSON value without lone surrogates; raises McpError if it is nested too deeply."""
    if depth > MAX_DEPTH:
        raise McpError(f"{method} got an answer that is nested more than {MAX_DEPTH} levels deep.")
    match value:
        case str():
            return clean_text(value)
        case dict():
            return {clean_text(name): clean_value(each, method, depth + 1) for name, each in value.items()}
        case list():
            return [clean_value(each, method, depth + 1) for each in value]
        case _:
            return value


def clean_text(text: str) -> str:
    """The text without lone surrogates, which cannot be encoded."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()

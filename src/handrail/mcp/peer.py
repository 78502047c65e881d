"""How an MCP server is spoken to: JSON-RPC requests and notifications, over whatever carries them."""

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
        """
        The result of a request. Whoever stops waiting cancels it at the server.

        Raises:
            McpError: there is none.
        """
        ...

    async def notify(self, method: str, params: Mapping[str, Any]) -> None: ...

    async def aclose(self) -> None: ...


Exchange: TypeAlias = Callable[[Message], Awaitable[Message]]
"""Carries one message to a server that lives elsewhere, and brings its answer."""


class ExchangePeer:
    """A server behind somebody who answers message by message, such as the program that drives us."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._number = 0

    async def request(
        self, method: str, params: Mapping[str, Any], *, time_limit: float, on_progress: OnProgress | None = None
    ) -> Mapping[str, Any]:
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": dict(params)}
        try:
            return result_of(await asyncio.wait_for(self._exchange(message), time_limit), method)
        except TimeoutError as error:
            raise McpError(f"{method} was not answered in {time_limit:g} s.") from error

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": dict(params)}
        try:
            await asyncio.wait_for(self._exchange(message), NOTIFY_TIMEOUT)
        except TimeoutError as error:
            raise McpError(f"{method} was not taken in {NOTIFY_TIMEOUT:g} s.") from error

    async def aclose(self) -> None:
        """There is nothing to let go of."""


def result_of(answer: Mapping[str, Any], method: str) -> Mapping[str, Any]:
    """
    What a JSON-RPC answer says.

    Raises:
        McpError: it says that something went wrong, or nothing that can be understood.
    """
    match answer:
        case {"error": {"message": str(text)}}:
            raise McpError(f"{method} failed: {whole_text(text)}")
        case {"error": error} if error is not None:
            raise McpError(f"{method} failed: {error!r:.500}")
        case {"result": Mapping() as result}:
            sound: Mapping[str, Any] = sound_value(result, method)
            return sound
        case _:
            raise McpError(f"{method} was answered with something that is no result: {str(answer)[:200]!r}")


def sound_value(value: Any, method: str, depth: int = 0) -> Any:
    """
    A JSON value that everything after it can bear: whole characters only, and not nested without end.

    Raises:
        McpError: it is nested too deeply.
    """
    if depth > MAX_DEPTH:
        raise McpError(f"{method} was answered with a value that is nested more than {MAX_DEPTH} levels deep.")
    match value:
        case str():
            return whole_text(value)
        case dict():
            return {whole_text(name): sound_value(each, method, depth + 1) for name, each in value.items()}
        case list():
            return [sound_value(each, method, depth + 1) for each in value]
        case _:
            return value


def whole_text(text: str) -> str:
    """The text without halves of characters, which cannot be written or sent anywhere."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()

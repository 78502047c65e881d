"""How an MCP server is spoken to: JSON-RPC requests and notifications, over whatever carries them."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeAlias

from handrail.errors import HandrailError

NOTICE_PATIENCE = 10.0

Message: TypeAlias = dict[str, Any]
OnProgress: TypeAlias = Callable[[Mapping[str, Any]], None]


class McpError(HandrailError):
    """A server cannot be reached, answered with an error, or said what makes no sense."""


class Peer(Protocol):
    """One connection to one server."""

    async def request(
        self, method: str, params: Mapping[str, Any], *, patience: float, on_progress: OnProgress | None = None
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
        self, method: str, params: Mapping[str, Any], *, patience: float, on_progress: OnProgress | None = None
    ) -> Mapping[str, Any]:
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": dict(params)}
        try:
            return result_of(await asyncio.wait_for(self._exchange(message), patience), method)
        except TimeoutError as error:
            raise McpError(f"{method} was not answered in {patience:g} s.") from error

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": dict(params)}
        try:
            await asyncio.wait_for(self._exchange(message), NOTICE_PATIENCE)
        except TimeoutError as error:
            raise McpError(f"{method} was not taken in {NOTICE_PATIENCE:g} s.") from error

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
            raise McpError(f"{method} failed: {text}")
        case {"error": error} if error is not None:
            raise McpError(f"{method} failed: {error!r}")
        case {"result": Mapping() as result}:
            return result
        case _:
            raise McpError(f"{method} was answered with something that is no result: {str(answer)[:200]!r}")

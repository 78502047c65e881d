"""
JSON-RPC with one server, over any wire: requests and their answers, progress, cancellation, questions of the server.

    Peer.request -> Wire.send ... Wire -> Peer.receive -> the answer, a progress listener, or `ServerEvents`

A wire only moves messages. The same peer works for pipes, HTTP and WebSockets.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from handrail.conversation.logger import get_logger
from handrail.errors import McpError
from handrail.mcp.dialect import UNDECIDED, Dialect
from handrail.mcp.messages import (
    BUSY,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Message,
    answer_message,
    clean_value,
    error_message,
    notification,
    request_message,
    result_of,
)
from handrail.records import record

log = get_logger(__name__)

NOTIFY_TIME = 10.0
MAX_QUESTIONS = 8
"""The most questions of a server that are being answered at a time."""
NO_LIMIT = float("inf")
MAX_DIGITS = 20
NOT_CANCELLED = ("initialize", "server/discover")

OnProgress: TypeAlias = Callable[[Mapping[str, Any]], None]
Answer: TypeAlias = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]] | None]
"""Answers a request of the server by its method and parameters; None if that method is not offered."""


class Wire(Protocol):
    """Moves messages to one server, and hands what comes back to `Peer.receive`."""

    async def send(self, message: Message, headers: Mapping[str, str]) -> None:
        """Send a message, or raise McpError. A wire that gets answers with the request returns when it has them."""
        ...

    def post(self, message: Message) -> None:
        """Send a message that may be lost, without waiting."""
        ...

    async def open_stream(self) -> None:
        """Take in what the server says by itself, if that does not come anyway."""
        ...

    async def aclose(self) -> None:
        """Close the connection. Never raises; may be called twice, from any task."""
        ...


@record
class ServerEvents:
    """What becomes of that which a server sends by itself."""

    answer: Answer = lambda _method, _params: None
    notify: Callable[[str, Mapping[str, Any]], None] = lambda _method, _params: None


@dataclass(slots=True)
class PendingRequest:
    """A request whose answer has not come."""

    answer: "asyncio.Future[Message]"
    on_progress: OnProgress | None
    clock: asyncio.Timeout
    due: float
    idle_limit: float


class Peer:
    """One connection to one server."""

    def __init__(self, name: str, events: ServerEvents = ServerEvents()) -> None:  # noqa: B008  # frozen
        self.name = name
        self.dialect: Dialect = UNDECIDED
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Why the connection ended, once it has."""
        self._events = events
        self._wire: Wire | None = None
        self._number = 0
        self._pending: dict[int, PendingRequest] = {}
        self._questions: dict[int | str, asyncio.Task[None]] = {}
        self._has_complained = False

    def attach(self, wire: Wire) -> "Peer":
        """Use this wire."""
        self._wire = wire
        return self

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        time_limit: float,
        idle_limit: float = NO_LIMIT,
        on_progress: OnProgress | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Mapping[str, Any]:
        """
        The result of a request, or McpError. Cancelling the wait cancels the request at the server.

        It may take `time_limit` seconds, and `idle_limit` without progress.
        """
        self._number += 1
        number = self._number
        if on_progress is not None:
            params = {**params, "_meta": {**params.get("_meta", {}), "progressToken": number}}
        params = self.dialect.with_envelope(params)
        message = request_message(number, method, params)
        whole = {**self.dialect.headers(method, params), **(headers or {})}
        loop = asyncio.get_running_loop()
        due = loop.time() + time_limit
        clock = asyncio.timeout_at(min(due, loop.time() + idle_limit))
        pending = PendingRequest(loop.create_future(), on_progress, clock, due, idle_limit)
        self._pending[number] = pending
        try:
            async with clock:  # also for a server that reads nothing
                await self._open_wire().send(message, whole)
                return result_of(await pending.answer, method)
        except TimeoutError as error:
            self._cancel(number, method, "it took too long")
            limit, kind = (idle_limit, " or report progress") if loop.time() < due else (time_limit, "")
            raise McpError(f"The MCP server {self.name!r} did not answer {method}{kind} in {limit:g} s.") from error
        except asyncio.CancelledError:
            self._cancel(number, method, "it is no longer needed")
            raise
        finally:
            del self._pending[number]
            if not pending.answer.done():
                pending.answer.cancel()

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification, or raise McpError."""
        try:
            async with asyncio.timeout(NOTIFY_TIME):
                message = notification(method, params)
                await self._open_wire().send(message, self.dialect.headers(method, params))
        except TimeoutError as error:
            raise McpError(f"The MCP server {self.name!r} did not take {method} in {NOTIFY_TIME:g} s.") from error

    async def open_stream(self) -> None:
        """Take in what the server says by itself, from now on."""
        await self._open_wire().open_stream()

    async def aclose(self) -> None:
        """Close the connection. Never raises; may be called twice, from any task."""
        self.end("it was closed")
        if self._wire is not None:
            await self._wire.aclose()

    def receive(self, message: object) -> None:
        """Take in one message of the server, whatever it is."""
        match message:
            case {"id": int() | str() as number, "method": str(method), **rest}:
                params = rest.get("params")
                self._take_question(number, method, params if isinstance(params, Mapping) else {})
            case {"id": int(number)}:
                self._take_answer(number, message)
            case {"id": str(text)} if text.isdecimal() and len(text) < MAX_DIGITS:
                self._take_answer(int(text), message)
            case {"method": str(method), **rest}:
                params = rest.get("params")
                self._take_notification(method, params if isinstance(params, Mapping) else {})
            case list():  # a batch, which revisions before 2025-06-18 have
                for each in message[:1000]:
                    if not isinstance(each, list):
                        self.receive(each)
            case _:
                self.complain(message)

    def complain(self, sent: object) -> None:
        """Log what is not a message: once, because a server could fill a terminal with it."""
        level = logging.DEBUG if self._has_complained else logging.WARNING
        self._has_complained = True
        log.log(level, "the MCP server %r sent what is not a message: %.200r", self.name, sent)

    def end(self, why: str) -> None:
        """The connection has ended: nothing more comes."""
        if not self.ended.done():
            self.ended.set_result(why)
        for pending in self._pending.values():
            if not pending.answer.done():
                pending.answer.set_exception(McpError(self._unreachable()))
                pending.answer.exception()  # a request that fails while it is being sent never looks at its answer
        for task in self._questions.values():
            task.cancel()

    def _open_wire(self) -> Wire:
        if self.ended.done() or self._wire is None:
            raise McpError(self._unreachable())
        return self._wire

    def _unreachable(self) -> str:
        why = self.ended.result() if self.ended.done() else "it was never started"
        return f"The MCP server {self.name!r} cannot be asked: {why.rstrip('.')}."

    def _cancel(self, number: int, method: str, reason: str) -> None:
        if self._wire is not None and not self.dialect.cancels_by_closing and method not in NOT_CANCELLED:
            self._post(notification("notifications/cancelled", {"requestId": number, "reason": reason}))

    def _post(self, message: Message) -> None:
        if self._wire is not None and not self.ended.done():
            self._wire.post(message)

    def _take_answer(self, number: int, message: Any) -> None:
        pending = self._pending.get(number)
        if pending is not None and not pending.answer.done():
            pending.answer.set_result(message)

    def _take_notification(self, method: str, sent: Mapping[str, Any]) -> None:
        try:
            params = clean_value(sent, method)
        except McpError as error:
            self.complain(str(error))
            return
        match method, params:
            case "notifications/progress", {"progressToken": int(number)}:
                pending = self._pending.get(number)
                if pending is not None and pending.on_progress is not None:
                    pending.on_progress(params)
                    self._extend(pending)
            case "notifications/cancelled", {"requestId": int() | str() as number}:
                if task := self._questions.get(number):
                    task.cancel()
            case _:
                self._events.notify(method, params)

    def _extend(self, pending: PendingRequest) -> None:
        if pending.idle_limit != NO_LIMIT and not pending.clock.expired():
            pending.clock.reschedule(min(pending.due, asyncio.get_running_loop().time() + pending.idle_limit))

    def _take_question(self, number: int | str, method: str, sent: Mapping[str, Any]) -> None:
        if method == "ping":
            self._post(answer_message(number, {}))
            return
        if len(self._questions) >= MAX_QUESTIONS or number in self._questions:
            self._post(error_message(number, BUSY, "Too many requests are being answered already."))
            return
        try:
            answer = self._events.answer(method, clean_value(sent, method))
        except McpError as error:
            self._post(error_message(number, INVALID_PARAMS, str(error)))
            return
        if answer is None:
            self._post(error_message(number, METHOD_NOT_FOUND, f"This client does not offer {method[:100]!r}."))
            return
        task = asyncio.ensure_future(self._answer(number, answer))
        self._questions[number] = task
        task.add_done_callback(lambda _task: self._questions.pop(number, None))

    async def _answer(self, number: int | str, answer: Awaitable[Mapping[str, Any]]) -> None:
        try:
            self._post(answer_message(number, await answer))
        except McpError as error:
            self._post(error_message(number, INTERNAL_ERROR, str(error)))


class ExchangeWire:
    """Reaches a server in the program that drives us, message by message."""

    def __init__(self, exchange: Callable[[Message], Awaitable[Message]], receive: Callable[[object], None]) -> None:
        self._exchange = exchange
        self._receive = receive
        self._tasks: set[asyncio.Task[None]] = set()

    async def send(self, message: Message, headers: Mapping[str, str]) -> None:
        answer = await self._exchange(message)
        if "id" in message and "method" in message:
            self._receive({**answer, "id": message["id"]})

    def post(self, message: Message) -> None:
        self._start(self.send(message, {}))

    async def open_stream(self) -> None:
        """Nothing comes unless it is asked for."""

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def aclose(self) -> None:
        for task in self._tasks:
            task.cancel()

"""
JSON-RPC with an editor, over lines, in both directions.

Every request that arrives gets exactly one response, whatever its line holds; every request of ours ends with a result,
an error, or the end of the connection.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeAlias

from handrail.acp.params import INVALID_PARAMS
from handrail.conversation.blocks import Json
from handrail.conversation.logger import get_logger
from handrail.conversation.plain import plain
from handrail.errors import ClosedError, ControlError, HandrailError, JsonRpcError
from handrail.records import record
from handrail.stdio.streams import LAST_WORDS, MAX_INCOMING, LineSource, Out

log = get_logger(__name__)

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INTERNAL_ERROR = -32700, -32600, -32601, -32603
AUTH_REQUIRED, NOT_FOUND = -32000, -32002
"""The codes that the protocol adds to those of JSON-RPC."""
SETTLING = 2.0
"""Seconds that the end of the connection waits for responses that are not ready yet."""

RequestId: TypeAlias = str | int | None


@record
class MethodResult:
    """The result of a request, and what happens once it is sent."""

    result: Json
    then: Callable[[], Awaitable[None]] | None = None


Method: TypeAlias = Callable[[Json], Awaitable[MethodResult]]
Notification: TypeAlias = Callable[[Json], None]


class EditorConnection:
    """One editor at the other end of the lines."""

    def __init__(self, out: Out) -> None:
        self._out = out
        self.methods: Mapping[str, Method] = {}
        self.notifications: Mapping[str, Notification] = {}
        self._waiting: dict[int, asyncio.Future[Json]] = {}
        self._number = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False
        self._is_gone = False
        """It takes nothing any more."""

    async def listen(self, lines: LineSource) -> None:
        """Take lines until there are no more."""
        while (line := await lines.next()) is not None:
            if line.strip():
                self._take(line)
                await asyncio.sleep(0)  # a prompt has begun before the line behind it can cancel it

    def close(self) -> None:
        """The editor is gone: what it was asked has no answer."""
        self._closed = True
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(ControlError("the editor has closed the connection"))

    async def settle(self, seconds: float = SETTLING) -> None:
        """Wait until every request has its response; those that take longer are cancelled."""
        if self._tasks:
            await asyncio.wait([*self._tasks], timeout=seconds)
        while self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.wait([*self._tasks])

    # What goes out

    async def ask(self, method: str, params: Json) -> Json:
        """Ask the editor; ControlError if it does not answer, or answers with an error."""
        if self._closed:
            raise ControlError("the editor has closed the connection")
        self._number += 1
        number = self._number
        answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            await self._send({"id": number, "method": method, "params": params})
            return await answer
        finally:
            del self._waiting[number]

    async def tell(self, method: str, params: Json) -> None:
        """Notify the editor, which may be gone."""
        await self._send({"method": method, "params": params})

    def tell_soon(self, method: str, params: Json) -> None:
        """Notify the editor without waiting for it."""
        self._start(self.tell(method, params))

    async def _send(self, message: Json) -> None:
        if self._is_gone:
            return
        try:
            async with asyncio.timeout(LAST_WORDS if self._closed else None):
                await self._out.send({"jsonrpc": "2.0", **message})
        except (ClosedError, TimeoutError):
            self._is_gone = True
            self.close()

    # What comes in

    def _take(self, line: bytes) -> None:
        if len(line) > MAX_INCOMING:
            problem = f"A line of {len(line):,} bytes is too long; at most {MAX_INCOMING:,} are read."
            self._refuse(None, INVALID_REQUEST, problem)
            return
        try:
            message = json.loads(line.decode("utf-8", "replace"))
        except (ValueError, RecursionError) as error:
            self._refuse(None, PARSE_ERROR, f"A line is not JSON: {error}. Send one JSON object per line.")
            return
        match message:
            case {"method": str(method), "params": Mapping() as params}:
                self._call(method, params, message)
            case {"method": str(method), **rest} if rest.get("params") is None:
                self._call(method, {}, message)
            case {"method": str(method)} if "id" in message:
                self._refuse(_id_of(message), INVALID_PARAMS, f"The params of {method} are not an object.")
            case {"method": str(method)}:
                log.warning("a notification %s without an object as params was ignored", method)
            case {"id": int(number), "result": result} if number is not True:
                self._resolve(number, result)
            case {"id": int(number), "error": error} if number is not True:
                self._resolve(number, ControlError(f"the editor answered with an error: {_error_text(error)}"))
            case _:
                problem = "A line is neither a request, a notification nor a response of JSON-RPC."
                self._refuse(_id_of(message), INVALID_REQUEST, problem)

    def _call(self, method: str, params: Json, message: Json) -> None:
        if "id" not in message:
            self._notify(method, params)
        elif message["id"] is not None and _id_of(message) is None:
            self._refuse(None, INVALID_REQUEST, f"The id of {method} is neither a text nor a whole number.")
        elif (handler := self.methods.get(method)) is None:
            self._refuse(_id_of(message), METHOD_NOT_FOUND, f"{method!r} is not a method that handrail has.")
        else:
            self._start(self._answer(_id_of(message), method, handler(params)))

    def _notify(self, method: str, params: Json) -> None:
        try:
            if (handler := self.notifications.get(method)) is not None:
                handler(params)
        except JsonRpcError as error:
            log.warning("a notification %s was ignored: %s", method, error)

    def _resolve(self, number: int, result: object) -> None:
        answer = self._waiting.get(number)
        if answer is None or answer.done():
            return  # the question was taken back, or has its answer
        if isinstance(result, ControlError):
            answer.set_exception(result)
        else:
            answer.set_result(result if isinstance(result, Mapping) else {})

    def _refuse(self, number: RequestId, code: int, problem: str) -> None:
        log.warning("%s", problem)
        self._start(self._send({"id": number, "error": {"code": code, "message": problem}}))

    async def _answer(self, number: RequestId, method: str, work: Awaitable[MethodResult]) -> None:
        response: dict[str, Any] = {"error": _error(INTERNAL_ERROR, f"handrail failed at {method}; its log says more.")}
        then = None
        try:
            reply = await work
            response, then = {"result": reply.result}, reply.then
        except JsonRpcError as error:
            response = {"error": _error(error.code, str(error))}
        except HandrailError as error:
            response = {"error": _error(INTERNAL_ERROR, str(error))}
        except asyncio.CancelledError:
            response = {"error": _error(INTERNAL_ERROR, f"handrail ended before {method} was done.")}
            raise
        finally:  # whatever goes wrong in here, the editor gets a response
            await self._send({"id": number, **response})
        if then is not None:
            await then()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        def end(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            if not task.cancelled() and (fault := task.exception()) is not None:
                log.error("a request could not be answered", exc_info=fault)

        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(end)


def _error(code: int, message: str) -> Json:
    return {"code": code, "message": plain(message)}


def _error_text(error: object) -> str:
    return str(error.get("message"))[:500] if isinstance(error, Mapping) else repr(error)[:500]


def _id_of(message: object) -> RequestId:
    number = message.get("id") if isinstance(message, Mapping) else None
    return number if isinstance(number, str | int) and not isinstance(number, bool) else None

"""
Control requests and responses over lines, in both directions, matched by id.

Many may be open at once, and responses come in any order. Every request that arrives gets exactly one response unless
its sender cancels it; every request of ours ends with a response, an error or a timeout.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeAlias

from handrail.conversation.logger import get_logger
from handrail.errors import ClosedError, ControlError, HandrailError
from handrail.stdio.streams import Out

log = get_logger(__name__)

SETTLING = 0.5
"""Seconds that closing waits for responses that are not ready yet."""

Payload: TypeAlias = dict[str, Any]
Handler: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[Payload | None]]
Find: TypeAlias = Callable[[str], Awaitable[Handler | None]]
"""Finds the handler of a kind of request; None = there is none."""


class Control:
    """One end of the wire. `find` gives the handler for a request of the other side."""

    def __init__(self, out: Out, find: Find, *, patience: float = 60.0) -> None:
        self._out = out
        self._find = find
        self._patience = patience
        self._open: dict[str, asyncio.Future[Payload]] = {}
        self._answering: dict[asyncio.Task[None], str | int] = {}
        self._taken_back: set[asyncio.Task[None]] = set()
        self._number = 0
        self._closed = False

    async def ask(self, subtype: str, *, patience: float | None = None, **fields: object) -> Payload:
        """Ask the other side; raises ControlError if there is no answer. Cancelling takes the question back."""
        if self._closed:
            raise ControlError(f"{subtype} cannot be asked: the client has closed the connection.")
        self._number += 1
        name = f"handrail_{self._number}"
        seconds = self._patience if patience is None else patience
        answer: asyncio.Future[Payload] = asyncio.get_running_loop().create_future()
        self._open[name] = answer
        try:
            await self._out.send(
                {"type": "control_request", "request_id": name, "request": {"subtype": subtype, **fields}}
            )
            return await asyncio.wait_for(answer, seconds)
        except TimeoutError as error:
            await self._take_back(name)
            raise ControlError(f"the client did not answer {subtype} within {seconds:g} s.") from error
        except asyncio.CancelledError:
            await self._take_back(name)
            raise
        except ClosedError as error:
            raise ControlError(f"{subtype} cannot be asked: the client has closed the connection.") from error
        finally:
            self._open.pop(name, None)

    async def tell(self, line: Mapping[str, Any]) -> None:
        """Send a line; the reader may be gone."""
        try:
            await self._out.send(line)
        except ClosedError:
            self._closed = True

    async def _take_back(self, name: str) -> None:
        if not self._closed:
            await self.tell({"type": "control_cancel_request", "request_id": name})

    def hear(self, line: Mapping[str, Any]) -> None:
        """Handle a line of the control protocol."""
        match line:
            case {"type": "control_response", "response": Mapping() as response}:
                self._take_response(response)
            case {"type": "control_cancel_request", "request_id": str() | int() as name}:
                for task in [task for task, asked in self._answering.items() if asked == name]:
                    self._taken_back.add(task)
                    task.cancel()
            case {"type": "control_request", "request_id": str() | int() as name, "request": Mapping() as request}:
                self._start(name, self._answer(name, request))
            case {"type": "control_request", "request_id": str() | int() as name}:
                problem = 'the request is not a JSON object. Send "request": {"subtype": ...}.'
                self._start(name, self._say({"subtype": "error", "request_id": name, "error": problem}))
            case _:
                log.warning("a control line without request_id or request was ignored: %.200r", line)

    def _start(self, name: str | int, answering: Coroutine[Any, Any, None]) -> None:
        def over(task: asyncio.Task[None]) -> None:
            self._answering.pop(task, None)
            self._taken_back.discard(task)
            if not task.cancelled() and (fault := task.exception()) is not None:
                log.error("a request could not be answered", exc_info=fault)

        task = asyncio.create_task(answering)
        self._answering[task] = name
        task.add_done_callback(over)

    def _take_response(self, response: Mapping[str, Any]) -> None:
        answer = self._open.get(str(response.get("request_id")))
        if answer is None or answer.done():
            return  # it was cancelled, or already has its response
        if response.get("subtype") == "success":
            value = response.get("response")
            answer.set_result(dict(value) if isinstance(value, Mapping) else {})
        else:
            answer.set_exception(
                ControlError(str(response.get("error") or "the client answered with an error and no message."))
            )

    async def _answer(self, name: str | int, request: Mapping[str, Any]) -> None:
        subtype = request.get("subtype")
        answer: Payload = {"subtype": "error", "error": f"handrail failed to answer {subtype!r}; its log says more."}
        try:
            handler = await self._find(subtype) if isinstance(subtype, str) else None
            if handler is None:
                answer = {"subtype": "error", "error": f"{subtype!r} is not a request that handrail knows."}
            else:
                answer = {"subtype": "success", "response": await handler(request) or {}}
        except HandrailError as error:
            answer = {"subtype": "error", "error": str(error)}
        except (KeyError, TypeError, ValueError) as error:
            log.warning("a %s request was not understood", subtype, exc_info=True)
            answer = {"subtype": "error", "error": f"the {subtype} request is not understood: {error}"}
        except asyncio.CancelledError:
            taken_back = asyncio.current_task() in self._taken_back
            answer = {} if taken_back else {"subtype": "error", "error": "handrail ended before it had an answer."}
            raise
        finally:  # whatever goes wrong in here, the other side gets an answer
            if answer:
                await self._say({**answer, "request_id": name})

    async def _say(self, response: Payload) -> None:
        await self.tell({"type": "control_response", "response": response})

    def close(self) -> None:
        """The other side is gone: end all open requests."""
        self._closed = True
        for answer in self._open.values():
            if not answer.done():
                answer.set_exception(ControlError("the client has closed the connection."))

    async def wait_settled(self) -> None:
        """Wait until every request that arrived has its response; cancel those that take too long."""
        if self._answering:
            await asyncio.wait([*self._answering], timeout=SETTLING)
        for task in [*self._answering]:
            task.cancel()
        if self._answering:
            await asyncio.wait([*self._answering])

"""Requests that are being worked on, each in a task of its own, so that they can be cancelled."""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

from handrail.errors import JsonRpcError
from handrail.gateway.protocol import ClientRequest, refusal
from handrail.mcp.messages import BUSY, Message, answer_message

MAX_REQUESTS = 500
"""The most requests of one client that are worked on at a time."""


class RunningRequests:
    """The requests of one client."""

    def __init__(self) -> None:
        self._running: dict[int | str, asyncio.Task[Any]] = {}
        self._cancelled: set[int | str] = set()

    async def answer(self, request: ClientRequest, work: Coroutine[Any, Any, Mapping[str, Any]]) -> Message | None:
        """The message that answers a request; None if the client has cancelled it."""
        number, task = request.id, asyncio.current_task()
        assert number is not None
        assert task is not None
        if len(self._running) >= MAX_REQUESTS or number in self._running:
            work.close()
            return refusal(number, JsonRpcError("Too many requests are being worked on, or the id is taken.", BUSY))
        self._running[number] = task
        try:
            return answer_message(number, await work)
        except JsonRpcError as error:
            return refusal(number, error)
        except asyncio.CancelledError:
            if number in self._cancelled and task.uncancel() == 0:
                return None
            raise
        finally:
            del self._running[number]
            self._cancelled.discard(number)

    def cancel(self, params: Mapping[str, Any]) -> None:
        """Stop the request that a notification names, if it is still worked on."""
        number = params.get("requestId")
        if isinstance(number, int | str) and number in self._running and number not in self._cancelled:
            self._cancelled.add(number)
            self._running[number].cancel()

    async def aclose(self) -> None:
        """Stop all of them."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

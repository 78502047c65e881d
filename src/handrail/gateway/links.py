"""
The two ways back to a client.

    until 2025-11-25    a request of ours goes to the client while its call waits
    2026-07-28          the call pauses: its result is `input_required`, and the client repeats it with the answers

A paused call is kept in memory under a random state that no one can guess, and only for the client and the request
that it belongs to. What a person was asked about a call can therefore not be used for another one.
"""

import asyncio
import itertools
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from handrail.errors import JsonRpcError, McpError
from handrail.gateway.client import ClientQuestion, is_answer, no_answer
from handrail.gateway.protocol import ClientReply
from handrail.mcp.messages import INVALID_PARAMS, Message, notification, request_message, result_of
from handrail.records import record

ANSWER_SECONDS = 600.0
"""How long a client has for an answer."""
MAX_ROUNDS = 10
MAX_PAUSED = 1_000

SendMessage = Callable[[Message], None]
Work = Callable[["RoundLink"], Awaitable[dict[str, Any]]]


class PendingQuestions:
    """The questions to one client that it has not answered."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._pending: dict[int | str, asyncio.Future[Message]] = {}

    async def ask(self, send: SendMessage, question: ClientQuestion) -> Mapping[str, Any]:
        """Send a question and wait for its answer; ToolError if there is none."""
        number = f"handrail-{next(self._numbers)}"
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._pending[number] = future
        try:
            send(request_message(number, question.method, question.params))
            async with asyncio.timeout(ANSWER_SECONDS):
                return result_of(await future, question.method)
        except TimeoutError as error:
            send(notification("notifications/cancelled", {"requestId": number, "reason": "it took too long"}))
            raise no_answer(f"it took more than {ANSWER_SECONDS:g} s") from error
        except McpError as error:
            raise no_answer(str(error).rstrip(".")) from error
        finally:
            del self._pending[number]

    def take(self, reply: ClientReply) -> bool:
        """Take in an answer; False if there is no such question."""
        future = self._pending.get(reply.id)
        if future is None or future.done():
            return False
        future.set_result(reply.message)
        return True


@record
class LiveLink:
    """A client that can be asked while its call waits."""

    capabilities: Mapping[str, Any]
    send: SendMessage
    pending: PendingQuestions

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        self.send(notification(method, params))

    async def ask(self, questions: Mapping[str, ClientQuestion]) -> Mapping[str, Mapping[str, Any]]:
        answers = await asyncio.gather(*(self.pending.ask(self.send, each) for each in questions.values()))
        for question, answer in zip(questions.values(), answers, strict=True):
            if not is_answer(question, answer):
                raise no_answer(f"what it sent is not an answer to {question.method}")
        return dict(zip(questions, answers, strict=True))


class RoundLink:
    """A client that repeats its call with the answers. Answers may also come with the first request."""

    def __init__(self, capabilities: Mapping[str, Any], send: SendMessage, given: Mapping[str, Any]) -> None:
        self.capabilities = capabilities
        self._send: SendMessage | None = send
        self._given = dict(given)
        self._asking = asyncio.Lock()
        self.needs: asyncio.Future[Mapping[str, ClientQuestion]] = asyncio.get_running_loop().create_future()
        self._go_on: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        if self._send is not None:
            self._send(notification(method, params))

    async def ask(self, questions: Mapping[str, ClientQuestion]) -> Mapping[str, Mapping[str, Any]]:
        async with self._asking:
            for _ in range(MAX_ROUNDS):
                missing = {key: each for key, each in questions.items() if not is_answer(each, self._given.get(key))}
                if not missing:
                    return {key: self._given.pop(key) for key in questions}
                self.needs.set_result(missing)
                await self._go_on
            raise no_answer(f"it was asked {MAX_ROUNDS} times")

    def pause(self) -> None:
        """The client has been told what is needed; nothing reaches it until it repeats its request."""
        self._send = None

    def resume(self, send: SendMessage, given: Mapping[str, Any]) -> None:
        """The client has repeated its request."""
        self._send = send
        self._given.update(given)
        before, loop = self._go_on, asyncio.get_running_loop()
        self.needs, self._go_on = loop.create_future(), loop.create_future()
        before.set_result(None)


@dataclass(slots=True)
class PausedCall:
    """A request that waits for answers, or is being worked on."""

    client: str
    request: Mapping[str, Any]
    link: RoundLink
    task: "asyncio.Task[dict[str, Any]]"
    timer: asyncio.TimerHandle | None = field(default=None)


@record
class RoundCaller:
    """Who sends a request, and how it is told something."""

    client: str
    capabilities: Mapping[str, Any]
    send: SendMessage


class Rounds:
    """The requests of 2026-07-28 that may pause."""

    def __init__(self) -> None:
        self._paused: dict[str, PausedCall] = {}

    async def answer(
        self,
        caller: RoundCaller,
        request: Mapping[str, Any],
        params: Mapping[str, Any],
        work: Work,
    ) -> dict[str, Any]:
        """The result of a request, or what it needs first. Cancelling the wait cancels the work."""
        client, send = caller.client, caller.send
        given = params.get("inputResponses", {})
        if not isinstance(given, Mapping):
            raise JsonRpcError("inputResponses must be an object.", INVALID_PARAMS)
        if "requestState" in params:
            call = self._resume(client, request, params["requestState"])
            call.link.resume(send, given)
        else:
            new = RoundLink(caller.capabilities, send, given)
            call = PausedCall(client, request, new, asyncio.ensure_future(_run(work, new)))
        try:
            waited: set[asyncio.Future[Any]] = {call.task, call.link.needs}
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            call.task.cancel()
            await asyncio.wait({call.task})
            raise
        if call.task.done():
            return call.task.result()
        return self._pause(call)

    def _pause(self, call: PausedCall) -> dict[str, Any]:
        call.link.pause()
        state = secrets.token_urlsafe(32)
        self._paused[state] = call
        call.timer = asyncio.get_running_loop().call_later(ANSWER_SECONDS, self._drop, state)
        while len(self._paused) > MAX_PAUSED:
            self._drop(next(iter(self._paused)))
        questions = {
            key: {"method": each.method, "params": dict(each.params)} for key, each in call.link.needs.result().items()
        }
        return {"resultType": "input_required", "inputRequests": questions, "requestState": state}

    def _resume(self, client: str, request: Mapping[str, Any], state: object) -> PausedCall:
        call = self._paused.get(state) if isinstance(state, str) else None
        if call is None or call.client != client or call.request != request:
            raise JsonRpcError(
                "requestState is not one of this request, or it is no longer waited for. Send the request anew.",
                INVALID_PARAMS,
            )
        del self._paused[str(state)]
        if call.timer is not None:
            call.timer.cancel()
        return call

    def _drop(self, state: str) -> None:
        if call := self._paused.pop(state, None):
            if call.timer is not None:
                call.timer.cancel()
            call.task.cancel()

    async def aclose(self) -> None:
        """End all paused requests."""
        tasks = [call.task for call in self._paused.values()]
        for state in list(self._paused):
            self._drop(state)
        if tasks:
            await asyncio.wait(tasks)


async def _run(work: Work, link: RoundLink) -> dict[str, Any]:
    return await work(link)

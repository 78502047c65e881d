"""
Serves a conversation to a client over lines: prompts and requests come in, events and responses go out.

    prompts    one result for each, in order; a prompt that comes while another runs waits
    requests   answered at once, also while a prompt runs
    end of input: waiting prompts are still worked on, then it is over

The streams may be standard input and output, or any other pair.
"""

import asyncio
import json
import re
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, Protocol, TypeAlias

from handrail.conversation.block_json import user_blocks
from handrail.conversation.blocks import Text, ToolResult
from handrail.conversation.logger import get_logger
from handrail.conversation.messages import UserMessage
from handrail.errors import ClosedError, HandrailError
from handrail.headless.control import Control, Handler, Payload
from handrail.headless.lines import Lines
from handrail.headless.wire import failed_result, system
from handrail.loop.events import LoopEvent, RunEnded, RunStarted
from handrail.records import record
from handrail.stdio.streams import MAX_INCOMING, LineSource, Out
from handrail.transcripts.writer import new_id

log = get_logger(__name__)

PROMPT = re.compile(rb'\s*{\s*"type"\s*:\s*"user"')


@record
class ClientOptions:
    """What the client asked for in its `initialize` request."""

    hooks: Mapping[str, Any]
    agents: Mapping[str, Any]
    fields: Mapping[str, Any]


NO_CLIENT_OPTIONS = ClientOptions({}, {}, {})


@record
class Prompt:
    """A message of the user. `literal`: no commands are found in it. `problem`: why it cannot be worked on."""

    message: UserMessage
    id: str
    literal: bool = False
    problem: str = ""
    origin: str = ""
    """What sent it, if no client did."""


class Engine(Protocol):
    """A conversation as the service needs it."""

    @property
    def writer(self) -> Lines:
        """Turns its events into lines."""
        ...

    def greeting(self) -> Payload:
        """What the program learns when it says hello."""
        ...

    def run(self, prompt: Prompt) -> AsyncGenerator[LoopEvent, None]: ...

    async def next_notification(self, *, only_agents: bool = False) -> UserMessage | None:
        """A message about background work that has ended, as soon as some has; None if none runs."""
        ...

    async def next_scheduled(self) -> UserMessage:
        """The next prompt that a schedule starts, as soon as it is due."""
        ...

    def interrupt(self) -> None: ...

    def handlers(self) -> Mapping[str, Handler]:
        """Handlers of further control requests, by name."""
        ...

    async def aclose(self) -> None: ...


OpenEngine: TypeAlias = Callable[[ClientOptions, Control], Awaitable[Engine]]


@record
class Serving:
    """How lines are written. `replay`: prompts are repeated. `states`: it is told when work begins and ends."""

    replay: bool = False
    patience: float = 60.0
    states: bool = False


PLAIN_SERVING = Serving()


class Service:
    """See the module docstring. `stop` may be called from outside, for example on a signal."""

    def __init__(self, out: Out, open_engine: OpenEngine, serving: Serving = PLAIN_SERVING) -> None:
        self._out = out
        self._open_engine = open_engine
        self._serving = serving
        self._engine: Engine | None = None
        self._opening = asyncio.Lock()
        self._is_open = asyncio.Event()
        self._begun: asyncio.Future[Engine] | None = None
        self._prompts: deque[Prompt] = deque()
        self._news = asyncio.Event()
        self._ended = False
        self._stopping = False
        self._client_options = NO_CLIENT_OPTIONS
        self._code = 0
        self._state = "idle"
        self._beginning = False
        self._stopped_early = False
        self._owed = False
        self._control = Control(out, self._handler, patience=serving.patience)

    async def serve(self, lines: LineSource) -> int:
        """Serve a client until its input ends or it is gone. Returns 1 if the last result was an error, else 0."""
        listening = asyncio.create_task(self._listen(lines))
        try:
            return await self._work()
        except ClosedError:
            self._control.close()
            return 1  # there is no reader left
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
            await self._control.wait_settled()
            await self._aclose()

    def stop(self) -> None:
        """End soon: the running prompt is interrupted, and waiting prompts get a result without being started."""
        self._stopping = True
        self._end()
        if self._begun is not None:
            self._begun.cancel()
        if self._engine is not None:
            self._engine.interrupt()

    # What comes in

    async def _listen(self, lines: LineSource) -> None:
        """Read lines until there are no more."""
        while (line := await lines.next()) is not None:
            if line.strip():
                self._take(line)
        self._end()

    def _end(self) -> None:
        self._ended = True
        self._control.close()
        self._news.set()

    def _take(self, line: bytes) -> None:
        if len(line) > MAX_INCOMING:
            self._refuse(line, f"A line of {len(line):,} bytes is too long; at most {MAX_INCOMING:,} are read.")
            return
        try:
            value = json.loads(line.decode("utf-8", "replace"))
        except (ValueError, RecursionError) as error:
            self._refuse(line, f"A line is not JSON: {error}. Send one JSON object per line.")
            return
        match value:
            case {"type": "control_request" | "control_response" | "control_cancel_request"}:
                self._control.hear(value)
            case {"type": "user", "message": {"content": content}}:
                self._queue(value, content)
            case {"type": "user"}:
                self._refuse(line, 'The message has no content. Send "message": {"role": "user", "content": ...}.')
            case {"type": str(kind)}:
                log.warning("a line of the type %r was ignored", kind)
            case _:
                log.error("a line without a type was ignored: %.200r", line)

    def _refuse(self, line: bytes, problem: str) -> None:
        """Report an unusable line. If it was meant as a prompt, it gets a result, for which the client waits."""
        if PROMPT.match(line):
            self._prompts.append(Prompt(UserMessage(()), new_id(), problem=problem))
            self._news.set()
        else:
            log.error("%s It was ignored: %.200r", problem, line)

    def _queue(self, line: Mapping[str, Any], content: object) -> None:
        given = line.get("uuid")
        prompt_id = given if isinstance(given, str) and given else new_id()
        try:
            message, problem = UserMessage(user_blocks(content)), ""
        except KeyError as error:
            message, problem = UserMessage(()), f"The message is not understood: a part of it lacks {error}."
        except TypeError as error:
            message, problem = UserMessage(()), f"The message is not understood: {error}"
        if any(isinstance(block, ToolResult) for block in message.content):
            problem = "The message holds a tool_result, but no call is waiting for one. Send text or images."
        if not problem and not any(not isinstance(block, Text) or block.text.strip() for block in message.content):
            message = UserMessage(())  # an empty prompt can only resume a deferred call
        self._prompts.append(Prompt(message, prompt_id, line.get("client_composed") is True, problem))
        self._news.set()

    # What goes on

    async def _work(self) -> int:
        """Work on prompts one by one until there are none left and none can come."""
        while True:
            while not self._prompts:
                await self._tell_state("idle")
                if not await self._wait_for_work():
                    return self._code
            prompt = self._prompts.popleft()
            self._beginning, self._stopped_early = True, False
            await self._tell_state("running")
            await self._answer(prompt)
            self._beginning = False

    async def _wait_for_work(self) -> bool:
        """
        Wait for a prompt; the end of background work and schedules become prompts too. False = none can come.

        When no more prompts can come, sub-agents are waited for, but not commands and schedules: these may have no end.
        """
        self._news.clear()
        has_ended = self._ended
        waking = asyncio.ensure_future(self._notification())
        due = asyncio.ensure_future(self._scheduled_prompt())
        coming = asyncio.ensure_future(self._news.wait())
        try:
            if has_ended and not self._stopping:
                await asyncio.wait((waking, coming), return_when=asyncio.FIRST_COMPLETED)  # `stop` ends the wait
            elif not has_ended:
                await asyncio.wait((waking, due, coming), return_when=asyncio.FIRST_COMPLETED)
                if not (due.done() or coming.done()) and waking.result() is None:
                    await asyncio.wait((due, coming), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in (waking, due, coming):
                each.cancel()
            await asyncio.gather(waking, due, coming, return_exceptions=True)
        for each, origin in ((waking, "task-notification"), (due, "schedule")):
            if not each.cancelled() and (message := each.result()) is not None:
                self._prompts.append(Prompt(message, new_id(), literal=True, origin=origin))
        return bool(self._prompts) or not has_ended

    async def _notification(self) -> UserMessage | None:
        if self._engine is None:
            return None
        return await self._engine.next_notification(only_agents=self._ended)

    async def _scheduled_prompt(self) -> UserMessage | None:
        if self._ended:
            return None
        await self._is_open.wait()
        assert self._engine is not None
        return await self._engine.next_scheduled()

    async def _tell_state(self, state: str) -> None:
        """Report whether there is work, to clients that asked for it."""
        if self._serving.states and state != self._state:
            self._state = state
            line = system("session_state_changed", state=state, sdk_host_only=True)
            unsigned = {**line, "uuid": new_id(), "session_id": ""}  # there is no session yet
            await self._out.send(self._engine.writer.sign(line) if self._engine else unsigned)

    async def _answer(self, prompt: Prompt) -> None:
        """Work on a prompt. It gets exactly one result, whatever happens."""
        self._owed = True
        problem = "handrail failed at this prompt; its log says more."
        try:
            engine = None if self._stopping else await self.engine()
            if self._stopping or engine is None:
                problem = "The run was ended before this prompt began."
            elif prompt.problem:
                problem = prompt.problem
            else:
                await self._run(prompt, engine)
        except ClosedError:
            self._owed = False
            raise
        except HandrailError as error:  # for example a session that can no longer be written
            problem = str(error)
        finally:
            if self._owed:
                self._owed, self._code = False, 1
                await self._out.send(failed_result(problem, self._engine.writer.session_id if self._engine else ""))

    async def _run(self, prompt: Prompt, engine: Engine) -> None:
        async with aclosing(engine.run(prompt)) as events:
            async for event in events:
                self._beginning = False
                if self._stopped_early:
                    self._stopped_early = False
                    engine.interrupt()
                said = self._serving.replay and prompt.message.content and not prompt.origin
                if said and isinstance(event, RunStarted):  # by now the session holds it
                    await self._out.send(engine.writer.user_line(prompt.message, prompt.id))
                for line in engine.writer.of(event):
                    self._owed = self._owed and line["type"] != "result"
                    if prompt.origin and line["type"] == "result":
                        line["origin"] = {"kind": prompt.origin}
                    await self._out.send(line)
                if isinstance(event, RunEnded):
                    self._code = 1 if event.is_error else 0

    async def engine(self) -> Engine:
        """The conversation, opened when it is first needed."""
        async with self._opening:
            if self._engine is None:
                self._code = 1  # until it has started
                self._begun = asyncio.ensure_future(self._open_engine(self._client_options, self._control))
                await asyncio.wait((self._begun,))
                if self._begun.cancelled():
                    raise HandrailError("The run was ended before the conversation began.")
                self._engine = self._begun.result()
                self._is_open.set()
                self._code = 0
            return self._engine

    async def _aclose(self) -> None:
        self._control.close()
        if self._begun is not None and self._engine is None:  # the prompt that waited for it was cancelled
            self._begun.cancel()
            await asyncio.wait((self._begun,))
        if self._engine is not None:
            await self._engine.aclose()

    async def _handler(self, name: str) -> Handler | None:
        own: dict[str, Handler] = {"initialize": self._initialize, "interrupt": self._stop}
        return own.get(name) or (await self.engine()).handlers().get(name)

    async def _initialize(self, request: Mapping[str, Any]) -> Payload:
        hooks, agents = request.get("hooks"), request.get("agents")
        if self._engine is not None or self._opening.locked():
            raise HandrailError("The conversation has already begun. Send initialize before the first prompt.")
        # kept even if opening fails now: no prompt may run without the hooks that were asked for
        self._client_options = ClientOptions(
            hooks if isinstance(hooks, Mapping) else {}, agents if isinstance(agents, Mapping) else {}, request
        )
        return (await self.engine()).greeting()

    async def _stop(self, _request: Mapping[str, Any]) -> Payload:
        self._stopped_early = self._beginning  # the prompt was taken, but nothing runs yet that could be stopped
        if self._engine is not None:
            self._engine.interrupt()
        return {}

"""
A worker's questions, answered by a coordinator at the other end of a pair of streams, also in another process.

    worker -> {"type": "ask", "question": {...}}  {"type": "update", ...}  {"type": "cancel", "id": "..."}
    coordinator -> {"type": "answer", "id": "...", "answer": {"behavior": "allow", ...} or null}

A coordinator that is gone, or says what cannot be read, has said no to everything: nobody waits for it.
"""

import asyncio
import logging
from collections.abc import Mapping
from types import TracebackType
from typing import IO, Any, Self

from handrail.dispatch.approval.question import Answer, Handler, Question
from handrail.dispatch.approval.wire import (
    answer_json,
    encoded,
    lines,
    question_json,
    read_question,
    read_wire_answer,
    send,
)
from handrail.errors import HandrailError
from handrail.tools.permission import Deny

log = logging.getLogger(__name__)


class Worker:
    """Hands questions to a coordinator. Use it with `async with`, which listens for the answers."""

    who = "coordinator"

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._waiting: dict[str, asyncio.Future[Answer | None]] = {}
        self._listening: asyncio.Task[None] | None = None
        self._lost = ""

    async def __aenter__(self) -> Self:
        self._listening = asyncio.create_task(self._listen())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._listening is not None
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)
        self._lose("the worker has ended")
        self._writer.close()

    async def ask(self, question: Question) -> Answer | None:
        """The coordinator's answer; a no when it is gone. Cancelled, the coordinator is told."""
        if self._lost:
            return self._no()
        answer: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        self._waiting[question.id] = answer
        try:
            await self._send({"type": "ask", "question": question_json(question)})
            return await answer
        finally:
            del self._waiting[question.id]
            if not answer.done() or answer.cancelled():
                self._post({"type": "cancel", "id": question.id})

    def update(self, question: Question) -> None:
        """Tell the coordinator what changed."""
        if question.id in self._waiting:
            self._post({"type": "update", "question": question_json(question)})

    def _no(self) -> Deny:
        return Deny(f"the coordinator that decides on this cannot be asked: {self._lost}")

    async def _send(self, line: Mapping[str, Any]) -> None:
        try:
            await send(self._writer, line)
        except OSError as error:
            self._lose(f"it is gone ({error})")

    def _post(self, line: Mapping[str, Any]) -> None:
        """Say something that nobody waits for."""
        if not self._lost and not self._writer.is_closing():
            self._writer.write(encoded(line))

    async def _listen(self) -> None:
        try:
            async for line in lines(self._reader):
                waiting = self._waiting.get(str(line.get("id")))
                if line.get("type") == "answer" and waiting is not None and not waiting.done():
                    waiting.set_result(read_wire_answer(line.get("answer")))
            self._lose("it has left")
        except (HandrailError, OSError) as error:
            self._lose(str(error))

    def _lose(self, why: str) -> None:
        self._lost = self._lost or why
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_result(self._no())


async def serve(handler: Handler, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """
    Answer a worker's questions by a handler, side by side, until the worker is gone; then what is open is taken back.

    A worker that says what cannot be read is left: it takes that for a no.
    """
    open_questions: dict[str, asyncio.Task[None]] = {}
    try:
        async for line in lines(reader):
            open_questions = {key: task for key, task in open_questions.items() if not task.done()}
            match line.get("type"):
                case "ask":
                    question = read_question(line.get("question") or {})
                    open_questions[question.id] = asyncio.create_task(_answer(handler, question, writer))
                case "update":
                    handler.update(read_question(line.get("question") or {}))
                case "cancel" if asked := open_questions.pop(str(line.get("id")), None):
                    asked.cancel()
                case _:
                    pass  # a newer worker may have more to say
    except (HandrailError, OSError) as error:
        log.warning("a worker was left: %s", error)
    finally:
        tasks = tuple(open_questions.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        writer.close()


async def _answer(handler: Handler, question: Question, writer: asyncio.StreamWriter) -> None:
    answer: Answer | None = Deny("the coordinator failed to answer")
    try:
        answer = await handler.ask(question)
    finally:
        shown = None if answer is None else answer_json(answer)
        if not writer.is_closing():
            await send(writer, {"type": "answer", "id": question.id, "answer": shown})


async def open_streams(source: IO[bytes], sink: IO[bytes]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Streams over two pipes, for example standard input and output of a worker that its coordinator started."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
    transport, protocol = await loop.connect_write_pipe(lambda: asyncio.streams.FlowControlMixin(loop=loop), sink)
    return reader, asyncio.StreamWriter(transport, protocol, None, loop)

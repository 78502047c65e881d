"""
Questions of a running session, answered from elsewhere: over a socket that only its owner can reach.

    <state>/live/<digest of the session's id>.sock      made with the first prompt, removed with the session

A page connects, gets the open questions, and sends answers; each names the question and carries the digest of what was
shown. Another front that is asked too, such as the terminal, may answer as well: the first answer counts, and the
others see that the question is gone. A process that this session started cannot answer its questions.
"""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from handrail.dispatch.approval.question import ApprovalAnswer, Handler, Question
from handrail.files.private_folder import make_private_folder
from handrail.processes.peers import is_trusted_peer
from handrail.session.live.question_json import question_json, read_live_answer
from handrail.session.live.socket import bind_socket

FOLDER = "live"
MAX_ANSWER = 2_000_000
MAX_LINE = 32_000_000
"""Bytes that a page may still have to read; each of many questions has its bound."""
VISITOR_SECONDS = 60.0
"""How long a question waits for a page to connect, if no one else can answer it."""


class LiveQuestions:
    """The open questions of one session, and the pages that are connected."""

    def __init__(self, state: Path, session_id: str, on_warning: Callable[[str], None]) -> None:
        self._folder = state / FOLDER
        self._session = session_id
        self._on_warning = on_warning
        self._name = f"{hashlib.sha256(session_id.encode()).hexdigest()[:16]}.sock"
        self._open: dict[str, tuple[Question, asyncio.Future[ApprovalAnswer]]] = {}
        self._writers: set[asyncio.StreamWriter] = set()
        self._visit = asyncio.Event()
        self._server: asyncio.Server | None = None
        self.on_visit: Callable[[], None] = lambda: None
        """Called when a page has connected."""

    @property
    def has_visitors(self) -> bool:
        """Whether a page is connected."""
        return bool(self._writers)

    @asynccontextmanager
    async def ask(self, question: Question) -> "AsyncIterator[asyncio.Future[ApprovalAnswer]]":
        """The answer to come, while the block runs; afterwards the question is gone from every page."""
        await self.listen()
        answer: asyncio.Future[ApprovalAnswer] = asyncio.get_running_loop().create_future()
        self._open[question.id] = (question, answer)
        self._publish()
        try:
            yield answer
        finally:
            del self._open[question.id]
            answer.cancel()
            self._publish()

    def update(self, question: Question) -> None:
        """Show what automatic checks have said since."""
        if question.id in self._open:
            self._open[question.id] = (question, self._open[question.id][1])
            self._publish()

    async def visitor(self) -> bool:
        """Whether a page is connected, or connects soon."""
        if not self._writers:
            patience = f"{VISITOR_SECONDS:g} seconds"
            self._on_warning(f"a question waits for a page: run `handrail view --live` within {patience} to answer it")
        with suppress(TimeoutError):
            async with asyncio.timeout(VISITOR_SECONDS):
                while not self._writers:
                    self._visit.clear()
                    await self._visit.wait()
        return bool(self._writers)

    async def wait_until_gone(self) -> None:
        """Return when no page is connected any more."""
        while self._writers:
            self._visit.clear()
            await self._visit.wait()

    def close(self) -> None:
        """Stop listening, and remove the socket."""
        if self._server is not None:
            self._server.close()
            self._server = None
            (self._folder / self._name).unlink(missing_ok=True)
        for writer in self._writers:
            writer.close()

    async def listen(self) -> None:
        """Let pages connect."""
        if self._server is None:
            listener = bind_socket(make_private_folder(self._folder), self._name)
            self._server = await asyncio.start_unix_server(self._serve, sock=listener, limit=MAX_ANSWER)

    def _publish(self) -> None:
        self.publish({"questions": [question_json(question) for question, _ in self._open.values()]})

    def publish(self, news: Mapping[str, Any]) -> None:
        """Tell every page; one that does not read for long is not waited for, but left."""
        line = json.dumps({"session": self._session, **news}).encode() + b"\n"
        for writer in self._writers:
            if writer.transport.get_write_buffer_size() > MAX_LINE:
                writer.transport.abort()
            else:
                writer.write(line)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not is_trusted_peer(writer.get_extra_info("socket")):
            writer.close()
            return
        self._writers.add(writer)
        self._visit.set()
        self._publish()
        self.on_visit()
        try:
            while line := await reader.readline():
                writer.write(json.dumps(self._take(line)).encode() + b"\n")
                await writer.drain()
        except (OSError, ValueError):  # it left in the middle of a line, or the line is too long
            pass
        except asyncio.CancelledError:  # the program ends; Python 3.11 would report that as a failure
            pass
        finally:
            self._writers.discard(writer)
            self._visit.set()
            writer.close()

    def _take(self, line: bytes) -> dict[str, Any]:
        """The reply to an answer: why it does not count, or nothing."""
        try:
            said = json.loads(line)
            number, wanted = said["number"], str(said["question"])
        except (ValueError, LookupError, TypeError, RecursionError):
            return {"number": None, "problem": "That is not an answer."}
        if wanted not in self._open or self._open[wanted][1].done():
            return {"number": number, "problem": "The question was answered already, or taken back."}
        question, answer = self._open[wanted]
        found = read_live_answer(question, said)
        if isinstance(found, str):
            return {"number": number, "problem": found}
        answer.set_result(found)
        return {"number": number, "problem": ""}


class LiveHandler:
    """Asks in the browser and, if there is one, the other front of the session. The first answer counts."""

    def __init__(self, questions: LiveQuestions, other: Handler | None) -> None:
        self._questions = questions
        self._other = other
        self.who = other.who if other is not None else "person"

    async def ask(self, question: Question) -> ApprovalAnswer | None:
        """The first answer; None if there is no one else to ask and no page connects."""
        async with self._questions.ask(question) as answer:
            other = asyncio.ensure_future(self._ask_other(question))
            try:
                racing: set[asyncio.Future[Any]] = {answer, other}
                await asyncio.wait(racing, return_when=asyncio.FIRST_COMPLETED)
                return answer.result() if answer.done() else other.result()
            finally:
                other.cancel()
                await asyncio.gather(other, return_exceptions=True)

    async def _ask_other(self, question: Question) -> ApprovalAnswer | None:
        if self._other is not None and (said := await self._other.ask(question)) is not None:
            return said
        while await self._questions.visitor():
            await self._questions.wait_until_gone()
        return None

    def update(self, question: Question) -> None:
        """Show what automatic checks have said since, everywhere."""
        self._questions.update(question)
        if self._other is not None:
            self._other.update(question)

"""The running sessions: finds their sockets, shows what they write and ask, and carries answers to them."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

from handrail.session.live.questions import FOLDER, MAX_LINE
from handrail.session.live.socket import connect_socket

LOOK_SECONDS = 0.05
ANSWER_SECONDS = 10.0


class LiveSession:
    """One running session, as long as it is connected."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._numbers = count(1)
        self._replies: dict[int, asyncio.Future[str]] = {}
        self.id = ""
        self.questions: list[dict[str, Any]] = []
        self.writing: dict[str, str] = {}
        """The texts that are written now, by agent."""

    async def follow(self, on_change: Callable[[], None], on_text: Callable[[], None]) -> None:
        """Read what it says until it leaves."""
        try:
            while line := await self._reader.readline():
                said = json.loads(line)
                if "questions" in said:
                    self.id = str(said["session"])
                    self.questions = [{**each, "session": self.id} for each in said["questions"]]
                    on_change()
                elif "writing" in said:
                    self._write(said["writing"])
                    on_text()
                elif (reply := self._replies.pop(said["number"], None)) is not None and not reply.done():
                    reply.set_result(str(said["problem"]))
        finally:
            self._writer.close()
            for reply in self._replies.values():
                reply.cancel()

    def _write(self, news: Mapping[str, Any]) -> None:
        agent = str(news["agent"])
        text = self.writing.pop(agent, "")[: int(news["from"])] + str(news["text"])
        if text:
            self.writing[agent] = text

    async def answer(self, said: Mapping[str, Any]) -> str:
        """Send an answer; why it does not count, empty if it does."""
        number = next(self._numbers)
        reply: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._replies[number] = reply
        self._writer.write(json.dumps({**said, "number": number}).encode() + b"\n")
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await reply
        except TimeoutError:
            return "The session did not take the answer in time. Look whether it still runs."


class LiveFolder:
    """All running sessions of a state folder that have questions."""

    def __init__(self, state: Path) -> None:
        self._folder = state / FOLDER
        self._sessions: dict[str, LiveSession] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._change = asyncio.Event()
        self._text = asyncio.Event()
        self._version = 0

    @property
    def version(self) -> int:
        """A number that changes with the questions and the sessions."""
        return self._version

    @property
    def names(self) -> frozenset[str]:
        """The ids of the sessions that are connected."""
        return frozenset(each.id for each in self._sessions.values() if each.id)

    def questions(self) -> list[dict[str, Any]]:
        """The questions that wait for an answer."""
        return [question for each in self._sessions.values() for question in each.questions]

    def writing(self, session: str) -> Mapping[str, str]:
        """The texts that the agents of a session write now."""
        return next((dict(each.writing) for each in self._sessions.values() if each.id == session), {})

    async def wait_for_text(self) -> None:
        """Return when an agent of a session has written more."""
        await self._text.wait()

    async def wait_for_change(self, version: int) -> int:
        """Return the version of the questions as soon as it is another one."""
        while self.version == version:
            await self._change.wait()
        return self.version

    async def answer(self, person: str, answer: Mapping[str, Any]) -> str:
        """Give an answer in the name of a person; returns why it does not count, empty if it does."""
        for each in self._sessions.values():
            if each.id == answer.get("session"):
                names = ("question", "digest", "choice", "text", "answers")
                return await each.answer({name: answer.get(name) for name in names} | {"person": person})
        return "The session is not running any more."

    async def look(self) -> None:
        """Find sessions that have come, again and again."""
        try:
            while True:
                for path in self._folder.glob("*.sock") if self._folder.is_dir() else ():
                    if path.name not in self._sessions:
                        await self._connect(path)
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            for task in self._tasks:
                task.cancel()

    async def _connect(self, path: Path) -> None:
        try:
            reader, writer = await open_stream(self._folder, path.name)
        except ConnectionRefusedError:
            remove_left(path)
            return
        except OSError:
            return
        session = self._sessions[path.name] = LiveSession(reader, writer)
        task = asyncio.create_task(self._follow(path.name, session))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _follow(self, name: str, session: LiveSession) -> None:
        try:
            with suppress(OSError, ValueError, LookupError):
                await session.follow(self._wake, self._wake_readers)
        finally:
            del self._sessions[name]
            self._wake()

    def _wake_readers(self) -> None:
        text, self._text = self._text, asyncio.Event()
        text.set()

    def _wake(self) -> None:
        self._version += 1
        change, self._change = self._change, asyncio.Event()
        change.set()


async def open_stream(folder: Path, name: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to a socket in a folder; OSError if there is none to be had."""
    peer = connect_socket(folder, name)
    try:
        return await asyncio.open_unix_connection(sock=peer, limit=MAX_LINE)
    except OSError:
        peer.close()
        raise


def remove_left(path: Path) -> None:
    """Remove the socket of a session that was killed; what cannot be removed stays."""
    with suppress(OSError):
        path.unlink()


@asynccontextmanager
async def live_sessions(state: Path | None) -> AsyncIterator[LiveFolder | None]:
    """The running sessions of a state folder while the block runs; None without a folder."""
    if state is None:
        yield None
        return
    folder = LiveFolder(state)
    looking = asyncio.create_task(folder.look())
    try:
        yield folder
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)

"""A language server as a child process: requests with their answers, notifications, and what it asks of us."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import Any, Self

from handrail.conversation.logger import get_logger
from handrail.errors import LspAnswerError, LspError
from handrail.lsp.framing import MAX_LINE, LspMessage, frame, parse_body, read_body
from handrail.lsp.texts import clean_text
from handrail.processes.pipes import Pipes, end_program, start_with_pipes
from handrail.processes.spawn import ProcessSpec, Running
from handrail.records import record

log = get_logger(__name__)

STDERR_LINES = 20
GRACE = 0.4
"""Seconds to wait for a server to exit, before SIGTERM and again before SIGKILL."""
MAX_UNREAD = 4 * 1024 * 1024
"""Bytes that a server has not read, above which its own requests stay without an answer."""
MAX_UNASKED = 256 * 1024 * 1024
"""Bytes that a server may send between two of our requests."""
INTERNAL_ERROR, METHOD_NOT_FOUND = -32603, -32601


@record
class PeerEvents:
    """What is done with what a server sends of its own accord. Neither may wait."""

    answer: Callable[[str, Any], Any]
    """The result for a request of the server; LspAnswerError refuses it."""
    notice: Callable[[str, Any], None]


class LanguagePeer:
    """
    A running server under a reaper. Everything that it started ends with it: on `aclose`, and when we are killed.

    `ended` gets the reason when it has ended, or sent what cannot be understood.
    """

    def __init__(
        self, name: str, running: Running, pipes: Pipes, events: PeerEvents, release: Callable[[], None]
    ) -> None:
        self.name = name
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._running = running
        self._pipes = pipes
        self._events = events
        self._release = release
        self._number = 0
        self._unasked = 0
        self._waiting: dict[int, asyncio.Future[LspMessage]] = {}
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._collect_stderr())]
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls, name: str, spec: ProcessSpec, events: PeerEvents, release: Callable[[], None] = lambda: None
    ) -> Self:
        """Start a server; LspError if that fails. `release` is called when everything of it has ended."""
        try:
            running, pipes = await start_with_pipes(spec, MAX_LINE)
        except (OSError, ValueError) as error:
            release()
            raise LspError(
                f"The language server {name!r} cannot be started ({spec.argv[0]!r}): {error}. Check its command."
            ) from error
        except BaseException:
            release()
            raise
        return cls(name, running, pipes, events, release)

    async def request(self, method: str, params: Any) -> Any:
        """
        The result of a request; the caller limits the time. A request that is given up is cancelled at the server.

        Raises:
            LspAnswerError: the server refuses it.
            LspError: the server has ended.
        """
        self._number += 1
        number, self._unasked = self._number, 0
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            await self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            await asyncio.wait((answer, self.ended), return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                raise LspError(f"The language server {self.name!r} gave no answer: {self.ended.result()}")
            return _result(answer.result(), self.name, method)
        except asyncio.CancelledError:
            self._post({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": number}})
            raise
        finally:
            del self._waiting[number]

    async def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        await self._send({"jsonrpc": "2.0", "method": method, "params": params})

    async def aclose(self) -> None:
        """End the server and everything that it started."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        try:
            if not self.ended.done():
                with contextlib.suppress(TimeoutError, LspError, OSError):
                    async with asyncio.timeout(GRACE):
                        await self.request("shutdown", None)
                        await self.notify("exit", None)
        finally:
            try:
                await end_program(self._running, self._pipes, self._tasks, GRACE)
            finally:
                self._end("it was closed")
                self._release()

    async def _send(self, message: LspMessage) -> None:
        if self.ended.done():
            raise LspError(f"The language server {self.name!r} cannot be asked: {self.ended.result()}")
        stdin = self._pipes.stdin
        if stdin.transport.get_write_buffer_size() > MAX_UNREAD:
            raise LspError(f"The language server {self.name!r} does not read what it is sent.")
        try:
            if stdin.is_closing():  # it takes no more, and what is written is lost without a word
                raise BrokenPipeError
            stdin.write(frame(message))
            if stdin.transport.get_write_buffer_size():
                await stdin.drain()
        except OSError as error:
            await asyncio.wait(self._tasks, timeout=GRACE)  # they learn how it ended
            self._end("it has ended")
            raise LspError(f"The language server {self.name!r} cannot be asked: {self.ended.result()}") from error

    def _post(self, message: LspMessage) -> None:
        """Send what may be lost, without waiting."""
        stdin = self._pipes.stdin
        if not stdin.is_closing() and stdin.transport.get_write_buffer_size() < MAX_UNREAD:
            stdin.write(frame(message))

    async def _read(self) -> None:
        try:
            while (body := await read_body(self._pipes.stdout)) is not None:
                self._unasked += len(body)
                if self._unasked > MAX_UNASKED:
                    raise LspError(f"it sent more than {MAX_UNASKED:,} bytes that were not asked for")
                self._take(body)
                await asyncio.sleep(0)  # one that never stops must not keep others from their turn
        except LspError as error:
            self._end(str(error))
            self._running.stop()
            return
        except Exception:
            log.exception("a message of the language server %r could not be handled", self.name)
            self._end("it sent a message that could not be handled")
            self._running.stop()
            return
        end = await self._running.wait()
        await asyncio.wait(self._tasks[1:], timeout=GRACE)  # what it said last
        self._end(f"it ended with exit code {end.code}")

    def _take(self, body: bytes) -> None:
        message: Any = parse_body(body)
        match message:
            case {"method": str(method), "id": int() | str() as number}:
                self._answer(number, method, message.get("params"))
            case {"method": str(method)}:
                self._events.notice(method, message.get("params"))
            case {"id": int(number)} if not isinstance(number, bool):
                waiting = self._waiting.get(number)
                if waiting is not None and not waiting.done():
                    waiting.set_result(message)
            case _:
                log.warning("the language server %r sent what is not a message: %.200r", self.name, body)

    def _answer(self, number: int | str, method: str, params: Any) -> None:
        try:
            said: LspMessage = {"result": self._events.answer(method, params)}
        except LspAnswerError as error:
            said = {"error": {"code": error.code, "message": str(error)}}
        self._post({"jsonrpc": "2.0", "id": number, **said})

    async def _collect_stderr(self) -> None:
        while piece := await self._pipes.stderr.read(65_536):
            self._stderr.extend(piece.decode("utf-8", "replace").splitlines()[-STDERR_LINES:])
            await asyncio.sleep(0)

    def _end(self, why: str) -> None:
        if not self.ended.done():
            last = clean_text(" / ".join(self._stderr)[-500:])
            self.ended.set_result(f"{why}. Its last output: {last}" if last else f"{why}.")


def _result(answer: LspMessage, name: str, method: str) -> Any:
    match answer:
        case {"error": {"message": str(text)} as error}:
            code = error.get("code")
            raise LspAnswerError(
                f"The language server {name!r} refused {method}: {clean_text(text)[:1000]}",
                code if isinstance(code, int) else INTERNAL_ERROR,
            )
        case {"error": error} if error is not None:
            raise LspAnswerError(f"The language server {name!r} refused {method}: {error!r:.500}", INTERNAL_ERROR)
        case _:
            return answer.get("result")

"""One process of a program against scripted answers of a model on loopback, and what can be seen of it."""

import asyncio
import ctypes
import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from benchmarks.peer_programs import Program

from handrail.conversation.blocks import AssistantBlock, Text
from handrail.testing.model_server import ModelServer, Received, Reply
from handrail.testing.wire_answers import FORMATS, ScriptedAnswer

PATIENCE = 60.0
"""Seconds after which a session that does not go on is given up."""


class MeasureError(Exception):
    """A program did something else than its model asked for, so there is no figure."""


class Session:
    """A program that answers one prompt. The last reply has no calls, so that it ends."""

    def __init__(self, program: Program, folder: Path, home: Path, replies: Sequence[Reply]) -> None:
        self._program, self._folder, self._home = program, folder, home
        self._replies = iter([*replies, Reply((Text("Done."),))])
        self._arrived = [asyncio.Event() for _ in range(len(replies) + 1)]
        self._server = ModelServer(self._answers())
        self.requests: list[Received] = []
        self.times: list[float] = []
        """When each request came in."""
        self.began = 0.0

    def _answers(self) -> Iterator[Reply]:
        """The replies in their order; a request without tools is not of the conversation, and gets a word."""
        while True:
            now, received = time.perf_counter(), self._server.requests[-1]
            if not received.body.get("tools"):
                yield Reply((Text("Fine."),))
                continue
            self.times.append(now)
            self.requests.append(received)
            self._arrived[len(self.times) - 1].set()
            yield next(self._replies)

    async def __aenter__(self) -> Self:
        await self._server.__aenter__()
        env = self._program.environment(self._home, self._server.url)
        self.began = time.perf_counter()
        self._process = await asyncio.create_subprocess_exec(
            *self._program.command("Do it."),
            cwd=self._folder,
            env=env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        self._ending = asyncio.create_task(self._leave())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and self._process.returncode is None:
            self._process.kill()
        await self._ending
        end_others()
        await self._server.__aexit__(None, None, None)

    async def request(self, number: int) -> float:
        """When the request of that number, counted from 1, came in."""
        arrived = asyncio.create_task(self._arrived[number - 1].wait())
        await asyncio.wait({arrived, self._ending}, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        if not arrived.done():
            arrived.cancel()
            raise MeasureError(f"{self._program.name} made {len(self.times)} requests and no request {number}")
        return self.times[number - 1]

    async def end(self) -> float:
        """Seconds from the last byte of output to the end of the process."""
        await asyncio.wait({self._ending}, timeout=PATIENCE)
        if not self._ending.done():
            raise MeasureError(f"{self._program.name} does not end")
        return self._ending.result()

    async def _leave(self) -> float:
        assert self._process.stdout is not None
        spoken = time.perf_counter()
        while await self._process.stdout.read(1 << 16):
            spoken = time.perf_counter()
        await self._process.wait()
        return time.perf_counter() - spoken


def others() -> list[int]:
    """All other processes of this process namespace: those of the program that runs."""
    return [int(each.name) for each in Path("/proc").glob("[0-9]*") if int(each.name) != os.getpid()]


def end_others() -> None:
    """End and reap what a program left behind; it is a child of ours then, as we are the first process here."""
    for number in others():
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(number, signal.SIGKILL)
            os.waitpid(number, 0)


def memory() -> float:
    """Megabytes of all processes of the program; what they share is counted once, with the largest."""
    sizes = [_sizes(number) for number in others()]
    largest = max(sizes)
    return (largest[0] + sum(private for _, private in sizes) - largest[1]) / 1024


def _sizes(number: int) -> tuple[int, int]:
    """Kilobytes that a process has in memory, and those of them that no other has."""
    try:
        lines = Path(f"/proc/{number}/smaps_rollup").read_text().splitlines()[1:]
    except (FileNotFoundError, ProcessLookupError):
        return 0, 0
    found = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
    return found["Rss"], found["Private_Clean"] + found["Private_Dirty"]


# A command inside a stream

PIECE, PIECES, PAUSE, REST_SECONDS = "words ", 10, 0.05, 1.0


class Stream(NamedTuple):
    """An answer with text for 0.5 s, then a complete call, then text after 1 s."""

    reply: Reply
    pieces: list[asyncio.Event]
    call: asyncio.Event
    rest: asyncio.Event

    @classmethod
    def around(cls, block: AssistantBlock, wire: str) -> Self:
        """The call inside a stream of that format."""
        content = (Text(PIECE * PIECES), block, Text("and so on"))
        events = FORMATS[wire][1]
        frames = [*events(ScriptedAnswer(content, "", "m", 1, 1, len(PIECE)))]
        ends = [at + 1 for at, frame in enumerate(frames) if is_block_end(frame)]
        deltas = [at for at, frame in enumerate(frames[: ends[0] - 1]) if b"delta" in frame]
        pieces, call, rest = [asyncio.Event() for _ in deltas], asyncio.Event(), asyncio.Event()
        gates = dict(zip([*deltas, ends[0], ends[1]], [*pieces, call, rest], strict=True))
        return cls(Reply(content, piece=len(PIECE), gates=gates), pieces, call, rest)

    async def play(self) -> tuple[float, float]:
        """Let the answer come; when the call was complete, and when the answer ended."""
        for gate in self.pieces:
            await asyncio.sleep(PAUSE)
            gate.set()
        self.call.set()
        sent = time.perf_counter()
        await asyncio.sleep(REST_SECONDS)
        self.rest.set()
        return sent, time.perf_counter()


def is_block_end(frame: bytes) -> bool:
    """Whether a block is complete with this event, in either format."""
    return b"content_block_stop" in frame or b"response.output_item.done" in frame


IN_ATTRIB, IN_OPEN = 0x4, 0x20


class Watch:
    """When something happens to a file for the first time, by inotify."""

    def __init__(self, file: Path, event: int) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self.time = float("nan")
        if libc.inotify_add_watch(self._descriptor, os.fsencode(file), event) < 0:
            raise OSError(ctypes.get_errno(), str(file))
        asyncio.get_running_loop().add_reader(self._descriptor, self._see)

    def _see(self) -> None:
        self.time = time.perf_counter()
        asyncio.get_running_loop().remove_reader(self._descriptor)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)

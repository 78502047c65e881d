"""What is measured of every program: each function is one process, and gives the figures of some rows."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from benchmarks.peer_programs import Program
from benchmarks.peer_session import IN_ATTRIB, IN_OPEN, MeasureError, Session, Stream, Watch, memory

from handrail.conversation.blocks import AssistantBlock
from handrail.testing.model_server import Received, Reply

READS, SLEEPS, TURNS, SEARCHES, THINKING, SETTLED = 10, 8, 10, 3, 0.8, 0.3
LINE = "a line of text"
BIG = "line of text\n" * 4_600
RARE = "def _decompression_bomb_check"
Figures = dict[str, float]


class Place(NamedTuple):
    """Where a program runs: a folder with a few files, a tree with many, and its home."""

    folder: Path
    tree: Path
    home: Path

    def file(self, number: int) -> Path:
        return self.folder / f"{number}.txt"


def prepare(folder: Path) -> None:
    """The files that sessions read and touch."""
    for number in range(2 * READS):
        (folder / f"{number}.txt").write_text(f"{LINE}\n" * 40)
    (folder / "marker").touch()
    (folder / "note.txt").write_text("a note\n")


def check(received: Received, text: str, times: int = 1) -> None:
    """The results of calls are in a request: else something else was measured."""
    found = received.raw.decode().count(text)
    if found < times:
        raise MeasureError(f"{text!r} stands {found} times in a request, not {times}:\n{received.raw[-3000:].decode()}")


def replies(*answers: Sequence[AssistantBlock]) -> list[Reply]:
    return [Reply(tuple(answer)) for answer in answers]


def milliseconds(begin: float, end: float) -> float:
    return 1000 * (end - begin)


async def one_read(program: Program, place: Place) -> Figures:
    """A start, a call, a rest, and the end."""
    rest = asyncio.Event()
    answers = replies([program.read(place.file(0))], [program.read(place.file(1))])
    answers[1] = replace(answers[1], gates={0: rest})
    async with Session(program, place.folder, place.home, answers) as session:
        first, second = await session.request(1), await session.request(2)
        check(session.requests[1], LINE, 40)
        await asyncio.sleep(SETTLED)
        size = memory()
        rest.set()
        leaving = await session.end()
    return {
        "start to first request": milliseconds(session.began, first),
        "first call, one read": milliseconds(first, second),
        "last output to end of process": 1000 * leaving,
        "memory after one read": size,
        "first request": len(session.requests[0].raw) / 1000,
    }


async def ten_reads(program: Program, place: Place) -> Figures:
    """Ten reads as first calls, and ten of other files."""
    blocks = [program.read(place.file(number)) for number in range(2 * READS)]
    async with Session(program, place.folder, place.home, replies(blocks[:READS], blocks[READS:])) as session:
        first, second, third = [await session.request(number) for number in (1, 2, 3)]
        check(session.requests[2], LINE, 2 * READS * 40)
        await session.end()
    return {
        "ten reads as first calls": milliseconds(first, second),
        "ten reads, warm": milliseconds(second, third),
    }


async def sleeps(program: Program, place: Place) -> Figures:
    """Eight commands that take 0.2 s, twice."""
    answers = [[program.shell("sleep 0.2") for _ in range(SLEEPS)] for _ in range(2)]
    async with Session(program, place.folder, place.home, replies(*answers)) as session:
        first, second, third = [await session.request(number) for number in (1, 2, 3)]
        await session.end()
    if min(second - first, third - second) < 0.2:
        raise MeasureError(f"{program.name} did not sleep: {session.requests[-1].raw[-3000:].decode()}")
    return {
        "eight `sleep 0.2` as first calls": milliseconds(first, second),
        "eight `sleep 0.2`, warm": milliseconds(second, third),
    }


async def turns(program: Program, place: Place) -> Figures:
    """Turns with one read each."""
    answers = [[program.read(place.file(number))] for number in range(TURNS)]
    async with Session(program, place.folder, place.home, replies(*answers)) as session:
        second, last = await session.request(2), await session.request(TURNS + 1)
        check(session.requests[-1], LINE, TURNS * 40)
        await session.end()
    return {"a turn with one read, the 2nd to the 10th": milliseconds(second, last) / (TURNS - 1)}


async def big_argument(program: Program, place: Place) -> Figures:
    """A file of 60 kB is written."""
    file = place.folder / "new.txt"
    file.unlink(missing_ok=True)
    async with Session(program, place.folder, place.home, replies([program.write(file, BIG)])) as session:
        first, second = await session.request(1), await session.request(2)
        await session.end()
    if file.read_text() != BIG:
        raise MeasureError(f"{program.name} did not write: {session.requests[-1].raw[-3000:].decode()}")
    return {"an argument of 60 kB as first call": milliseconds(first, second)}


async def in_stream(program: Program, place: Place, command: str, file: Path, event: int) -> list[tuple[float, float]]:
    """A command inside two streams: from its block to its start, and from the end of the stream to the next request."""
    streams = [Stream.around(program.shell(command), program.wire) for _ in range(2)]
    found = []
    async with Session(program, place.folder, place.home, [stream.reply for stream in streams]) as session:
        for number, stream in enumerate(streams, 1):
            await session.request(number)
            watch = Watch(file, event)
            sent, ended = await stream.play()
            following = await session.request(number + 1)
            watch.close()
            found.append((milliseconds(sent, watch.time), milliseconds(ended, following)))
        await session.end()
    return found


async def changing_in_stream(program: Program, place: Place) -> Figures:
    """A command that changes something."""
    first, warm = await in_stream(program, place, "touch marker", place.folder / "marker", IN_ATTRIB)
    return {
        "a changing command inside the stream starts, first call": first[0],
        "a changing command inside the stream starts, warm": warm[0],
        "the request after the stream of a changing command": first[1],
    }


async def reading_in_stream(program: Program, place: Place) -> Figures:
    """A command that only reads."""
    first, warm = await in_stream(program, place, "cat note.txt", place.folder / "note.txt", IN_OPEN)
    return {
        "a reading command inside the stream starts, first call": first[0],
        "a reading command inside the stream starts, warm": warm[0],
        "the request after the stream of a reading command": first[1],
    }


async def searches(program: Program, place: Place) -> Figures:
    """A start in a tree with many files; then searches there, of which the first is not counted."""
    gate = asyncio.Event()
    answers = replies(*([block] for _ in range(SEARCHES) for block in (program.newest(".py"), program.search(RARE))))
    answers[0] = replace(answers[0], gates={0: gate})
    async with Session(program, place.tree, place.home, answers) as session:
        start = await session.request(1)
        await asyncio.sleep(THINKING)
        gate.set()
        times = [await session.request(number + 2) for number in range(2 * SEARCHES)]
        check(session.requests[1], ".py", 100)
        check(session.requests[2], "Image.py")
        await session.end()
    spans = [milliseconds(*pair) for pair in pairwise(times)]
    return {
        "start in a git tree of 31,000 files": milliseconds(session.began, start),
        "`*.py` newest first in that tree, whole turn": min(spans[1::2]),
        "a rare literal in that tree, whole turn": min(spans[2::2]),
    }


SCENARIOS: tuple[Callable[[Program, Place], Awaitable[Figures]], ...] = (
    one_read,
    ten_reads,
    sleeps,
    turns,
    big_argument,
    changing_in_stream,
    reading_in_stream,
    searches,
)

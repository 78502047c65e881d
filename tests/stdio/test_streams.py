"""Lines over real pipes: slow readers, readers that have gone, lines of any size."""

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.errors import ClosedError
from handrail.stdio.bounds import LINE_LIMIT, shorter
from handrail.stdio.streams import FileLines, FileOut, line_bytes

pytestmark = pytest.mark.anyio

Pipe = tuple[int, int]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    read, write = os.pipe()
    yield read, write
    for descriptor in (read, write):
        try:
            os.close(descriptor)
        except OSError:
            continue  # the test has closed it


@given(st.lists(st.binary(max_size=200).map(lambda data: data.replace(b"\n", b"")), max_size=20), st.booleans())
@settings(deadline=None)
def test_lines_arrive_as_they_were_written(lines: list[bytes], last_is_open: bool) -> None:
    async def play() -> list[bytes]:
        read, write = os.pipe()
        data = b"".join(line + b"\n" for line in lines)
        if last_is_open and lines and lines[-1]:
            data = data[:-1]

        def feed() -> None:
            os.write(write, data)
            os.close(write)

        threading.Thread(target=feed).start()
        source, got = FileLines(read), []
        with anyio.fail_after(10):
            while (line := await source.next()) is not None:
                got.append(line)
        os.close(read)
        return got

    assert anyio.run(play) == lines


async def test_a_reader_that_is_slow_makes_the_writer_wait_and_nothing_else(pipe: Pipe) -> None:
    read, write = pipe
    out = FileOut(write)
    big = {"type": "user", "text": "x" * 300_000}
    sending = asyncio.create_task(out.send(big))
    behind = asyncio.create_task(out.send({"type": "system", "n": 1}))
    await anyio.wait_all_tasks_blocked()
    assert not sending.done()
    assert not behind.done()

    def read_all() -> bytes:
        with open(read, "rb", closefd=False) as file:
            return file.readline() + file.readline()

    data = await anyio.to_thread.run_sync(read_all)

    assert [json.loads(line) for line in data.splitlines()] == [big, {"type": "system", "n": 1}]
    with anyio.fail_after(5):
        await asyncio.gather(sending, behind)


async def test_whoever_stops_waiting_leaves_no_half_line_behind(pipe: Pipe) -> None:
    read, write = pipe
    out = FileOut(write)
    first = asyncio.create_task(out.send({"n": 1, "text": "x" * 300_000}))
    await anyio.wait_all_tasks_blocked()
    first.cancel()
    second = asyncio.create_task(out.send({"n": 2}))
    await anyio.wait_all_tasks_blocked()

    def read_two() -> list[Any]:
        with open(read, "rb", closefd=False) as file:
            return [json.loads(file.readline())["n"] for _ in range(2)]

    assert await anyio.to_thread.run_sync(read_two) == [1, 2]
    with anyio.fail_after(5):
        await second


@pytest.mark.parametrize("size", [10, 300_000])
async def test_a_reader_that_has_gone_is_an_error_at_once(pipe: Pipe, size: int) -> None:
    read, write = pipe
    out = FileOut(write)
    os.close(read)
    for _ in range(2):
        with pytest.raises(ClosedError), anyio.fail_after(5):
            await out.send({"text": "x" * size})


def test_a_line_is_never_longer_than_readers_take() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 3_000_000}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "é" * 900_000}, image]}
    line = {"type": "user", "uuid": "u", "message": {"content": [result]}, "tool_use_result": {"stdout": "x" * 10**6}}

    data = line_bytes(line)

    assert len(data) <= LINE_LIMIT
    made = json.loads(data)
    assert (made["type"], made["uuid"]) == ("user", "u")
    text, picture = made["message"]["content"][0]["content"]
    assert text["text"].startswith("é" * 1000)
    assert "more characters left out" in text["text"]
    assert picture == {"type": "text", "text": "[image of 3,000,000 characters, left out of this line]"}


values = st.recursive(
    st.text(max_size=8) | st.integers() | st.builds(str.__mul__, st.sampled_from("aé語"), st.integers(0, 2000)),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=8), inner, max_size=8),
    max_leaves=30,
)


@given(st.dictionaries(st.text(max_size=8), values, max_size=8), st.integers(5000, 8000))
@settings(deadline=None, max_examples=50)
def test_a_shortened_line_keeps_its_type_and_fits(line: dict[str, Any], limit: int) -> None:
    made = shorter({**line, "type": "user", "uuid": "u"}, limit)

    assert (made["type"], made["uuid"]) == ("user", "u")
    assert len(json.dumps(made, ensure_ascii=False).encode("utf-8", "replace")) <= limit

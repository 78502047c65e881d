"""Servers behind a WebSocket, and its framing."""

import asyncio
import base64
import hashlib
import json
from contextlib import suppress
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.errors import McpError
from handrail.mcp.config import ServerConfig
from handrail.mcp.open_peer import open_once
from handrail.mcp.websocket import BINARY, CLOSE, GUID, PING, PONG, TEXT, FrameReader, apply_mask, frame

pytestmark = pytest.mark.anyio


def plain(kind: int, payload: bytes, *, final: bool = True) -> bytes:
    size = len(payload)
    first = (0x80 if final else 0) | kind
    if size < 126:
        return bytes((first, size)) + payload
    if size < 1 << 16:
        return bytes((first, 126)) + size.to_bytes(2, "big") + payload
    return bytes((first, 127)) + size.to_bytes(8, "big") + payload


@given(st.lists(st.binary(max_size=200), max_size=5), st.lists(st.integers(1, 50), min_size=1), st.integers(1, 40))
def test_messages_arrive_whole_wherever_bytes_and_frames_are_split(
    messages: list[bytes], sizes: list[int], part: int
) -> None:
    data = b""
    for each in messages:
        pieces = [each[at : at + part] for at in range(0, len(each), part)] or [b""]
        for number, piece in enumerate(pieces):
            data += plain(BINARY if number == 0 else 0, piece, final=number == len(pieces) - 1)
            data += plain(PING, b"in between")
    reader, found, at = FrameReader(), [], 0
    for number in range(len(data)):
        size = sizes[number % len(sizes)]
        found += [payload for kind, payload in reader.feed(data[at : at + size]) if kind == BINARY]
        at += size
    assert found == messages


@given(st.binary(max_size=300), st.binary(min_size=4, max_size=4))
def test_a_mask_laid_on_twice_is_gone(payload: bytes, mask: bytes) -> None:
    assert apply_mask(apply_mask(payload, mask), mask) == payload


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536])
def test_the_length_of_a_frame_is_written_as_it_must_be(size: int) -> None:
    written = frame(TEXT, b"x" * size, b"\0\0\0\0")
    bare = bytes((written[0], written[1] & 0x7F)) + written[2:].replace(b"\0\0\0\0" + b"x" * size, b"x" * size)
    assert list(FrameReader().feed(bare if size else b"\x81\x00")) == [(TEXT, b"x" * size)]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(plain(0, b"x"), id="it goes on without a beginning"),
        pytest.param(plain(TEXT, b"a", final=False) + plain(TEXT, b"b"), id="a beginning inside another"),
        pytest.param(b"\xf1\x00", id="reserved bits"),
        pytest.param(b"\x81\x81\0\0\0\0x", id="a server that masks"),
        pytest.param(plain(TEXT, b"x" * 2000), id="too large"),
        pytest.param(plain(TEXT, b"x" * 600, final=False) + plain(0, b"x" * 600), id="too large in parts"),
        pytest.param(plain(PING, b"x" * 126), id="a large ping"),
    ],
)
def test_what_is_not_a_frame_ends_the_connection(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        list(FrameReader(limit=1000).feed(data))


class Listener:
    """A server on loopback that leaves no connection open."""

    def __init__(self) -> None:
        self.conversations: list[asyncio.Task[None] | None] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.conversations.append(asyncio.current_task())
        try:
            with suppress(asyncio.IncompleteReadError):  # the client is gone
                await talk(reader, writer)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    headers = dict(line.lower().split(": ", 1) for line in head.splitlines()[1:] if ": " in line)
    key = next(line.split(": ")[1] for line in head.splitlines() if line.lower().startswith("sec-websocket-key"))
    assert headers["sec-websocket-protocol"] == "mcp"
    if "/deaf" in head:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        return
    accept = base64.b64encode(hashlib.sha1(key.encode() + GUID, usedforsecurity=False).digest())
    writer.write(b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ")
    writer.write(accept + b"\r\n\r\n" + plain(PING, b"there?"))
    ponged = False
    while True:
        first, second = await reader.readexactly(2)
        assert second & 0x80
        size = second & 0x7F
        if size == 126:
            size = int.from_bytes(await reader.readexactly(2), "big")
        mask = await reader.readexactly(4)
        payload = apply_mask(await reader.readexactly(size), mask)
        kind = first & 0x0F
        if kind == PONG:
            assert payload == b"there?"
            ponged = True
        elif kind == CLOSE:
            return
        else:
            answer(writer, json.loads(payload), ponged=ponged)


def answer(writer: asyncio.StreamWriter, message: dict[str, Any], *, ponged: bool) -> None:
    results: dict[str, Any] = {
        "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}},
        "tools/list": {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": f"ponged: {ponged}"}]},
    }
    text = json.dumps({"id": message["id"], "result": results[message["method"]]}).encode()
    half = len(text) // 2
    writer.write(plain(TEXT, text[:half], final=False) + plain(0, text[half:]))
    if message["method"] == "tools/call" and message["params"]["arguments"]:
        writer.write(plain(CLOSE, b""))


async def test_a_server_behind_a_web_socket_is_used_and_its_end_is_noticed() -> None:
    listener = Listener()
    listening = await asyncio.start_server(listener.serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    with anyio.fail_after(30):
        async with open_once(ServerConfig("s", "ws", url=f"ws://127.0.0.1:{port}/x")) as server:
            output = await server.call("t", {}, "1", lambda _news: None)
            assert "ponged: True" in str(output.blocks)
            await server.call("t", {"then": "close"}, "1", lambda _news: None)
            assert await server.peer.ended == "it closed the connection"
            with pytest.raises(McpError, match="closed the connection"):
                await server.call("t", {}, "1", lambda _news: None)
        with pytest.raises(McpError, match="does not speak WebSocket"):
            async with open_once(ServerConfig("s", "ws", url=f"ws://127.0.0.1:{port}/deaf")):
                pass
        listening.close()
        await listening.wait_closed()
        await asyncio.gather(*filter(None, listener.conversations))

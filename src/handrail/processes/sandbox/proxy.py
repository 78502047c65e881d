"""
A small HTTP proxy for sandboxed commands: CONNECT and plain requests, to allowed domains only.

It listens on a socket in the file system that is mounted into the sandbox, in a thread of its own, so that it works
whatever the program around it is waiting for. A name is looked up here, the addresses are judged, and the connection
goes to a judged address, never to the name again.
"""

import asyncio
import contextlib
import re
import socket
import tempfile
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import urlsplit

from handrail.processes.sandbox.domains import Public, address_refusal, refusal
from handrail.processes.sandbox.settings import Domain

MAX_HEAD = 64 * 1024
CHUNK = 64 * 1024
TIMEOUT = 30.0
MARK = "handrail sandbox"
MAX_REFUSALS = 20
HOP_BY_HOP = re.compile(rb"(?im)^(?:proxy-[^:\r\n]*|connection|keep-alive|host|te|upgrade):[^\r\n]*\r\n")
LENGTH = re.compile(rb"(?im)^content-length:[ \t]*(\d{1,15})[ \t]*\r$")
OTHER_BODY = re.compile(rb"(?im)^transfer-encoding:")

Lookup = Callable[[str, int], Awaitable[list[str]]]


class _ProxyRefusalError(Exception):
    """The answer to a request that may not pass."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Proxy:
    """A running proxy. `path` is its socket; `close` ends it and every connection."""

    def __init__(
        self, allowed: tuple[Domain, ...], denied: tuple[Domain, ...], public: Public, lookup: Lookup | None = None
    ) -> None:
        self.allowed, self.denied, self.public = allowed, denied, public
        self.lookup = lookup or _lookup
        self._refusals: deque[str] = deque(maxlen=MAX_REFUSALS)
        self.folder = tempfile.TemporaryDirectory(prefix="handrail-")  # for its owner only, and short enough
        self.path = str(Path(self.folder.name) / "proxy")
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._done = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="handrail sandbox proxy", daemon=True)
        self._thread.start()
        self._ready.wait()

    def refusals(self) -> tuple[str, ...]:
        """Why requests were refused since this was last asked: not every program shows what the proxy answers."""
        found = tuple(self._refusals)
        self._refusals.clear()
        return found

    def close(self) -> None:
        """End every connection. Does nothing the second time."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._done.set)
            self._thread.join()
        self.folder.cleanup()

    def _run(self) -> None:
        with contextlib.closing(self._loop):
            self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        tasks: set[asyncio.Task[None]] = set()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.ensure_future(self._one(reader, writer))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            task.add_done_callback(lambda _task: writer.close())  # also when it is cancelled before it begins

        server = await asyncio.start_unix_server(accept, self.path, limit=MAX_HEAD)
        self._ready.set()
        await self._done.wait()
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # transports say goodbye in the next round

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(TIMEOUT):
                head = await reader.readuntil(b"\r\n\r\n")
            await self._request(head, reader, writer)
        except _ProxyRefusalError as refusal:
            self._refusals.append(str(refusal))
            text = f"{MARK}: {refusal}\n".encode()
            head = f"HTTP/1.1 {refusal.status}\r\nContent-Length: {len(text)}\r\nX-Handrail: {refusal}\r\n".encode()
            writer.write(head + b"Content-Type: text/plain\r\nConnection: close\r\n\r\n" + text)
        except (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError):
            pass  # one side has left, or never sent a request: there is no one to answer

    async def _request(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        method, target = _first_line(head)
        if method == "CONNECT":
            host, port = _authority(f"//{target}", 443)
            back, there = await self._connect(host, port)
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await _both_ways(reader, there, back, writer)
            return
        if not target.lower().startswith("http://"):
            raise _ProxyRefusalError(
                "400 Bad Request", f"{target[:200]!r} is not a http:// URL. Use CONNECT for https."
            )
        host, port = _authority(target, 80)
        if OTHER_BODY.search(head):
            raise _ProxyRefusalError(
                "411 Length Required", "a body without Content-Length is not passed on. Use https."
            )
        back, there = await self._connect(host, port)
        there.write(_own_head(method, target, head))
        length = LENGTH.search(head)
        await _both_ways(reader, there, back, writer, only=int(length[1]) if length else 0)

    async def _connect(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reason = refusal(host, port, self.allowed, self.denied)
        if reason:
            raise _ProxyRefusalError("403 Forbidden", reason)
        try:
            addresses = await self.lookup(host, port)
        except OSError as error:
            raise _ProxyRefusalError("502 Bad Gateway", f"{host} could not be looked up: {error}") from error
        for address in addresses:
            reason = address_refusal(address, self.allowed, self.denied, self.public)
            if reason:
                raise _ProxyRefusalError("403 Forbidden", f"{host} leads to {address}: {reason}")
        for address in addresses:
            with contextlib.suppress(OSError):
                async with asyncio.timeout(TIMEOUT):
                    return await asyncio.open_connection(address, port)
        raise _ProxyRefusalError("502 Bad Gateway", f"{host}:{port} does not answer")


def _first_line(head: bytes) -> tuple[str, str]:
    words = head.partition(b"\r\n")[0].decode("ascii", "replace").split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise _ProxyRefusalError("400 Bad Request", "this is not a HTTP/1 request")
    return words[0], words[1]


def _authority(url: str, usual: int) -> tuple[str, int]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or usual
    except ValueError as error:
        raise _ProxyRefusalError("400 Bad Request", f"{url[:200]!r} names no host: {error}") from error
    if not host or not host.isascii() or any(char <= " " or char in "%\\" for char in host):
        raise _ProxyRefusalError("400 Bad Request", f"{url[:200]!r} names no host")
    return host, port


def _own_head(method: str, target: str, head: bytes) -> bytes:
    """The request as the server gets it: its own path, the host that was judged, one request per connection."""
    parts = urlsplit(target)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    fields = HOP_BY_HOP.sub(b"", head.partition(b"\r\n")[2])
    host = parts.netloc.rpartition("@")[2]
    return f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n".encode() + fields


async def _both_ways(
    reader: asyncio.StreamReader,
    there: asyncio.StreamWriter,
    back: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    only: int | None = None,
) -> None:
    """Pass bytes on until the server is done; of a plain request no more than its own body."""
    sending = asyncio.ensure_future(_pump(reader, there, only))
    try:
        await _pump(back, writer, None)
    finally:
        there.close()  # first, because what follows can be cancelled
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter, left: int | None) -> None:
    while left is None or left > 0:
        data = await source.read(CHUNK if left is None else min(CHUNK, left))
        if not data:
            break
        left = None if left is None else left - len(data)
        target.write(data)
        await target.drain()
    if left is None and target.can_write_eof():
        target.write_eof()


async def _lookup(host: str, port: int) -> list[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))

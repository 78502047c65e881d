"""The address on this machine to which a browser returns after a sign-in."""

import asyncio
from collections.abc import Mapping
from typing import Self
from urllib.parse import parse_qsl, urlsplit

PATH = "/callback"
MAX_HEAD = 64 * 1024
READ_TIME = 10.0
PAGE = (
    "<!doctype html><meta charset=utf-8><title>handrail</title><body style='font-family:sans-serif;margin:3em'>"
    "<p>{text}</p><p>You can close this page and go back to the terminal.</p>"
)


class Redirect:
    """Listens on 127.0.0.1 for the one answer whose `state` is ours; all others are turned away."""

    def __init__(self, state: str, port: int = 0) -> None:
        self._state = state
        self._port = port
        self._server: asyncio.Server | None = None
        self._answer: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()

    @property
    def url(self) -> str:
        """The address to register and to send along."""
        return f"http://127.0.0.1:{self._port}{PATH}"

    async def answer(self, time_limit: float) -> Mapping[str, str]:
        """The parameters that the browser brings; TimeoutError if none come."""
        return await asyncio.wait_for(asyncio.shield(self._answer), time_limit)

    async def listen(self) -> Self:
        """Open the port; OSError if it is taken."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port, limit=MAX_HEAD)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    def close(self) -> None:
        """Give the port back."""
        if self._server is not None:
            self._server.close()
        self._answer.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(READ_TIME):
                head = await reader.readuntil(b"\r\n\r\n")
            status, text = self._take(head.split(b"\r\n", 1)[0].decode("latin-1"))
            body = PAGE.format(text=text).encode()
            lines = (
                f"HTTP/1.1 {status}",
                "Content-Type: text/html; charset=utf-8",
                f"Content-Length: {len(body)}",
                "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'",
                "Referrer-Policy: no-referrer",
                "Cache-Control: no-store",
                "Connection: close",
            )
            writer.write("\r\n".join((*lines, "", "")).encode() + body)
            await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # not the browser that we wait for
        finally:
            writer.close()

    def _take(self, line: str) -> tuple[str, str]:
        method, _, rest = line.partition(" ")
        target = urlsplit(rest.rpartition(" ")[0])
        if method != "GET" or target.path != PATH:
            return "404 Not Found", "There is nothing here."
        given = dict(parse_qsl(target.query, keep_blank_values=True))
        if given.get("state") != self._state:
            return "400 Bad Request", "This answer belongs to no sign-in that was started here."
        if not self._answer.done():
            self._answer.set_result(given)
        return "200 OK", "The sign-in was refused." if "error" in given else "You are signed in."

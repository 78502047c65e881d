"""A web site on loopback, names that lead wherever a test wants, and governed calls of WebFetch."""

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail.config.flags import SettingsFlags
from handrail.session.single_call import call_tool
from handrail.tools.outcome import Outcome

Page = Callable[[BaseHTTPRequestHandler], None]


def answer(body: bytes | str, kind: str = "text/html", status: int = 200, **headers: str) -> Page:
    """A page with these bytes; `content_encoding` and the like are headers."""
    data = body.encode() if isinstance(body, str) else body

    def give(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        request.send_header("Content-Type", kind)
        request.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.wfile.write(data)

    return give


def redirect(to: str, status: int = 302) -> Page:
    return answer("", status=status, location=to)


def pieces(parts: Iterator[bytes] | Sequence[bytes], kind: str = "text/plain") -> Page:
    """A page that is sent in chunks, as long as the other side listens."""

    def give(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", kind)
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        try:
            for part in parts:
                request.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            request.wfile.write(b"0\r\n\r\n")
        except OSError:
            request.close_connection = True

    return give


@dataclass
class Site:
    """A server and what it was asked for."""

    port: int
    pages: dict[str, Page]
    asked: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    @property
    def rule(self) -> str:
        return f"WebFetch(domain:127.0.0.1:{self.port})"

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.asked]


@contextmanager
def serve(pages: dict[str, Page]) -> Iterator[Site]:
    """Serve pages by path; others are not there."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            site.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            page = pages.get(self.path) or pages.get(self.path.partition("?")[0])
            (page or answer("nothing here", "text/plain", 404))(self)

        def do_POST(self) -> None:
            site.bodies.append(self.rfile.read(int(self.headers["content-length"])))
            self.do_GET()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    site = Site(server.server_address[1], pages)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield site
    finally:
        site.closing.set()
        server.shutdown()
        server.server_close()
        thread.join(10)


def lead(monkeypatch: pytest.MonkeyPatch, names: Mapping[str, Callable[[], Sequence[str]]]) -> list[str]:
    """Names of the test lead to addresses; the list says what was looked up, in order."""
    real, asked = socket.getaddrinfo, list[str]()

    def look_up(host: Any, port: Any, *args: Any, **options: Any) -> Any:
        if host not in names:
            return real(host, port, *args, **options)
        asked.append(host)
        families = {True: socket.AF_INET6, False: socket.AF_INET}
        return [
            (families[":" in each], socket.SOCK_STREAM, 6, "", (each, port, *((0, 0) if ":" in each else ())))
            for each in names[host]()
        ]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return asked


async def fetch(
    folder: Path,
    url: str,
    *,
    allow: Sequence[str] = (),
    deny: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    tool: str = "WebFetch",
    **values: Any,
) -> Outcome:
    """One governed call under these rules and settings, as `handrail call` makes it."""
    (folder / "project").mkdir(exist_ok=True)
    variables = {"HOME": str(folder), "HANDRAIL_STATE_DIR": str(folder / "state"), "PATH": "/usr/bin", **(env or {})}
    flags = SettingsFlags(
        settings=json.dumps(settings or {}), allowed=tuple(allow), disallowed=tuple(deny), managed_policy=False
    )
    given = {"url": url, **values} if tool == "WebFetch" else values
    with anyio.fail_after(60):
        done = await call_tool(
            tool, given, folder / "project", env=variables, flags=flags, on_warning=lambda _text: None
        )
    return done.outcome


def text_of(outcome: Outcome) -> str:
    return outcome.result.text

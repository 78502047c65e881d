"""
HTTP/1.1 over asyncio: streamed and whole answers, keep-alive, proxies, private CAs, bounds on time and size.

    client = HttpClient(os.environ)
    response = await client.send(request)            the answer as it arrives
    answer = await client.fetch(request, max_bytes=1_000_000, timeout=10)

No redirect is followed. `http1` reads and writes the protocol: a general library for it would cost more start-up time
than the rest of a first request (benchmarks/providers_bench.py measures it), and most of the time to read an answer.
"""

import asyncio
import contextlib
import errno
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Self

from handrail.errors import HttpProtocolError, TransportError
from handrail.http.http1 import ResponseReader, request_head
from handrail.http.transport import HttpRequest
from handrail.http.urls import HttpTarget, is_loopback, parse_target, proxy_for
from handrail.lazy import lazy
from handrail.records import record

if TYPE_CHECKING:
    import truststore
else:
    truststore = lazy("truststore")  # 8 ms, and few systems need it

CONNECT_TIMEOUT = 30.0
KEEP_ALIVE = 60.0
DRAIN_TIMEOUT = 0.02
HAPPY_EYEBALLS = 0.25
MAX_IDLE = 8
READ_SIZE = 256 * 1024
NETWORK_ERRORS = (OSError, EOFError, ssl.SSLError, HttpProtocolError)

Route = tuple[HttpTarget, HttpTarget | None]
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a host and port that may be connected to, best first. What it raises reaches the caller."""


@record
class WholeResponse:
    """An answer that was read to its end; `cut` if its body is longer than the bound."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    cut: bool


class HttpResponse:
    """One answer on one connection, which goes back to the pool when the answer is complete."""

    __slots__ = ("_answer", "_connection", "_done", "headers", "status")

    def __init__(self, connection: "HttpConnection", answer: ResponseReader) -> None:
        self._connection = connection
        self._answer = answer
        self._done = False
        self.status = answer.status
        self.headers = answer.headers

    async def read(self) -> bytes:
        """The next bytes, as many as have arrived; empty at the end."""
        if self._done:
            return b""
        answer = self._answer
        try:
            while not (data := answer.take()) and not answer.done:
                await self._connection.receive(answer)
        except NETWORK_ERRORS as error:
            self.abort()
            raise TransportError("cut", f"the connection broke off: {_reason(error)}") from error
        if answer.done:
            self._done = True
            self._connection.release(answer)
        return data

    def abort(self) -> None:
        """Drop the connection at once."""
        if not self._done:
            self._done = True
            self._connection.drop()

    def take_over(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]:
        """The bare connection after status 101, and what came on it already; `abort` still closes it."""
        return *self._connection.streams, self._answer.excess

    def leave(self) -> None:
        """Keep the connection; the last bytes of the answer are read when it is used again."""
        if not self._done:
            self._done = True
            self._connection.park(self._answer)


class HttpConnection:
    """One connection, and the last answer on it if its end is still to be read."""

    def __init__(
        self, pool: "HttpClient", route: Route, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._pool = pool
        self.route = route
        self._reader = reader
        self._writer = writer
        self._unread: ResponseReader | None = None
        self.idle_since = 0.0
        self.loop = asyncio.get_running_loop()

    @property
    def streams(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """The connection without HTTP."""
        return self._reader, self._writer

    async def usable(self) -> bool:
        """Whether another request may be sent: still open, the last answer has ended, and nothing came after it."""
        if self._writer.transport.is_closing() or self._reader.at_eof():
            return False
        answer, self._unread = self._unread, None
        if answer is not None:
            try:
                async with asyncio.timeout(DRAIN_TIMEOUT):
                    while not answer.done and not answer.take():
                        await self.receive(answer)
            except (*NETWORK_ERRORS, TimeoutError):
                return False
            if not answer.is_reusable:
                return False
        return not self._has_arrived

    async def ask(
        self, method: str, target: bytes, host: bytes, headers: Sequence[tuple[str, str]], body: bytes
    ) -> ResponseReader:
        """Send a request and wait for the head of its answer."""
        length = len(body) if body or method == "POST" else None
        head = request_head(method, target, host, headers, length)
        self._writer.writelines([head, body] if body else [head])
        # a server may answer and close before it has read everything: its answer says why
        with contextlib.suppress(ConnectionError):
            await self._writer.drain()
        answer = ResponseReader(method, headers)
        while not answer.status:
            await self.receive(answer)
        return answer

    async def receive(self, answer: ResponseReader) -> None:
        """Wait for more of an answer."""
        answer.receive(await self._reader.read(READ_SIZE))

    async def start_tls(self, context: ssl.SSLContext, host: str, answer: ResponseReader) -> None:
        """Switch to TLS after this answer of a proxy."""
        if answer.excess or self._has_arrived:
            raise HttpProtocolError("the proxy sent more than its answer")  # TLS would seem to protect it
        await self._writer.start_tls(context, server_hostname=host)

    def release(self, answer: ResponseReader) -> None:
        """The answer is complete: keep the connection if both sides agree."""
        if answer.is_reusable:
            self._pool.keep(self)
        else:
            self.drop()

    def park(self, answer: ResponseReader) -> None:
        """Keep the connection although the end of the answer is not read yet."""
        self._unread = answer
        self._pool.keep(self)

    @property
    def _has_arrived(self) -> bool:
        """Whether there are bytes that no answer has read."""
        return bool(self._reader._buffer)  # type: ignore[attr-defined]  # no public name

    def drop(self) -> None:
        """Close at once."""
        if not self.loop.is_closed():
            self._writer.transport.abort()


async def look_up(host: str, port: int) -> tuple[str, ...]:
    """All addresses of a host, each once, best first. Raises OSError if there are none."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(info[4][0]).partition("%")[0] for info in found))


class HttpClient:
    """
    Keeps idle connections and opens new ones. `env` holds the proxy and CA variables.

    Without `proxy_loopback` requests to this machine bypass the proxy of the environment. Without `keep_alive` every
    request gets a connection of its own. Without `resend` a request that a kept connection did not answer is not sent
    once more over a new one, because the server may have begun to act on it. With `resolve` a server is reached at the
    addresses that it returns and at no other, under its own name for TLS; a proxy looks names up itself.
    """

    def __init__(
        self,
        env: Mapping[str, str],
        *,
        proxy_loopback: bool = True,
        keep_alive: bool = True,
        resend: bool = True,
        resolve: Resolve | None = None,
    ) -> None:
        self._env = env
        self._proxy_loopback = proxy_loopback
        self._max_idle = MAX_IDLE if keep_alive else 0
        self._resend = resend
        self._resolve = resolve
        self._idle: list[HttpConnection] = []
        self._context: ssl.SSLContext | None = None

    def proxy_of(self, url: str) -> HttpTarget | None:
        """The proxy that a request to this URL goes through; None = it goes there directly."""
        target = parse_target(url)
        return None if not self._proxy_loopback and is_loopback(target.host) else proxy_for(target, self._env)

    async def send(self, request: HttpRequest) -> HttpResponse:
        """The answer, once its head has arrived. Raises TransportError without one, UrlError if an address is wrong."""
        target = parse_target(request.url)
        route = (target.origin, self.proxy_of(request.url))
        connection = await self._reuse(route)
        if connection is not None:
            try:
                return await self._ask(connection, request, target)
            except TransportError:  # the server may have closed it: then use a new one
                if not self._resend:
                    raise
        return await self._ask(await self._connect(route), request, target)

    async def fetch(self, request: HttpRequest, *, max_bytes: int, timeout: float | None = None) -> WholeResponse:  # noqa: ASYNC109  # one limit for the whole answer
        """The whole answer, or its first `max_bytes`. Raises like `send`, and TimeoutError after `timeout` seconds."""
        async with asyncio.timeout(timeout):
            response = await self.send(request)
            body = bytearray()
            try:
                while len(body) <= max_bytes and (data := await response.read()):
                    body += data
            finally:
                response.abort()
        return WholeResponse(response.status, response.headers, bytes(body[:max_bytes]), cut=len(body) > max_bytes)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close idle connections."""
        for connection in self._idle:
            connection.drop()
        self._idle.clear()
        await asyncio.sleep(0)  # asyncio closes the sockets in the loop's next round

    def keep(self, connection: HttpConnection) -> None:
        """Take back a connection whose answer is complete."""
        connection.idle_since = connection.loop.time()
        self._idle.append(connection)
        if len(self._idle) > self._max_idle:
            self._idle.pop(0).drop()

    async def _reuse(self, route: Route) -> HttpConnection | None:
        loop = asyncio.get_running_loop()
        self._idle = [connection for connection in self._idle if connection.loop is loop]  # others died with their loop
        for connection in reversed(self._idle):
            if connection.route == route:
                self._idle.remove(connection)
                is_usable = False
                try:
                    is_usable = loop.time() - connection.idle_since < KEEP_ALIVE and await connection.usable()
                finally:  # also if this is cancelled
                    if not is_usable:
                        connection.drop()
                return connection if is_usable else None
        return None

    async def _ask(self, connection: HttpConnection, request: HttpRequest, target: HttpTarget) -> HttpResponse:
        proxy = connection.route[1]
        path, headers = target.path, request.headers
        if proxy is not None and not target.secure:  # a plain request goes to the proxy itself
            path = b"http://" + target.authority + target.path
            headers = (*headers, *proxy.auth_headers)
        try:
            answer = await connection.ask(request.method, path, target.authority, headers, request.body)
            return HttpResponse(connection, answer)
        except NETWORK_ERRORS as error:
            connection.drop()
            raise TransportError("connect", f"{target.url} gave no answer: {_reason(error)}") from error
        except BaseException:
            connection.drop()
            raise

    async def _connect(self, route: Route) -> HttpConnection:
        target, proxy = route
        first = proxy or target
        addresses = await self._resolve(target.host, target.port) if self._resolve and proxy is None else ()
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                reader, writer = await self._open(first, addresses)
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                connection = HttpConnection(self, route, reader, writer)
                if proxy is not None and target.secure:
                    await self._tunnel(connection, target, proxy)
                return connection
        except TimeoutError as error:
            raise TransportError("connect", f"no connection to {first.url} within {CONNECT_TIMEOUT:g} s") from error
        except NETWORK_ERRORS as error:
            kind = "refused" if _is_refused_here(first.host, error) else "connect"
            raise TransportError(kind, f"no connection to {first.url}: {_reason(error)}") from error

    async def _open(
        self, server: HttpTarget, addresses: Sequence[str]
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to one of the addresses, or to wherever the name leads."""
        tls, limit = self._tls() if server.secure else None, 2 * READ_SIZE
        if not addresses:
            return await asyncio.open_connection(
                server.host, server.port, ssl=tls, limit=limit, happy_eyeballs_delay=HAPPY_EYEBALLS
            )
        name, failure = server.host if tls else None, OSError("no address")
        for address in addresses:
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT / len(addresses)):
                    return await asyncio.open_connection(
                        address, server.port, ssl=tls, limit=limit, server_hostname=name
                    )
            except OSError as error:  # a TimeoutError is one, too
                failure = error
        raise failure

    async def _tunnel(self, connection: HttpConnection, target: HttpTarget, proxy: HttpTarget) -> None:
        try:
            place = target.authority_with_port
            answer = await connection.ask("CONNECT", place, place, proxy.auth_headers, b"")
            if not 200 <= answer.status < 300:
                raise OSError(f"the proxy refused with status {answer.status}")
            await connection.start_tls(self._tls(), target.host, answer)
        except BaseException:
            connection.drop()
            raise

    def _tls(self) -> ssl.SSLContext:
        if self._context is None:
            self._context = tls_context(self._env)
        return self._context


def tls_context(env: Mapping[str, str]) -> ssl.SSLContext:
    """
    Trust what the system trusts, or what SSL_CERT_FILE, SSL_CERT_DIR or REQUESTS_CA_BUNDLE name.

    NODE_EXTRA_CA_CERTS adds to it.
    """
    file = env.get("SSL_CERT_FILE") or env.get("REQUESTS_CA_BUNDLE") or env.get("CURL_CA_BUNDLE")
    folder = env.get("SSL_CERT_DIR")
    if file or folder:
        context = ssl.create_default_context(cafile=file or None, capath=folder or None)
    else:
        context = ssl.create_default_context()
        if not context.cert_store_stats()["x509_ca"]:
            # Python's OpenSSL has no system store here (macOS, some builds): use that of the operating system
            context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if extra := env.get("NODE_EXTRA_CA_CERTS"):
        context.load_verify_locations(cafile=extra)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _is_refused_here(host: str, error: BaseException) -> bool:
    """Whether nothing listens at a port of this machine: not the weather of a network, it will not pass in seconds."""
    here = host in ("localhost", "::1") or host.startswith("127.")
    return here and isinstance(error, OSError) and f"[Errno {errno.ECONNREFUSED}]" in str(error)


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__

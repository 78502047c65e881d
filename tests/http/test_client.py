"""HTTP as people expect it: TLS with their own CA, proxies, keep-alive, early refusals."""

import asyncio
import base64
import gc
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from handrail.conversation.blocks import Text
from handrail.conversation.stream import BlockEnd, StreamEvent, StreamFailure
from handrail.errors import TransportError, UrlError
from handrail.http.client import HttpClient
from handrail.http.transport import HttpRequest
from handrail.http.urls import HttpTarget, parse_target, proxy_for
from handrail.providers.client import Endpoint, Provider, join
from handrail.providers.retry import RetryPolicy
from handrail.testing.model_server import ModelServer, Reply
from tests.providers.asking import APIS, OPENED, asking, everything, question

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("close_connections")]

HELLO = Reply((Text("Hello"),))
ONCE = RetryPolicy(attempts=1)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and certificate for localhost that no system trusts."""
    file = tmp_path_factory.mktemp("tls") / "server.pem"
    make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    where = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(file), "-out", f"{file}.crt"]
    subprocess.run([*make.split(), *where], check=True, capture_output=True)
    file.write_bytes(file.read_bytes() + Path(f"{file}.crt").read_bytes())
    return file


def secure_server(certificate: Path) -> ModelServer:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return ModelServer([HELLO, HELLO], tls=context)


def through(server: ModelServer, env: dict[str, str]) -> Provider:
    url = server.url.replace("127.0.0.1", "localhost")
    provider = Provider(APIS["anthropic"], Endpoint(url), HttpClient(env), retry=ONCE)
    OPENED.append(provider)
    return provider


def said(events: list[StreamEvent]) -> list[object]:
    return [event.block for event in events if isinstance(event, BlockEnd)]


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[str]:
    """A server on loopback that lives as long as the block; gives host and port."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await handler(reader, writer)
            await reader.read()  # a server that hung up first could lose its own answer
        except (asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)


@asynccontextmanager
async def a_proxy(status: int = 200) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A proxy for CONNECT and for plain requests; gives its URL and the heads it saw."""
    heads: list[bytes] = []

    async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        heads.append(head)
        method, target, _ = head.split(b" ", 2)
        if status != 200:
            writer.write(f"HTTP/1.1 {status} No\r\ncontent-length: 0\r\n\r\n".encode())
            return
        where = target.decode() if method == b"CONNECT" else parse_target(target.decode()).authority.decode()
        host, _, port = where.partition(":")
        upstream, sink = await asyncio.open_connection(host, int(port))
        if method == b"CONNECT":
            writer.write(b"HTTP/1.1 200 Yes\r\n\r\n")
        else:
            sink.write(head.replace(target, b"/v1/messages", 1))
        try:
            await asyncio.gather(copy(reader, sink), copy(upstream, writer))
        finally:
            sink.transport.abort()

    async with serving(relay) as place:
        yield f"http://ann:p%40ss@{place}", heads


@pytest.mark.needs("openssl")
@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"])
async def test_a_server_with_a_private_ca_is_trusted_when_the_environment_names_it(
    certificate: Path, variable: str
) -> None:
    with anyio.fail_after(10):
        async with secure_server(certificate) as server:
            events = await everything(through(server, {variable: f"{certificate}.crt"}), question())

    assert said(events) == [Text("Hello")]


@pytest.mark.needs("openssl")
async def test_a_server_nobody_vouches_for_is_refused(certificate: Path) -> None:
    with anyio.fail_after(10):
        async with secure_server(certificate) as server:
            (failure,) = await everything(through(server, {}), question())

    assert isinstance(failure, StreamFailure)
    assert failure.kind == "connect"
    assert "CERTIFICATE_VERIFY_FAILED" in failure.message
    assert server.requests == []


@pytest.mark.needs("openssl")
async def test_a_secure_server_is_reached_through_a_proxy_and_the_tunnel_is_kept(certificate: Path) -> None:
    with anyio.fail_after(10):
        async with secure_server(certificate) as server, a_proxy() as (proxy, heads):
            env = {"HTTPS_PROXY": proxy, "SSL_CERT_FILE": f"{certificate}.crt"}
            provider = through(server, env)
            events = await everything(provider, question())
            again = await everything(provider, question())
            await provider.aclose()

    assert said(events) == said(again) == [Text("Hello")]
    assert len(heads) == 1
    assert heads[0].startswith(b"CONNECT localhost:")
    assert base64.b64encode(b"ann:p@ss") in heads[0]
    assert "proxy-authorization" not in server.requests[0].headers


async def test_a_plain_server_is_asked_through_the_proxy_itself() -> None:
    with anyio.fail_after(10):
        async with ModelServer([HELLO]) as server, a_proxy() as (proxy, heads):
            provider = through(server, {"http_proxy": proxy})
            events = await everything(provider, question())
            await provider.aclose()

    assert said(events) == [Text("Hello")]
    assert heads[0].startswith(b"POST http://localhost:")


async def test_a_proxy_that_refuses_is_named() -> None:
    with anyio.fail_after(10):
        async with a_proxy(status=407) as (proxy, _):
            transport = HttpClient({"HTTPS_PROXY": proxy})
            provider = Provider(APIS["anthropic"], Endpoint("https://localhost:1"), transport, retry=ONCE)
            (failure,) = await everything(provider, question())

    assert isinstance(failure, StreamFailure)
    assert "status 407" in failure.message
    assert "p@ss" not in failure.message
    assert "p%40ss" not in failure.message


SECURE = HttpTarget("https", "api.example.com", 443)


@pytest.mark.parametrize(
    ("env", "proxy"),
    [
        ({}, None),
        ({"HTTP_PROXY": "http://p:1"}, None),
        ({"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        ({"https_proxy": "p:1", "HTTPS_PROXY": "http://q:2"}, "http://p:1"),
        ({"ALL_PROXY": "https://p"}, "https://p"),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "example.com"}, None),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": ".example.com, other"}, None),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "*"}, None),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "example.com:443"}, None),
        ({"ALL_PROXY": "http://p:1", "NO_PROXY": "example.com:80,ample.com"}, "http://p:1"),
    ],
)
async def test_which_proxy_the_environment_asks_for(env: dict[str, str], proxy: str | None) -> None:
    found = proxy_for(SECURE, env)

    assert (found and found.url) == proxy


async def test_a_proxy_that_is_not_spoken_is_refused_with_a_reason() -> None:
    with pytest.raises(UrlError, match="SOCKS"):
        proxy_for(SECURE, {"ALL_PROXY": "socks5://p:1"})


@pytest.mark.parametrize(
    "url",
    [
        "socks5://me:hunter2@p:1",
        "http://me:hunter2@p:99999",
        "http://me:hunter2@p:0",
        "http://me:hunter2@p:port",
        "http://me:hunter2/x@p:1",
        "http://me:h@hunter2@[p",
        "http://me:hunter2@a..b",
        "ftp://me:hunter2@p",
        "me:hunter2@a..b",
    ],
)
async def test_no_error_shows_the_password_of_a_proxy(url: str) -> None:
    with pytest.raises(UrlError) as caught:
        proxy_for(SECURE, {"ALL_PROXY": url})

    assert "hunter2" not in str(caught.value)
    assert "me" not in str(caught.value).split("'")[1]


@pytest.mark.parametrize(
    "url", ["http://a..b", f"http://{'x' * 64}.de", "http://h:0", "http://a b", "http://\u00e9..b"]
)
async def test_a_place_that_cannot_exist_is_refused_before_it_is_called(url: str) -> None:
    with pytest.raises(UrlError, match="Give "):
        parse_target(url)


async def test_a_password_without_a_user_counts_as_one() -> None:
    assert parse_target("http://:pw@h").credentials == ":pw"


@pytest.mark.parametrize(
    ("base", "path", "url"),
    [
        ("https://api.anthropic.com", "/v1/messages", "https://api.anthropic.com/v1/messages"),
        ("https://api.anthropic.com/v1/", "/v1/messages", "https://api.anthropic.com/v1/messages"),
        ("http://h/v1", "/chat/completions", "http://h/v1/chat/completions"),
        ("http://h/v1/", "/responses", "http://h/v1/responses"),
    ],
)
async def test_base_url_and_path_are_joined_once(base: str, path: str, url: str) -> None:
    assert join(base, path) == url


async def test_a_server_that_refuses_before_reading_everything_is_heard() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Large\r\ncontent-length: 9\r\nconnection: close\r\n\r\ntoo large")

    with anyio.fail_after(10):
        async with serving(refuse) as place:
            provider = Provider(APIS["anthropic"], Endpoint(f"http://{place}"), HttpClient({}))
            (failure,) = await everything(provider, question("x" * 5_000_000))

    assert isinstance(failure, StreamFailure)
    assert (failure.kind, failure.message, failure.retryable) == ("http_413", "too large", False)


async def test_an_answer_without_length_ends_with_the_connection() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 200 OK\r\n\r\n")
        writer.write(b'{"type":"message","content":[{"type":"text","text":"Hello"}],"stop_reason":"end_turn"}')
        writer.write_eof()

    with anyio.fail_after(10):
        async with serving(answer) as place:
            provider = Provider(APIS["anthropic"], Endpoint(f"http://{place}"), HttpClient({}))
            events = await everything(provider, question())

    assert said(events) == [Text("Hello")]


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_provider_may_be_used_in_one_event_loop_after_another() -> None:
    transport = HttpClient({})
    port = 0

    async def ask() -> list[object]:
        nonlocal port
        async with ModelServer([HELLO], port=port) as server:
            port = int(server.url.rpartition(":")[2])
            provider = Provider(APIS["anthropic"], Endpoint(server.url), transport, retry=ONCE)
            return said(await everything(provider, question()))

    assert asyncio.run(ask()) == [Text("Hello")]
    assert asyncio.run(ask()) == [Text("Hello")]
    asyncio.run(transport.aclose())
    gc.collect()  # the connections left behind complain here, not in another test


async def test_idle_connections_close_with_the_provider() -> None:
    with anyio.fail_after(5):
        async with ModelServer([HELLO, HELLO]) as server:
            provider = asking(server)
            await everything(provider, question())
            await provider.aclose()
            await everything(provider, question())

    assert [request.connection for request in server.requests] == [1, 2]


def answering(heads: list[bytes], *answers: bytes) -> Handler:
    """Gives each connection the next answer, and keeps the head of its request."""
    left = iter(answers)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(next(left))

    return answer


def redirect(url: str, status: int = 302) -> bytes:
    return f"HTTP/1.1 {status} Moved\r\nlocation: {url}\r\ncontent-length: 0\r\n\r\n".encode()


def ok(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


def get(url: str) -> HttpRequest:
    return HttpRequest(
        url, (("authorization", "Bearer secret"), ("x-api-key", "secret"), ("accept", "*/*")), b"", "GET"
    )


async def test_a_whole_answer_is_read_up_to_its_bound() -> None:
    with anyio.fail_after(10):
        async with serving(answering([], ok(b"12345"), ok(b"123456"))) as place, HttpClient({}) as client:
            whole = await client.fetch(get(f"http://{place}/"), max_bytes=5)
            cut = await client.fetch(HttpRequest(f"http://{place}/", (), b"x"), max_bytes=5)

    assert (whole.status, whole.body, whole.cut) == (200, b"12345", False)
    assert (cut.status, cut.body, cut.cut) == (200, b"12345", True)


async def test_what_came_before_an_answer_broke_is_read_at_once_and_then_the_reason_is_told() -> None:
    answer = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\nno length\r\n"
    with anyio.fail_after(10):
        async with serving(answering([], answer)) as place, HttpClient({}) as client:
            response = await client.send(get(f"http://{place}/"))
            good = await response.read()
            with pytest.raises(TransportError, match="chunk header") as raised:
                await response.read()

    assert good == b"onetwo"
    assert raised.value.kind == "cut"


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_no_redirect_is_followed(method: str) -> None:
    with anyio.fail_after(10):
        async with serving(answering([], redirect("/b"))) as place, HttpClient({}) as client:
            request = HttpRequest(f"http://{place}/", (), b"", method)
            answer = await client.fetch(request, max_bytes=9)

    assert answer.status == 302


async def test_a_connection_is_used_again_for_another_path_of_the_same_server() -> None:
    connections: list[list[bytes]] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads: list[bytes] = []
        connections.append(heads)
        while True:
            heads.append((await reader.readuntil(b"\r\n\r\n")).split()[1])
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi")

    with anyio.fail_after(10):
        async with serving(answer) as place, HttpClient({}) as client:
            for path in ("a", "b?c"):
                assert (await client.fetch(get(f"http://{place}/{path}"), max_bytes=9)).body == b"hi"

    assert connections == [[b"/a", b"/b?c"]]


@pytest.mark.parametrize("together", [True, False])
async def test_a_connection_on_which_more_came_than_the_answer_is_not_used_again(together: bool) -> None:
    """Or its excess would be read as the answer to the next request."""
    connections = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.readuntil(b"\r\n\r\n")
        good, excess = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi", b"HTTP/1.1 200 OK\r\n\r\nforged"
        writer.write(good + excess if together else good)
        if not together:
            await answered.wait()
            writer.write(excess)
            await writer.drain()
            sent.set()

    answered, sent = asyncio.Event(), asyncio.Event()
    with anyio.fail_after(10):
        async with serving(answer) as place, HttpClient({}) as client:
            for _ in range(2):
                assert (await client.fetch(get(f"http://{place}/"), max_bytes=9)).body == b"hi"
                answered.set()
                if not together:
                    await sent.wait()
                    await anyio.wait_all_tasks_blocked()

    assert connections == 2


async def test_what_a_proxy_says_before_tls_is_not_taken_for_the_server() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 Yes\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged")

    with anyio.fail_after(10):
        async with serving(answer) as place, HttpClient({"HTTPS_PROXY": f"http://{place}"}) as client:
            with pytest.raises(TransportError, match="more than its answer"):
                await client.send(get("https://localhost:1/"))


async def test_a_silent_server_is_not_waited_for_longer_than_said() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    with anyio.fail_after(10):
        async with serving(silent) as place, HttpClient({}) as client:
            with pytest.raises(TimeoutError):
                await client.fetch(get(f"http://{place}/"), max_bytes=9, timeout=0.05)


async def test_a_header_that_cannot_be_sent_is_an_error_of_the_request() -> None:
    with anyio.fail_after(10):
        async with serving(answering([], ok(b""))) as place, HttpClient({}) as client:
            with pytest.raises(TransportError, match="header"):
                await client.send(HttpRequest(f"http://{place}/", (("a b", "c"),), b""))


async def test_this_machine_is_asked_directly_where_no_proxy_may_see_it() -> None:
    with anyio.fail_after(10):
        async with (
            a_proxy() as (proxy, heads),
            serving(answering([], ok(b"hi"), ok(b"hi"))) as place,
            HttpClient({"http_proxy": proxy}, proxy_loopback=False) as client,
        ):
            for host in (place, place.replace("127.0.0.1", "localhost")):
                assert (await client.fetch(get(f"http://{host}/"), max_bytes=9)).body == b"hi"

    assert heads == []


async def test_a_request_that_is_cancelled_before_it_is_sent_closes_the_connection_it_would_have_used() -> None:
    closed = asyncio.Event()

    async def answer_without_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n")
        await reader.read()
        closed.set()

    with anyio.fail_after(10):
        async with serving(answer_without_end) as place, HttpClient({}) as client:
            request = HttpRequest(f"http://{place}/", (), b"", "GET")
            response = await client.send(request)
            assert await response.read() == b"hi"
            response.leave()
            second = asyncio.create_task(client.send(request))
            await asyncio.sleep(0)  # it waits for the end of the first answer
            second.cancel()
            await asyncio.gather(second, return_exceptions=True)
            await closed.wait()

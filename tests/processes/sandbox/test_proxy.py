"""The proxy: allowed domains and nothing else, on loopback only."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from handrail.processes.sandbox.domains import address_refusal, refusal
from handrail.processes.sandbox.proxy import Proxy
from handrail.processes.sandbox.settings import Domain, read_settings
from tests.processes.sandbox.box import Box, run

LOOPBACK = Domain("127.0.0.0/8")


def domains(*texts: str) -> tuple[Domain, ...]:
    settings = read_settings({"network": {"allowedDomains": list(texts)}}, folder="/", home="/")
    assert not settings.problems
    return settings.network.allowed


@pytest.mark.parametrize(
    ("host", "port", "allowed", "denied", "reached"),
    [
        ("example.com", 443, ["example.com"], [], True),
        ("EXAMPLE.com.", 80, ["example.com"], [], True),
        ("a.example.com", 443, ["example.com"], [], False),
        ("a.b.example.com", 443, ["*.example.com"], [], True),
        ("example.com", 443, ["*.example.com"], [], False),
        ("evilexample.com", 443, ["*.example.com"], [], False),
        ("example.com", 22, ["example.com"], [], False),
        ("example.com", 8080, ["example.com:8080"], [], True),
        ("example.com", 443, ["example.com:8080"], [], False),
        ("example.com", 443, ["*"], [], True),
        ("example.com", 443, ["*"], ["example.com"], False),
        ("a.example.com", 443, ["a.example.com"], ["*.example.com"], False),
        ("10.1.2.3", 443, ["*"], [], False),
        ("10.1.2.3", 443, ["10.0.0.0/8"], [], True),
        ("10.1.2.3", 443, ["10.0.0.0/8"], ["10.1.0.0/16"], False),
        ("example.com", 443, [], [], False),
    ],
)  # fmt: skip
def test_which_hosts_are_reached(host: str, port: int, allowed: list[str], denied: list[str], reached: bool) -> None:
    assert (refusal(host, port, domains(*allowed), domains(*denied)) == "") is reached


@pytest.mark.parametrize(
    ("address", "allowed", "denied", "reached"),
    [
        ("203.0.113.1", ["example.com"], [], True),
        ("127.0.0.1", ["example.com"], [], False),
        ("169.254.169.254", ["*"], [], False),
        ("10.0.0.1", ["example.com", "10.0.0.0/8"], [], True),
        ("203.0.113.1", ["example.com"], ["203.0.113.0/24"], False),
    ],
)
def test_which_addresses_a_name_may_lead_to(address: str, allowed: list[str], denied: list[str], reached: bool) -> None:
    def public(text: str) -> bool:
        return text.startswith("203.")

    assert (address_refusal(address, domains(*allowed), domains(*denied), public) == "") is reached


class Server(BaseHTTPRequestHandler):
    """Answers with what it was asked."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        asked = f"{self.command} {self.path} host={self.headers['Host']} proxy={self.headers['Proxy-Authorization']}"
        text = f"{asked} body={body.decode()}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(address: str) -> Iterator[int]:
    with ThreadingHTTPServer((address, 0), Server) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


@pytest.fixture
def port() -> Iterator[int]:
    with serving("127.0.0.1") as port:
        yield port


@pytest.fixture
def proxy(port: int) -> Iterator[Proxy]:
    async def lookup(host: str, _port: int) -> list[str]:
        if host == "nowhere.test":
            raise OSError("no such name")
        return {"rebound.test": ["203.0.113.9", "169.254.169.254"]}.get(host, ["127.0.0.1"])

    allowed = (Domain("good.test", port), Domain("*.test"), LOOPBACK, Domain("good.test", 1))
    with closing(Proxy(allowed, (Domain("denied.test"),), lambda a: a.startswith("203."), lookup)) as made:
        yield made


def talk(proxy: Proxy, *parts: str) -> str:
    """Everything the proxy answers to these bytes, until it closes."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(proxy.path)
        connection.sendall("".join(parts).replace("\n", "\r\n").encode())
        answer = b""
        while data := connection.recv(65536):
            answer += data
        return answer.decode()


def test_a_plain_request_is_passed_on_with_the_judged_host_alone(proxy: Proxy, port: int) -> None:
    answer = talk(
        proxy,
        f"POST http://good.test:{port}/a?b=1 HTTP/1.1\nHost: denied.test\n",
        "Proxy-Authorization: x\nContent-Length: 2\n\nhi",
        f"GET http://good.test:{port}/second HTTP/1.1\nHost: denied.test\n\n",
    )

    assert answer.endswith(f"POST /a?b=1 host=good.test:{port} proxy=None body=hi")
    assert "second" not in answer


def test_a_tunnel_carries_bytes_both_ways(proxy: Proxy, port: int) -> None:
    answer = talk(
        proxy,
        f"CONNECT good.test:{port} HTTP/1.1\n\n",
        "GET /inside HTTP/1.0\nHost: x\n\n",
    )

    assert answer.startswith("HTTP/1.1 200 ")
    assert "GET /inside host=x" in answer


@pytest.mark.parametrize(
    ("request_text", "status", "why"),
    [
        ("CONNECT denied.test:443 HTTP/1.1\n\n", 403, "denied by sandbox.network.deniedDomains"),
        ("CONNECT other.example:443 HTTP/1.1\n\n", 403, "not among sandbox.network.allowedDomains"),
        ("CONNECT good.test:22 HTTP/1.1\n\n", 403, "good.test:22 is not among"),
        ("CONNECT rebound.test:443 HTTP/1.1\n\n", 403, "leads to 169.254.169.254"),
        ("CONNECT 169.254.169.254:80 HTTP/1.1\n\n", 403, "not among"),
        ("CONNECT nowhere.test:443 HTTP/1.1\n\n", 502, "could not be looked up"),
        ("CONNECT good.test:1 HTTP/1.1\n\n", 502, "does not answer"),
        ("CONNECT good.test:x HTTP/1.1\n\n", 400, "names no host"),
        ("CONNECT  HTTP/1.1\n\n", 400, "names no host"),
        ("GET /relative HTTP/1.1\n\n", 400, "not a http:// URL"),
        ("GET ftp://good.test/ HTTP/1.1\n\n", 400, "not a http:// URL"),
        ("POST http://good.test/ HTTP/1.1\nTransfer-Encoding: chunked\n\n", 411, "Content-Length"),
        ("hello\n\n", 400, "not a HTTP/1 request"),
    ],
)
def test_what_may_not_pass_is_answered_with_the_reason(proxy: Proxy, request_text: str, status: int, why: str) -> None:
    answer = talk(proxy, request_text)

    assert answer.startswith(f"HTTP/1.1 {status} ")
    assert why in answer


def test_closing_ends_open_connections(proxy: Proxy, port: int) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(proxy.path)
        connection.sendall(f"CONNECT good.test:{port} HTTP/1.1\r\n\r\n".encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 200")

        proxy.close()

        assert connection.recv(100) == b""
    proxy.close()


FETCH = 'python3 -c "import sys,urllib.request as u; print(u.urlopen(sys.argv[1], timeout=10).read().decode())"'


@pytest.mark.needs("bwrap")
def test_a_sandboxed_program_reaches_allowed_domains_and_no_others(box: Box) -> None:
    with serving("127.0.0.2") as port:
        box.section = {"network": {"allowedDomains": [f"127.0.0.2:{port}"]}}
        with closing(box.sandbox()) as sandbox:
            reached = run(sandbox, f"{FETCH} http://127.0.0.2:{port}/", box.project)
            not_reached = run(sandbox, f"{FETCH} http://127.0.0.3:{port}/", box.project)
            direct = run(sandbox, f"no_proxy='*' {FETCH} http://127.0.0.2:{port}/", box.project)

    assert reached.stdout.startswith("GET / host=127.0.0.2")
    assert "403" in not_reached.stdout
    assert "refused" in direct.stdout


@pytest.mark.needs("bwrap")
def test_the_relay_does_not_keep_the_output_open(box: Box) -> None:
    box.section = {"network": {"allowedDomains": ["example.com"]}}

    done = box.run("echo $HTTPS_PROXY; exit 3")

    assert (done.returncode, done.stdout) == (3, "http://127.0.0.1:3128\n")

"""Policy from a server: a good answer counts and is kept; whatever else it says, nothing is widened."""

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from handrail.config.policy_url import address_problem, policy_from
from handrail.config.problems import Problem
from handrail.errors import SettingsError
from tests.config.world import World

GOOD = b'{"permissions": {"deny": ["Bash"]}}'
WIDE = b'{"permissions": {"allow": ["Bash"]}}'


def answer(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


class Server:
    """Answers each connection on loopback with the bytes that are due; None = it never says anything."""

    def __init__(self) -> None:
        self.says: bytes | None = answer(GOOD)
        self.asked: list[bytes] = []
        self._over = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/policy?of=us"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                peer, _ = self._socket.accept()
            except OSError:
                return
            with closing(peer):
                self.asked.append(peer.recv(65_536))
                if self.says is None:
                    self._over.wait(20)
                else:
                    try:
                        peer.sendall(self.says)
                    except OSError:
                        continue

    def close(self) -> None:
        self._over.set()
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(5)


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


def kept(world: World) -> list[Path]:
    return list((world.places.state / "policy").glob("*"))


@pytest.mark.proves("G19")
def test_policy_comes_from_the_address_that_policy_names_and_is_kept_for_its_owner(
    world: World, server: Server
) -> None:
    world.write("policy", {"policyUrl": server.url})

    settings = world.gather()

    assert settings.get_managed("permissions", "deny") == ["Bash"]
    assert settings.problems == ()
    assert server.asked[0].startswith(b"GET /policy?of=us HTTP/1.1\r\n")
    [copy] = kept(world)
    assert copy.stat().st_mode & 0o777 == 0o600
    assert copy.parent.stat().st_mode & 0o777 == 0o700


HOSTILE = {
    "huge": answer(b'{"x": "' + b"y" * 4_000_100 + b'"}'),
    "endless headers": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1_000,
    "redirect": answer(WIDE, "302 Found", "Location: https://example.com/"),
    "failing": answer(WIDE, "500 Internal Server Error"),
    "gone": answer(WIDE, "404 Not Found"),
    "no content": answer(b"", "204 No Content"),
    "part": answer(WIDE, "206 Partial Content"),
    "html": answer(b"<html>sign in</html>", "200 OK", "Content-Type: text/html"),
    "a list": answer(b'["Bash"]'),
    "comments": answer(b'{"permissions": {} /* hi */}'),
    "a key twice": answer(b'{"permissions": {"deny": []}, "permissions": {"allow": ["Bash"]}}'),
    "wrong kind": answer(b'{"permissions": {"deny": "Bash", "allow": [5]}}'),
    "not text": answer(b'{"model": "\xff\xfe"}'),
    "deep": answer(b'{"x": ' + b"[" * 5_000 + b"]" * 5_000 + b"}"),
    "cut": answer(WIDE)[:-4],
    "cut chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n24\r\n{}",
    "not http": b"SSH-2.0-OpenSSH\r\n",
    "nothing": b"",
}


@pytest.mark.proves("G19")
@pytest.mark.parametrize("says", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_answer_is_no_policy_and_never_replaces_the_last_good_one(
    world: World, server: Server, says: bytes
) -> None:
    world.write("policy", {"policyUrl": server.url})
    server.says = says
    with pytest.raises(SettingsError, match=r"no earlier copy\. Nothing runs without it; ask"):
        world.gather()
    assert kept(world) == []

    server.says = answer(GOOD)
    world.gather()
    server.says = says
    settings = world.gather()

    assert settings.get_managed("permissions") == {"deny": ["Bash"]}
    [problem] = settings.problems
    assert "gave no policy: " in str(problem)
    assert str(problem).endswith("The copy from less than a minute ago is used.")


@pytest.mark.parametrize("says", [None, b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{"], ids=["silent", "slow"])
def test_a_server_that_takes_its_time_is_not_waited_for(world: World, server: Server, says: bytes | None) -> None:
    server.says = says
    news: list[Problem] = []

    with pytest.raises(SettingsError, match=r"gave no policy: "):
        policy_from(server.url, world.places.state, {}, news, timeout=0.3)


def test_a_server_elsewhere_is_reached_through_the_proxy(world: World, server: Server) -> None:
    proxy = server.url.removesuffix("/policy?of=us")
    server.says = answer(WIDE, "407 Proxy Authentication Required")

    with pytest.raises(SettingsError, match=r"the proxy refused with status 407"):
        policy_from("https://policy.example/p.json", world.places.state, {"https_proxy": proxy}, [])

    assert server.asked[0].startswith(b"CONNECT policy.example:443 HTTP/1.1\r\n")


def test_the_age_of_a_copy_is_said(world: World, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    news: list[Problem] = []
    policy_from(server.url, world.places.state, {}, news)
    server.says = b""
    now = time.time()
    for seconds, said in ((70, "1 minute"), (2 * 3600, "2 hours"), (90 * 3600, "3 days")):
        monkeypatch.setattr("handrail.config.policy_url.time.time", lambda later=seconds: now + later)
        policy_from(server.url, world.places.state, {}, news)
        assert f"The copy from {said} ago is used." in str(news[-1])


def test_a_copy_that_somebody_else_could_have_written_ends_the_program(world: World, server: Server) -> None:
    world.write("policy", {"policyUrl": server.url})
    world.gather()
    [copy] = kept(world)
    server.says = b""
    good = copy.read_bytes()

    def refused() -> str:
        with pytest.raises(SettingsError, match="Nothing runs without it") as caught:
            world.gather()
        return str(caught.value)

    copy.chmod(0o666)
    assert "another user could have written it" in refused()
    copy.unlink()
    elsewhere = world.root / "elsewhere"
    elsewhere.write_bytes(good)
    copy.symlink_to(elsewhere)
    assert "cannot be used" in refused()
    copy.unlink()
    os.mkfifo(copy, 0o600)
    assert "another user could have written it" in refused()
    copy.unlink()
    for text in (b"", b"[]", b"{}", json.dumps({**json.loads(good), "url": "http://127.0.0.1/"}).encode()):
        copy.write_bytes(text)
        copy.chmod(0o600)
        assert "cannot be used" in refused()


def test_a_state_folder_that_cannot_be_written_is_said_and_the_policy_counts(world: World, server: Server) -> None:
    world.write("policy", {"policyUrl": server.url})
    world.places.state.rmdir()
    world.places.state.write_text("")  # a file in its place

    settings = world.gather()

    assert settings.get_managed("permissions", "deny") == ["Bash"]
    assert "no copy of this policy can be kept" in str(settings.problems[0])


@pytest.mark.parametrize(
    ("url", "may"),
    [
        ("https://policy.example/p.json", True),
        ("http://127.0.0.1:8/p", True),
        ("http://127.9.9.9/p", True),
        ("http://[::1]:8/p", True),
        ("http://localhost/p", True),
        ("http://policy.example/p", False),
        ("http://localhost.example.com/p", False),
        ("http://127.0.0.1.example.com/p", False),
        ("http://2130706433/p", False),
        ("http://10.0.0.1/p", False),
        ("http://127.0.0.1@policy.example/", False),
        ("https://user:secret@policy.example/", False),
        ("file:///etc/policy.json", False),
        ("ftp://127.0.0.1/", False),
        ("/etc/policy.json", False),
        ("https:///p", False),
        ("https://policy.example:0/", False),
        ("https://policy.example:99999/", False),
        ("https://policy.example/a b", False),
        ("https://policy.example/\r\nX: y", False),
        ("", False),
    ],
)
def test_policy_comes_over_https_or_from_this_machine(world: World, url: str, may: bool) -> None:
    assert (address_problem(url) == "") is may
    if not may:
        world.write("policy", {"policyUrl": url})
        with pytest.raises(SettingsError, match=r"policyUrl .* cannot be used"):
            world.gather()


def test_the_address_counts_in_policy_files_only_and_not_in_what_a_server_says(world: World, server: Server) -> None:
    world.write("user", {"policyUrl": server.url})
    world.gather()
    assert server.asked == []

    world.write("policy", {"policyUrl": server.url})
    server.says = answer(json.dumps({"policyUrl": "https://other.example/"}).encode())
    world.gather()
    assert len(server.asked) == 1


def test_a_session_asks_the_server_once(world: World, server: Server) -> None:
    world.write("policy", {"policyUrl": server.url})
    live = world.live()
    live.policy()
    server.says = answer(WIDE)
    world.write("user", {"permissions": {"deny": ["Glob"]}})

    assert [rule.text for rule in live.policy().rules] == ["Bash", "Glob"]
    assert len(server.asked) == 1

"""Bash in a sandbox with allowed domains: real programs against real servers on the loopback, and no way around."""

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from handrail.tools.outcome import Status
from tests.session.test_sandbox import World, world

__all__ = ["world"]

pytestmark = [pytest.mark.anyio, pytest.mark.needs("bwrap")]

ALLOWED, DENIED = "127.0.0.2", "127.0.0.3"
CURL = "curl -sS -f --max-time 10"
PYTHON = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=10).read().decode())"
RAW = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 10); print('reached')"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(folder: Path) -> Iterator[int]:
    """The files of a folder on all addresses of the loopback."""
    with ThreadingHTTPServer(("0.0.0.0", 0), partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


@pytest.fixture
def port(world: World) -> Iterator[int]:
    """A server with a page and a repository, and a session that may reach it by one address."""
    site = world.root / "site"
    site.mkdir()
    (site / "page").write_text("the page")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "init.defaultBranch=main"]
    made = site / "made"
    for words in (["init", "-q", str(made)], ["-C", str(made), "commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    subprocess.run(["git", "-C", str(made), "update-server-info"], check=True)
    (made / ".git").rename(site / "repo.git")
    with serving(site) as port:
        world.begin({"enabled": True, "network": {"allowedDomains": [f"{ALLOWED}:{port}"]}})
        world.agrees = True
        yield port


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param(f"{CURL} http://{ALLOWED}:PORT/page", "the page", id="curl"),
        pytest.param(f"{CURL} -p http://{ALLOWED}:PORT/page", "the page", id="curl by CONNECT"),
        pytest.param(f'python3 -c "{PYTHON}" http://{ALLOWED}:PORT/page', "the page", id="python"),
        pytest.param(f"git ls-remote http://{ALLOWED}:PORT/repo.git", "refs/heads/main", id="git"),
    ],
)
async def test_programs_reach_an_allowed_domain(world: World, port: int, text: str, shown: str) -> None:
    outcome = await world.bash(world.script(text.replace("PORT", str(port))))

    assert (outcome.status, shown in outcome.result.text) == (Status.OK, True), outcome.result.text


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"{CURL} http://{DENIED}:PORT/page", id="curl"),
        pytest.param(f"{CURL} -p http://{DENIED}:PORT/page", id="curl by CONNECT"),
        pytest.param(f'python3 -c "{PYTHON}" http://{DENIED}:PORT/page', id="python"),
        pytest.param(f"git ls-remote http://{DENIED}:PORT/repo.git", id="git"),
    ],
)
async def test_any_other_is_refused_and_the_model_learns_why(world: World, port: int, text: str) -> None:
    outcome = await world.bash(world.script(text.replace("PORT", str(port))))

    assert outcome.status is Status.ERROR
    assert "the page" not in outcome.result.text
    assert f"The sandbox stopped this: {DENIED}:{port} is not among sandbox.network.allowedDomains" in (
        outcome.result.text
    )
    assert f"Only {ALLOWED} can be reached" in outcome.result.text


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"{CURL} --noproxy '*' http://{ALLOWED}:PORT/page", id="curl"),
        pytest.param(f'python3 -c "{RAW}" {ALLOWED} PORT', id="a socket"),
        pytest.param(f'python3 -c "{RAW}" 127.0.0.1 PORT', id="the loopback"),
        pytest.param(f"bash -c 'exec 3<>/dev/tcp/{ALLOWED}/PORT && echo reached'", id="bash"),
        pytest.param("test $(grep -c : /proc/net/dev) != 1 && echo reached; false", id="an interface"),
    ],
)
async def test_there_is_no_way_around_the_proxy(world: World, port: int, text: str) -> None:
    outcome = await world.bash(world.script(text.replace("PORT", str(port))))

    assert outcome.status is Status.ERROR
    assert "the page" not in outcome.result.text
    assert "reached" not in outcome.result.text.replace("can be reached", "")


async def test_a_failure_that_has_nothing_to_do_with_it_is_not_blamed_on_an_earlier_refusal(
    world: World, port: int
) -> None:
    await world.bash(world.script(f"curl -s http://{DENIED}:{port}/page"))

    outcome = await world.bash(world.script("echo 403; false"))

    assert (outcome.status, "sandbox" in outcome.result.text) == (Status.ERROR, False)

"""`handrail mcp login`: a sign-in in a browser, at a real authorization server on loopback, and what it is good for."""

import json
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from tests.mcp.oauth.authorization_server import Site, running_site

pytestmark = pytest.mark.anyio
BROWSER = """#!{python}
import sys, urllib.request
urllib.request.urlopen(sys.argv[1]).read()
"""


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    browser = tmp_path / "browser"
    browser.write_text(BROWSER.format(python=sys.executable))
    browser.chmod(0o755)
    (tmp_path / "home").mkdir()
    state = {"HOME": str(tmp_path / "home"), "HANDRAIL_STATE_DIR": str(tmp_path / "state")}
    return {**state, "PATH": "/usr/bin:/bin", "BROWSER": f"{browser} %s"}


async def handrail(env: dict[str, str], cwd: Path, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    with anyio.fail_after(60):
        words = [sys.executable, "-m", "handrail", "mcp", *arguments]
        return await anyio.run_process(words, env=env, cwd=cwd, check=False)


async def test_after_a_sign_in_the_server_can_be_used_until_it_is_forgotten(
    tmp_path: Path, env: dict[str, str]
) -> None:
    async with running_site(Site()) as site:
        refused = await handrail(env, tmp_path, "list", site.mcp)
        signed_in = await handrail(env, tmp_path, "login", site.mcp, "--json")
        called = await handrail(env, tmp_path, "call", site.mcp, "whoami")
        forgotten = await handrail(env, tmp_path, "logout", site.mcp)
        again = await handrail(env, tmp_path, "call", site.mcp, "whoami")

    assert refused.returncode == 2
    assert f"handrail mcp login {site.mcp}".encode() in refused.stderr
    assert json.loads(signed_in.stdout) == {
        "server": "127.0.0.1",
        "signed_in": True,
        "issuer": site.base,
        "tools": 1,
    }, signed_in.stderr
    assert site.base.encode() in signed_in.stderr, "the address to visit is printed, too"
    assert (called.returncode, called.stdout) == (0, b"you\n")
    assert (forgotten.returncode, again.returncode) == (0, 2)

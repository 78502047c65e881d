"""`handrail mcp serve` as clients start it: a process, by pipe and over HTTP."""

import json
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from handrail import tool
from handrail.cli.main import run
from handrail.gateway import McpServer, current_client
from handrail.gateway.client_rules import read_clients
from handrail.serve.guard import token_digest
from mcp import Client, StdioServerParameters, types
from tests.forked import unmeasured
from tests.gateway.clients import TOKENS, answering, sdk_client, text_of, url_of

HANDRAIL = [sys.executable, "-m", "handrail", "mcp", "serve"]
MODULE = '''
"""A user's own tools."""

from handrail import tool
from handrail.gateway import McpServer

print("importing prints")


@tool(read_only=True)
async def shout(text: str) -> str:
    """Says it louder."""
    print("tools print too")
    return text.upper()


server = McpServer("mine")


@server.prompt()
def greet(name: str) -> str:
    """Greets."""
    return f"Hello {name}"
'''


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "HANDRAIL_STATE_DIR": str(folder / "state"), "HOME": str(folder)}


@pytest.mark.anyio
async def test_a_client_starts_us_and_uses_built_in_tools_under_the_rules_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("one\n")
    (tmp_path / "secret.txt").write_text("hidden\n")
    asked: list[str] = []
    person = answering("accept", {"decision": "allow"}, asked)
    arguments = [*HANDRAIL[1:], "--disallowedTools", "Read(secret.txt)"]
    command = StdioServerParameters(command=HANDRAIL[0], args=arguments, env=environment(tmp_path), cwd=tmp_path)
    with anyio.fail_after(120):
        async with Client(command, mode="legacy", elicitation_callback=person) as client:
            hints = {each.name: each.annotations for each in (await client.list_tools()).tools}
            read = await client.call_tool("Read", {"file_path": "notes.txt"})
            hidden = await client.call_tool("Read", {"file_path": "secret.txt"})
            written = await client.call_tool("Write", {"file_path": "notes.txt", "content": "two\n"})
    assert {"Bash", "Read", "Write", "Edit", "Glob", "Grep"} <= hints.keys()
    assert "Agent" not in hints
    assert hints["Read"] == types.ToolAnnotations(read_only_hint=True)
    assert "one" in text_of(read)
    assert hidden.is_error
    assert not written.is_error, text_of(written)
    assert (tmp_path / "notes.txt").read_text() == "two\n"
    assert len(asked) == 1
    assert "notes.txt" in asked[0]


@pytest.mark.anyio
async def test_tools_and_prompts_of_a_module_are_served_and_what_they_print_breaks_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MODULE)
    arguments = [*HANDRAIL[1:], "--tools", "mine"]
    command = StdioServerParameters(command=HANDRAIL[0], args=arguments, env=environment(tmp_path), cwd=tmp_path)
    with anyio.fail_after(120):
        async with Client(command) as client:
            names = [each.name for each in (await client.list_tools()).tools]
            result = await client.call_tool("shout", {"text": "hey"})
            prompt = await client.get_prompt("greet", {"name": "Ann"})
    assert names == ["shout"]
    assert text_of(result) == "HEY"
    assert "Hello Ann" in prompt.model_dump_json()


@pytest.mark.anyio
async def test_a_gateway_that_is_configured_behind_itself_starts_once(tmp_path: Path) -> None:
    entry = {"command": HANDRAIL[0], "args": [*HANDRAIL[1:], "--gateway", "--trust"]}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"self": entry}}))
    command = StdioServerParameters(**entry, env=environment(tmp_path), cwd=tmp_path)
    with anyio.fail_after(120):
        async with Client(command) as client:
            assert (await client.list_tools()).tools == []


@pytest.mark.parametrize(
    ("written", "answer"),
    [
        pytest.param(None, "", id="no client"),
        pytest.param('{"jsonrpc": "2.0", "id": 1, "method": "ping"}', '"result":{}', id="a file of requests"),
    ],
)
def test_standard_input_that_is_no_pipe_is_read_to_its_end(written: str | None, answer: str, tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.write_text(written or "")
    with (given if written else Path(os.devnull)).open() as source:
        ended = subprocess.run(
            HANDRAIL, stdin=source, cwd=tmp_path, env=environment(tmp_path), capture_output=True, timeout=60, check=True
        )
    assert ended.stderr == b""
    assert answer in ended.stdout.decode()


@contextmanager
def http_server(folder: Path, *flags: str, **env: str) -> Iterator[dict[str, Any]]:
    """What a server says of itself as it begins; it ends by a signal, and leaves with its code."""
    command = [*HANDRAIL, "--http", "--json", *flags]
    with subprocess.Popen(command, cwd=folder, env=environment(folder) | env, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 143


@pytest.mark.anyio
async def test_over_http_a_new_token_is_needed_unless_clients_have_their_own(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MODULE)
    clients = {
        "ann": {"token": "${ANN}", "allow": ["shout"]},
        "ben": {"tokenSha256": token_digest(TOKENS["ben"]), "deny": ["shout"]},
    }
    (tmp_path / "clients.json").write_text(json.dumps({"clients": clients}))
    with anyio.fail_after(120):
        with http_server(tmp_path, "--tools", "mine") as told:
            async with sdk_client(told["url"], "auto", told["token"]) as client:
                assert text_of(await client.call_tool("shout", {"text": "hey"})) == "HEY"
        with http_server(tmp_path, "--tools", "mine", "--clients", "clients.json", ANN=TOKENS["ann"]) as told:
            assert told["clients"] == ["ann", "ben"]
            async with sdk_client(told["url"], "auto", TOKENS["ann"]) as client:
                assert text_of(await client.call_tool("shout", {"text": "hey"})) == "HEY"
            async with sdk_client(told["url"], "auto", TOKENS["ben"]) as client:
                assert (await client.list_tools()).tools == []


@pytest.mark.anyio
@pytest.mark.needs("openssl")
async def test_beyond_this_machine_clients_come_with_tls_by_the_names_of_the_certificate(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MODULE)
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    request = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([*request, *names, "-keyout", key, "-out", cert], check=True, capture_output=True)
    flags = ["--tools", "mine", "--host", "0.0.0.0", "--tls-cert", str(cert), "--tls-key", str(key)]
    trusted = ssl.create_default_context(cafile=str(cert))
    with anyio.fail_after(120), http_server(tmp_path, *flags, "--name", "localhost") as told:
        assert told["url"].startswith("https://localhost:")
        async with sdk_client(told["url"], "auto", told["token"], verify=trusted) as client:
            assert text_of(await client.call_tool("shout", {"text": "hey"})) == "HEY"
        async with httpx2.AsyncClient(verify=trusted, trust_env=False) as http:
            at_address = told["url"].replace("localhost", "127.0.0.1")
            named = [await http.post(url) for url in (told["url"], at_address)]
            foreign = await http.post(told["url"], headers={"host": "evil.test"})
        assert [each.status_code for each in (*named, foreign)] == [401, 401, 421]


@pytest.mark.anyio
async def test_a_server_that_is_not_configured_is_listed_and_called_by_its_address(tmp_path: Path) -> None:
    @tool
    async def book() -> str:
        """Books seats."""
        said = await current_client().elicit("How many?", {"seats": {"type": "integer", "default": 3}}, key="seats")
        return f"{said.action} {(said.content or {}).get('seats', '')}".strip()

    async def handrail(*words: str) -> str:
        env = {**unmeasured(), "HOME": str(tmp_path), "HANDRAIL_STATE_DIR": str(tmp_path / "state")}
        done = await anyio.run_process([sys.executable, "-m", "handrail", "mcp", *words], env=env, cwd=tmp_path)
        return done.stdout.decode().strip()

    with anyio.fail_after(90):
        async with url_of(McpServer(tools=[book], allow=["book"], cwd=tmp_path)) as url:
            assert await handrail("list", url) == "book  Books seats."
            for way, answer in (("accept-defaults", "accept 3"), ("decline", "decline"), ("cancel", "cancel")):
                assert await handrail("call", url, "book", "{}", "--elicitation", way) == answer


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        pytest.param(["--port", "8000"], "--port is for --http", id="a port without HTTP"),
        pytest.param(["--json"], "--json is for --http", id="an announcement where clients read"),
        pytest.param(["--http", "--host", "0.0.0.0"], "needs TLS", id="beyond loopback without TLS"),
        pytest.param(["--http", "--host", "0.0.0.0", "--no-token"], "needs TLS", id="nor without a token"),
        pytest.param(["--mcp-config", "{}"], "add --gateway", id="servers without a gateway"),
        pytest.param(["--tools", "no_such_module"], "cannot be imported", id="a module that is not there"),
        pytest.param(["--tools", "json"], "defines no tools", id="a module without tools"),
        pytest.param(["--disallowedTools", "Read("], "Read(", id="a deny rule that is not understood"),
    ],
)
def test_flags_that_do_not_fit_are_refused(flags: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["mcp", "serve", *flags]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        pytest.param({}, "has no token", id="no token"),
        pytest.param({"token": "short"}, "too short", id="a token that can be guessed"),
        pytest.param({"token": "${NOT_SET}-long-enough-for-all"}, "NOT_SET", id="a variable that is not set"),
        pytest.param({"token": "x" * 20, "alow": []}, "'alow'", id="a key that is not known"),
        pytest.param({"token": "x" * 20, "deny": ["Read("]}, "Read(", id="a rule that is not understood"),
        pytest.param({"token": "x" * 20, "mode": "bypassPermissions"}, "mode", id="a mode that asks nothing"),
    ],
)
def test_a_file_of_clients_that_is_not_understood_opens_nothing(
    entry: dict[str, Any], says: str, tmp_path: Path
) -> None:
    file = tmp_path / "clients.json"
    file.write_text(json.dumps({"clients": {"ann": entry}}))
    with pytest.raises(Exception, match=says.replace("$", r"\$").replace("(", r"\(")):
        read_clients(file, {})

"""What MCP servers may not do: share a name, inherit secrets, leave processes behind."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.mcp.environment import basic_environment
from handrail.mcp.messages import Message
from handrail.session.servers.servers import Servers
from handrail.tools.mcp_names import server_name, tool_name
from tests.processes.seen import read_pipe

pytestmark = pytest.mark.anyio

SERVER = """
import json, os, subprocess, sys
fifo, seen = sys.argv[1:3]
child = subprocess.Popen(["sleep", "600"], start_new_session=True, stdout=subprocess.DEVNULL)
twice = "import os,time; os.fork() and os._exit(0); os.setsid(); print(os.getpid(), flush=True); time.sleep(600)"
other = subprocess.Popen([sys.executable, "-c", twice], stdout=subprocess.PIPE).stdout.readline().decode().strip()
open(seen, "w").write(json.dumps(dict(os.environ)))
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
        if message["method"] == "initialize":
            open(fifo, "w").write(f"{os.getpid()} {child.pid} {other}")
"""
SECRETS = {
    "ANTHROPIC_API_KEY": "key-of-the-model", "OPENAI_API_KEY": "x", "GITHUB_TOKEN": "x", "AWS_SECRET_ACCESS_KEY": "x",
    "DATABASE_URL": "postgres://me:secret@db", "LD_PRELOAD": "", "NODE_OPTIONS": "", "HANDRAIL_CONFIG_DIR": "/c",
    "HTTPS_PROXY": "http://me:secret@proxy:1", "SSH_AUTH_SOCK": "/agent",
}  # fmt: skip


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def server_entry(folder: Path) -> dict[str, Any]:
    script = folder / "server.py"
    script.write_text(SERVER)
    os.mkfifo(folder / "pids")
    args = [str(script), str(folder / "pids"), str(folder / "env.json")]
    return {"command": sys.executable, "args": args, "env": {"DB": "${GITHUB_TOKEN}", "MODE": "ro"}}


@pytest.mark.proves("X22", "R8")
async def test_a_server_gets_the_basics_and_its_entry_and_its_detached_children_end_with_the_session(
    tmp_path: Path,
) -> None:
    basics = {"PATH": os.environ["PATH"], "HOME": "/home/me", "LC_ALL": "C.UTF-8", "https_proxy": "http://proxy:1"}
    # what begins like a variable of the language gets through ssh, so that secrets are given such names
    servers = Servers({**SECRETS, **basics, "LC_TOKEN": "secret"}, tmp_path)
    servers.add({"s": server_entry(tmp_path)}, "flag")

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(servers.connect)
            pids = await anyio.to_thread.run_sync(read_pipe, tmp_path / "pids")
        started = [int(pid) for pid in pids.split()]
        alive = [is_alive(pid) for pid in started]
        await servers.aclose()

    assert alive == [True, True, True]
    assert [is_alive(pid) for pid in started] == [False, False, False]
    seen = json.loads((tmp_path / "env.json").read_text())
    here = {"CLAUDE_PROJECT_DIR": str(tmp_path), "HANDRAIL_PROJECT_DIR": str(tmp_path)}
    assert {name: seen[name] for name in seen if name != "LC_CTYPE"} == {**basics, **here, "DB": "x", "MODE": "ro"}


@pytest.mark.proves("X22", "R8")
async def test_servers_and_their_detached_children_end_when_the_session_is_killed(tmp_path: Path) -> None:
    program = (
        "import asyncio, json, os, pathlib, sys\n"
        "from handrail.session.servers.servers import Servers\n"
        "async def main():\n"
        "    servers = Servers(dict(os.environ), pathlib.Path(sys.argv[1]))\n"
        "    servers.add({'s': json.loads(sys.argv[2])}, 'flag')\n"
        "    await servers.connect()\n"
        "    await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    entry = json.dumps(server_entry(tmp_path))
    with anyio.fail_after(60):
        session = subprocess.Popen([sys.executable, "-c", program, str(tmp_path), entry])
        pids = await anyio.to_thread.run_sync(read_pipe, tmp_path / "pids")
        session.send_signal(signal.SIGKILL)
        session.wait()
        while any(map(is_alive, map(int, pids.split()))):
            await anyio.sleep(0.02)


@pytest.mark.proves("X22")
@pytest.mark.parametrize(
    ("servers", "offered", "note"),
    [
        pytest.param({"s": ["a.b", "a b", "c"]}, ["mcp__s__c"], "have the name 'mcp__s__a_b'", id="in one server"),
        pytest.param({"s": ["a", "a"]}, [], "2 of its tools would have the name", id="listed twice"),
        pytest.param({"a": ["b__c"], "a__b": ["c"]}, ["mcp__a__b__c", "mcp__a_b__c"], "", id="split elsewhere"),
        pytest.param({"a.b": ["t"], "a b": ["t"]}, ["mcp__a_b__t"], "rules cannot tell its name", id="two servers"),
        pytest.param({"s": ["ä", "ö", "ok"]}, ["mcp__s__ok"], "would have the name 'mcp__s___'", id="other letters"),
    ],
)
async def test_names_that_become_the_same_are_refused_and_said(
    servers: dict[str, list[str]], offered: list[str], note: str
) -> None:
    async def carry(name: str, message: Message) -> Message:
        tools = [{"name": tool, "inputSchema": {"type": "object"}} for tool in servers[name]]
        return {"jsonrpc": "2.0", "id": message.get("id"), "result": {"capabilities": {"tools": {}}, "tools": tools}}

    connected = Servers({}, Path("/"), carry=carry)
    connected.add({name: {"type": "sdk"} for name in servers}, "flag")
    notes = await connected.connect()

    assert sorted(tool.name for tool in connected.tools) == offered
    assert note in " ".join(notes)
    assert bool(notes) == bool(note)


NAMES = st.text(st.sampled_from("ab_- .ä"), min_size=1, max_size=6)


@given(NAMES, NAMES, NAMES, NAMES)
def test_servers_that_rules_tell_apart_never_share_the_name_of_a_tool(a: str, b: str, tool: str, other: str) -> None:
    if server_name(a) != server_name(b):
        assert tool_name(a, tool) != tool_name(b, other)


@given(st.dictionaries(st.sampled_from([*SECRETS, "PATH", "HOME", "MY_TOKEN", "PGPASSWORD"]), st.text(max_size=5)))
def test_no_secret_is_a_basic_variable(env: dict[str, str]) -> None:
    assert basic_environment(env).keys() <= {"PATH", "HOME", "HTTPS_PROXY"}

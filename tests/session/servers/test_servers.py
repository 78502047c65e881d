"""MCP servers of a session, by their configuration."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail.mcp.messages import Message
from handrail.session.servers.servers import Servers
from tests.processes.seen import read_pipe

pytestmark = pytest.mark.anyio


async def answer(name: str, message: Message) -> Message:
    tools = [{"name": "t", "description": name, "inputSchema": {"type": "object"}}]
    result: dict[str, Any] = {"capabilities": {"tools": {}}, "tools": tools}
    return {"jsonrpc": "2.0", "id": message.get("id"), "result": result}


WITHOUT_SERVERS = """
import asyncio, sys
from handrail import Agent
from handrail.testing.model import ScriptedModel, say, use

async def main():
    model = ScriptedModel([[use("1", "Glob", pattern="*")], [say("done")]])
    async with Agent(model, builtin_tools=True) as agent:
        await agent.ask("go")

asyncio.run(main())
parts = [name.split(".") for name in sys.modules]
print([each for each in parts if each[0] == "mcp" or each[:2] in (["handrail", "mcp"], ["handrail", "gateway"])])
"""


def test_a_session_without_servers_loads_nothing_of_mcp(tmp_path: Path) -> None:
    words = [sys.executable, "-c", WITHOUT_SERVERS]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("names", "used"),
    [
        (("a_b", "a b"), ["a_b"]),
        (("a.b", "a__b", "a_b"), ["a.b"]),
        (("a", "a__b", "b"), ["a", "a__b", "b"]),
        (("a", "_a_"), ["a"]),
        (("a", "A"), ["a"]),
    ],
)
async def test_a_server_whose_name_rules_cannot_tell_from_another_is_left_out(
    names: tuple[str, ...], used: list[str]
) -> None:
    servers = Servers({}, Path("/"), carry=answer)
    servers.add({name: {"type": "sdk"} for name in names}, "flag")

    notes = await servers.connect()

    assert [tool.mcp.server for tool in servers.tools if tool.mcp] == used
    assert len(notes) == len(names) - len(used)
    assert all("rules cannot tell its name from" in note or "looks like that of the server" in note for note in notes)


async def test_a_server_that_hangs_holds_up_no_first_answer_and_its_tools_follow_behind_the_others(
    tmp_path: Path,
) -> None:
    gate = asyncio.Event()
    warnings: list[str] = []

    async def carry(name: str, message: Message) -> Message:
        if name == "slow":
            await gate.wait()
        return await answer(name, message)

    servers = Servers({}, tmp_path, carry)
    servers.add({"slow": {"type": "sdk"}, "quick": {"type": "sdk"}}, "flag")
    late: list[Sequence[str]] = []
    came = asyncio.Event()

    def on_late(notes: Sequence[str]) -> None:
        late.append(notes)
        came.set()

    with anyio.fail_after(20):
        warnings += await servers.connect(0.05, on_late)
        assert [tool.name for tool in servers.tools] == ["mcp__quick__t"]
        assert [status["status"] for status in servers.status()] == ["pending", "connected"]

        gate.set()
        await came.wait()

    assert warnings == []  # no person would notice so short a wait
    assert late == [()]
    assert sorted(tool.name for tool in servers.tools) == ["mcp__quick__t", "mcp__slow__t"]
    await servers.aclose()


@pytest.mark.proves("R8")
async def test_a_server_that_never_answers_is_gone_with_the_session(tmp_path: Path) -> None:
    fifo = tmp_path / "pid"
    os.mkfifo(fifo)
    servers = Servers({"PATH": os.environ["PATH"]}, tmp_path)
    servers.add({"hangs": {"command": "/bin/sh", "args": ["-c", f"echo $$ > {fifo}; sleep 600"]}}, "flag")
    with anyio.fail_after(20):
        await servers.connect(0.0)
        pid = int(await anyio.to_thread.run_sync(read_pipe, fifo))
        await servers.aclose()

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)

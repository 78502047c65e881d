"""Editors that are killed or stop reading: what their agent runs ends, and nothing piles up."""

import array
import asyncio
import fcntl
import json
import os
import sys
from pathlib import Path
from termios import FIONREAD
from typing import Any

import anyio
import pytest
from anyio import to_thread

from handrail.conversation.blocks import Text, ToolUse
from handrail.testing.model_server import ModelServer, Reply
from tests.acp.editor import SECONDS, variables
from tests.processes.seen import read_pipe, wait_for, wait_for_end

pytestmark = pytest.mark.anyio

AGENT = (sys.executable, "-m", "handrail", "acp", "--allowedTools", "Bash")
WAIT = ToolUse("b1", "Bash", {"command": "sleep 600 & echo $! > ../told; wait"})
EDITOR = """
import json, subprocess, sys, time
folder, home, *agent = sys.argv[1:]
process = subprocess.Popen(agent, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def call(number, method, **params):
    process.stdin.write(json.dumps({"id": number, "method": method, "params": params}).encode() + b"\\n")
    process.stdin.flush()
    for line in process.stdout:
        if json.loads(line).get("id") == number:
            return json.loads(line)["result"]
print(process.pid, flush=True)
call(1, "initialize", protocolVersion=1)
session = call(2, "session/new", cwd=folder, mcpServers=[], additionalDirectories=[home])["sessionId"]
call(3, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Wait for ever."}])
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "told")
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.mark.proves("R8")
async def test_when_an_editor_is_killed_in_the_middle_of_a_call_its_agent_and_the_command_end(
    tmp_path: Path, project: Path
) -> None:
    with anyio.fail_after(SECONDS):
        async with ModelServer([Reply((WAIT,))]) as server:
            editor = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", EDITOR, str(project), str(tmp_path), *AGENT),
                cwd=tmp_path,
                env=variables(tmp_path, server),
                stdout=asyncio.subprocess.PIPE,
            )
            assert editor.stdout is not None
            agent = int(await editor.stdout.readline())
            command = int(await anyio.to_thread.run_sync(read_pipe, tmp_path / "told"))

            editor.kill()
            await editor.wait()

            assert await to_thread.run_sync(wait_for_end, agent)
            assert await to_thread.run_sync(wait_for_end, command)


@pytest.mark.proves("R8")
async def test_an_editor_that_reads_nothing_can_cancel_and_leave(tmp_path: Path, project: Path) -> None:
    ours, theirs = os.pipe()
    with anyio.fail_after(SECONDS):
        async with ModelServer([Reply((WAIT, Text("story " * 1_000_000)))]) as server:
            agent = await asyncio.create_subprocess_exec(
                *AGENT,
                cwd=tmp_path,
                env=variables(tmp_path, server),
                stdin=asyncio.subprocess.PIPE,
                stdout=theirs,
            )
            os.close(theirs)
            wire = Wire(agent, ours)
            session = await to_thread.run_sync(wire.open, project, tmp_path)
            wire.send("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "Tell a story."}])
            command = int(await anyio.to_thread.run_sync(read_pipe, tmp_path / "told"))
            assert await to_thread.run_sync(wait_for, wire.unread)  # a long line waits until it is taken

            wire.send("session/cancel", sessionId=session)
            assert await to_thread.run_sync(wait_for_end, command)
            assert agent.returncode is None
            assert agent.stdin is not None
            agent.stdin.close()
            assert await agent.wait() == 0
    os.close(ours)


class Wire:
    """The bare lines of an agent whose output is read only until a session is open."""

    def __init__(self, agent: asyncio.subprocess.Process, output: int) -> None:
        self._agent = agent
        self._output = output
        self._number = 0

    def send(self, method: str, **params: Any) -> int:
        assert self._agent.stdin is not None
        self._number += 1
        number = {} if method == "session/cancel" else {"id": self._number}
        self._agent.stdin.write(json.dumps({**number, "method": method, "params": params}).encode() + b"\n")
        return self._number

    def open(self, project: Path, home: Path) -> str:
        """The id of a new session."""
        self.send("initialize", protocolVersion=1)
        number = self.send("session/new", cwd=str(project), mcpServers=[], additionalDirectories=[str(home)])
        read = b""
        while more := os.read(self._output, 65_536):
            read += more
            for line in read.split(b"\n")[:-1]:
                if (message := json.loads(line)).get("id") == number:
                    return str(message["result"]["sessionId"])
        raise AssertionError(f"it ended without a session: {read!r}")

    def unread(self) -> int:
        """Bytes that wait in the pipe."""
        size = array.array("i", [0])
        fcntl.ioctl(self._output, FIONREAD, size)
        return size[0]

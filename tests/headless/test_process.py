"""The protocol on standard input and output of a real process: the end of the input, signals, readers that leave."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail.conversation.blocks import Text, ToolUse
from handrail.testing.model_server import ModelServer, Reply
from tests.forked import program
from tests.processes.seen import read_pipe

pytestmark = pytest.mark.anyio

ARGUMENTS = ("--output-format", "stream-json", "--verbose", "--input-format", "stream-json")


class Driven:
    """A process behind the protocol."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    def say(self, *lines: Any) -> None:
        assert self.process.stdin is not None
        for line in lines:
            text = line if isinstance(line, str) else json.dumps(line)
            self.process.stdin.write(text.encode() + b"\n")

    def prompt(self, text: str) -> None:
        self.say({"type": "user", "message": {"role": "user", "content": text}})

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    async def until(self, kind: str) -> list[dict[str, Any]]:
        """All lines up to one of that type; up to the end if there is none."""
        assert self.process.stdout is not None
        seen: list[dict[str, Any]] = []
        async for line in self.process.stdout:
            seen.append(json.loads(line))
            if seen[-1]["type"] == kind:
                break
        return seen


def variables(folder: Path, server: ModelServer) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC_", "OPENAI_"))}
    return {**own, "ANTHROPIC_BASE_URL": server.url, "HOME": str(folder), "HANDRAIL_STATE_DIR": str(folder / "state")}


@asynccontextmanager
async def driven(folder: Path, server: ModelServer, *more: str) -> AsyncIterator[Driven]:
    process = await asyncio.create_subprocess_exec(
        program(),
        *ARGUMENTS,
        *more,
        cwd=folder,
        env=variables(folder, server),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=2_000_000,
    )
    with anyio.fail_after(60):
        try:
            yield Driven(process)
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()


async def test_the_end_of_the_input_lets_what_waits_be_answered_and_ends_at_once(tmp_path: Path) -> None:
    async with ModelServer([Reply((Text("A."),)), Reply((Text("B."),))]) as server, driven(tmp_path, server) as d:
        d.prompt("one")
        d.prompt("two")
        d.end()
        first = await d.until("result")
        second = await d.until("result")
        rest = await d.until("nothing")
        await d.process.wait()

    assert (first[-1]["result"], second[-1]["result"], rest) == ("A.", "B.", [])
    assert d.process.returncode == 0


async def test_without_a_word_it_ends_without_a_word(tmp_path: Path) -> None:
    async with ModelServer() as server, driven(tmp_path, server) as d:
        d.end()
        assert await d.until("nothing") == []
        assert await d.process.wait() == 0


async def test_lines_that_make_no_sense_are_passed_over_and_unknown_requests_answered(tmp_path: Path) -> None:
    async with ModelServer([Reply((Text("Fine."),))]) as server, driven(tmp_path, server) as d:
        d.say("not json", "[]", '{"no": "type"}', {"type": "poem"}, {"type": "control_response"}, "")
        d.say({"type": "control_request", "request_id": "r1", "request": {"subtype": "dance"}})
        d.prompt("hi")
        lines = await d.until("result")

    [answer] = [line["response"] for line in lines if line["type"] == "control_response"]
    assert (answer["subtype"], answer["request_id"]) == ("error", "r1")
    assert lines[-1]["result"] == "Fine."


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
async def test_a_signal_stops_what_runs_and_tells_the_result(tmp_path: Path, number: int, code: int) -> None:
    os.mkfifo(tmp_path / "told")
    use = ToolUse("t1", "Bash", {"command": "sleep 600 & echo $! > told; wait"})
    async with (
        ModelServer([Reply((use,))]) as server,
        driven(tmp_path, server, "--allowedTools", "Bash") as d,
    ):
        d.prompt("go")
        d.prompt("and then")
        pid = int(await anyio.to_thread.run_sync(read_pipe, tmp_path / "told"))
        d.process.send_signal(number)
        d.process.send_signal(number)  # shells and wrappers pass on what the group got already
        lines = await d.until("result")
        [unbegun] = await d.until("nothing")
        assert await d.process.wait() == code

    assert lines[-1]["terminal_reason"] == "aborted_tools"
    assert "before this prompt began" in unbegun["result"]
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize("form", ["", "stream-json", "text"])
async def test_a_reader_that_leaves_ends_it_and_the_command_that_runs(tmp_path: Path, form: str) -> None:
    os.mkfifo(tmp_path / "told")
    use = ToolUse("t1", "Bash", {"command": "sleep 600 & echo $! > told; wait"})
    asked = ("-p", "go", "--input-format", "text", "--output-format", form) if form else ()
    async with (
        ModelServer([Reply((use,)), Reply((Text("Done."),))]) as server,
        driven(tmp_path, server, "--allowedTools", "Bash", *asked) as d,
    ):
        if form:
            d.end()
        else:
            d.prompt("go")
        pid = int(await anyio.to_thread.run_sync(read_pipe, tmp_path / "told"))
        transport = d.process._transport.get_pipe_transport(1)  # type: ignore[attr-defined]  # the only way to it
        transport.close()
        with anyio.fail_after(SOON):
            assert await d.process.wait() == 1
        assert d.process.stderr is not None
        assert b"Traceback" not in await d.process.stderr.read()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_states_are_told_to_those_who_want_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_SDK_READS_SESSION_STATE", "1")
    async with ModelServer([Reply((Text("A."),)), Reply((Text("B."),))]) as server, driven(tmp_path, server) as d:
        d.prompt("one")
        d.prompt("two")
        d.end()
        lines = await d.until("nothing")

    told = [line.get("state") or line["type"] for line in lines if line["type"] == "result" or line.get("state")]
    assert told == ["running", "result", "result", "idle"]


async def test_a_peer_that_answers_nothing_is_not_waited_for_after_its_end(tmp_path: Path) -> None:
    use = ToolUse("t1", "Bash", {"command": "touch x"})
    hello = {"type": "control_request", "request_id": "r1", "request": {"subtype": "initialize", "hooks": None}}
    async with (
        ModelServer([Reply((use,)), Reply((Text("Then not."),))]) as server,
        driven(tmp_path, server, "--permission-prompt-tool", "stdio") as d,
    ):
        d.say(hello)
        d.prompt("go")
        question = (await d.until("control_request"))[-1]
        d.end()
        lines = await d.until("result")

    assert question["request"]["subtype"] == "can_use_tool"
    assert {"tool_name", "input", "tool_use_id", "permission_suggestions", "blocked_path"} <= {*question["request"]}
    assert [each["tool_use_id"] for each in lines[-1]["permission_denials"]] == ["t1"]
    assert not (tmp_path / "x").exists()


STUBBORN = """
import json, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        info = {"name": "stubborn", "version": "1"}
        answer = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
    elif asked.get("method") == "tools/list":
        answer = {"tools": []}
    elif "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer}), flush=True)
time.sleep(600)
"""
SOON = 10.0
"""Far more than it may take, and far less than it takes to wait for any of these."""


@pytest.mark.proves("X9")
@pytest.mark.parametrize("way", ["the input ends", "a prompt on the command line"])
async def test_it_ends_with_its_last_result_whatever_it_has_started(tmp_path: Path, way: str) -> None:
    (tmp_path / "server.py").write_text(STUBBORN)
    servers = {"mcpServers": {"stubborn": {"command": sys.executable, "args": [str(tmp_path / "server.py")]}}}
    hooks = {"SessionEnd": [{"hooks": [{"type": "command", "command": "trap '' TERM; sleep 600", "timeout": 0.1}]}]}
    job = "trap '' TERM; echo $$ > told; sleep 600; sleep 600"
    use = ToolUse("t1", "Bash", {"command": job, "run_in_background": True})
    reading = ToolUse("t2", "Bash", {"command": "until [ -s told ]; do sleep 0.01; done"})
    more = ("--allowedTools", "Bash", "--mcp-config", json.dumps(servers), "--settings", json.dumps({"hooks": hooks}))
    piped = way == "the input ends"
    asked = () if piped else ("-p", "go", "--input-format", "text")
    async with (
        ModelServer([Reply((use, reading)), Reply((Text("Done."),))]) as server,
        driven(tmp_path, server, *more, *asked) as d,
    ):
        if piped:
            d.prompt("go")
        else:
            d.end()
        lines = await d.until("result")
        d.end()
        with anyio.fail_after(SOON):
            await d.process.wait()
        assert d.process.returncode == 0

    assert lines[-1]["result"] == "Done."
    pid = int((tmp_path / "told").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGKILL, -9)])
@pytest.mark.parametrize("asked", [(), ("-p", "go", "--input-format", "text")], ids=["driven", "a prompt"])
async def test_a_reader_that_stops_reading_cannot_keep_it_from_ending_at_the_end_of_a_line(
    tmp_path: Path, number: int, code: int, asked: tuple[str, ...]
) -> None:
    prompt = json.dumps({"type": "user", "message": {"role": "user", "content": "go"}}).encode() + b"\n"
    async with ModelServer([Reply((Text("many words " * 20_000),))] * 2) as server:
        process = subprocess.Popen(
            (program(), *ARGUMENTS, *asked),
            cwd=tmp_path,
            env=variables(tmp_path, server),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(prompt)
            process.stdin.close()
            begun = await asyncio.to_thread(process.stdout.read, 70_000)  # the next line waits for its reader
            process.send_signal(number)
            assert await asyncio.to_thread(process.wait, SOON) == code
            *lines, rest = (begun + await asyncio.to_thread(process.stdout.read)).split(b"\n")
        finally:
            process.kill()
            await asyncio.to_thread(process.wait)
            process.stdout.close()

    assert rest == b""
    assert [json.loads(line)["type"] for line in lines][:2] == ["system", "assistant"]


@pytest.mark.proves("X9")
async def test_a_reader_gets_each_line_while_the_model_still_talks(tmp_path: Path) -> None:
    more = asyncio.Event()
    reply = Reply((Text("One."), Text("Two.")), gates={5: more})
    async with ModelServer([reply]) as server, driven(tmp_path, server) as d:
        d.prompt("go")
        first = (await d.until("assistant"))[-1]
        more.set()
        lines = await d.until("result")
        d.end()

    assert first["message"]["content"] == [{"type": "text", "text": "One."}]
    assert lines[-1]["result"] == "One.Two."

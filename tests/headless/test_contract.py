"""What programs may rely on in each kind of line, gathered from one real process."""

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail.conversation.blocks import Text, ToolUse
from handrail.testing.model_server import ModelServer, Reply
from tests.forked import program, reference_server

pytestmark = pytest.mark.anyio

SIGNED = {"uuid": str, "session_id": str}
USAGE = {"total_tokens": int, "tool_uses": int, "duration_ms": int}
NUMBER = (int, float)

LINES: Mapping[str, Mapping[str, Any]] = {
    "task_started": {"task_id": str, "description": str, "tool_use_id": str, "task_type": str},
    "task_progress": {"task_id": str, "description": str, "tool_use_id": str, "usage": USAGE, "last_tool_name": str},
    "task_updated": {"task_id": str, "patch": {"status": str, "end_time": int}},
    "task_notification": {"task_id": str, "status": str, "output_file": str, "summary": str, "tool_use_id": str},
    "status": {},
    "compact_boundary": {"compact_metadata": {"trigger": str, "pre_tokens": int}},
    "session_state_changed": {"state": str, "sdk_host_only": bool},
    "hook_started": {"hook_id": str, "hook_name": str, "hook_event": str},
    "hook_response": {
        "hook_id": str,
        "hook_name": str,
        "hook_event": str,
        "output": str,
        "stdout": str,
        "stderr": str,
        "exit_code": int,
        "outcome": str,
    },
}
TOOL = {"name": str, "description": str, "annotations": dict}
SERVER_STATUS = {"name": str, "status": str, "scope": str, "serverInfo": {"name": str, "version": str}, "tools": [TOOL]}
CONTEXT = {
    "categories": [{"name": str, "tokens": int, "color": str}],
    "totalTokens": int,
    "maxTokens": int,
    "rawMaxTokens": int,
    "percentage": NUMBER,
    "model": str,
    "isAutoCompactEnabled": bool,
    "memoryFiles": [{"path": str, "type": str, "tokens": int}],
    "mcpTools": [{"name": str, "serverName": str, "tokens": int, "isLoaded": bool}],
    "agents": [{"agentType": str, "source": str, "tokens": int}],
    "gridRows": list,
}


def missing(value: Any, shape: Any, at: str = "") -> list[str]:
    """The places of a value that are not there, or not of their kind."""
    match shape:
        case dict():
            inner = value if isinstance(value, dict) else {}
            return [each for name, kind in shape.items() for each in missing(inner.get(name), kind, f"{at}.{name}")]
        case [kind]:
            if not isinstance(value, list) or not value:
                return [f"{at}: nothing"]
            return [found for place, each in enumerate(value) for found in missing(each, kind, f"{at}[{place}]")]
        case _:
            return [] if isinstance(value, shape) else [f"{at}: {value!r}"]


def question(subtype: str) -> dict[str, Any]:
    return {"type": "control_request", "request_id": subtype, "request": {"subtype": subtype}}


def prompt(text: str) -> dict[str, Any]:
    return {"type": "user", "message": {"role": "user", "content": text}}


async def test_every_kind_of_line_holds_what_programs_read(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Be brief.")
    hooks = {"PreToolUse": [{"hooks": [{"type": "command", "command": "echo looked"}]}]}
    servers = {"mcpServers": {"ref": reference_server()}}
    task = {"description": "Look", "prompt": "Look around", "subagent_type": "Explore", "run_in_background": False}
    replies = [
        Reply((ToolUse("t1", "Agent", task),)),
        Reply((ToolUse("s1", "Glob", {"pattern": "*"}),)),
        Reply((Text("Seen."),)),
        Reply((ToolUse("t2", "Bash", {"command": "echo done", "run_in_background": True}),)),
        Reply((Text("Started."),)),
        Reply((Text("More."),)),
        *[Reply((Text("A summary."),))] * 3,  # the end of the command may begin a turn of its own
    ]
    arguments = ("--output-format", "stream-json", "--input-format", "stream-json", "--verbose")
    wanted = ("--include-hook-events", "--include-partial-messages", "--allowedTools", "Bash")
    given = ("--settings", json.dumps({"hooks": hooks}), "--mcp-config", json.dumps(servers))
    async with ModelServer(replies, strict=True) as model:
        env = {name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC_", "OPENAI_"))}
        env |= {"ANTHROPIC_BASE_URL": model.url, "HOME": str(tmp_path / "home"), "ENABLE_TOOL_SEARCH": "false"}
        env |= {"HANDRAIL_STATE_DIR": f"{tmp_path}-state", "CLAUDE_CODE_SDK_READS_SESSION_STATE": "1"}
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            program(), *arguments, *wanted, *given, cwd=tmp_path, env=env, stdin=pipe, stdout=pipe, limit=2**20
        )
        assert process.stdin is not None
        assert process.stdout is not None
        seen: list[dict[str, Any]] = []

        async def until(name: str) -> dict[str, Any]:
            while True:
                line = await process.stdout.readline()  # type: ignore[union-attr]  # it is a pipe
                assert line, seen[-3:]
                seen.append(json.loads(line))
                if name in (seen[-1]["type"], seen[-1].get("subtype")):
                    return seen[-1]

        with anyio.fail_after(40):
            for said, awaited in (
                (prompt("go"), ("task_notification", "task_notification")),
                (prompt("and"), ("result",)),
                (question("mcp_status"), ("control_response",)),
                (question("get_context_usage"), ("control_response",)),
                (prompt("/compact"), ("compact_boundary", "result")),
            ):
                process.stdin.write(json.dumps(said).encode() + b"\n")
                for name in awaited:
                    await until(name)
            process.stdin.close()
            seen += [json.loads(line) async for line in process.stdout]
            assert await process.wait() == 0

    told = [(each["subtype"], each) for each in seen if each["type"] == "system" and each["subtype"] in LINES]
    assert {name for name, _ in told} == set(LINES)
    assert [found for name, line in told for found in missing(line, {**LINES[name], **SIGNED}, name)] == []
    status, usage = [each["response"]["response"] for each in seen if each["type"] == "control_response"]
    assert missing(status["mcpServers"], [SERVER_STATUS], "mcp_status") == []
    assert missing(usage, CONTEXT, "get_context_usage") == []
    begun = [each for each in seen if each["type"] == "stream_event" and each["event"]["type"] == "message_start"]
    assert missing(begun, [{"ttft_ms": int, **SIGNED}], "stream_event") == []
    assert {line["task_type"] for name, line in told if name == "task_started"} == {"local_agent", "local_bash"}
    assert [line["state"] for name, line in told if name == "session_state_changed"][-1] == "idle"
    assert [line["status"] for name, line in told if name == "status"] == ["compacting", None]
    assert {each["type"] for each in usage["memoryFiles"]} == {"Project"}
    assert {each["source"] for each in usage["agents"]} >= {"built-in"}

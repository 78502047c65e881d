"""Servers that are slow to answer: the first request does not wait for them, and a search for their tools does."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail.conversation.blocks import Text, ToolResult
from handrail.conversation.messages import UserMessage
from handrail.mcp.messages import Message
from handrail.session.build import open_session
from handrail.session.session import Session
from handrail.session.spec import SessionHost, SessionSpec, ToolOptions
from handrail.testing import ScriptedModel, gate, say, use
from handrail.tools.pool import Deferral
from tests.forked import unmeasured

pytestmark = pytest.mark.anyio


class SlowServer:
    """A server in this program that answers nothing before it may."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()

    async def carry(self, _name: str, message: Message) -> Message:
        await self.may_answer.wait()
        tools = [{"name": "forecast", "description": "The weather.", "inputSchema": {"type": "object"}}]
        prompts = [{"name": "plan"}]
        result: dict[str, Any] = {"capabilities": {"tools": {}, "prompts": {}}, "tools": tools, "prompts": prompts}
        if message.get("method") == "tools/call":
            result = {"content": [{"type": "text", "text": "sunny"}]}
        if message.get("method") == "prompts/get":
            result = {"messages": [{"role": "user", "content": {"type": "text", "text": "Plan the day."}}]}
        return {"jsonrpc": "2.0", "id": message.get("id"), "result": result}


def opened(
    folder: Path, model: ScriptedModel, slow: SlowServer, deferral: Deferral | None = None, wait: str = "0"
) -> Session:
    (folder / "settings.json").write_text(json.dumps({"mcpWaitMs": int(wait), "permissions": {"allow": ["mcp__slow"]}}))
    env = unmeasured() | {"HANDRAIL_STATE_DIR": str(folder / "state"), "HANDRAIL_CONFIG_DIR": str(folder)}
    env |= {"HANDRAIL_MCP_WAIT_MS": ""}
    spec = SessionSpec(
        folder, tools=ToolOptions(mcp_servers={"slow": {"type": "sdk"}}, deferral=deferral), slash_commands=True
    )
    return open_session(spec, env, SessionHost(model=model, mcp_transport=slow.carry, on_warning=lambda _text: None))


async def work(session: Session, prompt: str = "go") -> None:
    try:
        with anyio.fail_after(60):
            _ = [each async for each in session.drive(UserMessage((Text(prompt),)))]
    finally:
        await session.aclose()


def names(request: Any) -> list[str]:
    return [each.name for each in request.tools if not each.deferred]


@pytest.mark.proves("D2")
@pytest.mark.parametrize("mode", ["on", "auto"])
async def test_a_search_waits_for_a_server_that_the_first_request_did_not_wait_for(tmp_path: Path, mode: Any) -> None:
    slow = SlowServer()
    asked = asyncio.Event()
    model = ScriptedModel(
        [
            [use("1", "ToolSearch", query="weather forecast")],
            [use("2", "mcp__slow__forecast")],
            [gate(asked), say("done")],
        ]
    )
    session = opened(tmp_path, model, slow, Deferral(mode))

    async def answer_later() -> None:
        while not model.requests:  # the first request is made while the server says nothing
            await asyncio.sleep(0)
        slow.may_answer.set()
        asked.set()

    async with asyncio.TaskGroup() as group:
        group.create_task(answer_later())
        group.create_task(work(session))

    requests: list[Any] = model.requests
    assert "still connecting (a search waits): slow" in str(requests[0].history.messages)
    assert "ToolSearch" in names(requests[0])
    assert "mcp__slow__forecast" in [each.name for each in requests[1].tools]
    before, after = (names(each) for each in requests[:2])
    assert after[: len(before)] == before  # nothing moved
    blocks = [block for each in session.conversation.messages for block in getattr(each, "content", ())]
    assert [block.text for block in blocks if isinstance(block, ToolResult)][-1] == "sunny"


async def test_a_call_of_a_slow_server_by_a_name_from_before_says_that_it_is_still_connecting(tmp_path: Path) -> None:
    slow = SlowServer()
    model = ScriptedModel([[use("1", "mcp__slow__forecast")], [use("2", "mcp__slow__forecast")], [say("done")]])
    session = opened(tmp_path, model, slow, Deferral("on"))

    async def answer_later() -> None:
        while len(model.requests) < 2:
            await asyncio.sleep(0)
        slow.may_answer.set()

    async with asyncio.TaskGroup() as group:
        group.create_task(answer_later())
        group.create_task(work(session))

    blocks = [block for each in session.conversation.messages for block in getattr(each, "content", ())]
    first = next(block.text for block in blocks if isinstance(block, ToolResult))
    assert "the MCP server 'slow' is still connecting. Search for it with ToolSearch, which waits" in first


async def test_a_command_of_a_slow_server_waits_for_it(tmp_path: Path) -> None:
    slow = SlowServer()
    model = ScriptedModel([[say("done")]])
    session = opened(tmp_path, model, slow)
    asyncio.get_running_loop().call_later(0.05, slow.may_answer.set)

    await work(session, "/mcp__slow__plan")

    request: Any = model.requests[0]
    assert "Plan the day." in str(request.history.messages)


async def test_a_search_that_finds_nothing_names_the_servers_that_cannot_be_searched(tmp_path: Path) -> None:
    model = ScriptedModel([[use("1", "ToolSearch", query="select:mcp__gone__tool")], [say("done")]])
    env = unmeasured() | {"HANDRAIL_STATE_DIR": str(tmp_path / "state"), "HANDRAIL_CONFIG_DIR": str(tmp_path)}
    warnings: list[str] = []
    ends = {"command": sys.executable, "args": ["-c", "import sys; sys.exit('no key is set')"]}
    spec = SessionSpec(tmp_path, tools=ToolOptions(mcp_servers={"gone": ends}))
    session = open_session(spec, env, SessionHost(model=model, on_warning=warnings.append))

    await work(session)

    request: Any = model.requests[1]
    assert "These MCP servers are not connected: gone (failed)." in str(request.history.messages)
    (warning,) = warnings
    assert warning.count("'gone'") == 1
    assert "exit code 1. Its last output: no key is set" in warning
    assert warning.endswith("Run its command by itself to see why.")


async def test_a_tool_that_a_new_rule_denies_is_not_found_any_more(tmp_path: Path) -> None:
    slow = SlowServer()
    slow.may_answer.set()
    model = ScriptedModel(
        [
            [use("1", "ToolSearch", query="weather forecast")],
            [say("one")],
            [use("2", "ToolSearch", query="weather forecast")],
            [say("two")],
        ]
    )
    session = opened(tmp_path, model, slow, Deferral("on"), wait="60000")
    try:
        with anyio.fail_after(60):
            _ = [each async for each in session.drive(UserMessage((Text("go"),)))]
            rules = {"permissions": {"deny": ["mcp__slow__forecast"]}}
            (tmp_path / "settings.json").write_text(json.dumps(rules))
            _ = [each async for each in session.drive(UserMessage((Text("again"),)))]
    finally:
        await session.aclose()

    blocks = [block for each in session.conversation.messages for block in getattr(each, "content", ())]
    found = {block.tool_use_id: str(block) for block in blocks if isinstance(block, ToolResult)}
    assert "mcp__slow__forecast" in found["1"]
    assert "No tool fits" in found["2"]

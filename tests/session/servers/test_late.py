"""Servers that are slow to answer: the first request does not wait for them, and a search for their tools does."""

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail.conversation.blocks import Text, ToolResult
from handrail.conversation.messages import AssistantMessage, Attachment, UserMessage
from handrail.mcp.lock import PinnedTool, write_lock
from handrail.mcp.messages import Message
from handrail.session.build import open_session
from handrail.session.servers import servers
from handrail.session.session import Session
from handrail.session.spec import SessionHost, SessionSpec, ToolOptions
from handrail.testing import ScriptedModel, gate, say, use
from handrail.tools.pool import Deferral
from tests.forked import unmeasured

pytestmark = pytest.mark.anyio
SDK_SERVER = {"type": "sdk"}
NOTHING: Mapping[str, Any] = {}
FORECAST = {"name": "forecast", "description": "The weather.", "inputSchema": {"type": "object"}}


class SlowServer:
    """A server in this program that answers nothing before it may."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()

    async def carry(self, _name: str, message: Message) -> Message:
        await self.may_answer.wait()
        prompts = [{"name": "plan"}]
        result: dict[str, Any] = {"capabilities": {"tools": {}, "prompts": {}}, "tools": [FORECAST], "prompts": prompts}
        if message.get("method") == "tools/call":
            result = {"content": [{"type": "text", "text": "sunny"}]}
        if message.get("method") == "prompts/get":
            result = {"messages": [{"role": "user", "content": {"type": "text", "text": "Plan the day."}}]}
        return {"jsonrpc": "2.0", "id": message.get("id"), "result": result}


def opened(
    folder: Path,
    model: ScriptedModel,
    slow: SlowServer,
    deferral: Deferral | None = None,
    wait: str = "0",
    entry: Mapping[str, Any] = SDK_SERVER,
    more: Mapping[str, Any] = NOTHING,
) -> Session:
    settings: dict[str, Any] = {"permissions": {"allow": ["mcp__slow"]}, **more}
    if wait:
        settings["mcpWaitMs"] = int(wait)
    (folder / "settings.json").write_text(json.dumps(settings))
    env = unmeasured() | {"HANDRAIL_STATE_DIR": str(folder / "state"), "HANDRAIL_CONFIG_DIR": str(folder)}
    env |= {"HANDRAIL_MCP_WAIT_MS": ""}
    spec = SessionSpec(folder, tools=ToolOptions(mcp_servers={"slow": entry}, deferral=deferral), slash_commands=True)
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


# Servers whose tools are known from an earlier session

EARLIER = (UserMessage((Text("Hi"),)), AssistantMessage((Text("Hello"),)))


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which the tools of the server were approved; a wait for servers would not end in it."""
    tool = PinnedTool("forecast", "The weather.", {"type": "object"})
    (tmp_path / ".handrail").mkdir()
    words = PinnedTool("(instructions)", "Look at the sky.")
    lock = write_lock({"slow": {"forecast": tool, "(instructions)": words}})
    (tmp_path / ".handrail" / "mcp.lock").write_text(lock)
    monkeypatch.setattr(servers, "FIRST_WAIT", 3600.0)
    return tmp_path


async def after_request(model: ScriptedModel, slow: SlowServer) -> None:
    """Let the server answer as soon as the model was asked."""
    while not model.requests:
        await asyncio.sleep(0)
    slow.may_answer.set()


def announcements(session: Session) -> list[str]:
    notes = [each for each in session.conversation.messages if isinstance(each, Attachment) and each.kind == "tools"]
    return ["".join(block.text for block in each.content if isinstance(block, Text)) for each in notes]


@pytest.mark.proves("D2")
async def test_the_first_request_names_tools_from_an_earlier_session_and_waits_for_no_server(known: Path) -> None:
    slow = SlowServer()
    calls = [[use("1", "ToolSearch", query="select:mcp__slow__forecast")], [use("2", "mcp__slow__forecast")]]
    model = ScriptedModel([*calls, [say("done")]])
    session = opened(known, model, slow, Deferral("on"), wait="")

    async with asyncio.TaskGroup() as group:
        group.create_task(after_request(model, slow))
        group.create_task(work(session))

    (note,) = announcements(session)  # what the server has is what was announced
    assert [line for line in note.splitlines() if "slow" in line] == ["mcp__slow__forecast"]
    request: Any = model.requests[0]
    assert note in str(request.history.messages).replace("\\n", "\n")
    blocks = [block for each in session.conversation.messages for block in getattr(each, "content", ())]
    assert [block.text for block in blocks if isinstance(block, ToolResult)][-1] == "sunny"


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"permissions": {"deny": ["mcp__slow__forecast"]}}, id="a rule denies"),
        pytest.param({"deniedMcpServers": [{"serverName": "slow"}]}, id="of a server that is refused"),
    ],
)
async def test_a_known_tool_that_may_not_be_used_is_not_named(known: Path, more: dict[str, Any]) -> None:
    model = ScriptedModel([[say("done")]])
    session = opened(known, model, SlowServer(), Deferral("on"), wait="", more=more)

    await work(session)

    assert "forecast" not in str(announcements(session))


@pytest.mark.parametrize(
    ("wait", "entry", "lock", "earlier"),
    [
        pytest.param("60000", SDK_SERVER, "", (), id="as the settings say"),
        pytest.param("", {**SDK_SERVER, "alwaysLoad": True}, "", (), id="for a server that always loads"),
        pytest.param("", SDK_SERVER, "{", (), id="if what was approved cannot be read"),
        pytest.param("", SDK_SERVER, "", EARLIER, id="where a conversation may refer to its tools"),
    ],
)
async def test_a_server_is_waited_for_where_its_tools_are_needed_or_not_known(
    known: Path, wait: str, entry: Mapping[str, Any], lock: str, earlier: Sequence[UserMessage | AssistantMessage]
) -> None:
    if lock:
        (known / ".handrail" / "mcp.lock").write_text(lock)
    slow = SlowServer()
    model = ScriptedModel([[say("done")]])
    session = opened(known, model, slow, Deferral("on"), wait=wait, entry=entry)
    for message in earlier:
        session.conversation.state.history.append(message)
    asked: list[int] = []

    async def answer_later() -> None:
        await anyio.wait_all_tasks_blocked()
        asked.append(len(model.requests))
        slow.may_answer.set()

    async with asyncio.TaskGroup() as group:
        group.create_task(work(session))
        group.create_task(answer_later())

    assert asked == [0]
    assert len(model.requests) == 1

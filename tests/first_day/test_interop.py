"""The first day of people who come from other agents, with the files they already have."""

import asyncio
from pathlib import Path

import anyio
import pytest

from handrail.conversation.blocks import Text, ToolUse
from handrail.mcp.peer import Message
from handrail.providers.choose import ModelOptions
from handrail.session.spec import SessionHost
from handrail.testing.model_server import ModelServer, Reply
from tests.session.folder_agent import open_agent

pytestmark = pytest.mark.anyio


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    home = tmp_path / "home"
    home.mkdir()
    return {"HOME": str(home), "PATH": "/usr/bin:/bin", "HANDRAIL_STATE_DIR": str(tmp_path / "state")}


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def options(server: ModelServer) -> ModelOptions:
    return ModelOptions("anthropic", "claude-sonnet-4-6", server.url, "test-key")


@pytest.mark.proves("R5")
async def test_a_server_that_hangs_delays_no_first_word_and_its_tools_are_appended_when_it_answers(
    work: Path, env: dict[str, str]
) -> None:
    gate, came, asked = asyncio.Event(), asyncio.Event(), asyncio.Event()
    warnings: list[str] = []

    async def carry(_name: str, message: Message) -> Message:
        await gate.wait()
        tools = [{"name": "a", "description": "Late.", "inputSchema": {"type": "object"}}]
        return {"jsonrpc": "2.0", "id": message.get("id"), "result": {"capabilities": {"tools": {}}, "tools": tools}}

    def on_warning(text: str) -> None:
        warnings.append(text)
        if "has answered" in text:
            came.set()

    env |= {"HANDRAIL_MCP_WAIT_MS": "0", "ENABLE_TOOL_SEARCH": "false"}
    first = Reply((ToolUse("1", "Glob", {"pattern": "*"}),), gates={0: asked})
    with anyio.fail_after(20):
        async with ModelServer([first, Reply((Text("Done."),))], strict=True) as server:
            host = SessionHost(mcp_transport=carry, on_warning=on_warning)
            agent = open_agent(work, env, options(server), servers={"slow": {"type": "sdk"}}, host=host)
            try:
                run = asyncio.ensure_future(agent.ask("Go."))
                while not server.requests:
                    await anyio.lowlevel.checkpoint()
                gate.set()
                await came.wait()
                asked.set()
                await run
            finally:
                await agent.aclose()
            before, after = ([tool["name"] for tool in each.body["tools"]] for each in server.requests)

    assert after == [*before, "mcp__slow__a"]
    assert [text.partition(" has ")[2].partition(",")[0] for text in warnings] == [
        "not answered after 0 s",
        "answered: 1 tool from now on.",
    ]

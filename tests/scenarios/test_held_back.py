"""Tools that are held back are announced in messages, so that the cached prefix does not change with them."""

from pathlib import Path
from typing import Any

import pytest

from handrail import Agent, tool
from handrail.conversation.blocks import Text, ToolUse
from handrail.providers.choose import ModelOptions
from handrail.testing import ScriptedModel, say, use
from handrail.testing.model_server import ModelServer, Reply
from handrail.tools.pool import AnyTool, Deferral
from tests.opening import open_agent

pytestmark = pytest.mark.anyio


def held(number: int, more: str = "") -> AnyTool:
    @tool(name=f"held{number}{more}", read_only=True, should_defer=True)
    async def something() -> str:
        """Do something rare."""
        return "done"

    return something


def words(body: dict[str, Any]) -> str:
    return str(body["messages"])


@pytest.mark.proves("C6", "R5", "R6")
@pytest.mark.parametrize("provider", ["anthropic", "openai"])
async def test_names_stand_in_the_first_message_and_the_prefix_stays_when_one_is_found(provider: str) -> None:
    search = Reply((ToolUse("s", "ToolSearch", {"query": "select:held3"}),))
    tools = [held(number) for number in range(5)]
    async with ModelServer([search, Reply((Text("ok"),)), Reply((Text("ok"),))], strict=True) as server:
        base = server.url + ("/v1" if provider == "openai" else "")
        model = ModelOptions(provider, "m", base)
        async with open_agent(model, tools, env={}, deferral=Deferral(mode="on")) as agent:
            await agent.ask("find one")
            await agent.ask("again")

    bodies = [request.body for request in server.requests]
    for body in bodies:
        prefix = str(body.get("system", "")) + "".join(
            str(message) for message in body["messages"] if message["role"] == "system"
        )
        assert "held" not in prefix
    assert words(bodies[0]).count("held4") == 1
    assert words(bodies[2]).count("held4") == 1


@pytest.mark.proves("R6")
async def test_hundreds_of_long_names_do_not_fill_the_context() -> None:
    tools = [held(number, "_" + 50 * "x") for number in range(600)]
    async with ModelServer([Reply((Text("ok"),))]) as server:
        model = ModelOptions("openai", "m", server.url + "/v1")
        async with open_agent(model, tools, env={}, deferral=Deferral(mode="on")) as agent:
            await agent.ask("hello")

    assert len(server.requests[0].raw) < 20_000


@pytest.mark.parametrize("named", [False, True])
async def test_a_sub_agent_searches_for_what_waits_unless_its_definition_names_its_tools(named: bool) -> None:
    helper = {"description": "Helps.", "prompt": "Help.", **({"tools": ["held1", "ToolSearch"]} if named else {})}
    task = ToolUse("t", "Agent", {"description": "Help", "prompt": "Help!", "subagent_type": "helper"})
    search = ToolUse("s", "ToolSearch", {"query": "select:held1"})
    wanted = ToolUse("h", "held1", {}) if named else search
    replies = [Reply((block,)) for block in (task, wanted, Text("Helped."), Text("Done."))]
    async with ModelServer(replies, strict=True) as server:
        model = ModelOptions("anthropic", "test-model", server.url)
        async with open_agent(
            model, [held(1), held(2)], env={}, deferral=Deferral(mode="on"), agents={"helper": helper}
        ) as agent:
            await agent.ask("Go.")
        first, second = (request.body for request in server.requests[1:3])

    offered = [[tool["name"] for tool in body["tools"]] for body in (first, second)]
    if named:
        assert offered == [["held1"]] * 2
    else:
        assert "held1" not in offered[0]
        assert "held2" in str(first["messages"])
        assert offered[1] == [*offered[0], "held1"]


async def test_a_rule_that_a_call_writes_takes_a_tool_out_of_the_next_pool(tmp_path: Path) -> None:
    @tool(read_only=True)
    async def forbid() -> str:
        """Forbid one of the tools."""
        (tmp_path / ".handrail").mkdir()
        (tmp_path / ".handrail" / "settings.json").write_text('{"permissions": {"deny": ["held1"]}}')
        return "done"

    model = ScriptedModel([[use("f", "forbid")], [use("s", "ToolSearch", query="select:held2")], [say("Done.")]])
    tools, env = [forbid, held(1), held(2)], {"ENABLE_TOOL_SEARCH": "true"}
    async with Agent(model, tools, cwd=tmp_path, settings=True, state_dir=tmp_path / "state", env=env) as agent:
        before = agent.tools.names()
        await agent.ask("Go.")

        assert {*before} - {*agent.tools.names()} == {"held1"}

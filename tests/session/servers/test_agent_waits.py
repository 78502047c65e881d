"""An `Agent` waits for its MCP servers: a program that names them wants their tools from the first request on."""

import asyncio
from typing import Any

import pytest

from handrail import Agent
from handrail.mcp.messages import Message
from handrail.session.spec import SessionHost
from handrail.testing import ScriptedModel, run_virtual, say
from tests.forked import unmeasured


async def answer_after_a_second(_name: str, message: Message) -> Message:
    await asyncio.sleep(1)  # of the virtual clock
    tools = [{"name": "forecast", "description": "The weather.", "inputSchema": {"type": "object"}}]
    result = {"capabilities": {"tools": {}}, "tools": tools}
    return {"jsonrpc": "2.0", "id": message.get("id"), "result": result}


@pytest.mark.parametrize(
    ("wait", "is_offered"),
    [
        pytest.param("", True, id="the first request waits for a server that needs seconds to start"),
        pytest.param("20", False, id="unless the variable says that it should not"),
    ],
)
def test_the_tools_of_a_slow_server_are_in_the_first_request_of_an_agent(wait: str, is_offered: bool) -> None:
    async def first_tools() -> list[str]:
        env = unmeasured() | {"HANDRAIL_MCP_WAIT_MS": wait}
        model = ScriptedModel([[say("done")]])
        spec = Agent(model, mcp_servers={"slow": {"type": "sdk"}}, env=env).session.spec
        host = SessionHost(model=model, mcp_transport=answer_after_a_second, on_warning=lambda _text: None)
        async with Agent.from_spec(spec, env, host) as agent:
            await agent.ask("go")
        requests: list[Any] = model.requests
        return [each.name for each in requests[0].tools]

    assert ("mcp__slow__forecast" in run_virtual(first_tools())) is is_offered

"""MCP servers of a session, by their configuration."""

from pathlib import Path
from typing import Any

import pytest

from handrail.mcp.peer import Message
from handrail.session.mcp_servers import Servers

pytestmark = pytest.mark.anyio


async def answer(name: str, message: Message) -> Message:
    tools = [{"name": "t", "description": name, "inputSchema": {"type": "object"}}]
    result: dict[str, Any] = {"capabilities": {"tools": {}}, "tools": tools}
    return {"jsonrpc": "2.0", "id": message.get("id"), "result": result}


@pytest.mark.parametrize(
    ("names", "used"),
    [
        (("a_b", "a b"), ["a_b"]),
        (("a.b", "a__b", "a_b"), ["a.b"]),
        (("a", "a__b", "b"), ["a", "a__b", "b"]),
        (("a", "_a_"), ["a"]),
        (("a", "A"), ["a", "A"]),
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
    assert all("rules cannot tell its name from" in note for note in notes)

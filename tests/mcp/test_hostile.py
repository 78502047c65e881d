"""Servers that mean harm: what they list, say and send is bounded, checked and shown harmless."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail.conversation.blocks import Text
from handrail.errors import McpError
from handrail.mcp.connection import ServerConnection
from handrail.mcp.handshake import greet
from handrail.mcp.host import ClientHost, Elicitation, ElicitationAnswer
from handrail.mcp.messages import CONTROLS, Message
from handrail.mcp.open_peer import ServerParts, open_once
from handrail.mcp.peer import ExchangeWire, Peer
from handrail.mcp.server import Server, TimeLimits
from handrail.mcp.tools import tools_of
from handrail.tools.tool import PLAIN_VIEW
from tests.mcp.program import GREETING, OK, program, tool

pytestmark = pytest.mark.anyio


Pages = Callable[[Mapping[str, Any]], Mapping[str, Any]]


async def listed(pages: Pages, *, connect: float = 30.0, pause: float = 0.0) -> Server:
    """A server whose list of tools comes in these pages, each after a pause."""

    async def exchange(message: Message) -> Message:
        result: Mapping[str, Any] = GREETING
        if message["method"] == "tools/list":
            await asyncio.sleep(pause)
            result = pages(message["params"])
        return {"jsonrpc": "2.0", "id": message.get("id"), "result": result}

    peer = Peer("s")
    peer.attach(ExchangeWire(exchange, peer.receive))
    server = Server(peer, await greet(peer, {}, time_limit=30.0, known="legacy"), TimeLimits(connect))
    await server.load()
    return server


async def test_of_a_huge_list_only_so_many_entries_are_taken() -> None:
    server = await listed(lambda _params: {"tools": [tool(f"t{n}") for n in range(10_050)]})
    assert len(server.tools) == 10_000


async def test_a_list_of_huge_pages_is_given_up() -> None:
    page = {"tools": [tool("t", description="x" * 9_000_000)], "nextCursor": "more"}
    with pytest.raises(McpError, match="more than 33,554,432 characters"):
        await listed(lambda _params: page)


@pytest.mark.parametrize("pause", [pytest.param(0.05, id="slow pages"), pytest.param(3600.0, id="a page that waits")])
async def test_a_slow_list_is_given_up_as_a_whole(pause: float) -> None:
    with anyio.fail_after(20), pytest.raises(McpError, match=r"did not answer tools/list|took more than"):
        await listed(lambda _params: {"tools": [], "nextCursor": "more"}, connect=0.3, pause=pause)


async def test_a_schema_with_remote_references_is_left_out_and_no_one_is_asked_for_it() -> None:
    asked: list[bytes] = []

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.read(100))
        writer.close()

    async with await asyncio.start_server(take, "127.0.0.1", 0) as site:
        address = f"http://127.0.0.1:{site.sockets[0].getsockname()[1]}/schema.json"
        schemas: dict[str, Any] = {
            "ref": {"type": "object", "properties": {"a": {"$ref": address}}},
            "dialect": {"type": "object", "$schema": address},
            "dynamic": {"type": "object", "$dynamicRef": address},
            "id": {"type": "object", "$id": address, "properties": {"a": {"$ref": "other.json"}}},
        }
        server = await listed(lambda _params: {"tools": [tool(name, inputSchema=s) for name, s in schemas.items()]})
        tools, problems = tools_of(server, server.tools)
        for each in tools:
            each.parse({"a": 1})

    assert asked == []
    assert {each.name for each in tools} == {"mcp__s__dialect"}
    assert [problem.partition("'")[2].partition("'")[0] for problem in problems] == [
        f"mcp__s__{name}" for name in ("ref", "dynamic", "id")
    ]


async def test_control_characters_reach_neither_the_model_nor_the_terminal() -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\u202enormal\u0000"
    server = await listed(lambda _params: {"tools": [tool(f"n{evil}", description=evil, title=evil)]})
    (only,), _ = tools_of(server, server.tools)
    shown = [only.name, only.prompt(PLAIN_VIEW), only.display_name()]
    assert not any(CONTROLS.search(text) for text in shown), shown
    assert "normal" in only.prompt(PLAIN_VIEW)


@pytest.mark.parametrize(
    "before",
    [
        pytest.param('[say({"id": n, "result": {"content": []}}) for n in range(1000, 1200)]', id="unknown ids"),
        pytest.param('[say({"id": str(n), "method": "x/y"}) for n in range(2000)]', id="a flood of requests"),
        pytest.param('[say({"method": "notifications/tools/list_changed"}) for n in range(2000)]', id="of notices"),
        pytest.param(
            '[say({"method": "notifications/progress", "params": {"progressToken": n}}) for n in (None, [], 77)]',
            id="progress of nothing",
        ),
        pytest.param('sys.stdout.write("no json\\n[[[[\\n{}\\nnull\\n"); sys.stdout.flush()', id="invalid JSON-RPC"),
        pytest.param('say({"id": True, "result": 1}); say({"id": {}, "result": 1})', id="ids that are none"),
    ],
)
async def test_what_a_server_sends_unasked_disturbs_no_call(before: str) -> None:
    with anyio.fail_after(60):
        connection = ServerConnection("s", lambda: program(f"{before}; {OK}"))
        connection.start()
        await connection.wait_until_settled()
        output = await connection.call("t", {}, "1", lambda _news: None)
        await connection.aclose()
    assert "ok" in str(output.blocks)


ASK = """say({"id": "q", "method": METHOD, "params": PARAMS}); reply = json.loads(sys.stdin.readline()); \\
        say({"id": message["id"], "result": {"content": [{"type": "text", "text": json.dumps(reply)}]}})"""


@pytest.mark.parametrize(
    ("method", "params", "expected"),
    [
        pytest.param("roots/list", {}, '"uri": "file:///place/a%20b"', id="the working folders"),
        pytest.param("sampling/createMessage", {}, '"code": -32601', id="no model"),
        pytest.param(
            "elicitation/create",
            {"mode": "url", "message": "Sign in", "url": "https://a.test/x", "elicitationId": "e"},
            '"result": {"action": "accept"}',
            id="an address to visit",
        ),
        pytest.param(
            "elicitation/create", {"mode": "url", "message": "m", "url": "javascript:x"}, '"error"', id="not a script"
        ),
        pytest.param("tasks/get", {}, '"code": -32601', id="what is not offered"),
    ],
)
async def test_a_server_may_ask_for_folders_and_the_person_and_for_nothing_else(
    method: str, params: dict[str, Any], expected: str
) -> None:
    visited: list[str] = []

    async def elicit(question: Elicitation) -> ElicitationAnswer:
        visited.append(question.url)
        return ElicitationAnswer("accept")

    parts = ServerParts(host=ClientHost(lambda: (Path("/place/a b"),), elicit))
    asking = ASK.replace("METHOD", repr(method)).replace("PARAMS", repr(params))
    with anyio.fail_after(60):
        async with open_once(program(asking), parts) as server:
            output = await server.call("t", {}, "1", lambda _news: None)
    (answer,) = output.blocks
    assert isinstance(answer, Text)
    assert expected in answer.text
    assert visited == (["https://a.test/x"] if "accept" in expected else [])


async def test_a_giant_result_ends_the_connection_with_a_clear_error() -> None:
    giant = 'sys.stdout.write("x" * (33 * 1024 * 1024)); sys.stdout.flush(); sys.stdin.read()'
    with anyio.fail_after(60):
        async with open_once(program(giant)) as server:
            with pytest.raises(McpError, match="a line of more than 33,554,432 bytes"):
                await server.call("t", {}, "1", lambda _news: None)

"""Servers on standard input and output, real ones and hostile ones, and their tools as tools of ours."""

import os
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail.conversation.blocks import Image, Text, ToolUse
from handrail.errors import InputError, ToolError
from handrail.mcp.peer import ExchangePeer, McpError, Message
from handrail.mcp.server import Server, connect, output_of
from handrail.mcp.stdio import StdioPeer
from handrail.mcp.tools import tool_name, tools_of
from handrail.tools.abort import AbortSignal
from handrail.tools.context import Progress, RunContext, ToolContext
from handrail.tools.permission import Decision, Verdict
from handrail.tools.tool import PLAIN_VIEW
from tests.forked import unmeasured

pytestmark = pytest.mark.anyio

REFERENCE = [sys.executable, str(Path(__file__).with_name("reference_server.py"))]


async def nobody(_use: ToolUse, _run: RunContext) -> Decision:
    return Decision(Verdict.DENY, "not here")


def context(news: list[Progress] | None = None) -> ToolContext:
    hear = news.append if news is not None else lambda _progress: None
    return ToolContext(RunContext(Path("/")), ToolUse("call-1", "any", {}), AbortSignal(), hear, nobody)


async def started(argv: list[str], name: str = "ref") -> StdioPeer:
    return await StdioPeer.start(name, argv, unmeasured(), "/")


@pytest.fixture(scope="module")
async def reference() -> AsyncIterator[Server]:
    server = await connect("my ref.1", await started(REFERENCE))
    yield server
    await server.aclose()


@pytest.mark.proves("N16")
async def test_tools_of_a_real_server_are_tools_of_ours(reference: Server) -> None:
    tools = {tool.name: tool for tool in tools_of(reference)[0]}
    add = tools["mcp__my_ref_1__add"]

    assert add.prompt(PLAIN_VIEW) == "The sum of two numbers."
    assert add.is_read_only({})
    assert add.is_concurrency_safe({})
    assert not tools["mcp__my_ref_1__fail"].is_read_only({})
    assert add.display_name() == "Add numbers"
    assert add.parse({"a": "1", "b": 2}) == {"a": 1, "b": 2}
    with pytest.raises(InputError, match="'b' is missing"):
        add.parse({"a": 1})

    output = await add.call({"a": 1, "b": 2}, context())
    assert output.blocks == (Text("3"),)
    assert output.mcp is not None
    assert output.mcp.structured_content == {"result": 3}


async def test_what_goes_wrong_in_a_tool_is_its_result(reference: Server) -> None:
    tools = {tool.mcp.tool: tool for tool in tools_of(reference)[0] if tool.mcp}
    output = await tools["fail"].call({"text": "no way"}, context())
    assert output.is_error
    assert "fail" in str(output.blocks)


async def test_progress_of_a_call_is_told_as_it_comes(reference: Server) -> None:
    tools = {tool.mcp.tool: tool for tool in tools_of(reference)[0] if tool.mcp}
    news: list[Progress] = []
    await tools["count"].call({"upto": 2}, context(news))
    assert news == [Progress("at 1", 0.5), Progress("at 2", 1.0)]


async def test_a_server_that_ends_in_the_middle_of_a_call_says_its_last_words() -> None:
    server = await connect("ref", await started(REFERENCE))
    tools = {tool.mcp.tool: tool for tool in tools_of(server)[0] if tool.mcp}
    with pytest.raises(ToolError, match=r"exit code 7.*I have to go"), anyio.fail_after(30):
        await tools["leave"].call({}, context())
    with pytest.raises(ToolError, match="cannot be asked"):
        await tools["add"].call({"a": 1, "b": 1}, context())
    await server.aclose()


@pytest.mark.proves("R8")
async def test_closing_ends_the_process_even_in_the_middle_of_a_call() -> None:
    peer = await started(REFERENCE)
    server = await connect("ref", peer)
    tools = {tool.mcp.tool: tool for tool in tools_of(server)[0] if tool.mcp}
    with anyio.move_on_after(0.2):
        await tools["wait"].call({}, context())

    await server.aclose()

    with pytest.raises(ProcessLookupError):
        os.kill(peer._process.pid, 0)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        pytest.param("", "exit code 0", id="it ends at once"),
        pytest.param("import sys; sys.exit('broken')", "exit code 1.*broken", id="it fails at once"),
        pytest.param("print('hello'); input(); input()", "did not answer", id="it speaks no JSON"),
        pytest.param(
            'input(); print(\'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"go away"}}\'); input()',
            "go away",
            id="it refuses",
        ),
        pytest.param('input(); print(\'{"id":1,"result":5}\'); input()', "no result", id="its result is none"),
        pytest.param("input(); print('[' * 100000); print('{\"id\":\"x\"}'); input()", "did not answer", id="nonsense"),
    ],
)
async def test_a_server_that_misbehaves_is_an_error_and_not_a_hang(program: str, expected: str) -> None:
    peer = await started([sys.executable, "-c", program])
    try:
        with pytest.raises(McpError, match=expected), anyio.fail_after(30):
            await connect("bad", peer, patience=0.5 if "did not answer" in expected else 20.0)
    finally:
        await peer.aclose()


async def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(McpError, match="'/no/such/server'"):
        await started(["/no/such/server"])


def answering(answers: Mapping[str, Any]) -> ExchangePeer:
    async def exchange(message: Message) -> Message:
        return {"jsonrpc": "2.0", "id": message.get("id"), "result": answers.get(message["method"], {})}

    return ExchangePeer(exchange)


async def test_a_list_without_end_is_not_followed_forever() -> None:
    greeting = {"capabilities": {"tools": {}}, "serverInfo": {"name": "x"}}
    with pytest.raises(McpError, match="more than 100 pages"):
        await connect("x", answering({"initialize": greeting, "tools/list": {"tools": [], "nextCursor": "again"}}))


async def test_tools_that_make_no_sense_are_left_out_and_named() -> None:
    listed = [
        {"name": "good", "inputSchema": {"type": "object"}, "_meta": {"anthropic/alwaysLoad": True}},
        {"name": "no schema"},
        {"name": "odd", "inputSchema": {"type": "array"}},
        {"name": "bare", "inputSchema": {}},
        7,
    ]
    greeting: Message = {"capabilities": {"tools": {}}}
    server = await connect("x", answering({"initialize": greeting, "tools/list": {"tools": listed}}))

    tools, problems = tools_of(server)

    assert [tool.name for tool in tools] == ["mcp__x__good", "mcp__x__bare"]
    assert tools[0].always_load
    assert len(problems) == 1
    assert "'array'" in problems[0]


def test_names_are_what_every_model_takes() -> None:
    assert tool_name("my srv.x", "rw.sleep") == "mcp__my_srv_x__rw_sleep"
    long = [tool_name("server", "x" * 100 + end) for end in "ab"]
    assert all(len(name) == 64 for name in long)
    assert long[0] != long[1]


def test_content_of_every_kind_becomes_a_block() -> None:
    content = [
        {"type": "text", "text": "words"},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "resource_link", "uri": "file:///x", "name": "x"},
        {"type": "resource", "resource": {"uri": "a:b", "text": "inside"}},
        {"type": "audio", "data": "", "mimeType": "audio/wav"},
        "nonsense",
    ]
    output = output_of({"content": content, "isError": True}, "srv")
    assert output.blocks == (
        Text("words"),
        Image("aGk=", "image/png"),
        Text("[x: file:///x]"),
        Text("[resource of srv at a:b]\ninside"),
        Text("[audio content, which cannot be shown here]"),
        Text("[content that is not understood]"),
    )
    assert output.is_error

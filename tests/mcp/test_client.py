"""Servers on standard input and output, real ones and hostile ones, and their tools as tools of ours."""

import asyncio
import gc
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic_core import to_json

from handrail.conversation.blocks import Image, Text, ToolUse
from handrail.errors import InputError, McpError, ToolError
from handrail.mcp.content import output_of
from handrail.mcp.handshake import greet
from handrail.mcp.messages import Message
from handrail.mcp.peer import ExchangeWire, Peer
from handrail.mcp.server import Server, TimeLimits
from handrail.mcp.stdio import StdioWire
from handrail.mcp.tools import McpTool, progress_of, tools_of
from handrail.processes.spawn import ProcessSpec
from handrail.tools.abort import AbortSignal
from handrail.tools.context import Progress, RunContext, ToolContext
from handrail.tools.mcp_names import tool_name
from handrail.tools.permission import Decision, Verdict
from handrail.tools.tool import PLAIN_VIEW, McpInfo
from tests.forked import reference_server, unmeasured

pytestmark = pytest.mark.anyio

REFERENCE = [sys.executable, str(Path(__file__).with_name("reference_server.py"))]


async def nobody(_use: ToolUse, _run: RunContext) -> Decision:
    return Decision(Verdict.DENY, "not here")


def context(news: list[Progress] | None = None) -> ToolContext:
    hear = news.append if news is not None else lambda _progress: None
    return ToolContext(RunContext(Path("/")), ToolUse("call-1", "any", {}), AbortSignal(), hear, nobody)


async def started(argv: list[str], name: str = "ref") -> Peer:
    peer = Peer(name)
    await StdioWire.start(peer, ProcessSpec(argv, "/", unmeasured()))
    return peer


async def connect(peer: Peer, *, time_limit: float = 30.0, call_time_limit: float = 600.0) -> Server:
    welcome = await greet(peer, {}, time_limit=time_limit, known="legacy")
    server = Server(peer, welcome, TimeLimits(time_limit, call_time_limit))
    await server.load()
    return server


def offered(server: Server) -> tuple[tuple[McpTool, ...], tuple[str, ...]]:
    return tools_of(server, server.tools)


@pytest.fixture(scope="module")
async def reference() -> AsyncIterator[Server]:
    server = await connect(await started([reference_server()["command"]], "my ref.1"))
    yield server
    await server.aclose()


@pytest.mark.proves("N16")
async def test_tools_of_a_real_server_are_tools_of_ours(reference: Server) -> None:
    tools = {tool.name: tool for tool in offered(reference)[0]}
    add = tools["mcp__my_ref_1__add"]

    assert add.mcp == McpInfo("my ref.1", "add")

    assert add.prompt(PLAIN_VIEW) == "The sum of two numbers."
    assert add.is_read_only({})
    assert add.is_concurrency_safe({})
    assert not tools["mcp__my_ref_1__fail"].is_read_only({})
    assert add.display_name() == "my ref.1: Add numbers"
    assert add.parse({"a": "1", "b": 2}) == {"a": 1, "b": 2}
    with pytest.raises(InputError, match="'b' is missing"):
        add.parse({"a": 1})

    output = await add.call({"a": 1, "b": 2}, context())
    assert output.blocks == (Text("3"),)
    assert output.mcp is not None
    assert output.mcp.structured_content == {"result": 3}


async def test_what_goes_wrong_in_a_tool_is_its_result(reference: Server) -> None:
    tools = {tool.mcp.tool: tool for tool in offered(reference)[0] if tool.mcp}
    output = await tools["fail"].call({"text": "no way"}, context())
    assert output.is_error
    assert "fail" in str(output.blocks)


async def test_progress_of_a_call_is_told_as_it_comes(reference: Server) -> None:
    tools = {tool.mcp.tool: tool for tool in offered(reference)[0] if tool.mcp}
    news: list[Progress] = []
    await tools["count"].call({"upto": 2}, context(news))
    assert news == [Progress("at 1", 0.5), Progress("at 2", 1.0)]


async def test_a_server_that_ends_in_the_middle_of_a_call_says_its_last_words() -> None:
    server = await connect(await started([reference_server()["command"]]))
    tools = {tool.mcp.tool: tool for tool in offered(server)[0] if tool.mcp}
    with pytest.raises(ToolError, match=r"exit code 7.*I have to go"), anyio.fail_after(30):
        await tools["leave"].call({}, context())
    with pytest.raises(ToolError, match="cannot be asked"):
        await tools["add"].call({"a": 1, "b": 1}, context())
    await server.aclose()


@pytest.mark.proves("R8")
async def test_closing_ends_the_process_even_in_the_middle_of_a_call() -> None:
    peer = Peer("ref")
    wire = await StdioWire.start(peer, ProcessSpec(REFERENCE, "/", unmeasured()))
    server = await connect(peer)
    tools = {tool.mcp.tool: tool for tool in offered(server)[0] if tool.mcp}
    with anyio.move_on_after(0.2):
        await tools["wait"].call({}, context())

    await server.aclose()

    with pytest.raises(ProcessLookupError):
        os.kill(wire.pid, 0)


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
        pytest.param(
            'input(); print(\'{"id":1,"result":5}\'); input()', "not a JSON-RPC result", id="its result is none"
        ),
        pytest.param("input(); print('[' * 100000); print('{\"id\":\"x\"}'); input()", "did not answer", id="nonsense"),
    ],
)
async def test_a_server_that_misbehaves_is_an_error_and_not_a_hang(program: str, expected: str) -> None:
    peer = await started([sys.executable, "-c", program])
    try:
        with pytest.raises(McpError, match=expected), anyio.fail_after(30):
            await connect(peer, time_limit=0.5 if "did not answer" in expected else 20.0)
    finally:
        await peer.aclose()


async def test_a_server_that_ends_while_it_is_asked_leaves_no_error_that_was_never_looked_at() -> None:
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, what: complaints.append(what))
    peer = await started(["/bin/sh", "-c", "head -c 1 >/dev/null; exec 0<&-; sleep 600"])
    with anyio.fail_after(30):
        with pytest.raises(McpError, match="has ended"):
            # more than a pipe takes, so that sending it fails while its answer is waited for
            await peer.request("initialize", {"text": "x" * 10_000_000}, time_limit=20.0)
        await peer.aclose()
    gc.collect()
    await anyio.lowlevel.checkpoint()

    assert complaints == []


async def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(McpError, match="'/no/such/server'"):
        await started(["/no/such/server"])


def answering(answers: Mapping[str, Any], name: str = "s") -> Peer:
    async def exchange(message: Message) -> Message:
        return {"jsonrpc": "2.0", "id": message.get("id"), "result": answers.get(message["method"], {})}

    peer = Peer(name)
    return peer.attach(ExchangeWire(exchange, peer.receive))


async def test_a_list_without_end_is_not_followed_forever() -> None:
    greeting = {"capabilities": {"tools": {}}, "serverInfo": {"name": "x"}}
    with pytest.raises(McpError, match="more than 100 pages"):
        await connect(answering({"initialize": greeting, "tools/list": {"tools": [], "nextCursor": "again"}}))


async def test_tools_that_make_no_sense_are_left_out_and_named() -> None:
    listed = [
        {"name": "good", "inputSchema": {"type": "object"}, "_meta": {"anthropic/alwaysLoad": True}},
        {"name": "no schema"},
        {"name": "odd", "inputSchema": {"type": "array"}},
        {"name": "bare", "inputSchema": {}},
        7,
    ]
    greeting: Message = {"capabilities": {"tools": {}}}
    server = await connect(answering({"initialize": greeting, "tools/list": {"tools": listed}}))

    tools, problems = offered(server)

    assert [tool.name for tool in tools] == ["mcp__s__good", "mcp__s__bare"]
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
        {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
        {"type": "resource_link", "uri": "file:///x", "name": "x"},
        {"type": "resource", "resource": {"uri": "a:b", "text": "inside"}},
        {"type": "audio", "data": "", "mimeType": "audio/wav"},
        "nonsense",
    ]
    output = output_of({"content": content, "isError": True}, "srv")
    assert output.blocks == (
        Text("words"),
        Image("iVBORw0KGgo=", "image/png"),
        Text("[x: file:///x]"),
        Text("[resource of srv at a:b]\ninside"),
        Text("[audio of the type 'audio/wav', which cannot be shown here: files of servers are not kept here]"),
        Text("[content that is not understood]"),
    )
    assert output.is_error


HALF = json.loads('"\\ud800"')


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"content": [{"type": "text", "text": f"a{HALF}"}], "structuredContent": {HALF: HALF}}, ("a?",)),
        ({"content": [{"type": "text", "text": ""}] * 600}, ("",) * 500 + ("[100 more parts are left out]",)),
        ({"content": "text"}, ()),
        ({"content": None}, ()),
    ],
)
async def test_what_a_server_answers_can_be_written_and_sent(result: Any, expected: tuple[str, ...]) -> None:
    server = await connect(answering({"tools/call": result}))

    output = await server.call("t", {}, "1", lambda _news: None)

    assert tuple(block.text for block in output.blocks if isinstance(block, Text)) == expected
    assert to_json(output.data)
    assert output.mcp is None or to_json(output.mcp.structured_content) is not None


async def test_an_answer_that_is_nested_without_end_is_an_error() -> None:
    server = await connect(answering({"tools/call": {"content": [], "structuredContent": {"a": nested(150)}}}))
    with pytest.raises(McpError, match="nested more than 100 levels"):
        await server.call("t", {}, "1", lambda _news: None)


@pytest.mark.parametrize(
    ("data", "kind", "shown"),
    [
        ("iVBORw0KGgo=", "image/png", True),
        ("/9j/4AAQSkZJRg==", "image/jpeg", True),
        ("iVBORw0KGgo=", "image/jpeg", False),
        ("!!! no base64", "image/png", False),
        ("", "image/png", False),
        ("PHN2Zz4=", "image/svg+xml", False),
        ("iVBORw0KGgo=" * 600_000, "image/png", False),
    ],
)
def test_only_images_that_models_take_are_handed_on(data: str, kind: str, *, shown: bool) -> None:
    blocks = output_of({"content": [{"type": "image", "data": data, "mimeType": kind}]}, "s").blocks
    assert [isinstance(block, Image) for block in blocks] == [shown]


@pytest.mark.parametrize(
    ("news", "expected"),
    [
        ({"progress": 10**400, "total": 1}, Progress("", None)),
        ({"progress": 1, "total": 10**400}, Progress("", None)),
        ({"progress": float("nan"), "total": 1.0}, Progress("", None)),
        ({"progress": 1, "total": float("inf")}, Progress("", None)),
        ({"progress": "1", "total": None, "message": f"m{HALF}"}, Progress("m?", None)),
        ({"progress": 1, "total": 2, "message": "x" * 5_000}, Progress("x" * 1_000, 0.5)),
    ],
)
def test_progress_that_makes_no_sense_is_no_share(news: dict[str, Any], expected: Progress) -> None:
    assert progress_of(news) == expected


async def test_a_program_that_is_not_there_is_named_without_words_of_the_system() -> None:
    with pytest.raises(McpError) as caught:
        await started(["no-such-server", "--x"])

    said = str(caught.value)
    assert said.endswith("cannot be started: There is no such program: 'no-such-server'. Check its command.")


DEAF = """
import json, sys, time
for line in sys.stdin:
    message = json.loads(line)
    answers = {"initialize": {"capabilities": {"tools": {}}}, "tools/list": {"tools": []}}
    if "id" in message:
        print(json.dumps({"id": message["id"], "result": answers[message["method"]]}), flush=True)
    if message["method"] == "tools/list":
        time.sleep(3600)
"""


async def test_a_server_that_takes_nothing_in_holds_up_no_call_and_no_end() -> None:
    peer = await started([sys.executable, "-c", DEAF])
    server = await connect(peer, call_time_limit=0.2)
    with anyio.fail_after(30):
        with pytest.raises(McpError, match=r"did not answer tools/call in 0.2 s"):
            await server.call("t", {"much": "x" * 4_000_000}, "1", lambda _news: None)
        with anyio.move_on_after(0.1) as given_up:
            await server.call("t", {}, "2", lambda _news: None)
        assert given_up.cancelled_caught
        await server.aclose()


FLOOD = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "method" not in message or "id" not in message:
        continue
    for number in range(20000):
        print(json.dumps({"id": f"r{number}", "method": "sampling/createMessage", "params": {}}))
    print(json.dumps({"id": message["id"], "result": {"capabilities": {}}}), flush=True)
"""


async def test_a_server_that_asks_without_end_is_refused_without_end() -> None:
    peer = await started([sys.executable, "-c", FLOOD])
    with anyio.fail_after(60):
        server = await connect(peer)
        await server.call("t", {}, "1", lambda _news: None)
        assert not peer._questions
        await server.aclose()


async def test_a_listener_that_breaks_ends_the_connection_instead_of_leaving_calls_waiting() -> None:
    program = """
import json
for number in (1, 2, 3):
    token = json.loads(input()).get("id")
    print(json.dumps({"id": token, "result": {}}) if number < 3 else
          json.dumps({"method": "notifications/progress", "params": {"progressToken": token}}), flush=True)
input()
"""

    def broken(_news: Mapping[str, Any]) -> None:
        raise RuntimeError("broken")

    peer = await started([sys.executable, "-c", program])
    server = await connect(peer)
    with anyio.fail_after(30), pytest.raises(McpError, match="could not be handled"):
        await server.call("t", {}, "1", broken)
    await server.aclose()


@pytest.mark.parametrize(
    ("schema", "is_offered"),
    [
        ({"type": "object", "properties": {"a": {"type": "string"}}}, True),
        ({"type": "object", "properties": {"a": {"items": [{"type": "string"}]}}}, True),
        ({"type": "object", "$schema": "http://127.0.0.1:9/nothing-is-asked-there"}, True),
        ({"type": "object", "properties": []}, False),
        ({"type": "object", "properties": {"a": {"type": "nonsense"}}}, False),
        ({"type": "object", "required": 5}, False),
        ({"type": "object", "properties": {"a": {"multipleOf": 0}}}, False),
    ],
)
async def test_a_tool_whose_schema_models_would_refuse_is_left_out_alone(
    schema: dict[str, Any], *, is_offered: bool
) -> None:
    good = {"name": "good", "inputSchema": {"type": "object"}}
    listed = {"tools": [{"name": "t", "inputSchema": schema}, good]}
    server = await connect(answering({"initialize": {"capabilities": {"tools": {}}}, "tools/list": listed}))

    tools, problems = offered(server)

    assert [tool.name for tool in tools] == (["mcp__s__t"] if is_offered else []) + ["mcp__s__good"]
    assert len(problems) == (0 if is_offered else 1)

"""Servers that mean harm: what they list, say and send is bounded, checked and shown harmless."""

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail.conversation.blocks import Text
from handrail.errors import McpError
from handrail.mcp import messages
from handrail.mcp.connection import ConnectionEvents, ServerConnection
from handrail.mcp.handshake import greet
from handrail.mcp.host import ClientHost, Elicitation, ElicitationAnswer
from handrail.mcp.messages import CONTROLS, Message
from handrail.mcp.open_peer import ServerParts, open_once
from handrail.mcp.pace import BURST, MessagePace
from handrail.mcp.peer import ExchangeWire, Peer
from handrail.mcp.server import Server, TimeLimits
from handrail.mcp.server_changes import LONGEST_QUIET, ServerChanges
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
        pytest.param('say({"id": "9" * 5000, "result": {}})', id="an id without end"),
        pytest.param(
            'sys.stdout.write(\'{"method":"notifications/x","params":\' + \'{"a":\' * 150 + "1" + "}" * 151 + "\\n")',
            id="a notice that is nested without end",
        ),
        pytest.param(
            'sys.stdout.write(\'{"id":"q","method":"a/b","params":\' + \'{"a":\' * 150 + "1" + "}" * 151 + "\\n")',
            id="a question that is nested without end",
        ),
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
        *(
            pytest.param("elicitation/create", {"mode": "url", "message": "m", "url": url}, '"error"', id=name)
            for url, name in (
                ("javascript:x", "not a script"),
                ("file:///etc/passwd", "not a file"),
                ("https://bank.test@evil.test/", "not a host behind another name"),
                ("https://b\u0430nk.test/", "not letters that look like others"),
                ("https://evil.test\\@bank.test/", "not the wrong slash"),
                ("https://a.test/ \nAllow it? (y)", "not an address with more behind it"),
            )
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


async def test_a_program_that_closes_its_output_and_lives_on_is_lost_and_ended(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    closing = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); os.close(1); time.sleep(3600)"
    lost = asyncio.Event()
    events = ConnectionEvents(lambda: lost.set() if connection.status == "failed" else None)
    connection = ServerConnection("s", lambda: program(closing), events=events)
    with anyio.fail_after(60):
        connection.start()
        await connection.wait_until_settled()
        with pytest.raises(McpError, match="it closed its standard output, though it still runs"):
            await connection.call("t", {}, "1", lambda _news: None)
        await lost.wait()
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid.read_text()), 0)
        await connection.aclose()


async def test_numbers_that_json_lacks_are_nothing_and_of_two_equal_keys_the_last_counts() -> None:
    answer = (
        '{"id":99,"id":%d,"result":{},"result":{"content":[],"structuredContent":{"a":NaN,"b":[-Infinity,1e999,1.5]}}}'
    )
    with anyio.fail_after(60):
        async with open_once(program(f"print({answer!r} % message['id'], flush=True)")) as server:
            output = await server.call("t", {}, "1", lambda _news: None)
    assert output.blocks == (Text('{"a":null,"b":[null,null,1.5]}'),)
    assert output.data == {"content": [], "structuredContent": {"a": None, "b": [None, None, 1.5]}}


async def test_a_message_of_more_values_than_fit_into_memory_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "MAX_VALUES", 10_000)
    values = 'say({"id": message["id"], "result": {"content": [], "structuredContent": {"a": [[]] * 10_000}}})'
    text = 'say({"id": message["id"], "result": {"content": [{"type": "text", "text": ",[{\\"" * 10_000}]}})'
    endless = r"""print(',' * 10_001 + '"' + '\\"' * 1_000_000 + '\\', flush=True)"""  # its text has no end
    with anyio.fail_after(60):
        async with open_once(program(text)) as server:  # the same signs as words are no values
            output = await server.call("t", {}, "1", lambda _news: None)
            assert len(str(output.blocks[0])) > 40_000
        for program_text in (values, endless):
            async with open_once(program(program_text)) as server:
                with pytest.raises(McpError, match="a message of more than 10,000 values"):
                    await server.call("t", {}, "1", lambda _news: None)


async def test_a_server_that_sends_without_end_has_to_wait_after_each_burst() -> None:
    now, pauses = 0.0, []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    flooded = MessagePace(lambda: now, pause)
    for _ in range(3 * BURST):
        await flooded.keep()
    assert len(pauses) == 3

    calm = MessagePace(lambda: now, pause)
    for _ in range(3 * BURST):
        now += 0.01
        await calm.keep()
    assert len(pauses) == 3


async def test_a_server_whose_lists_always_change_is_asked_for_them_less_and_less() -> None:
    waited: list[float] = []
    enough = asyncio.Event()

    async def pause(seconds: float) -> None:
        waited.append(seconds)
        await asyncio.sleep(0)

    async def refresh(_stale: object) -> None:
        if len(waited) == 12:
            enough.set()
        else:
            changes.take("notifications/tools/list_changed", {})

    changes = ServerChanges(lambda _uri: None, pause)
    changes.take("notifications/tools/list_changed", {})
    server = await listed(lambda _params: {"tools": []})
    with anyio.fail_after(60):
        following = asyncio.create_task(changes.follow(server, refresh))
        await enough.wait()
        following.cancel()
    assert waited[:4] == [0.4, 0.8, 1.6, 3.2]
    assert waited[-1] == LONGEST_QUIET

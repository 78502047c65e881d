"""A connection over a whole session: loss, reconnection, changed lists, closing, and servers that mean harm."""

import asyncio
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail.errors import McpError
from handrail.mcp.config import ServerConfig
from handrail.mcp.connection import ConnectionEvents, ServerConnection
from handrail.mcp.open_peer import NO_PARTS, ServerParts, open_once
from handrail.mcp.tools import McpTool
from tests.forked import reference_server, unmeasured
from tests.mcp import program as talkative
from tests.processes.seen import alive

pytestmark = pytest.mark.anyio

STDIO = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    def answer(result):
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
    method = message["method"]
    if method == "server/discover":
        print(json.dumps({"id": message["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
    elif method == "initialize":
        answer({"protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": True}}, "serverInfo": {}})
    elif method == "tools/list":
        answer({"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in NAMES]})
    elif method == "tools/call":
        CALL
"""


def program(names: str, call: str) -> ServerConfig:
    text = STDIO.replace("NAMES", names).replace("CALL", call)
    return ServerConfig("s", "stdio", command=sys.executable, args=("-c", text), env=unmeasured(), cwd="/")


async def call(connection: ServerConnection, tool: str = "t") -> Any:
    return await connection.call(tool, {}, "1", lambda _news: None)


async def test_a_lost_program_keeps_its_tools_and_says_why_it_cannot_be_called() -> None:
    changed = asyncio.Event()
    dying = "sys.stderr.write('out of \\x1b[31mcheese'); sys.exit(3)"
    connection = ServerConnection("s", lambda: program("['t']", dying), events=ConnectionEvents(on_change=changed.set))
    with anyio.fail_after(30):
        connection.start()
        await connection.wait_until_settled()
        before = connection.tools
        changed.clear()
        with pytest.raises(McpError, match=r"exit code 3\. Its last output: out of \ufffd\[31mcheese"):
            await call(connection)
        await changed.wait()
        assert connection.status == "failed"
        assert connection.tools is before
        with pytest.raises(McpError, match=r"is not connected.*exit code 3"):
            await call(connection)
        await connection.aclose()


PID = "answer({'content': [{'type': 'text', 'text': str(os.getpid())}]})"


async def connect(config: ServerConfig) -> tuple[ServerConnection, int]:
    """A connection, and the process id that a call of its tool gives."""
    connection = ServerConnection("s", lambda: config)
    connection.start()
    await connection.wait_until_settled()
    return connection, int((await call(connection)).blocks[0].text)


async def test_closing_waits_for_a_lost_program_that_is_just_being_ended() -> None:
    with anyio.fail_after(30):
        connection, pid = await connect(program("['t']", f"import os, signal; os.close(0); {PID}; signal.pause()"))
        with pytest.raises(McpError):
            await call(connection)
        while connection.server is not None and connection.status != "failed":
            await anyio.lowlevel.checkpoint()
        await connection.aclose()

    assert not alive(pid)


def test_a_program_is_ended_also_if_closing_is_cancelled_and_the_loop_ends() -> None:
    async def main() -> tuple[object, int]:
        connection, pid = await connect(program("['t']", f"import os, signal; {PID}; signal.pause()"))
        server = connection.server
        assert server is not None
        closing = asyncio.create_task(connection.aclose())
        await asyncio.wait({server.peer.ended})
        await asyncio.sleep(0)
        closing.cancel()
        return server, pid

    _server, pid = asyncio.run(main())

    assert not alive(pid)


async def test_a_list_that_changes_is_listed_anew_and_what_stays_the_same_stays_the_same_tool() -> None:
    grow = (
        "names.append(f'n{len(names)}'); answer({'content': []}); "
        "[print(json.dumps({'method': 'notifications/tools/list_changed'}), flush=True) for _ in range(1000)]"
    )
    config = program("names", grow)
    config = ServerConfig(
        "s", "stdio", command=config.command, args=("-c", "names = ['t']\n" + config.args[1]), env=config.env, cwd="/"
    )
    changes: list[tuple[McpTool, ...]] = []
    changed = asyncio.Event()

    def on_change() -> None:
        changes.append(connection.tools)
        changed.set()

    connection = ServerConnection("s", lambda: config, events=ConnectionEvents(on_change))
    with anyio.fail_after(30):
        connection.start()
        await connection.wait_until_settled()
        await asyncio.sleep(0)
        changed.clear()
        [first] = connection.tools
        await call(connection)
        await changed.wait()
        assert [tool.name for tool in connection.tools] == ["mcp__s__t", "mcp__s__n1"]
        assert connection.tools[0] is first
        await connection.aclose()
    assert len(changes) <= 4  # a thousand words are not a thousand questions


@pytest.mark.proves("X10")
async def test_connections_close_in_any_order_from_any_task_even_while_they_are_called() -> None:
    connections = [ServerConnection("s", lambda: program("['t']", "pass")) for _ in range(3)]
    with anyio.fail_after(60):
        for each in connections:
            each.start()
        await asyncio.gather(*(each.wait_until_settled() for each in connections))
        calls = [asyncio.create_task(call(each)) for each in connections]
        await anyio.sleep(0)
        one, two, three = connections
        closing = [asyncio.create_task(each.aclose()) for each in (three, one, two, one)]
        closing[0].cancel()
        await asyncio.wait(closing)
        await asyncio.gather(*(each.aclose() for each in connections))
        errors = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(each, McpError) and "it was closed" in str(each) for each in errors)


# Servers over HTTP that are written by hand

Answer = Callable[["Handler", dict[str, Any]], None]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    answer: Answer
    seen: list[dict[str, str]]
    stopped: threading.Event

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.stopped.is_set():
            self.close_connection = True
            return
        self.seen.append({name.lower(): value for name, value in self.headers.items()})
        type(self).answer(self, message)

    def do_GET(self) -> None:
        self.resume(self.headers.get("last-event-id", ""))

    def do_DELETE(self) -> None:
        self.reply(405, b"")

    def resume(self, last_id: str) -> None:
        self.reply(405, b"")

    def reply(self, status: int, body: bytes, kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def result(self, message: dict[str, Any], result: Any, **headers: str) -> None:
        self.reply(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode(), **headers)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the name of the base class
        pass


@contextmanager
def serving(answer: Answer, port: int = 0) -> Iterator[tuple[str, list[dict[str, str]]]]:
    seen: list[dict[str, str]] = []
    stopped = threading.Event()
    kind = type("Own", (Handler,), {"answer": staticmethod(answer), "seen": seen, "stopped": stopped})
    server = ThreadingHTTPServer(("127.0.0.1", port), kind)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/mcp", seen
    finally:
        stopped.set()
        server.shutdown()
        server.server_close()
        thread.join()


TOOLS = {"resultType": "complete", "tools": [{"name": "t", "inputSchema": {"type": "object"}}]}


def modern(handler: Handler, message: dict[str, Any], call: Answer) -> None:
    match message["method"]:
        case "server/discover":
            handler.result(message, {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})
        case "tools/list":
            handler.result(message, TOOLS)
        case _:
            call(handler, message)


def say_ok(handler: Handler, message: dict[str, Any]) -> None:
    handler.result(message, {"resultType": "complete", "content": [{"type": "text", "text": "ok"}]})


def http(url: str, **more: Any) -> ServerConfig:
    return ServerConfig("s", "http", url=url, **more)


def legacy_with_sessions() -> Answer:
    sessions: list[str] = []

    def answer(handler: Handler, message: dict[str, Any]) -> None:
        match message["method"]:
            case "server/discover":
                handler.reply(400, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no session"}}')
            case "initialize":
                sessions[:] = [f"session-{len(sessions) + 1}" if not sessions else sessions[0] + "+"]
                result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {}}
                handler.result(message, result, mcp_session_id=sessions[0])
            case _ if handler.headers.get("mcp-session-id") != sessions[0]:
                handler.reply(404, b"")
            case "notifications/initialized":
                handler.reply(202, b"")
            case "tools/list":
                handler.result(message, TOOLS)
            case "tools/call" if "+" not in sessions[0]:
                sessions[0] = "forgotten"
                handler.reply(404, b"")
            case _:
                say_ok(handler, message)

    return answer


async def test_a_server_that_forgot_our_session_gets_a_new_one_and_the_call_is_made() -> None:
    with serving(legacy_with_sessions()) as (url, seen), anyio.fail_after(30):
        connection = ServerConnection("s", lambda: http(url))
        connection.start()
        await connection.wait_until_settled()
        assert connection.status == "connected", connection.error
        output = await call(connection)
        await connection.aclose()
    assert "ok" in str(output.blocks)
    assert seen[-1]["mcp-session-id"] == "forgotten+"


NEW, OLD = "2026-07-28", "2025-06-18"


def replaced_server(eras: list[str]) -> Answer:
    """A server that is of the first of these eras, and says so in its answers."""

    def answer(handler: Handler, message: dict[str, Any]) -> None:
        is_new = NEW in str(message.get("params", {}).get("_meta", ""))
        match eras[0], message["method"]:
            case ("2026-07-28", _) if not is_new:
                data = {"code": -32022, "message": "no", "data": {"supported": [NEW]}}
                handler.reply(400, json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "error": data}).encode())
            case "2025-06-18", "initialize":
                result = {"protocolVersion": OLD, "capabilities": {"tools": {}}, "serverInfo": {}}
                handler.result(message, result, mcp_session_id="s1")
            case "2025-06-18", _ if handler.headers.get("mcp-session-id") != "s1":
                handler.reply(400, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no session"}}')
            case _, "notifications/initialized":
                handler.reply(202, b"")
            case _:
                text = [{"type": "text", "text": eras[0]}]
                modern(handler, message, lambda h, m: h.result(m, {"content": text}))

    return answer


@pytest.mark.parametrize("eras", [[NEW, OLD], [OLD, NEW]], ids=["rolled back", "renewed"])
async def test_a_server_that_is_replaced_by_one_of_another_era_is_greeted_anew_and_the_call_is_made(
    eras: list[str],
) -> None:
    expected = list(eras)
    with serving(replaced_server(eras)) as (url, _seen), anyio.fail_after(60):
        connection = ServerConnection("s", lambda: http(url))
        connection.start()
        await connection.wait_until_settled()
        found = [str((await call(connection)).blocks)]
        del eras[0]
        found.append(str((await call(connection)).blocks))
        await connection.aclose()
    assert [era in text for era, text in zip(expected, found, strict=True)] == [True, True]


async def test_a_server_elsewhere_is_tried_again_and_is_back_with_the_same_tools() -> None:
    waits: list[float] = []
    back = asyncio.Event()
    states: list[str] = []

    async def pause(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            back.set()
            await came_back.wait()

    came_back = asyncio.Event()
    connection: ServerConnection
    online = asyncio.Event()

    def on_change() -> None:
        states.append(connection.status)
        if connection.status == "connected":
            online.set()

    with anyio.fail_after(60):
        with serving(lambda h, m: modern(h, m, say_ok)) as (url, _):
            connection = ServerConnection("s", lambda: http(url), events=ConnectionEvents(on_change, pause=pause))
            connection.start()
            await connection.wait_until_settled()
            before = connection.tools
            await call(connection)
        online.clear()
        with pytest.raises(McpError, match="cannot be reached"):
            await call(connection)
        await back.wait()
        with pytest.raises(McpError, match="not connected at the moment"):
            await call(connection)
        port = int(url.split(":")[2].split("/")[0])
        with serving(lambda h, m: modern(h, m, say_ok), port):
            came_back.set()
            await online.wait()
            assert "ok" in str((await call(connection)).blocks)
            await connection.aclose()
    assert waits[:3] == [1.0, 2.0, 4.0]
    assert connection.tools is before or connection.tools == before
    assert states[-1] == "connected"


def moved(handler: Handler, message: dict[str, Any]) -> None:
    handler.reply(307, b"", location="http://127.0.0.2:9/mcp")


def slash(handler: Handler, message: dict[str, Any]) -> None:
    if handler.path == "/mcp":
        handler.reply(307, b"", location="/mcp/")
    else:
        modern(handler, message, say_ok)


def garbage(handler: Handler, message: dict[str, Any]) -> None:
    handler.reply(200, b"<html>\x1b[2J")


def strange_ids(handler: Handler, message: dict[str, Any]) -> None:
    bodies = [{"id": 999, "result": {}}, {"id": "x", "result": {}}, [], 5, {"id": None}, {"jsonrpc": "2.0"}]
    text = "".join(f"data: {json.dumps(each)}\n\n" for each in bodies)
    handler.reply(200, text.encode(), "text/event-stream")


def giant(handler: Handler, message: dict[str, Any]) -> None:
    handler.reply(200, b" " * (33 * 1024 * 1024))


def endless_event(handler: Handler, message: dict[str, Any]) -> None:
    handler.reply(200, b"data: " + b"x" * (33 * 1024 * 1024), "text/event-stream")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(moved, "redirects to 'http://127.0.0.2:9/mcp', which is not followed", id="to another host"),
        pytest.param(garbage, "is not JSON", id="no JSON"),
        pytest.param(strange_ids, "ended its answer before", id="answers to unknown ids"),
        pytest.param(giant, "more than 33,554,432 bytes", id="a giant answer"),
        pytest.param(endless_event, "too large", id="an event without end"),
        pytest.param(lambda h, m: h.reply(200, b'{"id":1,"result":[]}'), "not a JSON-RPC result", id="a wrong result"),
        pytest.param(lambda h, m: h.reply(500, b"oh\x1b[2Jno"), r"status 500: 'oh\\ufffd\[2Jno'|status 500", id="500"),
        pytest.param(lambda h, m: h.reply(401, b""), "wants to know who asks", id="no sign-in"),
    ],
)
async def test_a_server_that_answers_wrongly_is_an_error_and_no_secret_leaves(answer: Answer, expected: str) -> None:
    with serving(answer) as (url, _), anyio.fail_after(30), pytest.raises(McpError, match=expected):
        async with open_once(http(url, headers={"Authorization": "Bearer secret"}, connect_time=10.0)):
            pass


async def test_an_answer_that_breaks_off_is_resumed_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[dict[str, Any]] = []

    def break_off(handler: Handler, message: dict[str, Any]) -> None:
        if message["method"] == "tools/call":
            calls.append(message)
            handler.reply(200, b"id: e-7\nretry: 1\ndata:\n\n", "text/event-stream")
        else:
            sessions(handler, message)

    def resume(handler: Handler, last_id: str) -> None:
        if last_id != "e-7":
            handler.reply(405, b"")
            return
        result = {"content": [{"type": "text", "text": "resumed"}]}
        answer = {"jsonrpc": "2.0", "id": calls[-1]["id"], "result": result}
        handler.reply(200, f"id: e-8\ndata: {json.dumps(answer)}\n\n".encode(), "text/event-stream")

    sessions = legacy_with_sessions()
    monkeypatch.setattr(Handler, "resume", resume)
    with serving(break_off) as (url, _), anyio.fail_after(30):
        async with open_once(http(url)) as server:
            output = await server.call("t", {}, "1", lambda _news: None)
    assert "resumed" in str(output.blocks)
    assert len(calls) == 1


async def test_a_redirect_within_the_server_is_followed_with_the_headers_of_the_entry() -> None:
    with serving(slash) as (url, seen), anyio.fail_after(30):
        async with open_once(http(url, headers={"X-Team": "red", "Host": "elsewhere"})) as server:
            await server.call("t", {}, "1", lambda _news: None)
    assert {each["x-team"] for each in seen} == {"red"}
    assert seen[-1]["mcp-method"] == "tools/call"
    assert seen[-1]["mcp-name"] == "t"
    assert "elsewhere" not in seen[-1]["host"]


async def test_a_helper_brings_headers_and_its_failure_is_named(tmp_path: Path) -> None:
    parts = ServerParts(env={"PATH": os.environ["PATH"], "SECRET": "s"})
    helper = """printf '{"X-Token": "%s-%s"}' "$HANDRAIL_MCP_SERVER_NAME" "$SECRET" """
    with serving(lambda h, m: modern(h, m, say_ok)) as (url, seen), anyio.fail_after(30):
        async with open_once(http(url, headers_helper=helper, cwd=str(tmp_path)), parts):
            pass
        with pytest.raises(McpError, match=r"exit code 4.*no token today"):
            async with open_once(http(url, headers_helper="echo no token today >&2; exit 4", cwd="/"), parts):
                pass
    assert {each["x-token"] for each in seen} == {"s-"}


async def test_prompts_and_resources_that_change_are_listed_anew() -> None:
    grow = (
        'answers["prompts/list"] = {"prompts": [{"name": "p"}]}; '
        'answers["resources/list"] = {"resources": [{"uri": "a://b"}]}; '
        'answers["resources/templates/list"] = {"resourceTemplates": [{"uriTemplate": "a://{c}"}]}; '
        'say({"method": "notifications/prompts/list_changed"}); say({"method": "notifications/resources/list_changed"})'
    )
    changed = asyncio.Event()
    connection = ServerConnection(
        "s", lambda: talkative.program(f"{grow}; {talkative.OK}"), events=ConnectionEvents(on_change=changed.set)
    )
    with anyio.fail_after(30):
        connection.start()
        await connection.wait_until_settled()
        server = connection.server
        assert server is not None
        assert (server.prompts, server.resources) == ((), ())
        await call(connection)
        while not server.prompts or not server.resources:
            changed.clear()
            await changed.wait()
        await connection.aclose()
    assert [each.name for each in server.prompts] == ["p"]
    assert [(each.uri, each.is_template) for each in server.resources] == [("a://b", False), ("a://{c}", True)]


async def test_changes_are_told_however_many_resources_are_followed_and_no_more_once_one_is_not() -> None:
    config = ServerConfig("s", "stdio", command=reference_server()["command"], env=unmeasured(), cwd="/")
    updates: list[str] = []
    news = asyncio.Event()

    def on_update(_server: str, uri: str) -> None:
        updates.append(uri)
        news.set()

    async def pause(_seconds: float) -> None:
        raise AssertionError("one more resource is no failure of the stream")

    async def wait_quietly(seconds: float) -> None:
        if seconds < 1.0:  # a list that has changed is asked for a moment later
            await asyncio.sleep(seconds)
        else:
            await pause(seconds)

    changed = asyncio.Event()
    events = ConnectionEvents(on_change=changed.set, on_update=on_update, pause=wait_quietly)
    connection = ServerConnection("s", lambda: config, events=events)
    with anyio.fail_after(60):
        connection.start()
        await connection.wait_until_settled()
        assert connection.server is not None
        assert connection.server.welcome.era == "modern"
        while not any(tool.name == "mcp__s__grown" for tool in connection.tools):
            changed.clear()
            await call(connection, "grow")
            with anyio.move_on_after(2.0):
                await changed.wait()
        await connection.read("notes://today")
        for day in range(12):
            await connection.read(f"notes://day/{day}")
        while not news.is_set():  # the server may not have taken in what we follow
            await call(connection, "rewrite")
            with anyio.move_on_after(0.2):
                await news.wait()
        await connection.unsubscribe("notes://today")
        updates.clear()
        await call(connection, "rewrite")
        await connection.aclose()
    assert updates == []


async def test_lists_are_not_asked_for_again_while_they_hold() -> None:
    asked: list[str] = []

    def answer(handler: Handler, message: dict[str, Any]) -> None:
        asked.append(message["method"])
        if message["method"] == "tools/list":
            handler.result(message, {**TOOLS, "ttlMs": 60_000})
        else:
            modern(handler, message, say_ok)

    with serving(answer) as (url, _), anyio.fail_after(30):
        connection = ServerConnection("s", lambda: http(url))
        for _ in range(2):
            connection.start()
            await connection.wait_until_settled()
            assert connection.status == "connected", connection.error
            await connection.aclose()
    assert asked.count("tools/list") == 1


async def test_a_call_without_progress_ends_sooner_than_one_with_progress() -> None:
    beat = (
        "token = message['params']['_meta']['progressToken']; import time; "
        "[(print(json.dumps({'method': 'notifications/progress', 'params': {'progressToken': token, 'progress': n}}), "
        "flush=True), time.sleep(0.1)) for n in range(8)] if message['params']['name'] == 'lively' else time.sleep(9); "
        "answer({'content': []})"
    )
    config = program("['lively', 'quiet']", beat)
    config = ServerConfig(
        "s", "stdio", command=config.command, args=config.args, env=config.env, cwd="/", call_time=30.0, idle_time=0.6
    )
    with anyio.fail_after(30):
        async with open_once(config) as server:
            await server.call("lively", {}, "1", lambda _news: None)
            with pytest.raises(McpError, match=r"did not answer tools/call or report progress in 0\.6 s"):
                await server.call("quiet", {}, "2", lambda _news: None)


async def test_a_call_asks_for_input_only_so_often() -> None:
    rounds: list[dict[str, Any]] = []

    def again(handler: Handler, message: dict[str, Any]) -> None:
        rounds.append(message["params"])
        handler.result(message, {"resultType": "input_required", "requestState": f"state-{len(rounds)}"})

    with serving(lambda h, m: modern(h, m, again)) as (url, _), anyio.fail_after(30):
        async with open_once(http(url), NO_PARTS) as server:
            with pytest.raises(McpError, match="more than 10 times"):
                await server.call("t", {}, "1", lambda _news: None)
    assert [each.get("requestState") for each in rounds] == [None, *(f"state-{n}" for n in range(1, 11))]

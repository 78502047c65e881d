"""Lines that no editor should send: each gets one response, and the connection goes on."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail.testing.model_server import ModelServer
from tests.acp.editor import SECONDS, variables
from tests.forked import program

pytestmark = pytest.mark.anyio

PARSE, REQUEST, METHOD, PARAMS, GONE = -32700, -32600, -32601, -32602, -32002


class Wire:
    """The bare lines of a process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    def send(self, line: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + b"\n")

    async def next(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        message: dict[str, Any] = json.loads(await self._process.stdout.readline())
        return message


@asynccontextmanager
async def open_wire(home: Path) -> AsyncIterator[Wire]:
    """The lines of an agent that was started just now."""
    async with ModelServer() as server:
        process = await asyncio.create_subprocess_exec(
            program(),
            "acp",
            cwd=home,
            env=variables(home, server),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=2_000_000,
        )
        try:
            yield Wire(process)
            with anyio.fail_after(SECONDS):
                rest, _ = await process.communicate(b"")  # its input ends
            assert (rest, process.returncode) == (b"", 0)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


@pytest.fixture(scope="module")
async def wire(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Wire]:
    """The lines of an agent that has been greeted."""
    async with open_wire(tmp_path_factory.mktemp("home")) as greeted:
        with anyio.fail_after(SECONDS):
            greeted.send(GREETING)
            await greeted.next()
        yield greeted


def call(method: str, params: object, number: object = 7) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()


GREETING = call("initialize", {"protocolVersion": 1}, "greeting")
HERE = str(Path(__file__).parent)
NEW: dict[str, Any] = {"cwd": HERE, "mcpServers": []}


@pytest.mark.proves("O15")
@pytest.mark.parametrize(
    ("line", "number", "code"),
    [
        pytest.param(b"not json", None, PARSE, id="text"),
        pytest.param(b"\xff\xfe{}", None, PARSE, id="bytes that are no text"),
        pytest.param(b'{"id": 7, "method": ', None, PARSE, id="half a line"),
        pytest.param(b"[" * 100_000, None, PARSE, id="deep nesting"),
        pytest.param(b'{"id": ' + b"9" * 5_000 + b"}", None, PARSE, id="a number with too many digits"),
        pytest.param(b"[]", None, REQUEST, id="a list"),
        pytest.param(b"[" + call("initialize", {}) + b"]", None, REQUEST, id="a batch"),
        pytest.param(b"null", None, REQUEST, id="null"),
        pytest.param(b'"initialize"', None, REQUEST, id="a string"),
        pytest.param(b"{}", None, REQUEST, id="an empty object"),
        pytest.param(b'{"jsonrpc": "2.0", "id": 7}', 7, REQUEST, id="an id alone"),
        pytest.param(call(5, {}), 7, REQUEST, id="a number as method"),  # type: ignore[arg-type]
        pytest.param(call("initialize", {}, {"a": 1}), None, REQUEST, id="an object as id"),
        pytest.param(call("initialize", {}, True), None, REQUEST, id="a truth as id"),
        pytest.param(call("initialize", {}, 1.5), None, REQUEST, id="a fraction as id"),
        pytest.param(call("no/such", {}), 7, METHOD, id="an unknown method"),
        pytest.param(call("session/update", {}), 7, METHOD, id="a method of editors"),
        pytest.param(call("session/cancel", {"sessionId": "x"}), 7, METHOD, id="a notification as a request"),
        pytest.param(call("initialize", [1]), 7, PARAMS, id="a list as params"),
        pytest.param(call("initialize", {}), 7, PARAMS, id="no version"),
        pytest.param(call("initialize", {"protocolVersion": "1"}), 7, PARAMS, id="a text as version"),
        pytest.param(call("initialize", {"protocolVersion": True}), 7, PARAMS, id="a truth as version"),
        pytest.param(call("authenticate", {"methodId": "x"}), 7, PARAMS, id="signing in"),
        pytest.param(call("session/new", {}), 7, PARAMS, id="no folder"),
        pytest.param(call("session/new", {**NEW, "cwd": "."}), 7, PARAMS, id="a relative folder"),
        pytest.param(call("session/new", {**NEW, "cwd": "/no/such"}), 7, PARAMS, id="a folder that is not there"),
        pytest.param(call("session/new", {**NEW, "cwd": "/\0"}), 7, PARAMS, id="a zero byte in a folder"),
        pytest.param(call("session/new", {**NEW, "cwd": 5}), 7, PARAMS, id="a number as folder"),
        pytest.param(call("session/new", {**NEW, "mcpServers": {}}), 7, PARAMS, id="servers that are no list"),
        pytest.param(call("session/new", {**NEW, "mcpServers": [1]}), 7, PARAMS, id="a number as server"),
        pytest.param(call("session/new", {**NEW, "mcpServers": [{"name": "x"}]}), 7, PARAMS, id="no command"),
        pytest.param(
            call("session/new", {**NEW, "mcpServers": [{"name": "x", "command": "y", "args": [1]}]}),
            7,
            PARAMS,
            id="a number as argument",
        ),
        pytest.param(
            call("session/new", {**NEW, "mcpServers": [{"name": "x", "type": "acp", "serverId": "y"}]}),
            7,
            PARAMS,
            id="a kind of server that is not offered",
        ),
        pytest.param(
            call("session/new", {**NEW, "additionalDirectories": ["x"]}), 7, PARAMS, id="a relative folder more"
        ),
        pytest.param(call("session/load", {**NEW, "sessionId": "nope"}), 7, GONE, id="loading an unknown session"),
        pytest.param(call("session/load", {**NEW, "sessionId": "../x"}), 7, GONE, id="a path as session"),
        pytest.param(call("session/load", NEW), 7, PARAMS, id="loading nothing"),
        pytest.param(call("session/resume", {**NEW, "sessionId": ""}), 7, GONE, id="resuming an empty id"),
        pytest.param(call("session/list", {"cursor": "-1"}), 7, PARAMS, id="a cursor that was not given"),
        pytest.param(call("session/list", {"cursor": {}}), 7, PARAMS, id="an object as cursor"),
        pytest.param(call("session/list", {"cwd": "x"}), 7, PARAMS, id="a relative folder to list"),
        pytest.param(call("session/close", {"sessionId": "nope"}), 7, GONE, id="closing an unknown session"),
        pytest.param(call("session/prompt", {"sessionId": "nope", "prompt": []}), 7, GONE, id="an unknown session"),
        pytest.param(call("session/prompt", {"sessionId": ["x"]}), 7, PARAMS, id="a list as session"),
        pytest.param(call("session/set_mode", {"sessionId": "nope", "modeId": "plan"}), 7, GONE, id="its mode"),
        pytest.param(call("session/set_config_option", {"sessionId": None}), 7, PARAMS, id="no session"),
    ],
)
async def test_a_line_that_cannot_be_used_gets_an_error(wire: Wire, line: bytes, number: object, code: int) -> None:
    with anyio.fail_after(SECONDS):
        wire.send(line)
        answer = await wire.next()

    assert (answer["jsonrpc"], answer["id"], answer["error"]["code"]) == ("2.0", number, code)
    assert answer["error"]["message"]
    assert "Traceback" not in json.dumps(answer)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"", id="an empty line"),
        pytest.param(b"   \t", id="blanks"),
        pytest.param(b'{"method": "session/cancel", "params": {"sessionId": "nope"}}', id="cancelling nothing"),
        pytest.param(b'{"method": "session/cancel", "params": 5}', id="cancelling a number"),
        pytest.param(b'{"method": "no/such"}', id="an unknown notification"),
        pytest.param(b'{"id": 1, "result": {}}', id="an answer to no question"),
        pytest.param(b'{"id": 1, "error": "no"}', id="an error to no question"),
    ],
)
async def test_what_needs_no_response_gets_none(wire: Wire, line: bytes) -> None:
    with anyio.fail_after(SECONDS):
        wire.send(line)
        wire.send(call("initialize", {"protocolVersion": 99}, "after"))
        answer = await wire.next()

    assert (answer["id"], answer["result"]["protocolVersion"]) == ("after", 1)


@pytest.mark.parametrize(
    "block",
    [
        pytest.param({"type": "audio", "data": "", "mimeType": "audio/wav"}, id="sound"),
        pytest.param({"type": "image", "data": 5, "mimeType": "image/png"}, id="a number as picture"),
        pytest.param({"type": "image", "data": "x", "mimeType": "image/tiff"}, id="a picture that models do not read"),
        pytest.param({"type": "resource"}, id="no resource"),
        pytest.param({"type": "resource", "resource": {"uri": "a:b", "blob": "x"}}, id="bytes of no kind"),
        pytest.param({"type": "resource_link"}, id="a link to nothing"),
        pytest.param({"type": "text", "text": None}, id="no text"),
        pytest.param({"type": "text", "text": " \n"}, id="blanks"),
        pytest.param({"text": "x"}, id="no type"),
        pytest.param("x", id="a bare text"),
    ],
)
async def test_a_prompt_that_cannot_be_used_is_refused(wire: Wire, tmp_path: Path, block: object) -> None:
    with anyio.fail_after(SECONDS):
        wire.send(call("session/new", {"cwd": str(tmp_path), "mcpServers": []}))
        session = (await wire.next())["result"]["sessionId"]
        await wire.next()  # its commands
        wire.send(call("session/prompt", {"sessionId": session, "prompt": [block]}, "p"))
        answer = await wire.next()
        wire.send(call("session/close", {"sessionId": session}, "c"))
        closed = await wire.next()

    assert (answer["id"], answer["error"]["code"]) == ("p", PARAMS)
    assert closed == {"jsonrpc": "2.0", "id": "c", "result": {}}


async def test_a_cancel_right_behind_a_prompt_is_not_lost(wire: Wire, tmp_path: Path) -> None:
    with anyio.fail_after(SECONDS):
        wire.send(call("session/new", {"cwd": str(tmp_path), "mcpServers": []}))
        session = (await wire.next())["result"]["sessionId"]
        await wire.next()  # its commands
        prompt = call("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "Go."}]}, "p")
        cancel = json.dumps({"method": "session/cancel", "params": {"sessionId": session}}).encode()

        wire.send(prompt + b"\n" + cancel)
        while (answer := await wire.next()).get("id") != "p":
            pass

    assert answer["result"] == {"stopReason": "cancelled"}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("authenticate", {"methodId": "x"}),
        ("session/new", NEW),
        ("session/load", {**NEW, "sessionId": "nope"}),
        ("session/list", {}),
        ("session/prompt", {"sessionId": "nope", "prompt": []}),
    ],
)
async def test_nothing_is_done_before_the_editor_has_sent_initialize(tmp_path: Path, method: str, params: Any) -> None:
    with anyio.fail_after(SECONDS):
        async with open_wire(tmp_path) as wire:
            wire.send(call(method, params, 1))
            early = await wire.next()
            wire.send(call("initialize", {"protocolVersion": "1"}, 2))
            await wire.next()
            wire.send(call(method, params, 3))
            still_early = await wire.next()
            wire.send(GREETING + b"\n" + call("session/list", {}, 4))
            greeted, listed = await wire.next(), await wire.next()

    message = f"{method} came before initialize. Send initialize first."
    assert [each["error"] for each in (early, still_early)] == [{"code": REQUEST, "message": message}] * 2
    assert (greeted["id"], greeted["result"]["protocolVersion"]) == ("greeting", 1)
    assert (listed["id"], listed["result"]) == (4, {"sessions": []})

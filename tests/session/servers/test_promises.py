"""What a session promises of MCP servers: names, rules, metadata, order, the sandbox, what is remembered."""

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail.conversation.blocks import Text, ToolResult
from handrail.conversation.messages import UserMessage
from handrail.events import CallFinished
from handrail.mcp.messages import Message
from handrail.session.build import open_session
from handrail.session.session import Session
from handrail.session.spec import SessionHost, SessionSpec, ToolOptions
from handrail.testing import ScriptedModel, say, use
from handrail.tools.pool import Deferral
from tests.forked import unmeasured

pytestmark = pytest.mark.anyio

SMALL = str(Path(__file__).with_name("small_server.py"))
SCHEMA = {"type": "object", "properties": {"sql": {"type": "string", "x-odd": [1]}}, "$comment": "as it comes"}
TOOLS = [
    {"name": "rw.query", "description": "Asks.", "inputSchema": SCHEMA, "_meta": {"anthropic/alwaysLoad": True}},
    {"name": "Read", "description": "Not ours.", "inputSchema": {"type": "object"}},
    {"name": "drop", "description": "Drops.", "inputSchema": {"type": "object"}},
    {"name": "rare", "description": "Rarely.", "inputSchema": {"type": "object"}},
]
RULES = {"allow": ["mcp__my_db"], "deny": ["mcp__my_db__drop"]}


class Database:
    """A server in this program, which remembers what it was asked to do."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    async def carry(self, _name: str, message: Message) -> Message:
        result: dict[str, Any] = {"capabilities": {"tools": {}}, "tools": TOOLS}
        if message.get("method") == "tools/call":
            self.calls.append(message["params"]["name"])
            content = [{"type": "text", "text": "one row"}]
            result = {"content": content, "structuredContent": {"rows": 1}, "_meta": {"trace": "t1"}}
        return {"jsonrpc": "2.0", "id": message.get("id"), "result": result}


def opened(folder: Path, model: ScriptedModel, servers: dict[str, Any], carry: Any = None, **settings: Any) -> Session:
    (folder / "config").mkdir(exist_ok=True)
    (folder / "work").mkdir(exist_ok=True)
    (folder / "config" / "settings.json").write_text(json.dumps(settings))
    env = unmeasured() | {"HANDRAIL_STATE_DIR": str(folder / "state"), "HANDRAIL_CONFIG_DIR": str(folder / "config")}
    spec = SessionSpec(folder / "work", tools=ToolOptions(mcp_servers=servers, deferral=Deferral("on")))
    host = SessionHost(model=model, mcp_transport=carry, on_warning=lambda _text: None)
    return open_session(spec, {**env, "HANDRAIL_MCP_WAIT_MS": "60000"}, host)


async def prompt(session: Session) -> list[Any]:
    with anyio.fail_after(60):
        return [each async for each in session.drive(UserMessage((Text("go"),)))]


def results(session: Session) -> dict[str, ToolResult]:
    blocks = [block for each in session.conversation.messages for block in getattr(each, "content", ())]
    return {block.tool_use_id: block for block in blocks if isinstance(block, ToolResult)}


@pytest.mark.proves("B20", "C4", "D1", "D3", "D4", "D5", "D6", "D9", "D10", "D11", "N16")
async def test_tools_of_a_server_come_with_the_first_request_under_the_rules_that_name_them(tmp_path: Path) -> None:
    database = Database()
    model = ScriptedModel(
        [[use("1", "mcp__my_db__rw_query", sql="select 1"), use("2", "mcp__my_db__drop")], [say("ok")]]
    )
    session = opened(tmp_path, model, {"my db": {"type": "sdk"}}, database.carry, permissions=RULES)
    try:
        events = await prompt(session)
    finally:
        await session.aclose()

    request: Any = model.requests[0]
    sent = {each.name: json.loads(each.definition) for each in request.tools if not each.deferred}
    waiting = [each.name for each in request.tools if each.deferred]
    assert sent["mcp__my_db__rw_query"]["input_schema"] == SCHEMA
    assert "Not ours" not in sent["Read"]["description"]
    assert {"mcp__my_db__Read", "mcp__my_db__rare"} <= {*waiting}
    assert "mcp__my_db__drop" not in (*sent, *waiting)
    assert database.calls == ["rw.query"]
    found = results(session)
    assert "one row" in found["1"].text
    assert found["2"].is_error
    (outcome,) = (each.outcome for each in events if isinstance(each, CallFinished) and each.outcome.use.id == "1")
    assert outcome.output is not None
    assert outcome.output.mcp is not None
    assert (outcome.output.mcp.meta, outcome.output.mcp.structured_content) == ({"trace": "t1"}, {"rows": 1})


@pytest.mark.proves("X7")
async def test_a_server_that_comes_and_goes_ten_times_leaves_requests_as_they_are(tmp_path: Path) -> None:
    model = ScriptedModel([[say("ok")]] * 20)
    session = opened(tmp_path, model, {"my db": {"type": "sdk"}}, Database().carry)
    statuses = []
    try:
        for _ in range(10):
            await prompt(session)
            assert session.servers is not None
            link = session.servers.offers.find("my db")
            assert link.server is not None
            link.server.peer.end("it is gone")
            with anyio.fail_after(20):
                while link.status == "connected":
                    await anyio.sleep(0)
            statuses.append(link.status)
            (told,) = session.servers.status()
            assert (told["status"], told["error"]) == ("failed", "it is lost: it is gone.")
            await prompt(session)
            await session.servers.reconnect("my db")
    finally:
        await session.aclose()

    requests: list[Any] = model.requests
    assert statuses == ["failed"] * 10
    assert len(requests) == 20
    assert len({(each.system, tuple(tool.definition for tool in each.tools)) for each in requests}) == 1


@pytest.mark.needs("bwrap")
@pytest.mark.parametrize("sandbox", [True, False])
async def test_a_server_whose_entry_says_sandbox_writes_only_where_commands_may(
    tmp_path: Path, *, sandbox: bool
) -> None:
    inside, outside = tmp_path / "work" / "inside", tmp_path / "outside"
    entry = {"command": sys.executable, "args": [SMALL, str(tmp_path / "work" / "log")], "sandbox": sandbox}
    model = ScriptedModel(
        [[use("1", "mcp__s__write", path=str(inside))], [use("2", "mcp__s__write", path=str(outside))], [say("ok")]]
    )
    session = opened(tmp_path, model, {"s": entry}, permissions={"allow": ["mcp__s"]})
    try:
        await prompt(session)
    finally:
        await session.aclose()

    found = results(session)
    assert found["1"].text == "written"
    assert inside.exists()
    assert outside.exists() is not sandbox  # it may have written into a folder that only it sees


async def test_a_server_of_the_old_era_is_asked_for_the_new_one_only_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for _ in range(2):
        entry = {"command": sys.executable, "args": [SMALL, str(log)]}
        session = opened(tmp_path, ScriptedModel([[say("ok")]]), {"s": entry})
        try:
            await prompt(session)
        finally:
            await session.aclose()

    first, second = (each.split() for each in log.read_text().split("---")[1:])
    assert first[:2] == ["server/discover", "initialize"]
    assert second[0] == "initialize"
    assert "server/discover" not in second
    assert (tmp_path / "state" / "mcp-eras.json").is_file()

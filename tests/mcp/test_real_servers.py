"""Public servers of npm and PyPI in a run: `make mcp-servers` installs them."""

import subprocess
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import anyio
import pytest

from handrail import Agent, Allow, Question
from handrail.conversation.blocks import Image, ToolResult
from handrail.conversation.messages import UserMessage
from handrail.testing import ScriptedModel, say, use
from tests.forked import unmeasured

pytestmark = pytest.mark.anyio

TOOLS = Path(__file__).resolve().parents[2] / ".mcp-servers"
TIME_LIMIT = 120


def npm(name: str, *args: str, **env: str) -> dict[str, Any]:
    script = TOOLS / "node_modules" / "@modelcontextprotocol" / name / "dist" / "index.js"
    return {"command": "node", "args": [str(script), *args], "env": env}


def pypi(name: str, *args: str, folder: str = "servers") -> dict[str, Any]:
    return {"command": str(TOOLS / folder / "bin" / name), "args": list(args)}


async def results(folder: Path, servers: dict[str, Any], calls: list[Any]) -> dict[str, ToolResult]:
    """What the calls give, one after the other; every question is answered with yes."""

    async def can_use_tool(_name: str, _values: Any, _question: Question) -> Allow:
        return Allow()

    model = ScriptedModel([*([call] for call in calls), [say("done")]])
    env = {**unmeasured(), "HANDRAIL_STATE_DIR": str(folder / "state"), "HANDRAIL_MCP_WAIT_MS": "60000"}
    with anyio.fail_after(TIME_LIMIT):
        async with Agent(model, cwd=folder, mcp_servers=servers, can_use_tool=can_use_tool, env=env) as agent:
            _ = [event async for event in agent.run("go")]
            blocks = [block for each in agent.messages if isinstance(each, UserMessage) for block in each.content]
    return {block.tool_use_id: block for block in blocks if isinstance(block, ToolResult)}


@pytest.mark.needs(".mcp-servers/mcp-servers.json", "node")
async def test_servers_of_npm_work_as_they_are(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    servers = {
        "everything": npm("server-everything"),
        "files": npm("server-filesystem", str(work)),
        "memory": npm("server-memory", MEMORY_FILE_PATH=str(tmp_path / "memory.jsonl")),
    }
    entity = {"name": "Ada", "entityType": "person", "observations": ["writes programs"]}
    found = await results(
        tmp_path,
        servers,
        [
            use("echo", "mcp__everything__echo", message="hello"),
            use("image", "mcp__everything__get-tiny-image"),
            use("write", "mcp__files__write_file", path=str(work / "note.txt"), content="kept"),
            use("read", "mcp__files__read_text_file", path=str(work / "note.txt")),
            use("outside", "mcp__files__read_text_file", path="/etc/passwd"),
            use("create", "mcp__memory__create_entities", entities=[entity]),
            use("graph", "mcp__memory__read_graph"),
            use("resources", "ListMcpResourcesTool", server="everything"),
        ],
    )

    assert found["echo"].text == "Echo: hello"
    assert any(isinstance(block, Image) for block in found["image"].content)
    assert (work / "note.txt").read_text() == "kept"
    assert "kept" in found["read"].text
    assert found["outside"].is_error
    assert "writes programs" in found["graph"].text
    assert '"uri' in found["resources"].text


class Page(BaseHTTPRequestHandler):
    """A site of one page."""

    def do_GET(self) -> None:
        body = b"<html><body><h1>Weather</h1><p>It is sunny.</p></body></html>" if self.path == "/page" else b""
        self.send_response(200 if body else 404)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_words: Any) -> None:
        """Nothing is logged."""


@pytest.mark.needs(".mcp-servers/mcp-servers.txt", ".mcp-servers/mcp-servers-old.txt", "git")
async def test_servers_of_pypi_work_as_they_are(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", "-b", "main", str(repository)], check=True)
    (repository / "new.txt").write_text("new\n")
    site = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    Thread(target=site.serve_forever, daemon=True).start()
    servers = {
        "git": pypi("mcp-server-git", "--repository", str(repository)),
        "time": pypi("mcp-server-time", "--local-timezone", "UTC"),
        "fetch": pypi("mcp-server-fetch", "--ignore-robots-txt", "--allow-private-ips"),
        "sqlite": pypi("mcp-server-sqlite", "--db-path", str(tmp_path / "data.db"), folder="servers-old"),
    }
    try:
        found = await results(
            tmp_path,
            servers,
            [
                use("status", "mcp__git__git_status", repo_path=str(repository)),
                use("time", "mcp__time__get_current_time", timezone="Europe/Berlin"),
                use("fetch", "mcp__fetch__fetch", url=f"http://127.0.0.1:{site.server_port}/page"),
                use("create", "mcp__sqlite__create_table", query="CREATE TABLE t (name TEXT)"),
                use("insert", "mcp__sqlite__write_query", query="INSERT INTO t VALUES ('Ada')"),
                use("select", "mcp__sqlite__read_query", query="SELECT name FROM t"),
            ],
        )
    finally:
        site.shutdown()
        site.server_close()

    assert "new.txt" in found["status"].text
    assert "Europe/Berlin" in found["time"].text
    assert "It is sunny." in found["fetch"].text
    assert "Ada" in found["select"].text

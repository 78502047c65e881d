"""The reference library's server over every transport, in both eras."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import anyio
import pytest

from handrail.conversation.blocks import Text
from handrail.mcp.config import ServerConfig
from handrail.mcp.dialect import MODERN
from handrail.mcp.eras import EraMemory
from handrail.mcp.host import ClientHost, Elicitation, ElicitationAnswer
from handrail.mcp.open_peer import ServerParts, open_once
from handrail.mcp.server import PartialArgument, Server
from tests.forked import unmeasured

pytestmark = pytest.mark.anyio

PROGRAM = [sys.executable, str(Path(__file__).with_name("reference_server.py"))]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with subprocess.Popen([*PROGRAM, "http"], stdout=subprocess.PIPE, text=True, env=unmeasured()) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        process.kill()


class LegacyMemory(EraMemory):
    """Takes every server for an old one."""

    def find(self, config: ServerConfig) -> "str | None":  # type: ignore[override]
        return "legacy"


WAYS = ["stdio legacy", "stdio modern", "http legacy", "http modern", "sse legacy"]


@pytest.fixture(params=WAYS)
async def server(request: pytest.FixtureRequest, address: str, tmp_path: Path) -> AsyncIterator[Server]:
    transport, era = request.param.split()
    paths = {"http": "/mcp", "sse": "/sse"}
    config = ServerConfig(
        "ref",
        transport,
        command=PROGRAM[0],
        args=tuple(PROGRAM[1:]),
        env=unmeasured(),
        cwd="/",
        url=address + paths.get(transport, ""),
    )

    async def elicit(question: Elicitation) -> ElicitationAnswer:
        assert (question.server, question.message, list(question.fields)) == ("ref", "Which colour?", ["colour"])
        return ElicitationAnswer("accept", {})

    def save(data: bytes, kind: str) -> str:
        (tmp_path / "saved").write_bytes(data)
        return f"{tmp_path}/saved"

    parts = ServerParts(
        host=ClientHost(lambda: (tmp_path,), elicit),
        eras=LegacyMemory() if era == "legacy" else EraMemory(),
        save=save,
    )
    with anyio.fail_after(60):
        async with open_once(config, parts) as server:
            assert server.welcome.era == era
            assert (server.welcome.version == MODERN) == (era == "modern")
            yield server


async def test_a_foreign_server_is_used_over_every_transport_in_both_eras(server: Server, tmp_path: Path) -> None:
    assert {"add", "paint"} <= {tool.name for tool in server.tools}
    assert server.welcome.info["name"] == "reference"
    assert server.welcome.instructions == "Ask kindly."

    news: list[object] = []
    sums = await asyncio.gather(*(server.call("add", {"a": each, "b": 1}, "c", news.append) for each in range(5)))
    assert [each.blocks for each in sums] == [(Text(str(each + 1)),) for each in range(5)]

    await server.call("count", {"upto": 2}, "c", news.append)
    assert [each["message"] for each in news] == ["at 1", "at 2"]  # type: ignore[index]

    painted = await server.call("paint", {}, "c", news.append)
    assert painted.blocks == (Text("accept blue"),)

    assert {each.uri for each in server.resources} == {"notes://today", "notes://sound", "notes://day/{name}"}
    assert await server.read("notes://today") == (Text("[resource of ref at notes://today]\nsunny"),)
    await server.read("notes://sound")
    assert (tmp_path / "saved").read_bytes() == b"RIFFsound"

    assert [(each.name, each.arguments[0].required) for each in server.prompts] == [("review", True)]
    assert await server.prompt("review", {"language": "perl"}) == (("user", Text("Review this perl code.")),)
    assert await server.complete({"type": "ref/prompt", "name": "review"}, PartialArgument("language", "p")) == (
        "python",
        "perl",
    )

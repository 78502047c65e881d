"""What was too big for the conversation is read back from disk, without a question and without anybody to ask."""

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail import Agent, tool
from handrail.conversation.blocks import Text, ToolUse
from handrail.providers.choose import ModelOptions
from handrail.session.spec import SessionSpec, ToolOptions
from handrail.session.transcript import TranscriptOptions
from handrail.testing.model_server import ModelServer, Reply

pytestmark = pytest.mark.anyio

KEPT = re.compile(r"(?:in|goes to) (/\S+\.(?:txt|output))\. ")


@tool(max_result_chars=2_000, read_only=True)
async def long_list() -> str:
    """Many lines."""
    return "\n".join(f"entry {number}" for number in range(5_000))


def last_results(server: ModelServer) -> list[dict[str, Any]]:
    return [block for block in server.requests[-1].body["messages"][-1]["content"] if block["type"] == "tool_result"]


def story(server: Callable[[], ModelServer], *first: ToolUse) -> Iterator[Reply]:
    """Ask for something big, then for its end, in three ways; then try to write there."""
    yield Reply(first)
    found = KEPT.search(json.dumps(last_results(server())))
    assert found
    path = found[1]
    yield Reply(
        (
            ToolUse("r", "Read", {"file_path": path, "offset": 5_000}),
            ToolUse("g", "Grep", {"pattern": "4999", "path": path, "output_mode": "content"}),
            ToolUse("b", "Bash", {"command": f"tail -n 1 {path}"}),
            ToolUse("w", "Write", {"file_path": path, "content": "x"}),
            ToolUse("o", "Read", {"file_path": str(Path(path).parents[3])}),
        )
    )
    yield Reply((Text("Done."),))


def told(server: ModelServer) -> dict[str, tuple[bool, str]]:
    return {each["tool_use_id"]: (each.get("is_error", False), each["content"]) for each in last_results(server)}


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    home, state = tmp_path / "home", tmp_path / "state"
    return {"HOME": str(home), "HANDRAIL_STATE_DIR": str(state), "PATH": os.environ["PATH"]}


@pytest.mark.proves("I7")
@pytest.mark.parametrize("kept", [True, False], ids=["a session that is kept", "a session that is not"])
@pytest.mark.parametrize(
    "use",
    [
        pytest.param(ToolUse("1", "long_list", {}), id="a big result"),
        pytest.param(ToolUse("1", "Bash", {"command": "seq -f 'entry %g' 0 4999"}), id="a big output"),
    ],
)
async def test_a_session_reads_back_what_was_kept(
    tmp_path: Path, env: dict[str, str], use: ToolUse, kept: bool
) -> None:
    (tmp_path / "project").mkdir()
    replies = story(lambda: server, use)
    with anyio.fail_after(30):
        async with ModelServer(replies, strict=True) as server:
            spec = SessionSpec(
                tmp_path / "project",
                ModelOptions("anthropic", "m", server.url),
                tools=ToolOptions(custom=(long_list,)),
                transcript=TranscriptOptions(keep=kept),
            )
            env["BASH_MAX_OUTPUT_LENGTH"] = "2000"
            async with Agent.from_spec(spec, env) as agent:
                await agent.ask("go")

    results = told(server)
    assert results["r"][0] is False
    assert "entry 4999" in results["r"][1]
    assert results["g"][0] is False
    assert "entry 4999" in results["g"][1]
    assert results["b"] == (False, "entry 4999")
    assert results["w"][0] is True
    [log] = (tmp_path / "state" / "audit").iterdir()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert {line["session"] for line in lines} == {agent.session.id}
    assert all(str(tmp_path / "state") in folder for line in lines for folder in line["kept"])
    assert results["o"][0] is True
    assert "outside the working folders" in results["o"][1]


@pytest.mark.proves("I7")
async def test_an_agent_of_the_library_reads_back_what_was_kept(tmp_path: Path, env: dict[str, str]) -> None:
    replies = story(lambda: server, ToolUse("1", "long_list", {}))
    with anyio.fail_after(30):
        async with ModelServer(replies, strict=True) as server:
            model = ModelOptions("anthropic", "m", server.url)
            async with Agent(model, [long_list], cwd=tmp_path, env=env) as agent:
                await agent.ask("go")

    assert told(server)["r"][0] is False
    assert "entry 4999" in told(server)["r"][1]

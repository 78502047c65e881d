"""A program's tools, prompts and resources, as the official client sees them over HTTP, in both eras."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from handrail import Output, Progress, ProgressCallback, tool
from handrail.gateway import McpServer, audio_part, current_client, mcp_output, resource_part
from mcp import Client, MCPError, types
from tests.gateway.clients import ERAS, answering, sdk_client, text_of, url_of

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("era", ERAS)]


class Sum(BaseModel):
    """A sum, and how it came about."""

    total: int
    parts: list[int]


@tool(read_only=True, concurrency_safe=True)
async def add(a: int, b: int) -> Sum:
    """The sum of two numbers."""
    return Sum(total=a + b, parts=[a, b])


@tool(read_only=True, concurrency_safe=True)
async def squares(upto: int) -> list[int]:
    """The first squares."""
    return [number * number for number in range(upto)]


@tool(destructive=True)
async def wipe(name: str) -> str:
    """Destroys something."""
    return f"{name} is gone"


@tool(read_only=True)
async def sounds() -> Output:
    """What no model reads."""
    return mcp_output("a beep", audio_part(b"RIFF", "audio/wav"), resource_part("notes://beep", "beep"))


@tool(read_only=True)
async def steps(progress: ProgressCallback) -> str:
    """Tells how far it is."""
    for share in (0.25, 0.5, 1.0):
        progress(Progress(f"at {share}", share))
    return "done"


@tool(read_only=True)
async def interview() -> str:
    """Asks the person, then the model."""
    client = current_client()
    name = await client.elicit("Who are you?", {"name": {"type": "string"}}, key="name")
    said = await client.sample(f"Greet {(name.content or {}).get('name')}", key="greeting")
    client.log("warning", "asked")
    return f"{name.action}: {said}"


def notes_server(cwd: Path, **rules: Any) -> McpServer:
    server = McpServer(
        "notes", [add, squares, wipe, sounds, steps, interview], instructions="Be kind.", cwd=cwd, **rules
    )

    @server.prompt(complete={"language": lambda begun: [word for word in ("perl", "python") if word.startswith(begun)]})
    def review(language: str, depth: str = "deep") -> str:
        """Looks at code."""
        return f"Review this {language} code, {depth}."

    @server.resource("notes://{day}/{kind}", mime_type="text/plain")
    def notes(day: str, kind: str) -> str:
        """What was noted on a day."""
        return f"{kind} of {day}"

    @server.resource("notes://logo", mime_type="image/png")
    def logo() -> bytes:
        """A picture."""
        return b"\x89PNG"

    return server


@asynccontextmanager
async def connected(server: McpServer, era: str, **callbacks: Any) -> AsyncIterator[Client]:
    with anyio.fail_after(60):
        async with url_of(server) as url, sdk_client(url, era, **callbacks) as client:
            yield client


async def test_declarations_become_annotations_and_output_schemas(era: str, tmp_path: Path) -> None:
    async with connected(notes_server(tmp_path), era) as client:
        listed = {each.name: each for each in (await client.list_tools()).tools}
        summed = await client.call_tool("add", {"a": 2, "b": 3})
        listing = await client.call_tool("squares", {"upto": 3})

    hints = {name: each.annotations for name, each in listed.items()}
    assert hints["add"] == types.ToolAnnotations(read_only_hint=True)
    assert hints["wipe"] == types.ToolAnnotations(read_only_hint=False, destructive_hint=True)
    assert set((listed["add"].output_schema or {})["properties"]) == {"total", "parts"}
    assert listed["wipe"].output_schema is None
    assert summed.structured_content == {"total": 5, "parts": [2, 3]}
    assert listing.structured_content == {"result": [0, 1, 4]}


async def test_prompts_resources_templates_and_completion_are_served(era: str, tmp_path: Path) -> None:
    async with connected(notes_server(tmp_path), era) as client:
        prompt = await client.get_prompt("review", {"language": "perl"})
        text = await client.read_resource("notes://monday/plans")
        picture = await client.read_resource("notes://logo")
        templates = await client.list_resource_templates()
        reference = types.PromptReference(type="ref/prompt", name="review")
        words = await client.complete(reference, {"name": "language", "value": "py"})
        with pytest.raises(MCPError, match="lacks 'language'"):
            await client.get_prompt("review", {})
        with pytest.raises(MCPError, match="no resource"):
            await client.read_resource("notes://nothing")

    assert prompt.messages[0].content == types.TextContent(type="text", text="Review this perl code, deep.")
    assert text.contents[0].model_dump()["text"] == "plans of monday"
    assert picture.contents[0].model_dump()["blob"] == "iVBORw=="
    assert [each.uri_template for each in templates.resource_templates] == ["notes://{day}/{kind}"]
    assert words.completion.values == ["python"]


async def test_sounds_and_resources_reach_clients_as_they_are(era: str, tmp_path: Path) -> None:
    async with connected(notes_server(tmp_path), era) as client:
        result = await client.call_tool("sounds")
    assert [part.type for part in result.content] == ["text", "audio", "resource"]


async def test_progress_is_told_while_the_call_runs(era: str, tmp_path: Path) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async with connected(notes_server(tmp_path), era) as client:
        await client.call_tool("steps", progress_callback=hear)
    assert heard == [(25, 100, "at 0.25"), (50, 100, "at 0.5"), (100, 100, "at 1.0")]


async def test_a_tool_asks_the_person_and_the_model_of_its_client(era: str, tmp_path: Path) -> None:
    async def sample(_context: object, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        asked = params.messages[0].content
        assert isinstance(asked, types.TextContent)
        said = types.TextContent(type="text", text=asked.text.upper())
        return types.CreateMessageResult(role="assistant", content=said, model="any")

    asked: list[str] = []
    person = answering("accept", {"name": "Ann"}, asked)
    async with connected(notes_server(tmp_path), era, elicitation_callback=person, sampling_callback=sample) as client:
        result = await client.call_tool("interview")
    assert (asked, text_of(result)) == (["Who are you?"], "accept: GREET ANN")


async def test_a_client_that_cannot_be_asked_is_told_what_it_lacks(era: str, tmp_path: Path) -> None:
    async with connected(notes_server(tmp_path), era) as client:
        if era == "legacy":
            result = await client.call_tool("interview")
            assert result.is_error
            assert "does not offer 'elicitation'" in text_of(result)
        else:
            with pytest.raises(MCPError, match="elicitation"):
                await client.call_tool("interview")


@pytest.mark.parametrize(
    ("action", "content", "runs"),
    [
        pytest.param("accept", {"decision": "allow"}, True, id="a yes runs the call"),
        pytest.param("accept", {"decision": "deny"}, False, id="a no does not"),
        pytest.param("accept", {}, False, id="an accepted form without a decision does not"),
        pytest.param("decline", None, False, id="a declined form does not"),
        pytest.param("cancel", None, False, id="a closed form does not"),
    ],
)
async def test_what_rules_leave_open_is_asked_through_the_client(
    era: str, action: str, content: dict[str, Any] | None, runs: bool, tmp_path: Path
) -> None:
    asked: list[str] = []
    person = answering(action, content, asked)
    async with connected(notes_server(tmp_path), era, elicitation_callback=person) as client:
        result = await client.call_tool("wipe", {"name": "everything"})
    assert len(asked) == 1
    assert '"name":"everything"' in asked[0]
    assert ("everything is gone" in text_of(result)) is runs
    assert result.is_error is not runs


async def test_without_a_person_what_rules_leave_open_is_refused(era: str, tmp_path: Path) -> None:
    async with connected(notes_server(tmp_path), era) as client:
        result = await client.call_tool("wipe", {"name": "everything"})
    assert result.is_error
    assert "no one to ask" in text_of(result)
    assert (result.meta or {})["handrail/outcome"] == {"status": "denied", "cause": "denied"}


async def test_a_yes_is_for_one_call_with_its_input(era: str, tmp_path: Path) -> None:
    asked: list[str] = []
    person = answering("accept", {"decision": "allow"}, asked)
    async with connected(notes_server(tmp_path), era, elicitation_callback=person) as client:
        for name in ("one", "two", "two"):
            await client.call_tool("wipe", {"name": name})
    assert len(asked) == 3


async def test_a_cancelled_call_is_stopped(era: str, tmp_path: Path) -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    @tool(read_only=True)
    async def wait() -> str:
        """Waits for ever."""
        started.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            stopped.set()
        return "never"

    async with connected(McpServer("slow", [wait], cwd=tmp_path), era) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "wait")
            await started.wait()
            group.cancel_scope.cancel()
        await stopped.wait()


@pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")
async def test_changes_of_lists_and_followed_resources_are_told(era: str, tmp_path: Path) -> None:
    heard: list[str] = []
    news = asyncio.Event()

    async def hear(message: object) -> None:
        root = getattr(message, "root", message)
        if (method := getattr(root, "method", "")).startswith("notifications/"):
            heard.append(method)
            news.set()

    async def until(method: str) -> None:
        while method not in heard:
            await news.wait()
            news.clear()

    server = notes_server(tmp_path)
    async with connected(server, era, message_handler=hear) as client:
        await client.list_tools()
        if era == "legacy":
            await client.subscribe_resource("notes://monday/plans")
            server.resource_changed("notes://tuesday/plans")
            server.resource_changed("notes://monday/plans")
            server.add_tool(tool(name="more", read_only=True)(_more))
            await until("notifications/tools/list_changed")
            assert heard.count("notifications/resources/updated") == 1
        else:
            async with client.listen(tools_list_changed=True) as changes:
                server.add_tool(tool(name="more", read_only=True)(_more))
                async for _change in changes:
                    break
        assert "more" in {each.name for each in (await client.list_tools(cache_mode="refresh")).tools}


async def _more() -> str:
    """One more."""
    return "more"

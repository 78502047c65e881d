"""Other servers behind ours: the same rules, hooks, limits, deferral and audit for every client."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail import HookCallback
from handrail.config.flags import SettingsFlags
from handrail.gateway import ClientRules, McpServer, servers
from handrail.gateway.servers import may_be_made_from
from handrail.session.spec import SessionHost, SessionSpec, ToolOptions
from mcp import Client, MCPError, types
from tests.forked import reference_server, unmeasured
from tests.gateway.clients import ERAS, TOKENS, answering, sdk_client, text_of, url_of

pytestmark = pytest.mark.anyio


def gateway_in(folder: Path, *, flags: dict[str, Any], env: dict[str, str] | None = None, **more: Any) -> McpServer:
    behind = {"ref": reference_server()}
    options = ToolOptions(builtin=(), mcp_servers=behind, strict_mcp=True, defer=more.pop("defer", ""))
    spec = SessionSpec(cwd=folder, tools=options, flags=SettingsFlags(sources=(), **flags))
    whole = {**unmeasured(), "HANDRAIL_STATE_DIR": str(folder / "state"), **(env or {})}
    return McpServer.from_spec(spec, env=whole, **more)


@asynccontextmanager
async def connected(server: McpServer, era: str, **callbacks: Any) -> AsyncIterator[Client]:
    with anyio.fail_after(90):
        async with url_of(server) as url, sdk_client(url, era, **callbacks) as client:
            yield client


@pytest.mark.parametrize("era", ERAS)
async def test_servers_behind_us_are_governed_as_in_a_session(era: str, tmp_path: Path) -> None:
    fired: list[str] = []

    async def veto(fields: Any, *_rest: object) -> Any:
        fired.append(fields["tool_name"])
        if "secret" in json.dumps(fields["tool_input"]):
            return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny"}}
        return {}

    flags = {"allowed": ("mcp__ref__add", "mcp__ref__note", "mcp__ref__count"), "disallowed": ("mcp__ref__fail",)}
    server = gateway_in(
        tmp_path,
        flags=flags,
        env={"MY_API_TOKEN": "tok-1234567890"},
        host=SessionHost(hooks={"PreToolUse": (HookCallback(veto),)}),
        instructions="Be kind.",
    )
    asked: list[str] = []
    news: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        news.append(progress)

    async with connected(server, era, elicitation_callback=answering("accept", {"decision": "deny"}, asked)) as client:
        said = client.instructions or ""
        tools = {each.name: each for each in (await client.list_tools()).tools}
        summed = await client.call_tool("mcp__ref__add", {"a": 2, "b": 40})
        noted = await client.call_tool("ref__note", {"text": "the key is tok-1234567890"})
        vetoed = await client.call_tool("ref__note", {"text": "secret"})
        refused = await client.call_tool("ref__grow")
        await client.call_tool("ref__count", {"upto": 2}, progress_callback=hear)
        with pytest.raises(MCPError, match="no tool"):
            await client.call_tool("ref__fail", {"text": "x"})
        prompt = await client.get_prompt("ref__review", {"language": "perl"})
        resource = await client.read_resource("notes://today")
        with pytest.raises(MCPError, match="no resource"):
            await client.read_resource("notes://yesterday")

    assert said.startswith("Be kind.\n\nWhat MCP servers say about the use of their tools. It is their word, not")
    assert said.endswith("\n\nThe MCP server ref:\n> Ask kindly.")
    assert "ref__fail" not in tools
    assert tools["ref__add"].title == "ref: Add numbers"
    assert tools["ref__add"].annotations is not None
    assert tools["ref__add"].annotations.read_only_hint is True
    assert summed.structured_content == {"result": 42}
    assert noted.structured_content == {"noted": "the key is [redacted:MY_API_TOKEN]"}
    assert "tok-1234567890" not in noted.model_dump_json()
    assert (noted.meta or {})["trace"] == "t1"
    assert vetoed.is_error
    assert refused.is_error
    assert len(asked) == 1
    assert news[-2:] == [50, 100]
    assert fired.count("mcp__ref__note") == 2
    assert "perl" in prompt.model_dump_json()
    assert resource.contents[0].model_dump()["text"] == "sunny"
    entries = [
        json.loads(line) for file in (tmp_path / "state" / "audit").iterdir() for line in file.read_text().splitlines()
    ]
    verdicts = [(entry["tool"], entry["decision"]) for entry in entries if entry.get("tool") == "mcp__ref__grow"]
    assert verdicts == [("mcp__ref__grow", "deny")]


@pytest.mark.parametrize(
    ("room", "denied", "heard"),
    [(5, (), "Left out for lack of room: the words of ref."), (2_000, ("mcp__ref",), None)],
)
async def test_what_servers_behind_us_say_has_its_room_and_goes_with_a_server_that_a_rule_denies(
    room: int, denied: tuple[str, ...], heard: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "MAX_INSTRUCTIONS", room)
    async with connected(gateway_in(tmp_path, flags={"disallowed": denied}), ERAS[0]) as client:
        said = client.instructions

    assert "Ask kindly" not in str(said)
    assert said is heard or (said is not None and said.endswith(str(heard)))


@pytest.mark.parametrize("era", ERAS)
async def test_templates_and_completion_of_servers_behind_us_pass_through(era: str, tmp_path: Path) -> None:
    asked: list[str] = []
    server = gateway_in(tmp_path, flags={"allowed": ("ReadMcpResourceTool(notes://day/mon*)",)})
    person = answering("accept", {"decision": "deny"}, asked)
    async with connected(server, era, elicitation_callback=person) as client:
        templates = (await client.list_resource_templates()).resource_templates
        listed = (await client.list_resources()).resources
        prompt = types.PromptReference(type="ref/prompt", name="ref__review")
        template = types.ResourceTemplateReference(type="ref/resource", uri="notes://day/{name}")
        languages = await client.complete(prompt, {"name": "language", "value": "p"})
        days = await client.complete(template, {"name": "name", "value": "r"}, {"year": "2026"})
        monday = await client.read_resource("notes://day/monday")
        with pytest.raises(MCPError, match="did not allow"):
            await client.read_resource("notes://day/tuesday")
        with pytest.raises(MCPError, match="no prompt"):
            await client.complete(types.PromptReference(type="ref/prompt", name="review"), {"name": "a", "value": ""})
        with pytest.raises(MCPError, match="no resource"):
            await client.complete(
                types.ResourceTemplateReference(type="ref/resource", uri="other://{x}"), {"name": "x", "value": ""}
            )

    assert [(each.uri_template, (each.meta or {})["handrail/server"]) for each in templates] == [
        ("notes://day/{name}", "ref")
    ]
    assert "notes://day/{name}" not in {each.uri for each in listed}
    assert languages.completion.values == ["python", "perl"]
    assert days.completion.values == ["rust"]
    assert monday.contents[0].model_dump()["text"] == "rain on monday"
    assert len(asked) == 1


@pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")
@pytest.mark.parametrize("era", ERAS)
async def test_a_client_follows_resources_of_servers_behind_us_if_it_may_read_them(era: str, tmp_path: Path) -> None:
    heard: list[str] = []
    news = anyio.Event()

    async def hear(message: object) -> None:
        root = getattr(message, "root", message)
        if getattr(root, "method", "") == "notifications/resources/updated":
            heard.append(str(root.params.uri))  # type: ignore[attr-defined]
            news.set()

    async def rewrite_until_told(client: Client) -> None:
        while not news.is_set():  # the server may not have taken in what we follow
            await client.call_tool("ref__rewrite")
            with anyio.move_on_after(0.2):
                await news.wait()

    server = gateway_in(tmp_path, flags={"allowed": ("mcp__ref__rewrite",)})
    async with connected(server, era, message_handler=hear) as client:
        await client.list_tools()
        if era == "legacy":
            with pytest.raises(MCPError, match="has not listed this address"):
                await client.subscribe_resource("notes://day/monday")
            with pytest.raises(MCPError, match="no resource"):
                await client.subscribe_resource("other://x")
            await client.subscribe_resource("notes://today")
            await rewrite_until_told(client)
            await client.unsubscribe_resource("notes://today")
            heard.clear()
            await client.call_tool("ref__rewrite")
            assert heard == []
        else:
            wanted = ["notes://today", "notes://day/monday", "other://x"]
            async with client.listen(resource_subscriptions=wanted) as changes:
                honoured = changes.honored.resource_subscriptions
                async with anyio.create_task_group() as group:
                    group.start_soon(rewrite_until_told, client)
                    async for change in changes:
                        heard.append(str(change.uri))  # type: ignore[union-attr]
                        news.set()
                        break
            assert honoured == ["notes://today"]
            assert set(heard) == {"notes://today"}


@pytest.mark.parametrize(
    ("template", "uri", "fits"),
    [
        ("notes://day/{name}", "notes://day/monday", True),
        ("notes://day/{name}", "notes://day/a/b", True),
        ("notes://day/{name}", "notes://other/monday", False),
        ("a://{x}/b/{+y}/c", "a://1/b/2/c", True),
        ("a://{x}/b/{+y}/c", "a://1/c/2/b", False),
        ("a://{x}bb", "a://b", False),
        ("{+anything}", "file:///etc/passwd", False),
        ("a://fixed", "a://fixed", False),
    ],
)
def test_an_address_belongs_to_the_template_whose_parts_it_has(template: str, uri: str, *, fits: bool) -> None:
    assert may_be_made_from(template, uri) is fits


@given(st.lists(st.text(max_size=5), max_size=4), st.lists(st.text(max_size=5), min_size=4, max_size=4))
def test_an_address_that_was_made_from_a_template_is_found_again(parts: list[str], values: list[str]) -> None:
    literal = ["a:", *(each.replace("{", "").replace("}", "") for each in parts), ""]
    uri = literal[0] + "".join(value + part for value, part in zip(values, literal[1:], strict=False))
    assert may_be_made_from("{x}".join(literal[: len(values) + 1]), uri)


@pytest.mark.parametrize("era", ERAS)
async def test_the_trace_that_a_client_names_reaches_the_servers_behind_us(era: str, tmp_path: Path) -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    server = gateway_in(tmp_path, flags={"allowed": ("mcp__ref__trace",)})
    meta: Any = {"traceparent": parent}
    wrong: Any = {"traceparent": f"{parent}\nX: y"}
    async with connected(server, era) as client:
        named = await client.call_tool("ref__trace", meta=meta)
        broken = await client.call_tool("ref__trace", meta=wrong)
        none = await client.call_tool("ref__trace")
    async with connected(server, era, more={"traceparent": parent}) as client:
        by_header = await client.call_tool("ref__trace")

    assert [text_of(each) for each in (named, broken, none, by_header)] == [parent, "none", "none", parent]


@pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning")
@pytest.mark.parametrize("rule", ["mcp__ref", "mcp__ref__*", "mcp__*"])
async def test_a_denied_server_gives_neither_prompts_nor_resources(rule: str, tmp_path: Path) -> None:
    server = gateway_in(tmp_path, flags={"disallowed": (rule,)})
    async with connected(server, "legacy") as client:
        with pytest.raises(MCPError, match="no prompt"):
            await client.get_prompt("ref__review", {"language": "perl"})
        with pytest.raises(MCPError, match="no resource"):
            await client.read_resource("notes://today")
        with pytest.raises(MCPError, match="no resource"):
            await client.read_resource("notes://day/monday")
        with pytest.raises(MCPError, match="no resource"):
            await client.subscribe_resource("notes://today")
        with pytest.raises(MCPError, match="no prompt"):
            await client.complete(
                types.PromptReference(type="ref/prompt", name="ref__review"), {"name": "language", "value": ""}
            )
        with pytest.raises(MCPError, match="no resource"):
            await client.complete(
                types.ResourceTemplateReference(type="ref/resource", uri="notes://day/{name}"),
                {"name": "name", "value": ""},
            )
        assert (await client.list_resource_templates()).resource_templates == []
        assert (await client.list_prompts()).prompts == []
        assert (await client.list_resources()).resources == []


async def test_resources_of_a_server_with_an_ask_rule_are_asked_about(tmp_path: Path) -> None:
    asked: list[str] = []
    server = gateway_in(tmp_path, flags={"ask": ("mcp__ref",)})
    person = answering("accept", {"decision": "deny"}, asked)
    async with connected(server, "legacy", elicitation_callback=person) as client:
        with pytest.raises(MCPError, match="did not allow"):
            await client.read_resource("notes://today")
    assert len(asked) == 1


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("rule", ["mcp__ref", "mcp__ref__review"])
async def test_prompts_with_an_ask_rule_are_asked_about_and_nothing_is_proposed_for_them(
    rule: str, era: str, tmp_path: Path
) -> None:
    asked: list[str] = []
    server = gateway_in(tmp_path, flags={"ask": (rule,)})
    reference = types.PromptReference(type="ref/prompt", name="ref__review")
    begun = {"name": "language", "value": "p"}
    async with connected(server, era, elicitation_callback=answering("accept", {"decision": "deny"}, asked)) as client:
        with pytest.raises(MCPError, match="did not allow"):
            await client.get_prompt("ref__review", {"language": "perl"})
        assert (await client.complete(reference, begun)).completion.values == []
    assert "perl" in asked[0]
    async with connected(server, era, elicitation_callback=answering("accept", {"decision": "allow"}, asked)) as client:
        assert "perl" in (await client.get_prompt("ref__review", {"language": "perl"})).model_dump_json()
    assert len(asked) == 2


async def test_a_prompt_passes_hooks_and_the_audit_log_and_file_rules_see_its_arguments(tmp_path: Path) -> None:
    seen: list[str] = []

    async def look(fields: Any, *_rest: object) -> Any:
        seen.append(fields["tool_name"])
        return {}

    host = SessionHost(hooks={"PreToolUse": (HookCallback(look),)})
    (tmp_path / ".env").write_text("KEY=1")
    server = gateway_in(tmp_path, flags={"disallowed": ("Read(.env)",)}, host=host)
    async with connected(server, "legacy") as client:
        assert "perl" in (await client.get_prompt("ref__review", {"language": "perl"})).model_dump_json()
        with pytest.raises(MCPError, match=r"Read\(.env\)"):
            await client.get_prompt("ref__review", {"language": str(tmp_path / ".env")})
        with pytest.raises(MCPError, match="no prompt"):
            await client.get_prompt("ref__nothing")
    assert seen == ["mcp__ref__review"] * 2


async def test_what_a_hook_puts_in_the_place_of_a_prompt_is_all_that_the_client_gets(tmp_path: Path) -> None:
    async def clean(*_given: object) -> Any:
        return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedMCPToolOutput": "taken out"}}

    host = SessionHost(hooks={"PostToolUse": (HookCallback(clean),)})
    async with connected(gateway_in(tmp_path, flags={}, host=host), "legacy") as client:
        shown = (await client.get_prompt("ref__review", {"language": "perl"})).model_dump_json()
    assert "taken out" in shown
    assert "perl" not in shown


@pytest.mark.parametrize("era", ERAS)
async def test_the_first_list_and_the_first_call_wait_for_servers_that_are_slow(era: str, tmp_path: Path) -> None:
    hurried = {"HANDRAIL_MCP_WAIT_MS": "1"}
    async with connected(gateway_in(tmp_path, flags={}, env=hurried), era) as client:
        assert "ref__add" in {each.name for each in (await client.list_tools()).tools}
    server = gateway_in(tmp_path, flags={"allowed": ("mcp__ref__add",)}, env=hurried)
    async with connected(server, era) as client:
        assert (await client.call_tool("ref__add", {"a": 2, "b": 40})).structured_content == {"result": 42}


async def test_a_question_of_a_server_behind_us_reaches_the_client_of_its_call(tmp_path: Path) -> None:
    asked: list[str] = []
    person = answering("accept", {"colour": "green"}, asked)
    server = gateway_in(tmp_path, flags={"allowed": ("mcp__ref__paint",)})
    async with connected(server, "legacy", elicitation_callback=person) as client:
        result = await client.call_tool("ref__paint")
    assert (text_of(result), asked) == ("accept green", ["A question of the server ref:\n> Which colour?"])


async def test_questions_of_a_server_behind_us_reach_the_client_of_the_call_that_runs_and_not_of_one_that_waits(
    tmp_path: Path,
) -> None:
    asked: list[str] = []
    person = answering("accept", {"colour": "green"}, asked)
    server = gateway_in(tmp_path, flags={"allowed": ("mcp__ref__paint",)})
    results: list[str] = []

    async def paint(client: Client) -> None:
        results.append(text_of(await client.call_tool("ref__paint")))

    async with connected(server, "legacy", elicitation_callback=person) as client, anyio.create_task_group() as group:
        group.start_soon(paint, client)
        group.start_soon(paint, client)
    assert results == ["accept green"] * 2


async def test_held_back_tools_are_found_by_searching_and_then_listed(tmp_path: Path) -> None:
    server = gateway_in(tmp_path, flags={"allowed": ("mcp__ref__add",)}, defer="on")
    async with connected(server, "legacy") as client:
        before = {each.name for each in (await client.list_tools()).tools}
        await client.call_tool("ToolSearch", {"query": "sum of two numbers"})
        after = {each.name for each in (await client.list_tools()).tools}
    assert before == {"ToolSearch"}
    assert "ref__add" in after


async def test_clients_share_no_connection_and_no_rule(tmp_path: Path) -> None:
    ann, ben = ClientRules(allow=("mcp__ref__grow", "mcp__ref__grown")), ClientRules(deny=("mcp__ref__add",))
    server = gateway_in(tmp_path, flags={}, clients={"ann": ann, "ben": ben})
    told: dict[str, anyio.Event] = {"ann": anyio.Event(), "ben": anyio.Event()}

    def hear(name: str) -> Any:
        async def take(message: object) -> None:
            if getattr(getattr(message, "root", message), "method", "") == "notifications/tools/list_changed":
                told[name].set()

        return take

    with anyio.fail_after(90):
        async with (
            url_of(server, TOKENS) as url,
            sdk_client(url, "legacy", TOKENS["ann"], message_handler=hear("ann")) as anns,
            sdk_client(url, "legacy", TOKENS["ben"], message_handler=hear("ben")) as bens,
        ):
            await anns.call_tool("ref__grow")
            await told["ann"].wait()
            grown = await anns.call_tool("ref__grown")
            refused = await bens.call_tool("ref__grow")
            seen = {each.name for each in (await bens.list_tools()).tools}
    assert text_of(grown) == "grown"
    assert not told["ben"].is_set()
    assert refused.is_error
    assert {"ref__grown", "ref__add"}.isdisjoint(seen)

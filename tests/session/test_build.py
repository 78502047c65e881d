"""A session in a folder, against a real server: kept within its window, told what lies near, replayed."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from handrail import ToolContext, tool
from handrail.config.flags import SettingsFlags
from handrail.conversation.blocks import Text, ToolUse
from handrail.conversation.messages import Attachment
from handrail.errors import McpError
from handrail.loop.events import Compacted, RunEnded, Summarising
from handrail.providers.choose import ModelOptions
from handrail.session.spec import SessionHost
from handrail.testing.model_server import ModelServer, Reply
from handrail.tools.context import AgentType, McpResource
from handrail.tools.output import ContextChange, Output
from handrail.tools.schema import Input
from handrail.tools.tool import McpInfo, PromptView, Tool
from tests.session.folder_agent import open_agent

pytestmark = pytest.mark.anyio

MODEL = "gpt-4"  # 8,000 tokens


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path / "home"), "PATH": "/nonexistent"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def options(server: ModelServer) -> ModelOptions:
    return ModelOptions(provider="anthropic", model=MODEL, base_url=server.url, api_key="k")


async def test_a_history_that_fills_the_window_becomes_a_summary_that_is_billed(
    folder: Path, env: dict[str, str]
) -> None:
    replies = [
        Reply((Text("First."),), input_tokens=3_000, model=MODEL),
        Reply((Text("Second."),), input_tokens=6_000, model=MODEL),
        Reply((Text("SUMMARY: many words were said."),), input_tokens=1_000, output_tokens=70, model=MODEL),
        Reply((Text("Third."),), input_tokens=300, output_tokens=3, model=MODEL),
    ]
    with anyio.fail_after(20):
        async with ModelServer(replies, strict=True) as server:
            agent = open_agent(folder, env, options(server), system="Be brief.")
            try:
                await agent.ask("word " * 1_500)
                await agent.ask("more " * 1_500)
                events = [event async for event in agent.run("And now? " * 800)]
            finally:
                await agent.aclose()
            _, before, aside, after = server.requests

    begun, over, compacted = [event for event in events if isinstance(event, Summarising | Compacted)]
    assert (begun, over) == (Summarising(on=True), Summarising(on=False))
    assert isinstance(compacted, Compacted)
    assert compacted.kind == "full"
    assert compacted.messages_after < compacted.messages_before
    assert not aside.body.get("tools")
    assert len(after.raw) < len(before.raw) - 5_000
    assert b"SUMMARY: many words" in after.raw
    assert b"And now?" in after.raw
    ended = events[-1]
    assert isinstance(ended, RunEnded)
    assert ended.text == "Third."
    [spent] = ended.spent.values()
    assert (spent.answers, spent.input_tokens, spent.output_tokens) == (2, 1_300, 73)


async def test_settings_can_switch_off_that_a_history_is_shortened(folder: Path, env: dict[str, str]) -> None:
    replies = [Reply((Text(text),), input_tokens=7_000, model=MODEL) for text in ("First.", "Second.", "Third.")]
    flags = SettingsFlags(settings='{"autoCompactEnabled": false}')
    with anyio.fail_after(20):
        async with ModelServer(replies, strict=True) as server:
            agent = open_agent(folder, env, options(server), flags=flags)
            try:
                for prompt in ("word ", "more ", "last "):
                    await agent.ask(prompt * 1_500)
            finally:
                await agent.aclose()

    assert all("word word" in request.raw.decode() for request in server.requests)


@pytest.mark.proves("R10")
async def test_secrets_that_the_settings_describe_are_in_no_audit_log(folder: Path, env: dict[str, str]) -> None:
    env["HANDRAIL_STATE_DIR"] = str(folder / "state")
    replies = [Reply((ToolUse("a", "Read", {"file_path": "CASE-4711.txt"}),)), Reply((Text("Done."),))]
    flags = SettingsFlags(settings='{"redact": ["CASE-[0-9]+"]}')
    with anyio.fail_after(20):
        async with ModelServer(replies, strict=True) as server:
            agent = open_agent(folder, env, options(server), flags=flags)
            try:
                await agent.ask("go")
            finally:
                await agent.aclose()

    [log] = (folder / "state" / "audit").iterdir()
    assert "[redacted" in log.read_text()
    assert "4711" not in log.read_text()


async def test_memory_near_a_file_comes_with_the_file_once(folder: Path, env: dict[str, str]) -> None:
    (folder / "AGENTS.md").write_text("Rule of the project.")
    (folder / "part").mkdir()
    (folder / "part" / "AGENTS.md").write_text("Rule of the part.")
    (folder / "part" / "file.txt").write_text("content\n")
    read = {"file_path": str(folder / "part" / "file.txt")}
    replies = [Reply((ToolUse("a", "Read", read),)), Reply((ToolUse("b", "Read", read),)), Reply((Text("Done."),))]
    with anyio.fail_after(20):
        async with ModelServer(replies, strict=True) as server:
            agent = open_agent(folder, env, options(server))
            try:
                answer = await agent.ask("Read it.")
            finally:
                await agent.aclose()
            bodies = [json.dumps(request.body["messages"]) for request in server.requests]

    assert answer.text == "Done."
    assert [body.count("Rule of the project.") for body in bodies] == [1, 1, 1]
    assert [body.count("Rule of the part.") for body in bodies] == [0, 1, 1]


async def test_memory_files_that_the_settings_exclude_are_not_read(folder: Path, env: dict[str, str]) -> None:
    (folder / "CLAUDE.md").write_text("Rule of the project.")
    flags = SettingsFlags(settings='{"claudeMdExcludes": ["**/CLAUDE.md"]}')
    with anyio.fail_after(20):
        async with ModelServer([Reply((Text("Done."),))], strict=True) as server:
            agent = open_agent(folder, env, options(server), flags=flags)
            try:
                await agent.ask("Go.")
            finally:
                await agent.aclose()

    assert "Rule of the project." not in server.requests[0].raw.decode()


async def test_what_was_recorded_is_answered_again_without_a_server(
    folder: Path, env: dict[str, str], tmp_path: Path
) -> None:
    (folder / "file.txt").write_text("content\n")
    tape = tmp_path / "tape.jsonl"
    read = {"file_path": str(folder / "file.txt")}
    with anyio.fail_after(20):
        async with ModelServer([Reply((ToolUse("a", "Read", read),)), Reply((Text("It says content."),))]) as server:
            agent = open_agent(folder, env, options(server), record=tape)
            try:
                first = await agent.ask("What does it say?")
            finally:
                await agent.aclose()
        again = open_agent(folder, env, replay=tape)
        try:
            second = await again.ask("What does it say?")
        finally:
            await again.aclose()

    assert first.text == second.text == "It says content."
    assert again.model == MODEL
    assert [type(message) for message in again.messages] == [type(message) for message in agent.messages]
    attached = [message.kind for message in again.messages if isinstance(message, Attachment)]
    assert attached == ["context", "agents", "tools"]
    assert str(folder) not in tape.read_text()


READY = """
import importlib
import sys
from pathlib import Path
from handrail.providers.choose import ModelOptions
from handrail.session import warm_up
from handrail.session.build import open_session
from handrail.session.spec import SessionSpec

SAMPLES = {str: "a", float: 1}
model = ModelOptions("anthropic", "m", "http://127.0.0.1:9", "k")
session = open_session(SessionSpec(Path.cwd(), model), {"PATH": "/nonexistent"})
assert "pydantic" not in sys.modules
importlib.import_module(warm_up.SHELL)
print([name for name in warm_up.STEPS_TO_SHELL if name not in sys.modules])
session.warm_up.load()
before = set(sys.modules)
for tool in session.conversation.tools:
    fields = tool.input_model.model_fields.items()
    tool.parse({name: SAMPLES.get(each.kind, []) for name, each in fields if each.default is ...})
print(sorted(name for name in set(sys.modules) - before if name.startswith("handrail")))
print(sorted({"pydantic", "pydantic_core"} & sys.modules.keys()))
print("handrail.dispatch.approval" in sys.modules)
print({"handrail.shell.tables.changes", "handrail.shell.tables.git"} <= before)
"""


def test_a_session_that_warmed_up_imports_nothing_at_the_first_call_and_never_pydantic(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", READY], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert done.stdout.splitlines() == ["[]", "[]", "[]", "True", "True"]


HELD = """
import asyncio
import sys
import time
from pathlib import Path
from handrail.builtin import bash
from handrail.conversation.request import Request
from handrail.loop.events import RequestSent
from handrail.loop.state import Why
from handrail.processes.supervisor import SUPERVISOR
from handrail.providers.choose import ModelOptions
from handrail.session.build import open_session
from handrail.session.spec import SessionSpec

async def hold_the_loop(session):
    session.warm_up.on_event(RequestSent(Request("m", ()), 1, Why.PROMPT))
    until = time.monotonic() + 20
    while not SUPERVISOR.pid and time.monotonic() < until:
        time.sleep(0.001)  # as a call does that came at once and loads its tool
    print(SUPERVISOR.pid > 0, "handrail.builtin.read.tool" in sys.modules)

model = ModelOptions("anthropic", "m", "http://127.0.0.1:9", "k")
asyncio.run(hold_the_loop(open_session(SessionSpec(Path.cwd(), model), {"PATH": "/nonexistent"})))
"""


def test_the_supervisor_starts_while_a_command_that_came_at_once_loads_the_shell(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", HELD], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert done.stdout == "True False\n"


OVERTAKEN = """
import sys
import threading
from pathlib import Path
from handrail.conversation.blocks import ToolUse
from handrail.conversation.request import Request
from handrail.loop.events import RequestSent
from handrail.loop.state import Why
from handrail.providers.choose import ModelOptions
from handrail.session.build import open_session
from handrail.session.spec import SessionSpec
from handrail.tools.events import CallQueued

model = ModelOptions("anthropic", "m", "http://127.0.0.1:9", "k")
warm_up = open_session(SessionSpec(Path.cwd(), model), {"PATH": "/nonexistent"}).warm_up
waits, has_stopped = [], threading.Event()

class Seen(threading.Event):
    def wait(self):
        if not self.is_set():
            has_stopped.set()
        return super().wait()

warm_up._may_load = Seen()
warm_up._may_load.set()

def wait():
    waits.append(1)
    if len(waits) == 2:  # the next step was about to begin
        warm_up.on_event(CallQueued(ToolUse("c", "Bash", {}), 0.0))
    return True

loading = threading.Thread(target=warm_up.load, args=(wait,))
loading.start()
print(has_stopped.wait(60), "handrail.builtin.read.tool" in sys.modules)
warm_up._has_begun = True
warm_up.on_event(RequestSent(Request("m", ()), 2, Why.PROMPT))
loading.join(60)
print("handrail.builtin.read.tool" in sys.modules)
"""


def test_a_call_that_comes_while_loading_waits_for_its_turn_goes_first(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", OVERTAKEN], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert done.stdout == "True False\nTrue\n"


FIRST_READ = """
import sys
from handrail.cli.main import run
code = run(["call", "Read", '{"file_path": "a.txt"}'])
unused = {"pydantic", "handrail.shell.analysis", "handrail.shell.model", "handrail.dispatch.approval.answers"}
print(code, sorted(sys.modules.keys() & unused))
"""


def test_a_first_read_loads_neither_what_reads_command_lines_nor_what_asks(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("words inside\n")

    done = subprocess.run([sys.executable, "-c", FIRST_READ], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert "words inside" in done.stdout
    assert done.stdout.splitlines()[-1] == "0 []"


async def test_settings_that_change_between_two_calls_decide_the_second(folder: Path, env: dict[str, str]) -> None:
    (folder / "file.txt").write_text("words inside\n")
    read = {"file_path": "file.txt"}
    replies = [
        Reply((ToolUse("a", "Read", read),)),
        Reply((Text("Read."),)),
        Reply((ToolUse("b", "Read", read),)),
        Reply((Text("Refused."),)),
    ]
    with anyio.fail_after(20):
        async with ModelServer(replies, strict=True) as server:
            agent = open_agent(folder, env, options(server))
            try:
                await agent.ask("Read it.")
                (folder / ".handrail").mkdir()
                (folder / ".handrail" / "settings.json").write_text('{"permissions": {"deny": ["Read(file.txt)"]}}')
                await agent.ask("Read it again.")
            finally:
                await agent.aclose()
            results = [request.body["messages"][-1]["content"][0] for request in server.requests[1::2]]

    assert ["words inside" in json.dumps(result) for result in results] == [True, False]
    assert "the rule Read(file.txt) matches" in json.dumps(results[1])


async def test_servers_of_the_command_line_and_of_programs_are_judged_by_the_lists_of_the_settings(
    folder: Path, env: dict[str, str]
) -> None:
    async def carry(name: str, message: object) -> dict[str, object]:
        raise AssertionError(f"{name} was asked: {message}")

    given = {"db": {"command": "/bin/sh", "args": ["-c", f"touch {folder}/started"]}, "own": {"type": "sdk"}}
    flags = SettingsFlags(settings='{"allowedMcpServers": [{"serverName": "other"}]}')
    warnings: list[str] = []
    with anyio.fail_after(20):
        async with ModelServer([], strict=True) as server:
            host = SessionHost(mcp_transport=carry, on_warning=warnings.append)
            agent = open_agent(folder, env, options(server), flags=flags, servers=given, host=host)
            try:
                await agent.session.connect()
                assert agent.session.servers is not None
                errors = [status["error"] for status in agent.session.servers.status()]
            finally:
                await agent.aclose()

    assert errors == ["allowedMcpServers of --settings:1 does not allow it."] * 2
    assert sum("is not used: allowedMcpServers of" in note for note in warnings) == 2
    assert not (folder / "started").exists()


@pytest.mark.parametrize(("mode", "wish", "written"), [("acceptEdits", "default", False), ("acceptEdits", "", True)])
async def test_a_sub_agent_of_a_stricter_mode_is_held_to_it(
    folder: Path, env: dict[str, str], mode: str, wish: str, written: bool
) -> None:
    agents = {"writer": {"description": "d", "prompt": "p", "permissionMode": wish, "disallowedTools": ["Glob"]}}
    replies = [
        Reply((ToolUse("a", "Agent", {"description": "w", "prompt": "Write.", "subagent_type": "writer"}),)),
        Reply((ToolUse("b", "Write", {"file_path": f"{folder}/made.txt", "content": "x"}),)),
        Reply((Text("Tried."),)),
        Reply((Text("Done."),)),
    ]
    with anyio.fail_after(20):
        async with ModelServer(replies, strict=True) as server:
            agent = open_agent(folder, env, options(server), flags=SettingsFlags(mode=mode), agents=agents)
            try:
                await agent.ask("Go.")
            finally:
                await agent.aclose()
            offered = [tool["name"] for tool in server.requests[1].body["tools"]]

    assert (folder / "made.txt").exists() is written
    assert "Write" in offered
    assert "Glob" not in offered


async def test_in_auto_mode_the_model_of_the_moment_judges_and_is_billed(folder: Path, env: dict[str, str]) -> None:
    def turn(number: int, model: str) -> list[Reply]:
        call = ToolUse(f"t{number}", "Bash", {"command": "npm test"})
        return [
            Reply((call,), input_tokens=10, output_tokens=1, model=model),
            Reply((Text("I cannot tell."),), input_tokens=500, output_tokens=20, model=model),
            Reply((Text("Done."),), input_tokens=30, output_tokens=3, model=model),
        ]

    with anyio.fail_after(20):
        async with ModelServer([*turn(1, MODEL), *turn(2, "gpt-4o")], strict=True) as server:
            agent = open_agent(folder, env, options(server), system="Be brief.", flags=SettingsFlags(mode="auto"))
            try:
                first = await agent.ask("Test it.")
                await agent.set_model("gpt-4o")
                second = await agent.ask("Again.")
            finally:
                await agent.aclose()
            models = [request.body["model"] for request in server.requests]
            assert b"The call to judge" in server.requests[4].raw

    assert models == [MODEL] * 3 + ["gpt-4o"] * 3
    for answer, model in ((first, MODEL), (second, "gpt-4o")):
        assert answer.spent.keys() == {model}
        assert (answer.spent[model].answers, answer.spent[model].input_tokens) == (3, 540)


LOOKS = ToolUse("l", "look", {})


@pytest.mark.proves("D7", "D8", "M1")
async def test_a_tool_of_a_session_sees_its_servers_resources_agents_commands_and_flags(
    folder: Path, env: dict[str, str]
) -> None:
    (folder / ".handrail" / "commands").mkdir(parents=True)
    (folder / ".handrail" / "commands" / "tidy.md").write_text("---\ndescription: Tidies up.\n---\nTidy.\n")
    answers = {
        "initialize": {"serverInfo": {"name": "db"}, "capabilities": {"tools": {}, "resources": {}}},
        "tools/list": {"tools": [{"name": "ask", "inputSchema": {"type": "object"}}]},
        "resources/list": {"resources": [{"uri": "db://a", "name": "A", "mimeType": "text/plain"}, {"name": "none"}]},
    }

    async def carry(name: str, message: dict[str, Any]) -> dict[str, Any]:
        if name == "gone":
            raise McpError("it is gone")
        return {"jsonrpc": "2.0", "id": message.get("id"), "result": answers.get(str(message.get("method")), {})}

    seen: list[Any] = []

    @tool(read_only=True)
    async def look(ctx: ToolContext) -> str:
        """Look around."""
        options = ctx.options
        seen.extend([options.mcp_servers(), options.mcp_resources(), options.commands(), options.agents()])
        seen.extend([options.model, options.interactive, options.debug, options.verbose, options.tools()])
        return ""

    given = {"db": {"type": "sdk"}, "gone": {"type": "sdk"}}
    agents = {"writer": {"description": "Writes.", "prompt": "p"}}
    replies = [Reply((LOOKS,)), Reply((Text("Done."),))]
    with anyio.fail_after(20):
        async with ModelServer(replies, strict=True) as server:
            host = SessionHost(mcp_transport=carry, on_warning=lambda _text: None)
            agent = open_agent(
                folder, env, options(server), tools=[look], servers=given, agents=agents, host=host,
                interactive=True, debug=True,
            )  # fmt: skip
            try:
                await agent.ask("Go.")
            finally:
                await agent.aclose()

    servers, resources, commands, types, *plain, tools = seen
    assert servers == {"db": "connected", "gone": "failed"}
    assert resources == {"db": (McpResource("db://a", "A", "", "text/plain"),)}
    assert commands == {"tidy": "Tidies up."}
    assert AgentType("writer", "Writes.") in types
    assert plain == [MODEL, True, True, False]
    assert {"look", "Read", "mcp__db__ask"} <= set(tools)


@pytest.mark.proves("A11", "M6")
async def test_prompts_of_a_session_see_its_agents_and_whether_a_person_is_there(
    folder: Path, env: dict[str, str]
) -> None:
    class Dependent(Tool[Input]):
        name = "dependent"
        input_model = Input

        def prompt(self, view: PromptView) -> str:
            return f"{view.interactive} {[each.name for each in view.agents]} {'Read' in view.tools} {view.mode}"

    async def described(**more: Any) -> str:
        async with ModelServer([Reply((Text("Done."),))], strict=True) as server:
            whole = {**env, "ENABLE_TOOL_SEARCH": "false"}  # the window of this model is small
            agent = open_agent(folder, whole, options(server), agents=agents, tools=[Dependent()], **more)
            try:
                await agent.ask("Go.")
            finally:
                await agent.aclose()
            sent = {tool["name"]: tool["description"] for tool in server.requests[0].body["tools"]}
        return str(sent["dependent"])

    agents = {"writer": {"description": "Writes.", "prompt": "p"}}
    with anyio.fail_after(20):
        alone, watched = await described(), await described(interactive=True, flags=SettingsFlags(mode="acceptEdits"))

    assert alone.startswith("False ['writer', ")
    assert alone.endswith("True default")
    assert watched.startswith("True ['writer', ")
    assert watched.endswith("True acceptEdits")


async def test_a_sub_agent_cannot_change_the_mode_of_its_session(folder: Path, env: dict[str, str]) -> None:
    class Plan(Tool[Input]):
        name = "mcp__s__plan"
        input_model = Input
        mcp = McpInfo("s", "plan")
        always_load = True

        def prompt(self, view: PromptView) -> str:
            return "Plan."

        def is_read_only(self, args: Input) -> bool:
            return True

        async def call(self, args: Input, ctx: ToolContext) -> Output:
            return Output(text="planned", context_change=ContextChange(mode="plan"))

    agents = {"planner": {"description": "d", "prompt": "p"}}
    replies = [
        Reply((ToolUse("a", "Agent", {"description": "w", "prompt": "Plan.", "subagent_type": "planner"}),)),
        Reply((ToolUse("b", "mcp__s__plan", {}),)),
        Reply((Text("Tried."),)),
        Reply((ToolUse("c", "mcp__s__plan", {}),)),
        Reply((Text("Done."),)),
    ]
    with anyio.fail_after(20):
        async with ModelServer(replies, strict=True) as server:
            flags = SettingsFlags(mode="acceptEdits", allowed=("mcp__s__plan",))
            agent = open_agent(folder, env, options(server), flags=flags, agents=agents, tools=[Plan()])
            try:
                await agent.ask("Go.")
            finally:
                await agent.aclose()
            inside, outside = json.dumps(server.requests[2].body), json.dumps(server.requests[4].body)

    assert "a sub-agent cannot change the mode" in inside
    assert "planned" in outside
    assert agent.session.mode == "plan"


async def test_caps_by_tool_of_the_settings_hold_in_a_session(folder: Path, env: dict[str, str]) -> None:
    running, most = 0, 0

    @tool(read_only=True, concurrency_safe=True)
    async def look(place: int) -> str:
        """Look around."""
        nonlocal running, most
        running += 1
        most = max(most, running)
        await anyio.lowlevel.checkpoint()
        running -= 1
        return str(place)

    async def at_once(settings: str) -> int:
        nonlocal most
        most = 0
        calls = tuple(ToolUse(str(number), "look", {"place": number}) for number in range(6))
        async with ModelServer([Reply(calls), Reply((Text("Done."),))], strict=True) as server:
            agent = open_agent(folder, env, options(server), flags=SettingsFlags(settings=settings), tools=[look])
            try:
                await agent.ask("Go.")
            finally:
                await agent.aclose()
        return most

    off = '"earlyStart": "off"'
    with anyio.fail_after(30):
        assert await at_once(f'{{"scheduling": {{{off}}}}}') == 6
        assert await at_once(f'{{"scheduling": {{{off}, "maxParallel": 3}}}}') == 3
        assert await at_once(f'{{"scheduling": {{{off}, "maxParallelByTool": {{"look": 2}}}}}}') == 2

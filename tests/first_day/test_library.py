"""The first day of a builder who imports handrail: what they try, and what they get."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, assert_type

import pytest
from pydantic import BaseModel

from handrail import Agent, Allow, Deferral, Deny, Hooks, Question, SessionSpec, tool
from handrail.cli.main import run
from handrail.conversation.blocks import Text, ToolResult
from handrail.conversation.messages import UserMessage
from handrail.events import CallProgress
from handrail.session.spec import SessionHost, ToolOptions
from handrail.testing import ScriptedModel, say, use
from handrail.tools.pool import AnyTool
from tests.forked import reference_server

pytestmark = pytest.mark.anyio

outbox: list[str] = []


@tool
async def send(text: str) -> str:
    """Send a text."""
    outbox.append(text)
    return f"sent {text}"


@tool(read_only=True)
async def dump() -> str:
    """Everything."""
    return "line\n" * 100_000


@pytest.fixture(autouse=True)
def forget() -> None:
    outbox.clear()


def results(agent: Agent[Any]) -> list[str]:
    """The text of each result, as the model gets it."""
    return [
        "\n".join(part.text for part in block.content if isinstance(part, Text))
        for message in agent.messages
        if isinstance(message, UserMessage)
        for block in message.content
        if isinstance(block, ToolResult)
    ]


def asks_to_send() -> ScriptedModel:
    return ScriptedModel([[use("1", "send", text="hello")], [say("Done.")]])


async def test_my_approver_has_a_bug_and_nothing_runs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def approve(name: str, values: Mapping[str, Any], question: Question) -> Allow | Deny:
        return Allow() if values["recipient"] == "me" else Deny("only to me")

    answer = await Agent(asks_to_send(), [send], can_use_tool=approve, cwd=tmp_path).ask("Send it.")

    assert outbox == []
    [denial] = answer.denials
    assert denial.reason == "the program that runs this agent was asked and failed (KeyError: 'recipient')"
    assert "KeyError: 'recipient'" in caplog.text
    assert "in approve" in caplog.text


@pytest.mark.parametrize("event", ["PreToolUse", "PermissionRequest"])
async def test_my_hook_has_a_bug_and_nothing_runs(event: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def guard(values: Mapping[str, Any]) -> None:
        raise LookupError(values["tool_input"]["text"])

    agree = (lambda *_: Allow()) if event == "PreToolUse" else None  # it would answer before the other hook
    agent = Agent(asks_to_send(), [send], can_use_tool=agree, hooks={event: guard}, cwd=tmp_path)
    answer = await agent.ask("Send it.")

    assert outbox == []
    assert "raised LookupError: hello" in answer.ended.denials[0].reason
    assert "raised LookupError: hello" in results(agent)[0]
    assert "in guard" in caplog.text


def numbered(number: int) -> AnyTool:
    @tool(name=f"lamp{number}", read_only=True)
    async def lamp() -> str:
        """Switch on a lamp."""
        return f"lamp {number} is on"

    return lamp


def sent(model: ScriptedModel) -> list[list[str]]:
    """The names of the tools in each request, without those that wait."""
    requests: list[Any] = model.requests
    return [[tool.name for tool in request.tools if not tool.deferred] for request in requests]


def finds_a_lamp() -> ScriptedModel:
    return ScriptedModel([[use("1", "ToolSearch", query="select:lamp7")], [use("2", "lamp7")], [say("Light.")]])


async def test_my_200_tools_wait_until_the_model_looks_for_them(tmp_path: Path) -> None:
    few, many = ScriptedModel([[say("Hello.")]]), finds_a_lamp()
    await Agent(few, map(numbered, range(20)), builtin_tools=False, cwd=tmp_path).ask("Hello.")
    agent = Agent(many, map(numbered, range(200)), builtin_tools=False, cwd=tmp_path)
    await agent.ask("Light, please.")

    assert sent(few) == [sorted(f"lamp{number}" for number in range(20))]
    assert sent(many)[0] == ["ToolSearch"]
    assert results(agent)[1] == "lamp 7 is on"


async def test_i_can_have_my_tools_wait_however_few_they_are(tmp_path: Path) -> None:
    model = finds_a_lamp()
    tools = ToolOptions(tuple(map(numbered, range(9))), builtin=(), deferral=Deferral("on"))
    await Agent.from_spec(SessionSpec(tmp_path, tools=tools), {}, SessionHost(model=model)).ask("Light, please.")

    assert sent(model)[0] == ["ToolSearch"]


@pytest.mark.parametrize(
    ("builtin", "way"),
    [
        (["Read", "Grep"], "Use Read with offset and limit, or Grep, for the part you need."),
        (["Bash"], "Use Bash (sed -n, for example) for the part you need."),
        ([], "None of your tools can read it, so ask for less at once."),
    ],
)
async def test_a_big_result_names_only_tools_that_the_model_has(builtin: list[str], way: str, tmp_path: Path) -> None:
    model = ScriptedModel([[use("1", "dump")], [say("Much.")]])
    agent = Agent(model, [dump], builtin_tools=builtin, cwd=tmp_path, state_dir=tmp_path / "state")
    await agent.ask("Dump it.")

    assert way in results(agent)[0]
    assert "Read" not in results(agent)[0] or "Read" in builtin


async def test_an_agent_in_my_program_leaves_no_files_unless_i_say_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, work, mine = (tmp_path / name for name in ("home", "work", "mine"))
    work.mkdir()
    (tmp_path / "tmp").mkdir()
    env = {"HOME": str(home), "TMPDIR": str(tmp_path / "tmp"), "PATH": "/usr/bin:/bin"}
    monkeypatch.setattr(Path, "home", lambda: home)

    async def ask(**more: Any) -> str:
        calls = [use("1", "dump"), use("2", "Bash", command="seq 100000")]
        model = ScriptedModel([calls, [say("Much.")]])
        async with Agent(model, [dump], allow=["Bash(seq *)"], cwd=work, env=env, **more) as agent:
            await agent.ask("Dump it.")
            for text in results(agent):
                assert Path(text.partition(" is in ")[2].partition(". Use")[0]).stat().st_size > 400_000
            return results(agent)[0]

    await ask()
    assert (home.exists(), list(work.iterdir()), list((tmp_path / "tmp").iterdir())) == (False, [], [])

    text = await ask(state_dir=mine)
    assert str(mine / "results") in text
    assert list((mine / "audit").iterdir())
    assert (home.exists(), list(work.iterdir()), list((tmp_path / "tmp").iterdir())) == (False, [], [])


class Person(BaseModel):
    name: str
    born: int


async def test_my_type_checker_knows_what_i_get_and_what_i_may_answer(tmp_path: Path) -> None:
    async def approve(name: str, values: dict[str, str], question: Question) -> Allow | Deny:
        return Allow({"text": values["text"].upper()}) if question.tool == name else Deny("another tool")

    def approve_as_json(name: str, values: dict[str, Any], question: Question) -> dict[str, Any]:
        return {"behavior": "deny", "message": "not today"}

    ada = say('{"name": "Ada", "born": 1815}')
    model = ScriptedModel([[use("1", "send", text="hello")], [ada]])
    answer = await Agent(model, [send], can_use_tool=approve, output=Person, cwd=tmp_path).ask("Who?")
    refused = await Agent(asks_to_send(), [send], can_use_tool=approve_as_json, cwd=tmp_path).ask("Send it.")

    assert assert_type(answer.structured, Person).born == 1815
    assert outbox == ["HELLO"]
    assert [denial.reason for denial in refused.ended.denials] == ["not today"]


async def test_what_a_command_said_before_i_stopped_it_is_not_lost(tmp_path: Path) -> None:
    command = "printf 'step 1 done\\n'; exec sleep 1000"
    model = ScriptedModel([[use("1", "Bash", command=command)], [say("Step 2 is left.")]])
    async with Agent(model, allow=["Bash"], cwd=tmp_path) as agent:
        async for event in agent.run("Do both steps."):
            if isinstance(event, CallProgress) and "step 1 done" in event.progress.message:
                agent.interrupt()
        await agent.ask("How far did it get?")

    told = "was stopped while it ran: the user interrupted the turn. Its effects may be incomplete"
    assert told in results(agent)[0]
    assert results(agent)[0].endswith("What it had said by then:\nstep 1 done")


async def test_what_a_command_said_before_its_time_was_over_is_not_lost(tmp_path: Path) -> None:
    command = "printf 'step 1 done\\n'; exec sleep 1000"
    model = ScriptedModel([[use("1", "Bash", command=command, timeout=1500)], [say("Step 2 is left.")]])
    async with Agent(model, allow=["Bash"], cwd=tmp_path) as agent:
        await agent.ask("Do both steps.")

    assert "step 1 done\n(it was stopped because it took longer than 1.5 seconds" in results(agent)[0]


STOPS_IN_THE_MIDDLE = """
import asyncio, os, sys
from handrail import Agent
from handrail.testing import ScriptedModel, say, use

def link(*_, **__):  # the new content is complete, and has not got its name yet
    print("ready", flush=True)
    sys.stdin.read()

os.link = link
model = ScriptedModel([[use("1", "Write", file_path="plan.md", content="a plan")], [say("Done.")]])
asyncio.run(Agent(model, mode="acceptEdits", cwd=sys.argv[1], state_dir=sys.argv[2]).ask("Write it."))
"""


@pytest.mark.parametrize("next_step", ["session", "doctor"])
async def test_a_kill_in_the_middle_of_a_write_leaves_nothing_in_my_project(
    next_step: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    project, state = tmp_path / "project", tmp_path / "state"
    project.mkdir()
    (project / ".plan.md.0123456789ab.handrail").write_text("mine, whatever it is called")

    def left() -> list[str]:
        return [path.name for path in project.iterdir() if path.name not in ("a.md", ".plan.md.0123456789ab.handrail")]

    async def write() -> None:
        model = ScriptedModel([[use("1", "Write", file_path="a.md", content="a")], [say("Done.")]])
        await Agent(model, mode="acceptEdits", cwd=project, state_dir=state).ask("Write it.")

    child = subprocess.Popen(
        [sys.executable, "-c", STOPS_IN_THE_MIDDLE, project, state], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdin is not None
    assert child.stdout is not None
    with child:
        assert child.stdout.readline() == b"ready\n"
        [temporary] = left()
        await write()
        assert left() == [temporary], "a file in use is left alone"
        child.kill()

    if next_step == "session":
        await write()
    else:
        monkeypatch.setenv("HANDRAIL_STATE_DIR", str(state))
        monkeypatch.chdir(project)
        run(["doctor"])
        assert temporary in capsys.readouterr().out
    assert left() == []


SECRET = "hunter2"
MASK = f"""{sys.executable} -c '
import json, sys
event = json.load(sys.stdin)
new = json.loads(json.dumps(event["tool_response"]).replace("{SECRET}", "***"))
print(json.dumps({{"hookSpecificOutput": {{"hookEventName": "PostToolUse", "updatedToolOutput": new}}}}))
'"""


def masks(event: dict[str, Any]) -> dict[str, Any]:
    """Keep the secret out of everything that a tool returns, whatever shape that has."""
    new = json.loads(json.dumps(event["tool_response"]).replace(SECRET, "***"))
    return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": new}}


def says_no_more(event: dict[str, Any]) -> dict[str, Any]:
    """Put a plain text in the place of what a tool returns."""
    return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": "it said ***"}}


COMMAND_HOOK = {"PostToolUse": [{"hooks": [{"type": "command", "command": MASK}]}]}


@pytest.mark.parametrize(
    "hooks",
    [
        pytest.param({"PostToolUse": masks}, id="a function"),
        pytest.param({"PostToolUse": says_no_more}, id="a function that gives a text"),
        pytest.param(Hooks(COMMAND_HOOK), id="a command"),
    ],
)
async def test_my_hook_keeps_a_secret_from_the_model_and_from_the_transcript(hooks: Any, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text(f"the password\nis {SECRET}\n")

    @tool(read_only=True)
    async def look_up(user: str) -> dict[str, str]:
        """Look up a user."""
        return {"user": user, "password": SECRET}

    steps = [
        use("1", "Bash", command=f"printf '%s%s\\n' {SECRET[:3]} {SECRET[3:]}"),
        use("2", "Read", file_path="notes.txt"),
        use("3", "Grep", pattern="is", output_mode="content"),
        use("4", "look_up", user="ada"),
        use("5", "mcp__ref__note", text=f"{SECRET[:3]}{SECRET[3:]}"),
    ]
    model = ScriptedModel([steps, [say("Done.")]])
    servers = {"ref": reference_server()}
    rules = ["Bash", "mcp__ref", "look_up"]
    state = tmp_path / "state"
    async with Agent(
        model, [look_up], allow=rules, hooks=hooks, mcp_servers=servers, cwd=tmp_path, session=True, state_dir=state
    ) as agent:
        await agent.ask("Tell me everything.")

    assert all("***" in text for text in results(agent))
    assert SECRET not in "".join(results(agent))
    [transcript] = state.rglob("sessions/**/*.jsonl")
    written = [json.loads(line) for line in transcript.read_text().splitlines()]
    assert SECRET not in json.dumps([line for line in written if "tool_result" in json.dumps(line)])
    if hooks != {"PostToolUse": says_no_more}:
        assert results(agent)[:2] == ["***", "1\tthe password\n2\tis ***"]

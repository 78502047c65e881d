"""What `Agent` takes: rules, settings, servers, sessions and outputs, and what it says about wrong arguments."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from handrail import Agent, Allow, HandrailError, Hooks, Outcome, Tool, tool
from handrail.events import CallFinished
from handrail.testing import ScriptedModel, say, use
from tests.forked import reference_server

pytestmark = pytest.mark.anyio


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    home = tmp_path / "home"
    home.mkdir()
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin", "HANDRAIL_STATE_DIR": str(tmp_path / "state")}
    return env | {"HANDRAIL_MCP_WAIT_MS": "60000"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    (project / ".env").write_text("TOKEN=hush\n")
    (project / "notes.txt").write_text("words\n")
    return project


@tool(subject="place")
async def deploy(place: str) -> str:
    """Deploy to a place."""
    return f"deployed to {place}"


class Unfinished(Tool[Any]):
    name = "Unfinished"


async def outcomes(agent: Agent[Any]) -> list[Outcome]:
    with anyio.fail_after(20):
        async with agent:
            return [event.outcome async for event in agent.run("Go.") if isinstance(event, CallFinished)]


def calls(*uses: Any) -> ScriptedModel:
    return ScriptedModel([list(uses), [say("Done.")]])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"deny": ["Bash("]}, "deny holds 'Bash(': the bracket is not closed"),
        ({"ask": "Bash"}, "ask is 'Bash'. Give a list of rules"),
        ({"deny": None}, "deny is None. Give a list of rules"),
        ({"builtin_tools": None}, "builtin_tools is None. Give True, False or a list of names"),
        ({"tools": None}, "tools is None. Give a list of tools"),
        ({"allow": [3]}, "allow holds 3. Rules are texts such as"),
        ({"mode": "yolo"}, "mode is 'yolo'. Choose one of default, acceptEdits, plan"),
        ({"builtin_tools": ["Raed"]}, "There is no built-in tool 'Raed'. Did you mean 'Read'?"),
        ({"builtin_tools": "Read"}, "Give True, False or a list of names: ['Read']"),
        ({"limits": 3}, "limits is 3. Give Limits(turns="),
        ({"builtin_tools": ["Xyzzy"]}, "There is no built-in tool 'Xyzzy'. There are Agent, "),
        ({"hooks": {"PreTool": [print]}}, "hooks has 'PreTool', which is not an event. Did you mean 'PreToolUse'?"),
        ({"hooks": {"Frobnicate": [print]}}, "hooks has 'Frobnicate', which is not an event. There are PreToolUse"),
        ({"hooks": {"PreToolUse": [{"hooks": []}]}}, "in the form of the settings are given as hooks=Hooks({...})"),
        ({"settings": ["model"]}, "settings is ['model']. Give True, False, the path of a file, or its content as a"),
        ({"settings": {"model": Path}}, "settings cannot be written as JSON: Object of type type is not"),
        (
            {"settings": "no.json"},
            "settings is 'no.json', which is not a file. Give True, False, the path of a file, or",
        ),
        ({"system_prompt": 3}, "system_prompt is 3. Give a text, or None"),
        ({"tools": ["Read"]}, "tools is for your own; builtin_tools=['Read'] leaves out the other built-in ones"),
        ({"tools": [print]}, "print is not a tool. Put @tool above a function"),
        ({"tools": [Unfinished]}, "Unfinished is a class. Give an instance of it: Unfinished()"),
        ({"tools": [Unfinished()]}, "The tool Unfinished has no input_model and no call. Define it in the class"),
        ({"tools": deploy}, "tools is the tool 'deploy'. Give a list of tools: [deploy]"),
        ({"session": "x" * 300}, "letters"),
        ({"output": 3}, "Give a JSON Schema with an object at its root, or a Pydantic model"),
        ({"cwd": "/nonexistent/folder"}, "cwd is '/nonexistent/folder', which is not a folder"),
        ({"session": 3}, "session is 3. Give True, False, or the id of a session"),
        ({"mcp_servers": ["db"]}, "mcp_servers is ['db']. Give configurations by name"),
        ({"mcp_servers": {"db": "uvx"}}, "mcp_servers['db'] is 'uvx'"),
        ({"mcp_servers": {"db": {"cmd": "uvx"}}}, "mcp_servers['db'] cannot be used: it has no command"),
        ({"mcp_servers": {"db": {"url": "http://x"}}}, 'add "type": "http" to use its url'),
        ({"hooks": [print]}, "Give functions by event, for example {"),
        ({"hooks": {"PreToolUse": [3]}}, "hooks['PreToolUse'] has 3. Give functions, or HookCallback("),
        ({"state_dir": 3}, "state_dir is 3. Give a folder"),
        ({"can_use_tool": 3}, "can_use_tool is 3. Give a function of (tool_name, input, question)"),
    ],
)
def test_a_wrong_argument_is_refused_at_once_with_what_is_expected(
    arguments: dict[str, Any], words: str, env: dict[str, str]
) -> None:
    with pytest.raises(HandrailError) as caught:
        Agent(ScriptedModel([]), env=env, **arguments)
    assert words in str(caught.value)


@pytest.mark.parametrize("model", ["", " "])
def test_a_model_without_a_name_is_refused_at_once(model: str, env: dict[str, str]) -> None:
    with pytest.raises(HandrailError, match="Name a model, or leave it out for the default"):
        Agent(model, env=env)


@pytest.mark.parametrize("prompt", ["", "  \n", None, 7, ["words"], {"text": "words"}])
async def test_a_prompt_without_words_or_blocks_is_refused_before_the_model_is_asked(
    prompt: Any, env: dict[str, str]
) -> None:
    model = ScriptedModel([[say("What?")]])
    with pytest.raises(HandrailError, match=r"The prompt is .* Give a text, a UserMessage, or blocks such as Text"):
        await Agent(model, env=env).ask(prompt)
    assert not model.requests


async def test_an_empty_prompt_is_refused_where_no_call_was_deferred(env: dict[str, str]) -> None:
    model = ScriptedModel([[say("What?")]])
    with pytest.raises(HandrailError, match="The message is empty"):
        await Agent(model, env=env).ask(())
    assert not model.requests


@pytest.mark.parametrize("behaviour", ["allow", "ask", "deny"])
def test_rules_with_a_content_need_a_tool_that_names_its_subject(behaviour: str, env: dict[str, str]) -> None:
    @tool
    async def ship(place: str) -> str:
        """Ship to a place."""
        return place

    said = rf"{behaviour} holds 'ship\(prod\)', but ship does not say which parameter.*@tool\(subject"
    with pytest.raises(HandrailError, match=said):
        Agent(calls(), [ship], env=env, **{behaviour: ["ship(prod)"]})  # type: ignore[arg-type]
    Agent(calls(), [deploy, ship], env=env, **{behaviour: ["deploy(prod)", "ship"]})  # type: ignore[arg-type]
    Agent(calls(), [ship], env=env, deny=["ship(place:prod)"])


def test_hooks_take_lists_of_functions_by_event() -> None:
    with pytest.raises(HandrailError, match=r"the callbacks for Stop are <built-in function print>\. Give a list"):
        Hooks(callbacks={"Stop": print})  # type: ignore[dict-item]  # that is the point


async def test_rules_of_the_arguments_decide_and_the_callback_gets_what_they_leave_open(
    folder: Path, env: dict[str, str]
) -> None:
    asked: list[str] = []

    def can_use_tool(name: str, given: Mapping[str, Any], _question: Any) -> Allow:
        asked.append(f"{name} {given['place']}")
        return Allow()

    model = calls(
        use("1", "Read", file_path=".env"),
        use("2", "deploy", place="prod"),
        use("3", "deploy", place="stage"),
        use("4", "deploy", place="test"),
    )
    agent = Agent(
        model, [deploy], cwd=folder, env=env, deny=["Read(.env)", "deploy(prod)"], allow=["deploy(stage)"],
        ask=["deploy(test)"], can_use_tool=can_use_tool,
    )  # fmt: skip

    found = {outcome.use.id: outcome.status.value for outcome in await outcomes(agent)}

    assert found == {"1": "denied", "2": "denied", "3": "ok", "4": "ok"}
    assert asked == ["deploy test"]


@pytest.mark.parametrize(
    ("settings", "status"),
    [
        pytest.param(False, "ok", id="no file counts without settings"),
        pytest.param(True, "denied", id="the files of the folder count"),
        pytest.param("rules.json", "denied", id="one file counts"),
        pytest.param({"permissions": {"deny": ["Read(notes.txt)"]}}, "denied", id="a dictionary counts"),
    ],
)
async def test_rules_of_files_hold_only_with_settings(
    settings: bool | str | dict[str, Any],
    status: str,
    folder: Path,
    env: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    rules = json.dumps({"permissions": {"deny": ["Read(notes.txt)"]}})
    (folder / "rules.json").write_text(rules)
    if settings is True:
        (folder / ".handrail").mkdir()
        (folder / ".handrail" / "settings.json").write_text(rules)

    model = calls(use("1", "Read", file_path="notes.txt"))
    [outcome] = await outcomes(Agent(model, cwd=folder, env=env, settings=settings))

    assert outcome.status.value == status


async def test_nothing_is_written_into_a_folder_whose_settings_do_not_count(folder: Path, env: dict[str, str]) -> None:
    before = sorted(folder.rglob("*"))
    model = calls(use("1", "deploy", place="prod"))

    [outcome] = await outcomes(
        Agent(model, [deploy], cwd=folder, env=env, can_use_tool=lambda _name, _given, question: question.always())
    )

    assert outcome.status.value == "ok"
    assert sorted(folder.rglob("*")) == before


async def test_a_session_of_an_id_begins_and_goes_on(folder: Path, env: dict[str, str]) -> None:
    async def talk(*answers: str) -> list[str]:
        model = ScriptedModel([[say(text)] for text in answers])
        async with Agent(model, cwd=folder, env=env, session="my-talk") as agent:
            for _ in answers:
                await agent.ask("Go on.")
            return [str(message) for message in agent.messages]

    first = await talk("One.")
    second = await talk("Two.")

    assert second[: len(first)] == first
    assert "Two." in second[-1]


def test_a_kept_session_can_be_asked_again_without_async(folder: Path, env: dict[str, str]) -> None:
    agent = Agent(ScriptedModel([[say("One.")], [say("Two.")]]), cwd=folder, env=env, session=True)

    assert (agent.ask_sync("a").text, agent.ask_sync("b").text) == ("One.", "Two.")
    [transcript] = (Path(env["HANDRAIL_STATE_DIR"]) / "sessions").rglob("*.jsonl")
    assert "Two." in transcript.read_text()


def test_a_session_is_closed_without_async_and_can_be_opened_again(folder: Path, env: dict[str, str]) -> None:
    def reply(text: str) -> int:
        with Agent(ScriptedModel([[say(text)]]), cwd=folder, env=env, session="customer-7") as agent:
            agent.ask_sync("And?")
            return len(agent.messages)

    assert [reply("One."), reply("Two.")] == [2, 4]


async def test_closing_without_async_is_refused_inside_a_loop(folder: Path, env: dict[str, str]) -> None:
    agent = Agent(ScriptedModel([]), cwd=folder, env=env)

    with pytest.raises(HandrailError, match=r"close\(\) cannot be used inside a running .*await agent.aclose"):
        agent.close()


async def test_text_arrives_in_pieces_without_thoughts_or_inputs_of_calls(folder: Path, env: dict[str, str]) -> None:
    model = ScriptedModel([[say("I look."), use("1", "Read", file_path="notes.txt")], [say("It says words.")]])
    async with Agent(model, cwd=folder, env=env) as agent:
        pieces = [piece async for piece in agent.stream_text("What does it say?")]

    assert "".join(pieces) == "I look.It says words."


async def test_servers_of_the_arguments_offer_their_tools(folder: Path, env: dict[str, str]) -> None:
    servers = {"ref": reference_server()}
    model = calls(use("1", "mcp__ref__add", a=2, b=3))

    [outcome] = await outcomes(Agent(model, cwd=folder, env=env, mcp_servers=servers, allow=["mcp__ref"]))

    assert (outcome.status.value, outcome.result.text) == ("ok", "5")


class Person(BaseModel):
    name: str


async def test_a_structured_answer_has_the_type_of_the_output(env: dict[str, str]) -> None:
    agent = Agent(ScriptedModel([[say('{"name": "Ada"}')]]), output=Person, env=env)
    typed: Agent[Person] = agent

    person: Person = (await typed.ask("Who?")).structured

    assert person == Person(name="Ada")


async def test_a_text_stream_that_is_left_early_does_not_hold_up_the_next_prompt(env: dict[str, str]) -> None:
    agent = Agent(ScriptedModel([[say("One."), say("Two.")], [say("Three.")]]), builtin_tools=False, env=env)

    async for _ in agent.stream_text("Talk."):
        break

    assert (await agent.ask("Again.")).text == "Three."


async def test_a_closed_agent_says_so(folder: Path, env: dict[str, str]) -> None:
    async with Agent(ScriptedModel([[say("One.")]] * 2), cwd=folder, env=env, session="kept") as agent:
        await agent.ask("Go.")

    with pytest.raises(HandrailError, match="This conversation was closed"):
        await agent.ask("Go on.")


@pytest.mark.parametrize(("prompt", "words"), [(None, "The prompt is None. Give a text"), (3, "The prompt is 3")])
async def test_a_prompt_that_is_none_is_refused(prompt: Any, words: str, env: dict[str, str]) -> None:
    with pytest.raises(HandrailError, match=words):
        await Agent(ScriptedModel([]), env=env).ask(prompt)

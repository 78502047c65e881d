"""Teams: members write to each other and to the lead, are woken, share the task list, and are asked before they end."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail import Agent
from handrail.config.flags import SettingsFlags
from handrail.conversation.blocks import ToolUse
from handrail.hooks.specs import HookCallback
from handrail.session.spec import SessionHost, SessionSpec
from handrail.testing.model import gate, say, use
from tests.session.agents.test_background_agents import text_of
from tests.session.agents.test_subagents import delegate
from tests.session.agents_model import AgentsModel

pytestmark = pytest.mark.anyio


def open_agent(folder: Path, model: AgentsModel, **hooks: Any) -> Agent[Any]:
    env = {"HOME": str(folder / "home"), "HANDRAIL_STATE_DIR": str(folder / "state"), "PATH": "/usr/bin:/bin"}
    (folder / "work").mkdir(exist_ok=True)
    flags = SettingsFlags(sources=(), managed_policy=False, mode="acceptEdits")
    host = SessionHost(model=model, hooks={event: [HookCallback(each)] for event, each in hooks.items()})
    return Agent.from_spec(SessionSpec(folder / "work", flags=flags), env, host)


def member(number: int, prompt: str, name: str, **more: Any) -> ToolUse:
    return delegate(number, prompt, name=name, team_name="crew", **more)


def write(number: int, to: str, text: str, **more: Any) -> ToolUse:
    return use(f"m{number}", "SendMessage", to=to, message=text, **more)


MAKE = use("t", "TeamCreate", team_name="crew", description="Two who talk")


async def rest(agent: Agent[Any], upto: int = 10) -> list[str]:
    """Answer every notification; what each said."""
    told: list[str] = []
    while len(told) < upto and (message := await agent.session.background.next_notification()) is not None:
        told.append(text_of(message))
        await agent.ask(message.content)
    return told


@pytest.mark.proves("N11", "N12")
async def test_a_message_reaches_a_running_member_between_two_turns_wakes_an_idle_one_and_the_lead(
    tmp_path: Path,
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("a\n")
    sent = asyncio.Event()
    model = AgentsModel({
        "go": [
            [MAKE],
            [member(1, "be one", "one"), member(2, "be two", "two")],
            [say("Started.")],
            *[[say("Ok.")]] * 5,
        ],
        "be one": [[gate(sent), use("r", "Read", file_path="a.txt")], [say("I read the message.")]],
        "be two": [
            [write(1, "one", "look at b.txt", summary="b"), write(2, "main", "I wrote to one")],
            [say("Two is done.")],
            [say("Two goes on.")],
        ],
    })  # fmt: skip
    with anyio.fail_after(30):
        async with open_agent(tmp_path, model) as agent:
            await agent.ask("go")
            while len(model.requests("be two")) < 2:
                await asyncio.sleep(0)
            sent.set()
            told = await rest(agent)
            one, two = agent.session.agents.known.all()
            wake: Any = [[write(3, "two", "and now?")], [say("Sent.")], [say("Heard.")]]
            later = AgentsModel({"go": wake, "be two": [[say("On.")]]})
            await agent.set_model(later)
            await agent.ask("wake it")
            told += await rest(agent)

    assert 'from="two">\nlook at b.txt' in model.texts("be one", 1)
    assert any('from="two">\nI wrote to one' in each for each in told)
    assert any(f"team member one, sub-agent {one.id}" in each and "is idle" in each for each in told)
    assert 'from="main">\nand now?' in later.texts("be two")
    assert any(f"sub-agent {two.id}, run 2" in each and "On." in each for each in told)
    assert "which goes on for it" in later.texts("go")
    everything = "\n".join(told)
    assert everything.count("I wrote to one") == 1
    assert everything.count("Two is done.") == 1


@pytest.mark.proves("N11")
async def test_a_message_to_no_one_is_an_answer_and_all_are_listed(tmp_path: Path) -> None:
    model = AgentsModel({
        "go": [
            [MAKE],
            [member(1, "be one", "one")],
            [write(1, "nobody", "hello?"), write(2, "main", "me?"), use("l", "ListAgents", q="ONE")],
            [member(2, "again", "one"), delegate(3, "no", name="x", team_name="other"), delegate(4, "r", name="*")],
            [say("Ok.")],
            [say("Told.")],
        ],
        "be one": [[say("Done.")]],
    })  # fmt: skip
    with anyio.fail_after(30):
        async with open_agent(tmp_path, model) as agent:
            await agent.ask("go")
            await rest(agent)
    said = model.texts("go")
    assert "There is no agent 'nobody'. Known: one (agent-" in said
    assert "You are the lead." in said
    assert ", general-purpose): " in said
    assert "team crew" in said
    assert "There is a sub-agent 'one' already" in said
    assert "There is no team 'other'" in said
    assert "The name '*' means the lead or all agents" in said


@pytest.mark.proves("N13")
async def test_a_team_is_asked_to_finish_first_and_who_does_not_is_stopped_in_bounded_time(tmp_path: Path) -> None:
    never, asked = asyncio.Event(), asyncio.Event()
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("a\n")
    model = AgentsModel({
        "go": [
            [MAKE],
            [member(1, "be good", "good"), member(2, "be deaf", "deaf")],
            [say("Started.")],
            [use("d", "TeamDelete", team_name="crew", wait_seconds=0.5)],
            [use("e", "TeamDelete", team_name="crew")],
            [say("Over.")],
            [say("Told.")],
        ],
        "be good": [[gate(asked), use("r", "Read", file_path="a.txt")], [say("I finish.")]],
        "be deaf": [[gate(never)]],
    })  # fmt: skip
    with anyio.fail_after(30):
        async with open_agent(tmp_path, model) as agent:
            await agent.ask("go")
            while not (model.requests("be good") and model.requests("be deaf")):
                await asyncio.sleep(0)
            run = asyncio.ensure_future(agent.ask("end it"))
            mail = tmp_path / "state" / "runs"
            while not list(mail.rglob("*-*.json")) or len(list(mail.glob("*/mail/*/*.json"))) < 2:
                await asyncio.sleep(0)
            asked.set()
            await run
            assert list(mail.glob("*/mail/*/*.json")) == []
            assert {each.team for each in agent.session.agents.known.all()} == {""}
    assert "The lead ends this team" in model.texts("be good")
    assert "The team crew is over (finished: good; stopped: deaf)." in model.texts("go")
    assert "There is no team 'crew'." in model.texts("go")


async def test_of_two_members_that_take_a_task_one_gets_it_and_hooks_may_object(tmp_path: Path) -> None:
    seen: list[Mapping[str, Any]] = []
    idle: list[str] = []

    async def on_task(given: Mapping[str, Any]) -> dict[str, Any]:
        seen.append(given)
        bad = given["task_subject"] == "bad" or given["hook_event_name"] == "TaskCompleted"
        return {"decision": "block", "reason": "not like this"} if bad else {}

    async def on_idle(given: Mapping[str, Any]) -> dict[str, Any]:
        idle.append(given["teammate_name"])
        return {"decision": "block", "reason": "one more look"} if idle.count("one") == 1 else {}

    def claim(n: int) -> list[ToolUse]:
        return [use(f"c{n}", "TaskUpdate", taskId="1", status="in_progress")]

    first = asyncio.Event()
    model = AgentsModel({
        "go": [
            [MAKE, *(use(name, "TaskCreate", subject=name, description="d") for name in ("good", "bad"))],
            [member(1, "be one", "one", subagent_type="Explore"), member(2, "be two", "two")],
            [say("Started.")],
            *[[say("Ok.")]] * 4,
        ],
        "be one": [
            claim(1),
            [use("x", "TaskUpdate", taskId="1", status="completed")],
            [say("Mine.")],
            [say("Looked.")],
        ],
        "be two": [[gate(first), *claim(2)], [say("Not mine.")]],
    })  # fmt: skip
    with anyio.fail_after(30):
        async with open_agent(
            tmp_path, model, TaskCreated=on_task, TaskCompleted=on_task, TeammateIdle=on_idle
        ) as agent:
            await agent.ask("go")
            while len(model.requests("be one")) < 2:
                await asyncio.sleep(0)
            first.set()
            told = await rest(agent)

    assert "The task was not created: a hook objects. not like this" in model.texts("go")
    assert "Task 1 was changed (owner, status, pending -> in_progress)" in model.texts("be one")
    assert "Task 1 is not completed: a hook objects." in model.texts("be one")
    assert "Task 1 belongs to 'one' (in_progress)" in model.texts("be two")
    assert "one more look" in model.texts("be one")
    assert any("Looked." in each for each in told)
    [done] = [each for each in seen if each["hook_event_name"] == "TaskCompleted"]
    assert (done["task_id"], done["teammate_name"], done["team_name"]) == ("1", "one", "crew")
    assert sorted(idle) == ["one", "one", "two"]

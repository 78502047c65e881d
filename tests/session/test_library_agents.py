"""Sub-agents and teams from Python: kinds, tasks, events, messages, and the rules that hold for them."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail import Agent, AgentNews, AgentSpec, HandrailError
from handrail.loop.events import RunEnded
from handrail.testing.model import gate, say, use
from tests.session.agents_model import AgentsModel

pytestmark = pytest.mark.anyio

REVIEWER = AgentSpec("reviewer", "Reviews", "You review.", tools=["Read"], max_turns=3)


def open_agent(folder: Path, model: AgentsModel, **more: Any) -> Agent[Any]:
    env = {"HOME": str(folder / "home"), "PATH": "/usr/bin:/bin"}
    return Agent(model, cwd=folder, agents=[REVIEWER], env=env, state_dir=folder / "state", **more)


async def test_a_program_hands_tasks_to_agents_side_by_side_and_sees_whose_events_they_are(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("alpha\n")
    both = asyncio.Event()
    model = AgentsModel({
        "one": [[use("r", "Read", file_path="a.txt"), use("w", "Write", file_path="b", content="x")], [say("One.")]],
        "two": [[gate(both), say("Two.")]],
        "go": [[say("Fine.")]],
    })  # fmt: skip
    news: list[AgentNews] = []

    def on_event(each: AgentNews) -> None:
        news.append(each)
        both.set()

    with anyio.fail_after(20):
        async with open_agent(tmp_path, model) as agent:
            two, one = await asyncio.gather(agent.delegate("two"), agent.delegate("one", "reviewer", on_event=on_event))
            spent = (await agent.ask("go")).spent
    assert (one.text, two.text) == ("One.", "Two.")
    assert (one.kind, one.calls, one.status) == ("reviewer", 2, "completed")
    assert "1\talpha" in model.texts("one")
    assert "There is no tool 'Write'" in model.texts("one")  # it has the tools of its kind alone
    assert {(each.agent, each.kind) for each in news} == {(one.agent_id, "reviewer")}
    assert len({each.call for each in news}) == 1
    assert isinstance(news[-1].event, RunEnded)
    assert sum(each.input_tokens for each in spent.values()) == 40  # theirs is on the bill of the next prompt


@pytest.mark.parametrize(
    ("kind", "more", "words"),
    [
        ("nobody", {}, "^There is no sub-agent 'nobody'"),
        ("reviewer", {"deny": ["Agent(reviewer)"]}, "Agent(reviewer)"),
        ("general-purpose", {"isolation": "worktree"}, "in no git repository"),
    ],
)
async def test_a_task_that_cannot_begin_raises_and_says_why(
    tmp_path: Path, kind: str, more: dict[str, Any], words: str
) -> None:
    isolation = more.pop("isolation", "")
    async with open_agent(tmp_path, AgentsModel({}), **more) as agent:
        with pytest.raises(HandrailError, match=words.replace("(", r"\(").replace(")", r"\)")):
            await agent.delegate("go", kind, isolation=isolation)
        assert agent.session.agents.known.all() == ()


@pytest.mark.parametrize(
    ("agents", "words"),
    [
        ([REVIEWER, REVIEWER], "agents has two called 'reviewer'"),
        ([AgentSpec("a b", "d", "p")], "'a b' cannot be the name of an agent"),
        ([{"name": "x"}], "Give a list of AgentSpec"),
        ([AgentSpec("a", "d", "p", tools=["Raed"])], "lists 'Raed' in tools, which is not a tool. Did you mean 'Read'"),
        ([AgentSpec("a", "d", "p", disallowed_tools=["Raed"])], "disallows 'Raed', which is not a tool"),
    ],
)
def test_a_wrong_description_of_an_agent_is_an_error_at_once(agents: list[Any], words: str) -> None:
    with pytest.raises(HandrailError, match=words):
        Agent(AgentsModel({}), agents=agents)


@pytest.mark.proves("N12", "N13")
async def test_a_program_leads_a_team_and_leaves_it_with_all_members_ended(tmp_path: Path) -> None:
    never = asyncio.Event()
    model = AgentsModel({
        "write": [[use("m", "SendMessage", to="main", message="half way")], [say("Draft.")], [say("Better.")]],
        "check": [[gate(never)]],
        "go": [[say("I know.")]],
    })  # fmt: skip
    with anyio.fail_after(20):
        async with open_agent(tmp_path, model) as agent:
            async with agent.team("docs", wait_seconds=0) as team:
                await team.start("writer", "write", "reviewer")
                assert (await team.wait())["writer"].text == "Draft."
                await team.send("writer", "make it better")
                assert (await team.wait())["writer"].text == "Better."
                await team.start("checker", "check")
                with pytest.raises(HandrailError, match="There is no agent 'nobody'"):
                    await team.send("nobody", "?")
                with pytest.raises(HandrailError, match="There is a sub-agent 'checker' already"):
                    await team.start("checker", "check")
                while not model.requests("check"):
                    await asyncio.sleep(0)
                assert [each.name for each in team.members] == ["writer", "checker"]
            assert {each.name: each.status for each in agent.session.agents.known.all()} == {
                "writer": "completed",
                "checker": "killed",
            }
            await agent.ask("go")
    told = model.texts("go")
    assert told.count('from="writer">\nhalf way') == 1
    assert told.count("Draft.") == 1
    assert told.count("Better.") == 1


async def test_hooks_see_the_calls_of_a_program_as_those_of_a_model(tmp_path: Path) -> None:
    seen: list[str] = []

    async def hook(given: Mapping[str, Any]) -> dict[str, Any]:
        seen.append(given["tool_name"])
        return {}

    model = AgentsModel({"one": [[say("One.")]]})
    async with open_agent(tmp_path, model, hooks={"PreToolUse": hook}) as agent:
        await agent.delegate("one")
    assert seen == ["Agent"]

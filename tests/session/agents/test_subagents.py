"""Sub-agents side by side: how they share files, slots, limits and the bill, and how one of them is stopped."""

import asyncio
import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail import Agent
from handrail.config.flags import SettingsFlags
from handrail.conversation.blocks import ToolUse
from handrail.loop.events import RunEnded
from handrail.session.spec import SessionHost, SessionSpec, ToolOptions
from handrail.testing.model import gate, say, use
from handrail.tools.delegation import AgentNews
from handrail.tools.events import CallProgress
from tests.session.agents_model import AgentsModel

pytestmark = pytest.mark.anyio


def delegate(number: int, prompt: str, **more: Any) -> ToolUse:
    return use(f"a{number}", "Agent", description=f"task {number}", prompt=prompt, **more)


def open_agent(folder: Path, model: AgentsModel, values: dict[str, Any] | None = None, **tools: Any) -> Agent[Any]:
    env = {"HOME": str(folder / "home"), "HANDRAIL_STATE_DIR": str(folder / "state"), "PATH": "/usr/bin:/bin"}
    work = folder / "work"
    work.mkdir(exist_ok=True)
    text = json.dumps(values) if values else ""
    flags = SettingsFlags(sources=(), managed_policy=False, mode="acceptEdits", settings=text)
    spec = SessionSpec(work, flags=flags, tools=ToolOptions(**tools))
    return Agent.from_spec(spec, env, SessionHost(model=model))


@pytest.mark.proves("N10")
async def test_agents_of_one_answer_work_side_by_side_and_other_calls_before_or_after_them(tmp_path: Path) -> None:
    one, two, both = asyncio.Event(), asyncio.Event(), asyncio.Event()
    model = AgentsModel({
        "go": [
            [
                use("w", "Write", file_path="first.txt", content="1"),
                delegate(1, "one"),
                delegate(2, "two"),
                use("r", "Read", file_path="made.txt"),
            ],
            [say("Done.")],
        ],
        "one": [[gate(one), use("r1", "Read", file_path="first.txt")], [gate(both), say("One.")]],
        "two": [[gate(two), use("w2", "Write", file_path="made.txt", content="made")], [gate(both), say("Two.")]],
    })  # fmt: skip
    with anyio.fail_after(20):
        async with open_agent(tmp_path, model) as agent:
            two.set()  # the second begins to work, and both are at work before the first goes on

            async def watch() -> None:
                while len(model.requests("two")) < 2:
                    await asyncio.sleep(0)
                one.set()
                while len(model.requests("one")) < 2:
                    await asyncio.sleep(0)
                both.set()

            async with anyio.create_task_group() as group:
                group.start_soon(watch)
                answer = await agent.ask("go")

    assert answer.text == "Done."
    assert "1\t1" in model.texts("one")  # what the call before it wrote
    assert "1\tmade" in model.texts("go")  # what the agents before it wrote


async def test_one_more_than_the_setting_allows_waits_and_an_agent_that_waits_for_its_own_lends_its_slot(
    tmp_path: Path,
) -> None:
    model = AgentsModel({
        "go": [[delegate(1, "outer"), delegate(2, "other")], [say("Done.")]],
        "outer": [[delegate(3, "inner")], [say("Outer.")]],
        "inner": [[say("Inner.")]],
        "other": [[say("Other.")]],
    })  # fmt: skip
    with anyio.fail_after(20):
        async with open_agent(tmp_path, model, {"maxConcurrentAgents": 1}) as agent:
            ends = [event.text async for event in agent.run("go") if isinstance(event, RunEnded)]

    assert ends == ["Done."]
    assert "Inner." in model.texts("outer")
    assert [len(model.requests(each)) for each in ("outer", "inner", "other")] == [2, 1, 1]


async def test_limits_end_an_agent_with_what_it_has_and_depth_ends_the_chain(tmp_path: Path) -> None:
    model = AgentsModel({
        "go": [[delegate(1, "endless")], [delegate(2, "deep")], [say("Done.")]],
        "endless": [[say(f"Step {n}."), use(f"g{n}", "Glob", pattern=f"*{n}")] for n in range(9)],
        "deep": [[delegate(3, "deeper")], [say("Deep.")]],
        "deeper": [[delegate(4, "deepest")], [say("Deeper.")]],
    })  # fmt: skip
    with anyio.fail_after(20):
        async with open_agent(tmp_path, model, {"agentLimits": {"turns": 3, "depth": 2}}) as agent:
            answer = await agent.ask("go")

    assert answer.text == "Done."
    assert len(model.requests("endless")) == 3
    assert "Step 2." in model.texts("go", 1)
    assert "It stopped early: max turns" in model.texts("go", 1)
    assert "There is no tool 'Agent'" in model.texts("deeper")
    used = answer.ended.spent["scripted"]
    assert (used.answers, used.input_tokens) == (3 + 3 + 2 + 2, 100)


async def test_stopping_one_leaves_the_others_alone(tmp_path: Path) -> None:
    never, begun = asyncio.Event(), asyncio.Event()
    model = AgentsModel({
        "go": [[delegate(1, "stuck"), delegate(2, "fine")], [say("Done.")]],
        "stuck": [[gate(never)]],
        "fine": [[gate(begun), use("g", "Glob", pattern="*")], [say("Fine.")]],
    })  # fmt: skip
    with anyio.fail_after(20):
        async with open_agent(tmp_path, model) as agent:
            async for event in agent.run("go"):
                match event:
                    case CallProgress(progress=AgentNews(agent=name, prompt="stuck")) if model.requests("stuck"):
                        agent.session.agents.stop(name)
                        begun.set()
                    case _:
                        pass

    assert "did not finish" in model.texts("go")
    assert "Fine." in model.texts("go")


@settings(max_examples=12)
@given(st.lists(st.lists(st.sampled_from(["x.txt", "y.txt"]), min_size=1, max_size=3), min_size=2, max_size=4))
def test_no_edit_of_agents_that_share_files_is_lost(tmp_path_factory: Any, plans: list[list[str]]) -> None:
    folder = tmp_path_factory.mktemp("edits")
    answers: dict[str, Any] = {
        "go": [[delegate(n, f"agent {n}") for n in range(len(plans))], [say("Done.")]],
    }
    for n, files in enumerate(plans):
        steps = []
        for at, name in enumerate(files):
            steps.append([use(f"r{n}.{at}", "Read", file_path=name)])
            steps.append([use(f"e{n}.{at}", "Edit", file_path=name, old_string="end", new_string=f"{n}.{at} end")])
        answers[f"agent {n}"] = [*steps, [say("Ok.")]]
    model = AgentsModel(answers)

    async def work() -> None:
        with anyio.fail_after(30):
            async with open_agent(folder, model) as agent:
                for name in ("x.txt", "y.txt"):
                    (folder / "work" / name).write_text("end\n")
                assert (await agent.ask("go")).text == "Done."

    asyncio.run(work())

    words = (folder / "work" / "x.txt").read_text().split() + (folder / "work" / "y.txt").read_text().split()
    for n, files in enumerate(plans):
        told = model.texts(f"agent {n}")
        made = [f"{n}.{at}" for at in range(len(files))]
        refused = told.count("changed")
        assert len([word for word in made if word in words]) >= len(made) - refused
        assert all(words.count(word) <= 1 for word in made)
    assert words.count("end") == 2

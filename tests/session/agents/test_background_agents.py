"""Sub-agents in the background: their end wakes the session, they can be stopped, read and resumed."""

import asyncio
import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail.conversation.blocks import Text, ToolUse
from handrail.session.transcript import TranscriptOptions
from handrail.testing.model import gate, say, use
from handrail.testing.model_server import Reply
from tests.headless.in_process import of, peer
from tests.session.agents.test_subagents import delegate, open_agent
from tests.session.agents_model import AgentsModel

pytestmark = pytest.mark.anyio


def text_of(message: Any) -> str:
    return "".join(block.text for block in message.content)


async def test_the_end_of_a_background_agent_wakes_an_idle_session_and_says_which_one(tmp_path: Path) -> None:
    slow, held = asyncio.Event(), asyncio.Event()
    model = AgentsModel({
        "go": [
            [delegate(1, "look", run_in_background=True), delegate(2, "also", run_in_background=True)],
            [say("Both are at work.")],
            [say("I heard.")],
        ],
        "look": [[gate(slow), say("Found it.")]],
        "also": [[gate(held), say("Never said.")]],
    })  # fmt: skip
    with anyio.fail_after(20):
        async with open_agent(tmp_path, model) as agent:
            assert (await agent.ask("go")).text == "Both are at work."
            first, second = agent.session.agents.known.all()
            slow.set()
            message = await agent.session.background.next_notification()
            assert message is not None
            assert f"The sub-agent {first.id} (general-purpose: task 1) has ended: completed" in text_of(message)
            assert "Found it." in text_of(message)
            assert second.id not in text_of(message)
            assert (await agent.ask(message.content)).text == "I heard."

            await agent.session.background.stop_task(second.id)
            stopped = await agent.session.background.next_notification()
            assert stopped is not None
            assert f"{second.id} (general-purpose: task 2) has ended: killed" in text_of(stopped)
            assert await agent.session.background.next_notification() is None
    assert {each.status for each in agent.session.agents.known.all()} == {"completed", "killed"}


async def test_tasks_of_agents_are_read_and_stopped_with_the_tools_for_tasks(tmp_path: Path) -> None:
    never = asyncio.Event()
    launch = [delegate(1, "look", run_in_background=True)]
    model = AgentsModel({"go": [launch, [say("Started.")]], "look": [[gate(never)]]})
    with anyio.fail_after(20):
        async with open_agent(tmp_path, model) as agent:
            await agent.ask("go")
            [found] = agent.session.agents.known.all()
            later = AgentsModel({
                "go": [
                    [use("o", "TaskOutput", task_id=found.id, block=False)],
                    [use("s", "TaskStop", task_id=found.id)],
                    [say("Stopped.")],
                ]
            })  # fmt: skip
            await agent.set_model(later)
            await agent.ask("and now?")
    assert f"Task {found.id}: running" in later.texts("go")
    assert f"Task {found.id} was stopped." in later.texts("go")


async def test_an_agent_goes_on_by_its_id_with_what_it_knows_also_after_the_session_was_killed(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("secret word\n")
    task = {"description": "Read", "prompt": "Read a.txt", "run_in_background": False}
    replies = [
        Reply((ToolUse("t1", "Agent", task),)),
        Reply((ToolUse("s1", "Read", {"file_path": "a.txt"}),)),
        Reply((Text("I read it."),)),
        Reply((Text("Ok."),)),
    ]
    async with peer(tmp_path, replies) as p:
        first = await p.turn("go")
        session = first[-1]["session_id"]
    [record] = (tmp_path / "state" / "sessions").glob(f"*/{session}/subagents/agent-*.json")
    kept = json.loads(record.read_text())
    assert (kept["status"], kept["kind"]) == ("completed", "general-purpose")
    record.write_text(json.dumps({**kept, "status": "running"}))  # as kill -9 leaves it

    again = {**task, "prompt": "What was the word?", "resume": record.stem}
    more = [Reply((ToolUse("t2", "Agent", again),)), Reply((Text("secret."),)), Reply((Text("Fine."),))]
    async with peer(tmp_path, more, session=TranscriptOptions(resume=session)) as p:
        assert (await p.turn("go on"))[-1]["result"] == "Fine."
        inner = p.server.requests[1].raw.decode()
    assert "secret word" in inner
    assert "What was the word?" in inner


async def test_an_agent_goes_on_only_as_the_kind_that_rules_judge(tmp_path: Path) -> None:
    model = AgentsModel({"go": [[delegate(1, "look")], [say("Done.")]], "look": [[say("Seen.")]]})
    with anyio.fail_after(20):
        async with open_agent(tmp_path, model, {"permissions": {"deny": ["Agent(Plan)"]}}) as agent:
            await agent.ask("go")
            [found] = agent.session.agents.known.all()
            again = [delegate(2, "write", resume=found.id, subagent_type="Explore")]
            later = AgentsModel({"go": [again, [say("Done.")]], "look": []})
            await agent.set_model(later)
            await agent.ask("and now?")
    assert "say subagent_type 'general-purpose'" in later.texts("go")
    assert later.requests("look") == []


async def test_programs_see_a_background_agent_as_a_task_and_its_end_as_a_turn_of_its_own(tmp_path: Path) -> None:
    task, told = {"description": "Look", "prompt": "Look around", "subagent_type": "Explore"}, asyncio.Event()
    replies = [
        Reply((ToolUse("t1", "Agent", task),), to="go"),
        Reply((Text("Started."),), to="go"),
        Reply((Text("Nothing there."),), to="Look around", gates={0: told}),
        Reply((Text("Told."),), to="go"),
    ]
    async with peer(tmp_path, replies) as p:
        p.prompt("go")
        lines = await p.until("result")
        p.end()  # it still waits for the agent
        told.set()
        lines += await p.until("result")

    ends = [line for line in lines if line["type"] == "result"]
    assert [line["result"] for line in ends] == ["Started.", "Told."]
    assert ends[1]["origin"] == {"kind": "task-notification"}
    assert "origin" not in ends[0]
    [started] = of(lines, "task_started")
    assert (started["task_type"], started["tool_use_id"], started["subagent_type"]) == ("local_agent", "t1", "Explore")
    assert (started["is_backgrounded"], started["spawn_depth"], started["prompt"]) == (True, 1, "Look around")
    [over] = of(lines, "task_notification")
    assert (over["task_id"], over["status"]) == (started["task_id"], "completed")
    assert Path(over["output_file"]).read_text() == "Nothing there."
    changes = [[row["task_id"] for row in line["tasks"]] for line in of(lines, "background_tasks_changed")]
    assert changes[0] == [started["task_id"]]
    assert changes[-1] == []
    [data] = [line["tool_use_result"] for line in lines if line["type"] == "user" and "tool_use_result" in line]
    assert (data["isAsync"], data["status"], data["agentId"]) == (True, "async_launched", started["task_id"])

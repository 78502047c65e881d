"""Agents and tasks on the terminal: a tree with the call that each makes, and a panel that stops them."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.test_run import variables
from tests.interactive import Conversing
from tests.tui.interactive.test_conversation import ESC, leave, said
from tests.tui.interactive.test_drawing import Drawn, finished, queued

from handrail.conversation.blocks import Text, ToolUse
from handrail.loop.events import BlockComplete
from handrail.testing.model_server import ModelServer, Reply
from handrail.tools.context import Progress
from handrail.tools.delegation import AgentNews, AgentReport
from handrail.tools.events import CallProgress, CallQueued, CallStarted

CTRL_T = "\x14"
STEERS = "\x1b[2J"


def start_agent(drawn: Drawn, number: int) -> CallQueued:
    call = queued(number)
    drawn.view.on_event(call)
    drawn.view.on_event(CallStarted(call.use, 98.0, call.cards))
    return call


def inside(call: CallQueued, event: object, agent: str, kind: str = "Explore") -> CallProgress:
    news = AgentNews("Find it", event=event, agent=agent, kind=kind, call=call.use.id)
    return CallProgress(call.use, news, 0.0, call.cards, (news,))


@pytest.mark.proves("O9")
def test_agents_are_a_tree_with_the_call_that_each_makes() -> None:
    drawn = Drawn()
    outer, first, second, deep = start_agent(drawn, 1), queued(2), queued(3), queued(4)
    drawn.view.on_event(inside(outer, first, "a"))
    assert drawn.live() == ["- Look f1.txt, 2 s", "  +- Explore: Look f2.txt, 1 call"]

    drawn.view.on_event(inside(outer, second, "a"))
    drawn.view.on_event(inside(outer, inside(second, deep, "b", "Plan"), "a"))
    assert drawn.live()[1:] == [
        "  +- Explore: Look f3.txt (+1 more), 2 calls",
        "     +- Plan: Look f4.txt, 1 call",
    ]

    drawn.view.on_event(inside(outer, finished(second), "a"))
    drawn.view.on_event(inside(outer, finished(first), "a"))
    assert drawn.live()[1:] == ["  +- Explore: waiting for the model, 2 calls"]
    drawn.view.on_event(finished(outer))
    assert drawn.live() == []
    assert not drawn.view.is_busy


def test_an_agent_in_the_background_is_shown_until_it_reports() -> None:
    drawn = Drawn()
    call = queued(2)
    first = AgentNews("Find it", event=call, agent="a", kind=f"Explore{STEERS}", background=True)
    drawn.view.on_background_news(first)
    drawn.now += 3
    drawn.view.on_background_news(replace(first, event=BlockComplete("m", "x", Text("Almost."), 0)))
    assert drawn.live() == [r"& Explore\x1b[2J: Find it, 3 s, Look f2.txt, 1 call"]
    assert drawn.view.agents.all()[0].log[0] == "Almost."
    drawn.view.on_background_news(replace(first, event=AgentReport("a", "It is there.")))
    assert drawn.live() == []
    assert drawn.committed() == [r"The agent Explore\x1b[2J (Find it) completed"]


@pytest.mark.parametrize(
    ("share", "bar"), [(0.4, "[====      ]"), (7.0, "[==========]"), (float("nan"), "[          ]")]
)
def test_a_call_that_knows_how_far_it_is_has_a_bar(share: float, bar: str) -> None:
    drawn = Drawn()
    call = start_agent(drawn, 1)
    news = Progress("copying", share)
    drawn.view.on_event(CallProgress(call.use, news, 0.0, call.cards, (news,)))
    assert drawn.live() == [f"- Look f1.txt, 2 s, {bar} copying"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("needle\n")
    return folder


@pytest.mark.anyio
async def test_tasks_show_their_output_as_it_comes_and_a_key_stops_one(project: Path) -> None:
    command = "echo one; until [ -e go ]; do sleep 0.05; done; echo two; sleep 600"
    start = ToolUse("t1", "Bash", {"command": command, "description": "Count", "run_in_background": True})
    async with (
        ModelServer([Reply((start,)), said("It runs.")], strict=True) as server,
        Conversing(project, variables(server, project), "Please count.", "--allowedTools", "Bash") as terminal,
    ):
        await terminal.until("It runs.")
        await terminal.until("1 in the backgrou")
        terminal.type(CTRL_T)
        await terminal.until("Tasks and agents")
        await terminal.until("\n  one\n")
        (project / "go").touch()
        await terminal.until("\n  two\n")
        terminal.type("x")
        await terminal.until("was stopped.")
        await terminal.until("killed)")
        terminal.type(ESC)
        await terminal.until("Tasks and agents", gone=True)
        await leave(terminal)


@pytest.mark.anyio
async def test_an_agent_at_work_is_seen_and_can_be_stopped(project: Path) -> None:
    held = asyncio.Event()
    task = {
        "description": "Find it",
        "prompt": "Look for the needle.",
        "subagent_type": "general-purpose",
        "run_in_background": False,
    }
    read = ToolUse("t2", "Read", {"file_path": str(project / "a.txt")})
    replies = [
        Reply((ToolUse("t1", "Agent", task),)),
        Reply((read,)),
        Reply((Text("never said"),), gates={0: held}),
        said("It was stopped."),
    ]
    async with (
        ModelServer(replies, strict=True) as server,
        Conversing(project, variables(server, project), "Find the needle.") as terminal,
    ):
        await terminal.until("+- general-purpose: waiting for the model, 1 call")
        terminal.type(CTRL_T)
        await terminal.until("Find it (general-purpose, running)")
        await terminal.until("\n  * Read /")
        terminal.type("x")
        await terminal.until("It was stopped.")
        await terminal.until("Tasks and agents", gone=True)
        await leave(terminal)
    held.set()


@pytest.mark.anyio
async def test_a_yes_for_one_agent_holds_for_its_later_calls_and_not_for_those_of_another(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    tasks = [
        ToolUse(f"a{n}", "Agent", {"description": f"d{n}", "prompt": f"hand {n}", "run_in_background": False})
        for n in (1, 2)
    ]
    make = [ToolUse(f"m{n}", "Bash", {"command": "mkdir -p made"}) for n in range(3)]
    replies = [
        Reply((tasks[0],), to="lead"),
        Reply((make[0],), to="hand 1"),
        Reply((make[1],), to="hand 1"),
        Reply((Text("One."),), to="hand 1"),
        Reply((tasks[1],), to="lead"),
        Reply((make[2],), to="hand 2"),
        Reply((Text("Two."),), to="hand 2"),
        Reply((Text("Both are done."),), to="lead"),
    ]
    async with (
        ModelServer(replies, strict=True) as server,
        Conversing(folder, variables(server, folder), "lead them well", columns=120) as terminal,
    ):
        await terminal.until_asked()
        shown = " ".join(terminal.shown.split())
        assert "2. Yes, and for this agent: " in shown
        assert "3. Yes, and for all agents in this session: " in shown
        terminal.type("2")
        await terminal.until("Agent d2")
        await terminal.until_asked()
        terminal.type("1")
        await terminal.until("Both are done.")
        await leave(terminal)
    assert (folder / "made").is_dir()

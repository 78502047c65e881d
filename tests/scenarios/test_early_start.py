"""Calls that are permitted start while the answer still arrives; what has to be asked waits for its end."""

import asyncio
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail import Agent
from handrail.conversation.stream import StreamFailure
from handrail.testing import ScriptedModel, gate, say, use
from handrail.tools.events import CallFinished
from handrail.tools.permission import Allow
from tests.opening import open_agent

pytestmark = pytest.mark.anyio

CUT = StreamFailure("cut", "the connection broke off", retryable=True)


def write(key: str, name: str, text: str = "x\n") -> Any:
    return use(key, "Write", file_path=name, content=text)


@pytest.mark.proves("E3", "E7", "R11")
async def test_a_write_and_a_command_that_rules_permit_run_inside_the_stream(tmp_path: Path) -> None:
    rest, finished = asyncio.Event(), list[str]()
    command = use("2", "Bash", command="cat a > b")
    model = ScriptedModel([[write("1", "a"), command, gate(rest), say("I wrote it.")], [say("Done.")]])
    agent = Agent(model, cwd=tmp_path, mode="acceptEdits", allow=["Bash(cat *)"], state_dir=tmp_path / "state")

    with anyio.fail_after(60):
        async for event in agent.run("Write."):
            if isinstance(event, CallFinished):
                finished.append(f"{event.outcome.use.id} {'late' if rest.is_set() else 'early'}")
                if len(finished) == 2:
                    rest.set()  # only now the model may complete its answer

    assert finished == ["1 early", "2 early"]
    assert (tmp_path / "b").read_text() == "x\n"


@pytest.mark.proves("E3", "G38")
async def test_what_has_to_be_asked_is_asked_when_the_answer_is_complete(tmp_path: Path) -> None:
    rest, questions = asyncio.Event(), list[str]()

    async def approve(name: str, given: Any, _context: Any) -> Allow:
        questions.append(f"{name} {Path(given['file_path']).name} {'complete' if rest.is_set() else 'too early'}")
        return Allow()

    read = use("2", "Read", file_path="seen")
    (tmp_path / "seen").write_text("there\n")
    model = ScriptedModel([[write("1", "a"), read, gate(rest), say("More.")], [say("Done.")]])
    agent = open_agent(model, cwd=tmp_path, can_use_tool=approve)

    with anyio.fail_after(60):
        async for event in agent.run("Write."):
            if isinstance(event, CallFinished):  # that of the read: the write waits for its question
                rest.set()

    assert questions == ["Write a complete"]
    assert (tmp_path / "a").read_text() == "x\n"


@pytest.mark.proves("E3", "K8", "R4")
async def test_nothing_is_asked_about_an_answer_that_broke_off(tmp_path: Path) -> None:
    questions = list[str]()

    async def approve(name: str, given: Any, _context: Any) -> Allow:
        questions.append(given["file_path"])
        return Allow()

    model = ScriptedModel([[write("1", "first"), CUT], [write("2", "second")], [say("Done.")]])
    agent = open_agent(model, cwd=tmp_path, can_use_tool=approve)
    await agent.ask("Write.")

    assert [Path(name).name for name in questions] == ["second"]
    assert not (tmp_path / "first").exists()

"""An agent's background tasks: the model hears of them, and they end with the agent."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from handrail import Hooks, Text
from handrail.conversation.blocks import ToolResult, ToolUse
from handrail.conversation.messages import Attachment, UserMessage
from handrail.dispatch.gate import CarefulGate
from handrail.session.transcript import TranscriptOptions
from handrail.testing import ScriptedModel, say, use
from tests.opening import open_agent
from tests.processes.seen import alive, noted, read_pipe, stay

pytestmark = pytest.mark.anyio

TRUST = CarefulGate(trusting=True)


@pytest.mark.proves("R8")
async def test_the_model_hears_of_a_task_and_the_task_ends_with_the_agent(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ready")
    model = ScriptedModel(
        [
            [use("a", "Bash", command="echo $$ > quick", run_in_background=True)],
            [use("b", "Bash", command=f"echo > ready; {stay(tmp_path)}", run_in_background=True)],
            [
                use(
                    "c",
                    "Bash",
                    command="until [ -s pids ] && [ -s quick ] && ! kill -0 $(cat quick); do sleep 0.01; done",
                )
            ],
            [say("done")],
        ]
    )
    env = {"PATH": os.environ["PATH"], "HANDRAIL_STATE_DIR": str(tmp_path / "state")}
    stopping: list[Any] = []
    hooks = Hooks(callbacks={"Stop": [stopping.append]})
    agent = open_agent(model, cwd=tmp_path, env=env, gate=TRUST, hooks=hooks)
    async with agent:
        answer = asyncio.ensure_future(agent.ask("go"))
        await asyncio.to_thread(read_pipe, tmp_path / "ready")
        await answer
        (living,) = noted(tmp_path)
        assert alive(living)
        news = [message for message in agent.messages if isinstance(message, Attachment)]

    assert not alive(living)
    [running] = stopping[0]["background_tasks"]
    assert (running["type"], running["status"], "echo > ready" in running["command"]) == ("shell", "running", True)
    texts = [block.text for message in news for block in message.content if isinstance(block, Text)]
    assert [text for text in texts if "(echo $$ > quick) has ended: completed, exit code 0" in text]


async def test_the_interpreter_ends_with_the_agent(tmp_path: Path) -> None:
    model = ScriptedModel(
        [[use("a", "REPL", code="import os; open('pids', 'w').write(str(os.getpid()))")], [say("done")]]
    )
    env = {"PATH": os.environ["PATH"], "HANDRAIL_STATE_DIR": str(tmp_path / "state"), "HANDRAIL_REPL": "1"}
    async with open_agent(model, cwd=tmp_path, env=env, gate=TRUST) as agent:
        await agent.ask("go")
        (interpreter,) = noted(tmp_path)
        assert alive(interpreter)

    assert not alive(interpreter)


async def test_the_task_list_is_there_when_the_session_goes_on(tmp_path: Path) -> None:
    env = {"HANDRAIL_STATE_DIR": str(tmp_path / "state")}

    async def answered(session: str, call: ToolUse) -> tuple[str, str]:
        """The id of the session and the result of the call; without an id it is a new session."""
        model, kept = ScriptedModel([[call], [say("done")]]), TranscriptOptions(resume=session)
        async with open_agent(model, cwd=tmp_path, env=env, transcript=kept, gate=TRUST) as agent:
            await agent.ask("go")
        blocks = [block for message in agent.messages if isinstance(message, UserMessage) for block in message.content]
        return agent.session.id, next(block.text for block in reversed(blocks) if isinstance(block, ToolResult))

    first, _ = await answered("", use("a", "TaskCreate", subject="go on", description=""))
    _, resumed = await answered(first, use("b", "TaskList"))
    _, other = await answered("", use("c", "TaskList"))

    assert (resumed, other) == ("1. go on (pending)", "There are no tasks.")

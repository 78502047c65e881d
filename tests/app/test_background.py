"""An agent's background tasks: the model hears of them, and they end with the agent."""

import asyncio
import os
from pathlib import Path

import pytest

from handrail import Agent, Rails, Text
from handrail.conversation.messages import Attachment
from handrail.dispatch.gate import CarefulGate
from handrail.testing import ScriptedModel, say, use
from tests.processes.seen import alive, noted, stay

pytestmark = pytest.mark.anyio


@pytest.mark.proves("R8")
async def test_the_model_hears_of_a_task_and_the_task_ends_with_the_agent(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ready")
    model = ScriptedModel(
        [
            [use("a", "Bash", command="echo quick", run_in_background=True)],
            [use("b", "Bash", command=f"echo > ready; {stay(tmp_path)}", run_in_background=True)],
            [use("c", "Bash", command="while ! [ -s pids ]; do sleep 0.01; done")],
            [say("done")],
        ]
    )
    env = {"PATH": os.environ["PATH"], "HANDRAIL_STATE_DIR": str(tmp_path / "state")}
    agent = Agent(model, cwd=tmp_path, env=env, rails=Rails(CarefulGate(trusting=True)))
    async with agent:
        answer = asyncio.ensure_future(agent.ask("go"))
        await asyncio.to_thread((tmp_path / "ready").read_text)
        await answer
        (living,) = noted(tmp_path)
        assert alive(living)
        news = [message for message in agent.messages if isinstance(message, Attachment)]

    assert not alive(living)
    texts = [block.text for message in news for block in message.content if isinstance(block, Text)]
    assert [text for text in texts if "(echo quick) has ended: completed, exit code 0" in text]

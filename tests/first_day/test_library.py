"""The first day of a builder who imports handrail: what they try, and what they get."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from handrail import Agent, Allow, Deny, Question, tool
from handrail.conversation.blocks import Text, ToolResult
from handrail.conversation.messages import UserMessage
from handrail.testing import ScriptedModel, say, use

pytestmark = pytest.mark.anyio

sent: list[str] = []


@tool
async def send(text: str) -> str:
    """Send a text."""
    sent.append(text)
    return f"sent {text}"


@pytest.fixture(autouse=True)
def forget() -> None:
    sent.clear()


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

    assert sent == []
    [denial] = answer.ended.denials
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

    assert sent == []
    assert "raised LookupError: hello" in answer.ended.denials[0].reason
    assert "raised LookupError: hello" in results(agent)[0]
    assert "in guard" in caplog.text

"""Agents on scripts, and the strict eye on their history."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from handrail.conversation.messages import AssistantMessage, Attachment, Message, UserMessage
from handrail.conversation.request import History, Request
from handrail.loop.events import LoopEvent, RunEnded
from handrail.loop.run import Run
from handrail.providers.anthropic import AnthropicWriter
from handrail.providers.quirks import ANTHROPIC
from handrail.session.agent import Agent
from handrail.testing.model import ScriptedModel
from handrail.testing.pairing import pairing_problem
from handrail.tools.pool import AnyTool

Event = TypeVar("Event")


def an_agent(model: Any, *tools: AnyTool, **options: Any) -> Agent:
    return Agent(model, tools, **{"builtin_tools": False, "env": {}, **options})


def scripted(answers: Any) -> ScriptedModel:
    """Lists of different things have no type of their own."""
    return ScriptedModel(answers)


async def played(run: Run) -> list[LoopEvent]:
    return [event async for event in run]


def only(events: Iterable[LoopEvent], kind: type[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, kind)]


def ending(events: Sequence[LoopEvent]) -> RunEnded:
    """The one last event."""
    [ended] = only(events, RunEnded)
    assert events[-1] is ended
    return ended


def wire(messages: Iterable[Message]) -> dict[str, Any]:
    """The request that a history makes."""
    body = AnthropicWriter(ANTHROPIC).body(Request("m", History(messages)), True)
    value: dict[str, Any] = json.loads(body)
    return value


def refused(messages: Iterable[Message]) -> str:
    """Why a strict server would refuse this history; empty if it would not."""
    return pairing_problem("anthropic", wire(messages))


def roles(messages: Iterable[Message]) -> list[str]:
    """The history in short: `assistant`, `results`, `user`, or the kind of an attachment."""
    return [_role(message) for message in messages]


def _role(message: Message) -> str:
    match message:
        case AssistantMessage():
            return "assistant"
        case Attachment():
            return message.kind
        case UserMessage():
            return "results" if any(hasattr(block, "tool_use_id") for block in message.content) else "user"
        case _:
            return "note"

"""Agents on scripts, and the strict eye on their history."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from handrail.conversation.messages import AssistantMessage, Attachment, Message, UserMessage
from handrail.conversation.request import Chain, History, Request
from handrail.dispatch.gate import Rails
from handrail.loop.compaction.plan import Compact
from handrail.loop.events import LoopEvent, RunEnded
from handrail.loop.run import Run
from handrail.loop.run_config import ChooseAnswer
from handrail.providers.anthropic import AnthropicWriter
from handrail.providers.quirks import ANTHROPIC
from handrail.session.agent import Agent
from handrail.testing.model import ScriptedModel
from handrail.testing.model_server import pairing_problem
from handrail.tools.outcome import Outcome
from handrail.tools.pool import AnyTool
from handrail.transcripts.store import OpenTranscript
from tests.opening import open_agent, with_attachments, with_chain, with_compaction, with_transcript

Event = TypeVar("Event")


def an_agent(
    model: Any,
    *tools: AnyTool,
    rails: Rails | None = None,
    choose: ChooseAnswer | None = None,
    compact: Compact | None = None,
    attach: Callable[[Sequence[Outcome]], Iterable[Attachment]] = lambda _outcomes: (),
    opening: Callable[[], Iterable[Attachment]] = tuple,
    session: OpenTranscript | None = None,
    chain: Chain | None = None,
    **options: Any,
) -> Agent[Any]:
    """An agent without built-in tools and variables. What the loop is given can be the test's own."""
    assert rails is None or rails.hooks is None, "hooks are an argument of their own"
    chosen = {"builtin_tools": False, "env": {}, "history": session.messages if session else (), **options}
    agent = open_agent(model, tools, gate=rails.gate if rails else None, choose_answer=choose, **chosen)
    with_compaction(agent, compact)
    with_attachments(agent, attach, opening)
    if session is not None:
        with_transcript(agent, session)
    return agent if chain is None else with_chain(agent, chain)


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

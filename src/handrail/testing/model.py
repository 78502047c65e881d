"""A model that plays scripted answers, block by block."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from handrail.conversation.blocks import AssistantBlock, Json, Text, ToolUse
from handrail.conversation.stream import BlockEnd, BlockStart, Delta, MessageEnd, MessageStart, StreamEvent
from handrail.records import record
from handrail.tools.wording import several


@record
class Wait:
    """The stream waits until the event is set."""

    event: asyncio.Event


@record
class Pause:
    """The stream waits for some seconds of the loop's clock."""

    seconds: float


Step: TypeAlias = AssistantBlock | Wait | Pause | StreamEvent


def say(text: str) -> Text:
    """The model says something."""
    return Text(text)


def use(call_id: str, name: str, /, **values: object) -> ToolUse:
    """The model asks for a tool."""
    return ToolUse(call_id, name, values)


def gate(event: asyncio.Event) -> Wait:
    """The model is silent until the test sets the event."""
    return Wait(event)


def pause(seconds: float) -> Pause:
    """The model is silent for a while."""
    return Pause(seconds)


@dataclass
class ScriptedModel:
    """Gives one scripted answer per request, in order, and keeps the requests."""

    answers: Sequence[Sequence[Step]]
    requests: list[Json] = field(default_factory=list)

    def __post_init__(self) -> None:
        shape = 'Give a list of answers, each a list of steps: [[say("Hello.")]].'
        if not _is_list(self.answers):
            raise TypeError(f"the script is {self.answers!r}. {shape}")
        if wrong := [each for each in self.answers if not _is_list(each)]:
            raise TypeError(f"the script has {wrong[0]!r} in the place of an answer. {shape}")

    async def stream(self, request: Any) -> AsyncGenerator[StreamEvent, None]:
        """The next answer, as a provider would stream it. Raises LookupError if the script has no more answers."""
        number = len(self.requests)
        self.requests.append(request)
        if number >= len(self.answers):
            end = several(len(self.answers), "answer")
            raise LookupError(f"the script has {end}, and answer {number + 1} was asked for")
        yield MessageStart(id=f"message-{number + 1}", model="scripted")
        slot = 0
        for step in self.answers[number]:
            match step:
                case Wait(event):
                    await event.wait()
                case Pause(seconds):
                    await asyncio.sleep(seconds)
                case Text(text):
                    yield BlockStart(slot, "text")
                    yield Delta(slot, text)
                    yield BlockEnd(slot, step)
                    slot += 1
                case ToolUse(id=call_id, name=name):
                    yield BlockStart(slot, "tool_use", call_id, name)
                    yield BlockEnd(slot, step)
                    slot += 1
                case _:
                    yield step  # type: ignore[misc]  # whatever is left is an event already
        yield MessageEnd("end_turn")


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)

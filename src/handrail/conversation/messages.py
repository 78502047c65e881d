"""Messages: who said what, and what the program added."""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from handrail.conversation.blocks import AssistantBlock, BrokenToolUse, Text, ToolResult, ToolUse, UserBlock
from handrail.records import record

_CALLS = (ToolUse, BrokenToolUse)


@record
class UserMessage:
    """The user's turn as it goes to the model: tool results first, then text."""

    content: tuple[UserBlock, ...]


@record
class AssistantMessage:
    """One whole answer of the model."""

    content: tuple[AssistantBlock, ...]
    model: str = ""
    stop_reason: str = ""

    @property
    def calls(self) -> tuple[ToolUse | BrokenToolUse, ...]:
        """The tool requests in it, in order. An answer without any ends the loop."""
        return tuple([block for block in self.content if isinstance(block, _CALLS)])

    @property
    def text(self) -> str:
        """Its text blocks, joined."""
        return "".join(block.text for block in self.content if isinstance(block, Text))


@record
class Attachment:
    """What the program adds to the user's turn after the tool results: a reminder, a changed file, a queued prompt."""

    kind: str
    content: tuple[UserBlock, ...]


@record
class SystemNote:
    """A note for people who read the transcript. It never reaches the model."""

    text: str
    level: str = "info"


Message: TypeAlias = UserMessage | AssistantMessage | Attachment | SystemNote


def notes_in(messages: Iterable[Message], kind: str) -> Iterator[str]:
    """The texts of notes of a kind: attachments, and messages that a program began with the kind as a tag."""
    tag = f"<{kind.replace('_', '-')}"
    for message in messages:
        if isinstance(message, Attachment) and message.kind == kind:
            yield from (block.text for block in message.content if isinstance(block, Text))
        elif isinstance(message, UserMessage):
            texts = (block.text for block in message.content if isinstance(block, Text))
            yield from (text for text in texts if text.startswith(tag))


def results_in(messages: Iterable[Message]) -> Iterator[str]:
    """The texts of the results of all calls."""
    for message in messages:
        if isinstance(message, UserMessage):
            yield from (block.text for block in message.content if isinstance(block, ToolResult))

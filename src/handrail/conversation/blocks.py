"""The blocks that messages are made of."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal, TypeAlias

from handrail.records import record

Json: TypeAlias = Mapping[str, Any]


@record
class Text:
    """Text of a person or a model."""

    text: str


@record
class Image:
    """A picture, base64 encoded."""

    data: str
    media_type: str


@record
class Document:
    """A document (for example a PDF), base64 encoded."""

    data: str
    media_type: str
    title: str = ""


@record
class Thinking:
    """Reasoning of the model. `raw` is the vendor's own block, which must be sent back unchanged."""

    text: str
    raw: Json = field(default_factory=dict)


@record
class ToolUse:
    """
    A complete request of the model to use a tool: `input` is what it sent, not yet checked.

    `extra` is what the vendor attached to the call and wants back with it (for example a thought signature).
    """

    id: str
    name: str
    input: Json
    extra: Json = field(default_factory=dict)


@record
class BrokenToolUse:
    """A tool request that arrived incomplete. It is never run; the model is told `problem`."""

    id: str
    name: str
    raw_input: str
    problem: str


@record
class ToolReference:
    """Points the model at a deferred tool whose definition it may now use."""

    name: str


UNKNOWN = "unknown"
"""The type of a server block that has none."""


@record
class ServerBlock:
    """A block that the vendor made or ran (server tools, unknown kinds): kept and sent back, never run."""

    type: str
    raw: Json


ResultBlock: TypeAlias = Text | Image | Document | ToolReference


@record
class ToolResult:
    """The one answer to a ToolUse."""

    tool_use_id: str
    content: tuple[ResultBlock, ...]
    is_error: bool = False

    @property
    def text(self) -> str:
        """The text blocks, joined by newlines."""
        return "\n".join(block.text for block in self.content if isinstance(block, Text))


AssistantBlock: TypeAlias = Text | Thinking | ToolUse | BrokenToolUse | ServerBlock
UserBlock: TypeAlias = Text | Image | Document | ToolResult
Role: TypeAlias = Literal["user", "assistant"]

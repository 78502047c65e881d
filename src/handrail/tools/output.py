"""What a tool returns."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from handrail.conversation.blocks import Json, ResultBlock
from handrail.conversation.messages import Message
from handrail.tools.cards import Card
from handrail.tools.context import RunContext

ContextChange: TypeAlias = Callable[[RunContext], RunContext]


@dataclass(frozen=True, slots=True)
class McpMeta:
    """What an MCP server sent beside the content, handed on untouched."""

    meta: Json = field(default_factory=dict)
    structured_content: Json | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """
    Text or blocks for the model, a card for the person, data for programs.

    `context_change` is honoured only for calls that ran alone; `is_error` marks a failure that has output to show.
    """

    text: str = ""
    blocks: tuple[ResultBlock, ...] = ()
    data: Any = None
    card: Card | None = None
    messages: tuple[Message, ...] = ()
    context_change: ContextChange | None = None
    mcp: McpMeta | None = None
    is_error: bool = False

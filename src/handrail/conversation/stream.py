"""
What a provider says while an answer arrives. All wire formats become these events:

    MessageStart
      BlockStart(slot) -> Delta(slot)* -> BlockEnd(slot, block)     slots may overlap
      UsageUpdate
    MessageEnd | StreamFailure
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from handrail.conversation.blocks import AssistantBlock

BlockKind: TypeAlias = Literal["text", "thinking", "tool_use", "server"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request as the provider counts them. None = the provider did not say."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class MessageStart:
    """The provider has begun to answer."""

    id: str
    model: str


@dataclass(frozen=True, slots=True)
class BlockStart:
    """A block begins. `name` and `id` are set for tool_use as far as they are known by now."""

    slot: int
    kind: BlockKind
    id: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Delta:
    """More of a block: text, reasoning, or a fragment of a call's JSON. To be shown, never to be run."""

    slot: int
    text: str


@dataclass(frozen=True, slots=True)
class BlockEnd:
    """A block is certainly complete. A ToolUse may be handed to the executor now."""

    slot: int
    block: AssistantBlock


@dataclass(frozen=True, slots=True)
class UsageUpdate:
    """The newest counts; replaces earlier ones."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class MessageEnd:
    """The answer is whole. `stop_reason` is the provider's own word and decides nothing."""

    stop_reason: str


@dataclass(frozen=True, slots=True)
class StreamFailure:
    """The answer broke off or never came. `retryable` says whether asking again can help."""

    kind: str
    message: str
    retryable: bool
    status: int | None = None
    retry_after: float | None = None


StreamEvent: TypeAlias = MessageStart | BlockStart | Delta | BlockEnd | UsageUpdate | MessageEnd | StreamFailure

"""
The events of an arriving answer. Every wire format becomes these:

    MessageStart
      BlockStart(slot) -> Delta(slot)* -> BlockEnd(slot, block)     slots may overlap
      UsageUpdate
    MessageEnd | StreamFailure

A StreamRetry voids what came before it: the provider asks again, and a new MessageStart follows.
The blocks of the answer are in the order of their slots. After a StreamFailure open blocks stay open.
"""

from typing import Literal, TypeAlias

from handrail.conversation.blocks import AssistantBlock
from handrail.records import record

BlockKind: TypeAlias = Literal["text", "thinking", "tool_use", "server"]


@record
class Usage:
    """
    Tokens of one request as the provider counts them. None = the provider did not say.

    Providers disagree on what includes what: `cache_in_input` says that `input_tokens` holds the cached ones too
    (OpenAI's way; Anthropic counts them apart), `reasoning_apart` that `output_tokens` has no reasoning (xAI's way).
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    cache_in_input: bool = False
    reasoning_apart: bool = False
    web_searches: int | None = None
    """Searches of the provider's own tool, which are paid for one by one."""

    @property
    def fresh_input(self) -> int:
        """Input tokens that came from no cache and went into none."""
        cached = (self.cache_read_tokens or 0) + (self.cache_write_tokens or 0) if self.cache_in_input else 0
        return max(0, (self.input_tokens or 0) - cached)

    @property
    def whole_input(self) -> int:
        """All input tokens: what the request fills of the model's window."""
        return self.fresh_input + (self.cache_read_tokens or 0) + (self.cache_write_tokens or 0)

    @property
    def whole_output(self) -> int:
        """All output tokens, reasoning included."""
        apart = (self.reasoning_tokens or 0) if self.reasoning_apart else 0
        return (self.output_tokens or 0) + apart


@record
class MessageStart:
    """The answer begins."""

    id: str
    model: str


@record
class BlockStart:
    """A block begins. `name` and `id` are set for tool_use as far as they are known by now."""

    slot: int
    kind: BlockKind
    id: str = ""
    name: str = ""


@record
class Delta:
    """More of a block: text, reasoning, or a fragment of a call's JSON. To be shown, never run."""

    slot: int
    text: str


@record
class BlockEnd:
    """A block is complete. A ToolUse may be given to the executor now."""

    slot: int
    block: AssistantBlock


@record
class UsageUpdate:
    """The newest counts; they replace earlier ones."""

    usage: Usage


@record
class MessageEnd:
    """The answer is complete. `stop_reason` and `detail` are the provider's own words; nothing is decided by them."""

    stop_reason: str
    detail: str = ""


NOT_AN_API = "not_an_api"
"""The kind of failure when the server is none of a model: a web page, or JSON of something else."""


@record
class StreamFailure:
    """
    The answer broke off or never came. `retryable` says whether a retry can help.

    `asked` tells people what was asked where, and `hint` what they can try next; both may be empty.
    """

    kind: str
    message: str
    retryable: bool
    status: int | None = None
    retry_after: float | None = None
    asked: str = ""
    hint: str = ""

    @property
    def report(self) -> str:
        """All of it for people: what happened, where, and the next move."""
        where = "; ".join(filter(None, (f"status {self.status}" if self.status else "", self.asked)))
        text = f"{self.message.rstrip('.')} ({where})" if where else self.message
        return f"{text}. {self.hint}" if self.hint else text


@record
class StreamRetry:
    """
    The provider retries after `delay` seconds; all earlier events of this answer are void.

    Never sent after a BlockEnd with a ToolUse: from then on the caller handles failures.
    """

    failure: StreamFailure
    attempt: int
    delay: float
    model: str
    attempts: int = 0
    """The most requests to this model, the first included; 0 = not known."""

    @property
    def report(self) -> str:
        """What happened and when it is tried again, for people."""
        status = f" (status {self.failure.status})" if self.failure.status else ""
        return f"{self.failure.message.rstrip('.')}{status}. Trying again in {self.delay:.1f} seconds."


StreamEvent: TypeAlias = (
    MessageStart | BlockStart | Delta | BlockEnd | UsageUpdate | MessageEnd | StreamFailure | StreamRetry
)

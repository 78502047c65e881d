"""
A request to a model, and the history of its conversation.

The history is kept encoded. A new request encodes only what was added since the last one and sends the earlier bytes
again. That keeps turn 200 as cheap as turn 2, and the prefix of consecutive requests byte-identical.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field
from typing import Literal, Protocol, TypeAlias

from handrail.conversation.blocks import ToolReference, ToolResult, UserBlock
from handrail.conversation.messages import AssistantMessage, Attachment, Message, SystemNote, UserMessage
from handrail.conversation.transcript import Transcript
from handrail.errors import PairingError
from handrail.records import record

Effort: TypeAlias = Literal["minimal", "low", "medium", "high", "xhigh", "max"]
ThinkingMode: TypeAlias = Literal["default", "adaptive", "off"]


@record
class ToolDefinition:
    """
    A tool as the model sees it: `definition` is a JSON object with name, description and input_schema, encoded once.

    The definition of a deferred tool stays out of the prompt until the model has found it.
    """

    name: str
    definition: bytes
    deferred: bool = False


@record
class ThinkingOptions:
    """
    How the model may reason. `budget` is a number of tokens, for models that want one.

    `display` says how its thinking is shown, `summarized` or `omitted`; empty = the provider's default.
    """

    mode: ThinkingMode = "default"
    budget: int | None = None
    display: str = ""


@record
class Chain:
    """The chain of requests that a request belongs to, and its depth: requests of a sub-agent are one deeper."""

    id: str = ""
    depth: int = 0


class Encoder(Protocol):
    """Writes messages in one wire format. `key` tells encoders apart whose bytes differ."""

    @property
    def key(self) -> str: ...

    def assistant(self, message: AssistantMessage) -> bytes:
        """The wire messages of an answer, joined by commas."""
        ...

    def user(self, blocks: Sequence[UserBlock]) -> tuple[bytes, int]:
        """The wire messages of a user's turn, joined by commas, and where a cache mark may go (-1 = nowhere)."""
        ...


@record
class Encoded:
    """
    The history in one wire format: `settled` without the open user turn, `turn` the open one.

    `settled` is the live buffer, not a copy: use it at once, and do not keep it.
    `settled_mark` and `turn_mark` are the offsets in them where a cache mark may be put (-1 = nowhere).
    """

    settled: bytearray
    settled_mark: int
    turn: bytes
    turn_mark: int


class _Wire:
    """What one encoder has written so far: the settled turns, and the newest turn of the user."""

    __slots__ = ("_blocks", "_turn", "_turn_bytes", "bytes", "mark", "next")

    def __init__(self) -> None:
        self.bytes = bytearray()
        self.mark = -1
        self.next = 0
        self._turn: list[UserBlock] | None = None
        self._blocks = 0
        self._turn_bytes = b"", -1

    def user(self, turn: list[UserBlock], encoder: Encoder) -> tuple[bytes, int]:
        """A turn of the user. It is encoded when it is sent first, and again if it has grown until it is settled."""
        if turn is not self._turn or len(turn) != self._blocks:
            self._turn_bytes = encoder.user(turn)
            self._turn, self._blocks = turn, len(turn)
        return self._turn_bytes

    def append(self, piece: bytes, mark: int = -1) -> None:
        if piece:
            if self.bytes:
                self.bytes += b","
            if mark >= 0:
                self.mark = len(self.bytes) + mark
            self.bytes += piece


class History:
    """
    The messages of one conversation, in order; append-only but for `replace`.

    Consecutive messages of the user's side (results, text, attachments) are one turn, results first.
    """

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._turns: list[AssistantMessage | list[UserBlock]] = []
        self._messages: list[Message] = []
        self._wires: dict[str, _Wire] = {}
        self._ids: set[str] = set()
        self._references: set[str] = set()
        self.transcript: Transcript | None = None
        """Records what is added from now on."""
        self.filled = 0
        """Tokens of the model's window that the newest request and its answer fill; 0 = not known."""
        for message in messages:
            self.append(message)

    @property
    def messages(self) -> Sequence[Message]:
        """All messages so far."""
        return self._messages

    @property
    def call_ids(self) -> AbstractSet[str]:
        """The ids of all calls so far; no new call may have one of them."""
        return self._ids

    @property
    def references(self) -> AbstractSet[str]:
        """The names of all tools that results refer to: those that the model has searched for and found."""
        return self._references

    def append(self, message: Message) -> None:
        """Add a message. Raises PairingError unless every call has exactly one result, in the next turn."""
        match message:
            case AssistantMessage():
                self._check_answered()
                self._ids.update([call.id for call in message.calls])
                self._turns.append(message)
            case UserMessage() | Attachment():
                self._add_user(message.content)
            case SystemNote():
                pass
        self._messages.append(message)
        if self.transcript is not None:
            self.transcript.add_message(message)

    def replace(self, messages: Iterable[Message]) -> None:
        """Start over with other messages (compaction, rewind). They are all encoded again."""
        fresh = History(messages)
        self._turns, self._messages, self._ids, self._wires = fresh._turns, fresh._messages, fresh._ids, {}
        self._references = fresh._references
        self.filled = 0
        if self.transcript is not None:
            self.transcript.replace_messages(fresh.messages)

    def amend(self, results: UserMessage) -> None:
        """Replace the newest results, which no request has carried yet. Raises PairingError if the calls differ."""
        self._turns.pop()
        self._messages.pop()
        self._add_user(results.content)
        self._messages.append(results)
        if self.transcript is not None:
            self.transcript.amend_results(results)

    def encode(self, encoder: Encoder) -> Encoded:
        """The history on the wire. Raises PairingError if a call of the newest answer has no result yet."""
        self._check_answered()
        wire = self._wires.get(encoder.key)
        if wire is None:
            wire = self._wires[encoder.key] = _Wire()
        turns = self._turns
        open_turn = turns[-1] if turns and isinstance(turns[-1], list) else None
        closed = len(turns) - (open_turn is not None)
        for turn in turns[wire.next : closed]:
            if isinstance(turn, AssistantMessage):
                wire.append(encoder.assistant(turn))
            else:
                wire.append(*wire.user(turn, encoder))
        wire.next = closed
        turn_bytes, turn_mark = wire.user(open_turn, encoder) if open_turn is not None else (b"", -1)
        return Encoded(wire.bytes, wire.mark, turn_bytes, turn_mark)

    def _add_user(self, blocks: Sequence[UserBlock]) -> None:
        last = self._turns[-1] if self._turns else None
        results = [block for block in blocks if isinstance(block, ToolResult)]
        given = [result.tool_use_id for result in results]
        for result in results:
            self._references.update(part.name for part in result.content if isinstance(part, ToolReference))
        if isinstance(last, list):
            if results:
                raise PairingError(f"Results {given} come after the user's turn has begun. Put them first.")
            last.extend(blocks)
            return
        expected = [call.id for call in last.calls] if last is not None else []
        if results or not expected:
            if given != expected:
                raise PairingError(
                    f"The answer calls {expected}, but the next turn holds results for {given}. "
                    "Give exactly one result for each call, in the order of the calls."
                )
            self._turns.append(results + [block for block in blocks if not isinstance(block, ToolResult)])
            return
        raise PairingError(
            f"The calls {expected} have no results. Give one for each, also after an interrupt or error."
        )

    def _check_answered(self) -> None:
        last = self._turns[-1] if self._turns else None
        if isinstance(last, AssistantMessage) and last.calls:
            open_calls = [call.id for call in last.calls]
            raise PairingError(f"The calls {open_calls} have no results. Give one for each before the next request.")


@record
class Request:
    """
    One request to a model. What stays the same from turn to turn comes first on the wire.

    `system` parts are joined in order, the stable ones first. `last_builtin` is the index in `tools` of the last
    built-in tool (-1 = none). `activated` names deferred tools that the model has found, in that order. `schema` is an
    encoded JSON Schema that the answer must fit; only servers that are known to have a format for it are sent one.
    `task_budget` is how many tokens the model should make do with, if it can be told. Empty or None means the
    provider's default.
    """

    model: str
    history: History
    system: tuple[str, ...] = ()
    tools: tuple[ToolDefinition, ...] = ()
    last_builtin: int = -1
    activated: tuple[str, ...] = ()
    max_tokens: int | None = None
    thinking: ThinkingOptions = ThinkingOptions()
    effort: Effort | None = None
    task_budget: int | None = None
    schema: bytes | None = None
    betas: tuple[str, ...] = ()
    chain: Chain = field(default=Chain())

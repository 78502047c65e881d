"""An answer while it arrives: its blocks, and the calls that can be run already."""

import os
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace

from handrail.conversation.blocks import AssistantBlock, BrokenToolUse, Text, Thinking, ToolUse
from handrail.conversation.messages import AssistantMessage
from handrail.conversation.stream import BlockEnd, BlockStart, Delta, MessageStart, StreamRetry, Usage, UsageUpdate


class PartialAnswer:
    """
    The blocks that have arrived so far.

    A call can be taken when it is complete and no call before it is still arriving, so that calls leave in the order
    in which they stand in the answer. Call ids that the conversation or this answer has used already are replaced:
    results are matched by id.
    """

    __slots__ = ("_known_ids", "_open_calls", "_own_ids", "_texts", "_waiting", "blocks", "id", "model", "usage")

    def __init__(self, model: str, known_ids: AbstractSet[str]) -> None:
        self.model = model
        self.id = ""
        self.usage = Usage()
        self._known_ids = known_ids
        self.clear()

    def clear(self) -> None:
        """Forget what came so far: the provider asks again."""
        self.blocks: dict[int, AssistantBlock] = {}
        self._texts: dict[int, list[str]] = {}
        self._open_calls: set[int] = set()
        self._waiting: dict[int, ToolUse | BrokenToolUse] = {}
        self._own_ids: set[str] = set()

    def update(self, event: MessageStart | BlockStart | UsageUpdate | StreamRetry) -> None:
        """Apply an event that neither extends nor ends a block."""
        match event:
            case MessageStart():
                self.id = event.id
                self.model = event.model or self.model
            case BlockStart(slot, "text"):
                self._texts[slot] = []
            case BlockStart(slot, "tool_use"):
                self._open_calls.add(slot)
            case UsageUpdate():
                self.usage = event.usage
            case StreamRetry():
                self.clear()
            case _:
                pass

    def add_delta(self, event: Delta) -> None:
        """Add to a block. Only text is kept, because half a call or half a thought is of no use."""
        texts = self._texts.get(event.slot)
        if texts is not None:
            texts.append(event.text)

    def close_block(self, event: BlockEnd) -> BlockEnd:
        """Complete a block; returns the event as it is to be passed on."""
        block = event.block
        if isinstance(block, ToolUse | BrokenToolUse):
            if block.id in self._own_ids or block.id in self._known_ids or not block.id:
                block = replace(block, id=f"call_{os.urandom(12).hex()}")
                event = BlockEnd(event.slot, block)
            self._own_ids.add(block.id)
            self._open_calls.discard(event.slot)
            self._waiting[event.slot] = block
        self.blocks[event.slot] = block
        self._texts.pop(event.slot, None)
        return event

    def take_calls(self, *, is_complete: bool = False) -> Iterator[ToolUse | BrokenToolUse]:
        """Take the calls that may run now. Broken ones wait for a good one or the end: the provider may still retry."""
        for slot in sorted(self._waiting):
            if not is_complete and self._open_calls and min(self._open_calls) < slot:
                return
            if not is_complete and all(isinstance(block, BrokenToolUse) for block in self._waiting.values()):
                return
            yield self._waiting.pop(slot)

    @property
    def has_calls(self) -> bool:
        """Whether a call that can run is among the blocks: its effects may have begun."""
        return any(isinstance(block, ToolUse) for block in self.blocks.values())

    def to_message(self, stop_reason: str) -> AssistantMessage:
        """The complete blocks, and the text of one that was still arriving."""
        blocks = dict(self.blocks)
        blocks.update({slot: Text("".join(parts)) for slot, parts in self._texts.items() if parts})
        return AssistantMessage(tuple(blocks[slot] for slot in sorted(blocks)), self.model, stop_reason)


def is_empty(content: Iterable[AssistantBlock]) -> bool:
    """Whether an answer says nothing and asks for nothing."""
    return all(isinstance(block, Thinking) or (isinstance(block, Text) and not block.text.strip()) for block in content)

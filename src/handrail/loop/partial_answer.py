"""An answer while it arrives: its blocks, and the calls that can be run already."""

import os
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from handrail.conversation.blocks import AssistantBlock, BrokenToolUse, Text, Thinking, ToolUse
from handrail.conversation.messages import AssistantMessage
from handrail.conversation.stream import BlockEnd, BlockStart, Delta, MessageStart, StreamRetry, Usage, UsageUpdate

CALLS = (ToolUse, BrokenToolUse)


class PartialAnswer:
    """
    The blocks that have arrived so far.

    A call can be taken when it is complete and no call before it is still arriving, so that calls leave in the order
    in which they stand in the answer. Call ids that the conversation or this answer has used already are replaced:
    results are matched by id.
    """

    __slots__ = (
        "_known_ids",
        "_open_calls",
        "_own_ids",
        "_texts",
        "_waiting",
        "blocks",
        "has_calls",
        "id",
        "model",
        "usage",
    )

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
        self.has_calls = False
        """Whether a call that can run is among the blocks: its effects may have begun."""

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
        if isinstance(block, CALLS):
            if block.id in self._own_ids or block.id in self._known_ids or not block.id:
                block = replace(block, id=f"call_{os.urandom(12).hex()}")
                event = BlockEnd(event.slot, block)
            self._own_ids.add(block.id)
            self._open_calls.discard(event.slot)
            self._waiting[event.slot] = block
            self.has_calls = self.has_calls or isinstance(block, ToolUse)
        self.blocks[event.slot] = block
        self._texts.pop(event.slot, None)
        return event

    def take_calls(self, *, is_complete: bool = False) -> Sequence[ToolUse | BrokenToolUse]:
        """Take the calls that may run now. Broken ones wait for a good one or the end: the provider may still retry."""
        waiting = self._waiting
        if not waiting:
            return ()
        slots = sorted(waiting)
        if not is_complete:
            last_good = max([slot for slot in slots if isinstance(waiting[slot], ToolUse)], default=-1)
            last = min((last_good, *self._open_calls))
            slots = [slot for slot in slots if slot <= last]
        return [waiting.pop(slot) for slot in slots]

    def to_message(self, stop_reason: str) -> AssistantMessage:
        """The complete blocks, and the text of one that was still arriving."""
        blocks = self.blocks
        if self._texts:
            blocks = {**blocks, **{slot: Text("".join(parts)) for slot, parts in self._texts.items() if parts}}
        return AssistantMessage(tuple([blocks[slot] for slot in sorted(blocks)]), self.model, stop_reason)


def is_empty(content: Iterable[AssistantBlock]) -> bool:
    """Whether an answer says nothing and asks for nothing."""
    return all(isinstance(block, Thinking) or (isinstance(block, Text) and not block.text.strip()) for block in content)

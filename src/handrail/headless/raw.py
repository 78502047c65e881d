"""Turns stream events of any provider into the events of the Messages API."""

import time
from collections.abc import Iterator

from handrail.conversation.stream import BlockEnd, BlockStart, Delta, MessageEnd, MessageStart, Usage, UsageUpdate
from handrail.headless.wire import Line, usage
from handrail.loop.events import LoopEvent, RequestSent

DELTAS = {"tool_use": ("input_json_delta", "partial_json"), "thinking": ("thinking_delta", "thinking")}
"""The type of a delta in each kind of block, and the name of its text."""


class RawEvents:
    """Keeps what later events of an answer need: the kinds of its blocks and the latest token counts."""

    def __init__(self) -> None:
        self._kinds: dict[int, str] = {}
        self._usage = Usage()
        self._unsaid: MessageStart | None = None
        self._asked = time.monotonic()
        self.waited = 0
        """Milliseconds from the latest request to the start of its answer."""

    def of(self, event: LoopEvent) -> Iterator[Line]:
        """The raw events for a stream event."""
        match event:
            case RequestSent():
                self._asked = time.monotonic()
            case MessageStart():
                self.waited = round((time.monotonic() - self._asked) * 1000)
                self._unsaid, self._usage = event, Usage()  # its token counts come with the next event
            case UsageUpdate(used):
                self._usage = used
                yield from self._start()
            case BlockStart(slot, kind):
                yield from self._start()
                self._kinds[slot] = kind
                yield {"type": "content_block_start", "index": slot, "content_block": _opening(event)}
            case Delta(slot, text):
                type_name, field = DELTAS.get(self._kinds.get(slot, ""), ("text_delta", "text"))
                yield {"type": "content_block_delta", "index": slot, "delta": {"type": type_name, field: text}}
            case BlockEnd(slot):
                yield {"type": "content_block_stop", "index": slot}
            case MessageEnd(stop_reason):
                yield from self._start()
                delta = {"stop_reason": stop_reason, "stop_sequence": None}
                yield {"type": "message_delta", "delta": delta, "usage": usage(self._usage)}
                yield {"type": "message_stop"}
            case _:
                pass

    def _start(self) -> Iterator[Line]:
        start, self._unsaid = self._unsaid, None
        if start is not None:
            message = {"id": start.id, "type": "message", "role": "assistant", "model": start.model, "content": []}
            counts = usage(self._usage)
            yield {"type": "message_start", "message": {**message, "stop_reason": None, "usage": counts}}


def _opening(event: BlockStart) -> Line:
    match event.kind:
        case "tool_use":
            return {"type": "tool_use", "id": event.id, "name": event.name, "input": {}}
        case "thinking":
            return {"type": "thinking", "thinking": "", "signature": ""}
        case _:
            return {"type": "text", "text": ""}

"""What all readers of answers share: bytes to payloads, payloads to events, and how a call becomes a ToolUse."""

import json
import os
from collections.abc import Callable, Collection, Mapping
from typing import Any

from handrail.conversation.blocks import UNKNOWN, AssistantBlock, BrokenToolUse, ServerBlock, Text, Thinking, ToolUse
from handrail.conversation.stream import (
    BlockEnd,
    BlockKind,
    BlockStart,
    Delta,
    MessageEnd,
    MessageStart,
    StreamEvent,
    StreamFailure,
    Usage,
    UsageUpdate,
)
from handrail.errors import EventTooLargeError
from handrail.http.sse import EventReader
from handrail.providers.failures import broken, from_page, from_payload
from handrail.providers.wire import arguments, load, sound, whole_characters

MAX_ANSWER = 256 * 1024 * 1024
CUT_REASONS = frozenset({"max_tokens", "length", "model_context_window_exceeded", "incomplete", "model_length"})


def new_call_id() -> str:
    """An id for a call that came without one."""
    return f"call_{os.urandom(16).hex()}"


class Block:
    """A block that is still arriving. `parts` are its text or its argument fragments."""

    __slots__ = ("ended", "extra", "half", "id", "kind", "name", "parts", "raw", "size", "slot")

    def __init__(self, slot: int, kind: BlockKind, call_id: str, name: str) -> None:
        self.slot = slot
        self.kind = kind
        self.id = call_id
        self.name = name
        self.parts: list[str] = []
        self.size = 0
        self.half = ""
        self.raw: dict[str, Any] = {}
        self.extra: Mapping[str, Any] = {}
        self.ended = False

    @property
    def text(self) -> str:
        """All of it so far."""
        return "".join(self.parts)


class AnswerReader:
    """
    Reads one answer: bytes in, events out. It ends with exactly one MessageEnd or StreamFailure; then `done` is set.

    `announced` is set once a ToolUse was among the events: its side effect may have begun.
    `taken` are the call ids of the conversation so far, `tools` the names of the tools that the model was offered.
    A body may also be one JSON value instead of an event stream (the non-streaming form).
    """

    def __init__(
        self, taken: Collection[str] = (), tools: Collection[str] = (), new_id: Callable[[], str] = new_call_id
    ) -> None:
        self.done = False
        self.announced = False
        self.out: list[StreamEvent] = []
        self.tools = tools
        self._taken = taken
        self._new_id = new_id
        self._used: set[str] = set()
        self._sse = EventReader()
        self._whole: list[bytes] | None = None
        self._first = b""
        self._size = 0
        self._slots = 0
        self._blocks: list[Block] = []
        self._started = False
        self.set_up()

    def feed(self, data: bytes) -> list[StreamEvent]:
        """The events that `data` completes."""
        if self.done or not data:
            return []
        self._size += len(data)
        if self._size > MAX_ANSWER:
            self.fail(broken("oversized", f"the answer is over {MAX_ANSWER} bytes"))
        elif self._whole is not None:
            self._whole.append(data)
        elif not self._first and self._begins_whole(data):
            self._whole = [data]
        else:
            self._read_events(data)
        return self._take()

    def end(self) -> list[StreamEvent]:
        """No more bytes come: the answer is whole or cut off."""
        if not self.done:
            if self._whole is not None:
                self._read_whole(b"".join(self._whole))
            else:
                self._read_events(None)
        if not self.done:
            self.end_of_bytes()
        return self._take()

    # for each wire format

    def set_up(self) -> None:
        """Prepare what the format keeps of an answer."""

    def payload(self, name: str, payload: Mapping[str, Any]) -> None:
        """One event of the stream."""
        raise NotImplementedError

    def whole(self, payload: Mapping[str, Any]) -> None:
        """The whole answer as one JSON object."""
        raise NotImplementedError

    def end_of_events(self) -> None:
        """The stream said `[DONE]`."""

    def end_of_bytes(self) -> None:
        """The bytes ended, and the answer was not marked as complete."""
        self.fail(broken("cut", "the stream ended before the answer was complete"))

    # for the readers of the wire formats to call

    def start(self, message_id: str, model: str) -> None:
        """The answer begins; further beginnings are ignored."""
        if not self._started:
            self._started = True
            self.out.append(MessageStart(message_id, model))

    def open(self, kind: BlockKind, call_id: str = "", name: str = "") -> Block:
        """A new block in the next slot."""
        block = Block(self._slots, kind, call_id, name)
        self._slots += 1
        self._blocks.append(block)
        self.out.append(BlockStart(block.slot, kind, call_id, name))
        return block

    def add(self, block: Block, text: str) -> None:
        """More of a block's text or arguments; what comes after its end is passed over."""
        if block.ended:
            return
        if not text.isascii() or block.half:
            text = block.half + text
            block.half = ""
            if "\ud800" <= text[-1] <= "\udbff":  # half a character: the other half comes with the next delta
                block.half, text = text[-1], text[:-1]
            text = whole_characters(text)
        if text:
            block.size += len(text)
            block.parts.append(text)
            self.out.append(Delta(block.slot, text))

    def close(self, block: Block, value: AssistantBlock) -> None:
        """A block is certainly complete."""
        if not block.ended:
            block.ended = True
            self.out.append(BlockEnd(block.slot, value))

    def close_text(self, block: Block) -> None:
        """A text block is complete."""
        self.close(block, Text(block.text))

    def close_call(self, block: Block, problem: str = "", given: Mapping[str, Any] | str | None = None) -> None:
        """
        A call is complete: a ToolUse if name and arguments are whole and there is no `problem`, else broken.

        `given` is its input, or what is wrong with it; None = what its text says.
        """
        if block.ended:
            return
        if given is None:
            given = arguments(block.text)
        call_id = self._unique(block.id)
        if not problem and isinstance(given, str):
            problem = given
        if not problem and not block.name:
            problem = "it has no tool name"
        if problem or isinstance(given, str):
            self.close(block, BrokenToolUse(call_id, block.name, block.text, problem))
        else:
            self.announced = True
            self.close(block, ToolUse(call_id, block.name, given, sound(block.extra)))

    def close_server(self, block: Block, raw: Mapping[str, Any]) -> None:
        """A block of a kind that only the provider understands is complete."""
        kind = raw.get("type")
        kind = kind if isinstance(kind, str) and kind else UNKNOWN
        self.close(block, ServerBlock(kind, {**sound(raw), "type": kind}))

    def close_thinking(self, block: Block, text: str, raw: Mapping[str, Any]) -> None:
        """A thought is complete; `raw` is what the provider wants to see again."""
        self.close(block, Thinking(text, sound(raw)))

    def usage(self, usage: Usage) -> None:
        """The newest counts."""
        self.out.append(UsageUpdate(usage))

    def finish(self, stop_reason: str, detail: str = "") -> None:
        """The answer is whole. Blocks whose end never came end with it."""
        if not self.done:
            self.start("", "")
            for block in self._blocks:
                if not block.ended:
                    _close_open(self, block)
            self.done = True
            self.out.append(MessageEnd(stop_reason, detail))

    def fail(self, failure: StreamFailure) -> None:
        """The answer is lost."""
        if not self.done:
            self.done = True
            self.out.append(failure)

    def _unique(self, call_id: str) -> str:
        # results are matched by id, so two calls of a conversation must never share one
        while not call_id or call_id in self._used or call_id in self._taken:
            call_id = self._new_id()
        self._used.add(call_id)
        return call_id

    def _take(self) -> list[StreamEvent]:
        out, self.out = self.out, []
        return out

    def _begins_whole(self, data: bytes) -> bool:
        """Whether an answer begins here that is no event stream: its first character tells, as soon as it has come."""
        self._first = data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
        if self._first == b"<":
            self.fail(from_page(data))
        return self._first in (b"{", b"[", b"<")

    def _read_events(self, more: bytes | None) -> None:
        """The events that these bytes complete, or that their end completes."""
        try:
            events = self._sse.end() if more is None else self._sse.feed(more)
        except EventTooLargeError as error:
            self.fail(StreamFailure("oversized", str(error), retryable=False))
            return
        for name, data in events:
            if self.done:
                return
            if data == "[DONE]":
                self.end_of_events()
                continue
            try:
                payload = load(data)
            except (ValueError, RecursionError):
                self._not_json(name, data)
                continue
            if isinstance(payload, dict):
                self.payload(name, payload)

    def _not_json(self, name: str, data: str) -> None:
        if name == "error":
            self.fail(from_payload({"error": data}))
        elif data.strip() == "[DONE]":
            self.end_of_events()
        elif data.strip():
            self.fail(broken("malformed", f"an event of the stream is not JSON: {data[:200]!r}"))

    def _read_whole(self, body: bytes) -> None:
        try:
            payload = json.loads(body.decode("utf-8-sig", "replace").strip())
        except (ValueError, RecursionError):
            self.fail(broken("cut", f"the answer is not whole JSON: {body[:200].decode('utf-8', 'replace')!r}"))
            return
        if isinstance(payload, dict) and not payload.get("error"):
            self.whole(payload)
        else:
            self.fail(from_payload(payload))


def _close_open(reader: AnswerReader, block: Block) -> None:
    if block.kind == "text":
        reader.close_text(block)
    elif block.kind == "thinking":
        reader.close_thinking(block, block.text, {})
    elif block.kind == "tool_use":
        reader.close_call(block, "the answer ended before the call was complete")
    else:
        reader.close_server(block, block.raw)

"""Reads answers in Anthropic's Messages format."""

from collections.abc import Mapping
from typing import Any

from handrail.conversation.stream import BlockKind, Usage
from handrail.providers.failures import from_foreign, from_payload
from handrail.providers.reader import CUT_REASONS, AnswerReader, Block
from handrail.providers.wire import arguments, count, echo, mapping, string, tokens

KINDS: dict[str, BlockKind] = {
    "text": "text",
    "thinking": "thinking",
    "redacted_thinking": "thinking",
    "tool_use": "tool_use",
}
DELTA_TEXT = {"text_delta": "text", "input_json_delta": "partial_json", "thinking_delta": "thinking"}
DELTA_KIND = {"text_delta": "text", "input_json_delta": "tool_use", "thinking_delta": "thinking"}
COUNTS = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_input_tokens": "cache_read_tokens",
    "cache_creation_input_tokens": "cache_write_tokens",
    "web_search_requests": "web_searches",
}
"""The counts of an answer's usage, and what we call them."""


class AnthropicReader(AnswerReader):
    """
    A block is complete at its content_block_stop, with one exception: a call without a single argument character.
    It may be a call without input, or one that the output limit cut off; the next event decides.
    """

    _last: Block | None = None
    _bare: Block | None = None
    _stop: str | None = None
    _detail = ""

    def set_up(self) -> None:
        self._open: dict[int | None, Block] = {}
        self._usage: dict[str, Any] = {}

    def payload(self, name: str, payload: Mapping[str, Any]) -> None:
        kind = string(payload.get("type")) or name
        if kind == "content_block_delta":
            self._delta(payload)
        elif kind == "content_block_start":
            self._block_start(count(payload.get("index")), mapping(payload.get("content_block")))
        elif kind == "content_block_stop":
            block = self._open.pop(count(payload.get("index")), None) or self._last
            if block is not None:
                self._block_stop(block)
        elif kind == "message_start":
            message = mapping(payload.get("message"))
            self.start(string(message.get("id")), string(message.get("model")))
            self._count(message.get("usage"))
        elif kind == "message_delta":
            self._message_delta(payload)
        elif kind == "message_stop":
            self._message_stop()
        elif kind == "error":
            self.fail(from_payload(payload))

    def whole(self, payload: Mapping[str, Any]) -> None:
        blocks = payload.get("content")
        if not isinstance(blocks, list):
            self.fail(from_foreign(payload))
            return
        self.start(string(payload.get("id")), string(payload.get("model")))
        self._stop = string(payload.get("stop_reason"))
        for index, block in enumerate(blocks):
            self._block_start(index, mapping(block))
            self._block_stop(self._open.pop(index))
        self._message_delta({"delta": payload, "usage": payload.get("usage")})
        self._message_stop()

    def end_of_bytes(self) -> None:
        """A stop reason without message_stop is a complete answer of a careless server."""
        if self._stop:
            self._message_stop()
        else:
            super().end_of_bytes()

    def _block_start(self, index: int | None, content: Mapping[str, Any]) -> None:
        self.start("", "")
        self._settle_bare(cut=False)
        type_ = string(content.get("type"))
        if (before := self._open.pop(index, None)) is not None:
            self._block_stop(before)  # its end was lost
        block = self.open(KINDS.get(type_, "server"), string(content.get("id")), string(content.get("name")))
        block.raw = dict(content)
        caller = content.get("caller")
        if block.kind == "tool_use" and caller and caller != {"type": "direct"}:
            block.extra = {"caller": caller}
        self._open[index] = self._last = block
        first = content.get("text") if type_ == "text" else content.get("thinking") if type_ == "thinking" else None
        if isinstance(first, str) and first:
            self.add(block, first)

    def _delta(self, payload: Mapping[str, Any]) -> None:
        delta = mapping(payload.get("delta"))
        type_ = string(delta.get("type"))
        block = self._open.get(count(payload.get("index")))
        if block is None:
            block = self._stray(payload, type_)
            if block is None:
                return
        text = delta.get(DELTA_TEXT.get(type_, ""))
        if isinstance(text, str):
            if text:
                self.add(block, text)
        elif type_ == "signature_delta":
            block.raw["signature"] = string(block.raw.get("signature")) + string(delta.get("signature"))
        elif isinstance(text, dict):  # an object where a fragment belongs
            self.add(block, echo(text).decode())

    def _stray(self, payload: Mapping[str, Any], type_: str) -> Block | None:
        if "index" not in payload and self._last is not None and not self._last.ended:
            return self._last
        kind = DELTA_KIND.get(type_)
        if kind is None or kind == "tool_use":
            return None  # nothing can be made of arguments without a call
        self._block_start(count(payload.get("index")), {"type": kind})
        return self._last

    def _block_stop(self, block: Block) -> None:
        if block.ended:
            return
        if block.kind == "text":
            self.close_text(block)
        elif block.kind == "thinking":
            text = block.text
            if block.raw.get("type") == "thinking":
                block.raw["thinking"] = text
            self.close_thinking(block, text, block.raw)
        elif block.kind == "server":
            if block.parts:
                given = arguments(block.text)
                block.raw["input"] = {} if isinstance(given, str) else given
            self.close_server(block, block.raw)
        elif block.size or block.raw.get("input"):
            self._call_stop(block)
        else:
            self._bare = block

    def _call_stop(self, block: Block) -> None:
        at_start = block.raw.get("input")
        if not block.size and isinstance(at_start, dict):
            block.parts.append(echo(at_start).decode())
        given, problem = arguments(block.text), ""
        if isinstance(given, str) and self._stop in CUT_REASONS:
            problem = f"the answer was cut by the output limit (stop_reason {self._stop!r})"
        self.close_call(block, problem, given)

    def _settle_bare(self, cut: bool) -> None:
        block, self._bare = self._bare, None
        if block is not None:
            reason = f"the answer was cut by the output limit (stop_reason {self._stop!r}) before its input"
            self.close_call(block, reason if cut else "")

    def _message_delta(self, payload: Mapping[str, Any]) -> None:
        delta = mapping(payload.get("delta"))
        self._stop = string(delta.get("stop_reason")) or self._stop
        details = mapping(delta.get("stop_details"))
        self._detail = string(details.get("explanation")) or string(delta.get("stop_sequence"))
        if self._stop and not self._open:
            self._settle_bare(cut=self._stop in CUT_REASONS)
        self._count(payload.get("usage"))

    def _message_stop(self) -> None:
        cut = self._stop in CUT_REASONS
        for block in list(self._open.values()):
            if cut and block.kind == "tool_use":
                self.close_call(block, f"the answer was cut by the output limit (stop_reason {self._stop!r})")
            else:
                self._block_stop(block)
        self._open.clear()
        self._settle_bare(cut)
        self.finish(self._stop or "", self._detail)

    def _count(self, usage: object) -> None:
        counts = mapping(usage)
        if "server_tool_use" in counts:
            counts = {**counts, **mapping(counts["server_tool_use"])}
        fresh = {COUNTS[key]: value for key, value in counts.items() if key in COUNTS and tokens(value) is not None}
        if fresh:
            self._usage |= fresh
            self.usage(Usage(**self._usage))

"""Reads answers in OpenAI's Responses format."""

from collections.abc import Mapping
from typing import Any

from handrail.conversation.stream import BlockKind
from handrail.providers.failures import from_foreign, from_payload
from handrail.providers.openai_chat_reader import read_usage
from handrail.providers.reader import AnswerReader, Block
from handrail.providers.wire import count, echo, mapping, string

TEXT_DELTAS = frozenset({"response.output_text.delta", "response.refusal.delta"})
ARGUMENT_DELTAS = frozenset({"response.function_call_arguments.delta", "response.custom_tool_call_input.delta"})
REASONING_DELTAS = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})
LAST_WORDS = frozenset({"response.completed", "response.incomplete", "response.done"})
KINDS: dict[str, BlockKind] = {"function_call": "tool_use", "custom_tool_call": "tool_use", "reasoning": "thinking"}

Key = tuple[int | str, int]


class ResponsesReader(AnswerReader):
    """An item is complete at its output_item.done; what a server leaves out is taken from the closing response."""

    def set_up(self) -> None:
        self._open: dict[Key, Block] = {}
        self._names: dict[str, int] = {}
        self._last: int | str = 0

    def payload(self, name: str, payload: Mapping[str, Any]) -> None:
        kind = string(payload.get("type")) or name
        if kind in TEXT_DELTAS:
            self._words(payload, "text", count(payload.get("content_index")) or 0)
        elif kind in ARGUMENT_DELTAS:
            self._words(payload, "tool_use", 0)
        elif kind in REASONING_DELTAS:
            self._reason(payload)
        elif kind == "response.output_item.added":
            self._item_added(payload)
        elif kind == "response.output_item.done":
            self._item_done(self._item_key(payload), mapping(payload.get("item")))
        elif kind in LAST_WORDS:
            self._response_done(mapping(payload.get("response")))
        elif kind in {"response.failed", "response.cancelled"}:
            self._fail_response(mapping(payload.get("response")))
        elif kind == "error":
            self.fail(from_payload(payload))
        elif kind in {"response.created", "response.in_progress"}:
            response = mapping(payload.get("response"))
            self.start(string(response.get("id")), string(response.get("model")))

    def whole(self, payload: Mapping[str, Any]) -> None:
        if not isinstance(payload.get("output"), list):
            self.fail(from_foreign(payload))
            return
        self.start(string(payload.get("id")), string(payload.get("model")))
        if payload.get("status") in {"failed", "cancelled"}:
            self._fail_response(payload)
        else:
            self._response_done(payload)

    def _item_key(self, payload: Mapping[str, Any]) -> int | str:
        item_id = string(payload.get("item_id")) or string(mapping(payload.get("item")).get("id"))
        index = count(payload.get("output_index"))
        if index is None:
            index = self._names.get(item_id)
        if index is None:
            return item_id or self._last
        if item_id:
            self._names[item_id] = index
        return index

    def _item_added(self, payload: Mapping[str, Any]) -> None:
        item = mapping(payload.get("item"))
        type_ = string(item.get("type"))
        self._last = self._item_key(payload)
        kind = KINDS.get(type_)
        if kind is not None:
            self._block(self._last, kind, 0, string(item.get("call_id")), string(item.get("name")))
        elif type_ != "message":
            self._block(self._last, "server")

    def _block(self, item: int | str, kind: BlockKind, part: int = 0, call_id: str = "", name: str = "") -> Block:
        block = self._open.get((item, part))
        if block is None:
            self.start("", "")
            block = self._open[item, part] = self.open(kind, call_id, name)
        return block

    def _words(self, payload: Mapping[str, Any], kind: BlockKind, part: int) -> None:
        text = payload.get("delta")
        if text and isinstance(text, str):
            self.add(self._block(self._item_key(payload), kind, part), text)

    def _reason(self, payload: Mapping[str, Any]) -> None:
        text = payload.get("delta")
        if not text or not isinstance(text, str):
            return
        block = self._block(self._item_key(payload), "thinking")
        part = f"{count(payload.get('summary_index'))}/{count(payload.get('content_index'))}"
        if block.parts and block.name != part:
            self.add(block, "\n\n")
        block.name = part
        self.add(block, text)

    def _item_done(self, key: int | str, item: Mapping[str, Any], cut: bool = False) -> None:
        type_ = string(item.get("type"))
        if type_ == "message":
            self._message_done(key, item)
        elif type_ == "reasoning":
            block = self._block(key, "thinking")
            self.close_thinking(block, block.text or _summary(item), item)
        elif type_ in KINDS:
            self._call_done(key, item, cut)
        elif type_:
            self.close_server(self._block(key, "server"), item)

    def _call_done(self, key: int | str, item: Mapping[str, Any], cut: bool) -> None:
        call_id, name = string(item.get("call_id")) or string(item.get("id")), string(item.get("name"))
        block = self._block(key, "tool_use", 0, call_id, name)
        block.id, block.name = block.id or call_id, block.name or name
        problem = "the answer was cut before it was complete" if cut or item.get("status") == "incomplete" else ""
        if item.get("type") == "custom_tool_call":
            text = item.get("input")
            self.close_call(block, problem, {"input": text if isinstance(text, str) else block.text})
            return
        given = item.get("arguments")
        text = given if isinstance(given, str) else echo(given).decode() if isinstance(given, dict) else ""
        if text:
            block.parts = [text]
        self.close_call(block, problem)

    def _message_done(self, key: int | str, item: Mapping[str, Any]) -> None:
        parts = item.get("content")
        for number, part in enumerate(map(mapping, parts if isinstance(parts, list) else ())):
            text = string(part.get("text")) or string(part.get("refusal"))
            if text and (key, number) not in self._open:
                self.add(self._block(key, "text", number), text)
        for (item_key, _), block in self._open.items():
            if item_key == key and not block.ended:
                self.close_text(block)

    def _response_done(self, response: Mapping[str, Any]) -> None:
        self.start(string(response.get("id")), string(response.get("model")))
        status = string(response.get("status")) or "completed"
        cut = status == "incomplete"
        items = response.get("output")
        for index, item in enumerate(map(mapping, items if isinstance(items, list) else ())):
            item_id = string(item.get("id"))
            key = item_id if (item_id, 0) in self._open else self._names.get(item_id, index)
            self._item_done(key, item, cut)
        self._end_rest(cut)
        usage = mapping(response.get("usage"))
        if usage:
            self.usage(read_usage(usage))
        self.finish(status, string(mapping(response.get("incomplete_details")).get("reason")))

    def _end_rest(self, cut: bool) -> None:
        for block in self._open.values():
            if block.ended:
                continue
            if block.kind == "text":
                self.close_text(block)
            elif block.kind == "tool_use":
                self.close_call(block, "the answer was cut before it was complete" if cut else "")
            elif block.kind == "thinking":
                self.close_thinking(block, block.text, {})

    def _fail_response(self, response: Mapping[str, Any]) -> None:
        error = response.get("error") or {"message": f"the response ended as {response.get('status')!r}"}
        self.fail(from_payload({"error": error}))


def _summary(item: Mapping[str, Any]) -> str:
    for field in ("summary", "content"):
        parts = item.get(field)
        text = "\n\n".join(string(mapping(part).get("text")) for part in parts) if isinstance(parts, list) else ""
        if text:
            return text
    return ""

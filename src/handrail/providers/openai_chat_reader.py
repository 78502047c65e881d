"""Reads answers in the chat.completions format of OpenAI and the many servers that imitate it."""

from collections.abc import Mapping
from typing import Any

from handrail.conversation.stream import Usage
from handrail.providers.failures import from_foreign, from_payload
from handrail.providers.openai_calls import CallAssembler
from handrail.providers.reader import AnswerReader, Block
from handrail.providers.wire import mapping, string, tokens

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")


class ChatReader(AnswerReader):
    """Reasoning ends when text or calls begin, text when calls begin; calls end as CallAssembler says."""

    def set_up(self) -> None:
        self._calls = CallAssembler(self)
        self._text: Block | None = None
        self._thinking: Block | None = None
        self._details: list[Any] = []
        self._reason: str | None = None
        self._usage: Mapping[str, Any] = {}

    def payload(self, name: str, payload: Mapping[str, Any]) -> None:
        if payload.get("error") or name == "error":
            self.fail(from_payload(payload))
            return
        choices = payload.get("choices")
        choice = mapping(choices[0]) if isinstance(choices, list) and choices else None
        if not self._started and (choice or payload.get("model")):  # a chunk that only reports filters names no model
            self.start(string(payload.get("id")), string(payload.get("model")))
        usage = payload.get("usage")
        if not usage and "x_groq" in payload:
            usage = mapping(payload["x_groq"]).get("usage")
        if choice is not None and not choice.get("index"):  # further choices were not asked for
            usage = usage or choice.get("usage")
            if "delta" in choice:
                self._delta(mapping(choice["delta"]))
            elif not self._slots:  # the whole message; beside deltas it only repeats them
                self._delta(mapping(choice.get("message")))
            reason = choice.get("finish_reason")
            if reason and self._reason is None:
                self._reason = string(reason)
                self._end_blocks()
        if usage:
            self._usage = mapping(usage)

    def whole(self, payload: Mapping[str, Any]) -> None:
        if not isinstance(payload.get("choices"), list):
            self.fail(from_foreign(payload))
            return
        self.payload("", payload)
        self.end_of_events()

    def end_of_events(self) -> None:
        self._end_blocks()
        if self._usage:
            self.usage(read_usage(self._usage))
        self.finish(self._reason or "")

    def end_of_bytes(self) -> None:
        """A finish_reason without `[DONE]` is a whole answer."""
        if self._reason is not None:
            self.end_of_events()
        else:
            super().end_of_bytes()

    def _delta(self, delta: Mapping[str, Any]) -> None:
        if len(delta) == 1 and self._goes_on(delta.get("tool_calls")):
            return
        content = delta.get("content")
        if len(delta) > 1 or not content:  # else the common case: nothing but text
            self._reasoning(delta)
        if content:
            if isinstance(content, str):
                self._say(content)
            elif isinstance(content, list):
                self._parts(content)
        if len(delta) > 1 or not content:
            self._refusal_and_calls(delta)

    def _goes_on(self, calls: Any) -> bool:
        """Whether there is nothing but the next fragment of the newest call; it is added then."""
        words = self._text or self._thinking or self._details
        return isinstance(calls, list) and len(calls) == 1 and not words and self._calls.go_on(calls[0])

    def _reasoning(self, delta: Mapping[str, Any]) -> None:
        details = delta.get("reasoning_details")
        if isinstance(details, list):
            self._details.extend(details)
        for field in REASONING_FIELDS:
            reasoning = delta.get(field)
            if reasoning and isinstance(reasoning, str):
                self._think(field, reasoning)
                return
        for detail in map(mapping, details if isinstance(details, list) else ()):
            if text := string(detail.get("text")) or string(detail.get("summary")):
                self._think("reasoning", text)

    def _refusal_and_calls(self, delta: Mapping[str, Any]) -> None:
        refusal = delta.get("refusal")
        if refusal and isinstance(refusal, str):
            self._say(refusal)
        calls = delta.get("tool_calls")
        if isinstance(calls, dict):
            calls = [calls]
        legacy = delta.get("function_call")
        if legacy and isinstance(legacy, dict):
            calls = [{"index": 0, "function": legacy}]
        if calls and isinstance(calls, list):
            self._end_words()
            self._calls.feed(calls)

    def _say(self, text: str) -> None:
        if self._thinking is not None:
            self._end_thinking()
        if self._text is None:
            self._text = self.open("text")
        self.add(self._text, text)

    def _think(self, field: str, text: str) -> None:
        if self._thinking is None:
            self._thinking = self.open("thinking")
            self._thinking.name = field
        self.add(self._thinking, text)

    def _parts(self, parts: list[Any]) -> None:
        for part in map(mapping, parts):
            if string(part.get("type")) in {"thinking", "reasoning"}:
                thought = part.get("thinking") or part.get("summary")
                pieces = thought if isinstance(thought, list) else [{"text": thought}]
                for piece in pieces:
                    text = string(mapping(piece).get("text"))
                    if text:
                        self._think("content", text)
            elif text := string(part.get("text")):
                self._say(text)

    def _end_thinking(self) -> None:
        block, self._thinking = self._thinking, None
        if block is None and self._details:
            block = self.open("thinking")
        if block is not None:
            raw: dict[str, Any] = {block.name or "reasoning": block.text}
            if self._details:
                raw["reasoning_details"], self._details = self._details, []
            self.close_thinking(block, block.text, raw)

    def _end_words(self) -> None:
        self._end_thinking()
        if self._text is not None:
            self.close_text(self._text)
            self._text = None

    def _end_blocks(self) -> None:
        self._end_words()
        self._calls.finish(self._reason or "")


def read_usage(usage: Mapping[str, Any]) -> Usage:
    """The token counts of a chat or responses answer, which have different names for them."""
    prompt = tokens(usage.get("prompt_tokens", usage.get("input_tokens")))
    output = tokens(usage.get("completion_tokens", usage.get("output_tokens")))
    before = mapping(usage.get("prompt_tokens_details") or usage.get("input_tokens_details"))
    after = mapping(usage.get("completion_tokens_details") or usage.get("output_tokens_details"))
    reasoning = tokens(after.get("reasoning_tokens"))
    total = tokens(usage.get("total_tokens"))
    cached = tokens(before.get("cached_tokens"))
    return Usage(
        input_tokens=prompt,
        output_tokens=output,
        cache_read_tokens=cached if cached is not None else tokens(usage.get("prompt_cache_hit_tokens")),
        cache_write_tokens=tokens(before.get("cache_write_tokens")),
        reasoning_tokens=reasoning,
        cache_in_input=True,
        reasoning_apart=bool(reasoning) and total == (prompt or 0) + (output or 0) + (reasoning or 0),
    )

"""Runs a reader over bytes and folds its events into what an answer says."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from handrail.conversation.blocks import AssistantBlock, BrokenToolUse, ServerBlock, Text, Thinking, ToolUse
from handrail.conversation.stream import (
    BlockEnd,
    BlockStart,
    Delta,
    MessageEnd,
    MessageStart,
    StreamEvent,
    StreamFailure,
    Usage,
    UsageUpdate,
)
from handrail.providers.anthropic_reader import AnthropicReader
from handrail.providers.openai_chat_reader import ChatReader
from handrail.providers.openai_responses_reader import ResponsesReader
from handrail.providers.reader import AnswerReader

READERS: dict[str, Callable[..., AnswerReader]] = {
    "anthropic": AnthropicReader,
    "openai-chat": ChatReader,
    "openai-responses": ResponsesReader,
}


@dataclass
class Seen:
    """An answer as its events tell it; folding checks that the events keep their order."""

    blocks: dict[int, AssistantBlock] = field(default_factory=dict)
    texts: dict[int, str] = field(default_factory=dict)
    model: str = ""
    usage: Usage | None = None
    end: MessageEnd | None = None
    failure: StreamFailure | None = None

    def take(self, event: StreamEvent) -> None:
        assert self.end is None, f"{event} after the end"
        assert self.failure is None, f"{event} after a failure"
        match event:
            case MessageStart():
                assert not self.texts
                self.model = event.model
            case BlockStart():
                assert event.slot == len(self.texts)
                self.texts[event.slot] = ""
            case Delta():
                assert event.slot not in self.blocks
                assert event.text
                self.texts[event.slot] += event.text
            case BlockEnd():
                assert event.slot in self.texts
                assert event.slot not in self.blocks
                self.blocks[event.slot] = event.block
            case UsageUpdate():
                self.usage = event.usage
            case MessageEnd():
                assert self.blocks.keys() == self.texts.keys()
                self.end = event
            case StreamFailure():
                self.failure = event

    @property
    def content(self) -> list[AssistantBlock]:
        return [self.blocks[slot] for slot in sorted(self.blocks)]

    @property
    def calls(self) -> list[ToolUse | BrokenToolUse]:
        return [block for block in self.content if isinstance(block, ToolUse | BrokenToolUse)]


def numbered() -> Callable[[], str]:
    """Ids new-1, new-2, ... for calls without one."""
    numbers = iter(range(1, 1000))
    return lambda: f"new-{next(numbers)}"


def read(api: str, chunks: Iterable[bytes], **options: Any) -> Seen:
    """The answer that these byte chunks carry."""
    reader = READERS[api](**{"new_id": numbered(), **options})
    seen = Seen()
    for chunk in chunks:
        for event in reader.feed(chunk):
            seen.take(event)
    for event in reader.end():
        seen.take(event)
    assert reader.done
    assert (seen.end is None) != (seen.failure is None)
    return seen


def described(block: AssistantBlock) -> dict[str, Any]:
    """A block in the words of expected.jsonl."""
    match block:
        case Text():
            return {"type": "text", "text": block.text}
        case Thinking():
            return {"type": "thinking", "thinking": block.text}
        case ToolUse():
            return {"type": "tool_use", "id": block.id, "name": block.name, "input": dict(block.input)}
        case ServerBlock():
            known = {key: block.raw[key] for key in ("id", "name", "input", "tool_use_id") if key in block.raw}
            return {"type": block.type, **known}
        case BrokenToolUse():
            return {"type": "broken", "id": block.id, "name": block.name}

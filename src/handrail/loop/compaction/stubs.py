"""
Pure functions: when a history needs compaction, and how stubs replace old results.

    micro   old, large tool results become stubs that name a file with the whole text (here)
    full    what is older than the newest turns becomes a summary by the model (`summary`)

Both keep the order, every call with its one result, and what the newest turns say. Each replaces the history once, so
that the bytes of the requests after it are stable again: one visible break.
"""

import base64
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeAlias

from handrail.conversation.blocks import (
    BrokenToolUse,
    Document,
    Image,
    ResultBlock,
    ServerBlock,
    Text,
    Thinking,
    ToolReference,
    ToolResult,
    ToolUse,
)
from handrail.conversation.messages import Message, SystemNote, UserMessage
from handrail.dispatch.results import safe_name
from handrail.records import record

CHARACTERS_PER_TOKEN = 3
TOKENS_PER_IMAGE = 1_600
CompactionAction: TypeAlias = Literal["none", "micro", "full"]


@record
class CompactionPolicy:
    """
    Shares of the window, and sizes in characters.

    `keep_results` newest results and results up to `small` are never stubbed; less than `worth` is not worth a break.
    The newest turns that fill up to `tail` of the window survive a summary; `reserve` of it is left for the answer.
    """

    micro_at: float = 0.6
    full_at: float = 0.8
    keep_results: int = 8
    small: int = 2_000
    worth: int = 20_000
    tail: float = 0.1
    reserve: float = 0.15


DEFAULT_POLICY = CompactionPolicy()


@record
class FileToSave:
    """A file that must be written before the shorter history is used."""

    path: Path
    data: bytes


@record
class StubbedHistory:
    """A history with stubs. `characters` were freed on `stubs` results."""

    messages: tuple[Message, ...]
    saves: tuple[FileToSave, ...]
    stubs: int
    characters: int


def needed_action(tokens: int, window: int, policy: CompactionPolicy = DEFAULT_POLICY) -> CompactionAction:
    """The compaction that a history which fills `tokens` of a window needs."""
    if tokens >= window * policy.full_at:
        return "full"
    return "micro" if tokens >= window * policy.micro_at else "none"


def estimate(messages: Iterable[Message]) -> int:
    """About how many tokens messages fill; rather too many than too few."""
    return sum(map(characters_of, messages)) // CHARACTERS_PER_TOKEN


def characters_of(message: Message) -> int:
    """About how many characters of text a message is worth."""
    if isinstance(message, SystemNote):
        return 0
    characters = 20 * len(message.content)
    for block in message.content:
        for part in block.content if isinstance(block, ToolResult) else (block,):
            if isinstance(part, Text):
                characters += len(part.text)
            elif isinstance(part, Image | Document):
                characters += 2 * _size(part)
            else:
                characters += _size(part)
    return characters


def stub_old_results(
    messages: Sequence[Message], folder: Path | None, policy: CompactionPolicy = DEFAULT_POLICY
) -> StubbedHistory | None:
    """
    Replace old, large results with stubs; None when too little would be freed.

    `folder` is where whole texts go; without one they are lost. The results of the newest answer always stay: the model
    has not seen them yet.
    """
    places = [
        (at, result)
        for at, message in enumerate(messages)
        if isinstance(message, UserMessage)
        for result in message.content
        if isinstance(result, ToolResult)
    ]
    newest = sum(at == places[-1][0] for at, _ in places) if places else 0
    stubs: dict[str, ToolResult] = {}
    saves: list[FileToSave] = []
    freed = 0
    for _, result in places[: max(0, len(places) - max(policy.keep_results, newest))]:
        if _weight(result) > policy.small and not any(isinstance(part, ToolReference) for part in result.content):
            stub, needed = _stub(result, folder)
            stubs[result.tool_use_id] = stub
            saves += needed
            freed += _weight(result) - _weight(stub)
    if freed < policy.worth:
        return None
    return StubbedHistory(tuple(_with_stubs(message, stubs) for message in messages), tuple(saves), len(stubs), freed)


def _stub(result: ToolResult, folder: Path | None) -> tuple[ToolResult, list[FileToSave]]:
    text = result.text
    saves: list[FileToSave] = []
    lines: list[str] = []

    def keep(ending: str, data: bytes) -> str:
        if folder is None:
            return ""
        saves.append(FileToSave(folder / f"{safe_name(result.tool_use_id)}-{ending}", data))
        return f" It is in {saves[-1].path}: read it if you need it again."

    if text.startswith("<persisted-output>"):  # the whole text is on disk already, and its second line says where
        lines.append(text.split("\n", 2)[1])
    elif text:
        lines.append(f"{len(text):,} characters of text.{keep('result.txt', text.encode('utf-8', 'surrogatepass'))}")
    for number, part in enumerate(part for part in result.content if isinstance(part, Image | Document)):
        ending = part.media_type.rpartition("/")[2]
        lines.append(f"A file of type {part.media_type}.{keep(f'{number}.{ending}', _decode(part.data))}")
    words = ["<earlier-output>", "This result was moved out of the conversation.", *lines, "</earlier-output>"]
    return replace(result, content=(Text("\n".join(words)),)), saves


def _decode(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except ValueError:  # a block that a tool labels as an image may not be one
        return data.encode("utf-8", "surrogatepass")


def _with_stubs(message: Message, stubs: dict[str, ToolResult]) -> Message:
    if not isinstance(message, UserMessage):
        return message
    content = tuple(
        stubs.get(block.tool_use_id, block) if isinstance(block, ToolResult) else block for block in message.content
    )
    return replace(message, content=content) if content != message.content else message


def _weight(result: ToolResult) -> int:
    return sum(map(_size, result.content))


def _size(part: ResultBlock | Thinking | ToolUse | BrokenToolUse | ServerBlock | ToolResult) -> int:
    match part:
        case Text() | Thinking():
            return len(part.text)
        case Image() | Document():
            return TOKENS_PER_IMAGE * CHARACTERS_PER_TOKEN
        case ToolUse():
            return len(part.name) + len(repr(part.input))
        case BrokenToolUse():
            return len(part.name) + len(part.raw_input)
        case ToolReference():
            return len(part.name)
        case ServerBlock():
            return len(repr(part.raw))
        case ToolResult():
            return _weight(part)

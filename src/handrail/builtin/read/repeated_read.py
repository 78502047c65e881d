"""
Shortens a repeated read: the second result refers to the first, if that is still in the conversation.

This is safe after compaction: the new result is built first, and it is only replaced if the last result for the same
input is in the history with exactly the same content.
"""

from collections.abc import Iterator, Sequence

from handrail.builtin.read.open_file import OpenFile
from handrail.conversation.blocks import ResultBlock, Text, ToolResult, ToolUse, UserBlock
from handrail.conversation.messages import AssistantMessage, UserMessage
from handrail.tools.context import ToolContext
from handrail.tools.output import Output, sendable

WORTH_IT = 400


def stub(file: OpenFile, output: Output, ctx: ToolContext) -> Output | None:
    """The short result for a repeated read; None = the content is not in the history, or too short to matter."""
    blocks = output.blocks or (Text(output.text),)
    if _length(blocks) < WORTH_IT:
        return None
    same = tuple(Text(sendable(block.text)) if isinstance(block, Text) else block for block in blocks)
    name = file.name
    text = f"{name} is unchanged since you read it: the result of call {{}} still holds."
    for call, result in _earlier(ctx):
        if result.is_error:
            continue
        if result.content == same:
            data = {"type": "file_unchanged", "file": {"filePath": file.absolute}}
            return Output(text=text.format(call), data=data, card=output.card)
        if not result.text.startswith(f"{name} is unchanged"):
            return None  # something else was shown last
    return None


def _length(blocks: tuple[ResultBlock, ...]) -> int:
    return sum(len(block.text) if isinstance(block, Text) else WORTH_IT for block in blocks)


def _earlier(ctx: ToolContext) -> Iterator[tuple[str, ToolResult]]:
    """Earlier results of the same call, newest first."""
    name, given = ctx.use.name, ctx.use.input
    results: Sequence[UserBlock] = ()
    for message in reversed(ctx.history):
        if isinstance(message, UserMessage):
            results = message.content
        elif isinstance(message, AssistantMessage):
            for call in reversed(message.content):
                if isinstance(call, ToolUse) and call.input == given and call.name == name:
                    yield from _result_of(call, results)


def _result_of(call: ToolUse, answers: Sequence[UserBlock]) -> Iterator[tuple[str, ToolResult]]:
    return ((call.id, block) for block in answers if isinstance(block, ToolResult) and block.tool_use_id == call.id)

"""The end of a conversation that goes on, as blocks."""

from collections.abc import Iterator, Mapping, Sequence

from handrail.conversation.blocks import Text, ToolResult, ToolUse
from handrail.conversation.messages import AssistantMessage, Message, UserMessage
from handrail.loop.loop_messages import INTERRUPTIONS
from handrail.tui.interactive.blocks import AnswerBlock, NoteBlock, PromptBlock
from handrail.tui.interactive.frames import ScreenBlock
from handrail.tui.interactive.paint import Theme
from handrail.view.decision import subject_of

MAX_MESSAGES = 20


def history_blocks(messages: Sequence[Message], theme: Theme) -> Iterator[ScreenBlock]:
    """What was said last, and which calls were made; of a result, only why a call failed."""
    if len(messages) > MAX_MESSAGES:
        yield NoteBlock(f"(+{len(messages) - MAX_MESSAGES} earlier messages)", theme, dim=True)
    last = messages[-MAX_MESSAGES:]
    failures = _failures(last)
    for message in last:
        match message:
            case UserMessage(content):
                text = "\n".join(block.text for block in content if isinstance(block, Text))
                if text in INTERRUPTIONS.values():
                    yield NoteBlock(text.strip("[]"), theme, dim=True)
                elif text:
                    yield PromptBlock(text, theme)
            case AssistantMessage(content=answer):
                for part in answer:
                    if isinstance(part, Text):
                        yield AnswerBlock(part.text, theme)
                    elif isinstance(part, ToolUse):
                        yield NoteBlock(_call_line(part, failures), theme, dim=True)
            case _:
                pass


def _failures(messages: Sequence[Message]) -> dict[str, str]:
    """Why calls failed, in a line each, by the id of the call."""
    blocks = (block for message in messages if isinstance(message, UserMessage) for block in message.content)
    failed = (block for block in blocks if isinstance(block, ToolResult) and block.is_error)
    return {block.tool_use_id: block.text.strip().partition("\n")[0] for block in failed}


def _call_line(use: ToolUse, failures: Mapping[str, str]) -> str:
    call = f"{use.name} {subject_of(use.input)}".strip()
    return f"x {call}\n    {failures[use.id]}" if use.id in failures else f"* {call}"

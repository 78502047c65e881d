"""The end of a conversation that goes on, as blocks."""

from collections.abc import Iterator, Sequence

from handrail.conversation.blocks import Text, ToolUse
from handrail.conversation.messages import AssistantMessage, Message, UserMessage
from handrail.tui.interactive.blocks import AnswerBlock, NoteBlock, PromptBlock
from handrail.tui.interactive.frames import ScreenBlock
from handrail.tui.interactive.paint import Theme

MAX_MESSAGES = 20


def history_blocks(messages: Sequence[Message], theme: Theme) -> Iterator[ScreenBlock]:
    """What was said last; results of calls are left out."""
    if len(messages) > MAX_MESSAGES:
        yield NoteBlock(f"(+{len(messages) - MAX_MESSAGES} earlier messages)", theme, dim=True)
    for message in messages[-MAX_MESSAGES:]:
        match message:
            case UserMessage(content):
                texts = [block.text for block in content if isinstance(block, Text)]
                if texts:
                    yield PromptBlock("\n".join(texts), theme)
            case AssistantMessage(content=answer):
                for part in answer:
                    if isinstance(part, Text):
                        yield AnswerBlock(part.text, theme)
                    elif isinstance(part, ToolUse):
                        yield NoteBlock(f"* {part.name}", theme, dim=True)
            case _:
                pass

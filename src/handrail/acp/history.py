"""A conversation that goes on, as updates: the editor shows what was said before."""

from collections.abc import Iterator

from handrail.acp.prompt import fence, prompt_chunks
from handrail.acp.tool_call import call_fields, declared_access, drawn_call, text_content
from handrail.acp.updates import chunks
from handrail.conversation.blocks import AssistantBlock, Json, Text, Thinking, ToolResult, ToolUse
from handrail.conversation.messages import AssistantMessage, UserMessage
from handrail.session.session import Session
from handrail.tools.wording import cut

NOTIFICATION = "<task-notification"
"""The beginning of a message that no person wrote."""
MAX_RESULT = 20_000


def history_updates(session: Session) -> Iterator[Json]:
    """Everything that the model still knows of the conversation."""
    messages = session.conversation.messages
    results = {
        block.tool_use_id: block
        for message in messages
        if isinstance(message, UserMessage)
        for block in message.content
        if isinstance(block, ToolResult)
    }
    for message in messages:
        match message:
            case UserMessage():
                for content in prompt_chunks(message):
                    yield from _of_prompt(content)
            case AssistantMessage(content=answer):
                for block in answer:
                    yield from _of_block(session, block, results)
            case _:
                pass


def _of_prompt(content: Json) -> Iterator[Json]:
    match content:
        case {"type": "text", "text": str(text)}:
            if not text.startswith(NOTIFICATION):
                yield from chunks("user_message_chunk", text)
        case picture:
            yield {"sessionUpdate": "user_message_chunk", "content": picture}


def _of_block(session: Session, block: AssistantBlock, results: dict[str, ToolResult]) -> Iterator[Json]:
    match block:
        case Text(text):
            yield from chunks("agent_message_chunk", text)
        case Thinking(text=text) if text:
            yield from chunks("agent_thought_chunk", text)
        case ToolUse():
            card, access = drawn_call(session, block), declared_access(session, block)
            fields = dict(call_fields(block, card, access, str(session.conversation.state.context.cwd)))
            result = results.get(block.id)
            if result is not None and result.text.strip() and not fields["content"]:
                fields["content"] = [text_content(fence(cut(result.text, MAX_RESULT)))]
            ok = result is not None and not result.is_error
            yield {"sessionUpdate": "tool_call", **fields, "status": "completed" if ok else "failed"}
        case _:
            pass

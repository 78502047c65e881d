"""A request outside the conversation, for example for a summary: one answer, no tools, no events."""

from handrail.conversation.blocks import AssistantBlock
from handrail.conversation.request import Request
from handrail.conversation.stream import BlockEnd, Delta, MessageEnd, StreamFailure, Usage
from handrail.loop.partial_answer import PartialAnswer
from handrail.loop.run_config import Model
from handrail.records import record


@record
class SideAnswer:
    """The text of the answer, its model and what it used. With a `failure`, `text` is what came before it."""

    text: str
    model: str
    usage: Usage
    failure: StreamFailure | None = None
    blocks: tuple[AssistantBlock, ...] = ()
    """All blocks of the answer, those of the server's own tools too."""


async def side_request(model: Model, request: Request) -> SideAnswer:
    """Send a request and return its answer. Cancelling drops the connection."""
    answer = PartialAnswer(request.model, frozenset())
    failure: StreamFailure | None = None
    stream = model.stream(request)
    try:
        async for event in stream:
            match event:
                case Delta():
                    answer.add_delta(event)
                case BlockEnd():
                    answer.close_block(event)
                case MessageEnd():
                    break
                case StreamFailure():
                    failure = event
                    break
                case _:
                    answer.update(event)
    finally:
        await stream.aclose()
    message = answer.to_message("")
    return SideAnswer(message.text, answer.model, answer.usage, failure, message.content)

"""A question beside the conversation, for example for a summary: one answer, no tools, nobody is told."""

from dataclasses import dataclass

from handrail.conversation.request import Request
from handrail.conversation.stream import BlockEnd, Delta, MessageEnd, StreamFailure, Usage
from handrail.loop.draft import Draft
from handrail.loop.setup import Model


@dataclass(frozen=True, slots=True)
class Aside:
    """What was said, by whom, and what it used. With a `failure`, `text` is what came before it."""

    text: str
    model: str
    usage: Usage
    failure: StreamFailure | None = None


async def ask_aside(model: Model, request: Request) -> Aside:
    """The answer to a request. Cancelling drops the connection."""
    draft = Draft(request.model, frozenset())
    failure: StreamFailure | None = None
    stream = model.stream(request)
    try:
        async for event in stream:
            match event:
                case Delta():
                    draft.add(event)
                case BlockEnd():
                    draft.close(event)
                case MessageEnd():
                    break
                case StreamFailure():
                    failure = event
                    break
                case _:
                    draft.note(event)
    finally:
        await stream.aclose()
    return Aside(draft.message("").text, draft.model, draft.usage, failure)

"""
Drives a conversation: one prompt in, all its events out. Every front end and every sub-agent goes through here.

    async with aclosing(drive(conversation, message)) as events:
        async for event in events: ...
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import TypeAlias

from handrail.conversation.messages import UserMessage
from handrail.loop.events import LoopEvent
from handrail.loop.run import Run
from handrail.session.conversation import Conversation

Begin: TypeAlias = Callable[[UserMessage], Awaitable[Run | Iterable[LoopEvent]]]
"""What a prompt begins: a run, or the events of a command that needs none."""


async def drive(
    conversation: Conversation,
    message: UserMessage,
    *,
    begin: Begin | None = None,
    on_event: Callable[[LoopEvent], None] | None = None,
    on_end: Callable[[], Awaitable[None]] | None = None,
) -> AsyncGenerator[LoopEvent, None]:
    """Work on a prompt to its end; closing the generator stops the run and waits until nothing of it is left."""
    begun = conversation.run(message) if begin is None else await begin(message)
    if not isinstance(begun, Run):
        for each in begun:
            yield each
        return
    event: LoopEvent | None
    try:
        async for event in begun:
            while event is not None:
                if on_event is not None:
                    on_event(event)
                yield event
                event = begun.take()  # noqa: PLW2901  # what has happened meanwhile needs no wait
    finally:
        try:
            await begun.aclose()
        finally:  # also if this is cancelled: what the prompt was lent is taken back
            if on_end is not None:
                await on_end()

"""Drives a session with one prompt: to its end, and to that of the sub-agents that it leaves in the background."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from handrail.conversation.messages import UserMessage
from handrail.loop.events import LoopEvent, RunStarted
from handrail.session.session import Session


async def all_turns(
    session: Session, message: UserMessage, is_stopped: Callable[[], bool]
) -> AsyncGenerator[LoopEvent, None]:
    """The events of the prompt, and of a turn for each sub-agent that ends in the background; `is_stopped` ends it."""
    upcoming: UserMessage | None = message
    while upcoming is not None:
        async with aclosing(session.drive(upcoming, literal=upcoming is not message)) as events:
            async for event in events:
                if isinstance(event, RunStarted) and is_stopped():
                    session.conversation.interrupt()  # it was stopped before there was a run
                yield event
        upcoming = await session.background.next_notification(only_agents=True)
        if is_stopped():
            return

"""Sub-agents and tasks in the background of a conversation, and what wakes it when it is idle."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from handrail.builtin.services import ToolServices
from handrail.conversation.messages import UserMessage
from handrail.session.background import AGENTS, next_notification, stop_task, unheard_tasks
from handrail.session.conversation import Conversation
from handrail.session.parts import hears_of
from handrail.session.schedules import SessionSchedules

if TYPE_CHECKING:
    from handrail.session.agents.subagents import Subagents


class BackgroundWork:
    """The background work of a session, for the programs and people that drive it."""

    def __init__(
        self,
        agents: "Subagents",
        services: Callable[[], ToolServices],
        schedules: SessionSchedules,
        conversation: Conversation,
    ) -> None:
        self._agents = agents
        self._services = services
        self._schedules = schedules
        self._conversation = conversation

    async def stop_task(self, task_id: str) -> None:
        """End a background task, or a sub-agent; HandrailError if there is no such task."""
        if not self._agents.stop(task_id):
            await stop_task(self._services, task_id)

    def has_agents(self) -> bool:
        """Whether a sub-agent in the background is at work, or has ended and the model does not know it yet."""
        return any(task.kind in AGENTS for task in unheard_tasks(self._services))

    async def next_notification(self, *, only_agents: bool = False) -> UserMessage | None:
        """
        A message for the model that says which background work has ended, as soon as some has; None if none runs.

        It wakes an idle session: give it to `drive`. While a prompt runs, its requests tell of such ends themselves.
        """
        is_heard = partial(hears_of, self._agents.parts, "main")
        kinds = AGENTS if only_agents else ()
        return await next_notification(self._services, is_heard, self._conversation.messages, kinds=kinds)

    async def next_wake(self) -> UserMessage:
        """What wakes an idle conversation: a schedule that is due, or the end of work in the background."""
        due, ended = (
            asyncio.ensure_future(self._schedules.next_prompt()),
            asyncio.ensure_future(self.next_notification()),
        )
        try:
            await asyncio.wait((due, ended), return_when=asyncio.FIRST_COMPLETED)
            if not due.done() and ended.result() is None:  # nothing runs in the background
                await due
        finally:
            for each in (due, ended):
                each.cancel()
            await asyncio.wait((due, ended))
        found = [each.result() for each in (due, ended) if not each.cancelled()]
        return UserMessage(tuple(block for message in found if message for block in message.content))

"""The background tasks of a session as lines: which ones run, that one starts, that one ends."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from handrail.headless.delegated import task_ended_lines
from handrail.headless.wire import Line, system
from handrail.loop.events import LoopEvent, RunEnded
from handrail.session.background import TaskFacts, task_over, unheard_tasks
from handrail.session.session import Session
from handrail.tools.events import CallFinished


class TaskWatch:
    """Reports the tasks that the calls of a session start; `tell` sends a line, signed."""

    def __init__(self, session: Session, tell: Callable[[Line], Awaitable[None]]) -> None:
        self._session = session
        self._tell = tell
        self._seen: set[str] = set()
        self._running: dict[str, TaskFacts] = {}
        self._waiting: dict[str, asyncio.Task[None]] = {}

    async def on_event(self, event: LoopEvent) -> None:
        """After a call: report the tasks that it started, and from then on wait for their end."""
        if not isinstance(event, CallFinished):
            return
        for task in unheard_tasks(self._session.services):
            is_resumed = task.status == "running" and task.id not in self._running
            if task.id not in self._seen or is_resumed:
                self._seen.add(task.id)
                await self._report_start(task, event.outcome.use.id)

    async def _report_start(self, task: TaskFacts, call_id: str) -> None:
        about = {"task_id": task.id, "tool_use_id": call_id, "task_type": task.kind}
        self._running[task.id] = task
        if not task.subtype:  # a sub-agent tells of itself
            await self._tell(system("task_started", description=task.description, **about, is_backgrounded=True))
        await self._report_list()
        self._waiting[task.id] = asyncio.create_task(self._report_end(task.id, call_id))

    async def _report_end(self, task_id: str, call_id: str) -> None:
        task = await task_over(self._session.services, task_id)
        del self._running[task_id], self._waiting[task_id]
        if not task.subtype:
            more = {"tool_use_id": call_id}
            for line in task_ended_lines(task.id, task.status, task.output, task.description, more):
                await self._tell(line)
        await self._report_list()

    async def _report_list(self) -> None:
        tasks = [
            {"task_id": task.id, "task_type": task.kind, "description": task.description}
            for task in self._running.values()
        ]
        await self._tell(system("background_tasks_changed", tasks=tasks))

    async def follow(self, events: AsyncGenerator[LoopEvent, None]) -> AsyncGenerator[LoopEvent, None]:
        """The events of a session with one prompt. Its commands end with its last run, told before the result."""
        try:
            async with aclosing(events):
                async for event in events:
                    if isinstance(event, RunEnded) and not self._session.background.has_agents():
                        await self._stop_tasks()
                    yield event
                    await self.on_event(event)
        finally:
            await self.aclose()

    async def _stop_tasks(self) -> None:
        """Stop the tasks that still run, and report their end."""
        waiting = list(self._waiting.values())
        for task_id in list(self._running):
            await self._session.background.stop_task(task_id)
        await asyncio.gather(*waiting)

    async def aclose(self) -> None:
        """Report nothing more."""
        waiting = list(self._waiting.values())
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

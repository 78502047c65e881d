"""A sub-agent as a background task: it can be waited for and stopped, and its report is the output."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from handrail.builtin.services import ToolServices
from handrail.builtin.support.background_tasks import AGENT, BackgroundTask, TaskRequest, tasks_of
from handrail.processes.spawn import End
from handrail.session.agents.records import AgentRecord
from handrail.tools.delegation import AgentReport


class AgentWork:
    """The work of one sub-agent, from its launch to its report."""

    def __init__(self, stop: Callable[[], object]) -> None:
        self._stop = stop
        self._end: asyncio.Future[End] = asyncio.get_running_loop().create_future()

    def finish(self, report: AgentReport, output: Path) -> None:
        """It is over: its report goes into the file."""
        notes = (*(f"[It stopped early: {each}]" for each in (report.problem,) if each), *report.notes)
        with suppress(OSError):  # the folder of the session is gone, and so is every reader
            output.write_text("\n\n".join(filter(None, (report.text, *notes))), "utf-8")
        end = End(0 if report.status == "completed" else 1, "stopped" if report.status == "killed" else "")
        if not self._end.done():
            self._end.set_result(end)

    def poll(self) -> End | None:
        """How it ended, if it has."""
        return self._end.result() if self._end.done() else None

    async def wait(self) -> End:
        """How it ended; giving up waiting leaves it at work."""
        return await asyncio.shield(self._end)

    async def stop_and_wait(self) -> End:
        """Stop it, and wait until nothing of it runs."""
        self._stop()
        return await self.wait()


def add_task(services: ToolServices, entry: AgentRecord, call: str, prompt: str, work: AgentWork) -> BackgroundTask:
    """List the agent among the background tasks of its session."""
    request = TaskRequest(AGENT, prompt, entry.description, entry.parent, call, entry.kind, entry.name, entry.team)
    return tasks_of(services).add(entry.id, entry.cwd, request, work)

"""Sub-agents and background tasks as task lines: started, progress, ended."""

import time
from collections.abc import Iterator, Mapping

from handrail.conversation.blocks import ToolUse
from handrail.conversation.stream import Usage, UsageUpdate
from handrail.headless.wire import Line, assistant, system, tool_result
from handrail.loop.events import BlockComplete, MessageComplete
from handrail.tools.delegation import AgentNews
from handrail.tools.events import CallFinished, CallQueued
from handrail.tools.outcome import Outcome, Status

ENDINGS = {Status.OK: "completed", Status.CANCELLED: "killed", Status.DISCARDED: "killed"}
TOLD = {"killed": "stopped", "unknown": "stopped"}
"""How a notification names the end of a task that was stopped."""


class _Working:
    def __init__(self, task_id: str, description: str) -> None:
        self.task_id = task_id
        self.description = description
        self.began = time.monotonic()
        self.calls = 0
        self.tokens = 0
        self.used = Usage()

    def usage(self) -> Line:
        return {
            "total_tokens": self.tokens,
            "tool_uses": self.calls,
            "duration_ms": round((time.monotonic() - self.began) * 1000),
        }


class SubAgents:
    """The sub-agents at work, by their call. What they say and think is told only with `whole`."""

    def __init__(self, *, whole: bool = False) -> None:
        self.whole = whole
        self._open: dict[str, _Working] = {}

    def on_news(self, call_id: str, news: AgentNews) -> Iterator[Line]:
        """The lines for an event inside a sub-agent."""
        working = self._open.get(call_id)
        if working is None:
            working = self._open[call_id] = _Working(news.agent, news.message)
            about = {"tool_use_id": call_id, "task_type": "local_agent"}
            yield system("task_started", task_id=news.agent, description=news.message, **about)
        match news.event:
            case UsageUpdate(used):
                working.used = used
            case MessageComplete(usage=used):
                working.tokens += used.whole_input + used.whole_output
            case BlockComplete(block=block) if self.whole or isinstance(block, ToolUse):
                yield {**assistant(news.event, working.used), "parent_tool_use_id": call_id}
            case CallQueued(use=use):
                working.calls += 1
                yield system(
                    "task_progress",
                    task_id=working.task_id,
                    description=working.description,
                    tool_use_id=call_id,
                    usage=working.usage(),
                    last_tool_name=use.name,
                )
            case CallFinished(outcome=outcome):
                yield {**tool_result(outcome), "parent_tool_use_id": call_id}
            case _:
                pass

    def over(self, outcome: Outcome) -> Iterator[Line]:
        """The lines for the end of a call's sub-agent, if it had one."""
        working = self._open.pop(outcome.use.id, None)
        if working is not None:
            status = ENDINGS.get(outcome.status, "failed")
            more = {"tool_use_id": outcome.use.id, "usage": working.usage()}
            yield from task_ended_lines(working.task_id, status, "", working.description, more)


def task_ended_lines(
    task_id: str, status: str, output_file: str, summary: str, more: Mapping[str, object]
) -> Iterator[Line]:
    """The two lines that report the end of a task."""
    yield system("task_updated", task_id=task_id, patch={"status": status, "end_time": round(time.time() * 1000)})
    told = TOLD.get(status, status)
    yield system("task_notification", task_id=task_id, status=told, output_file=output_file, summary=summary, **more)

"""Sub-agents and background tasks as task lines: started, progress, ended."""

import time
from collections.abc import Iterator, Mapping

from handrail.conversation.blocks import ToolUse
from handrail.conversation.stream import Usage, UsageUpdate
from handrail.headless.wire import Line, assistant, system, tool_result
from handrail.loop.events import BlockComplete, MessageComplete
from handrail.tools.delegation import AgentNews, AgentReport
from handrail.tools.events import CallFinished, CallProgress, CallQueued
from handrail.tools.outcome import Outcome, Status

ENDINGS = {Status.OK: "completed", Status.CANCELLED: "killed", Status.DISCARDED: "killed"}
TOLD = {"killed": "stopped", "unknown": "stopped"}
"""How a notification names the end of a task that was stopped."""


class _Working:
    def __init__(self, task_id: str, description: str, *, background: bool) -> None:
        self.task_id = task_id
        self.description = description
        self.background = background
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
        """The lines for an event inside a sub-agent; the last of one in the background is its report."""
        working = self._open.get(call_id)
        if working is None:
            working = self._open[call_id] = _Working(news.agent, news.message, background=news.background)
            about = {"tool_use_id": call_id, "task_type": "local_agent"}
            yield system("task_started", task_id=news.agent, description=news.message, **about, **started_line(news))
        about_it = {
            "parent_tool_use_id": call_id,
            "agent_id": news.agent,
            "subagent_type": news.kind,
            "task_description": news.message,
        }
        match news.event:
            case UsageUpdate(used):
                working.used = used
            case MessageComplete(usage=used):
                working.tokens += used.whole_input + used.whole_output
            case BlockComplete(block=block) if self.whole or isinstance(block, ToolUse):
                yield {**assistant(news.event, working.used), **about_it}
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
            case CallProgress(use=use, progress=AgentNews() as inner):
                yield from self.on_news(use.id, inner)
            case CallFinished(outcome=outcome):
                yield from self.over(outcome)
                yield {**tool_result(outcome), **about_it}
            case AgentReport() as report:
                del self._open[call_id]
                more = {"tool_use_id": call_id, "usage": working.usage()}
                yield from task_ended_lines(report.agent_id, report.status, report.output, news.message, more)
            case _:
                pass

    def over(self, outcome: Outcome) -> Iterator[Line]:
        """The lines for the end of a call's sub-agent, if it had one that the call waited for."""
        working = self._open.get(outcome.use.id)
        if working is not None and not working.background:
            del self._open[outcome.use.id]
            status = ENDINGS.get(outcome.status, "failed")
            more = {"tool_use_id": outcome.use.id, "usage": working.usage()}
            yield from task_ended_lines(working.task_id, status, "", working.description, more)


def started_line(news: AgentNews) -> Line:
    """What a line says of a sub-agent that begins."""
    return {
        "subagent_type": news.kind,
        "is_backgrounded": news.background,
        "spawn_depth": news.depth,
        "prompt": news.prompt,
        **({"color": news.color} if news.color else {}),
    }


def task_ended_lines(
    task_id: str, status: str, output_file: str, summary: str, more: Mapping[str, object]
) -> Iterator[Line]:
    """The two lines that report the end of a task."""
    yield system("task_updated", task_id=task_id, patch={"status": status, "end_time": round(time.time() * 1000)})
    told = TOLD.get(status, status)
    yield system("task_notification", task_id=task_id, status=told, output_file=output_file, summary=summary, **more)

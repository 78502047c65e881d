"""Turns loop events into JSON lines, in the format that agent clients already read."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from handrail import __version__
from handrail.conversation.messages import UserMessage
from handrail.conversation.stream import MessageStart, StreamRetry, Usage, UsageUpdate
from handrail.headless.delegated import SubAgents
from handrail.headless.raw import RawEvents
from handrail.headless.wire import Line, assistant, model_failure, result, system, tool_result, user
from handrail.hooks.news import HookNews, news_of
from handrail.loop.events import (
    AnswerDiscarded,
    BlockComplete,
    Compacted,
    ConversationReset,
    LoopEvent,
    MessageAdded,
    Notice,
    QueuedMessageTaken,
    RunEnded,
    RunStarted,
    Summarising,
)
from handrail.loop.windows import window_of
from handrail.tools.delegation import AgentNews
from handrail.tools.events import CallFinished, CallProgress
from handrail.tools.outcome import Outcome, Status
from handrail.transcripts.writer import TranscriptWriter, new_id

ALWAYS_TOLD = frozenset({"SessionStart", "Setup"})
"""Hooks of these events are reported even without `hook_events`."""


def fresh(_block: object) -> str:
    """A new id, for conversations without a transcript."""
    return new_id()


def transcript_ids(writer: TranscriptWriter | None) -> Callable[[object], str]:
    """Gives the id of a block or result in the transcript, for resuming from it; else a new one."""
    if writer is None:
        return fresh
    ids = writer.ids = dict[int, str]()
    return lambda block: ids.pop(id(block), "") or new_id()


class Lines:
    """
    Turns the events of a conversation into lines. Every line carries the session and an id of its own.

    `facts` gives more fields of `init` lines: mode, servers, commands, sub-agents. With `whole_agents`, the text and
    thinking of sub-agents is reported too, not only their calls. `uuid_of` gives the id of a block or a result,
    `window` the size of a model's window, `mode` the permission mode.
    """

    def __init__(
        self,
        session_id: str,
        *,
        partial: bool = False,
        hook_events: bool = False,
        whole_agents: bool = False,
        facts: Callable[[], Mapping[str, Any]] = dict,
        uuid_of: Callable[[object], str] = fresh,
        window: Callable[[str], int] = window_of,
        mode: Callable[[], str] = str,
    ) -> None:
        self.session_id = session_id
        self._raw = RawEvents() if partial else None
        self._hook_events = hook_events
        self._facts = facts
        self._uuid_of = uuid_of
        self._window = window
        self._mode = mode
        self._told_mode = ""
        self.agents = SubAgents(whole=whole_agents)
        self._usage = Usage()

    def of(self, event: LoopEvent) -> Iterator[Line]:
        """The lines for an event; none for events that clients do not need."""
        return map(self.sign, self._of(event))

    def sign(self, line: Line) -> Line:
        """The line with the session and an id of its own."""
        return {"uuid": new_id(), **line, "session_id": self.session_id}

    def user_line(self, message: UserMessage, uuid: str) -> Line:
        """A prompt, echoed to the client that sent it."""
        return {**user(message.content), "session_id": self.session_id, "uuid": uuid, "isReplay": True}

    def _of(self, event: LoopEvent) -> Iterator[Line]:
        match event:
            case RunStarted():
                self._told_mode = self._mode()
                yield self._init(event)
            case MessageStart() | UsageUpdate():
                self._usage = event.usage if isinstance(event, UsageUpdate) else Usage()
            case BlockComplete():
                yield {**assistant(event, self._usage), "uuid": self._uuid_of(event.block)}
            case CallFinished(outcome=outcome):
                yield from self._result_lines(outcome)
                yield from self.mode_lines()
            case CallProgress(use=use, progress=AgentNews() as news):
                yield from self.agents.on_news(use.id, news)
            case RunEnded():
                if event.failure is not None and event.is_error:
                    yield model_failure(event.failure, event.report)
                yield result(event, self._window)
            case _:
                yield from self._aside(event)
        if self._raw is not None:
            for raw in self._raw.of(event):
                timing = {"ttft_ms": self._raw.waited} if raw["type"] == "message_start" else {}
                yield {"type": "stream_event", "event": raw, "parent_tool_use_id": None, **timing}

    def mode_lines(self) -> Iterator[Line]:
        """The line that says which permission mode is in force, if it is not the one that was told last."""
        if (mode := self._mode()) != self._told_mode:
            self._told_mode = mode
            yield system("status", status=None, permissionMode=mode)

    def _aside(self, event: LoopEvent) -> Iterator[Line]:
        match event:
            case QueuedMessageTaken(message) | MessageAdded(UserMessage() as message):
                yield user(message.content)
            case Summarising(on):
                yield system("status", status="compacting" if on else None)
            case Compacted() | StreamRetry() | AnswerDiscarded():
                yield _incident(event)
            case ConversationReset(session_id=name):
                self.session_id = name
                yield system("conversation_reset")
            case Notice(text=text):
                yield system("informational", text=text)
            case _:
                yield from self._hook(news_of(event))

    def _result_lines(self, outcome: Outcome) -> Iterator[Line]:
        if outcome.status is Status.DEFERRED:
            return  # the result of the run contains it
        yield from self.agents.over(outcome)
        if outcome.status is Status.DENIED:
            reason = outcome.decision.reason if outcome.decision else outcome.result.text
            yield system(
                "permission_denied", tool_name=outcome.use.name, tool_use_id=outcome.use.id, decision_reason=reason
            )
        yield {**tool_result(outcome), "uuid": self._uuid_of(outcome.result)}

    def _hook(self, news: HookNews | None) -> Iterator[Line]:
        """Messages of hooks for people are always reported; that a hook ran, mostly on request."""
        if news is None:
            return
        about = {"hook_id": news.id, "hook_name": news.name, "hook_event": news.event}
        wanted = self._hook_events or news.event in ALWAYS_TOLD
        if news.stage == "message":
            yield system("informational", text=news.message, hook_event=news.event)
        elif wanted and news.stage == "started":
            yield system("hook_started", **about, status_message=news.message)
        elif wanted:
            outcome = {"exit_code": news.exit_code, "outcome": news.outcome}
            said = {"output": news.stdout + news.stderr, "stdout": news.stdout, "stderr": news.stderr}
            yield system("hook_response", **about, **said, **outcome)

    def _init(self, event: RunStarted) -> Line:
        return {
            **system("init"),
            "cwd": str(event.cwd),
            "tools": list(event.tools),
            "mcp_servers": [],
            "model": event.model,
            "permissionMode": "default",
            "slash_commands": [],
            "agents": [],
            "skills": [],
            "plugins": [],
            "output_style": "default",
            "apiKeySource": "none",
            "handrail_version": __version__,
            **self._facts(),
        }


def _incident(event: Compacted | StreamRetry | AnswerDiscarded) -> Line:
    match event:
        case Compacted():
            about = {"trigger": event.trigger, "pre_tokens": event.tokens_before}
            return system("compact_boundary", compact_metadata=about, kind=event.kind, note=event.note)
        case StreamRetry(failure=failure):
            return system(
                "api_retry",
                attempt=max(event.attempt - 1, 1),
                max_retries=max(event.attempts - 1, 0),
                retry_delay_ms=round(event.delay * 1000),
                error_status=failure.status,
                error=failure.message,
            )
        case AnswerDiscarded(failure=failure):
            return system("informational", text=f"the answer broke off and is asked for again: {failure.message}")

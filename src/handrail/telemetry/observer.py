"""
Turns runs into spans and metrics, as they happen.

    invoke_agent          one prompt of an agent; that of a sub-agent begins a trace of its own, with a link to its call
      chat                one request to the model
      execute_tool        one call, with the seconds of its stages and an event for its decision
        permission_wait   how long a person or a handler was asked
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from opentelemetry.sdk.trace import Event
from opentelemetry.trace import Link, SpanContext, SpanKind

from handrail.conversation.blocks import ToolUse
from handrail.loop.events import (
    AnswerDiscarded,
    Compacted,
    LoopEvent,
    MessageComplete,
    RequestSent,
    RunEnded,
    RunStarted,
)
from handrail.processes.trace_context import trace_parent
from handrail.telemetry import conventions as names
from handrail.telemetry.attributes import (
    FAILED,
    Contents,
    call_attributes,
    decision_attributes,
    error_type,
    safe,
    usage_attributes,
)
from handrail.telemetry.pipeline import SAMPLED, TelemetryPipeline
from handrail.telemetry.trace_parent import read_trace_parent, write_trace_parent
from handrail.tools.context import RunContext
from handrail.tools.outcome import Outcome, Timings
from handrail.tools.pool import AnyTool

LEFT = "left"
"""The outcome of a run whose reader left before its end."""


@dataclass
class OpenRun:
    """A run of an agent that has begun."""

    name: str
    context: SpanContext
    parent: SpanContext | None
    links: tuple[Link, ...]
    began: int
    before: str
    """The trace context that held before it."""
    attributes: dict[str, object]
    events: list[Event] = field(default_factory=list)
    tokens: dict[str, int] = field(default_factory=dict)
    chat: "OpenChat | None" = None


@dataclass
class OpenChat:
    """A request that was sent."""

    model: str
    began: int
    attributes: dict[str, object]


@dataclass
class OpenCall:
    """A call that has started. One without a run, such as that of a gateway's client, may begin a trace."""

    context: SpanContext
    parent: SpanContext | None
    started: int = 0
    asked: int = 0


class SessionTelemetry:
    """The spans and metrics of one session: an observer of its runs and calls."""

    def __init__(
        self,
        pipeline: TelemetryPipeline,
        contents: Contents,
        on_warning: Callable[[str], None],
        *,
        session_id: str,
        provider: str,
        outer: str,
        collector: str,
    ) -> None:
        self._pipeline = pipeline
        self._contents = contents
        self._session_id = session_id
        self._provider = provider or "unknown"
        self._outer = outer
        """The trace context that this program was started with."""
        self._collector = collector
        self._on_warning = on_warning
        self._runs: dict[str, OpenRun] = {}
        self._calls: dict[tuple[str, str], OpenCall] = {}

    # Runs

    def run_begins(self, context: RunContext) -> None:
        """Open the span of an agent, and pass its context on to everything that it starts."""
        agent, before = context.agent, trace_parent.get()
        title = "handrail" if agent.type == "main" else agent.type
        name = safe(f"{names.INVOKE_AGENT} {title}")
        outer = read_trace_parent(before or self._outer)
        links: tuple[Link, ...] = ()
        parent = outer
        if not agent.is_main:
            links, parent = ((Link(outer),) if outer else ()), None
        own = self._pipeline.root_context(name, parent)
        if links and own.trace_flags != links[0].context.trace_flags:
            own = SpanContext(own.trace_id, own.span_id, is_remote=False, trace_flags=links[0].context.trace_flags)
        attributes: dict[str, object] = {
            names.OPERATION: names.INVOKE_AGENT,
            names.PROVIDER: self._provider,
            names.AGENT_ID: safe(agent.id),
            names.AGENT_NAME: safe(title),
            names.CONVERSATION: self._session_id,
        }
        self._runs[agent.id] = OpenRun(name, own, parent, links, time.time_ns(), before, attributes)
        trace_parent.set(write_trace_parent(own))

    def run_left(self, context: RunContext) -> None:
        """The reader left before the end."""
        self._end_run(context, LEFT, is_error=True)

    def on_event(self, event: LoopEvent, context: RunContext) -> None:
        """Take what a run emits."""
        run = self._runs.get(context.agent.id)
        if run is None:
            return
        match event:
            case RunStarted():
                run.attributes[names.REQUEST_MODEL] = safe(event.model)
                run.attributes |= self._contents.prompt(event.prompt)
            case RequestSent():
                self._end_chat(run, {}, "unanswered")
                self._begin_chat(run, event)
            case MessageComplete():
                self._complete_chat(run, event)
            case AnswerDiscarded():
                self._end_chat(run, {}, event.failure.kind)
            case Compacted():
                run.events.append(Event(names.COMPACTED, {"kind": event.kind}, time.time_ns()))
            case RunEnded():
                self._end_chat(run, {}, event.failure.kind if event.failure else event.why.value)
                run.attributes[names.TURNS] = event.turns
                if event.dollars is not None:
                    run.attributes[names.DOLLARS] = event.dollars
                self._end_run(context, event.why.value, is_error=event.is_error)

    def _end_run(self, context: RunContext, outcome: str, *, is_error: bool) -> None:
        run = self._runs.pop(context.agent.id, None)
        if run is None:
            return
        self._end_chat(run, {}, outcome)
        run.attributes |= {names.OUTCOME: outcome, **run.tokens}
        if is_error:
            run.attributes[names.ERROR_TYPE] = outcome
        self._pipeline.emit(
            run.name,
            run.context,
            run.parent,
            (run.began, time.time_ns()),
            run.attributes,
            events=run.events,
            links=run.links,
            error=outcome if is_error else "",
        )
        trace_parent.set(run.before)

    # Requests

    def _begin_chat(self, run: OpenRun, event: RequestSent) -> None:
        run.chat = OpenChat(
            safe(event.request.model),
            time.time_ns(),
            {
                names.OPERATION: names.CHAT,
                names.PROVIDER: self._provider,
                names.REQUEST_MODEL: safe(event.request.model),
                names.CONVERSATION: self._session_id,
                names.TURN: event.turn,
                names.ATTEMPT: event.attempt,
                names.WHY: event.why.value,
            },
        )

    def _complete_chat(self, run: OpenRun, event: MessageComplete) -> None:
        message, usage = event.message, usage_attributes(event.usage)
        about: dict[str, object] = {
            names.RESPONSE_ID: safe(event.message_id),
            names.RESPONSE_MODEL: safe(message.model),
            names.FINISH_REASONS: [safe(message.stop_reason)],
            **usage,
            **self._contents.answer(message),
        }
        if event.dollars is not None:
            about[names.DOLLARS] = event.dollars
        for name, count in usage.items():
            if isinstance(count, int):
                run.tokens[name] = run.tokens.get(name, 0) + count
        self._end_chat(run, about, "")

    def _end_chat(self, run: OpenRun, about: dict[str, object], error: str) -> None:
        chat, run.chat = run.chat, None
        if chat is None:
            return
        ended = time.time_ns()
        attributes = {**chat.attributes, **about}
        if error:
            attributes[names.ERROR_TYPE] = error
        own = self._pipeline.new_context(run.context)
        name, times = f"{names.CHAT} {chat.model}", (chat.began, ended)
        self._pipeline.emit(name, own, run.context, times, attributes, kind=SpanKind.CLIENT, error=error)
        self._measure_chat(chat, about, error, (ended - chat.began) / 1e9)

    def _measure_chat(self, chat: OpenChat, about: dict[str, object], error: str, seconds: float) -> None:
        if (meters := self._pipeline.meters) is None:
            return
        labels = {names.OPERATION: names.CHAT, names.PROVIDER: self._provider, names.REQUEST_MODEL: chat.model}
        meters.operations.record(seconds, {**labels, names.ERROR_TYPE: error} if error else labels)
        for name, kind in ((names.INPUT_TOKENS, "input"), (names.OUTPUT_TOKENS, "output")):
            count = about.get(name)
            if isinstance(count, int):
                meters.tokens.record(count, {**labels, names.TOKEN_TYPE: kind})

    # Calls

    def call_started(self, use: ToolUse, run: RunContext) -> None:
        """Choose the context of the call's span, and pass it on to what the call starts."""
        call = self._calls[run.agent.id, use.id] = self._new_call(run)
        call.started = time.time_ns()
        if (meters := self._pipeline.meters) is not None:
            meters.running += 1
        trace_parent.set(write_trace_parent(call.context))

    def _new_call(self, run: RunContext) -> OpenCall:
        open_run = self._runs.get(run.agent.id)
        if open_run is not None:
            return OpenCall(self._pipeline.new_context(open_run.context), open_run.context)
        outer = read_trace_parent(trace_parent.get() or self._outer)
        return OpenCall(self._pipeline.root_context(names.EXECUTE_TOOL, outer), outer)

    def question_asked(self, use: ToolUse, run: RunContext) -> None:
        """Remember when a question was asked."""
        if (call := self._calls.get((run.agent.id, use.id))) is not None:
            call.asked = time.time_ns()

    def call_ended(self, outcome: Outcome, tool: AnyTool | None, run: RunContext) -> None:
        """Send the span of a call."""
        call = self._calls.pop((run.agent.id, outcome.use.id), None)
        if (meters := self._pipeline.meters) is not None:
            meters.running -= call is not None
            meters.add_call(outcome.timings.ran, "unknown" if tool is None else safe(tool.name), outcome.status.value)
        call = call or self._new_call(run)  # it ended before it started
        if call.context.trace_flags != SAMPLED:
            return
        ended = time.time_ns()
        began = began_at(call.started, ended, outcome.timings)
        attributes = call_attributes(outcome, tool)
        attributes[names.CONVERSATION] = self._session_id
        events: tuple[Event, ...] = ()
        if outcome.decision is not None:
            about = decision_attributes(outcome.decision, self._contents)
            events = (Event(names.DECISION, about, decided_at(began, outcome.timings)),)  # type: ignore[arg-type]
        if call.asked:
            self._emit_wait(call, outcome, (began, ended))
        self._pipeline.emit(
            safe(f"{names.EXECUTE_TOOL} {outcome.use.name}"),
            call.context,
            call.parent,
            (began, ended),
            {**attributes, **self._contents.call(outcome)} if self._contents.on else attributes,
            events=events,
            error=error_type(outcome) if outcome.status in FAILED else "",
        )

    def _emit_wait(self, call: OpenCall, outcome: Outcome, times: tuple[int, int]) -> None:
        began, ended = times
        answered = min(max(decided_at(began, outcome.timings), call.asked), ended)
        verdict = outcome.decision.verdict.value if outcome.decision else "none"
        about = {names.VERDICT: verdict, names.TOOL_NAME: safe(outcome.use.name)}
        own = self._pipeline.new_context(call.context)
        self._pipeline.emit(names.PERMISSION_WAIT, own, call.context, (call.asked, answered), about)

    # End

    async def aclose(self) -> None:
        """Send what waits; say so if it did not arrive."""
        for agent in [*self._runs]:
            run = self._runs.pop(agent)
            self._pipeline.emit(run.name, run.context, run.parent, (run.began, time.time_ns()), run.attributes)
        if not await asyncio.to_thread(self._pipeline.flush):
            self._on_warning(
                f"The last spans and metrics did not reach the collector at {self._collector}. "
                "Check that it runs there, or change the address in the OTEL variables."
            )


def began_at(started: int, ended: int, times: Timings) -> int:
    """When a call was queued; counted from its start, if it had one, so that nothing of it is noted to be earlier."""
    if started:
        return started - int(times.queued * 1e9)
    return ended - int((times.queued + times.validated + times.decided + times.ran + times.fitted) * 1e9)


def decided_at(began: int, times: Timings) -> int:
    """When it was decided."""
    return began + int((times.queued + times.validated + times.decided) * 1e9)

"""
Runs the tool calls of an answer while the model is still writing it.

    QUEUED -> EXECUTING -> COMPLETED -> YIELDED
    QUEUED -> COMPLETED                  (unknown, broken, or stopped before it began)

The queue and its schedule decide when a call may start. Results leave in the order of the calls, whatever order they
finish in; events leave at once, on a channel of their own.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextvars import copy_context
from types import TracebackType
from typing import Self

from handrail.conversation.blocks import BrokenToolUse, ToolUse
from handrail.conversation.transcript import Transcript
from handrail.dispatch.answer_calls import AnswerCalls
from handrail.dispatch.call import AddTools, CallHost, CallPipeline
from handrail.dispatch.call_events import CallEvents
from handrail.dispatch.call_state import Call, CallState
from handrail.dispatch.channel import Channel
from handrail.dispatch.footprint import WRITES_WORLD, footprint
from handrail.dispatch.gate import Rails
from handrail.dispatch.outcomes import (
    crash_outcome,
    disabled_tool_outcome,
    ending_facts,
    error_outcome,
    rejected_outcome,
    repeat_outcome,
    stopped_outcome,
    unknown_tool_outcome,
)
from handrail.dispatch.queue import CallQueue
from handrail.dispatch.results import ResultStore
from handrail.dispatch.retry_journal import RetryJournal
from handrail.dispatch.schedule import Scheduling
from handrail.errors import HandrailError
from handrail.tools.abort import AbortReason
from handrail.tools.context import ProgressCallback, RunContext
from handrail.tools.events import CallEvent
from handrail.tools.flags import abort, flag, is_enabled, parse
from handrail.tools.outcome import REAL_FAILURES, Cause, Outcome, Status
from handrail.tools.pool import AnyTool, Pool
from handrail.tools.request import CallRequest

DEFAULT_SCHEDULING = Scheduling()
DEFAULT_RAILS = Rails()


def _activate_nothing(_names: Iterable[str]) -> None:
    """For pools without a catalog."""


def _add_nothing(_tools: Sequence[AnyTool]) -> None:
    raise HandrailError("no tools can be added to this pool, because it has no catalog. Run the call in an Agent")


class ToolExecutor:
    """
    Runs the calls of one answer. Use it as `async with`; on exit, all its calls have ended.

    A blocking function cannot be stopped from outside: `ctx.abort` tells it to stop.
    """

    def __init__(
        self,
        pool: Pool,
        run: RunContext,
        store: ResultStore,
        *,
        rails: Rails = DEFAULT_RAILS,
        scheduling: Scheduling = DEFAULT_SCHEDULING,
        journal: RetryJournal | None = None,
        activate: Callable[[Iterable[str]], None] = _activate_nothing,
        add_tools: AddTools = _add_nothing,
        transcript: Transcript | None = None,
        defers: bool = False,
    ) -> None:
        self.run = run
        """The context as the calls so far have left it."""
        self._loop = asyncio.get_running_loop()
        self._events = CallEvents()
        self._calls = AnswerCalls(deferrable=defers)
        host = CallHost(
            self._loop.time,
            self._events.put_progress,
            self._calls.can_defer,
            self._calls.wait_until_whole,
            add_tools,
            transcript,
        )
        self._pipeline = CallPipeline(pool, rails, store, activate, host)
        self._observer = rails.observer
        self._sibling_errors = scheduling.sibling_errors
        self._journal = journal
        self._transcript = transcript
        self._queue = CallQueue(scheduling)
        self._executing: dict[int, Call] = {}
        self._open = False
        self._interrupt: AbortReason | None = None
        self._culprit: Call | None = None
        self._signal = run.abort.child()

    # What the loop does

    async def __aenter__(self) -> Self:
        self._open = True
        self._context = copy_context()
        self._signal.listen(self.interrupt)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """
        Stop everything and wait until it has stopped; safe from any task, any number of times.

        Cancelling the wait does not end it early: nothing of this executor may outlive it.
        """
        self._open = False
        self._signal.release()
        unfinished = self._calls.unfinished_calls()
        try:
            if unfinished:
                self._stop([call for call in unfinished if not call.stop_reason], AbortReason.USER)
                await self._wait_for_tasks()
        finally:
            self._events.close()

    async def _wait_for_tasks(self) -> None:
        cancelled: asyncio.CancelledError | None = None
        here = asyncio.current_task()
        while tasks := [call.task for call in self._executing.values() if call.task and call.task is not here]:
            try:
                await asyncio.wait(tasks)
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled:
            raise cancelled

    def add(self, use: ToolUse | BrokenToolUse, *, was_deferred: bool = False) -> None:
        """
        Add a complete tool_use block of the answer. The call starts now, later or never, and always gets an outcome.

        `was_deferred`: a hook put the call off in an earlier run.
        """
        whole = use if isinstance(use, ToolUse) else ToolUse(use.id, use.name, {})
        call = self._new_call(whole)
        call.was_deferred = was_deferred
        if isinstance(use, BrokenToolUse):
            self._complete(call, rejected_outcome(whole, Cause.INCOMPLETE, f"{use.name} was not run: {use.problem}"))
            return
        call.tool = self._pipeline.pool.find(use.name)
        self._queue_call(call)

    def _new_call(self, use: ToolUse) -> Call:
        if not self._open:
            raise HandrailError(f"{use.name!r} ({use.id}) was added to an executor that is not open. Use `async with`.")
        call = self._calls.add(use)
        self._events.put_queued(call)
        return call

    def _queue_call(self, call: Call) -> None:
        use, tool = call.use, call.tool
        if tool is None:
            servers = self.run.options.mcp_servers()
            names = [listed.name for listed in self._pipeline.pool.listed]  # an alias would be a strange hint
            self._complete(call, unknown_tool_outcome(use, names, servers))
            return
        if not is_enabled(tool):
            self._complete(call, disabled_tool_outcome(use))
            return
        call.args, call.problem = parse(tool, use.input)
        call.read_only = call.problem is None and flag(tool.is_read_only, call.args)
        if self._interrupt or self._culprit:
            self._catch_up(call)
            if call.stop_reason:
                self._complete(call, self._stop_outcome(call))
                return
        self._queue.add(call)
        self._pump()

    async def execute(
        self, use: ToolUse, *, tool: AnyTool | None = None, on_progress: ProgressCallback | None = None
    ) -> Outcome:
        """
        Run a call that is not part of an answer, in the context of the caller; of this tool, or of one of the pool.

        It waits for the other calls as those of an answer do, but however it ends, it stops none of them. Cancelling it
        stops the call, and waits until the call has stopped.
        """
        call = self._new_call(use)
        call.in_answer, call.context, call.on_progress = False, copy_context(), on_progress
        call.tool = tool or self._pipeline.pool.find(use.name)
        self._queue_call(call)
        return await self._calls.outcome_of(call, lambda: self._stop_one(call))

    def use_pool(self, pool: Pool) -> None:
        """Take the tools of later calls from this pool."""
        self._pipeline.pool = pool

    def finish(self) -> None:
        """The answer is complete: calls that were held back may start."""
        self._calls.finish()
        self._queue.release()
        self._pump()

    def discard(self) -> None:
        """Discard the answer: nothing more starts or leaves. Calls that may have had effects go into the journal."""
        if self._calls.is_discarded:
            return
        self._calls.discard()
        for call in self._calls:
            if self._journal is None or call.tool is None:
                continue
            if call.is_repeat:  # this answer is given up too, and the next may ask for it again
                self._journal.record(call.tool.name, call.use.input, call.before)
            elif call.began and not call.read_only:
                self._journal.record(call.tool.name, call.use.input, call.outcome)
        self.interrupt(AbortReason.DISCARDED)

    def interrupt(self, reason: AbortReason) -> None:
        """Stop all calls; for a new message of the user, only those that give way to it."""
        if self._interrupt is None or reason.outweighs(self._interrupt):
            self._interrupt = reason
        self._stop([call for call in self._calls.unfinished_calls() if _gives_way(call, reason)], reason)
        self._pump()

    # What front ends see

    def ready(self) -> Iterator[Outcome]:
        """Outcomes that can leave now, in the order of the calls."""
        while outcome := self._calls.next_ready():
            yield outcome

    async def rest(self) -> AsyncIterator[Outcome]:
        """Finish the answer, and yield all remaining outcomes in order."""
        self.finish()
        while True:
            while outcome := self._calls.next_ready():
                yield outcome
            if self._calls.is_over:
                return
            await self._calls.wait()

    @property
    def events(self) -> Channel[CallEvent]:
        """What happens from now on, for one reader."""
        return self._events.channel

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """How the calls ended so far, in the order of the calls; complete once the executor is left."""
        return tuple(call.outcome for call in self._calls if call.outcome)

    @property
    def in_progress(self) -> frozenset[str]:
        """The ids of running calls."""
        return frozenset(call.use.id for call in self._executing.values())

    # How calls start

    def _pump(self) -> None:
        """Start all calls that may start."""
        while call := self._queue.start_next(self.run):
            if call.resume is None:
                self._start(call)
            elif not call.resume.done():
                call.resume.set_result(None)

    def _start(self, call: Call) -> None:
        assert call.tool is not None
        call.move(CallState.EXECUTING)
        self._executing[call.number] = call
        self._events.put_started(call)
        if call.problem:
            self._complete(call, self._pipeline.invalid_input(call.use, call.tool, call.problem))
            return
        if self._journal:
            call.is_repeat, call.before = self._journal.claim(call.tool.name, call.use.input)
            if call.is_repeat:
                self._complete(call, repeat_outcome(call.use, call.summary, call.before))
                return
        # another call may have made room for it: it runs in the context of the executor, or in its own
        context = call.context or self._context.copy()
        call.task = self._loop.create_task(self._run(call), name=call.use.name, context=context)

    async def _run(self, call: Call) -> None:
        call.entered = True
        if self._observer is not None:
            self._observer.call_started(call.use, self.run)
        try:
            if call.stop_reason:
                outcome = self._stop_outcome(call)
            else:
                outcome = await self._pipeline.run(call, self.run, self._reschedule)
        except asyncio.CancelledError as error:
            outcome = self._stop_outcome(call) if _is_cancelled() else crash_outcome(call.use, error, call.timings)
        except BaseException as error:
            # an interpreter that is going down still leaves no call without an outcome
            self._complete(call, crash_outcome(call.use, error, call.timings))
            self._pump()
            raise
        self._complete(call, outcome)
        self._pump()

    async def _reschedule(self, call: Call, changed: CallRequest) -> bool:
        """Check that a changed input stays within the call's footprint, or schedule the call again and wait."""
        call.args, call.read_only, call.access = changed.args, changed.read_only, changed.access
        later: list[Call] = []
        if not call.footprint.covers(footprint(changed.access, self.run.cwd)):
            later = self._calls.after(call)
            if any(other.task for other in later):
                return False
            call.footprint = WRITES_WORLD
        elif call.read_only or not self._queue.holding:
            return True
        call.resume = self._loop.create_future()
        self._queue.widen(call, later)
        self._pump()
        await call.resume
        call.resume = None
        return True

    # How calls end

    def _complete(self, call: Call, outcome: Outcome) -> None:
        if call.state is CallState.EXECUTING:
            self._events.take_from_threads()  # since Python 3.14 the end of a thread may overtake what it reported
            del self._executing[call.number]
            self._queue.finish(call)
        if outcome.output is not None and outcome.output.context_change is not None:
            outcome = self._change_context(call, outcome)
        self._calls.complete(call, outcome)
        if self._transcript is not None:
            if outcome.status is Status.DEFERRED:
                self._transcript.defer_call(call.use, outcome.result)
            else:
                self._transcript.end_call(outcome.result, ending_facts(outcome))
        if self._observer is not None:
            self._observer.call_ended(outcome, call.tool, self.run)
        self._events.put_finished(call, outcome)
        if not call.in_answer:
            return
        if outcome.status is Status.ERROR and _really_failed(outcome):
            self._cancel_siblings(call)
        if outcome.status is Status.DENIED and outcome.decision and outcome.decision.interrupt:
            self.interrupt(AbortReason.USER)
        if outcome.stop is not None:
            self.interrupt(AbortReason.HOOK)

    def _change_context(self, call: Call, outcome: Outcome) -> Outcome:
        """Change the context, but only for calls that ran alone: no other call was using it."""
        if not call.alone or call.footprint.group:
            return outcome
        before = self.run.cwd
        self.run, problem = self._pipeline.change_context(call, outcome, self.run)
        if self._transcript is not None and self.run.cwd != before:
            self._transcript.change_folder(str(self.run.cwd))
        return error_outcome(call.use, Cause.CRASHED, problem, outcome.timings) if problem else outcome

    def _cancel_siblings(self, call: Call) -> None:
        if self._sibling_errors == "isolate" or call.tool is None or not call.tool.error_cancels_siblings:
            return
        if self._culprit and self._culprit.number <= call.number:
            return  # what this one could cancel, that one did
        self._culprit = call
        others = [other for other in self._calls.unfinished_calls() if self._falls_with(other, call)]
        self._stop(others, AbortReason.SIBLING, blame=call.summary)

    def _falls_with(self, other: Call, culprit: Call) -> bool:
        return self._sibling_errors == "all" or (other.number > culprit.number and not other.read_only)

    def _catch_up(self, call: Call) -> None:
        """Apply earlier interrupts and failures to a new call."""
        if self._interrupt and _gives_way(call, self._interrupt):
            call.stop(self._interrupt)
        if self._culprit and self._falls_with(call, self._culprit):
            call.stop(AbortReason.SIBLING, self._culprit.summary)

    def _stop(self, calls: list[Call], reason: AbortReason, *, blame: str = "") -> None:
        """End queued calls now and running ones as soon as they stop. Of several reasons the strongest is reported."""
        queued = [call for call in calls if call.state is CallState.QUEUED]
        if queued:
            self._queue.drop(queued)
        for call in calls:
            first = call.stop_reason is None
            call.stop(reason, blame)
            if call.state is CallState.QUEUED:
                self._complete(call, self._stop_outcome(call))
            elif first:  # only once: a call that cleans up after its cancellation is not cancelled again
                abort(call.abort, reason)
                if call.task and call.entered:
                    call.task.cancel()

    def _stop_one(self, call: Call) -> None:
        self._stop([call], AbortReason.USER)
        self._pump()

    def _stop_outcome(self, call: Call) -> Outcome:
        reason = call.stop_reason or AbortReason.USER  # without a reason of ours, the task itself was cancelled
        call.marks.append(self._loop.time())
        started, left = call.began, call.left
        return stopped_outcome(
            call.use, call.summary, reason, call.timings, started=started, blame=call.blame, left=left
        )


def _is_cancelled() -> bool:
    """Whether the running task was cancelled, and not merely raises as if it were."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _gives_way(call: Call, reason: AbortReason) -> bool:
    return reason is not AbortReason.SUBMIT or call.stops_on_submit


def _really_failed(outcome: Outcome) -> bool:
    return outcome.cause in REAL_FAILURES or outcome.cause is Cause.DONE_BEFORE

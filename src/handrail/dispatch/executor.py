"""
Runs tool calls while the model is still talking.

    QUEUED -> EXECUTING -> COMPLETED -> YIELDED
    QUEUED -> COMPLETED                  (unknown, broken, or stopped before it began)

When a call may start is decided by the queue and its schedule. Results leave in the order the model asked, whatever
order they finish in; what happens meanwhile leaves at once, on a channel of its own.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Self

from handrail.conversation.blocks import BrokenToolUse, ToolUse
from handrail.conversation.scribe import Scribe
from handrail.dispatch.call import AddTools, Desk, Pipeline
from handrail.dispatch.cards import ToolCards
from handrail.dispatch.channel import Channel
from handrail.dispatch.endings import crashed, failed, rejected_input, repeated, stopped
from handrail.dispatch.flags import abort, enabled, flag, parse
from handrail.dispatch.footprint import WRITES_WORLD, footprint
from handrail.dispatch.gate import Rails, Request
from handrail.dispatch.journal import Journal
from handrail.dispatch.queue import Queue
from handrail.dispatch.results import ResultStore
from handrail.dispatch.schedule import Scheduling
from handrail.dispatch.threads import from_thread
from handrail.dispatch.tracked import Call, State
from handrail.errors import HandrailError
from handrail.tools.abort import AbortReason
from handrail.tools.context import Progress, RunContext
from handrail.tools.events import CallCards, CallEvent, CallFinished, CallProgress, CallQueued, CallStarted
from handrail.tools.outcome import REAL_FAILURES, Cause, Outcome, Status
from handrail.tools.pool import AnyTool, Pool

DEFAULT_SCHEDULING = Scheduling()
DEFAULT_RAILS = Rails()
MAX_PROGRESS = 20
"""So much of the progress before it a card is drawn with."""


def _activate_nothing(_names: Iterable[str]) -> None:
    """For pools without a catalog behind them."""


def _add_nothing(_tools: Sequence[AnyTool]) -> None:
    raise HandrailError("no tools can be added to this pool")


class ToolExecutor:
    """
    The calls of one answer. Use it as `async with`; when that is left, nothing of it runs any more.

    (A blocking function that is given up cannot be stopped from outside: it learns from `ctx.abort` that it should.)
    """

    def __init__(
        self,
        pool: Pool,
        run: RunContext,
        store: ResultStore,
        *,
        rails: Rails = DEFAULT_RAILS,
        scheduling: Scheduling = DEFAULT_SCHEDULING,
        journal: Journal | None = None,
        activate: Callable[[Iterable[str]], None] = _activate_nothing,
        add_tools: AddTools = _add_nothing,
        scribe: Scribe | None = None,
        defers: bool = False,
    ) -> None:
        self.run = run
        """The context as the calls so far have left it."""
        self._pool = pool
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._now = self._loop.time
        self._pipeline = Pipeline(
            pool,
            rails,
            store,
            activate,
            Desk(self._now, self._progress, self._rescheduled, self._deferrable, add_tools, scribe),
        )
        self._sibling_errors = scheduling.sibling_errors
        self._journal = journal
        self._scribe = scribe
        self._defers = defers
        self._whole = False
        self._alone: asyncio.Future[None] | None = None
        self._calls: list[Call] = []
        self._queue = Queue(scheduling)
        self._executing: dict[int, Call] = {}
        self._yielded = 0
        self._unfinished = 0
        self._open = False
        self._discarded = False
        self._interrupt: AbortReason | None = None
        self._culprit: Call | None = None
        self._signal = run.abort.child()
        self._reader: asyncio.Future[None] | None = None
        self._events: Channel[CallEvent] | None = None

    # What the loop does

    async def __aenter__(self) -> Self:
        self._open = True
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
        if self._unfinished:
            self._stop([call for call in self._calls if call.unfinished and not call.stop_reason], AbortReason.USER)
        cancelled: asyncio.CancelledError | None = None
        here = asyncio.current_task()
        while tasks := [call.task for call in self._executing.values() if call.task and call.task is not here]:
            try:
                await asyncio.wait(tasks)
            except asyncio.CancelledError as error:
                cancelled = error
        if self._events is not None:
            self._events.close()
        if cancelled:
            raise cancelled

    def add(self, use: ToolUse | BrokenToolUse, *, put_off: bool = False) -> None:
        """
        A block of the answer is complete. The call starts now, later, or never; it always gets an outcome.

        `put_off`: it is not the first time, for a hook had put it off.
        """
        if not self._open:
            raise HandrailError(f"{use.name!r} ({use.id}) was added to an executor that is not open. Use `async with`.")
        whole = use if isinstance(use, ToolUse) else ToolUse(use.id, use.name, {})
        call = Call(len(self._calls), whole, self._now())
        call.put_off = put_off
        self._calls.append(call)
        self._tell_alone()
        self._unfinished += 1
        if self._events is not None:
            self._events.put(CallQueued(whole, self._now(), self._cards(call)))
        if isinstance(use, BrokenToolUse):
            self._complete(call, rejected_input(whole, Cause.INCOMPLETE, f"{use.name} was not run: {use.problem}"))
            return
        call.tool = self._pool.find(use.name)
        if call.tool is None:
            self._complete(call, self._pipeline.unknown(whole))
            return
        if not enabled(call.tool):
            self._complete(call, self._pipeline.disabled(whole))
            return
        call.args, call.problem = parse(call.tool, use.input)
        call.read_only = call.problem is None and flag(call.tool.is_read_only, call.args)
        if self._interrupt or self._culprit:
            self._catch_up(call)
        if call.stop_reason:
            self._complete(call, self._stopped(call))
            return
        self._queue.add(call)
        self._pump()

    def finish(self) -> None:
        """The answer is complete: what was held back until then may go."""
        self._whole = True
        self._tell_alone()
        self._queue.release()
        self._pump()

    def discard(self) -> None:
        """The answer is given up: nothing more starts or leaves. What already had effects goes into the journal."""
        if self._discarded:
            return
        self._discarded = True
        for call in self._calls:
            if self._journal is not None and call.began and call.tool and not call.read_only:
                self._journal.record(call.tool.name, call.use.input, call.outcome)
        self.interrupt(AbortReason.DISCARDED)
        self._wake()

    def interrupt(self, reason: AbortReason) -> None:
        """Stop everything, or on a new message of the user only what gives way to it."""
        if self._interrupt is None or reason.outweighs(self._interrupt):
            self._interrupt = reason
        self._stop([call for call in self._calls if call.unfinished and _gives_way(call, reason)], reason)
        self._pump()

    # What front ends see

    def ready(self) -> Iterator[Outcome]:
        """Outcomes that can leave now, in the order of the calls."""
        while outcome := self._next_ready():
            yield outcome

    async def rest(self) -> AsyncIterator[Outcome]:
        """The answer is complete; all outcomes that have not left yet, as they can leave."""
        self.finish()
        while True:
            while outcome := self._next_ready():
                yield outcome
            if self._discarded or self._yielded == len(self._calls):
                return
            self._reader = self._loop.create_future()
            await self._reader

    @property
    def events(self) -> Channel[CallEvent]:
        """What happens from now on, for one reader."""
        if self._events is None:
            self._events = Channel()
        return self._events

    @property
    def outcomes(self) -> tuple[Outcome, ...]:
        """How the calls ended so far, in the order of the calls; complete once the executor is left."""
        return tuple(call.outcome for call in self._calls if call.outcome)

    @property
    def in_progress(self) -> frozenset[str]:
        """The ids of running calls."""
        return frozenset(call.use.id for call in self._executing.values())

    def _next_ready(self) -> Outcome | None:
        if self._discarded or self._yielded == len(self._calls):
            return None
        call = self._calls[self._yielded]
        if call.outcome is not None:
            call.move(State.YIELDED)
            self._yielded += 1
        return call.outcome

    # How calls start

    def _pump(self) -> None:
        """Start whatever may start."""
        while call := self._queue.start_next(self.run):
            if call.resume is None:
                self._start(call)
            elif not call.resume.done():
                call.resume.set_result(None)

    def _start(self, call: Call) -> None:
        assert call.tool is not None
        call.move(State.EXECUTING)
        self._executing[call.number] = call
        if self._events is not None:
            self._events.put(CallStarted(call.use, self._now(), self._cards(call), call.stops_on_submit))
        if call.problem:
            self._complete(call, self._pipeline.invalid(call.use, call.tool, call.problem))
            return
        if self._journal:
            known, before = self._journal.claim(call.tool.name, call.use.input)
            if known:
                self._complete(call, repeated(call.use, call.summary, before))
                return
        call.task = self._loop.create_task(self._run(call))

    async def _run(self, call: Call) -> None:
        call.entered = True
        try:
            outcome = self._stopped(call) if call.stop_reason else await self._pipeline.run(call, self.run)
        except asyncio.CancelledError as error:
            outcome = self._stopped(call) if _is_cancelled() else crashed(call.use, error, call.timings)
        except BaseException as error:
            # an interpreter that is going down still leaves no call without an outcome
            self._end(call, crashed(call.use, error, call.timings))
            raise
        self._end(call, outcome)

    def _end(self, call: Call, outcome: Outcome) -> None:
        self._complete(call, outcome)
        self._pump()

    async def _rescheduled(self, call: Call, changed: Request) -> bool:
        """The input was changed: see that the call still keeps to what it was scheduled for, or wait until it may."""
        call.args, call.read_only, call.access = changed.args, changed.read_only, changed.access
        later: list[Call] = []
        if not call.footprint.covers(footprint(changed.access, self.run.cwd)):
            later = self._calls[call.number + 1 :]
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

    async def _deferrable(self, _call: Call) -> bool:
        """Only the single call of an answer can be put off, and whether it is that is known at the answer's end."""
        if self._defers and not self._whole and len(self._calls) == 1:
            self._alone = self._loop.create_future()
            await self._alone
        return self._defers and len(self._calls) == 1

    def _tell_alone(self) -> None:
        if self._alone is not None and not self._alone.done():
            self._alone.set_result(None)

    # How calls end

    def _complete(self, call: Call, outcome: Outcome) -> None:
        if call.state is State.EXECUTING:
            del self._executing[call.number]
            self._queue.finish(call)
        if outcome.output is not None and outcome.output.context_change is not None:
            outcome = self._change_context(call, outcome)
        call.outcome = outcome
        call.move(State.COMPLETED)
        self._unfinished -= 1
        if self._scribe is not None:
            if outcome.status is Status.DEFERRED:
                self._scribe.defer_call(call.use, outcome.result)
            else:
                self._scribe.end_call(outcome.result)
        if self._events is not None:
            self._events.put(CallFinished(outcome, self._now(), self._cards(call), call.progress))
        self._wake()
        if outcome.status is Status.ERROR and _really_failed(outcome):
            self._cancel_siblings(call)
        if outcome.status is Status.DENIED and outcome.decision and outcome.decision.interrupt:
            self.interrupt(AbortReason.USER)
        if outcome.stop is not None:
            self.interrupt(AbortReason.HOOK)

    def _change_context(self, call: Call, outcome: Outcome) -> Outcome:
        """Honoured only for calls that ran alone: nobody else was looking at the context."""
        if not call.alone:
            return outcome
        before = self.run.cwd
        self.run, problem = self._pipeline.changed_context(call, outcome, self.run)
        if self._scribe is not None and self.run.cwd != before:
            self._scribe.change_folder(str(self.run.cwd))
        return failed(call.use, Cause.CRASHED, problem, outcome.timings) if problem else outcome

    def _cancel_siblings(self, call: Call) -> None:
        if self._sibling_errors == "isolate" or call.tool is None or not call.tool.error_cancels_siblings:
            return
        if self._culprit and self._culprit.number <= call.number:
            return  # what this one could cancel, that one did
        self._culprit = call
        others = [other for other in self._calls if other.unfinished and self._falls_with(other, call)]
        self._stop(others, AbortReason.SIBLING, blame=call.summary)

    def _falls_with(self, other: Call, culprit: Call) -> bool:
        return self._sibling_errors == "all" or (other.number > culprit.number and not other.read_only)

    def _catch_up(self, call: Call) -> None:
        """What has happened before it came concerns a new call as well."""
        if self._interrupt and _gives_way(call, self._interrupt):
            call.stop(self._interrupt)
        if self._culprit and self._falls_with(call, self._culprit):
            call.stop(AbortReason.SIBLING, self._culprit.summary)

    def _stop(self, calls: list[Call], reason: AbortReason, *, blame: str = "") -> None:
        """Queued calls end now, running ones as soon as they let go. The strongest reason is the one that is told."""
        queued = [call for call in calls if call.state is State.QUEUED]
        if queued:
            self._queue.drop(queued)
        for call in calls:
            first = call.stop_reason is None
            call.stop(reason, blame)
            if call.state is State.QUEUED:
                self._complete(call, self._stopped(call))
            elif first:  # only once: whoever cleans up after being cancelled is not to be disturbed
                abort(call.abort, reason)
                if call.task and call.entered:
                    call.task.cancel()

    def _stopped(self, call: Call) -> Outcome:
        reason = call.stop_reason or AbortReason.USER  # without a reason of ours, somebody cancelled the task itself
        call.marks.append(self._now())
        return stopped(call.use, call.summary, reason, call.timings, started=call.began, blame=call.blame)

    # What is told

    def _wake(self) -> None:
        if self._reader and not self._reader.done():
            self._reader.set_result(None)

    def _progress(self, call: Call, progress: Progress) -> None:
        """News of a running call, from any thread."""
        if threading.get_ident() != self._thread:
            from_thread(self._loop, self._progress, call, progress)
        elif call.state is State.EXECUTING and self._events is not None:
            call.progress = (*call.progress[1 - MAX_PROGRESS :], progress)
            self._events.put(CallProgress(call.use, progress, self._now(), self._cards(call), call.progress))

    def _cards(self, call: Call) -> CallCards:
        """What draws the call, made for the first event about it."""
        if call.cards is None:
            call.cards = ToolCards(call)
        return call.cards


def _is_cancelled() -> bool:
    """Whether the running task was cancelled, and not merely raises as if it were."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _gives_way(call: Call, reason: AbortReason) -> bool:
    return reason is not AbortReason.SUBMIT or call.stops_on_submit


def _really_failed(outcome: Outcome) -> bool:
    return outcome.cause in REAL_FAILURES or outcome.cause is Cause.DONE_BEFORE

"""
Runs tool calls while the model is still talking.

    QUEUED -> EXECUTING -> COMPLETED -> YIELDED
    QUEUED -> COMPLETED                  (unknown, broken, or stopped before it began)

When a call may start is decided by the schedule. Results leave in the order the model asked, whatever order they
finish in; what happens meanwhile leaves at once, on a channel of its own.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, Literal, Self

from handrail.conversation.blocks import BrokenToolUse, ToolUse
from handrail.dispatch.batch import partition
from handrail.dispatch.call import Pipeline
from handrail.dispatch.channel import Channel
from handrail.dispatch.endings import crashed, failed, rejected_input, repeated, stopped
from handrail.dispatch.flags import flag, parse, touched
from handrail.dispatch.gate import Rails
from handrail.dispatch.journal import Journal
from handrail.dispatch.results import ResultStore
from handrail.dispatch.schedule import Schedule
from handrail.dispatch.tracked import Call, State
from handrail.errors import HandrailError
from handrail.tools.abort import AbortReason
from handrail.tools.access import EXCLUSIVE, SHARED
from handrail.tools.context import Progress, RunContext
from handrail.tools.events import CallEvent, CallFinished, CallProgress, CallQueued, CallStarted
from handrail.tools.outcome import REAL_FAILURES, Cause, Outcome
from handrail.tools.pool import Pool


@dataclass(frozen=True, slots=True)
class Scheduling:
    """
    How calls of one answer may overlap.

    early_start: `safe` = read-only calls start while the answer is still arriving, `all` = every call does, `off` = the
        batch path: nothing starts before the answer is whole, and then in runs of safe calls and single other ones.
    sibling_errors: what a failed shell call does to the others of its answer. `shell-chain` cancels later calls
        that are not read-only, `isolate` none, `all` every unfinished one.
    all_read_only: batch path only; calls run side by side only if all calls of the answer are read-only.
    """

    early_start: Literal["safe", "all", "off"] = "safe"
    max_parallel: int = 10
    max_parallel_by_tool: Mapping[str, int] = field(default_factory=dict)
    sibling_errors: Literal["shell-chain", "isolate", "all"] = "shell-chain"
    all_read_only: bool = False


DEFAULT_SCHEDULING = Scheduling()
DEFAULT_RAILS = Rails()


def _activate_nothing(_names: Iterable[str]) -> None:
    """For pools without a catalog behind them."""


class ToolExecutor:
    """The calls of one answer. Use it as `async with`; when that is left, nothing of it runs any more."""

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
    ) -> None:
        self._pool = pool
        self._pipeline = Pipeline(pool, rails, store, activate)
        self._scheduling = scheduling
        self._caps = scheduling.max_parallel_by_tool
        self._journal = journal if journal is not None else Journal()
        self.run = run
        """The context as the calls so far have left it."""
        self._calls: list[Call] = []
        self._waiting: deque[Call] = deque()
        self._barrier: Call | None = None
        self._schedule = Schedule(holding=scheduling.early_start == "safe")
        self._executing: dict[int, Call] = {}
        self._running = 0
        self._running_by_tool: dict[str, int] = {}
        self._parked: dict[str, list[int]] = {}
        self._yielded = 0
        self._whole = False
        self._discarded = False
        self._closed = False
        self._pumping = False
        self._interrupt: AbortReason | None = None
        self._signal = run.abort.child()
        self._reader: asyncio.Future[None] | None = None
        self._events: Channel[CallEvent] | None = None

    # What the loop does

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._now = self._loop.time
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
        self._close()
        cancelled: asyncio.CancelledError | None = None
        while tasks := [call.task for call in self._executing.values() if call.task]:
            try:
                await asyncio.wait(tasks)
            except asyncio.CancelledError as error:
                cancelled = error
        if self._events:
            self._events.close()
        if cancelled:
            raise cancelled

    def add(self, use: ToolUse | BrokenToolUse) -> None:
        """A block of the answer is complete. The call starts now, later, or never; it always gets an outcome."""
        if self._closed:
            raise HandrailError(f"the executor is closed, so {use.name!r} ({use.id}) cannot be added")
        whole = use if isinstance(use, ToolUse) else ToolUse(use.id, use.name, {})
        call = Call(len(self._calls), whole, self._now())
        self._calls.append(call)
        self._tell(CallQueued, whole)
        if isinstance(use, BrokenToolUse):
            self._complete(call, rejected_input(whole, Cause.INCOMPLETE, f"{use.name} was not run: {use.problem}"))
            return
        call.tool = self._pool.find(use.name)
        if call.tool is None:
            self._complete(call, self._pipeline.unknown(whole))
            return
        call.args, call.problem = parse(call.tool, use.input)
        call.read_only = call.problem is None and flag(call.tool.is_read_only, call.args)
        self._waiting.append(call)
        if self._interrupt and (self._interrupt is not AbortReason.SUBMIT or call.stops_on_submit):
            self._stop([call], self._interrupt)
        self._pump()

    def finish(self) -> None:
        """The answer is complete: what was held back until then may go."""
        if self._whole:
            return
        self._whole = True
        if self._scheduling.early_start == "off":
            self._batch()
        self._schedule.release()
        self._pump()

    def discard(self) -> None:
        """The answer is given up: nothing more starts or leaves. What already had effects goes into the journal."""
        self._discarded = True
        for call in self._calls:
            if call.began and call.tool and not call.read_only:
                self._journal.record(call.tool.name, call.use.input, call.outcome)
        self._stop([call for call in self._calls if call.unfinished], AbortReason.DISCARDED)
        self._wake()

    def interrupt(self, reason: AbortReason) -> None:
        """Stop everything, or on a new message of the user only what gives way to it."""
        self._interrupt = reason
        unfinished = [call for call in self._calls if call.unfinished]
        if reason is AbortReason.SUBMIT:
            unfinished = [call for call in unfinished if call.stops_on_submit]
        self._stop(unfinished, reason)

    # What front ends see

    def ready(self) -> Iterator[Outcome]:
        """Outcomes that can leave now, in the order of the calls."""
        while not self._discarded and self._yielded < len(self._calls):
            call = self._calls[self._yielded]
            if call.outcome is None:
                return
            call.move(State.YIELDED)
            self._yielded += 1
            yield call.outcome

    async def rest(self) -> AsyncIterator[Outcome]:
        """The answer is complete; all outcomes that have not left yet, as they can leave."""
        self.finish()
        while True:
            for outcome in self.ready():
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

    @property
    def interruptible(self) -> bool:
        """Whether a running call would give way to a new message."""
        return any(call.stops_on_submit for call in self._executing.values())

    # When calls start

    def _pump(self) -> None:
        """Start whatever may start. One pump at a time; a call that ends at once just makes it go round again."""
        if self._pumping or self._discarded:
            return
        self._pumping = True
        try:
            while (self._waiting and self._classify()) or self._start_next():
                pass
        finally:
            self._pumping = False

    def _classify(self) -> bool:
        """
        Put the next waiting call into the schedule.

        What a call touches can depend on the calls before it (a changed working folder, a new link), and only
        those that run alone can change that. So nothing is asked about calls behind one that has to run alone.
        """
        if self._barrier or (self._scheduling.early_start == "off" and not self._whole):
            return False
        call = self._waiting.popleft()
        if not call.unfinished:
            return True
        assert call.tool is not None
        if self._scheduling.early_start != "off":
            call.access = EXCLUSIVE if call.problem else touched(call.tool, call.args, self.run)
        call.scheduled = True
        self._schedule.add(call.number, call.access, held=not call.read_only)
        if call.alone:
            self._barrier = call
        return True

    def _batch(self) -> None:
        """Decide for all waiting calls at once which of them go together."""
        waiting = [call for call in self._waiting if call.unfinished]
        together = not self._scheduling.all_read_only or all(call.read_only for call in waiting)
        for run in partition(waiting, lambda call: together and _safe(call)):
            for call in run:
                call.access = SHARED if _safe(call) and together else EXCLUSIVE

    def _start_next(self) -> bool:
        if self._running >= self._scheduling.max_parallel:
            return False
        number = self._schedule.next_ready()
        if number is None:
            return False
        call = self._calls[number]
        if self._caps and not self._room_for(call):
            return True
        self._count(call, 1)
        if call.resume:
            if not call.resume.done():
                call.resume.set_result(None)
            call.resume = None
        else:
            self._start(call)
        return True

    def _room_for(self, call: Call) -> bool:
        """Whether the tool's own cap lets it start; else it is parked until one of its kind ends."""
        assert call.tool is not None
        name = call.tool.name
        if self._running_by_tool.get(name, 0) < self._caps.get(name, self._scheduling.max_parallel):
            return True
        self._parked.setdefault(name, []).append(call.number)
        return False

    def _count(self, call: Call, change: int) -> None:
        self._running += change
        if not self._caps:
            return
        assert call.tool is not None
        name = call.tool.name
        self._running_by_tool[name] = self._running_by_tool.get(name, 0) + change
        if change < 0 and (parked := self._parked.get(name)):
            self._schedule.give_back(parked.pop(0))

    def _start(self, call: Call) -> None:
        assert call.tool is not None
        call.move(State.EXECUTING)
        self._executing[call.number] = call
        self._tell(CallStarted, call.use)
        if call.problem:
            self._complete(call, self._pipeline.invalid(call.use, call.tool, call.problem))
            return
        if self._journal and not call.read_only:
            known, before = self._journal.claim(call.tool.name, call.use.input)
            if known:
                self._complete(call, repeated(call.use, call.summary, before))
                return
        call.task = self._loop.create_task(self._run(call))

    async def _run(self, call: Call) -> None:
        call.entered = True
        if call.stop_reason:
            self._complete(call, self._stopped(call))
            return
        try:
            outcome = await self._pipeline.run(
                call, self.run, partial(self._progress, call), self._now, partial(self._rescheduled, call)
            )
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            cancelled_from_outside = task is not None and task.cancelling()
            outcome = self._stopped(call) if cancelled_from_outside else crashed(call.use, error)
        except BaseException as error:
            # an interpreter that is going down still leaves no call without an outcome
            self._complete(call, crashed(call.use, error))
            raise
        self._complete(call, outcome)

    async def _rescheduled(self, call: Call, args: Any) -> bool:
        """The input was changed: see that the call still keeps to what it was scheduled for, or wait until it may."""
        assert call.tool is not None
        access = touched(call.tool, args, self.run)
        if call.access.covers(access):
            return True
        if any(later.state is not State.QUEUED for later in self._calls[call.number + 1 :]):
            return False
        call.access = EXCLUSIVE
        self._barrier = self._barrier or call
        call.resume = asyncio.get_running_loop().create_future()
        resume = call.resume
        self._schedule.widen(call.number, EXCLUSIVE, held=not flag(call.tool.is_read_only, args))
        self._parked.clear()
        self._count(call, -1)
        self._pump()
        await resume
        return True

    # How calls end

    def _complete(self, call: Call, outcome: Outcome) -> None:
        if call.state is State.EXECUTING:
            del self._executing[call.number]
            if call.resume is None:
                self._count(call, -1)
            self._schedule.finish(call.number)
        outcome = self._change_context(call, outcome)
        call.outcome = outcome
        call.move(State.COMPLETED)
        if self._barrier is call:
            self._barrier = None
        self._tell(CallFinished, outcome)
        self._wake()
        if outcome.cause in REAL_FAILURES:
            self._cancel_siblings(call)
        if outcome.decision and outcome.decision.interrupt:
            self.interrupt(AbortReason.USER)
        self._pump()

    def _change_context(self, call: Call, outcome: Outcome) -> Outcome:
        """Honoured only for calls that ran alone: nobody else was looking at the context."""
        if outcome.output is None or outcome.output.context_change is None or not call.alone:
            return outcome
        self.run, problem = self._pipeline.changed_context(outcome.output.context_change, self.run)
        return failed(call.use, Cause.CRASHED, problem, outcome.timings) if problem else outcome

    def _cancel_siblings(self, call: Call) -> None:
        policy = self._scheduling.sibling_errors
        if policy == "isolate" or call.tool is None or not call.tool.error_cancels_siblings:
            return
        others = [other for other in self._calls if other.unfinished]
        if policy == "shell-chain":
            others = [other for other in others if other.number > call.number and not other.read_only]
        self._stop(others, AbortReason.SIBLING, blame=call.summary)

    def _stop(self, calls: list[Call], reason: AbortReason, *, blame: str = "") -> None:
        """Queued calls end now, running ones as soon as they let go. The strongest reason is the one that is told."""
        queued = [call for call in calls if call.state is State.QUEUED]
        running = [call for call in calls if call.state is State.EXECUTING]
        for call in calls:
            if call.stop_reason is None or reason.outweighs(call.stop_reason):
                call.stop_reason, call.blame = reason, blame
        if any(call.scheduled for call in queued):
            self._schedule.drop({call.number for call in queued})
            self._parked.clear()  # the schedule offers them again
        for call in queued:
            self._complete(call, self._stopped(call))
        for call in running:
            if not call.abort.aborted:
                call.abort.abort(reason)
                if call.task and call.entered:
                    call.task.cancel()
        self._pump()

    def _stopped(self, call: Call) -> Outcome:
        reason = call.stop_reason or AbortReason.USER
        return stopped(call.use, call.summary, reason, started=call.began, blame=call.blame)

    def _close(self) -> None:
        self._closed = True
        self._stop([call for call in self._calls if call.unfinished], AbortReason.USER)
        self._signal.release()

    # What is told

    def _wake(self) -> None:
        if self._reader and not self._reader.done():
            self._reader.set_result(None)

    def _progress(self, call: Call, progress: Progress) -> None:
        if call.state is State.EXECUTING and self._events:
            self._events.put(CallProgress(call.use, progress, self._now()))

    def _tell(self, kind: Callable[[Any, float], CallEvent], about: object) -> None:
        if self._events:
            self._events.put(kind(about, self._now()))


def _safe(call: Call) -> bool:
    return call.problem is None and call.tool is not None and flag(call.tool.is_concurrency_safe, call.args)

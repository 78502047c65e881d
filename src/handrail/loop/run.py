"""
A run: one prompt to its end, as an async iterator of events.

    async for event in run: ...

The next request is made when the events of the turn before have been read: a run that nobody reads does nothing.
Leaving it early is safe: `aclose` waits until nothing of it runs; a run that is dropped stops by itself.
"""

import asyncio
import weakref
from collections import deque
from collections.abc import Sequence

from handrail.conversation.blocks import Text
from handrail.conversation.messages import AssistantMessage, Attachment, UserMessage
from handrail.conversation.stream import StreamFailure
from handrail.errors import HandrailError
from handrail.loop.asking import Tools, request_for
from handrail.loop.dialogue import Dialogue
from handrail.loop.draft import is_empty
from handrail.loop.events import (
    AnswerDiscarded,
    Compacted,
    Denial,
    Interrupted,
    LoopEvent,
    MessageAdded,
    Notice,
    QueuedMessageTaken,
    RequestSent,
    ResultsComplete,
    RunEnded,
    RunStarted,
)
from handrail.loop.guard import Guard
from handrail.loop.journal import TurnJournal
from handrail.loop.ledger import Ledger
from handrail.loop.notes import interruption, note_for
from handrail.loop.setup import Setup, Situation
from handrail.loop.shortening import shortened, too_long
from handrail.loop.state import Move, State, Turned, Why, after
from handrail.loop.turn import Attempt, Question
from handrail.tools.abort import AbortReason, AbortSignal
from handrail.tools.catalog import announcement
from handrail.tools.outcome import Outcome, Status

CONTINUED = frozenset({Why.CUT_ANSWER, Why.PAUSED})
"""After these an answer goes on where the one before it stopped."""


class Run:
    """See the module docstring. `state` tells where it stands."""

    def __init__(self, setup: Setup, dialogue: Dialogue, prompt: UserMessage) -> None:
        self._setup = setup
        self._dialogue = dialogue
        self._prompt = prompt
        self.signal = AbortSignal()
        """Setting it stops the run, from wherever."""
        self.state = State()
        self.ended: RunEnded | None = None
        self._out: deque[LoopEvent] = deque()
        self._attempt: Attempt | None = None
        self._number = 0
        self._journal = TurnJournal()
        self._guard = Guard()
        self._tools = Tools(setup.view)
        self._ledger = Ledger(setup.limits, setup.cost)
        self._denials: list[Denial] = []
        self._failure: StreamFailure | None = None
        self._problem = ""
        self._last: AssistantMessage | None = None
        self._text = ""
        self._structured: object = None
        self._began: float | None = None
        self._made_room = False
        self._closed = False

    # What readers see

    def __aiter__(self) -> "Run":
        return self

    async def __anext__(self) -> LoopEvent:
        try:
            while not self._out:
                if self._closed or self.state.over:
                    raise StopAsyncIteration
                attempt = self._attempt
                if attempt is None:
                    await self._ask()
                    continue
                try:
                    event = await attempt.events.__anext__()
                except StopAsyncIteration:
                    await self._turned(attempt)
                else:
                    self._check_written()
                    return event
            self._check_written()
            return self._out.popleft()
        except StopAsyncIteration:
            raise
        except BaseException:
            await self._leave()
            raise

    def _check_written(self) -> None:
        """Nothing is shown that could not be written down."""
        scribe = self._dialogue.history.scribe
        if scribe is not None and scribe.failure is not None:
            raise scribe.failure

    @property
    def active(self) -> bool:
        """Whether it has begun and is not over."""
        return self._began is not None and not self._closed and not self.state.over

    def interrupt(self) -> None:
        """Stop everything; RunEnded follows when it has stopped."""
        self.signal.abort(AbortReason.USER)

    async def aclose(self) -> None:
        """Stop, and wait until nothing of this run is left. The history can be continued."""
        self.signal.abort(AbortReason.USER)
        await self._leave()

    def __del__(self) -> None:
        # whoever left an `async for` without closing the run has dropped it: what it started must not go on
        self.signal.abort(AbortReason.USER)

    async def _leave(self) -> None:
        attempt, self._attempt = self._attempt, None
        self._closed = True
        self._out.clear()
        if attempt is None or attempt.settled:
            return
        attempt.stop()
        try:
            await attempt.ended()
        finally:
            if attempt.stopped:
                self._dialogue.history.append(interruption(attempt.stopped))

    # Asking

    async def _ask(self) -> None:
        if self._began is None:
            await self._take_hold()
            self._begin()
            return
        if self._hindered():
            return
        await self._shorten(forced=False)
        if self._hindered():
            return
        self._number += 1
        question = Question(
            request_for(self._setup, self._dialogue, self._tools),
            turn=self.state.turn + 1,
            plain=self._number > 1,
            last=self._number >= self._setup.stream_attempts,
        )
        attempt = Attempt(self._setup, self._dialogue, question, self.signal, self._journal)
        self._dialogue.working = attempt.start(self._deadline)
        self._attempt = attempt
        self._tell(
            RequestSent(
                question.request,
                question.turn,
                self.state.why,
                self._number,
                question.plain,
                len(self._dialogue.history.messages),
                self._ledger.context_tokens,
            )
        )

    async def _take_hold(self) -> None:
        dialogue = self._dialogue
        await dialogue.quiet()
        holder = dialogue.holder()
        if holder is not None and holder.active:
            raise HandrailError("Another prompt of this conversation is still being worked on. Close its run first.")
        dialogue.holder = weakref.ref(self)

    def _begin(self) -> None:
        dialogue = self._dialogue
        self._began = asyncio.get_running_loop().time()
        names = tuple(tool.name for tool in dialogue.catalog.pool.active)
        self._tell(RunStarted(self._prompt, self._setup.model_name, names, dialogue.context.cwd, dialogue.chain))
        if not dialogue.history.messages:
            for attachment in self._setup.opening():
                self._add(attachment)
        for message in dialogue.mailbox.take():
            self._take(message)
        self._announce_tools()
        dialogue.history.append(self._prompt)
        for attachment in self._setup.attach(()):
            self._add(attachment)

    def _announce_tools(self) -> None:
        """Names of tools that are held back go into messages: the cached prefix must not change with them."""
        pool = self._dialogue.catalog.pool
        if pool.deferred and pool.held != self._dialogue.announced:
            self._dialogue.announced = pool.held
            self._add(Attachment("tools", (Text(announcement(pool)),)))

    def _hindered(self) -> bool:
        """Interrupted, or out of time, while nothing ran: between two turns, or before the first."""
        if self.signal.aborted:
            why = Why.ABORTED_TOOLS if self.state.why is Why.TOOL_RESULTS else Why.ABORTED_STREAMING
            self._add_interruption(why)
            self._end(self.state.to(why))
        elif self._deadline is not None and asyncio.get_running_loop().time() >= self._deadline:
            self._end(self.state.to(Why.MAX_SECONDS))
        return self.state.over

    @property
    def _deadline(self) -> float | None:
        seconds = self._setup.limits.seconds
        return None if seconds is None or self._began is None else self._began + seconds

    async def _shorten(self, *, forced: bool) -> bool:
        """Let somebody shorten the history. False = everything is as it was."""
        if self._setup.compact is None:
            return False
        left = None if self._deadline is None else self._deadline - asyncio.get_running_loop().time()
        history, tokens = self._dialogue.history, self._ledger.context_tokens
        situation = Situation(history, self._setup.model_name, tokens, forced)
        done = await shortened(self._setup.compact, situation, self.signal, left)
        if done is None:
            return self.signal.aborted
        before = len(history.messages)
        history.replace(done.messages)
        if done.kind == "full":
            self._dialogue.announced = frozenset()  # the summary may have lost it
            self._announce_tools()
        for model, usage in done.used:
            self._ledger.enter(model, usage)
        self._ledger.context_tokens = 0
        self._tell(Compacted(done.kind, before, len(history.messages), tokens, done.note))
        return True

    # After a turn

    async def _turned(self, attempt: Attempt) -> None:
        await attempt.ended()
        if self._closed:
            return  # by another task, while this one was waiting
        self._attempt = None
        attempt.reraise()
        self._count(attempt)
        if attempt.discarded:
            assert attempt.failure is not None
            self._tell(AnswerDiscarded(attempt.failure, attempt.calls, self.state.turn + 1, self._number))
            return
        self._number = 0
        if attempt.failure and not self._made_room and too_long(attempt.failure):
            self._made_room = True
            if await self._shorten(forced=True):
                return
        self._settle(attempt)

    def _settle(self, attempt: Attempt) -> None:
        self._note_results(attempt)
        turned = self._what_happened(attempt)
        state = after(self.state, turned, self._setup.structured_retries)
        if state.move is Move.ABORTED or turned.stopped:
            self._add_interruption(state.why)
        if state.over:
            self._end(state)
        else:
            self._prepare(state, attempt.outcomes)

    def _note_results(self, attempt: Attempt) -> None:
        turn = self.state.turn + 1
        if attempt.results:
            self._tell(ResultsComplete(attempt.results, attempt.outcomes, turn))
        for message in attempt.added:
            if isinstance(message, UserMessage | Attachment):
                self._tell(MessageAdded(message))
        for outcome in attempt.outcomes:
            if outcome.status is Status.DENIED and outcome.decision:
                self._denials.append(Denial(outcome.use, outcome.decision.reason))
        self._guard = self._guard.after(attempt.outcomes)
        self._failure = attempt.failure
        if attempt.whole:
            self._last = attempt.whole
            before = self._text if self.state.why in CONTINUED else ""
            self._text = before + attempt.whole.text or self._text

    def _what_happened(self, attempt: Attempt) -> Turned:
        said = attempt.whole
        stopped = attempt.stopped
        if stopped is None and any(o.decision and o.decision.interrupt for o in attempt.outcomes):
            stopped = Why.ABORTED_TOOLS
        calls = bool(attempt.outcomes)
        final = said is not None and not calls and stopped is None
        return Turned(
            answered=said is not None,
            calls=calls,
            empty=said is not None and is_empty(said.content),
            stop_reason=said.stop_reason if said else "",
            stopped=stopped,
            failed=attempt.failure is not None,
            queued=len(self._dialogue.mailbox) > 0,
            stuck=self._guard.stuck,
            unfit=final and self._unfit(),
            passed=self._ledger.passed(self.state.turn + 1),
        )

    def _unfit(self) -> bool:
        if self._setup.structured is None:
            return False
        self._structured, self._problem = self._setup.structured.check(self._text)
        return bool(self._problem)

    def _prepare(self, state: State, outcomes: Sequence[Outcome]) -> None:
        """Everything that goes into the next request besides the results."""
        self.state = state
        if state.why is Why.PAUSED:
            return  # the vendor goes on where it was only if nothing is added
        if unclaimed := self._journal.unclaimed:
            self._add(unclaimed)
        self._journal = TurnJournal()
        if state.why is Why.TOOL_RESULTS and (steering := self._guard.steering):
            self._add(steering)
        if note := note_for(state.why, self._problem):
            self._add(note)
        for attachment in self._setup.attach(outcomes):
            self._add(attachment)
        self._announce_tools()
        for message in self._dialogue.mailbox.take():
            self._take(message)

    def _end(self, state: State) -> None:
        self.state = state
        assert self._began is not None
        structured = self._structured if state.why is Why.COMPLETED else None
        problem = self._problem
        if state.why is Why.REPEATED_FAILURE:
            times, tool = self._guard.worst
            problem = f"{tool} failed {times} times in a row with the same input and the same error."
        self.ended = RunEnded(
            state.move,
            state.why,
            self._text,
            structured,
            state.turn,
            asyncio.get_running_loop().time() - self._began,
            self._ledger.model_seconds,
            dict(self._ledger.spent),
            self._ledger.dollars,
            tuple(self._denials),
            self._failure,
            problem,
            self._last.stop_reason if self._last else "",
        )
        self._tell(self.ended)

    # History and events

    def _count(self, attempt: Attempt) -> None:
        self._ledger.model_seconds += attempt.seconds
        for draft in attempt.used:
            self._ledger.enter(draft.model, draft.usage)
            self._ledger.context_tokens = draft.usage.whole_input + draft.usage.whole_output
        if warning := self._ledger.warning():
            self._tell(Notice(warning))

    def _add(self, message: UserMessage | Attachment) -> None:
        self._dialogue.history.append(message)
        self._tell(MessageAdded(message))

    def _take(self, message: UserMessage) -> None:
        self._dialogue.history.append(message)
        self._tell(QueuedMessageTaken(message))

    def _add_interruption(self, why: Why) -> None:
        self._tell(Interrupted(why))
        self._add(interruption(why))

    def _tell(self, event: LoopEvent) -> None:
        self._out.append(event)

"""
A run: one prompt to its end, as an async iterator of events.

    async for event in run: ...

The next request is made when the events of the turn before have been read: a run that nobody reads does nothing.
Leaving it early is safe: `aclose` waits until nothing of it runs; a run that is dropped stops by itself.
"""

import asyncio
from collections import deque

from handrail.conversation.messages import AssistantMessage, Attachment, UserMessage
from handrail.conversation.request import Request
from handrail.conversation.stream import StreamFailure
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
from handrail.loop.notes import interruption, note_for
from handrail.loop.setup import Setup, Situation
from handrail.loop.spending import Spent, dollars
from handrail.loop.state import Move, State, Turned, Why, after
from handrail.loop.turn import Attempt, Question
from handrail.tools.abort import AbortReason, AbortSignal
from handrail.tools.outcome import Status


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
        self._spent: dict[str, Spent] = {}
        self._denials: list[Denial] = []
        self._failure: StreamFailure | None = None
        self._problem = ""
        self._last: AssistantMessage | None = None
        self._text = ""
        self._structured: object = None
        self._began: float | None = None
        self._model_seconds = 0.0
        self._context_tokens = 0
        self._shortened = False
        self._warned = False
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
                    return await attempt.events.__anext__()
                except StopAsyncIteration:
                    await self._turned(attempt)
            return self._out.popleft()
        except StopAsyncIteration:
            raise
        except BaseException:
            await self._leave()
            raise

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
            await self._dialogue.quiet()
            self._begin()
            return
        deadline = self._deadline()
        if self.signal.aborted:
            self._stop_between()
            return
        if deadline is not None and asyncio.get_running_loop().time() >= deadline:
            self._end(self.state.to(Why.MAX_SECONDS))
            return
        await self._shorten(forced=False)
        request = self._request()
        self._number += 1
        plain = self._number > 1
        last = self._number >= self._setup.stream_attempts
        question = Question(request, self.state.turn + 1, plain=plain, last=last)
        attempt = Attempt(self._setup, self._dialogue, question, self.signal, self._journal)
        self._dialogue.working = attempt.start(deadline)
        self._attempt = attempt
        messages = len(self._dialogue.history.messages)
        self._tell(
            RequestSent(request, question.turn, self.state.why, self._number, plain, messages, self._context_tokens)
        )

    def _begin(self) -> None:
        dialogue = self._dialogue
        self._began = asyncio.get_running_loop().time()
        for message in dialogue.mailbox.take():
            self._take(message)
        dialogue.history.append(self._prompt)
        names = tuple(tool.name for tool in dialogue.catalog.pool.active)
        self._tell(RunStarted(self._prompt, self._setup.model_name, names, dialogue.context.cwd, dialogue.chain))
        for attachment in self._setup.attach():
            self._add(attachment)

    def _request(self) -> Request:
        return request_for(self._setup, self._dialogue, self._tools)

    async def _shorten(self, *, forced: bool) -> bool:
        """Let somebody shorten the history; whether it was."""
        if self._setup.compact is None:
            return False
        history = self._dialogue.history
        situation = Situation(history, self._setup.model_name, self._context_tokens, forced)
        shortened = await self._setup.compact(situation)
        if shortened is None:
            return False
        before = len(history.messages)
        history.replace(shortened.messages)
        tokens, self._context_tokens = self._context_tokens, 0
        self._tell(Compacted(shortened.kind, before, len(history.messages), tokens, shortened.note))
        return True

    def _deadline(self) -> float | None:
        seconds = self._setup.limits.seconds
        assert self._began is not None
        return None if seconds is None else self._began + seconds

    def _stop_between(self) -> None:
        """Interrupted while nothing ran: between two turns, or before the first."""
        why = Why.ABORTED_TOOLS if self.state.why is Why.TOOL_RESULTS else Why.ABORTED_STREAMING
        self._add_interruption(why)
        self._end(self.state.to(why))

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
        if attempt.failure and await self._made_room(attempt.failure):
            return
        self._number = 0
        self._note_results(attempt)
        turned = self._what_happened(attempt)
        state = after(self.state, turned, self._setup.structured_retries)
        if attempt.whole:
            self._last = attempt.whole
            self._text = attempt.whole.text or self._text
        if state.move is Move.ABORTED or turned.stopped:
            self._add_interruption(state.why)
        if state.over:
            self._end(state)
        else:
            self._prepare(state)

    async def _made_room(self, failure: StreamFailure) -> bool:
        """A request that was too long is made once more with a shorter history."""
        if self._shortened or not _too_long(failure):
            return False
        self._shortened = True
        return await self._shorten(forced=True)

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
            unfit=final and self._unfit(said.text if said else ""),
            passed=self._passed_limit(),
        )

    def _unfit(self, text: str) -> bool:
        if self._setup.structured is None:
            return False
        self._structured, self._problem = self._setup.structured.check(text)
        return bool(self._problem)

    def _prepare(self, state: State) -> None:
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
        for attachment in self._setup.attach():
            self._add(attachment)
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
            self._model_seconds,
            dict(self._spent),
            dollars(self._spent.values()),
            tuple(self._denials),
            self._failure,
            problem,
            self._last.stop_reason if self._last else "",
        )
        self._tell(self.ended)

    # Counting

    def _count(self, attempt: Attempt) -> None:
        self._model_seconds += attempt.seconds
        for draft in attempt.used:
            cost = self._setup.cost(draft.model, draft.usage)
            self._spent[draft.model] = self._spent.get(draft.model, Spent()).plus(draft.usage, cost)
            self._context_tokens = draft.usage.whole_input + draft.usage.whole_output
            if cost is None and self._setup.limits.dollars is not None and not self._warned:
                self._warned = True
                self._tell(
                    Notice(
                        f"The limit of {self._setup.limits.dollars:g} dollars cannot be kept: the price of "
                        f"{draft.model!r} is not known. Limit turns, tokens or seconds instead."
                    )
                )

    def _passed_limit(self) -> Why | None:
        limits, spent = self._setup.limits, self._spent.values()
        if limits.turns is not None and self.state.turn + 1 >= limits.turns:
            return Why.MAX_TURNS
        if limits.dollars is not None and sum(each.dollars or 0.0 for each in spent) >= limits.dollars:
            return Why.MAX_DOLLARS
        if limits.tokens is not None and sum(each.tokens for each in spent) >= limits.tokens:
            return Why.MAX_TOKENS
        return None

    # History and events

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


def _too_long(failure: StreamFailure) -> bool:
    """Whether the model refused the request because of its length, as far as its words tell."""
    words = failure.message.lower()
    return failure.status in {400, 413} and any(hint in words for hint in TOO_LONG)


TOO_LONG = ("too long", "context length", "context window", "maximum context", "too large", "too many tokens")

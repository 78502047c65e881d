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
from dataclasses import replace
from typing import TYPE_CHECKING

from handrail.conversation.blocks import Text
from handrail.conversation.messages import Attachment, UserMessage
from handrail.errors import HandrailError
from handrail.hooks.news import HookNews
from handrail.loop.asking import Tools, request_for
from handrail.loop.dialogue import Dialogue
from handrail.loop.events import (
    AnswerDiscarded,
    Compacted,
    Interrupted,
    LoopEvent,
    MessageAdded,
    Notice,
    QueuedMessageTaken,
    RequestSent,
    ResultsComplete,
    RunEnded,
    RunStarted,
    Summarising,
)
from handrail.loop.heeding import heeding
from handrail.loop.journal import TurnJournal
from handrail.loop.moments import Expansion, Moments, added, hook_note
from handrail.loop.notes import interruption, note_for
from handrail.loop.setup import Setup, Situation, nobody_minds
from handrail.loop.shortening import too_long
from handrail.loop.state import Move, State, Turned, Why, after
from handrail.loop.tally import Tally
from handrail.loop.turn import Attempt, Question, SecondAttempt
from handrail.tools.abort import AbortReason, AbortSignal
from handrail.tools.catalog import announcement
from handrail.tools.outcome import Outcome

if TYPE_CHECKING:
    from handrail.hooks.answers import Answer


class Run:
    """See the module docstring. `state` tells where it stands."""

    def __init__(
        self,
        setup: Setup,
        dialogue: Dialogue,
        prompt: UserMessage,
        expansion: Expansion | None = None,
        *,
        shorten: str | None = None,
    ) -> None:
        """With `shorten` it only has the history shortened: what it says are wishes for the summary."""
        self._setup = setup
        self._wish = shorten
        self._dialogue = dialogue
        self._prompt = prompt
        self._expansion = expansion
        self._folder = str(dialogue.context.cwd)
        self.signal = AbortSignal()
        """Setting it stops the run, from wherever."""
        self.state = State()
        self.ended: RunEnded | None = None
        self._out: deque[LoopEvent] = deque()
        self._attempt: Attempt | None = None
        self._number = 0
        self._journal = TurnJournal()
        self._moments = Moments(setup, dialogue, self.signal, self._out.append)
        self._tools = Tools()
        self._tally = Tally(setup)
        self._began: float | None = None
        self._made_room = False
        self._refused: Attempt | None = None
        """Its request was too long, and room is being made."""
        self._agreed = False
        """A summary may be made, as soon as the reader knows of it."""
        self._heard = False
        self._said: Sequence[UserMessage | Attachment] = ()
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
            await self._begin()
            return
        if self._wish is not None:
            await self._only_shorten()
            return
        if self._refused is not None:
            await self._make_room(self._refused)
            return
        if not self._agreed:
            if self._hindered():
                return
            if not self._heard:
                await self._hear()
                return
        await self._shorten(forced=False)
        if self._agreed or self._hindered():
            return
        self._number += 1
        question = Question(
            request_for(self._setup, self._dialogue, self._tools),
            turn=self.state.turn + 1,
            plain=self._number > 1,
            last=self._number >= self._setup.stream_attempts,
            budget=self._tally.ledger.left(self.state.turn, self._left),
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
                self._dialogue.history.filled,
            )
        )

    async def _take_hold(self) -> None:
        dialogue = self._dialogue
        await dialogue.quiet()
        holder = dialogue.holder()
        if holder is not None and holder.active:
            raise HandrailError("Another prompt of this conversation is still being worked on. Close its run first.")
        dialogue.holder = weakref.ref(self)

    async def _begin(self) -> None:
        dialogue = self._dialogue
        self._began = asyncio.get_running_loop().time()
        names = tuple(tool.name for tool in dialogue.catalog.pool.active)
        self._tell(RunStarted(self._prompt, self._setup.model_name, names, dialogue.context.cwd, dialogue.chain))
        if self._wish is not None:
            await self._only_shorten()
            return
        if self._setup.hooks is not None:
            self._said = await self._opened()
        if (use := dialogue.deferred) is None:
            await self._hear()
            return
        self._attempt = SecondAttempt(self._setup, dialogue, use, self.signal, self._journal)
        dialogue.working = self._attempt.start(self._deadline)

    async def _hear(self) -> None:
        """The prompt, and what goes with it. There is none if only a call that was put off shall be taken up."""
        self._heard = True
        dialogue = self._dialogue
        if self._setup.hooks is not None and self._prompt.content:
            await self._received()
            if self.state.over:
                return
        if not dialogue.history.messages:
            self._add_all(tuple(self._setup.opening()))
        late = dialogue.mailbox.notes(prompted=True)
        await self._take_queued()
        self._announce_tools()
        self._add_all([each for each in self._said if isinstance(each, UserMessage)])
        if self._prompt.content:
            dialogue.history.append(self._prompt)
        self._add_all([each for each in (*self._said, *late, *self._setup.attach(())) if isinstance(each, Attachment)])

    async def _opened(self) -> Sequence[UserMessage | Attachment]:
        """What hooks add to the start of a session or a sub-agent."""
        if not self._dialogue.context.agent.is_main:
            return await self._moments.subagent_starts()
        if self._dialogue.opened:
            return ()
        self._dialogue.opened = True
        source = self._dialogue.source or ("resume" if self._dialogue.history.messages else "startup")
        return await self._moments.session_starts(source, self._setup.model_name)

    async def _received(self) -> None:
        """What hooks add to the prompt of a person, which they may refuse."""
        if not self._dialogue.context.agent.is_main:
            return
        said = self._vouched(await self._moments.expansion(self._expansion))
        if not self.state.over:
            said += self._vouched(await self._moments.prompt(self._prompt))
        self._said = (*self._said, *said)

    def _vouched(self, answer: "Answer | None") -> tuple[Attachment, ...]:
        """What hooks add to the prompt. If they refuse it, or could not say, the run ends."""
        if self.signal.aborted:
            self._tell(Interrupted(Why.ABORTED_STREAMING))
            self._end(self.state.to(Why.ABORTED_STREAMING))
        elif answer is not None and (answer.stop is not None or answer.block is not None):
            self._tally.problem = answer.block or answer.stop or ""
            self._end(self.state.to(Why.HOOK_STOPPED if answer.stop is not None else Why.PROMPT_BLOCKED))
        return added(answer)

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

    @property
    def _left(self) -> float | None:
        return None if self._deadline is None else self._deadline - asyncio.get_running_loop().time()

    async def _only_shorten(self) -> None:
        try:
            await self._shorten(forced=True)
        except HandrailError as error:
            self._tally.text = self._tally.text or str(error)
        if self._agreed:
            return
        why = Why.ABORTED_STREAMING if self.signal.aborted else Why.COMPLETED
        if self.signal.aborted:
            self._tell(Interrupted(why))
        self._end(self.state.to(why))

    async def _may_summarise(self) -> bool:
        allowed = await self._moments.may_summarise("auto" if self._wish is None else "manual", self._wish or "")
        if self._wish is not None and not allowed:
            self._tally.text = "A hook keeps the conversation as it is."
        self._agreed = allowed
        return False

    async def _shorten(self, *, forced: bool) -> bool:
        """
        Let somebody shorten the history. False = everything is as it was.

        Nothing runs while the reader hears that a summary begins: whoever wants to make one is stopped with a no, and
        asked again when the event has been read (`_agreed`).
        """
        if self._setup.compact is None:
            return False
        history, tokens = self._dialogue.history, self._dialogue.history.filled
        trigger = "auto" if self._wish is None else "manual"
        agreed, self._agreed = self._agreed, False
        may = nobody_minds if agreed else self._may_summarise
        situation = Situation(history, self._setup.model_name, tokens, forced, may, self._wish)
        try:
            done = await heeding(self._setup.compact(situation), self.signal, self._left)
        except HandrailError:
            if not self._agreed:
                raise
            done = None
        finally:
            if agreed:
                self._tell(Summarising(on=False))
        if done is None:
            if self._agreed:
                self._tell(Summarising(on=True))
            return self.signal.aborted
        self._agreed = False
        before = len(history.messages)
        self._dialogue.forget(done.messages)
        if done.kind == "full":
            self._dialogue.announced = frozenset()  # the summary may have lost it
            self._announce_tools()
            self._add_all(await self._moments.summarised(done.messages, self._setup.model_name, trigger))
        if self._wish is not None:
            self._tally.text = done.note
        self._tell(Compacted(done.kind, before, len(history.messages), tokens, done.note, trigger))
        return True

    # After a turn

    async def _turned(self, attempt: Attempt) -> None:
        await attempt.ended()
        if self._closed:
            return  # by another task, while this one was waiting
        self._attempt = None
        attempt.reraise()
        self._tally.pay(attempt)
        for draft in attempt.used:
            used = draft.usage
            self._dialogue.history.filled = used.whole_input + used.whole_output if used.whole_input else 0
        if warning := self._tally.ledger.warning():
            self._tell(Notice(warning))
        if attempt.discarded:
            assert attempt.failure is not None
            self._tell(AnswerDiscarded(attempt.failure, attempt.calls, self.state.turn + 1, self._number))
            return
        self._number = 0
        if attempt.failure and not self._made_room and too_long(attempt.failure):
            self._made_room = True
            await self._make_room(attempt)
        else:
            await self._settle(attempt)

    async def _make_room(self, attempt: Attempt) -> None:
        """The model refused the request as too long: shorten the history for the next, or the run ends with it."""
        self._refused = attempt
        shortened = await self._shorten(forced=True)
        if self._agreed:
            return
        self._refused = None
        if not shortened:
            await self._settle(attempt)

    async def _settle(self, attempt: Attempt) -> None:
        self._tell_results(attempt)
        self._tally.note(attempt, self.state)
        turned = self._tally.happened(attempt, self.state, queued=len(self._dialogue.mailbox) > 0)
        if turned.stopped is Why.TOOL_DEFERRED:
            self._dialogue.put_off = attempt.put_off
        state = after(self.state, turned, self._setup.structured_retries)
        if self._setup.hooks is not None:
            state = await self._heard_hooks(state, turned, attempt.outcomes)
        if state.move is Move.ABORTED or (turned.stopped and state.why is not Why.TOOL_DEFERRED):
            self._add_interruption(state.why)
        if state.over:
            self._end(state)
        else:
            await self._prepare(state, attempt.outcomes)

    async def _heard_hooks(self, state: State, turned: Turned, outcomes: Sequence[Outcome]) -> State:
        """Hooks may stop a run that would go on, and keep one going that would stop."""
        if turned.failed and self._tally.failure is not None and state.why is Why.MODEL_FAILED:
            await self._moments.failed(self._tally.failure, self._tally.text)
        elif state.why is Why.TOOL_RESULTS:
            before, self._folder = self._folder, str(self._dialogue.context.cwd)
            await self._moments.moved(before, self._left)
            self._add_all(await self._moments.refused(outcomes, self._left))
            answer = await self._moments.batch(outcomes, self._left)
            self._add_all(added(answer))
            if answer is not None and (answer.block is not None or answer.stop is not None):
                self._tally.problem = answer.stop or answer.block or ""
                return state.to(Why.HOOK_STOPPED)
        elif state.why is Why.COMPLETED:
            answer, goes_on = await self._moments.stopping(self._tally.text, self._left)
            self._add_all(added(answer))
            if goes_on and turned.passed:
                return state.to(turned.passed)
            if goes_on and answer is not None:
                self._add(hook_note(answer.block or ""))
                return state.to(Why.STOP_BLOCKED)
        return state

    def _tell_results(self, attempt: Attempt) -> None:
        if attempt.results and attempt.put_off is None:
            self._tell(ResultsComplete(attempt.results, attempt.outcomes, self.state.turn + 1))
        for message in attempt.added:
            if isinstance(message, UserMessage | Attachment):
                self._tell(MessageAdded(message))

    async def _prepare(self, state: State, outcomes: Sequence[Outcome]) -> None:
        """Everything that goes into the next request besides the results."""
        self.state = state
        if state.why is Why.PAUSED:
            return  # the vendor goes on where it was only if nothing is added
        if unclaimed := self._journal.unclaimed:
            self._add(unclaimed)
        self._journal = TurnJournal()
        if state.why is Why.TOOL_RESULTS and (steering := self._tally.guard.steering):
            self._add(steering)
        if note := note_for(state.why, self._tally.problem):
            self._add(note)
        self._add_all(tuple(self._setup.attach(outcomes)))
        self._announce_tools()
        await self._take_queued()

    def _end(self, state: State) -> None:
        self.state = state
        assert self._began is not None
        ended = self._tally.ended(state, asyncio.get_running_loop().time() - self._began)
        if state.why is Why.HOOK_STOPPED and ended.problem:
            self._tell(HookNews(ended.problem))
        if state.why is Why.TOOL_DEFERRED:
            ended = replace(ended, stop_reason=state.why.value, deferred=self._dialogue.put_off)
        self.ended = ended
        self._tell(ended)

    # History and events

    def _add(self, message: UserMessage | Attachment) -> None:
        self._dialogue.history.append(message)
        self._tell(MessageAdded(message))

    def _add_all(self, messages: Sequence[UserMessage | Attachment]) -> None:
        for message in messages:
            self._add(message)

    async def _take_queued(self) -> None:
        """Messages that waited go into the history, if no hook objects."""
        mailbox = self._dialogue.mailbox
        self._add_all(mailbox.notes())
        while mailbox.news:
            self._tell(mailbox.news.pop(0))
        for message in self._dialogue.mailbox.take():
            answer = None if self._setup.hooks is None else await self._moments.prompt(message)
            if self._setup.hooks is not None and self.signal.aborted:  # nobody has vouched for it
                self._dialogue.mailbox.post(message)
                continue
            if answer is not None and (answer.block is not None or answer.stop is not None):
                self._add(hook_note("A message that the user sent meanwhile was withheld by a hook."))
                self._tell(Notice(f"A queued message was withheld by a hook: {answer.block or answer.stop}"))
                continue
            self._dialogue.history.append(message)
            self._tell(QueuedMessageTaken(message))
            self._add_all(added(answer))

    def _add_interruption(self, why: Why) -> None:
        self._tell(Interrupted(why))
        self._add(interruption(why))

    def _tell(self, event: LoopEvent) -> None:
        self._out.append(event)

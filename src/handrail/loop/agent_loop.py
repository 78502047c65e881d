"""
The agent loop: everything that happens in one run, in order, as one async generator.

    start -> prompt -> ( make room -> request -> turn -> after turn )* -> end

`AgentLoop._steps` is the whole sequence; the methods below it are the steps, in the same order. A step queues its
events, which are read before the next step begins. Only the attempt at a turn goes on while its events are read;
`leave` stops it.
"""

import os
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from handrail.conversation.blocks import Text
from handrail.conversation.messages import Attachment, UserMessage
from handrail.conversation.request import History
from handrail.errors import HandrailError
from handrail.hooks.news import HookNews
from handrail.loop.attempt_task import check_wait
from handrail.loop.complete_prompt import CompletedPrompt, CompletePrompt, PromptRefusal
from handrail.loop.conversation_state import ActiveRun, ConversationState
from handrail.loop.event_queue import EventQueue
from handrail.loop.events import (
    SYNTHETIC,
    AnswerDiscarded,
    BlockComplete,
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
from handrail.loop.facts import RequestFacts, end_facts
from handrail.loop.history_room import HistoryRoom
from handrail.loop.interruptible import run_or_abort
from handrail.loop.journal import TurnJournal
from handrail.loop.limits import RunClock
from handrail.loop.loop_messages import interruption_message, retry_message
from handrail.loop.progress import RunProgress
from handrail.loop.requests import ToolDefinitions, build_request
from handrail.loop.run_config import RunConfig
from handrail.loop.run_hooks import Expansion, RunHooks, hook_attachments, hook_note
from handrail.loop.silence import SilenceWatch
from handrail.loop.state import Move, RunState, Why, next_state
from handrail.loop.turn import Attempt, DeferredCallAttempt, TurnRequest
from handrail.loop.turn_hooks import TurnHooks
from handrail.tools.abort import AbortSignal
from handrail.tools.outcome import Outcome

if TYPE_CHECKING:
    from handrail.hooks.results import HookResult

Result = TypeVar("Result")


class AgentLoop:
    """One run. `events` can be read once; `leave` stops what still runs when the reader leaves early."""

    def __init__(
        self,
        config: RunConfig,
        conversation: ConversationState,
        prompt: UserMessage,
        expansion: Expansion | None,
        *,
        instructions: str | None,
        signal: AbortSignal,
    ) -> None:
        self._config = config
        self._conversation = conversation
        self._prompt = prompt
        self._expansion = expansion
        self._instructions = instructions
        self._signal = signal
        self.state = RunState()
        self.ended: RunEnded | None = None
        self._queue = EventQueue(conversation, config.observer)
        self._emit, self._add = self._queue.emit, self._queue.add
        self._waiting = self._queue.waiting
        """The events that `events` gives next, as far as they have happened: those of the queue or of an attempt."""
        self._hooks = RunHooks(config, conversation, signal, self._emit)
        self._tools = ToolDefinitions()
        self._request_facts = RequestFacts()
        self._progress = RunProgress(config)
        self._room = HistoryRoom(
            config, conversation, self._hooks, self._progress, self._queue, signal=signal, instructions=instructions
        )
        self._journal = TurnJournal()
        self._turn_hooks = TurnHooks(self._hooks, self._progress, conversation, self._add)
        self._silence = SilenceWatch()
        self._attempt: Attempt | None = None
        self._attempt_number = 0
        self._has_started = False
        self._is_closed = False

    async def events(self, owner: Callable[[], ActiveRun | None]) -> AsyncGenerator[LoopEvent, None]:
        """All events of the run. `owner` gives the run that is being read, as long as there is a reader."""
        check_written, waiting = self._queue.check_written, self._queue.waiting
        only_compacts = self._instructions is not None
        try:
            async with aclosing(self._only_compact(owner) if only_compacts else self._steps(owner)) as steps:
                async for attempt in steps:
                    while waiting:
                        check_written()
                        yield waiting.popleft()
                    if attempt is not None:
                        self._waiting = attempt.events.waiting
                        async for event in attempt.events:
                            check_written()
                            yield event
                        self._waiting = waiting
            while waiting:
                check_written()
                yield waiting.popleft()
        finally:
            self._silence.close()
            self._waiting = deque()

    def take(self) -> LoopEvent | None:
        """The event that `events` would give next, without the way through it; None = ask `events`."""
        transcript = self._conversation.history.transcript
        if not self._waiting or (transcript is not None and transcript.failure is not None):
            return None
        return self._waiting.popleft()

    async def _steps(self, owner: Callable[[], ActiveRun | None]) -> AsyncGenerator[Attempt | None, None]:
        """All steps of a run. At each `yield`, the queued events and those of the attempt are read."""
        await self._acquire(owner)
        additions = await self._start()
        if (call := self._conversation.deferred) is not None:
            attempt: Attempt = DeferredCallAttempt(
                self._config, self._conversation, call, self._signal, self._journal, silence=self._silence
            )
            yield self._start_attempt(attempt)
            if not await self._finish_attempt(attempt):
                return
            await self._after_turn(attempt)
            yield None
            if self._should_stop():
                return
        await self._add_prompt(additions)
        yield None
        while not self._should_stop():
            planned = await self._room.plan(forced=False)
            yield None
            await self._room.take(planned)
            if self._should_stop():
                return
            attempt = self._send_request()
            yield attempt
            if not await self._finish_attempt(attempt):
                return
            has_room = False
            if self._room.is_needed(attempt):
                planned = await self._room.plan(forced=True)
                yield None
                has_room = await self._room.take(planned)
            if not has_room and not attempt.is_discarded:
                await self._after_turn(attempt)
            yield None

    async def _only_compact(self, owner: Callable[[], ActiveRun | None]) -> AsyncGenerator[None, None]:
        """The steps of a run that only makes a summary, because the user asked for one."""
        await self._acquire(owner)
        await self._start()
        planned = await self._room.plan(forced=True)
        yield None
        await self._room.take(planned)
        why = Why.ABORTED_STREAMING if self._signal.aborted else Why.COMPLETED
        if self._signal.aborted:
            self._emit(Interrupted(why))
        self._end(self.state.to(why))

    @property
    def history(self) -> History:
        """The conversation that it is part of."""
        return self._conversation.history

    @property
    def active(self) -> bool:
        """Whether it has begun and is not over."""
        return self._has_started and not self._is_closed and not self.state.is_over

    def check_leave(self) -> None:
        """HandrailError if `leave` would wait for ever."""
        check_wait(self._conversation.attempt_task if self._attempt is not None else None)

    async def leave(self) -> None:
        """Stop the running attempt and wait for it, from any number of tasks. The history records the interruption."""
        attempt = self._attempt
        if self._config.observer is not None and self._has_started and not self._is_closed and self.ended is None:
            self._config.observer.run_left(self._conversation.context)
        self._is_closed = True
        self._queue.waiting.clear()
        if attempt is None or attempt.is_settled:
            if attempt is not None:
                attempt.log_failure()
            return
        attempt.stop()
        try:
            await attempt.wait()
        finally:
            attempt.log_failure()
            if attempt.stopped_by and self._attempt is attempt:
                self._attempt = None
                self._conversation.history.append(interruption_message(attempt.stopped_by))

    # Start

    async def _acquire(self, owner: Callable[[], ActiveRun | None]) -> None:
        conversation = self._conversation
        await conversation.wait_until_idle()
        other = conversation.active_run()
        if other is not None and other.active:
            raise HandrailError("Another prompt of this conversation is still being worked on. Close its run first.")
        conversation.active_run = owner
        if self._config.observer is not None:
            self._config.observer.run_begins(conversation.context)
        conversation.has_answer = False
        self._has_started = True
        if self._config.prepare is not None:
            await run_or_abort(self._config.prepare(), self._signal, None)

    async def _start(self) -> Sequence[UserMessage | Attachment]:
        """What hooks add at the start of a session or a sub-agent."""
        config, conversation = self._config, self._conversation
        self._clock = self._room.clock = RunClock(config.limits)
        names = tuple(tool.name for tool in conversation.catalog.pool.listed)
        self._emit(RunStarted(self._prompt, config.model_name, names, conversation.context.cwd, conversation.chain))
        return () if self._instructions is not None else await self._hooks.start(config)

    # Prompt

    async def _add_prompt(self, additions: Sequence[UserMessage | Attachment]) -> None:
        """Add the prompt and what goes with it. It is empty when a run only retries a deferred call."""
        conversation = self._conversation
        has_hooks = self._config.hooks is not None and self._prompt.content and conversation.context.agent.is_main
        if has_hooks:
            additions = (*additions, *self._accept_prompt(await self._hooks.expansion(self._expansion)))
        if self._config.complete_prompt is not None and not self.state.is_over:
            additions = (*additions, *await self._complete_prompt(self._config.complete_prompt))
        if has_hooks and not self.state.is_over:
            additions = (*additions, *self._accept_prompt(await self._hooks.prompt(self._prompt)))
        if self.state.is_over:
            return
        if not conversation.history.messages:
            self._add(*self._config.first_attachments(self._conversation.context))
        notes = conversation.mailbox.take_notes(prompted=True)
        await self._add_queued_messages()
        self._queue.announce_tools()
        self._add(*(each for each in additions if isinstance(each, UserMessage)))
        if self._prompt.content:
            conversation.history.append(self._prompt)
        self._add(*(each for each in additions if isinstance(each, Attachment)), *notes)
        self._attach(())

    def _accept_prompt(self, answer: "HookResult | None") -> tuple[Attachment, ...]:
        """What hooks add to the prompt. The run ends if they refuse it or were interrupted."""
        if self._signal.aborted:
            self._emit(Interrupted(Why.ABORTED_STREAMING))
            self._end(self.state.to(Why.ABORTED_STREAMING))
        elif answer is not None and (answer.stop is not None or answer.block is not None):
            self._progress.problem = answer.block or answer.stop or ""
            self._end(self.state.to(Why.HOOK_STOPPED if answer.stop is not None else Why.PROMPT_BLOCKED))
        return hook_attachments(answer)

    async def _complete_prompt(self, complete: CompletePrompt) -> tuple[Attachment, ...]:
        """Put the completed prompt in the place of the one that was typed. The run ends if it is refused."""
        completed = await run_or_abort(complete(self._signal), self._signal, self._clock.seconds_left)
        match completed:
            case CompletedPrompt():
                self._prompt = completed.message
                for warning in completed.warnings:
                    self._emit(Notice(warning))
                return completed.notes
            case PromptRefusal():
                self._progress.refuse(completed)
                self._emit(BlockComplete(f"msg_{os.urandom(16).hex()}", SYNTHETIC, Text(completed.text), 0))
                self._end(self.state.to(Why.COMPLETED))
            case None:
                if not self._signal.aborted:
                    self._end(self.state.to(Why.MAX_SECONDS))
                self._accept_prompt(None)
        return ()

    async def _add_queued_messages(self) -> None:
        """Add the messages that waited, if no hook objects."""
        mailbox, has_hooks = self._conversation.mailbox, self._config.hooks is not None
        self._add(*mailbox.take_notes())
        while mailbox.news:
            self._emit(mailbox.news.pop(0))
        for message in mailbox.take():
            answer = await self._hooks.prompt(message) if has_hooks else None
            if has_hooks and self._signal.aborted:  # no hook has accepted it
                mailbox.post(message)
            elif answer is not None and (answer.block is not None or answer.stop is not None):
                self._add(hook_note("A message that the user sent meanwhile was withheld by a hook."))
                self._emit(Notice(f"A queued message was withheld by a hook: {answer.block or answer.stop}"))
            else:
                self._conversation.history.append(message)
                self._emit(QueuedMessageTaken(message))
                self._add(*hook_attachments(answer))

    # Request and turn

    def _should_stop(self) -> bool:
        """Whether the run is over. An interrupt or a time limit between two turns ends it here."""
        if self.state.is_over:
            return True
        if self._signal.aborted:
            why = Why.ABORTED_TOOLS if self.state.why is Why.TOOL_RESULTS else Why.ABORTED_STREAMING
            self._queue.add_interruption(why)
            self._end(self.state.to(why))
        elif (left := self._clock.seconds_left) is not None and left <= 0:
            self._end(self.state.to(Why.MAX_SECONDS))
        return self.state.is_over

    def _send_request(self) -> Attempt:
        self._attempt_number = number = self._attempt_number + 1
        history = self._conversation.history
        request = build_request(self._config, self._conversation, self._tools)
        budget = self._progress.usage.budget_left(self.state.turn, self._clock.seconds_left)
        turn = TurnRequest(request, self.state.turn + 1, number > 1, number >= self._config.stream_attempts, budget)
        attempt = Attempt(self._config, self._conversation, turn, self._signal, self._journal, silence=self._silence)
        sent = RequestSent(
            request, turn.turn, self.state.why, number, turn.plain, len(history.messages), history.filled
        )
        self._emit(sent)
        if history.transcript is not None:
            history.transcript.add_fact("requested", self._request_facts.of(sent))
        return self._start_attempt(attempt)

    def _start_attempt(self, attempt: Attempt) -> Attempt:
        self._attempt = attempt
        self._conversation.attempt_task = attempt.start(self._clock.deadline)
        return attempt

    async def _finish_attempt(self, attempt: Attempt) -> bool:
        """Wait for the attempt and count its usage. False = another task has left the run."""
        await attempt.wait()
        if self._is_closed:
            return False
        self._attempt = None
        attempt.reraise()
        self._progress.add_usage(attempt)
        for answer in attempt.paid_answers:
            usage = answer.usage
            filled = usage.whole_input + usage.whole_output if usage.whole_input else 0
            self._conversation.history.filled = filled
        if warning := self._progress.usage.price_warning():
            self._emit(Notice(warning))
        if attempt.is_discarded:
            assert attempt.failure is not None
            self._emit(AnswerDiscarded(attempt.failure, attempt.calls, self.state.turn + 1, self._attempt_number))
        else:
            self._attempt_number = 0
        return True

    # After turn

    async def _after_turn(self, attempt: Attempt) -> None:
        """Show the results, decide where the run goes, and prepare the next request or end."""
        if attempt.results and attempt.deferred_call is None:
            self._emit(ResultsComplete(attempt.results, attempt.outcomes, self.state.turn + 1))
        for message in attempt.tool_messages:
            if isinstance(message, UserMessage | Attachment):
                self._emit(MessageAdded(message))
        self._progress.record(attempt, self.state)
        queued = len(self._conversation.mailbox) > 0
        turn = self._progress.turn_result(attempt, self.state, has_queued_messages=queued)
        if turn.stopped_by is Why.TOOL_DEFERRED:
            self._conversation.deferred_call = attempt.deferred_call
        state = next_state(self.state, turn, self._config.structured_retries)
        if self._config.hooks is not None:
            state = await self._turn_hooks.apply(state, turn, attempt.outcomes, self._clock.seconds_left)
        if state.move is Move.ABORTED or (turn.stopped_by and state.why is not Why.TOOL_DEFERRED):
            self._queue.add_interruption(state.why)
        if state.is_over:
            self._add(*filter(None, (self._journal.lost_calls,)))  # for the next prompt
            self._end(state)
        else:
            self.state = state
            await self._prepare_request(attempt.outcomes)

    async def _prepare_request(self, outcomes: Sequence[Outcome]) -> None:
        """Add everything that goes into the next request besides the results."""
        why = self.state.why
        if why is Why.PAUSED:
            return  # the vendor only continues a paused answer if nothing is added
        extras = (
            self._journal.lost_calls,
            self._progress.guard.warning if why is Why.TOOL_RESULTS else None,
            retry_message(why, self._progress.problem),
        )
        self._journal = TurnJournal()
        self._add(*filter(None, extras))
        self._attach(outcomes)
        if self._config.after_calls and (late := self._config.after_calls(outcomes, self._conversation.context)):
            self._add(*(await run_or_abort(late, self._signal, self._clock.seconds_left) or ()))
        self._queue.announce_tools()
        await self._add_queued_messages()

    def _attach(self, outcomes: Sequence[Outcome]) -> None:
        """Add what the session attaches, one by one: it learns that each is in the history before it gives the next."""
        for each in self._config.attach(outcomes, self._conversation.context):
            self._add(each)
            self._queue.check_written()

    # End

    def _end(self, state: RunState) -> None:
        self.state = state
        ended = self._progress.run_ended(state, self._clock.seconds)
        if state.why is Why.HOOK_STOPPED and ended.problem:
            self._emit(HookNews(ended.problem))
        if state.why is Why.TOOL_DEFERRED:
            ended = replace(ended, stop_reason=state.why.value, deferred=self._conversation.deferred_call)
        self.ended = ended
        self._conversation.has_answer = not ended.is_error
        if (transcript := self._conversation.history.transcript) is not None:
            transcript.add_fact("ended", end_facts(ended))
        self._emit(ended)

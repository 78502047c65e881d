"""
One attempt at one turn: stream the answer, run its calls, write both into the history.

    streaming -> running -> settled
        |           |
        +-----------+--> stopped or failed -> settled

It runs as one task of its own, so that calls start the moment their block is complete, however slow the reader of
the events is. However the task ends, it settles: the answer and one result for each of its calls go into the history
together, or, when the answer is to be asked for again, nothing does.
"""

import asyncio
from dataclasses import replace
from functools import partial
from typing import Any, cast

from handrail.conversation.blocks import Text, ToolUse
from handrail.conversation.logger import get_logger
from handrail.conversation.messages import AssistantMessage, Attachment, Message, SystemNote, UserMessage
from handrail.conversation.request import Request
from handrail.conversation.stream import (
    BlockEnd,
    BlockStart,
    Delta,
    MessageEnd,
    MessageStart,
    StreamFailure,
    StreamRetry,
    UsageUpdate,
)
from handrail.dispatch.channel import Channel
from handrail.dispatch.executor import ToolExecutor
from handrail.dispatch.threads import in_loop
from handrail.loop.attempt_task import check_wait, enter_attempt, leave_attempt
from handrail.loop.conversation_state import ConversationState
from handrail.loop.events import AlternativesOffered, BlockComplete, LoopEvent, MessageComplete
from handrail.loop.facts import answer_facts
from handrail.loop.journal import TurnJournal
from handrail.loop.partial_answer import PartialAnswer, is_empty
from handrail.loop.run_config import RunConfig, Stream
from handrail.loop.silence import SilenceWatch
from handrail.loop.state import Why
from handrail.records import record
from handrail.tools.abort import AbortReason, AbortSignal
from handrail.tools.context import NO_BUDGET, Budget, message_of_one_call
from handrail.tools.outcome import Outcome, Status

log = get_logger(__name__)

GO_ON = Text("Go on.")
ENDED_EARLY = StreamFailure("cut", "the stream ended before the answer was complete", retryable=True)


@record
class TurnRequest:
    """The request of one attempt. `is_last`: a broken answer is not requested again."""

    request: Request
    turn: int
    plain: bool = False
    is_last: bool = False
    budget: Budget = NO_BUDGET


class Attempt:
    """See the module docstring. Read `events` until it ends; then everything else here is final."""

    def __init__(
        self,
        config: RunConfig,
        conversation: ConversationState,
        turn: TurnRequest,
        signal: AbortSignal,
        journal: TurnJournal,
        *,
        silence: SilenceWatch,
    ) -> None:
        self._config = config
        self._conversation = conversation
        self._turn = turn
        self.signal = signal.child()
        self._executor = ToolExecutor(
            conversation.catalog.pool,
            replace(
                conversation.context,
                abort=self.signal,
                history=conversation.history.messages,
                budget=turn.budget,
                message=self._message_of,
                refresh_tools=conversation.refresh_tools,
            ),
            conversation.store,
            rails=config.rails,
            scheduling=config.scheduling,
            journal=journal,
            activate=conversation.catalog.activate,
            add_tools=conversation.catalog.add,
            transcript=conversation.history.transcript,
            defers=config.can_defer and conversation.context.agent.is_main,
        )
        self._transcript = conversation.history.transcript
        # the executor's own channel also carries what the model says, so that everything leaves in the order it happens
        self.events = cast("Channel[LoopEvent]", self._executor.events)
        self._partial = PartialAnswer(turn.request.model, conversation.history.call_ids)
        self._is_streaming = False
        self._if_aborted = Why.ABORTED_STREAMING
        """What an interrupt stops now: the answer, or the calls after it."""
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._silence = silence

        self.is_settled = False
        self.stopped_by: Why | None = None
        self.failure: StreamFailure | None = None
        self.is_discarded = False
        self.answer: AssistantMessage | None = None
        """The answer, if it is complete."""
        self.message: AssistantMessage | None = None
        """The part of the answer that is in the history now; None = nothing."""
        self.outcomes: tuple[Outcome, ...] = ()
        self.results: UserMessage | None = None
        self.tool_messages: tuple[Message, ...] = ()
        self.paid_answers: list[PartialAnswer] = []
        """The answers that were paid for: more than one when there was a choice."""
        self.seconds = 0.0

    # For the run

    def start(self, deadline: float | None) -> asyncio.Task[None]:
        """Start the task. It is stopped at the deadline, on the clock of the event loop."""
        loop = asyncio.get_running_loop()
        self.signal.listen(self._on_abort)
        if deadline is not None:
            self._timer = loop.call_at(deadline, self.stop, Why.MAX_SECONDS)
        self._task = loop.create_task(self._run())
        return self._task

    def stop(self, why: Why | None = None) -> None:
        """End it soon; by default as if the user had interrupted."""
        self.stopped_by = self.stopped_by or why
        self.signal.abort(AbortReason.USER)

    async def wait(self) -> None:
        """Wait until it is settled. Cancelling the wait stops the attempt, but does not end the wait early."""
        assert self._task is not None
        cancelled: asyncio.CancelledError | None = None
        while check_wait(self._task):
            try:
                await asyncio.wait((self._task,))
            except asyncio.CancelledError as error:
                cancelled = error
                self.stop()
        if cancelled:
            raise cancelled

    def reraise(self) -> None:
        """Raise an unexpected error of the task: a bug in a model or in this class."""
        assert self._task is not None
        self._task.result()

    def log_failure(self) -> None:
        """Log an unexpected error of the task, for a run that was left before it was raised."""
        task = self._task
        if task is not None and task.done() and not task.cancelled() and (error := task.exception()) is not None:
            log.error("the turn of a run that was left had failed", exc_info=error)

    @property
    def calls(self) -> tuple[ToolUse, ...]:
        """The calls of the answer so far that can run."""
        return tuple(block for block in self._partial.blocks.values() if isinstance(block, ToolUse))

    @property
    def deferred_call(self) -> ToolUse | None:
        """The call that a hook deferred."""
        for outcome in self.outcomes:
            if outcome.status is Status.DEFERRED:
                return outcome.use
        return None

    # The task

    def _on_abort(self, _reason: AbortReason) -> None:
        self.stopped_by = self.stopped_by or self._if_aborted
        if self._is_streaming and self._task and self._task is not asyncio.current_task():
            self._task.cancel()

    async def _run(self) -> None:
        token = enter_attempt()
        try:
            async with self._executor:
                loop = asyncio.get_running_loop()
                self._conversation.mailbox.on_submit = partial(in_loop, loop, self._executor.interrupt)
                await self._stream()
                await self._run_calls()
        finally:
            leave_attempt(token)
            self._conversation.mailbox.on_submit = None
            self.signal.release()
            if self._timer:
                self._timer.cancel()
            self._settle()

    async def _stream(self) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        self._is_streaming = True
        self._watch_silence()
        try:
            if not self.stopped_by:
                await (self._stream_two() if self._config.choose_answer else self._stream_one(self._partial, live=True))
        except (asyncio.CancelledError, Exception) as error:
            task = asyncio.current_task()
            if self.stopped_by is None or task is None:
                raise
            task.uncancel()  # `stop` cancelled it, not a caller that wants the task to end
            if not isinstance(error, asyncio.CancelledError):
                log.exception("the model failed while its answer was stopped")
        finally:
            self._is_streaming = False
            self._if_aborted = Why.ABORTED_TOOLS
            self._silence.stop()
            self.seconds = loop.time() - started

    async def _run_calls(self) -> None:
        executor = self._executor
        if self.failure:
            may_retry = self.failure.retryable and not self._turn.is_last and self.stopped_by is None
            self.is_discarded = may_retry and self._partial.has_calls
            executor.discard()
        elif self.stopped_by is None:
            for call in self._partial.take_calls(is_complete=True):
                executor.add(call)
            async for _ in executor.rest():
                pass

    # The answer

    async def _stream_one(self, partial: PartialAnswer, *, live: bool) -> str:
        """Read one answer to its end; returns its stop reason. With `live`, its events and calls leave as they come."""
        stream = self._config.model.stream(self._turn.request, **({"plain": True} if self._turn.plain else {}))
        try:
            return await self._read(stream, partial, live=live)
        finally:
            await stream.aclose()

    async def _read(self, stream: Stream, partial: PartialAnswer, *, live: bool) -> str:
        put = self.events.put if live else _ignore
        async for event in stream:
            self._silence.stop()
            match event:
                case Delta():
                    partial.add_delta(event)
                    put(event)
                case BlockEnd():
                    event = partial.close_block(event)  # noqa: PLW2901  # an id may have been replaced
                    if live:
                        self._save_block(partial, event)
                    put(event)
                    put(BlockComplete(partial.id, partial.model, event.block, event.slot))
                    if live and partial.has_calls:
                        for call in partial.take_calls():
                            self._executor.add(call)
                case MessageEnd():
                    put(event)
                    if live:
                        self._complete(partial, event.stop_reason)
                    return event.stop_reason
                case StreamFailure():
                    put(event)
                    self.failure = event
                    return ""
                case _:
                    self._update(partial, event)
                    put(event)
        self.failure = ENDED_EARLY
        put(ENDED_EARLY)
        return ""

    def _complete(self, partial: PartialAnswer, stop_reason: str) -> None:
        self.answer = partial.to_message(stop_reason)
        self.paid_answers.append(partial)
        dollars = self._config.cost(partial.model, partial.usage)
        if self._transcript is not None:
            facts = answer_facts(partial.id, partial.model, partial.usage, dollars, self._turn.turn)
            self._transcript.add_fact("answered", facts)
        complete = MessageComplete(partial.id, self.answer, partial.usage, dollars, self._turn.turn)
        if self._config.observer is not None:
            self._config.observer.on_event(complete, self._conversation.context)
        self.events.put(complete)

    async def _stream_two(self) -> None:
        """Read two answers side by side. No call of them runs before the caller has chosen."""
        assert self._config.choose_answer is not None
        partials = [self._partial, PartialAnswer(self._partial.model, self._conversation.history.call_ids)]
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._stream_one(partial, live=False)) for partial in partials]
        except ExceptionGroup as raised:
            raise raised.exceptions[0] from raised
        if self.failure:
            return
        first, second = (partial.to_message(task.result()) for partial, task in zip(partials, tasks, strict=True))
        self.events.put(AlternativesOffered(first, second, self._turn.turn))
        chosen = await self._config.choose_answer(first, second)
        if self.stopped_by:
            return
        winner, other = partials if chosen is first else reversed(partials)
        self.paid_answers.append(other)
        self._partial = winner
        for slot, block in sorted(winner.blocks.items()):
            self._save_block(winner, BlockEnd(slot, block))
            self.events.put(BlockComplete(winner.id, winner.model, block, slot))
        self._complete(winner, chosen.stop_reason)

    def _update(self, partial: PartialAnswer, event: MessageStart | BlockStart | UsageUpdate | StreamRetry) -> None:
        if isinstance(event, StreamRetry):
            self._discard_saved()
            self._watch_silence()
        partial.update(event)

    def _watch_silence(self) -> None:
        self._silence.start(self._turn.request.model, self.events.put)

    def _save_block(self, partial: PartialAnswer, event: BlockEnd) -> None:
        if self._transcript is not None:
            self._transcript.add_block(partial.id, partial.model, event.block, event.slot)

    def _discard_saved(self) -> None:
        if self._transcript is not None:
            self._transcript.discard_blocks()

    # The history

    def _keep_context(self) -> None:
        """Keep the context as the calls left it, without what belongs to this attempt."""
        context = replace(self._executor.run, message=message_of_one_call, budget=NO_BUDGET)
        self._conversation.context = self._executor.run = context

    def _message_of(self, _use: ToolUse) -> AssistantMessage:
        """The answer that asks for a call, as far as it has arrived."""
        return self.answer or self._partial.to_message("")

    def _settle(self) -> None:
        """Write the history. The executor is closed, so every call has an outcome; no await, so nothing interferes."""
        self.is_settled = True
        self._keep_context()
        if self.is_discarded:
            self._discard_saved()
            return
        outcomes = {outcome.use.id: outcome for outcome in self._executor.outcomes}
        message = self.answer or self._partial.to_message("")
        calls = message.calls
        if len(outcomes) < len(calls):
            # complete calls that were never handed out: nothing of them has run, so the model never asked for them
            never_run = [call for call in calls if call.id not in outcomes]
            message = replace(message, content=tuple(block for block in message.content if block not in never_run))
            calls = message.calls
        if not calls and is_empty(message.content):
            self._discard_saved()
            return
        self.message = message
        self.outcomes = tuple([outcomes[call.id] for call in calls])
        history = self._conversation.history
        history.append(message)
        if self.outcomes:
            self.results = UserMessage(tuple([outcome.result for outcome in self.outcomes]))
            history.append(self.results)
            self._add_tool_messages()

    def _add_tool_messages(self) -> None:
        """Add the messages that tools bring with them, after all results."""
        messages = [message for each in self.outcomes if each.output for message in each.output.messages]
        if not messages:
            return
        if any(isinstance(message, AssistantMessage) for message in messages):
            spoken = [message for message in messages if not isinstance(message, SystemNote)]
            if isinstance(spoken[-1], AssistantMessage):
                messages.append(Attachment("go_on", (GO_ON,)))
        self.tool_messages = tuple(messages)
        for message in messages:
            self._conversation.history.append(message)


class DeferredCallAttempt(Attempt):
    """Retries a deferred call from the start. The model is not asked; its answer stands."""

    def __init__(
        self,
        config: RunConfig,
        conversation: ConversationState,
        use: ToolUse,
        signal: AbortSignal,
        journal: TurnJournal,
        *,
        silence: SilenceWatch,
    ) -> None:
        turn = TurnRequest(Request(config.model_name, conversation.history), turn=0)
        super().__init__(config, conversation, turn, signal, journal, silence=silence)
        self._use = use
        self._if_aborted = Why.ABORTED_TOOLS

    async def _stream(self) -> None:
        """There is nothing to stream."""

    async def _run_calls(self) -> None:
        if self.stopped_by is None:
            self._executor.add(self._use, was_deferred=True)
            async for _ in self._executor.rest():
                pass

    def _message_of(self, use: ToolUse) -> AssistantMessage:
        """The answer that asked for the call, which is in the history."""
        said = (each for each in reversed(self._conversation.history.messages) if isinstance(each, AssistantMessage))
        return next((each for each in said if any(call.id == use.id for call in each.calls)), AssistantMessage((use,)))

    def _settle(self) -> None:
        """Replace the placeholder result with the real one, unless the call was deferred again."""
        self.is_settled = True
        self._keep_context()
        self.outcomes = self._executor.outcomes
        if all(outcome.status is Status.DEFERRED for outcome in self.outcomes):
            return
        self.results = UserMessage(tuple(outcome.result for outcome in self.outcomes))
        self._conversation.history.amend(self.results)
        self._add_tool_messages()


def _ignore(_event: Any) -> None:
    """Drop the event."""

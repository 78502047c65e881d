"""
One attempt at one turn: listen to the answer, run its calls, write both into the history.

    listening -> running -> settled
        |           |
        +-----------+--> stopped or failed -> settled

It runs as one task of its own, so that calls start the moment their block is complete, however slow the reader of
the events is. Whatever happens to the task, it ends by settling: what the model said and one result for every call
it asked for go into the history together, or, when the answer is to be asked for again, nothing does.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from handrail.conversation.blocks import Text, ToolUse
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
from handrail.loop.dialogue import Dialogue
from handrail.loop.draft import Draft, is_empty
from handrail.loop.events import AlternativesOffered, BlockComplete, LoopEvent, MessageComplete
from handrail.loop.journal import TurnJournal
from handrail.loop.setup import Setup, Stream
from handrail.loop.state import Why
from handrail.records import record
from handrail.tools.abort import AbortReason, AbortSignal
from handrail.tools.context import NO_BUDGET, Budget, message_of_one_call
from handrail.tools.outcome import Outcome, Status

GO_ON = Text("Go on.")
ENDED_EARLY = StreamFailure("cut", "the stream ended before the answer was complete", retryable=True)


@record
class Question:
    """What is asked in one attempt. `last` = a broken answer is not asked for again."""

    request: Request
    turn: int
    plain: bool = False
    last: bool = False
    budget: Budget = NO_BUDGET


class Attempt:
    """See the module docstring. Read `events` until it ends; then everything else here is final."""

    def __init__(
        self, setup: Setup, dialogue: Dialogue, question: Question, signal: AbortSignal, journal: TurnJournal
    ) -> None:
        self._setup = setup
        self._dialogue = dialogue
        self._question = question
        self.signal = signal.child()
        self._executor = ToolExecutor(
            dialogue.catalog.pool,
            replace(
                dialogue.context,
                abort=self.signal,
                history=dialogue.history.messages,
                budget=question.budget,
                message=self._message_of,
                refresh_tools=dialogue.refresh_tools,
            ),
            dialogue.store,
            rails=setup.rails,
            scheduling=setup.scheduling,
            journal=journal,
            activate=dialogue.catalog.activate,
            add_tools=dialogue.catalog.add,
            scribe=dialogue.history.scribe,
            defers=setup.defers and dialogue.context.agent.is_main,
        )
        self._scribe = dialogue.history.scribe
        # the executor's own channel also carries what the model says, so that everything leaves in the order it happens
        self.events = cast("Channel[LoopEvent]", self._executor.events)
        self._draft = Draft(question.request.model, dialogue.history.call_ids)
        self._listening = False
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

        self.settled = False
        self.stopped: Why | None = None
        self.failure: StreamFailure | None = None
        self.discarded = False
        self.whole: AssistantMessage | None = None
        """The answer, if it came to its end."""
        self.message: AssistantMessage | None = None
        """What of it is in the history now; None = nothing."""
        self.outcomes: tuple[Outcome, ...] = ()
        self.results: UserMessage | None = None
        self.added: tuple[Message, ...] = ()
        self.used: list[Draft] = []
        """The answers that were paid for: more than one when there was a choice."""
        self.seconds = 0.0

    # What the run does

    def start(self, deadline: float | None) -> asyncio.Task[None]:
        """Begin; at the deadline (on the loop's clock) it is stopped."""
        loop = asyncio.get_running_loop()
        self.signal.listen(self._aborted)
        if deadline is not None:
            self._timer = loop.call_at(deadline, self.stop, Why.MAX_SECONDS)
        self._task = loop.create_task(self._work())
        return self._task

    def stop(self, why: Why | None = None) -> None:
        """End it soon; by default as if the user had interrupted."""
        self.stopped = self.stopped or why
        self.signal.abort(AbortReason.USER)

    async def ended(self) -> None:
        """Wait until it is settled. Cancelling the wait stops the attempt, but does not end the wait early."""
        assert self._task is not None
        cancelled: asyncio.CancelledError | None = None
        while not self._task.done():
            try:
                await asyncio.wait((self._task,))
            except asyncio.CancelledError as error:
                cancelled = error
                self.stop()
        if cancelled:
            raise cancelled

    def reraise(self) -> None:
        """What went wrong in a way that is nobody's answer: a bug in a model or in here."""
        assert self._task is not None
        self._task.result()

    @property
    def calls(self) -> tuple[ToolUse, ...]:
        """The calls of the answer so far that can run."""
        return tuple(block for block in self._draft.blocks.values() if isinstance(block, ToolUse))

    @property
    def put_off(self) -> ToolUse | None:
        """The call that a hook wants to decide about later."""
        return next((outcome.use for outcome in self.outcomes if outcome.status is Status.DEFERRED), None)

    # What happens

    def _aborted(self, _reason: AbortReason) -> None:
        self.stopped = self.stopped or (Why.ABORTED_STREAMING if self._listening else Why.ABORTED_TOOLS)
        if self._listening and self._task and self._task is not asyncio.current_task():
            self._task.cancel()

    async def _work(self) -> None:
        try:
            async with self._executor:
                self._dialogue.mailbox.on_submit = self._executor.interrupt
                await self._listen()
                await self._finish()
        finally:
            self._dialogue.mailbox.on_submit = None
            self.signal.release()
            if self._timer:
                self._timer.cancel()
            self._settle()

    async def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        self._listening = True
        try:
            if not self.stopped:
                await (self._hear_two() if self._setup.choose else self._hear(self._draft, tell=True))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self.stopped is None or task is None:
                raise
            task.uncancel()  # it was `stop`, not somebody who wants this task to go away
        finally:
            self._listening = False
            self.seconds = loop.time() - began

    async def _finish(self) -> None:
        executor = self._executor
        if self.failure:
            self.discarded = (
                self.failure.retryable and self._draft.called and not self._question.last and self.stopped is None
            )
            executor.discard()
        elif self.stopped is None:
            for call in self._draft.handed_out(whole=True):
                executor.add(call)
            executor.finish()
            async for _ in executor.rest():
                pass

    # What the model says

    async def _hear(self, draft: Draft, *, tell: bool) -> str:
        """One answer to its end; its stop reason. With `tell`, its events and calls leave as they come."""
        stream = self._setup.model.stream(self._question.request, **({"plain": True} if self._question.plain else {}))
        try:
            return await self._read(stream, draft, tell=tell)
        finally:
            await stream.aclose()

    async def _read(self, stream: Stream, draft: Draft, *, tell: bool) -> str:
        put = self.events.put if tell else _nobody
        async for event in stream:
            match event:
                case Delta():
                    draft.add(event)
                    put(event)
                case BlockEnd():
                    event = draft.close(event)  # noqa: PLW2901  # an id may have been replaced
                    if tell:
                        self._write_down(draft, event)
                    put(event)
                    put(BlockComplete(draft.id, draft.model, event.block, event.slot))
                    if tell and draft.called:
                        for call in draft.handed_out():
                            self._executor.add(call)
                case MessageEnd():
                    put(event)
                    if tell:
                        self._whole(draft, event.stop_reason)
                    return event.stop_reason
                case StreamFailure():
                    put(event)
                    self.failure = event
                    return ""
                case _:
                    self._note(draft, event)
                    put(event)
        self.failure = ENDED_EARLY
        put(ENDED_EARLY)
        return ""

    def _whole(self, draft: Draft, stop_reason: str) -> None:
        self.whole = draft.message(stop_reason)
        self.used.append(draft)
        dollars = self._setup.cost(draft.model, draft.usage)
        self.events.put(MessageComplete(draft.id, self.whole, draft.usage, dollars, self._question.turn))

    async def _hear_two(self) -> None:
        """Two answers side by side; nothing of them is run before the caller has chosen."""
        assert self._setup.choose is not None
        drafts = [self._draft, Draft(self._draft.model, self._dialogue.history.call_ids)]
        try:
            async with asyncio.TaskGroup() as group:
                heard = [group.create_task(self._hear(draft, tell=False)) for draft in drafts]
        except ExceptionGroup as raised:
            raise raised.exceptions[0] from raised
        if self.failure:
            return
        first, second = (draft.message(task.result()) for draft, task in zip(drafts, heard, strict=True))
        self.events.put(AlternativesOffered(first, second, self._question.turn))
        chosen = await self._setup.choose(first, second)
        if self.stopped:
            return
        winner, other = drafts if chosen is first else reversed(drafts)
        self.used.append(other)
        self._draft = winner
        for slot, block in sorted(winner.blocks.items()):
            self._write_down(winner, BlockEnd(slot, block))
            self.events.put(BlockComplete(winner.id, winner.model, block, slot))
        self._whole(winner, chosen.stop_reason)

    def _note(self, draft: Draft, event: MessageStart | BlockStart | UsageUpdate | StreamRetry) -> None:
        if isinstance(event, StreamRetry):
            self._forget()
        draft.note(event)

    def _write_down(self, draft: Draft, event: BlockEnd) -> None:
        if self._scribe is not None:
            self._scribe.block(draft.id, draft.model, event.block, event.slot)

    def _forget(self) -> None:
        if self._scribe is not None:
            self._scribe.discarded()

    # What remains

    def _keep_context(self) -> None:
        """The context as the calls left it, without what belongs to this attempt."""
        self._dialogue.context = replace(self._executor.run, message=message_of_one_call, budget=NO_BUDGET)

    def _message_of(self, _use: ToolUse) -> AssistantMessage:
        """The answer that asks for a call, as far as it has arrived."""
        return self.whole or self._draft.message("")

    def _settle(self) -> None:
        """The executor is closed, so every call has an outcome. There is no await in here, so nothing comes between."""
        self.settled = True
        self._keep_context()
        if self.discarded:
            self._forget()
            return
        outcomes = {outcome.use.id: outcome for outcome in self._executor.outcomes}
        message = self.whole or self._draft.message("")
        if len(outcomes) < len(message.calls):
            # complete calls that were never handed out: nothing of them has run, so they were never said
            unheard = [call for call in message.calls if call.id not in outcomes]
            message = replace(message, content=tuple(block for block in message.content if block not in unheard))
        if is_empty(message.content):
            self._forget()
            return
        self.message = message
        self.outcomes = tuple(outcomes[call.id] for call in message.calls)
        history = self._dialogue.history
        history.append(message)
        if self.outcomes:
            self.results = UserMessage(tuple(outcome.result for outcome in self.outcomes))
            history.append(self.results)
            self.added = _brought(self.outcomes)
            for extra in self.added:
                history.append(extra)


class SecondAttempt(Attempt):
    """The call that was put off goes through everything again. The model is not asked; its answer stands."""

    def __init__(
        self, setup: Setup, dialogue: Dialogue, use: ToolUse, signal: AbortSignal, journal: TurnJournal
    ) -> None:
        question = Question(Request(setup.model_name, dialogue.history), turn=0)
        super().__init__(setup, dialogue, question, signal, journal)
        self._use = use

    async def _listen(self) -> None:
        """Nobody speaks."""

    async def _finish(self) -> None:
        if self.stopped is None:
            self._executor.add(self._use, put_off=True)
            async for _ in self._executor.rest():
                pass

    def _message_of(self, use: ToolUse) -> AssistantMessage:
        """The answer that asked for the call, which is in the history."""
        said = (each for each in reversed(self._dialogue.history.messages) if isinstance(each, AssistantMessage))
        return next((each for each in said if any(call.id == use.id for call in each.calls)), AssistantMessage((use,)))

    def _settle(self) -> None:
        """Its result takes the place of the one that stood for it, unless it was put off once more."""
        self.settled = True
        self._keep_context()
        self.outcomes = self._executor.outcomes
        if all(outcome.status is Status.DEFERRED for outcome in self.outcomes):
            return
        self.results = UserMessage(tuple(outcome.result for outcome in self.outcomes))
        self._dialogue.history.amend(self.results)
        self.added = _brought(self.outcomes)
        for extra in self.added:
            self._dialogue.history.append(extra)


def _brought(outcomes: Sequence[Outcome]) -> tuple[Message, ...]:
    """Messages that tools add to the conversation, after all results."""
    found = [message for each in outcomes if each.output for message in each.output.messages]
    if any(isinstance(message, AssistantMessage) for message in found):
        spoken = [message for message in found if not isinstance(message, SystemNote)]
        if isinstance(spoken[-1], AssistantMessage):
            found.append(Attachment("go_on", (GO_ON,)))
    return tuple(found)


def _nobody(_event: Any) -> None:
    """Nobody is told."""

"""The progress of a run: the text of its last answer, refused calls, problems, and usage."""

import json

from handrail.conversation.messages import AssistantMessage
from handrail.conversation.stream import StreamFailure
from handrail.loop.complete_prompt import PromptRefusal
from handrail.loop.events import Denial, RunEnded, denial_of
from handrail.loop.partial_answer import is_empty
from handrail.loop.repeat_guard import RepeatGuard
from handrail.loop.run_config import RunConfig
from handrail.loop.state import RunState, TurnResult, Why
from handrail.loop.turn import Attempt
from handrail.loop.usage import UsageMeter
from handrail.tools.outcome import Status

DATA_TOOL = "StructuredOutput"
"""The tool that takes the answer as data; a successful call of it ends the run."""
CONTINUED = frozenset({Why.CUT_ANSWER, Why.PAUSED})
"""After these an answer goes on where the one before it stopped."""


class RunProgress:
    """Grows turn by turn: `add_usage` and `record` an attempt, then ask for its `turn_result`."""

    def __init__(self, config: RunConfig) -> None:
        self._config = config
        self.usage = UsageMeter(config.limits, config.cost)
        self.guard = RepeatGuard()
        self.failure: StreamFailure | None = None
        self.text = ""
        """The text of the last answer."""
        self.problem = ""
        """Why the run cannot go on as it should, as text."""
        self._denials: list[Denial] = []
        self._last: AssistantMessage | None = None
        self._structured: object = None
        self._data: tuple[object] | None = None
        """The answer that the model gave as the input of StructuredOutput."""

    def add_usage(self, attempt: Attempt) -> None:
        """Count the usage of an attempt and of side requests."""
        self.usage.model_seconds += attempt.seconds
        self._add_side_usage()
        for answer in attempt.paid_answers:
            self.usage.add(answer.model, answer.usage)

    def _add_side_usage(self) -> None:
        for model, usage in self._config.side_usage():
            self.usage.add(model, usage)
        for model, usage in self._config.agent_usage():
            self.usage.add(model, usage, is_own=False)

    def record(self, attempt: Attempt, before: RunState) -> None:
        """Remember what an attempt said and did."""
        for outcome in attempt.outcomes:
            for model, usage in outcome.output.used if outcome.output else ():
                self.usage.add(model, usage)
            if outcome.status is Status.DENIED and outcome.decision:
                self._denials.append(denial_of(outcome.use, outcome.decision))
            if self._config.structured and outcome.use.name == DATA_TOOL and outcome.status is Status.OK:
                self._data = (outcome.output.data if outcome.output else None,)
        self.guard = self.guard.after(attempt.outcomes)
        self.failure = attempt.failure
        if attempt.answer:
            self._last = attempt.answer
            start = self.text if before.why in CONTINUED else ""
            self.text = start + attempt.answer.text or self.text

    def refuse(self, refusal: PromptRefusal) -> None:
        """Remember why the prompt does not reach the model."""
        self.text = refusal.text
        self._denials += refusal.denials

    def turn_result(self, attempt: Attempt, before: RunState, *, has_queued_messages: bool) -> TurnResult:
        """The result of a recorded attempt."""
        answer = attempt.answer
        stopped_by = attempt.stopped_by or self._stopped_by_call(attempt)
        has_calls = bool(attempt.outcomes)
        has_data = self._data is not None and all(o.status is Status.OK for o in attempt.outcomes)
        is_final = answer is not None and (has_data or not has_calls) and stopped_by is None
        return TurnResult(
            has_answer=answer is not None,
            has_calls=has_calls and not has_data,
            is_empty=answer is not None and not has_calls and not has_data and is_empty(answer.content),
            stop_reason=answer.stop_reason if answer else "",
            stopped_by=stopped_by,
            has_failed=attempt.failure is not None,
            has_queued_messages=has_queued_messages,
            stuck=self.guard.stuck,
            is_unfit=is_final and not self._check_structured(),
            limit=self.usage.limit_reached(before.turn + (answer is not None)),
        )

    def _stopped_by_call(self, attempt: Attempt) -> Why | None:
        """Why the outcome of a call ends the run."""
        for outcome in attempt.outcomes:
            if outcome.decision is not None and outcome.decision.interrupt:
                return Why.ABORTED_TOOLS
        for outcome in attempt.outcomes:
            if outcome.stop is not None:
                self.problem = outcome.stop
                return Why.HOOK_STOPPED
        return Why.TOOL_DEFERRED if attempt.deferred_call is not None else None

    def _check_structured(self) -> bool:
        if self._config.structured is None:
            return True
        if self._data is None:
            self._structured, self.problem = self._config.structured.check(self.text)
        else:
            [data] = self._data
            self._structured, self.problem = self._config.structured.check_value(data)
            self.text = self.text or json.dumps(data, ensure_ascii=False)
        return not self.problem

    def run_ended(self, state: RunState, seconds: float) -> RunEnded:
        """The last event of a run that ends in `state` after these seconds."""
        self._add_side_usage()
        if state.why in {Why.REPEATED_FAILURE, Why.REPEATED_CALL}:
            self.problem = self.guard.problem
        return RunEnded(
            state.move,
            state.why,
            self.text,
            self._structured if state.why is Why.COMPLETED else None,
            state.turn,
            seconds,
            self.usage.model_seconds,
            dict(self.usage.by_model),
            self.usage.dollars,
            tuple(self._denials),
            self.failure,
            self.problem,
            self._last.stop_reason if self._last else "",
            own=self.usage.own,
        )

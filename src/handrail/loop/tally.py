"""What a run has come to so far: the words of its last answer, what was refused, what went wrong, and the bill."""

from handrail.conversation.messages import AssistantMessage
from handrail.conversation.stream import StreamFailure
from handrail.loop.draft import is_empty
from handrail.loop.events import Denial, RunEnded
from handrail.loop.guard import Guard
from handrail.loop.ledger import Ledger
from handrail.loop.setup import Setup
from handrail.loop.state import State, Turned, Why
from handrail.loop.turn import Attempt
from handrail.tools.outcome import Status

CONTINUED = frozenset({Why.CUT_ANSWER, Why.PAUSED})
"""After these an answer goes on where the one before it stopped."""


class Tally:
    """Kept turn by turn: `pay` for what was used, `note` what was said and done, and say what `happened`."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self.ledger = Ledger(setup.limits, setup.cost)
        self.guard = Guard()
        self.failure: StreamFailure | None = None
        self.text = ""
        """The words of the last answer."""
        self.problem = ""
        """Why the run does not go on as it should, in words."""
        self._denials: list[Denial] = []
        self._last: AssistantMessage | None = None
        self._structured: object = None

    def pay(self, attempt: Attempt) -> None:
        """Enter what an attempt used, and what was asked of models beside it."""
        self.ledger.model_seconds += attempt.seconds
        self.pay_aside()
        for draft in attempt.used:
            self.ledger.enter(draft.model, draft.usage)

    def pay_aside(self) -> None:
        """Enter what was asked of models beside the conversation."""
        for model, usage in self._setup.spent_aside():
            self.ledger.enter(model, usage)

    def note(self, attempt: Attempt, before: State) -> None:
        """Keep what an attempt said and did."""
        for outcome in attempt.outcomes:
            for model, usage in outcome.output.used if outcome.output else ():
                self.ledger.enter(model, usage)
            if outcome.status is Status.DENIED and outcome.decision:
                self._denials.append(Denial(outcome.use, outcome.decision.reason))
        self.guard = self.guard.after(attempt.outcomes)
        self.failure = attempt.failure
        if attempt.whole:
            self._last = attempt.whole
            begun = self.text if before.why in CONTINUED else ""
            self.text = begun + attempt.whole.text or self.text

    def happened(self, attempt: Attempt, before: State, *, queued: bool) -> Turned:
        """What an attempt that was noted came to."""
        said = attempt.whole
        stopped = attempt.stopped
        if stopped is None and any(o.decision and o.decision.interrupt for o in attempt.outcomes):
            stopped = Why.ABORTED_TOOLS
        stop = next((o.stop for o in attempt.outcomes if o.stop is not None), None)
        if stopped is None and stop is not None:
            stopped, self.problem = Why.HOOK_STOPPED, stop
        if stopped is None and attempt.put_off is not None:
            stopped = Why.TOOL_DEFERRED
        calls = bool(attempt.outcomes)
        final = said is not None and not calls and stopped is None
        return Turned(
            answered=said is not None,
            calls=calls,
            empty=said is not None and is_empty(said.content),
            stop_reason=said.stop_reason if said else "",
            stopped=stopped,
            failed=attempt.failure is not None,
            queued=queued,
            stuck=self.guard.stuck,
            unfit=final and self._unfit(),
            passed=self.ledger.passed(before.turn + (said is not None)),
        )

    def _unfit(self) -> bool:
        if self._setup.structured is None:
            return False
        self._structured, self.problem = self._setup.structured.check(self.text)
        return bool(self.problem)

    def ended(self, state: State, seconds: float) -> RunEnded:
        """The end of the run, which stands at `state` after so many seconds."""
        self.pay_aside()
        if state.why is Why.REPEATED_FAILURE:
            times, tool = self.guard.worst
            self.problem = f"{tool} failed {times} times in a row with the same input and the same error."
        return RunEnded(
            state.move,
            state.why,
            self.text,
            self._structured if state.why is Why.COMPLETED else None,
            state.turn,
            seconds,
            self.ledger.model_seconds,
            dict(self.ledger.spent),
            self.ledger.dollars,
            tuple(self._denials),
            self.failure,
            self.problem,
            self._last.stop_reason if self._last else "",
        )

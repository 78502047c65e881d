"""
The state of a run after each turn, and why: pure functions over frozen values that say when the loop goes on.

    START -> NEXT_TURN -> NEXT_TURN ... -> STOPPED | ABORTED | LIMIT | ERROR

The loop goes on if the answer asks for tools, never because of a stop reason. The few other reasons to ask again are
named: a message that was queued meanwhile, a pause that the vendor asks to be continued, an answer that is empty, was
cut off by the output limit, or does not fit the schema that was asked for, and a hook that says it is not done yet.
"""

from enum import Enum

from handrail.records import record


class Move(Enum):
    """Which way the loop goes."""

    START = "start"
    NEXT_TURN = "next_turn"
    STOPPED = "stopped"
    ABORTED = "aborted"
    LIMIT = "limit"
    ERROR = "error"


GOING_ON = (Move.START, Move.NEXT_TURN)


class Why(Enum):
    """The reason for a move."""

    __hash__ = object.__hash__  # that of Enum is a function in Python

    PROMPT = "prompt"

    TOOL_RESULTS = "tool_results"
    QUEUED_MESSAGE = "queued_message"
    PAUSED = "paused"
    EMPTY_ANSWER = "empty_answer"
    CUT_ANSWER = "cut_answer"
    UNFIT_ANSWER = "unfit_answer"
    STOP_BLOCKED = "stop_hook_blocked"

    COMPLETED = "completed"
    REFUSED = "refused"
    HOOK_STOPPED = "hook_stopped"
    TOOL_DEFERRED = "tool_deferred"

    ABORTED_STREAMING = "aborted_streaming"
    ABORTED_TOOLS = "aborted_tools"

    MAX_TURNS = "max_turns"
    MAX_DOLLARS = "max_budget_usd"
    MAX_TOKENS = "max_tokens"
    MAX_SECONDS = "max_seconds"

    MODEL_FAILED = "model_failed"
    REPEATED_FAILURE = "repeated_failure"
    REPEATED_CALL = "repeated_call"
    UNFIT_ANSWERS = "max_structured_output_retries"
    CUT_ANSWERS = "max_output_tokens"
    PROMPT_BLOCKED = "prompt_blocked"


WHAT_HAPPENED: dict[Why, str] = {
    Why.ABORTED_STREAMING: "it was interrupted",
    Why.ABORTED_TOOLS: "it was interrupted while tools were running",
    Why.MAX_TURNS: "the limit of turns was reached",
    Why.MAX_DOLLARS: "the limit of dollars was reached",
    Why.MAX_TOKENS: "the limit of tokens was reached",
    Why.MAX_SECONDS: "the limit of seconds was reached",
    Why.MODEL_FAILED: "the model could not answer",
    Why.REPEATED_FAILURE: "the model repeated a call that fails",
    Why.REPEATED_CALL: "the model repeated a call that gives the same result",
    Why.UNFIT_ANSWERS: "no answer fitted the schema",
    Why.PROMPT_BLOCKED: "a hook blocked it",
    Why.CUT_ANSWERS: "the answer was cut off by the output limit again and again",
}


ENDS = {
    **dict.fromkeys((Why.COMPLETED, Why.REFUSED, Why.HOOK_STOPPED, Why.TOOL_DEFERRED), Move.STOPPED),
    **dict.fromkeys((Why.ABORTED_STREAMING, Why.ABORTED_TOOLS), Move.ABORTED),
    **dict.fromkeys((Why.MAX_TURNS, Why.MAX_DOLLARS, Why.MAX_TOKENS, Why.MAX_SECONDS), Move.LIMIT),
    **dict.fromkeys((Why.MODEL_FAILED, Why.REPEATED_FAILURE, Why.PROMPT_BLOCKED), Move.ERROR),
    **dict.fromkeys((Why.UNFIT_ANSWERS, Why.CUT_ANSWERS, Why.REPEATED_CALL), Move.ERROR),
}
"""The reasons that end a run, and the move of each; all others lead to the next turn."""

PAUSES, EMPTY_ANSWERS, CUTS = 20, 1, 3
"""How often in a row the model is asked again for each of them."""

PAUSE_REASONS = frozenset({"pause_turn"})
REFUSALS = frozenset({"refusal", "content_filter"})
CUT_REASONS = frozenset({"max_tokens", "length", "model_length", "incomplete", "max_output_tokens"})


@record
class RunState:
    """The state of a run. `turn` counts answers, `repeats` counts moves in a row for the same reason."""

    move: Move = Move.START
    why: Why = Why.PROMPT
    turn: int = 0
    repeats: int = 0
    unfit: int = 0

    @property
    def is_over(self) -> bool:
        """Whether the run has ended."""
        return self.move not in GOING_ON

    def to(self, why: Why, *, unfit: int = 0) -> "RunState":
        """The next state, for this reason."""
        repeats = self.repeats + 1 if why is self.why else 1
        return RunState(ENDS.get(why, Move.NEXT_TURN), why, self.turn, repeats, self.unfit + unfit)


@record
class TurnResult:
    """The result of one turn."""

    has_answer: bool = True
    has_calls: bool = False
    is_empty: bool = False
    stop_reason: str = ""
    stopped_by: Why | None = None
    """An interrupt, a hook or a limit stopped it on the way."""
    has_failed: bool = False
    has_queued_messages: bool = False
    stuck: Why | None = None
    """The same call has failed in the same way, or given the same result, too often."""
    is_unfit: bool = False
    limit: Why | None = None
    """A limit that is used up now."""


def next_state(state: RunState, turn: TurnResult, structured_retries: int) -> RunState:
    """The state after a turn. A limit only prevents another turn; a final answer still counts as one."""
    if turn.has_answer:
        state = RunState(state.move, state.why, state.turn + 1, state.repeats, state.unfit)
    if turn.stopped_by:
        return state.to(turn.stopped_by)
    if turn.has_failed:
        return state.to(Why.MODEL_FAILED)
    following = _continue(state, turn, structured_retries)
    return state.to(turn.limit) if turn.limit and not following.is_over else following


def _continue(state: RunState, turn: TurnResult, structured_retries: int) -> RunState:
    if turn.has_calls:
        return state.to(turn.stuck or Why.TOOL_RESULTS)
    if turn.has_queued_messages:
        return state.to(Why.QUEUED_MESSAGE)
    if turn.stop_reason in REFUSALS:
        return state.to(Why.REFUSED)
    if turn.stop_reason in PAUSE_REASONS and not _is_exhausted(state, Why.PAUSED, PAUSES):
        return state.to(Why.PAUSED)
    if turn.stop_reason in CUT_REASONS:
        return state.to(Why.CUT_ANSWERS if _is_exhausted(state, Why.CUT_ANSWER, CUTS) else Why.CUT_ANSWER)
    if turn.is_empty and not _is_exhausted(state, Why.EMPTY_ANSWER, EMPTY_ANSWERS):
        return state.to(Why.EMPTY_ANSWER)
    if turn.is_unfit:
        is_exhausted = state.unfit >= structured_retries
        return state.to(Why.UNFIT_ANSWERS if is_exhausted else Why.UNFIT_ANSWER, unfit=1)
    return state.to(Why.COMPLETED)


def _is_exhausted(state: RunState, why: Why, times: int) -> bool:
    return state.why is why and state.repeats >= times

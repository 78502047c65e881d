"""
Where a run stands after each turn, and why: the whole policy of the loop as pure functions over frozen values.

    START -> NEXT_TURN -> NEXT_TURN ... -> STOPPED | ABORTED | LIMIT | ERROR

The loop goes on if the answer asks for tools, never because of a stop reason. The few other reasons to ask again are
named: a message that was queued meanwhile, a pause that the vendor asks to be continued, an answer that is empty, was
cut off by the output limit, or does not fit the schema that was asked for.
"""

from enum import Enum


class Move(Enum):
    """Which way the loop goes."""

    START = "start"
    NEXT_TURN = "next_turn"
    STOPPED = "stopped"
    ABORTED = "aborted"
    LIMIT = "limit"
    ERROR = "error"


class Why(Enum):
    """The reason of a move."""

    PROMPT = "prompt"

    TOOL_RESULTS = "tool_results"
    QUEUED_MESSAGE = "queued_message"
    PAUSED = "paused"
    EMPTY_ANSWER = "empty_answer"
    CUT_ANSWER = "cut_answer"
    UNFIT_ANSWER = "unfit_answer"

    COMPLETED = "completed"
    REFUSED = "refused"

    ABORTED_STREAMING = "aborted_streaming"
    ABORTED_TOOLS = "aborted_tools"

    MAX_TURNS = "max_turns"
    MAX_DOLLARS = "max_budget_usd"
    MAX_TOKENS = "max_tokens"
    MAX_SECONDS = "max_seconds"

    MODEL_FAILED = "model_failed"
    REPEATED_FAILURE = "repeated_failure"
    UNFIT_ANSWERS = "max_structured_output_retries"
    CUT_ANSWERS = "max_output_tokens"

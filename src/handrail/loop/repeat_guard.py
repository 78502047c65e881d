"""The repeat guard: notices when a model repeats a call that fails, or gives the same result, each time."""

import json
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import field
from typing import TypeAlias

from handrail.conversation.blocks import Text, ToolUse
from handrail.conversation.messages import Attachment
from handrail.loop.state import Why
from handrail.records import record
from handrail.tools.outcome import Outcome, Status

WARN_AFTER, STOP_AFTER = 3, 6
SAME_RESULT_WARNINGS, STOP_AFTER_SAME_RESULT = (3, 6, 9), 12
"""A call that succeeds may be waiting for something, so it is warned of less often and stopped later."""

ENDED = (Status.OK, Status.ERROR, Status.DENIED)
SPELLING = json.JSONEncoder(sort_keys=True, default=repr)

RepeatedCall: TypeAlias = tuple[str, str, str, bool]
"""Tool, input, result, and whether it failed."""

Hint: TypeAlias = tuple[str, frozenset[str | int]]
"""Tool, texts and numbers of the input. Calls that are the same have the same; the input need not be spelled."""


@record
class RepeatGuard:
    """
    Counts the answers in a row that had each call with the same end. A call that is not repeated is forgotten.

    `last` are the calls of the newest answer, `hints` tell quickly that none of them is repeated.
    """

    last: tuple[Outcome, ...] = ()
    hints: AbstractSet[Hint] = frozenset()
    rows: Mapping[RepeatedCall, int] = field(default_factory=dict)
    """The calls of the newest answer that repeat one of the answer before, with the number of answers in a row."""

    def after(self, outcomes: Iterable[Outcome]) -> "RepeatGuard":
        """The guard after one more answer with these calls."""
        ended = tuple([each for each in outcomes if each.status in ENDED])
        hints = {_hint(each.use) for each in ended}
        if hints.isdisjoint(self.hints):
            return RepeatGuard(ended, hints)
        before = {**dict.fromkeys(map(_signature, self.last), 1), **self.rows}
        return RepeatGuard(ended, hints, {call: before[call] + 1 for call in map(_signature, ended) if call in before})

    @property
    def worst(self) -> tuple[int, str, bool]:
        """The longest row of the same call, its tool, and whether it failed; a failure counts before a success."""
        if not self.rows:
            return 0, "", False
        rows = ((times, call[0], call[3]) for call, times in self.rows.items())
        return max(rows, key=lambda row: (row[2] and row[0] >= WARN_AFTER, row[0]))

    @property
    def stuck(self) -> Why | None:
        """Why the run has to end, if the warnings did not help."""
        times, _, failed = self.worst
        if times < (STOP_AFTER if failed else STOP_AFTER_SAME_RESULT):
            return None
        return Why.REPEATED_FAILURE if failed else Why.REPEATED_CALL

    @property
    def problem(self) -> str:
        """What is repeated, in a sentence."""
        times, tool, failed = self.worst
        if failed:
            return f"{tool} failed {times} times in a row with the same input and the same error."
        return f"{tool} was called {times} times in a row with the same input and gave the same result."

    @property
    def warning(self) -> Attachment | None:
        """What to tell the model now."""
        times, tool, failed = self.worst
        if times not in (range(WARN_AFTER, STOP_AFTER) if failed else SAME_RESULT_WARNINGS):
            return None
        if failed:
            text = (
                f"{tool} has failed {times} times in a row with the same input and the same error. Repeating it will "
                "not help: change the input, use another tool, or tell the user what is in the way. "
                f"After {STOP_AFTER} times the run is stopped."
            )
        else:
            text = (
                f"{tool} has given the same result {times} times in a row for the same input. Use what you have: go "
                "on with the next step, or answer. If you wait for something, wait longer in one call. "
                f"After {STOP_AFTER_SAME_RESULT} times the run is stopped."
            )
        return Attachment("loop_guard", (Text(text),))


def _hint(use: ToolUse) -> Hint:
    values = use.input.values() if isinstance(use.input, dict) else ()
    return use.name, frozenset([value for value in values if isinstance(value, str | int)])


def _signature(outcome: Outcome) -> RepeatedCall:
    use = outcome.use
    return use.name, SPELLING.encode(use.input), outcome.result.text, outcome.status is not Status.OK

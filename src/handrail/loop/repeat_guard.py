"""The repeat guard: notices when a model repeats a call that fails in the same way each time."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TypeAlias

from handrail.conversation.blocks import Text
from handrail.conversation.messages import Attachment
from handrail.records import record
from handrail.tools.outcome import Outcome, Status

WARN_AFTER, STOP_AFTER = 3, 6

Failure: TypeAlias = tuple[str, str, str]
"""Tool, input, error."""


@record
class RepeatGuard:
    """Counts the answers in a row that contained each failing call. A call that is not repeated is forgotten."""

    failures: Mapping[Failure, int] = field(default_factory=dict)

    def after(self, outcomes: Iterable[Outcome]) -> "RepeatGuard":
        """The guard after one more answer with these calls."""
        new = {_failure(each) for each in outcomes if each.status in {Status.ERROR, Status.DENIED}}
        if not new and not self.failures:
            return self
        return RepeatGuard({failure: self.failures.get(failure, 0) + 1 for failure in new})

    @property
    def worst(self) -> tuple[int, str]:
        """The longest row of the same failure, and the tool it belongs to."""
        return max(((times, failure[0]) for failure, times in self.failures.items()), default=(0, ""))

    @property
    def is_stuck(self) -> bool:
        """Whether the warning did not help."""
        return self.worst[0] >= STOP_AFTER

    @property
    def warning(self) -> Attachment | None:
        """What to tell the model now."""
        times, tool = self.worst
        if not WARN_AFTER <= times < STOP_AFTER:
            return None
        text = (
            f"{tool} has failed {times} times in a row with the same input and the same error. Repeating it will not "
            "help: change the input, use another tool, or tell the user what is in the way. "
            f"After {STOP_AFTER} times the run is stopped."
        )
        return Attachment("loop_guard", (Text(text),))


def _failure(outcome: Outcome) -> Failure:
    use = outcome.use
    return use.name, json.dumps(use.input, sort_keys=True, default=repr), outcome.result.text

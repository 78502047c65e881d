"""What may watch calls from the inside, where front ends see events. Nothing is decided by it."""

from typing import Protocol

from handrail.conversation.blocks import ToolUse
from handrail.tools.context import RunContext
from handrail.tools.outcome import Outcome
from handrail.tools.pool import AnyTool


class CallObserver(Protocol):
    """Watches the calls of all agents of a session. Its methods are quick and never raise."""

    def call_started(self, use: ToolUse, run: RunContext) -> None:
        """The call starts. This is its own task, so what is set in context variables holds for the call only."""
        ...

    def question_asked(self, use: ToolUse, run: RunContext) -> None:
        """A person or a handler is about to be asked about the call."""
        ...

    def call_ended(self, outcome: Outcome, tool: AnyTool | None, run: RunContext) -> None:
        """The call has ended, started or not. `tool` is None if there is no such tool."""
        ...

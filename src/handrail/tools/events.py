"""What happens to calls, as it happens. Front ends draw these; nothing decides by them."""

from dataclasses import dataclass
from typing import TypeAlias

from handrail.conversation.blocks import ToolUse
from handrail.tools.context import Progress
from handrail.tools.outcome import Outcome


@dataclass(frozen=True, slots=True)
class CallQueued:
    """The model asked for it."""

    use: ToolUse
    at: float


@dataclass(frozen=True, slots=True)
class CallStarted:
    """Nothing stands in its way any more."""

    use: ToolUse
    at: float


@dataclass(frozen=True, slots=True)
class CallProgress:
    """It has news. Never after its end."""

    use: ToolUse
    progress: Progress
    at: float


@dataclass(frozen=True, slots=True)
class CallFinished:
    """It is over; its result may still wait for earlier ones."""

    outcome: Outcome
    at: float


CallEvent: TypeAlias = CallQueued | CallStarted | CallProgress | CallFinished

"""What happens to calls, as it happens. Front ends draw these; nothing decides by them."""

from typing import TypeAlias

from handrail.conversation.blocks import ToolUse
from handrail.records import record
from handrail.tools.context import Progress
from handrail.tools.outcome import Outcome


@record
class CallQueued:
    """The model asked for it."""

    use: ToolUse
    at: float


@record
class CallStarted:
    """Nothing stands in its way any more."""

    use: ToolUse
    at: float


@record
class CallProgress:
    """It has news. Never after its end."""

    use: ToolUse
    progress: Progress
    at: float


@record
class CallFinished:
    """It is over; its result may still wait for earlier ones."""

    outcome: Outcome
    at: float


CallEvent: TypeAlias = CallQueued | CallStarted | CallProgress | CallFinished

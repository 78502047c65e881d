"""What front ends hear of hooks: while a call waits for one as its progress, otherwise as an event of the run."""

from collections.abc import Callable
from typing import Literal, TypeAlias

from handrail.records import record
from handrail.tools.context import Progress


@record
class HookNews(Progress):
    """
    A hook was started, has answered, or has something to say to the person (`message`).

    `id` is the same for the start and the answer. `outcome` of an answer is success, error or cancelled.
    """

    stage: Literal["started", "response", "message"] = "message"
    event: str = ""
    name: str = ""
    id: str = ""
    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    outcome: str = ""


NewsListener: TypeAlias = Callable[[HookNews], None]


def ignore_news(_news: HookNews) -> None:
    """For callers that show nothing."""

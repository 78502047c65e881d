"""News about hooks for front ends: as progress of a call that waits for a hook, else as an event of the run."""

from collections.abc import Callable
from typing import Literal, TypeAlias

from handrail.records import record
from handrail.tools.context import Progress
from handrail.tools.events import CallProgress


@record
class HookNews(Progress):
    """
    A hook was started, has responded, or has a `message` for the user.

    `id` is the same for start and response. The `outcome` of a response is success, error or cancelled.
    """

    stage: Literal["started", "response", "message"] = "message"
    event: str = ""
    name: str = ""
    id: str = ""
    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    outcome: str = ""


OnNews: TypeAlias = Callable[[HookNews], None]


def news_of(event: object) -> HookNews | None:
    """The news of hooks that an event carries, from a run or from a call."""
    match event:
        case (HookNews() as news) | CallProgress(progress=HookNews() as news):
            return news
        case _:
            return None


def ignore(_news: HookNews) -> None:
    """The listener of callers that show nothing."""

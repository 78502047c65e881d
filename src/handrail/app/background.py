"""Background tasks of an agent: the model hears of them, and they end with it. Nothing is loaded if there are none."""

import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

from handrail.builtin.outfit import Outfit
from handrail.conversation.messages import Attachment
from handrail.loop.setup import Attach
from handrail.tools.outcome import Outcome

MODULE = "handrail.builtin.tasks"


def with_task_news(attach: Attach, outfit: Callable[[], Outfit]) -> Attach:
    """What was to be attached, and what background tasks have to say."""

    def attached(outcomes: Sequence[Outcome]) -> Iterable[Attachment]:
        tasks = _loaded()
        news: Iterable[Attachment] = tasks.tasks_of(outfit()).attachments() if tasks else ()
        return chain(attach(outcomes), news)

    return attached


async def end_tasks(outfit: Callable[[], Outfit]) -> None:
    """The session is over: its background tasks end."""
    if tasks := _loaded():
        await tasks.close_tasks(outfit())


def _loaded() -> Any:
    """The module of tasks, if somebody has loaded it: a thread may be at it right now."""
    module = sys.modules.get(MODULE)
    half_made = module is not None and getattr(module.__spec__, "_initializing", False)
    return None if half_made else module

"""What an agent's tools keep running: the model hears of tasks, and all ends with it. Nothing is loaded for nothing."""

import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

from handrail.builtin.outfit import Outfit
from handrail.conversation.messages import Attachment
from handrail.loop.setup import Attach
from handrail.tools.outcome import Outcome

TASKS = "handrail.builtin.tasks"
REPL = "handrail.builtin.repl.interpreter"


def with_task_news(attach: Attach, outfit: Callable[[], Outfit]) -> Attach:
    """What was to be attached, and what background tasks have to say."""

    def attached(outcomes: Sequence[Outcome]) -> Iterable[Attachment]:
        tasks = _loaded(TASKS)
        news: Iterable[Attachment] = tasks.tasks_of(outfit()).attachments() if tasks else ()
        return chain(attach(outcomes), news)

    return attached


async def end_tasks(outfit: Callable[[], Outfit]) -> None:
    """The session is over: its background tasks end, and its interpreter."""
    if repl := _loaded(REPL):
        await repl.close_interpreter(outfit())
    if tasks := _loaded(TASKS):
        await tasks.close_tasks(outfit())


def _loaded(name: str) -> Any:
    """The module, if somebody has loaded it: a thread may be at it right now."""
    module = sys.modules.get(name)
    half_made = module is not None and getattr(module.__spec__, "_initializing", False)
    return None if half_made else module

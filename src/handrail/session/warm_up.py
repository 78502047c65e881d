"""
Loads what the first call of a tool needs, in a thread, while the model thinks about the first request.

    request sent -> [a moment, in which it leaves] -> the supervisor of commands, a process that starts beside the rest
                                                   -> what every call needs -> the tools, those called first first,
                                                      and with the shell the analysis of a few usual lines

Each step begins when the event loop has nothing else to do, and none while calls run, so that loading does not compete
with them. A call that comes before loading is done imports what it needs itself.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

from handrail.builtin.services import ToolServices
from handrail.loop.events import LoopEvent, RequestSent
from handrail.session.conversation import Conversation
from handrail.tools.events import CallQueued
from handrail.tools.stub import fetch

DELAY = 0.005
"""Seconds until the request has left; a connection that takes longer hardly needs the processor."""
FOR_EVERY_CALL = ("handrail.session.gate", "handrail.session.services")
FIRST_CALLED = ("read.tool", "bash.tool", "grep.tool", "glob", "edit", "write")
"""Modules of the tools that models call first, in this order; the first takes a tenth of the time of the second."""
SHELL = "handrail.builtin.bash.tool"
ANALYSIS = "handrail.shell.analysis"
STEPS_TO_SHELL = (
    "handrail.shell.model",
    "handrail.shell.scope",
    "handrail.processes.run",
    "handrail.shell.parser",
    "handrail.shell.possible_commands",
    "handrail.shell.second",
    "handrail.shell.segments",
    ANALYSIS,
    "handrail.builtin.bash.preconditions",
    "handrail.builtin.support.background_tasks",
)
"""What the shell loads, in steps of a few milliseconds: a call that needs no shell does not wait for all of them."""
COMMANDS = "handrail.permissions.shell_case"
"""What decisions on commands need beside what the shell itself does."""
REHEARSED = ("cd a && ls -la", "grep -rn a b | head -n 5", "mkdir -p a; touch a", "git status --short")
"""Command lines that are analysed ahead, because that compiles the patterns and loads the tables of the usual ones."""


class WarmUp:
    """Starts with the first request of a session, once."""

    def __init__(
        self, conversation: Conversation, services: Callable[[], ToolServices], prepare_policy: Callable[[], None]
    ) -> None:
        self._conversation = conversation
        self._services = services
        self._prepare_policy = prepare_policy
        self._has_begun = False
        self._may_load = threading.Event()
        self._may_load.set()

    def on_event(self, event: LoopEvent) -> None:
        """Begin with the first request, and make way for calls until the request after them."""
        if isinstance(event, CallQueued):
            self._may_load.clear()
        elif isinstance(event, RequestSent):
            self._may_load.set()
            if not self._has_begun:
                self._has_begun = True
                loop = asyncio.get_running_loop()
                loading = threading.Thread(target=self.load, args=(partial(_wait_until_free, loop),), daemon=True)
                loop.call_later(DELAY, loading.start)

    def load(self, wait: Callable[[], bool] = lambda: True) -> None:
        """Load everything now. `wait` returns when the next step may begin; false = none may any more."""
        modules = self._tool_modules()
        if SHELL in modules:
            with suppress(OSError):  # the first command will say it
                fetch("handrail.processes.supervisor").SUPERVISOR.start()
        for module in FOR_EVERY_CALL:
            fetch(module)
        self._prepare_policy()
        for step in self._steps(modules):
            self._may_load.wait()
            if not wait():
                return
            step()
        self._services()

    @staticmethod
    def _steps(modules: list[str]) -> Iterator[Callable[[], object]]:
        for tool in modules:
            for module in (*STEPS_TO_SHELL, tool, COMMANDS) if tool == SHELL else (tool,):
                yield partial(fetch, module)
            if tool == SHELL:
                yield from (partial(fetch(ANALYSIS).analyse, line) for line in REHEARSED)

    def _tool_modules(self) -> list[str]:
        """The modules of the tools, those that are called first at the beginning."""
        modules, likely = self._conversation.tools.modules(), [f"handrail.builtin.{name}" for name in FIRST_CALLED]
        return sorted(modules, key=lambda name: (*likely, name).index(name))


def _wait_until_free(loop: asyncio.AbstractEventLoop) -> bool:
    """Wait until an event loop comes to what waits least urgently; false if it is closed."""
    free = threading.Event()
    try:
        loop.call_soon_threadsafe(free.set)
    except RuntimeError:
        return False
    while not free.wait(1):
        if loop.is_closed():
            return False
    return True

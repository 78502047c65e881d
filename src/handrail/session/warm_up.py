"""
Loads what the first call of a tool needs, in a thread, while the model thinks about the first request.

    request sent -> [a moment, in which it leaves] -> the supervisor of commands, a process that starts beside the rest
                                                   -> what every call needs -> the tools, those called first first,
                                                      and with the shell the decisions on a few usual lines

Each step begins when the event loop has nothing else to do, and none while calls run, so that loading does not compete
with them. A call that comes before loading is done imports what it needs itself; if it is one of the shell, only the
supervisor starts meanwhile.
"""

import asyncio
import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.builtin.services import ToolServices
from handrail.lazy import LOADING_OBJECTS, NEW_OBJECTS, lazy
from handrail.loop.events import LoopEvent, RequestSent
from handrail.session.conversation import Conversation
from handrail.tools.events import CallQueued
from handrail.tools.stub import fetch

if TYPE_CHECKING:
    from handrail.permissions.policy import Policy
    from handrail.processes import supervisor
else:
    supervisor = lazy("handrail.processes.supervisor")  # not by `fetch`, which waits for a call that loads its tool

DELAY = 0.005
"""Seconds until the request has left; a connection that takes longer hardly needs the processor."""
FOR_EVERY_CALL = ("handrail.session.gate", "handrail.session.services", "handrail.session.web.page_reader")
FIRST_CALLED = ("read.tool", "bash.tool", "grep.tool", "glob", "edit", "write")
"""Modules of the tools that models call first, in this order; the first takes a tenth of the time of the second."""
SHELL_PACKAGE = "handrail.builtin.bash"
SHELL = f"{SHELL_PACKAGE}.tool"
STEPS_TO_SHELL = (
    "handrail.shell.model",
    "handrail.shell.scope",
    "handrail.processes.run",
    "handrail.shell.parser",
    "handrail.shell.possible_commands",
    "handrail.shell.second",
    "handrail.shell.segments",
    "handrail.shell.analysis",
    "handrail.builtin.bash.preconditions",
)
"""What the shell loads, in steps of a few milliseconds: a call that needs no shell does not wait for all of them."""
FOR_COMMANDS = (
    "handrail.permissions.shell_case",
    "handrail.builtin.bash.result",
    "handrail.builtin.bash.exit_codes",
    "handrail.builtin.bash.background",
)
"""What decisions on commands, their ends and those in the background need beside what the shell itself does."""
REHEARSED = (
    "cd no/such && ls -la",
    "grep -rn word no/such | head -n 5",
    "mkdir -p no/such; touch no/such/file",
    "find no/such -name '*.py'; sed -n 1,5p no/such/file",
    "which python3; date; python3 no/such/file",
    "git status --short",
)
"""Command lines that are decided on ahead and not run, which compiles patterns and loads the tables of usual ones."""


class WarmUp:
    """Starts with the first request of a session, once."""

    EVENTS = frozenset({CallQueued, RequestSent})

    def __init__(
        self, conversation: Conversation, services: Callable[[], ToolServices], prepare_policy: "Callable[[], Policy]"
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
            if self._may_load.is_set():
                self._may_load.clear()
        elif isinstance(event, RequestSent):
            self._may_load.set()
            if not self._has_begun:
                self._has_begun = True
                wait = partial(_wait_until_free, asyncio.get_running_loop())
                threading.Thread(target=self._load_later, args=(wait,), daemon=True).start()

    def _load_later(self, wait: Callable[[], bool]) -> None:
        """Load when the request has left. A call that came at once may hold the event loop by then, but not this."""
        time.sleep(DELAY)
        if SHELL_PACKAGE in sys.modules:
            _start_supervisor()  # it gets ready while that call loads the rest
        self.load(wait)

    def load(self, wait: Callable[[], bool] = lambda: True) -> None:
        """Load everything now. `wait` returns when the next step may begin; false = none may any more."""
        if not self._may_begin(wait):
            return
        modules = self._tool_modules()
        if SHELL in modules:
            _start_supervisor()
        for module in FOR_EVERY_CALL:
            fetch(module)
        policy = self._prepare_policy()
        self._services()
        for step in self._steps(modules, policy):
            if not self._may_begin(wait):
                return
            step()
        if gc.get_threshold()[0] == LOADING_OBJECTS:  # in our own program: what is loaded now stays
            gc.freeze()
            gc.set_threshold(NEW_OBJECTS)

    def _may_begin(self, wait: Callable[[], bool]) -> bool:
        """Wait until the next step may begin and no call runs, which may have come meanwhile; false = none may."""
        while wait():
            if self._may_load.is_set():
                return True
            self._may_load.wait()
        return False

    @staticmethod
    def _steps(modules: list[str], policy: "Policy") -> Iterator[Callable[[], object]]:
        for tool in modules:
            for module in (*STEPS_TO_SHELL, tool, *FOR_COMMANDS) if tool == SHELL else (tool,):
                yield partial(fetch, module)
            if tool == SHELL:
                yield from _rehearsal(policy)

    def _tool_modules(self) -> list[str]:
        """The modules of the tools, those that are called first at the beginning."""
        modules, likely = self._conversation.tools.modules(), [f"handrail.builtin.{name}" for name in FIRST_CALLED]
        return sorted(modules, key=lambda name: (*likely, name).index(name))


def _rehearsal(policy: "Policy") -> Iterator[Callable[[], object]]:
    shell = fetch(SHELL).Bash(ToolServices({}, policy.home, lambda: policy.working_dirs, Path()))
    yield partial(fetch(f"{SHELL_PACKAGE}.environment").clean_environment, {"LANG": "C.UTF-8"}, ())
    decide = fetch("handrail.permissions.decide").decide_call
    yield from (partial(decide, policy, shell, {"command": line}) for line in REHEARSED)


def _start_supervisor() -> None:
    with suppress(OSError):  # the first command will say it
        supervisor.SUPERVISOR.start()


def _wait_until_free(loop: asyncio.AbstractEventLoop) -> bool:
    """Wait until an event loop has handled what it has to do now, also a new call; false if it is closed."""
    free = threading.Event()
    try:
        loop.call_soon_threadsafe(loop.call_soon, free.set)
    except RuntimeError:
        return False
    while not free.wait(1):
        if loop.is_closed():
            return False
    return True

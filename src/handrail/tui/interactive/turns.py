"""What is typed, one thing after another: messages wait for the turn before them, Esc and Ctrl+C stop it."""

import asyncio
import time
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Protocol

from handrail.errors import HandrailError

if TYPE_CHECKING:
    from handrail.tools.cards import Tone
    from handrail.tui.interactive.chat import Chat

TWICE = 1.5
"""Seconds within which the same key counts as pressed twice."""


class TurnHost(Protocol):
    """The terminal, as far as turns are concerned."""

    def say(self, text: str, tone: "Tone" = "plain", *, dim: bool = False) -> None: ...

    def start(self, work: Awaitable[None]) -> "asyncio.Task[None]": ...

    def refresh(self) -> None: ...

    def stop(self) -> None: ...

    def clear_input(self) -> None: ...

    def insert(self, text: str) -> None: ...

    def unfold(self, text: str) -> str: ...

    @property
    def typed(self) -> str: ...


class Turns:
    """The queue of messages, and the one that is worked on."""

    def __init__(self, host: TurnHost) -> None:
        self._host = host
        self._chat: Chat | None = None
        self._work: asyncio.Task[None] | None = None
        self._watch: asyncio.Task[None] | None = None
        self._last_escape = self._last_leave = -TWICE
        self._is_over = False
        self.waiting: list[str] = []
        """The messages that wait, with placeholders for what was pasted into them."""

    @property
    def is_leaving(self) -> bool:
        """Whether Ctrl+C was pressed, so that once more leaves."""
        return time.monotonic() - self._last_leave < TWICE

    def begin(self, chat: "Chat") -> None:
        """There is a session now: do what waits."""
        self._chat = chat
        self._next()

    def submit(self, text: str) -> None:
        """Do what was typed, now or when the turn is over; an empty line sends what waits into the running turn."""
        if text.strip():
            self.waiting.append(text)
            self._next()
        elif self.waiting and self._chat is not None and self._chat.session.conversation.running:
            waiting, self.waiting = self.waiting, []
            self._chat.queue(self._host.unfold("\n\n".join(waiting)))
        self._host.refresh()

    def take_back(self) -> str:
        """The newest message that waits, to be edited."""
        return self.waiting.pop() if self.waiting else ""

    def interrupt(self) -> None:
        """Esc: stop what runs; twice with nothing running, go back to an earlier message."""
        now = time.monotonic()
        if self._work is not None:
            self._stop_work()
        elif not self._host.typed and now - self._last_escape < TWICE:
            self._last_escape = -TWICE
            self.submit("/rewind")
        else:
            self._last_escape = now

    def leave(self) -> None:
        """Ctrl+C: stop what runs or empty the input line; twice, leave."""
        if self.is_leaving:
            self.end()
            return
        self._last_leave = time.monotonic()
        asyncio.get_running_loop().call_later(TWICE, self._host.refresh)
        if self._work is not None:
            self._stop_work()
        else:
            self._host.clear_input()
        self._host.refresh()

    def end(self) -> None:
        """Leave."""
        self._is_over = True
        if self._chat is not None:
            self._chat.interrupt()
        self._host.stop()

    def act(self, name: str) -> None:
        """Do what a key is bound to: each is a command of the terminal."""
        command = self._chat.commands.get(name) if self._chat else None
        if command is not None and self._chat is not None:
            self._host.start(self._act(command.act(self._chat, "")))

    async def _act(self, doing: Awaitable[None]) -> None:
        try:
            await doing
        except HandrailError as error:
            self._host.say(str(error), "bad")
        self._host.refresh()

    def _stop_work(self) -> None:
        """Stop what runs; messages that wait for it go back into the input line, because nothing should run now."""
        if self.waiting:
            waiting, self.waiting = self.waiting, []
            self._host.insert("\n\n".join(waiting))
        if self._chat is not None and self._chat.session.conversation.running:
            self._chat.interrupt()
        elif self._work is not None:
            self._work.cancel()

    def _next(self) -> None:
        if self._chat is None or self._work is not None or self._is_over:
            return
        if self.waiting:
            self._begin_turn(self._chat, self._chat.send(self._host.unfold(self.waiting.pop(0))))
        elif self._watch is None:
            self._watch = self._host.start(self._wait_to_wake(self._chat))

    def _begin_turn(self, chat: "Chat", doing: Awaitable[None]) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        self._work = self._host.start(self._do(chat, doing))

    async def _wait_to_wake(self, chat: "Chat") -> None:
        """An idle conversation begins a turn when a schedule is due, or work in the background has ended."""
        message = await chat.session.background.next_wake()
        self._watch = None  # it has ended, and must not be stopped
        self._begin_turn(chat, chat.wake(message))

    async def _do(self, chat: "Chat", doing: Awaitable[None]) -> None:
        try:
            await doing
        except asyncio.CancelledError:
            if self._is_over:
                raise
            self._host.say("interrupted", "warning")
        finally:
            self._work = None
        if chat.wants_end:
            self.end()
            return
        self._host.refresh()
        self._next()

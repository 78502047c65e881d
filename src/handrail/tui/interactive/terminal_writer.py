"""Writes to a terminal without waiting for it: what a slow one does not take yet is kept, and sent when it does."""

import asyncio
import os
import select
import time
from collections.abc import Callable


class TerminalWriter:
    """
    Everything reaches the terminal, in order; nothing waits for it but `drain`.

    The terminal is opened once more for that: whether writing waits belongs to what is open, and the shell and other
    programs share what was open before. A file that cannot be opened again is written to in the usual way.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = open_again(descriptor)
        self._unsent = bytearray()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.on_caught_up: Callable[[], None] = lambda: None
        """Called when a terminal that was behind has taken everything."""
        self.is_gone = False
        """Whether the terminal has left; nothing is written to it any more."""

    @property
    def is_behind(self) -> bool:
        """Whether the terminal has not taken everything yet."""
        return bool(self._unsent)

    def write(self, data: bytes) -> None:
        """Send the data, as much as the terminal takes now; the rest follows."""
        if self.is_gone:
            return
        self._unsent += data
        self._send()
        if self._unsent and self._loop is None:
            try:
                self._loop = asyncio.get_running_loop()
            except RuntimeError:  # the program ends, and will drain
                return
            self._loop.add_writer(self._descriptor, self._go_on)

    def drain(self, seconds: float) -> bool:
        """Wait until the terminal has taken everything; False = it took nothing for so long."""
        until = time.monotonic() + seconds
        while self._unsent:
            left = until - time.monotonic()
            if left <= 0 or not select.select((), (self._descriptor,), (), left)[1]:
                return False
            if self._send():
                until = time.monotonic() + seconds
        self._stop_waiting()
        return True

    def give_up(self) -> None:
        """Nothing is written any more."""
        self.is_gone = True
        self._unsent.clear()
        self._stop_waiting()

    def _go_on(self) -> None:
        self._send()
        if not self._unsent:
            self._stop_waiting()
            self.on_caught_up()

    def _send(self) -> int:
        """Send what the terminal takes now; how much that was."""
        sent = 0
        try:
            while self._unsent:
                taken = os.write(self._descriptor, self._unsent)
                sent += taken
                del self._unsent[:taken]
        except BlockingIOError:
            pass
        except OSError:
            self.give_up()
        return sent

    def _stop_waiting(self) -> None:
        if self._loop is not None:
            self._loop.remove_writer(self._descriptor)
            self._loop = None


def open_again(terminal: int) -> int:
    """The terminal of a descriptor, opened anew so that writing to it does not wait; the descriptor if it has none."""
    try:
        return os.open(os.ttyname(terminal), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return terminal

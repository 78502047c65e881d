"""
A terminal with two streams: the answer goes to standard output, everything else to standard error.

Lines stay; below them there may be one status line, which is redrawn in place and never leaves a trace. Text of the
answer may stop in the middle of a line; whatever else is written then begins a new one.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TextIO

from handrail.conversation.plain import plain
from handrail.tools.cards import Tone
from handrail.tui.text import clip

CLEAR = "\r\x1b[K"
COLOURS: dict[Tone, str] = {"good": "\x1b[32m", "warning": "\x1b[33m", "bad": "\x1b[31m"}
DIM, NORMAL = "\x1b[2m", "\x1b[0m"
WIDEST = 200


def wants_colour(stream: TextIO, env: Mapping[str, str]) -> bool:
    """Whether a stream is a terminal that shows colours, and its user has nothing against them."""
    return stream.isatty() and not env.get("NO_COLOR") and env.get("TERM", "dumb") != "dumb"


def terminal_columns(stream: TextIO, env: Mapping[str, str]) -> int:
    """How wide the terminal of a stream is; COLUMNS says otherwise, and without a terminal it is 80."""
    if env.get("COLUMNS", "").isdecimal() and int(env["COLUMNS"]):
        return int(env["COLUMNS"])
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


class Screen:
    """
    Writes to a terminal. It can stand in for `sys.stderr`, so that warnings do not run into the status line.

    Without `out`, the answer is not shown here.
    """

    encoding = "utf-8"

    def __init__(self, errors: TextIO, out: TextIO | None, env: Mapping[str, str] = os.environ) -> None:
        self._errors = errors
        self._out = out
        self._env = env
        self._colour = wants_colour(errors, env)
        self._redraws = errors.isatty() and env.get("TERM", "dumb") != "dumb"
        self._status = ""
        self._is_drawn = False
        self._at_line_start = True
        self._held: list[tuple[bool, str]] | None = None
        self.is_mid_answer = False
        """Whether the answer has stopped in the middle of a line."""

    @property
    def width(self) -> int:
        """The columns that a line may take; the last one stays free, because some terminals wrap there."""
        return min(max(terminal_columns(self._errors, self._env) - 1, 20), WIDEST)

    # What stays

    def write(self, text: str) -> int:
        """Write text to standard error, above the status line."""
        if text and self._held is not None:
            self._held.append((False, text))
        elif text:
            self.end_answer_line()
            self._errors.write(self._take_off() + text)
            self._at_line_start = text.endswith("\n")
            self._draw()
        return len(text)

    def line(self, text: str, tone: Tone = "plain", *, dim: bool = False) -> None:
        """Write a line that others made harmless and short enough, in the colour of its tone."""
        self.write(self._paint(text, DIM if dim else COLOURS.get(tone, "")) + "\n")
        self.flush()

    def answer(self, text: str) -> None:
        """Write a piece of the answer. Control characters in it are made visible."""
        if self._out is None or not text:
            return
        if self._held is not None:
            self._held.append((True, text))
            return
        self._erase()
        shown = plain(text)
        self._out.write(shown)
        self._out.flush()
        self.is_mid_answer = not shown.endswith("\n")
        self._draw()

    def end_answer_line(self) -> None:
        """End the line that the answer has begun, if there is one."""
        if self.is_mid_answer:
            self.answer("\n")

    def flush(self) -> None:
        """Write out what is buffered."""
        self._errors.flush()

    def isatty(self) -> bool:
        """Whether standard error is a terminal."""
        return self._errors.isatty()

    def fileno(self) -> int:
        """The descriptor of standard error."""
        return self._errors.fileno()

    # What is redrawn

    @property
    def has_status(self) -> bool:
        """Whether there is a status line."""
        return bool(self._status)

    def status(self, text: str) -> None:
        """Show this status line, on terminals that can redraw one; empty = none."""
        self._status = text
        cleared = self._take_off()
        self._draw(cleared)
        if cleared and not self._is_drawn:
            self._errors.write(cleared)
            self._errors.flush()

    @contextmanager
    def question(self) -> Iterator[Callable[[str], None]]:
        """Everything else waits while a question is on the screen. The question is written with what this gives."""
        self.end_answer_line()
        self._erase()
        self._held = []

        def write(text: str) -> None:
            self._errors.write(text)
            self._errors.flush()

        try:
            yield write
        finally:
            held, self._held = self._held, None
            for is_answer, text in held:
                (self.answer if is_answer else self.write)(text)
            self._draw()

    def _draw(self, before: str = "") -> None:
        is_free = self._at_line_start and not self.is_mid_answer and self._held is None
        if not self._redraws or not self._status or self._is_drawn or not is_free:
            return
        self._errors.write(before + self._paint(clip(plain(self._status), self.width), DIM))
        self._errors.flush()
        self._is_drawn = True

    def _take_off(self) -> str:
        """What takes the status line off the screen."""
        clear = CLEAR if self._is_drawn else ""
        self._is_drawn = False
        return clear

    def _erase(self) -> None:
        if clear := self._take_off():
            self._errors.write(clear)
            self._errors.flush()

    def _paint(self, text: str, colour: str) -> str:
        return f"{colour}{text}{NORMAL}" if colour and self._colour else text

"""What is typed on a terminal. Where pasted text is not marked as such, it is known by how fast its lines come."""

import time
from typing import TextIO

from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

LINES, BYTES = 3, 512
"""So many lines in one piece, or a line and more in a piece this long, were not typed."""
PAUSE = 0.05
"""Seconds within which another piece belongs to the same paste."""
PIECE = 65_536
"""Bytes that are read at once."""
ENDS = (Keys.ControlM, Keys.ControlJ)


class TerminalKeyboard(Vt100Input):
    """Reads keys; lines that come all at once are one paste, and none of them is sent."""

    def __init__(self, source: TextIO) -> None:
        super().__init__(source)
        self._pasting_until = 0.0

    def read_keys(self) -> list[KeyPress]:
        """The keys of one piece."""
        self.vt100_parser.feed(self.stdin_reader.read(PIECE))
        keys, self._buffer = self._buffer, []
        now = time.monotonic()
        if not is_paste(keys, goes_on=now < self._pasting_until):
            return keys
        self._pasting_until = now + PAUSE
        return [KeyPress(Keys.BracketedPaste, "".join("\n" if key.key in ENDS else key.data for key in keys))]


def is_paste(keys: list[KeyPress], *, goes_on: bool = False) -> bool:
    """Whether these keys, which came together, are pasted text; `goes_on`: they follow a paste at once."""
    texts = ["\n" if key.key in ENDS else key.data for key in keys]
    if len(keys) < 2 or not all(len(text) == 1 and (text.isprintable() or text in "\n\t") for text in texts):
        return False
    lines = "".join(texts).rstrip("\n").count("\n") + 1
    return goes_on or lines >= LINES or (lines > 1 and len(texts) >= BYTES)

"""
prompt_toolkit drawn inline: one atomic write per frame, rows deleted instead of erased, blocks committed above.

    scrollback          blocks that were committed; the terminal's own, never touched again
    live region         what the layout draws: the open end of the answer, calls, a dialog, the input line, the footer

What was committed is kept as its source, so that it can be drawn again in another width.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Protocol

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Point
from prompt_toolkit.layout import Layout
from prompt_toolkit.layout.mouse_handlers import MouseHandlers
from prompt_toolkit.layout.screen import WritePosition
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.renderer import Renderer

from handrail.records import record
from handrail.tui.interactive.graphemes import GraphemeMarks
from handrail.tui.interactive.row_screen import RowScreen
from handrail.tui.interactive.terminal_writer import TerminalWriter

BEGIN, END = "\x1b[?2026h", "\x1b[?2026l"
HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l\x1b[?7l", "\x1b[?7h\x1b[?25h"
"""Around what is drawn; meanwhile a full row does not go on in the next one."""
RESTORE = "\x1b[?2004l\x1b[?25h\x1b[?7h\x1b[0m"
"""Leaves a terminal as programs expect it, whatever was going on."""
PATIENCE = 1.0
"""Seconds without a sign of life after which a terminal is not waited for."""
MAX_KEPT = 400
"""How many blocks are kept as source, for drawing the screen again."""


class ScreenBlock(Protocol):
    """Something that was said or done, as lines of a terminal."""

    def lines(self, width: int) -> list[str]:
        """Its lines, none wider than this, with nothing in them that steers the terminal but colours."""
        ...


@record
class DrawnBlock:
    """A block, and its lines in so many columns."""

    block: ScreenBlock
    columns: int
    rows: list[str]


class FrameOutput(Vt100_Output):
    """Writes each frame in one piece, which terminals that know synchronized output show at once."""

    _depth = 0
    marks = GraphemeMarks()
    """What stands for characters of several code points in the layout."""

    @cached_property
    def terminal(self) -> TerminalWriter:
        """What takes the bytes."""
        return TerminalWriter(self.fileno())

    def write(self, data: str) -> None:
        """Write text of the layout."""
        super().write(self.marks.unmark(data))

    @contextmanager
    def frame(self) -> Iterator[None]:
        """What is written inside becomes visible together."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            self.flush()

    def flush(self) -> None:
        """Write out what is buffered, unless a frame is being drawn."""
        if self._depth or not self._buffer:
            return
        data = "".join((BEGIN, *self._buffer, END))
        self._buffer = []
        self.terminal.write(data.encode(self.encoding() or "utf-8", "replace"))

    def drain(self) -> bool:
        """Wait until everything is on the terminal, because others write there now; False = it takes nothing."""
        self.flush()
        return self.terminal.drain(PATIENCE)


def reflows(env: Mapping[str, str]) -> bool:
    """Whether the terminal wraps old lines anew when its width changes."""
    return not env.get("XTERM_VERSION") and env.get("TERM") not in ("linux", "screen", "vt100")


class InlineRenderer(Renderer):
    """Draws the layout below what was committed, and asks the terminal nothing."""

    output: FrameOutput

    def __init__(self, app: "Application[Any]", output: FrameOutput, env: Mapping[str, str] = os.environ) -> None:
        self._reflows = reflows(env)
        self._rows: list[tuple[str, int]] = []
        self._codes: dict[str, str] = {}
        self._columns = 0
        self._waiting: list[ScreenBlock] = []
        self._drawn: list[DrawnBlock] = []
        self._kept: deque[ScreenBlock] = deque(maxlen=MAX_KEPT)
        self.before_frame: Callable[[], bool] = lambda: True
        """Called before each frame; says whether the blocks that are drawn are written with it."""
        output.terminal.on_caught_up = app.invalidate
        super().__init__(app.renderer.style, output, full_screen=False, mouse_support=False)

    def commit(self, block: ScreenBlock) -> None:
        """Put a block above the live region with the next frame."""
        self._waiting.append(block)

    def draw_waiting(self, columns: int) -> Iterator[None]:
        """Draw the blocks that wait, one at each step; a frame writes them."""
        while self._waiting:
            block = self._waiting.pop(0)
            self._drawn.append(DrawnBlock(block, columns, block.lines(columns)))
            yield

    def commit_rest(self) -> None:
        """Write what still waits: there will be no other frame."""
        with self.output.frame():
            if self.before_frame() and self._drawn:
                self._write_drawn(self.output.get_size().columns)

    def commit_again(self) -> None:
        """Clear the screen and write the newest blocks anew, as many rows as it has."""
        with self.output.frame():
            size = self.output.get_size()
            self.erase(leave_alternate_screen=False)
            self.output.write_raw(f"\x1b[H\x1b[{size.rows}M")
            rows: list[str] = []
            self._kept.extend([*(each.block for each in self._drawn), *self._waiting])
            self._drawn.clear()
            self._waiting.clear()
            for block in reversed(self._kept):
                rows[:0] = block.lines(size.columns)
                if len(rows) >= size.rows:
                    break
            self._write_rows(rows[-size.rows :])

    def request_absolute_cursor_position(self) -> None:
        """Not asked for: where the live region begins is known from what was written."""

    def render(self, app: "Application[Any]", layout: Layout, is_done: bool = False) -> None:
        """Draw the layout, above it what waits to be committed. A terminal that is behind gets the next frame."""
        if self.output.terminal.is_behind:
            return
        with self.output.frame():
            size = self.output.get_size()
            if self.before_frame() and self._drawn:
                self._write_drawn(size.columns)
            elif self._columns not in (0, size.columns):
                self.erase(leave_alternate_screen=False)
            self._set_modes(app)
            screen = RowScreen()
            height = min(layout.container.preferred_height(size.columns, size.rows).preferred, size.rows)
            place = WritePosition(xpos=0, ypos=0, width=size.columns, height=height)
            layout.container.write_to_screen(screen, MouseHandlers(), place, "", erase_bg=False, z_index=None)
            layout.visible_windows = screen.visible_windows
            rows = [(self.output.marks.unmark(row), width) for row, width in screen.rows(self._style_code)]
            self._show(rows, screen.get_cursor_position(layout.current_window), size.columns)

    def _set_modes(self, app: "Application[Any]") -> None:
        if not self._bracketed_paste_enabled:
            self.output.enable_bracketed_paste()
            self.output.reset_cursor_key_mode()
            self._bracketed_paste_enabled = True
        shape = app.cursor.get_cursor_shape(app)
        if shape != self._last_cursor_shape:
            self.output.set_cursor_shape(shape)
            self._last_cursor_shape = shape

    def _style_code(self, style: str) -> str:
        """The sequence that sets a style of the layout."""
        if style not in self._codes:
            attributes = self.style.get_attrs_for_style_str(style)
            depth = self.output.get_default_color_depth()
            self._codes[style] = self.output._escape_code_caches[depth][attributes]
        return self._codes[style]

    def _show(self, rows: list[tuple[str, int]], cursor: Point, columns: int) -> None:
        """Write the rows that changed, and put the cursor where it belongs."""
        pairs = zip(self._rows, rows, strict=False)
        if len(rows) < len(self._rows) or any(width > now for (_, width), (_, now) in pairs):
            # some terminals count cells that were blanked when they wrap a row anew
            self.erase(leave_alternate_screen=False)
        if rows == self._rows and cursor == self._cursor_pos:
            return
        out, y = [HIDE_CURSOR], self._cursor_pos.y
        for at, row in enumerate(rows):
            if at < len(self._rows) and row == self._rows[at]:
                continue
            is_new = at >= max(len(self._rows), 1)  # a line feed makes it
            out += (_down(at - 1 - y) + "\n" if is_new else _down(at - y), "\r", row[0], "\x1b[0m")
            y = at
        out += (_down(cursor.y - y), "\r", f"\x1b[{cursor.x}C" if cursor.x else "", SHOW_CURSOR)
        self.output.write_raw("".join(out))
        self._rows, self._columns, self._cursor_pos = rows, columns, cursor

    def erase(self, leave_alternate_screen: bool = True) -> None:
        """Take the live region off the screen; rows below it do not come into being, so nothing scrolls."""
        with self.output.frame():
            columns = self.output.get_size().columns
            x, y = self._cursor_pos
            up = sum(self._rows_of(width, columns) for _, width in self._rows[:y])
            up += x // columns if self._reflows else 0
            total = sum(self._rows_of(width, columns) for _, width in self._rows)
            clear = f"\x1b[{total}M" if total else "\x1b[J"
            self.output.write_raw("\r" + (f"\x1b[{up}A" if up else "") + clear + "\x1b[0m\x1b[?7h")
            self._rows, self._columns = [], 0
            self._cursor_pos = Point(x=0, y=0)
            if leave_alternate_screen:  # another program will have the terminal
                self.reset()
        if leave_alternate_screen:
            self.output.drain()

    def forget(self) -> None:
        """Draw all of it anew from where the cursor is: others have written to the terminal."""
        self._rows, self._columns = [], 0
        self.reset()

    def _rows_of(self, width: int, columns: int) -> int:
        return max(1, -(-width // columns)) if self._reflows else 1

    def _write_drawn(self, columns: int) -> None:
        self.erase(leave_alternate_screen=False)
        drawn, self._drawn = self._drawn, []
        for each in drawn:
            self._kept.append(each.block)
            self._write_rows(each.rows if each.columns == columns else each.block.lines(columns))

    def _write_rows(self, rows: list[str]) -> None:
        if rows:
            self.output.write_raw("\r\n".join(rows) + "\x1b[0m\r\n")


def _down(rows: int) -> str:
    """Moves the cursor so many rows down, or up if there are less than none."""
    return f"\x1b[{rows}B" if rows > 0 else f"\x1b[{-rows}A" if rows else ""


def install(app: "Application[Any]", output: FrameOutput) -> InlineRenderer:
    """Let an application be drawn inline."""
    renderer = InlineRenderer(app, output)
    app.renderer = renderer
    return renderer

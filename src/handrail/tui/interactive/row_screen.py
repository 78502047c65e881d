"""Whole lines with colours as a part of the layout, drawn at the price of a line instead of that of each cell."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

from prompt_toolkit.application import get_app
from prompt_toolkit.data_structures import Point
from prompt_toolkit.layout import Dimension, UIContent, UIControl, Window
from prompt_toolkit.layout.mouse_handlers import MouseHandlers
from prompt_toolkit.layout.screen import Char, Screen, WritePosition

from handrail.tui.interactive.graphemes import without_marks
from handrail.tui.text import columns

BLANK = Char()
StyleCode = Callable[[str], str]
"""The sequence that sets a style of the layout."""


@lru_cache(maxsize=512)
def row_width(line: str) -> int:
    """How many columns a line with colours takes, without blanks at its end."""
    first, *rest = line.split("\x1b[")
    return columns("".join((first, *(part.partition("m")[2] for part in rest))).rstrip())


class RowScreen(Screen):
    """A screen that takes whole lines beside cells."""

    def __init__(self) -> None:
        super().__init__()
        self.show_cursor = False
        self.lines: dict[int, str] = {}
        """The lines, by their row."""

    def rows(self, code: StyleCode) -> Iterator[tuple[str, int]]:
        """Every row as it is written, and how many columns of it are painted."""
        for y in range(self.height):
            line = self.lines.get(y)
            yield cell_row(self.data_buffer[y], code) if line is None else (line, row_width(line))


def cell_row(cells: Mapping[int, Char], code: StyleCode) -> tuple[str, int]:
    """A row of cells as text with colours, without blanks at its end, and its width."""
    text, plain, width = "", code(""), 0
    now = plain
    for x in range(max(cells, default=-1) + 1):
        cell = cells.get(x, BLANK)
        if cell.char and (wanted := code(cell.style)) != now:
            text, now = text + wanted, wanted
        text += cell.char
        width = x + cell.width if cell.char.strip(" ") else width
    return text.rstrip(" "), width


class LinesControl(UIControl):
    """Has the keys for its window, which draws."""

    def __init__(self, *, focusable: bool) -> None:
        self._focusable = focusable

    def is_focusable(self) -> bool:
        """Whether it can have the keys."""
        return self._focusable

    def create_content(self, width: int, height: int) -> UIContent:
        """Nothing: the window draws lines."""
        return UIContent()


class LinesWindow(Window):
    """
    Shows lines that fit, as `lines` gives them once for each frame. With `cursor`, its row, it can have the keys.

    The window of prompt_toolkit draws cell by cell, which takes many times as long.
    """

    def __init__(self, lines: Callable[[], Sequence[str]], cursor: Callable[[], int] | None = None) -> None:
        super().__init__(LinesControl(focusable=cursor is not None))
        self._lines = lines
        self._cursor = cursor
        self._frame = -1
        self._shown: Sequence[str] = ()

    def preferred_height(self, width: int, max_available_height: int) -> Dimension:
        """As many rows as there are lines."""
        count = len(self._now())
        return Dimension(min=0, max=count, preferred=count)

    def write_to_screen(  # noqa: PLR0917  # as the class above has it
        self,
        screen: Screen,
        mouse_handlers: MouseHandlers,
        write_position: WritePosition,
        parent_style: str,
        erase_bg: bool,
        z_index: int | None,
    ) -> None:
        """Put the lines where they belong; if there is not room for all, those around the cursor."""
        assert isinstance(screen, RowScreen)
        lines, height, top = self._now(), write_position.height, write_position.ypos
        row = min(self._cursor(), max(len(lines) - 1, 0)) if self._cursor is not None else 0
        first = max(row - height + 1, 0)
        for at, line in enumerate(lines[first : first + height]):
            screen.lines[top + at] = without_marks(line)
        screen.height = max(screen.height, top + min(len(lines), height))
        screen.set_cursor_position(self, Point(0, top + row - first))
        screen.visible_windows_to_write_positions[self] = write_position

    def _now(self) -> Sequence[str]:
        if (frame := get_app().render_counter) != self._frame:
            self._frame, self._shown = frame, self._lines()
        return self._shown

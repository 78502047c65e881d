"""Lines with colours as a part of the layout, drawn at the price of what they contain."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import groupby

from prompt_toolkit.application import get_app
from prompt_toolkit.data_structures import Point
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.layout import UIContent, UIControl
from prompt_toolkit.layout.controls import GetLinePrefixCallable

from handrail.tui.interactive.graphemes import without_marks


@lru_cache(maxsize=512)
def fragments_of(line: str) -> StyleAndTextTuples:
    """A line with colours, as prompt_toolkit wants it: one fragment for each run of a style."""
    runs = groupby(to_formatted_text(ANSI(without_marks(line))), key=lambda fragment: fragment[0])
    return [(style, "".join(fragment[1] for fragment in run)) for style, run in runs]


class LinesControl(UIControl):
    """
    Shows lines that fit, as `lines` gives them once for each frame. With `cursor`, its row, it can have the keys.

    The control of prompt_toolkit for formatted text splits it into lines many times for each frame.
    """

    def __init__(self, lines: Callable[[], Sequence[str]], cursor: Callable[[], int] | None = None) -> None:
        self._lines = lines
        self._cursor = cursor
        self._frame = -1
        self._shown: Sequence[str] = ()

    def is_focusable(self) -> bool:
        """Whether it can have the keys."""
        return self._cursor is not None

    def preferred_height(
        self,
        width: int,
        max_available_height: int,
        wrap_lines: bool,
        get_line_prefix: GetLinePrefixCallable | None,
    ) -> int:
        """How many lines there are."""
        return len(self._now())

    def create_content(self, width: int, height: int) -> UIContent:
        """The lines of this frame."""
        lines = self._now()
        row = self._cursor() if self._cursor is not None else 0
        return UIContent(
            lambda at: fragments_of(lines[at]),
            line_count=len(lines),
            cursor_position=Point(0, min(row, max(len(lines) - 1, 0))),
            show_cursor=self._cursor is not None,
        )

    def _now(self) -> Sequence[str]:
        if (frame := get_app().render_counter) != self._frame:
            self._frame, self._shown = frame, self._lines()
        return self._shown

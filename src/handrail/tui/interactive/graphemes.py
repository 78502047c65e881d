"""
Characters as people see them in the input line: a family of emoji is one, a letter with its accents is one.

prompt_toolkit counts code points, so the cursor would stop inside such a character and stand in the wrong column. Here
the cursor passes over it whole, and in the layout one code point of the right width stands for it until it is written.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.utils import explode_text_fragments
from wcwidth import grapheme_boundary_before, iter_graphemes, wcswidth

NARROW, WIDE = 0x10_0000, 0x3_8000
"""Where the code points begin that stand for characters: private ones are narrow, unassigned Chinese ones are wide."""
MAX_KNOWN = 0x4000
"""How many characters are known at once; a screen shows far fewer."""
MAX_CLUSTER = 64
"""Code points of a character; what is longer is no character of any script."""


UNKNOWN = "\N{REPLACEMENT CHARACTER}"
MARKS = re.compile(f"[{chr(NARROW)}-{chr(NARROW + MAX_KNOWN)}{chr(WIDE)}-{chr(WIDE + MAX_KNOWN)}]")


def without_marks(text: str) -> str:
    """The text of others without code points that stand for something here."""
    return text if text.isascii() else MARKS.sub(UNKNOWN, text)


def boundary_before(text: str, position: int) -> int:
    """The position itself if no character goes across it, else where that character begins."""
    if text.isascii() or not 0 < position < len(text):
        return position
    return grapheme_boundary_before(text, position + 1)


def boundary_after(text: str, position: int) -> int:
    """The position itself if no character goes across it, else where that character ends."""
    start = boundary_before(text, position)
    return position if start == position else start + len(next(iter_graphemes(text[start : start + MAX_CLUSTER])))


class GraphemeBuffer(Buffer):
    """A text with a cursor that is moved, and from which is deleted, by whole characters."""

    @property
    def cursor_position(self) -> int:
        """Where the cursor is, in code points."""
        return Buffer.cursor_position.__get__(self)  # type: ignore[no-any-return]

    @cursor_position.setter
    def cursor_position(self, value: int) -> None:
        to_left = value < self.cursor_position
        value = boundary_before(self.text, value) if to_left else boundary_after(self.text, value)
        Buffer.cursor_position.__set__(self, value)  # type: ignore[attr-defined]  # it is a property

    def delete_before_cursor(self, count: int = 1) -> str:
        """Delete so many code points before the cursor, and the rest of the character that they belong to."""
        start = max(self.cursor_position - count, 0)
        return super().delete_before_cursor(self.cursor_position - boundary_before(self.text, start))

    def delete(self, count: int = 1) -> str:
        """Delete so many code points behind the cursor, and the rest of the character that they belong to."""
        end = min(self.cursor_position + count, len(self.text))
        return super().delete(boundary_after(self.text, end) - self.cursor_position)


class GraphemeMarks:
    """Code points that stand for characters of several code points while a frame is laid out."""

    def __init__(self) -> None:
        self._marks: dict[str, str] = {}
        self._texts: dict[int, str] = {}

    def mark(self, cluster: str) -> str:
        """What stands for a character in the layout."""
        if len(cluster) == 1 and not MARKS.match(cluster):
            return cluster
        found = self._marks.get(cluster)
        if found is None:
            if len(self._marks) >= MAX_KNOWN:
                self._marks.clear()
                self._texts.clear()
            start = WIDE if wcswidth(cluster) > 1 else NARROW
            found = self._marks[cluster] = chr(start + len(self._marks))
            self._texts[ord(found)] = cluster
        return found

    def unmark(self, text: str) -> str:
        """The text as it is written, with each character in the place of what stands for it."""
        return text if text.isascii() else text.translate(self._texts)


class GraphemeProcessor(Processor):
    """Lays out each character as one cell or two, and says where each code point went."""

    def __init__(self, marks: GraphemeMarks) -> None:
        self._marks = marks

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """The line with marks in the place of characters that have several code points."""
        fragments = transformation_input.fragments
        line = "".join(fragment[1] for fragment in fragments)
        if line.isascii():
            return Transformation(fragments)
        starts = list(_starts(line))
        cells = explode_text_fragments(fragments)
        ends = [*starts[1:], len(line)]
        shown = [(cells[start][0], self._marks.mark(line[start:end])) for start, end in zip(starts, ends, strict=True)]

        def to_shown(position: int) -> int:
            return bisect_right(starts, position) - 1 if position < len(line) else position - len(line) + len(starts)

        def to_source(position: int) -> int:
            return starts[position] if position < len(starts) else position - len(starts) + len(line)

        return Transformation(list(shown), to_shown, to_source)


def _starts(line: str) -> Iterator[int]:
    at = 0
    for cluster in iter_graphemes(line):
        yield at
        at += len(cluster)

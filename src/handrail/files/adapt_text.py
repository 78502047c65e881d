"""
Adapts a replacement to the line ends and quotes of the file.

The common parts of the old and the new text keep the file's bytes. New parts get the line ends around them, and the
file's shape of quotes if the old text only matched because all shapes count as equal.
"""

import difflib
import re
from bisect import bisect_left

from handrail.files.diff import common_ends
from handrail.files.find_text import DOUBLE_QUOTES, QUOTES, SINGLE_QUOTES, one_line_end
from handrail.lazy import lazy_pattern

MAX_COMPARED = 4_000
LINE_END = lazy_pattern(r"\r\n|\n|\r")
CURLY = {SINGLE_QUOTES: "\u2018\u2019", DOUBLE_QUOTES: "\u201c\u201d"}
OPENERS = "([{<-\u2013\u2014/=" + SINGLE_QUOTES + DOUBLE_QUOTES


def adapt_text(standing: str, old: str, new: str, line_end: str, *, quotes: bool) -> str:
    """The replacement for `standing`, which matched `old`; `line_end` is used where it has no line end of its own."""
    old, new = one_line_end(old), one_line_end(new)
    if not quotes and "\r" not in standing and ("\n" not in new or (line_end == "\n" or "\n" in standing)):
        return new
    own = re.findall(r"\r\n|.", standing, re.DOTALL)  # one for each character of the wanted text
    result: list[str] = []
    ends = [at for at, unit in enumerate(own) if LINE_END.fullmatch(unit)]
    for tag, a, b, c, d in _steps(old, new):
        if tag == "equal":
            result += own[a:b]
        else:
            end = own[ends[max(bisect_left(ends, a) - 1, 0)]] if ends else line_end
            fresh = new[c:d]
            if quotes:
                fresh = _shape_quotes(fresh, result[-1][-1:] if result else "", standing)
            if fresh:
                result.append(fresh.replace("\n", end))
    return "".join(result)


def _steps(old: str, new: str) -> list[tuple[str, int, int, int, int]]:
    """The opcodes that turn the old text into the new one; common beginnings and ends are split off first."""
    head, tail = common_ends(old, new)
    a, b, c, d = head, len(old) - tail, head, len(new) - tail
    middle: list[tuple[str, int, int, int, int]] = [("replace", a, b, c, d)]
    if max(b - a, d - c) <= MAX_COMPARED:
        codes = difflib.SequenceMatcher(None, old[a:b], new[c:d], autojunk=False).get_opcodes()
        middle = [(tag, a + i, a + j, c + k, c + m) for tag, i, j, k, m in codes]
    return [("equal", 0, a, 0, c), *middle, ("equal", b, len(old), d, len(new))]


def _shape_quotes(text: str, before: str, standing: str) -> str:
    """The text with its quotes in the shapes that the matched text uses."""
    used = {family: set(family).intersection(standing) for family in (SINGLE_QUOTES, DOUBLE_QUOTES)}
    first = {family: next((char for char in standing if char in family), "") for family in used}
    result: list[str] = []
    for char in text:
        family = QUOTES.get(char, "")
        if family and used[family] and char not in used[family]:
            opening = not before or before.isspace() or before in OPENERS
            curly = CURLY[family]
            char = curly[0 if opening else 1] if used[family].intersection(curly) else first[family]  # noqa: PLW2901
        result.append(char)
        before = char
    return "".join(result)

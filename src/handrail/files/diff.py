"""Line diffs of two texts in bounded time: the work never grows with the square of the text."""

import difflib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, TypeAlias

from handrail.records import record

CONTEXT = 3
MAX_COMPARED = 1_500
MAX_LINES = 1_000
MAX_PATCH_LINES = 10_000
MAX_LINE_CHARS = 1_000
NO_END = "\\ No newline at end of file"

Block: TypeAlias = tuple[int, int, int]
"""(position in the old lines, position in the new lines, how many are equal from there)"""


@record
class Hunk:
    """One region of a patch. Each line begins with a blank, a minus or a plus."""

    old_start: int
    old_lines: int
    new_start: int
    new_lines: int
    lines: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The hunk under the names that clients expect."""
        return {
            "oldStart": self.old_start,
            "oldLines": self.old_lines,
            "newStart": self.new_start,
            "newLines": self.new_lines,
            "lines": list(self.lines),
        }


def split_lines(text: str) -> list[str]:
    """Split a text into lines with their ends. A lone carriage return ends a line only if there are no line feeds."""
    end = "\n" if "\n" in text else "\r"
    *whole, rest = text.split(end)
    lines = [line + end for line in whole]
    return [*lines, rest] if rest else lines


def make_hunks(old: Sequence[str], new: Sequence[str], old_first: int = 1, new_first: int = 1) -> list[Hunk]:
    """The regions that differ, with three lines of context; `old_first` and `new_first` number the first lines."""
    changes: list[tuple[int, int, int, int]] = []
    a = b = 0
    for i, j, size in (*_blocks(old, new), (len(old), len(new), 0)):
        if a < i or b < j:
            changes.append((a, i, b, j))
        a, b = i + size, j + size
    return [_hunk(group, old, new, old_first, new_first) for group in _groups(changes)]


def count_changes(patch: Sequence[Hunk]) -> tuple[int, int]:
    """How many lines were added and removed."""
    signs = Counter(map(itemgetter(0), chain.from_iterable(hunk.lines for hunk in patch)))
    return signs["+"], signs["-"]


def limit_patch(patch: Sequence[Hunk]) -> list[Hunk]:
    """The first hunks, up to `MAX_PATCH_LINES` lines."""
    kept: list[Hunk] = []
    room = MAX_PATCH_LINES
    for hunk in patch:
        room -= len(hunk.lines)
        if room < 0:
            break
        kept.append(hunk)
    return kept


def format_patch(patch: Sequence[Hunk]) -> str:
    """The patch as a unified diff, cut after `MAX_LINES` lines."""
    lines: list[str] = []
    for hunk in patch:
        lines += (f"@@ -{hunk.old_start},{hunk.old_lines} +{hunk.new_start},{hunk.new_lines} @@", *hunk.lines)
    rest = len(lines) - MAX_LINES
    return "\n".join(lines if rest <= 0 else [*lines[:MAX_LINES], f"... and {rest:,} more lines"])


def common_ends(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How much is equal at the beginning and, behind that, at the end."""
    limit = min(len(old), len(new))
    head = next((i for i in range(limit) if old[i] != new[i]), limit)
    return head, next((i for i in range(limit - head) if old[-1 - i] != new[-1 - i]), limit - head)


def _blocks(old: Sequence[str], new: Sequence[str]) -> Iterator[Block]:
    head, tail = common_ends(old, new)
    yield 0, 0, head
    middle = _middle(old[head : len(old) - tail], new[head : len(new) - tail])
    yield from ((head + i, head + j, size) for i, j, size in middle)
    yield len(old) - tail, len(new) - tail, tail


def _middle(old: Sequence[str], new: Sequence[str]) -> Iterator[Block]:
    """Equal blocks; a large text is cut at lines that occur once on both sides, and compared between the cuts."""
    if not old or not new:
        return
    a = c = 0
    for i, j in (*(_anchors(old, new) if max(len(old), len(new)) > MAX_COMPARED else ()), (len(old), len(new))):
        if max(i - a, j - c) <= MAX_COMPARED:
            matcher = difflib.SequenceMatcher(None, old[a:i], new[c:j], autojunk=False)
            yield from ((a + x, c + y, size) for x, y, size in matcher.get_matching_blocks() if size)
        if i < len(old):
            yield i, j, 1
        a, c = i + 1, j + 1


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """The longest rising chain of lines that are unique on both sides."""
    in_old, in_new = Counter(old), Counter(new)
    place = {line: j for j, line in enumerate(new) if in_new[line] == 1}
    pairs = [(i, place[line]) for i, line in enumerate(old) if in_old[line] == 1 and line in place]
    ends: list[int] = []
    at: list[int] = []
    previous: list[int] = []
    for index, (_, j) in enumerate(pairs):
        slot = bisect_left(ends, j)
        ends[slot : slot + 1] = [j]
        at[slot : slot + 1] = [index]
        previous.append(at[slot - 1] if slot else -1)
    found: list[tuple[int, int]] = []
    index = at[-1] if at else -1
    while index >= 0:
        found.append(pairs[index])
        index = previous[index]
    return found[::-1]


def _groups(changes: list[tuple[int, int, int, int]]) -> list[list[tuple[int, int, int, int]]]:
    """Group changes whose context lines touch."""
    groups: list[list[tuple[int, int, int, int]]] = []
    for change in changes:
        if groups and change[0] - groups[-1][-1][1] <= 2 * CONTEXT:
            groups[-1].append(change)
        else:
            groups.append([change])
    return groups


def _hunk(
    group: list[tuple[int, int, int, int]], old: Sequence[str], new: Sequence[str], old_first: int, new_first: int
) -> Hunk:
    start, end = max(group[0][0] - CONTEXT, 0), min(group[-1][1] + CONTEXT, len(old))
    new_start = group[0][2] - (group[0][0] - start)
    lines: list[str] = []
    at = start
    for a, b, c, d in group:
        lines += _sign_lines(" ", old[at:a])
        lines += _sign_lines("-", old[a:b])
        lines += _sign_lines("+", new[c:d])
        at = b
    lines += _sign_lines(" ", old[at:end])
    new_lines = group[-1][3] + (end - group[-1][1]) - new_start
    return Hunk(
        start + old_first - (end == start), end - start, new_start + new_first - (not new_lines), new_lines,
        tuple(lines),
    )  # fmt: skip


def _sign_lines(sign: str, lines: Sequence[str]) -> list[str]:
    text = "".join(lines)
    if text.endswith("\n") and "\r" not in text and max(map(len, lines)) <= MAX_LINE_CHARS:
        return [sign + line for line in text[:-1].split("\n")]
    signed = []
    for line in lines:
        text = line.rstrip("\r\n")
        cut = text if len(text) <= MAX_LINE_CHARS else f"{text[:MAX_LINE_CHARS]}... ({len(text):,} characters)"
        signed += [sign + cut] if len(text) < len(line) else [sign + cut, NO_END]
    return signed

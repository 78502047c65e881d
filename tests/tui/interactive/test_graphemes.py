"""Characters of several code points in the input line: the cursor passes over each, and it takes its columns."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.layout.controls import BufferControl
from prompt_toolkit.layout.processors import TransformationInput
from prompt_toolkit.utils import get_cwidth
from tests.cli.test_run import variables
from tests.interactive import Conversing
from tests.tui.interactive.test_conversation import leave, said
from wcwidth import iter_graphemes, wcswidth

from handrail.testing.model_server import ModelServer
from handrail.tui.interactive.graphemes import (
    GraphemeBuffer,
    GraphemeMarks,
    GraphemeProcessor,
    boundary_after,
    boundary_before,
    without_marks,
)

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
ACCENT = "e\u0301"
FLAG = "\U0001f1e9\U0001f1ea"
PIECES = (
    "a",
    " ",
    "\u4e2d",
    FAMILY,
    ACCENT,
    FLAG,
    "\u2764\ufe0f",
    "\U0001f44d\U0001f3fd",
    "\u0301",
    "\u200d",
    "\U00038000",
)
LINES = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)
LEFT, BACKSPACE, DELETE = "\x1b[D", "\x7f", "\x1b[3~"


@pytest.mark.anyio
async def test_keys_move_over_and_delete_whole_characters(tmp_path: Path) -> None:
    async with (
        ModelServer([said("Nice.")], strict=True) as server,
        Conversing(tmp_path, variables(server, tmp_path)) as terminal,
    ):
        await terminal.until("mode default")
        terminal.type(f"a{FAMILY}{FAMILY}{ACCENT}{FLAG}z")
        await terminal.frames(1)
        terminal.type(LEFT * 3 + BACKSPACE)  # before the accent, without the second family
        terminal.type(DELETE + "-")
        terminal.type("\x05!\r")
        await terminal.until("Nice.")
        assert f"{FAMILY}-" in terminal.raw  # it was written in one piece
        await leave(terminal)
    assert server.requests[0].body["messages"][-1]["content"][-1]["text"] == f"a{FAMILY}-{FLAG}z!"


@given(LINES, st.integers(0, 30))
def test_a_position_inside_a_character_is_moved_to_its_ends(line: str, position: int) -> None:
    position = min(position, len(line))
    ends = {0}
    for cluster in iter_graphemes(line):
        ends.add(max(ends) + len(cluster))
    assert boundary_before(line, position) == max(end for end in ends if end <= position)
    assert boundary_after(line, position) == min(end for end in ends if end >= position)


@given(LINES, st.integers(0, 30), st.booleans())
def test_deleting_leaves_whole_characters_and_the_same_as_before_elsewhere(line: str, at: int, before: bool) -> None:
    buffer = GraphemeBuffer()
    buffer.text = line
    buffer.cursor_position = boundary_before(line, min(at, len(line)))
    cursor = buffer.cursor_position
    gone = buffer.delete_before_cursor() if before else buffer.delete()
    start = cursor - len(gone) if before else cursor
    assert buffer.text == line[:start] + line[start + len(gone) :]
    assert line[start : start + len(gone)] == gone
    assert len(list(iter_graphemes(gone))) <= 1


@given(LINES)
def test_each_character_takes_its_columns_and_comes_out_as_it_went_in(line: str) -> None:
    marks = GraphemeMarks()
    buffer = Buffer(document=Document(line))
    given_input = TransformationInput(BufferControl(buffer), buffer.document, 0, lambda at: at, [("", line)], 80, 24)
    laid_out = GraphemeProcessor(marks).apply_transformation(given_input)
    shown = "".join(fragment[1] for fragment in laid_out.fragments)
    clusters = list(iter_graphemes(line))

    assert marks.unmark(shown) == line
    assert [get_cwidth(char) for char in shown] == [
        get_cwidth(each) if len(each) == 1 and ord(each) < 0x38000 else max(min(wcswidth(each), 2), 1)
        for each in clusters
    ] or line.isascii()
    at = 0
    for number, cluster in enumerate(clusters):
        assert laid_out.source_to_display(at) == number
        assert laid_out.display_to_source(number) == at
        at += len(cluster)


def test_text_of_others_cannot_contain_what_stands_for_a_character() -> None:
    marks = GraphemeMarks()
    stands = marks.mark(FAMILY)
    assert marks.unmark(stands) == FAMILY
    assert marks.unmark(without_marks(stands)) == "\ufffd"

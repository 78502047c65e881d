"""What the terminal draws, from events and texts: blocks, groups, diffs, questions."""

import asyncio
import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from handrail.cli.terminal_commands import desktop_notice
from handrail.conversation.blocks import Json, Text, ToolResult, ToolUse
from handrail.conversation.messages import AssistantMessage, Message, UserMessage
from handrail.conversation.stream import BlockEnd, BlockStart, Delta
from handrail.loop.events import RunEnded
from handrail.loop.loop_messages import interruption_message
from handrail.loop.state import Move, Why
from handrail.tools.cards import Card
from handrail.tools.context import Progress
from handrail.tools.events import CallFinished, CallProgress, CallQueued, CallStarted
from handrail.tools.outcome import Cause, Outcome, Status
from handrail.tui.interactive.blocks import CallBlock, PromptBlock
from handrail.tui.interactive.dialog import DialogChoice, DialogQuestion, DialogReply, Questions, question_lines
from handrail.tui.interactive.diff import diff_lines
from handrail.tui.interactive.file_index import FileIndex
from handrail.tui.interactive.frames import ScreenBlock
from handrail.tui.interactive.history_blocks import history_blocks
from handrail.tui.interactive.input_line import PastedTexts
from handrail.tui.interactive.markdown import MAX_OPEN, OpenAnswer, markdown_lines
from handrail.tui.interactive.paint import NONE, THEMES
from handrail.tui.interactive.view import ConversationView
from handrail.tui.text import columns

DARK = THEMES["dark"]
STEERS = "\x1b]0;title\x07\x9b2J\u202e"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Cards:
    """The cards of a tool that shows several of its calls as one."""

    def __init__(self, name: str) -> None:
        self._name = name

    def use(self) -> Card:
        return Card("Look", self._name)

    def progress(self, so_far: Sequence[Progress]) -> Card:
        return Card("Look", so_far[-1].message if so_far else "")

    def end(self, outcome: Outcome, progress: Sequence[Progress]) -> Card:
        return Card("Look", "3 lines", body="one\ntwo\nthree")

    def group(self, inputs: Sequence[Json]) -> Card | None:
        return Card("Look", f"{len(inputs)} files", body="\n".join(str(each["name"]) for each in inputs))


class Drawn:
    """A view, what it committed, and a clock."""

    def __init__(self) -> None:
        self.blocks: list[ScreenBlock] = []
        self.now = 100.0
        self.view = ConversationView(self.blocks.append, lambda: self.now, lambda: NONE)

    def committed(self, width: int = 60) -> list[str]:
        return [line for block in self.blocks for line in block.lines(width)]

    def live(self) -> list[str]:
        return self.view.live_lines(60, 8)


def queued(number: int) -> CallQueued:
    name = f"f{number}.txt"
    return CallQueued(ToolUse(str(number), "Look", {"name": name}), 0.0, Cards(name))


def finished(call: CallQueued, status: Status = Status.OK) -> CallFinished:
    outcome = Outcome(call.use, status, Cause.DONE, ToolResult(call.use.id, (Text("x"),)))
    return CallFinished(outcome, 0.0, call.cards)


@pytest.mark.proves("O6")
def test_calls_of_one_kind_are_one_line_while_they_run_and_when_they_are_over() -> None:
    drawn = Drawn()
    calls = [queued(number) for number in range(12)]
    for call in calls:
        drawn.view.on_event(call)
        drawn.view.on_event(CallStarted(call.use, 99.0, call.cards))
    assert [line[2:] for line in drawn.live()] == ["Look 12 files, 12 running"]

    for call in calls:
        drawn.view.on_event(finished(call))
    assert drawn.committed() == ["* Look 12 files", "    f0.txt, f1.txt, f2.txt, f3.txt, +8 more"]


def test_a_failed_call_of_a_group_is_shown_by_itself() -> None:
    drawn = Drawn()
    calls = [queued(number) for number in range(2)]
    for call in calls:
        drawn.view.on_event(call)
    drawn.view.on_event(finished(calls[0]))
    drawn.view.on_event(finished(calls[1], Status.ERROR))
    assert [line for line in drawn.committed() if not line.startswith(" ")] == [
        "* Look f0.txt: 3 lines",
        "x Look f1.txt: 3 lines",
    ]


@pytest.mark.proves("O3", "O9")
def test_a_running_call_says_for_how_long_and_what_it_waits_for() -> None:
    drawn = Drawn()
    first, second = queued(1), queued(2)
    drawn.view.on_event(first)
    assert drawn.live() == [". Look f1.txt, waits for an earlier call"]
    drawn.view.on_event(CallStarted(first.use, 95.0, first.cards))
    news = Progress("half of it")
    drawn.view.on_event(CallProgress(first.use, news, 0.0, first.cards, (news,)))
    assert drawn.live() == ["- Look f1.txt, 5 s, half of it"]
    drawn.view.mark_question("1", is_open=True)
    assert drawn.live() == ["? Look f1.txt, waits for your answer"]
    drawn.view.on_event(second)
    drawn.view.on_event(RunEnded(Move.STOPPED, Why.COMPLETED))
    assert drawn.live() == []


def test_each_piece_of_an_answer_is_committed_once_and_the_open_end_stays_small() -> None:
    text = "".join(
        f"Paragraph {n} with **words**.\n\n- item {n}\n- other {n}\n\n```py\n{'x = 1' * 3}\n```\n\n" for n in range(60)
    )
    drawn = Drawn()
    drawn.view.on_event(BlockStart(0, "text"))
    for at in range(0, len(text), 7):
        drawn.view.on_event(Delta(0, text[at : at + 7]))
        drawn.view.settle()
        assert len(drawn.live()) <= 8
    drawn.view.on_event(BlockEnd(0, Text(text)))
    whole = "\n".join(drawn.committed())
    for number in range(60):
        assert whole.count(f"Paragraph {number} with words.") == 1
        assert whole.count(f" item {number}\n") == 1


@given(st.text(alphabet="ab -*#`~>|1.\n\t\\[]()_é漢👩\x1b\u202e", max_size=300), st.integers(8, 90))
def test_markdown_fits_and_steers_nothing(source: str, width: int) -> None:
    for line in markdown_lines(source, width, DARK):
        bare = COLOUR.sub("", line)
        assert "\x1b" not in bare
        assert "\u202e" not in bare
        assert "\n" not in bare
        assert cell_len(bare) <= width


@given(st.lists(st.text(alphabet="ab \n-`#*1.", max_size=40), max_size=20))
def test_pieces_of_an_answer_are_the_answer(parts: list[str]) -> None:
    answer, pieces = OpenAnswer(), []
    for part in parts:
        answer.add(part)
        pieces += answer.take_finished()
    pieces += answer.take_all()
    joined = "".join(piece.source for piece in pieces)
    assert "".join(joined.split()) == "".join("".join(parts).split())


@pytest.mark.parametrize("start", ["", "```python\n"])
def test_a_very_long_block_is_cut_so_that_the_open_end_stays_small(start: str) -> None:
    answer = OpenAnswer()
    answer.add(start)
    kept: list[str] = []
    for number in range(3_000):
        answer.add(f"word{number} is here\n" if start else f"word{number} ")
        kept += [piece.source for piece in answer.take_finished()]
        assert len(answer.rest.source) < MAX_OPEN + 100
    kept += [piece.source for piece in answer.take_all()]
    assert all(sum(f"word{number} " in source for source in kept) == 1 for number in range(0, 3_000, 500))


def test_a_diff_has_line_numbers_and_marks_the_words_that_changed() -> None:
    diff = "@@ -9,2 +9,2 @@\n same\n-the old word\n+the new word"
    assert diff_lines(diff, 40, NONE) == [" 9   same", "10 - the old word", "10 + the new word"]
    assert "\x1b[32;7mnew" in diff_lines(diff, 40, DARK)[2]


def test_a_missing_newline_is_shown_where_only_one_text_lacks_it() -> None:
    lacks = "\n\\ No newline at end of file"
    assert diff_lines(f"@@ -1 +1 @@\n-old{lacks}\n+new{lacks}", 40, NONE) == ["1 - old", "1 + new"]
    assert len(diff_lines(f"@@ -1 +1 @@\n-same{lacks}\n+same", 40, NONE)) == 3


@pytest.mark.parametrize("width", [20, 40, 81])
def test_blocks_fit_with_wide_and_combining_characters(width: int) -> None:
    text = "漢字" * 40 + " e\u0301" * 40 + " 👩 long " * 30
    card = Card("Look", text, body=text, tag="5 s")
    blocks: list[ScreenBlock] = [PromptBlock(text, DARK), CallBlock(text, card, Status.OK, "", 3.0, DARK)]
    for block in blocks:
        assert max(columns(COLOUR.sub("", line)) for line in block.lines(width)) <= width


@pytest.mark.anyio
@pytest.mark.proves("G41")
async def test_questions_wait_in_a_queue_that_needs_no_terminal() -> None:
    changes: list[int] = []
    questions = Questions(lambda: 0.0, lambda: changes.append(1))
    yes = (DialogChoice("yes", "Yes"),)
    first, second, third = (asyncio.ensure_future(questions.ask(DialogQuestion(name, yes))) for name in "abc")
    await asyncio.sleep(0)
    assert questions.count == 3
    assert questions.current is not None
    assert "a (1 of 3)" in question_lines(questions.current, questions.count, 40, 20, NONE)[0][1]

    second.cancel()
    await asyncio.wait((second,))
    questions.reply(DialogReply("yes"))
    assert await first == DialogReply("yes")
    assert questions.current is not None
    assert questions.current.question.title == "c"
    questions.leave_all()
    assert await third is None
    assert questions.current is None


@pytest.mark.anyio
async def test_a_key_that_is_held_answers_one_question_only() -> None:
    now = 100.0
    questions = Questions(lambda: now, lambda: None)
    yes = (DialogChoice("yes", "Yes"),)
    first, second = (asyncio.ensure_future(questions.ask(DialogQuestion(name, yes))) for name in "ab")
    await asyncio.sleep(0)

    now += 0.5
    assert questions.arm(last_key=0.0) == 0
    questions.reply(DialogReply("yes"))
    await first

    now += 0.6  # a key that is held repeats now
    assert questions.arm(last_key=now - 0.6) > 0
    assert questions.arm(last_key=now) > 0
    now += 1.0
    assert questions.arm(last_key=now - 1.0) == 0
    questions.leave_all()
    assert await second is None


@pytest.mark.anyio
@pytest.mark.parametrize("height", [8, 40])
async def test_a_narrow_question_has_its_whole_hint_where_there_is_room(height: int) -> None:
    questions = Questions(lambda: 0.0, lambda: None)
    choices = (DialogChoice("yes", "Yes", edits_on_tab=True), DialogChoice("no", "No", takes_words=True))
    asked = asyncio.ensure_future(questions.ask(DialogQuestion("May it?", choices, hasty=True)))
    await asyncio.sleep(0)
    assert questions.current is not None

    rows, selected = question_lines(questions.current, 1, 40, height, NONE)

    assert len(rows) <= height
    assert all(columns(row) <= 40 for row in rows)
    assert "1. Yes" in rows[selected]
    hint = "a number, or arrows and Enter, or your own words, Tab edits, Esc says no"
    shown = " ".join(row.strip() for row in rows[selected + 2 :])
    assert shown == hint if height == 40 else shown.startswith("a number, or arrows and Enter")
    questions.leave_all()
    await asked


@pytest.mark.anyio
async def test_files_are_found_by_parts_and_by_letters_in_order() -> None:
    paths = [f"src/module_{number}/handler.py" for number in range(5_000)] + [
        "docs/terminal.md",
        "tests/test_terminal.py",
    ]

    async def listed() -> list[str]:
        return paths

    index = FileIndex(listed)
    assert await index.search("terminal") == ["docs/terminal.md", "tests/test_terminal.py"]
    assert (await index.search("dctrm"))[0] == "docs/terminal.md"
    assert (await index.search("dctrmd"))[0] == "docs/terminal.md"
    assert (await index.search("module_4999"))[0] == "src/module_4999/handler.py"
    assert await index.search("no such file at all") == []


def test_a_long_paste_is_folded_and_sent_in_full() -> None:
    pasted = PastedTexts()
    text = "\r\n".join(f"line {number}" for number in range(500))
    folded = pasted.fold(text)
    assert len(folded) < 80
    assert pasted.fold("short\rtext") == "short\ntext"
    assert pasted.unfold(f"Look: {folded} and [pasted text #9, 3 lines]") == (
        f"Look: {text.replace(chr(13), '')} and [pasted text #9, 3 lines]"
    )


def test_a_newline_at_the_end_of_a_paste_is_not_one_more_line() -> None:
    pasted = PastedTexts()

    assert "300 lines" in pasted.fold("line\n" * 300)
    assert "300 lines" in pasted.fold("line\n" * 299 + "line")


def test_a_resumed_conversation_shows_what_was_called_and_why_a_call_failed() -> None:
    calls = (
        ToolUse("1", "Bash", {"command": "make"}),
        ToolUse("2", "Bash", {"command": "rm x"}),
        ToolUse("3", "Ls", {}),
    )
    refused = ToolResult("2", (Text("Bash(rm x) was refused: not today.\nAsk the user."),), is_error=True)
    messages: list[Message] = [
        UserMessage((Text("Build it."),)),
        AssistantMessage((Text("I build."), *calls)),
        UserMessage((ToolResult("1", (Text("built"),)), refused, ToolResult("3", (Text("x"),)))),
        interruption_message(Why.ABORTED_TOOLS),
    ]

    rows = [row for block in history_blocks(messages, NONE) for row in block.lines(80)]

    assert [row.rstrip() for row in rows if row.strip()] == [
        "> Build it.",
        "I build.",
        "* Bash make",
        "x Bash rm x",
        "    Bash(rm x) was refused: not today.",
        "* Ls",
        "The user interrupted while tools were running.",
    ]


def test_why_a_call_was_refused_does_not_steer_the_terminal() -> None:
    block = CallBlock("Look", Card("Look"), Status.DENIED, f"a hook says {STEERS}", 0.0, NONE)
    assert block.lines(80)[1].startswith("    a hook says")
    assert all(each.isprintable() for line in block.lines(80) for each in line)


def test_a_question_shown_on_the_desktop_ends_where_it_should() -> None:
    sent = desktop_notice(f"Bash(echo {STEERS}\nmore)")
    assert sent.startswith("\x1b]9;Bash(echo ")
    assert sent.endswith("more)\x07")
    assert all(each.isprintable() for each in sent[1:-1])

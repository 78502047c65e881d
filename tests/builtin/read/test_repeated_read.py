"""Reading the same thing again: said once, as long as it still stands in the conversation."""

from dataclasses import replace
from typing import Any

import pytest

from handrail.builtin.read.tool import Read
from handrail.builtin.services import ToolServices
from handrail.conversation.blocks import Text, ToolResult, ToolUse
from handrail.conversation.messages import AssistantMessage, Message, UserMessage
from handrail.tools.context import RunContext, ToolContext

LONG = "".join(f"line {number} of a file\n" for number in range(100))


class Conversation:
    """Calls of Read and their results, one after the other."""

    def __init__(self, ctx: ToolContext, services: ToolServices) -> None:
        self._ctx = ctx
        self._tool = Read(services)
        self.history: list[Message] = []

    def read(self, **given: Any) -> str:
        given = {"file_path": "f", **given}
        use = ToolUse(f"call-{len(self.history) // 2}", "Read", given)
        run: RunContext = replace(self._ctx.run, history=tuple(self.history))
        ctx = ToolContext(run, use, self._ctx.abort, self._ctx.progress, self._ctx.may_use)  # type: ignore[arg-type]  # not asked
        blocks = self._tool.result_blocks(self._tool.call_blocking(self._tool.parse(given), ctx))
        self.history += [AssistantMessage((use,)), UserMessage((ToolResult(use.id, blocks),))]
        [block] = blocks
        assert isinstance(block, Text)
        return block.text


@pytest.fixture
def talk(ctx: ToolContext, services: ToolServices) -> Conversation:
    (ctx.cwd / "f").write_text(LONG)
    return Conversation(ctx, services)


@pytest.mark.proves("N3")
def test_an_unchanged_file_is_pointed_at(talk: Conversation) -> None:
    first = talk.read()

    assert talk.read() == "f is unchanged since you read it: the result of call call-0 still holds."
    assert talk.read() == "f is unchanged since you read it: the result of call call-0 still holds."
    assert first.startswith("1\tline 0")


def test_another_part_of_it_is_read(talk: Conversation) -> None:
    talk.read()

    assert talk.read(offset=2).startswith("2\tline 1")
    assert "unchanged" in talk.read(offset=2)
    assert "unchanged" in talk.read()


def test_a_changed_file_is_read_again(ctx: ToolContext, talk: Conversation) -> None:
    talk.read()
    (ctx.cwd / "f").write_text(LONG.replace("line 7 ", "LINE 7 "))

    assert "LINE 7" in talk.read()
    (ctx.cwd / "f").write_text(LONG)
    assert "line 7 " in talk.read(), "the last thing shown was another text"


def test_a_touched_file_is_not_a_changed_one(ctx: ToolContext, talk: Conversation) -> None:
    talk.read()
    (ctx.cwd / "f").touch()

    assert "unchanged" in talk.read()


@pytest.mark.parametrize("what", ["gone", "replaced"])
def test_what_was_taken_out_of_the_conversation_is_read_again(talk: Conversation, what: str) -> None:
    talk.read()
    if what == "gone":
        talk.history.clear()
    else:
        talk.history[1] = UserMessage((ToolResult("call-0", (Text("[old result, see file]"),)),))

    assert talk.read().startswith("1\tline 0")


def test_a_short_file_is_simply_shown_again(ctx: ToolContext, talk: Conversation) -> None:
    (ctx.cwd / "f").write_text("short\n")

    assert [talk.read(), talk.read()] == ["1\tshort", "1\tshort"]

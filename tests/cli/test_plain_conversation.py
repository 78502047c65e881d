"""Questions of a conversation line by line."""

import io

import pytest

from handrail.cli.plain_conversation import PlainFront
from handrail.tui.interactive.dialog import DialogChoice, DialogQuestion, DialogReply
from handrail.tui.question import Keyboard
from handrail.tui.screen import Screen


class FastTypist(Keyboard, io.StringIO):
    """A terminal whose user types too early, and answers as soon as the hint is on the screen."""

    def __init__(self) -> None:
        io.StringIO.__init__(self)
        self.typed = ["2\n"]

    def write(self, text: str) -> int:
        if text.startswith("Type a number"):
            self.typed.append("1\n")
        return len(text)

    def discard(self) -> None:
        self.typed.clear()

    async def line(self) -> str | None:
        return self.typed.pop(0) if self.typed else None


@pytest.mark.anyio
async def test_an_answer_counts_from_the_moment_the_hint_is_shown() -> None:
    terminal = FastTypist()
    front = PlainFront(Screen(terminal, terminal, {}), terminal)
    choices = (DialogChoice("yes", "Yes"), DialogChoice("no", "No"))

    reply = await front.ask(DialogQuestion("May I?", choices, lambda _width, _rows: ()))

    assert reply == DialogReply("yes", "", ())

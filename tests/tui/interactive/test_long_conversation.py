"""A conversation that goes on for a day: what the terminal keeps of it has a bound."""

import gc
import os

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import DummyInput
from tests.tui.interactive.test_drawing import finished, queued

from handrail.conversation.blocks import Text
from handrail.conversation.stream import BlockEnd, BlockStart, Delta
from handrail.loop.events import BlockComplete, RunEnded
from handrail.loop.state import Move, Why
from handrail.tools.events import CallStarted
from handrail.tui.interactive.frames import FrameOutput, install
from handrail.tui.interactive.paint import NONE
from handrail.tui.interactive.transcript import TranscriptText
from handrail.tui.interactive.view import ConversationView

TURNS = 500
"""More than anything keeps: 400 blocks, 1,000 entries of the transcript."""


def test_what_is_kept_of_a_long_conversation_does_not_grow() -> None:
    with open(os.devnull, "w") as screen:  # noqa: PTH123
        output = FrameOutput(screen, lambda: Size(rows=24, columns=80))
        renderer = install(Application(output=output, input=DummyInput()), output)
        view = ConversationView(renderer.commit, lambda: 0.0, lambda: NONE)
        transcript = TranscriptText(lambda: "now")

        def converse(first: int) -> int:
            for number in range(first, first + TURNS):
                call, text = queued(number), Text(f"Answer {number} with *words*.")
                for event in (
                    BlockStart(0, "text"),
                    Delta(0, text.text),
                    BlockEnd(0, text),
                    BlockComplete("m", "model", text, 0),
                    call,
                    CallStarted(call.use, 0.0, call.cards),
                    finished(call),
                    RunEnded(Move.STOPPED, Why.COMPLETED, text=text.text),
                ):
                    view.on_event(event)
                    transcript.on_event(event)
                for _ in renderer.draw_waiting(80):
                    pass
                renderer.commit_rest()
            gc.collect()
            return len(gc.get_objects())

        before = converse(0)
        assert converse(TURNS) - before < TURNS
        assert f"Answer {2 * TURNS - 1}" in transcript.text

"""The answer of a running session while the model writes it, for pages that show the run."""

import asyncio

from handrail.conversation.stream import BlockEnd, BlockStart, Delta
from handrail.loop.events import AnswerDiscarded, LoopEvent, RequestSent, RunEnded
from handrail.session.live.questions import LiveQuestions

PAUSE = 0.03
"""Seconds between two pieces that are sent."""
MAX_TEXT = 200_000
"""Characters of one text that are shown while it comes; the page has it all when it is complete."""


class LiveText:
    """Sends what is new in a text that comes, in a few pieces a second, as long as a page is connected."""

    def __init__(self, live: LiveQuestions) -> None:
        self._live = live
        self._slot: int | None = None
        self._parts: list[str] = []
        self._size = self._sent = 0
        self._timer: asyncio.TimerHandle | None = None
        live.on_visit = self._begin_again

    def on_event(self, event: LoopEvent) -> None:
        """Take in an event of the run."""
        match event:
            case Delta(slot, text):
                if slot == self._slot and self._size < MAX_TEXT:
                    self._parts.append(text)
                    self._size += len(text)
                    self._send_soon()
            case BlockStart(slot=slot, kind="text"):
                self._clear()
                self._slot = slot
            case BlockEnd(slot=slot) if slot == self._slot:
                self._clear()
            case RequestSent() | AnswerDiscarded() | RunEnded():
                self._clear()
            case _:
                pass

    def _send_soon(self) -> None:
        if self._timer is None and self._live.has_visitors:
            self._timer = asyncio.get_running_loop().call_later(PAUSE, self._send)

    def _send(self) -> None:
        self._timer = None
        text = "".join(self._parts)
        self._parts = [text]
        self._live.publish({"writing": {"from": self._sent, "text": text[self._sent :]}})
        self._sent = len(text)

    def _begin_again(self) -> None:
        """A page has come, which knows nothing of the text yet."""
        self._sent = 0
        if self._size:
            self._send_soon()

    def _clear(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._sent:
            self._live.publish({"writing": {"from": 0, "text": ""}})
        self._slot, self._parts, self._size, self._sent = None, [], 0, 0

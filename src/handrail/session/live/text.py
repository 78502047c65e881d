"""The answers of a running session while its agents write them, for pages that show the run."""

import asyncio
from dataclasses import dataclass, field

from handrail.conversation.stream import BlockEnd, BlockStart, Delta
from handrail.loop.events import AnswerDiscarded, RequestSent, RunEnded
from handrail.session.live.questions import LiveQuestions
from handrail.tools.delegation import AgentNews

PAUSE = 0.03
"""Seconds between two pieces that are sent."""
MAX_TEXT = 200_000
"""Characters of one text that are shown while it comes; the page has it all when it is complete."""
MAIN = "main"


@dataclass(eq=False)
class ComingText:
    """A text of one agent, as far as it has come, and how much of it was sent."""

    slot: int
    parts: list[str] = field(default_factory=list)
    size: int = 0
    sent: int = 0

    def take_unsent(self) -> str:
        """What was not sent yet."""
        text = "".join(self.parts)
        self.parts = [text]
        start, self.sent = self.sent, len(text)
        return text[start:]


class LiveText:
    """Sends what is new in the texts that come, in a few pieces a second, as long as a page is connected."""

    def __init__(self, live: LiveQuestions) -> None:
        self._live = live
        self._texts: dict[str, ComingText] = {}
        self._timer: asyncio.TimerHandle | None = None
        live.on_visit = self._begin_again

    def on_news(self, news: AgentNews) -> None:
        """Take in an event of a sub-agent's run."""
        self.on_event(news.event, news.agent)

    def on_event(self, event: object, agent: str = MAIN) -> None:
        """Take in an event of the run of an agent."""
        text = self._texts.get(agent)
        match event:
            case Delta(slot, piece):
                if text is not None and slot == text.slot and text.size < MAX_TEXT:
                    text.parts.append(piece)
                    text.size += len(piece)
                    self._send_soon()
            case BlockStart(slot=slot, kind="text"):
                self._end(agent)
                self._texts[agent] = ComingText(slot)
            case BlockEnd(slot=slot):
                if text is not None and slot == text.slot:
                    self._end(agent)
            case RequestSent() | AnswerDiscarded() | RunEnded():
                self._end(agent)
            case _:
                pass

    def _send_soon(self) -> None:
        if self._timer is None and self._live.has_visitors:
            self._timer = asyncio.get_running_loop().call_later(PAUSE, self._send)

    def _send(self) -> None:
        self._timer = None
        for agent, text in self._texts.items():
            if text.sent < text.size:
                start = text.sent
                self._publish(agent, start, text.take_unsent())

    def _begin_again(self) -> None:
        """A page has come, which knows nothing of the texts yet."""
        for text in self._texts.values():
            text.sent = 0
        if any(text.size for text in self._texts.values()):
            self._send_soon()

    def _end(self, agent: str) -> None:
        text = self._texts.pop(agent, None)
        if text is not None and text.sent:
            self._publish(agent, 0, "")

    def _publish(self, agent: str, start: int, text: str) -> None:
        self._live.publish({"writing": {"agent": agent, "from": start, "text": text}})

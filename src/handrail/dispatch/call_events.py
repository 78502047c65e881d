"""What front ends learn about the calls of an answer while they run."""

import asyncio
import threading
from collections import deque

from handrail.dispatch.call_state import Call, CallState
from handrail.dispatch.cards import ToolCards
from handrail.dispatch.channel import Channel
from handrail.dispatch.threads import from_thread
from handrail.tools.context import Progress
from handrail.tools.events import CallEvent, CallFinished, CallProgress, CallQueued, CallStarted
from handrail.tools.outcome import Outcome

MAX_PROGRESS = 20
"""How many of the latest progress reports a card is drawn with."""


class CallEvents:
    """Puts events on a channel once a reader asked for it; before that nothing is made."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._channel: Channel[CallEvent] | None = None
        self._from_threads: deque[tuple[Call, Progress]] = deque()

    @property
    def channel(self) -> Channel[CallEvent]:
        """What happens from now on, for one reader."""
        if self._channel is None:
            self._channel = Channel()
        return self._channel

    def close(self) -> None:
        """Nothing more will happen."""
        if self._channel is not None:
            self._channel.close()

    def put_queued(self, call: Call) -> None:
        if self._channel is not None:
            self._channel.put(CallQueued(call.use, call.marks[0], ToolCards(call)))

    def put_started(self, call: Call) -> None:
        if self._channel is not None:
            self._channel.put(CallStarted(call.use, self._loop.time(), ToolCards(call), call.stops_on_submit))

    def put_progress(self, call: Call, progress: Progress) -> None:
        """Progress of a running call, from any thread."""
        if threading.get_ident() != self._thread:
            self._from_threads.append((call, progress))
            from_thread(self._loop, self.take_from_threads)
        elif call.state is CallState.EXECUTING:
            if call.on_progress is not None:
                call.on_progress(progress)
            if self._channel is not None:
                call.progress = (*call.progress[1 - MAX_PROGRESS :], progress)
                self._channel.put(CallProgress(call.use, progress, self._loop.time(), ToolCards(call), call.progress))

    def take_from_threads(self) -> None:
        """Put the progress that threads have reported. What they report before a call ends comes before its end."""
        while self._from_threads:
            self.put_progress(*self._from_threads.popleft())

    def put_finished(self, call: Call, outcome: Outcome) -> None:
        if self._channel is not None:
            self._channel.put(CallFinished(outcome, self._loop.time(), ToolCards(call), call.progress))

"""
The replaying transport: answers from a cassette, in the recorded chunks. Nothing here opens a socket.

Recordings of the same request are played in the order in which they were made. What counts as the same is said in
`match`. A request that was not recorded is an error, and no retry can help.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

from handrail.conversation.logger import get_logger
from handrail.errors import CassetteMissError, TransportError
from handrail.http.transport import HttpRequest
from handrail.providers.cassette.canonical import Canonical, canonical, renormalize
from handrail.providers.cassette.match import changes, check_match, likeness, match_key
from handrail.providers.cassette.miss import miss_text
from handrail.providers.cassette.normalize import Normalizer
from handrail.providers.cassette.tape import Cassette, Recording
from handrail.providers.client import SystemClock

log = get_logger(__name__)


def log_warning(text: str) -> None:
    """Write a warning to the log."""
    log.warning("%s", text)


class Replayer:
    """
    Plays a cassette. `match` says how much of a request must be as it was recorded; `on_warning` is told what else
    has changed, each thing once. `speed` 1 keeps the recorded pauses, 2 halves them, 0 leaves them out.

    `in_order` plays the recordings one after the other, whatever is asked: for demonstrations, not for tests.
    """

    is_tape = True

    def __init__(
        self,
        cassette: Cassette,
        normalizer: Normalizer,
        *,
        match: str = "conversation",
        on_warning: Callable[[str], None] = log_warning,
        speed: float = 0.0,
        in_order: bool = False,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        recordings = tuple(replace(each, request=renormalize(each.request, normalizer)) for each in cassette.recordings)
        self.cassette = replace(cassette, recordings=recordings)
        self.normalizer = normalizer
        self.misses: list[str] = []
        self.speed = speed
        self.sleep = sleep
        self._in_order = in_order
        self._match = check_match(match)
        self._on_warning = on_warning
        self._changes: set[str] = set()
        self._played: set[int] = set()
        self._waiting: dict[str, list[Recording]] = {}
        for recording in recordings:
            self._waiting.setdefault(self._key(recording.request), []).append(recording)

    async def send(self, outgoing: HttpRequest) -> "ReplayedReply":
        """The recorded answer. Raises CassetteMissError without one, TransportError if the request got none then."""
        asked = canonical(outgoing, self.normalizer)
        waiting = self._waiting.get(self._key(asked))
        if not waiting:
            self.misses.append(miss_text(asked, self.cassette, self._played, self._match))
            raise CassetteMissError(self.misses[-1])
        recording = self._take(waiting, asked)
        self._played.add(recording.number)
        if recording.end == "failed":
            raise TransportError(recording.failure, recording.why)
        return ReplayedReply(self, recording)

    def _key(self, request: Canonical) -> str:
        return "" if self._in_order else match_key(request, self._match)

    def _take(self, waiting: list[Recording], asked: Canonical) -> Recording:
        """The recording that is most alike, the first of equals; what differs is told."""
        if self._in_order or waiting[0].request.key == asked.key:
            return waiting.pop(0)
        best = max(range(len(waiting)), key=lambda at: likeness(waiting[at].request, asked))
        recording = waiting.pop(best)
        news = [each for each in changes(recording.request, asked) if each not in self._changes]
        if news:
            self._changes.update(news)
            self._on_warning(
                f"Since the cassette {self.cassette.path} was recorded, this has changed: {'; '.join(news)}. The "
                "recorded answers are used anyway. Record it again, or refuse such changes with --replay-match exact "
                "(in code: match='exact')."
            )
        return recording

    def report_unplayed(self) -> None:
        """Warn if answers are left: what was replayed asked for less than what was recorded."""
        left, whole = len(self.cassette.recordings) - len(self._played), len(self.cassette.recordings)
        if left and not self.misses:
            self._on_warning(
                f"{left} of {whole} recorded answers in {self.cassette.path} were not asked for: this run ended "
                "earlier than the recorded one. Record it again if that is meant."
            )

    async def aclose(self) -> None:
        """There is nothing to close."""


class ReplayedReply:
    """A recorded answer."""

    def __init__(self, player: Replayer, recording: Recording) -> None:
        self._player = player
        self._recording = recording
        self._chunks = iter(recording.chunks)
        self.status = recording.status
        self.headers: Mapping[str, str] = recording.headers

    async def read(self) -> bytes:
        """The next recorded chunk, with the paths of this machine."""
        chunk = next(self._chunks, None)
        player = self._player
        # even without a pause other tasks get a turn, as on a real network
        await player.sleep((chunk.after or 0.0) / player.speed if chunk and player.speed > 0 else 0.0)
        if chunk is not None:
            return player.normalizer.restore(chunk.data)
        if self._recording.end != "whole":
            raise TransportError("cut", self._recording.why or "the recording was broken off here")
        return b""

    def abort(self) -> None:
        """Nothing to drop."""

    def leave(self) -> None:
        """Nothing to keep."""


class ReplayClock(SystemClock):
    """Does not wait between attempts."""

    async def sleep(self, seconds: float) -> None:
        """Go on at once."""
        await asyncio.sleep(0)

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        """Recorded answers come in time."""
        return asyncio.timeout(None)

"""What the `cassette` fixture gives a test."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from handrail.http.client import HttpClient
from handrail.http.transport import HttpRequest, Response
from handrail.providers.cassette.opening import open_replayed_provider, open_replayer, session_normalizer
from handrail.providers.cassette.record import Recorder
from handrail.providers.cassette.replay import Replayer
from handrail.providers.choose import ModelOptions, choose, open_provider
from handrail.providers.client import Provider

DEFAULT = "conversation"


class TestCassette:
    """
    A transport that records to, or replays from, the file of one test.

    `recording` says which. `path` and `flags` are for programs that the test starts.
    """

    __test__ = False  # it is not a test, whatever its name says
    is_tape = True

    def __init__(
        self,
        path: Path,
        *,
        recording: bool,
        places: Mapping[str, Path],
        secrets: Iterable[str] = (),
        volatile: Iterable[str] = (),
        match: str = DEFAULT,
    ) -> None:
        normalizer = session_normalizer(Path.cwd(), os.environ, secrets=secrets, volatile=volatile, places=places)
        self.path = path
        self.recording = recording
        self.changes: list[str] = []
        """What has changed since the recording, as far as that is not compared."""
        self._match = match
        self._tape: Recorder | Replayer
        if recording:
            path.parent.mkdir(parents=True, exist_ok=True)
            # a kept connection could outlive the event loop of its test
            self._tape = Recorder(HttpClient(os.environ, keep_alive=False), path, normalizer)
        else:
            self._tape = open_replayer(path, normalizer, match=match, on_warning=self.changes.append)

    @property
    def flags(self) -> tuple[str, ...]:
        """For a `handrail` that the test starts: record to, or replay from, the same file."""
        if self.recording:
            return ("--record", str(self.path))
        return ("--replay", str(self.path), *(("--replay-match", self._match) if self._match != DEFAULT else ()))

    @property
    def misses(self) -> list[str]:
        """Requests that were not recorded, each with what differs."""
        return self._tape.misses if isinstance(self._tape, Replayer) else []

    def provider(self, model: str = "", *, provider: str = "", base_url: str = "", api_key: str = "") -> Provider:
        """
        A provider that uses this cassette. In a replay, arguments that are left out are as recorded.

        Raises:
            ProviderSetupError: a real model is to be recorded, and its key is missing.
        """
        options = ModelOptions(provider, model, base_url, api_key)
        if isinstance(self._tape, Replayer):
            return open_replayed_provider(self._tape, options)
        return open_provider(choose(options, os.environ), os.environ, self)

    async def send(self, outgoing: HttpRequest) -> Response:
        """The answer, recorded or replayed."""
        return await self._tape.send(outgoing)

    async def aclose(self) -> None:
        """Several models may share a cassette, so none of them ends it."""

    def end(self, *, keep: bool) -> None:
        """Keep the recording; without `keep` the old one stays."""
        if isinstance(self._tape, Recorder):
            if keep:
                self._tape.finish()
            else:
                self._tape.discard()

"""What `--debug` and `--verbose` tell on standard error or in a file: requests, the cache prefix, calls, money."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TextIO

from handrail.conversation.plain import plain
from handrail.errors import HandrailError
from handrail.loop.events import Compacted, LoopEvent, MessageComplete, Notice, RequestSent, RunEnded
from handrail.tools.events import CallFinished, CallStarted


class DebugPrinter:
    """
    One line per thing worth knowing.

    With `everything`, also about requests and whether their prefix changed; with `notices`, what else a person should
    know. `clean` takes out what must not be written.
    """

    def __init__(
        self, out: TextIO, *, everything: bool, notices: bool = True, clean: Callable[[str], str] = str
    ) -> None:
        self._out = out
        self._clean = clean
        self._everything = everything
        self._notices = notices
        self._prefix = ""

    def hear(self, event: LoopEvent) -> None:
        text = self._line(event)
        if text:
            self._out.write(f"handrail: {plain(self._clean(text))}\n")
            self._out.flush()

    def _line(self, event: LoopEvent) -> str:
        match event:
            case RequestSent() if self._everything:
                return self._request(event)
            case MessageComplete(usage=usage) if self._everything:
                return (
                    f"answer {event.turn}: {usage.fresh_input} tokens in, {usage.whole_output} out, "
                    f"{usage.cache_read_tokens or 0} from the cache"
                )
            case CallStarted(use):
                return f"{use.name} started ({use.id})"
            case CallFinished(outcome):
                seconds = outcome.timings.ran
                return f"{outcome.use.name} {outcome.status.value} after {seconds * 1000:.1f} ms ({outcome.use.id})"
            case Compacted():
                return f"the history was shortened ({event.kind}): {event.note}"
            case Notice() if self._notices:
                return event.text
            case RunEnded():
                cost = "unknown" if event.dollars is None else f"{event.dollars:.4f} USD"
                return f"ended: {event.why.value} after {event.turns} turns and {event.seconds:.2f} s, cost {cost}"
            case _:
                return ""

    def _request(self, event: RequestSent) -> str:
        prefix, before = event.prefix[:12], self._prefix
        self._prefix = prefix
        state = "is new" if not before else "is unchanged" if prefix == before else f"CHANGED from {before}"
        return (
            f"request {event.turn}.{event.attempt} to {event.request.model}: {event.messages} messages, "
            f"{len(event.request.tools)} tools, prefix {prefix} {state}, chain {event.chain.id[:8]}/{event.chain.depth}"
        )


def open_debug_file(name: str | None) -> AbstractContextManager[TextIO | None]:
    """
    A file to add lines to, which only its owner may read; nothing without a name.

    Raises:
        HandrailError: it cannot be written, or is not a plain file.
    """
    if name is None:
        return nullcontext()
    try:
        return open(name, "a", encoding="utf-8", errors="replace", opener=_owner_only)
    except OSError as error:
        raise HandrailError(f"--debug-file: {name!r} cannot be written: {error.strerror}.") from error


def _owner_only(path: str, flags: int) -> int:
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    os.fchmod(descriptor, 0o600)  # it may have been there before
    return descriptor

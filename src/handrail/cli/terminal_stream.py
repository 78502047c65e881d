"""Standard output and error for a terminal: control characters in foreign text are shown, never sent."""

import io
import sys

from handrail.conversation.plain import without_steering


class TerminalStream(io.TextIOWrapper):
    """A stream to a terminal. Colours and cursor moves are ours and pass, C1 and bidi characters do not."""

    def write(self, text: str, /) -> int:
        super().write(without_steering(text))
        return len(text)


def guard_terminal(stream: io.TextIOWrapper) -> io.TextIOWrapper:
    """The stream with the guard in front of it."""
    encoding, buffered = stream.encoding, stream.line_buffering
    stream.flush()
    return TerminalStream(stream.detach(), encoding, "replace", line_buffering=buffered)


def guard_terminals() -> None:
    """Put the guard in front of the standard streams that are terminals."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper) and not isinstance(stream, TerminalStream) and stream.isatty():
            guarded = guard_terminal(stream)
            if getattr(sys, f"__{name}__") is stream:
                setattr(sys, f"__{name}__", guarded)  # it is asked for the width of the terminal
            setattr(sys, name, guarded)

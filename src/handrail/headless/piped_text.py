"""Text for a pipe or a file: printers write it at once, and it leaves as fast as its reader takes it."""

import io
from typing import Self, TextIO

from handrail.stdio.streams import FileOut


class PipedText(io.StringIO):
    """Collects what printers write; `drain` passes it on line by line, without holding up the event loop."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self.descriptor = descriptor
        self._out = FileOut(descriptor)

    @classmethod
    def of(cls, stream: TextIO) -> Self | None:
        """For this stream; None if it is a terminal, or not a real file."""
        try:
            return None if stream.isatty() else cls(stream.fileno())
        except OSError:
            return None

    async def drain(self) -> None:
        """Write what was collected; raises ClosedError if the reader is gone."""
        text = self.getvalue()
        if text:
            self.seek(0)
            self.truncate()
            for line in text.encode("utf-8", "replace").splitlines(keepends=True):
                await self._out.write(line)

    def hurry(self) -> None:
        """The run is to end: a reader that takes nothing is given up soon."""
        self._out.hurry()

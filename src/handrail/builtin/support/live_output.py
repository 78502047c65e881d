"""Captures the output of a running program in a file and reports progress."""

import asyncio
import os
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from handrail.errors import ToolError
from handrail.files.private_folder import make_private_folder
from handrail.lazy import lazy
from handrail.records import record
from handrail.tools.context import Progress, ToolContext

if TYPE_CHECKING:
    from handrail.builtin.support import command_output
else:
    command_output = lazy("handrail.builtin.support.command_output")  # what a command needs that has said something

Result = TypeVar("Result")

PROGRESS_SECONDS = 0.1
PROGRESS_BYTES = 8_192
SHOWN_WHEN_STOPPED = 8_000
"""Characters of the output of a stopped program; the rest stays in its file."""


@record
class ShellProgress(Progress):
    """The latest output of a running command; `size` is that of all output."""

    text: str = ""
    size: int = 0


class OutputCapture:
    """The file that gets the whole output; `close` removes it unless it is wanted."""

    def __init__(self, folder: Path) -> None:
        try:
            self.path = make_private_folder(folder) / f"{os.urandom(8).hex()}.txt"
            self.fd = open_store(self.path)
        except OSError as error:
            raise ToolError(
                f"Nothing was run: output cannot be kept in {folder}: {error.strerror}. Ask the user to make room "
                "there, or to "
                "set HANDRAIL_STATE_DIR to another folder."
            ) from error
        self.wanted = False

    def leave(self, ctx: ToolContext) -> None:
        """Leave what the program has said by now, because the call is about to be stopped."""
        with suppress(OSError):  # what is stopped is stopped, with or without its output
            shown = command_output.read_output(
                self.path, os.fstat(self.fd).st_size, SHOWN_WHEN_STOPPED, SHOWN_WHEN_STOPPED
            )
            self.wanted = shown.cut
            notice = f"{shown.notice(str(self.path), ctx.options.tools())}\n" if shown.cut else ""
            ctx.leave(notice + shown.text.rstrip("\n"))

    def close(self) -> None:
        os.close(self.fd)
        if not self.wanted:
            self.path.unlink()


def open_store(path: Path) -> int:
    """Create a private file for the output."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)


async def run_with_progress(work: Coroutine[Any, Any, Result], store: int, ctx: ToolContext) -> Result:
    """Await the work and report what is written to the store as progress."""
    ended = asyncio.ensure_future(work)
    reported = 0
    try:
        while not (await asyncio.wait({ended}, timeout=PROGRESS_SECONDS))[0]:
            size = os.fstat(store).st_size
            if size > reported:
                start = max(reported, size - PROGRESS_BYTES)
                text = command_output.readable(os.pread(store, size - start, start).decode("utf-8", "replace"))
                ctx.progress(ShellProgress(text.rstrip("\n").rpartition("\n")[2], None, text, size))
                reported = size
        return ended.result()
    finally:
        if not ended.done():
            ended.cancel()
            await asyncio.wait({ended})  # it still uses what the caller is about to close

"""
Writes the output of a command to a file, up to a quota.

The reaper imports this and has to start fast, so only the cheapest modules are imported here.
"""

import os
import sys
from fcntl import fcntl

PIPE, CHUNK = 1 << 20, 1 << 18
"""Larger pieces cost more than they save: each is memory that is new to the process."""
F_SETPIPE_SZ = 1031


class OutputFile:
    """A file that gets what comes out of a pipe, up to a number of bytes. The rest is counted and dropped."""

    def __init__(self, file: int, quota: int) -> None:
        self.file = file
        self.room = quota
        self.pipe, self.end = os.pipe()
        os.set_blocking(self.pipe, False)
        if sys.platform == "linux":
            try:  # noqa: SIM105  # contextlib is slow to import
                fcntl(self.pipe, F_SETPIPE_SZ, PIPE)
            except PermissionError:
                pass  # the user has many large pipes already
        self.stored = self.lost = self.trouble = 0

    @property
    def full(self) -> bool:
        return not self.room

    def take(self) -> bool:
        """Move what is there now. False = there will never be more."""
        try:
            if self.full or self.trouble:
                count = len(os.read(self.pipe, CHUNK))
                self.lost += count
                return count > 0
            count = self._copy(min(CHUNK, self.room))
        except BlockingIOError:
            return True
        self.stored += count
        self.room -= count
        return count > 0 or bool(self.trouble)

    def _copy(self, most: int) -> int:
        """Copy through our own memory: splice from a pipe to a file takes longer."""
        data = os.read(self.pipe, most)
        done = 0
        try:
            while done < len(data):
                done += os.write(self.file, data[done:])
        except OSError as error:
            self.trouble = error.errno or 0
            self.lost += len(data) - done
        return done

    def drain(self) -> None:
        """Take what is still in the pipe; no process writes to it any more."""
        while True:
            before = self.stored + self.lost
            if not self.take() or self.stored + self.lost == before:
                return

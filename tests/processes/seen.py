"""Commands whose processes write down their ids, and a look at which of them still live."""

import os
import select
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Found = TypeVar("Found")

STAY = "echo $$ >> {pids}; exec sleep 1000"
"""For `sh -c`: write the own id down and stay."""


def stay(folder: Path) -> str:
    return STAY.format(pids=folder / "pids")


def noted(folder: Path) -> list[int]:
    return [int(line) for line in (folder / "pids").read_text().split()]


def alive(pid: int) -> bool:
    """A process that is dead but not yet fetched by its parent does nothing any more."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):  # the second if it ends between open and read
        return False


def wait_for_end(pid: int, seconds: float = 20) -> bool:
    """Whether it ends in time; returns the moment it does."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    ready, _, _ = select.select([fd], [], [], seconds)
    os.close(fd)
    return bool(ready)


def wait_for(look: Callable[[], Found], seconds: float = 20) -> Found:
    """What is found as soon as there is something, or nothing when the time is over."""
    until = time.monotonic() + seconds
    while not (found := look()) and time.monotonic() < until:
        time.sleep(0.002)
    return found


def read_pipe(path: Path, seconds: float = 60) -> str:
    """What the first writer of a named pipe writes. To open it as usual would wait for ever if none comes."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        ready, _, _ = select.select([fd], [], [], seconds)
        assert ready, f"nothing was written to {path}"
        os.set_blocking(fd, True)
        with os.fdopen(os.dup(fd)) as file:
            return file.read()
    finally:
        os.close(fd)

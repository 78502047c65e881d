"""
The protocol between handrail and its reapers: a byte and descriptors on the control socket, then messages.

The reaper imports this and has to start fast, so only the cheapest modules are imported here.
"""

import marshal
import os
import sys
from _socket import SCM_RIGHTS, SOL_SOCKET, socket
from errno import EMFILE
from fcntl import F_DUPFD_CLOEXEC, fcntl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMMAND, SWEEP = b"c", b"s"
MAX_FDS = 32
HIGH = 64
"""Descriptors are moved up here when they arrive, so that any low number is free for the command."""
CHUNK = 1 << 20


def receive(control: socket) -> tuple[bytes, list[int]]:
    """One job and the descriptors that came with it, none of which the command inherits by accident."""
    kind, data, _, _ = control.recvmsg(1, 4 * MAX_FDS + 64)
    raw = b"".join(part for level, sort, part in data if (level, sort) == (SOL_SOCKET, SCM_RIGHTS))
    fds = [int.from_bytes(raw[at : at + 4], sys.byteorder) for at in range(0, len(raw) - 3, 4)]
    try:
        high = [fcntl(fd, F_DUPFD_CLOEXEC, HIGH) for fd in fds]
    except OSError:  # the limit of open files is too low
        socket(fileno=fds[0]).sendall(message("failed", EMFILE, b""))
        raise
    for fd in fds:
        os.close(fd)
    control.detach()
    return kind, high


def whole(call: socket) -> bytes:
    """A message with its length before it."""
    size = int.from_bytes(exactly(call, 8), "big")
    return exactly(call, size)


def exactly(call: socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        more = call.recv(min(size - len(data), CHUNK))
        if not more:
            raise EOFError
        data += more
    return bytes(data)


def message(*parts: "Any") -> bytes:
    """A message for the other side, which runs the same Python."""
    data = marshal.dumps(parts, 2)
    return len(data).to_bytes(8, "big") + data

"""Which process is at the other end of a local socket: one of the user, and none that this process started."""

import os
import socket
import struct
from pathlib import Path


def peer_of(peer: socket.socket) -> tuple[int, int] | None:
    """The process and the user at the other end, if the system can say."""
    if not hasattr(socket, "SO_PEERCRED"):
        return None
    size = struct.calcsize("3i")
    pid, uid, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return pid, uid


def is_trusted_peer(peer: socket.socket, *, also_own: bool = False) -> bool:
    """Whether the process at the other end is its owner's, and none that this process started; `also_own`: or this."""
    found = peer_of(peer)
    if found is None:
        return True  # the mode of the folder and the socket decide
    pid, uid = found
    return uid == os.geteuid() and ((also_own and pid == os.getpid()) or not is_descendant(pid, os.getpid()))


def is_descendant(pid: int, ancestor: int) -> bool:
    """Whether a process is, or comes from, another one. One that cannot be looked up is taken for one."""
    if pid <= 0:
        return True
    while pid > 1:
        if pid == ancestor:
            return True
        try:
            stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
        except OSError:
            return True
        pid = int(stat.rpartition(")")[2].split()[1])
    return pid == ancestor

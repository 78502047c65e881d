"""Sockets in a private folder, also where its path is too long for a socket's address."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LONGEST = 100
"""Bytes of a path that fit into the address of a socket everywhere."""


@contextmanager
def socket_address(folder: Path, name: str) -> Iterator[str]:
    """The address of a socket in a folder; a long path is replaced by that of the open folder, where there is one."""
    path = str(folder / name)
    if len(os.fsencode(path)) <= LONGEST or not Path("/proc/self/fd").is_dir():
        yield path
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{name}"
    finally:
        os.close(descriptor)


def bind_socket(folder: Path, name: str) -> socket.socket:
    """
    A listening socket that only its owner can connect to. One that was left there is replaced.

    It gets its name when it listens: a page takes one that refuses it for what a killed session left, and removes it.
    """
    draft = folder / f"{name}.{os.getpid()}"
    draft.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        with socket_address(folder, draft.name) as address:
            listener.bind(address)
        listener.listen(16)
        draft.replace(folder / name)
    except OSError:
        listener.close()
        draft.unlink(missing_ok=True)
        raise
    finally:
        os.umask(mask)
    return listener


def connect_socket(folder: Path, name: str) -> socket.socket:
    """A connection to a socket in a folder; OSError if no process listens there."""
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with socket_address(folder, name) as address:
            peer.connect(address)
    except OSError:
        peer.close()
        raise
    peer.setblocking(False)
    return peer

"""Recognises placeholders. A module of its own, because every start reads settings and needs nothing else of them."""

import stat

FOLDER_MODE, FILE_MODE = 0o1755, 0o1444
"""With a bit that is never set on a file, nor on an empty folder that others cannot write to."""


def stands_in(mode: int) -> bool:
    """Whether what has this mode only keeps a name occupied; to a reader of settings it is absent."""
    if stat.S_ISDIR(mode):
        return bool(mode & stat.S_ISVTX) and not mode & 0o022  # a umask may have taken more away
    return stat.S_ISREG(mode) and bool(mode & stat.S_ISVTX) and not mode & 0o222

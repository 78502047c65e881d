"""How the empty folders and files are known that keep a name occupied while sandboxed commands run."""

import stat

FOLDER_MODE, FILE_MODE = 0o1755, 0o1444
"""With a bit that nobody sets on a file, or on an empty folder that is not for everybody."""


def stands_in(mode: int) -> bool:
    """Whether what has this mode only keeps a name occupied; whoever looks for settings finds nothing there."""
    if stat.S_ISDIR(mode):
        return bool(mode & stat.S_ISVTX) and not mode & 0o022  # a umask may have taken more away
    return stat.S_ISREG(mode) and bool(mode & stat.S_ISVTX) and not mode & 0o222

"""The folders where programs are searched (PATH), seen from the folders where the agent works."""

import os
from collections.abc import Sequence

from handrail.files.paths import O_PATH, path_of

DEFAULT = "/usr/local/bin:/usr/bin:/bin"


def absolute_folders(path: str) -> list[str]:
    return [entry for entry in path.split(":") if entry.startswith("/")]


def lies_in(path: str, folders: Sequence[str]) -> bool:
    """Whether a path is or lies in one of the folders, as it is spelled or with links followed."""
    spellings = f"{os.path.normpath(path)}/", f"{real_path(path)}/"
    for folder in folders:
        below = f"{folder.rstrip('/')}/"
        if spellings[0].startswith(below) or spellings[1].startswith(below):
            return True
    return False


def real_path(path: str) -> str:
    """The path with links followed. Linux says it of what it opens; `realpath` asks about each folder on the way."""
    if not O_PATH:
        return os.path.realpath(path)
    try:
        file = os.open(path, O_PATH | os.O_CLOEXEC)
    except OSError:
        return os.path.realpath(path)  # nothing is there yet
    try:
        real = path_of(file)
    finally:
        os.close(file)
    return real if real.startswith("/") else os.path.realpath(path)


def program_folders(path: str, folders: Sequence[str]) -> tuple[str, ...]:
    """The folders of a search path that lie inside one of these folders, with links followed."""
    inside = dict.fromkeys(real_path(entry) for entry in absolute_folders(path) if lies_in(entry, folders))
    # a folder that is or holds one of them holds more than programs
    return tuple(entry for entry in inside if not any(f"{top}/".startswith(f"{entry}/") for top in folders))


def path_outside(path: str, folders: Sequence[str]) -> str:
    """The search path without relative folders, and without those that are or lie in one of these folders."""
    return ":".join(entry for entry in absolute_folders(path) if not lies_in(entry, folders)) or DEFAULT


def find_program(name: str, path: str) -> str:
    """Where a search path has a program; empty if nowhere."""
    for entry in absolute_folders(path):
        place = f"{entry}{name}" if entry.endswith("/") else f"{entry}/{name}"
        if os.access(place, os.X_OK) and not os.path.isdir(place):  # noqa: PTH112
            return place
    return ""

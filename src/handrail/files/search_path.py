"""The folders where programs are searched (PATH), seen from the folders where the agent works."""

import os
from collections.abc import Sequence

DEFAULT = "/usr/local/bin:/usr/bin:/bin"


def absolute_folders(path: str) -> list[str]:
    return [entry for entry in path.split(":") if entry.startswith("/")]


def lies_in(path: str, folders: Sequence[str]) -> bool:
    """Whether a path is or lies in one of the folders, as it is spelled or with links followed."""
    spellings = {os.path.normpath(path), os.path.realpath(path)}
    return any(f"{each}/".startswith(f"{folder.rstrip('/')}/") for each in spellings for folder in folders)


def program_folders(path: str, folders: Sequence[str]) -> tuple[str, ...]:
    """The folders of a search path that lie inside one of these folders, with links followed."""
    inside = dict.fromkeys(os.path.realpath(entry) for entry in absolute_folders(path) if lies_in(entry, folders))
    # a folder that is or holds one of them holds more than programs
    return tuple(entry for entry in inside if not any(f"{top}/".startswith(f"{entry}/") for top in folders))


def path_outside(path: str, folders: Sequence[str]) -> str:
    """The search path without relative folders, and without those that are or lie in one of these folders."""
    return ":".join(entry for entry in absolute_folders(path) if not lies_in(entry, folders)) or DEFAULT


def find_program(name: str, path: str) -> str:
    """Where a search path has a program; empty if nowhere."""
    places = (os.path.join(entry, name) for entry in absolute_folders(path))  # noqa: PTH118
    return next((place for place in places if os.access(place, os.X_OK) and not os.path.isdir(place)), "")  # noqa: PTH112

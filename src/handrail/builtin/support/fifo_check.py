"""Finds ignore files that are pipes: ripgrep opens them and waits for ever."""

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

IGNORE_FILES = (".gitignore", ".ignore", ".rgignore", ".git/info/exclude")
MAX_FOLDERS = 20_000


def odd_ignore_file(folder: str, env: Mapping[str, str]) -> str:
    """An ignore file of the folder that is not a regular file; empty if there is none."""
    return next(filter(_is_odd, _ignore_files(folder, env)), "")


def _ignore_files(folder: str, env: Mapping[str, str]) -> Iterator[str]:
    """The ignore files of the user, of the folders above, and of up to `MAX_FOLDERS` folders below."""
    home = env.get("HOME", "")
    settings = env.get("XDG_CONFIG_HOME") or f"{home}/.config"
    yield from (f"{home}/.gitconfig", f"{settings}/git/config", f"{settings}/git/ignore")
    for above in (folder, *map(str, Path(folder).parents)):
        yield from (f"{above.rstrip('/')}/{name}" for name in IGNORE_FILES)
    for _, (below, _, _) in zip(range(MAX_FOLDERS), os.walk(folder), strict=False):
        yield from (f"{below}/{name}" for name in IGNORE_FILES)


def _is_odd(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116  # links are followed, as ripgrep does
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)

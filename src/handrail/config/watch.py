"""Detects changed settings files by comparing their stamps on demand, without a thread."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

from handrail.config.flags import SettingsFlags
from handrail.config.places import DROP_INS, MANAGED, MANAGED_SERVERS, SettingsPlaces
from handrail.processes.sandbox.placeholder_marks import stands_in

Stamp: TypeAlias = tuple[int, int, int] | None
BROKEN = (-1, -1, -1)


class SettingsWatch:
    """The stamps of all files that settings come from, as of the last look."""

    def __init__(self, places: SettingsPlaces, flags: SettingsFlags) -> None:
        self._files = tuple(dict.fromkeys((source, str(file)) for source, file in _files(places, flags)))
        self._remember(self._look())

    def follow(self, files: Iterable[str]) -> None:
        """Watch these project files too, which settings run: a change of them is a matter of trust."""
        new = [("trust", file) for file in dict.fromkeys(files)]
        self._files += tuple(new)
        self._remember([*self._stamps, *(stamp(file) for _, file in new)])

    @property
    def empty(self) -> bool:
        """Whether there was no file at all."""
        return not any(self._stamps)

    def changes(self) -> dict[str, str]:
        """The sources whose files changed since the last look, each with the first of these files."""
        if self._is_as_before():
            return {}
        now = self._look()
        found: dict[str, str] = {}
        for (source, file), old, new in zip(self._files, self._stamps, now, strict=True):
            if old != new:
                found.setdefault(source, file)
        self._remember(now)
        return found

    def _remember(self, stamps: list[Stamp]) -> None:
        """Keep the stamps, and what to look at to see that they still hold: of a missing folder not each file in it."""
        files: list[str] = []
        known: list[Stamp] = []
        missing: dict[str, None] = {}
        for (_, file), old in zip(self._files, stamps, strict=True):
            if old is not None or _exists(file):
                files.append(file)
                known.append(old)
            else:
                folder = os.path.dirname(file)  # noqa: PTH120  # at every start
                missing[file if _exists(folder) else folder] = None
        self._stamps, self._places = stamps, (files, known, tuple(missing))

    def _is_as_before(self) -> bool:
        files, stamps, missing = self._places
        for path in missing:
            if os.access(path, os.F_OK):
                return False
        return [stamp(file) for file in files] == stamps

    def _look(self) -> list[Stamp]:
        return [stamp(file) for _, file in self._files]


def _files(places: SettingsPlaces, flags: SettingsFlags) -> Iterable[tuple[str, Path]]:
    for folder in places.policy:
        yield "policy", folder / MANAGED
        yield "policy", folder / DROP_INS
    yield from (("policy", file.path) for file in places.policy_files())
    yield from ((file.source, file.path) for file in places.files(flags.sources))
    for folder in places.policy:
        yield "policy", folder / MANAGED_SERVERS
    yield from (("project", Path(folder, ".mcp.json")) for folder in places.folders)
    yield "user", places.own_servers
    yield from (("trust", file) for file in places.trust_files)


def _exists(path: str) -> bool:
    return os.access(path, os.F_OK)  # a failing `stat` raises, which takes twice as long


def stamp(file: str | Path) -> Stamp:
    """What changes with the file; None if there is none. One that cannot be looked at is there."""
    try:
        status = os.stat(file)  # noqa: PTH116  # runs before every call
    except (FileNotFoundError, NotADirectoryError):
        return BROKEN if dead_link(os.fspath(file)) else None
    except OSError:
        return BROKEN
    return None if stands_in(status.st_mode) else (status.st_mtime_ns, status.st_size, status.st_ino)


def dead_link(file: str) -> str:
    """The file, or its folder, if that is a link to nothing; else empty."""
    folder = os.path.dirname(file)  # noqa: PTH120  # at every start
    return next((path for path in (file, folder) if os.path.islink(path) and not _exists(path)), "")  # noqa: PTH114

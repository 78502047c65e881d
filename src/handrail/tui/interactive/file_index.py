"""The files of a project for completion: listed once in the background, found by parts of their names."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence

CHUNK = 8_000
"""So many paths are looked at before keys get their turn."""
MAX_FOUND = 20


class FileIndex:
    """Finds paths. `list_files` gives all of them, relative to the project."""

    def __init__(self, list_files: Callable[[], Awaitable[Sequence[str]]]) -> None:
        self._list_files = list_files
        self._paths: list[str] = []
        self._lowered: list[str] = []
        self._loading: asyncio.Task[None] | None = None
        self._last: tuple[str, list[int]] = ("", [])

    def refresh(self) -> None:
        """List the files anew, in the background."""
        if self._loading is None or self._loading.done():
            self._loading = asyncio.get_running_loop().create_task(self._load())

    async def _load(self) -> None:
        paths = list(await self._list_files())
        self._paths, self._lowered = paths, [path.lower() for path in paths]
        self._last = ("", [])

    async def search(self, query: str) -> list[str]:
        """The best paths for what was typed: those whose name begins with it, hold it, or hold its letters in order."""
        if self._loading is None:
            self.refresh()
        if self._loading is not None and not self._paths:
            await asyncio.wait((self._loading,))
        wanted = query.lower()
        if not wanted:
            return self._paths[:MAX_FOUND]
        before, hits = self._last
        candidates: Sequence[int] = hits if before and wanted.startswith(before) else range(len(self._paths))
        found: list[int] = []
        for chunk in _chunks(candidates):
            found += [at for at in chunk if wanted in self._lowered[at]]
            await asyncio.sleep(0)
        if len(found) < MAX_FOUND:
            pattern = re.compile(".*?".join(map(re.escape, wanted)))
            known = set(found)
            for chunk in _chunks(candidates):
                found += [at for at in chunk if at not in known and pattern.search(self._lowered[at])]
                await asyncio.sleep(0)
            self._last = (wanted, found)
        else:
            self._last = ("", [])
        best = sorted(found, key=lambda at: _rank(self._lowered[at], wanted))[:MAX_FOUND]
        return [self._paths[at] for at in best]


def _chunks(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(numbers), CHUNK):
        yield numbers[start : start + CHUNK]


def _rank(path: str, wanted: str) -> tuple[int, int, str]:
    name = path.rpartition("/")[2]
    place = 0 if name.startswith(wanted) else 1 if wanted in name else 2 if wanted in path else 3
    return place, len(path), path

"""The files of a project for completion: listed once in the background, found by parts of their names."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence

CHUNK = 4_000
"""So many paths are looked at before keys get their turn."""
MAX_FOUND = 20
MAX_HITS = 2_000
"""With so many, the next letter will tell; the rest is not looked at."""


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
        found, is_whole = await self._matching(candidates, lambda path: wanted in path)
        if len(found) < MAX_FOUND:
            is_match, known = _in_order(wanted).search, set(found)
            more, is_whole = await self._matching(candidates, lambda path: is_match(path) is not None)
            found += [at for at in more if at not in known]
            self._last = (wanted, found) if is_whole else ("", [])
        else:
            self._last = ("", [])
        best = sorted(found, key=lambda at: _rank(self._lowered[at], wanted))[:MAX_FOUND]
        return [self._paths[at] for at in best]

    async def _matching(self, candidates: Sequence[int], fits: Callable[[str], bool]) -> tuple[list[int], bool]:
        """The first paths that fit, and whether these are all; keys get their turn in between."""
        found: list[int] = []
        lowered = self._lowered
        for start in range(0, len(candidates), CHUNK):
            found += [at for at in candidates[start : start + CHUNK] if fits(lowered[at])]
            if len(found) >= MAX_HITS:
                return found[:MAX_HITS], False
            await asyncio.sleep(0)
        return found, True


def _in_order(letters: str) -> re.Pattern[str]:
    """Finds texts that hold these letters in this order."""
    first, *rest = map(re.escape, letters)
    return re.compile(first + "".join(f"[^{letter}]*{letter}" for letter in rest))


def _rank(path: str, wanted: str) -> tuple[int, int, str]:
    name = path.rpartition("/")[2]
    place = 0 if name.startswith(wanted) else 1 if wanted in name else 2 if wanted in path else 3
    return place, len(path), path

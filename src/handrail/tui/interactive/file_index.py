"""The files of a project for completion: listed once in the background, found by parts of their names."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence

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
        self._chunks: list[str] = []
        """The paths in small letters, so many in one text: searching that costs a fraction of searching each."""
        self._loading: asyncio.Task[None] | None = None

    def refresh(self) -> None:
        """List the files anew, in the background."""
        if self._loading is None or self._loading.done():
            self._loading = asyncio.get_running_loop().create_task(self._load())

    async def _load(self) -> None:
        paths, chunks = [path for path in await self._list_files() if "\n" not in path], []
        for start in range(0, len(paths), CHUNK):
            chunks.append("".join(f"{path.lower()}\n" for path in paths[start : start + CHUNK]))
            await asyncio.sleep(0)
        self._paths, self._chunks = paths, chunks

    async def search(self, query: str) -> list[str]:
        """The best paths for what was typed: those whose name begins with it, hold it, or hold its letters in order."""
        if self._loading is None or not query:  # a new mention: there may be new files
            self.refresh()
        if self._loading is not None and not self._paths:
            await asyncio.wait((self._loading,))
        wanted = query.lower()
        if not wanted:
            return self._paths[:MAX_FOUND]
        found = await self._hits(lambda text: _lines_with(wanted, text))
        if not found:
            in_order, letters = _in_order(wanted), frozenset(wanted)
            found = await self._hits(lambda text: _lines_in_order(in_order, letters, text))
        best = sorted(found, key=lambda at: _rank(self._paths[at].lower(), wanted))[:MAX_FOUND]
        return [self._paths[at] for at in best]

    async def _hits(self, lines: Callable[[str], Iterator[int]]) -> list[int]:
        """The first paths that fit; keys get their turn in between."""
        found: list[int] = []
        for number, text in enumerate(self._chunks):
            found += (number * CHUNK + line for line in lines(text))
            if len(found) >= MAX_HITS:
                break
            await asyncio.sleep(0)
        return found[:MAX_HITS]


def _lines_with(wanted: str, text: str) -> Iterator[int]:
    """The numbers of the lines that hold something."""
    line = start = 0
    while (at := text.find(wanted, start)) >= 0:
        line += text.count("\n", start, at)
        yield line
        line, start = line + 1, text.index("\n", at) + 1


def _lines_in_order(in_order: re.Pattern[str], letters: frozenset[str], text: str) -> Iterator[int]:
    """The numbers of the lines that hold letters in an order."""
    if any(letter not in text for letter in letters):
        return
    line = start = 0
    for found in in_order.finditer(text):
        line += text.count("\n", start, found.start())
        yield line
        start = found.start()


def _in_order(letters: str) -> re.Pattern[str]:
    """Finds lines that hold these letters in this order, from the first letter on; nothing is looked at twice."""
    first, *rest = map(re.escape, letters)
    return re.compile(first + "".join(f"[^{letter}\n]*+{letter}" for letter in rest) + ".*+")


def _rank(path: str, wanted: str) -> tuple[int, int, str]:
    name = path.rpartition("/")[2]
    place = 0 if name.startswith(wanted) else 1 if wanted in name else 2 if wanted in path else 3
    return place, len(path), path

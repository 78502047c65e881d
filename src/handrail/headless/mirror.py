"""Mirrors every record of a session as lines between the others, for clients that store sessions themselves."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any

from handrail.errors import ClosedError
from handrail.stdio.bounds import LINE_LIMIT
from handrail.stdio.streams import Out, line_bytes

SUBAGENTS = "subagents"


class MirroredOut:
    """Lines to a program, each behind what the session got since the last one, as files that it expects in `folder`."""

    def __init__(self, out: Out, folder: Path) -> None:
        self._out = out
        self._folder = folder
        self._waiting: list[tuple[Path, Mapping[str, Any]]] = []
        self._turn = asyncio.Lock()  # a line must not overtake the records that it is about

    def hear(self, file: Path, record: Mapping[str, Any]) -> None:
        """Queue a record that was written to a file of the session."""
        self._waiting.append((file, record))

    async def send(self, line: Mapping[str, Any]) -> None:
        async with self._turn:
            for each in self._lines():
                await self._out.send(each)
            await self._out.send(line)

    async def rest(self) -> None:
        """Write the records that came after the last line."""
        async with self._turn:
            with suppress(ClosedError):
                for each in self._lines():
                    await self._out.send(each)

    def _lines(self) -> Iterator[Mapping[str, Any]]:
        waiting, self._waiting = self._waiting, []
        for file, records in groupby(waiting, key=lambda pair: pair[0]):
            # beside the others of the folder, or with the sub-agents of its session
            place = self._folder.joinpath(*file.parts[-3 if file.parent.name == SUBAGENTS else -1 :])
            for entries in _fitting(record for _, record in records):
                yield {"type": "transcript_mirror", "filePath": str(place), "entries": entries}


def _fitting(records: Iterator[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """Groups of records that fit into a line. A record that is too long by itself is cut and says so."""
    entries: list[Mapping[str, Any]] = []
    size = 0
    for record in records:
        length = len(line_bytes(record))
        if entries and size + length > LINE_LIMIT // 2:
            yield entries
            entries, size = [], 0
        entries.append(record)
        size += length
    if entries:
        yield entries

"""
Keeps a copy of a session in the convention of the SDK, where its own functions look for sessions.

The copy has the messages of a transcript under the same ids, chained by `parentUuid`; our own records are left out.
Its first line says that it is ours: no other file is ever written to or deleted.
"""

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from handrail.errors import SessionError
from handrail.files.private_folder import make_private_folder
from handrail.transcripts.log import OWN, VERSION, encode_line, read
from handrail.transcripts.writer import new_id

MARK = "handrail-copy"
SUBAGENTS = "subagents"
HEAD = 4096


class SdkCopy:
    """Gets every record of a session; `folder` is where the SDK looks. A copy that fails is told of once, and ends."""

    def __init__(self, folder: Path, on_warning: Callable[[str], None]) -> None:
        self._folder = folder
        self._on_warning = on_warning
        self._files: dict[Path, _CopiedFile | None] = {}

    def add(self, file: Path, record: Mapping[str, Any]) -> None:
        """Copy a record that was written to a file of the session."""
        try:
            if file not in self._files:
                self._files[file] = self._open(file)
            if (copied := self._files[file]) is not None:
                copied.add(record)
        except (OSError, SessionError) as error:
            self._files[file] = None
            way_out = "The setting sdkSessionCopy turns it off"
            self._on_warning(f"the copy of the session for the SDK cannot be written: {error}. {way_out}.")

    def _open(self, file: Path) -> "_CopiedFile | None":
        """The copy of a file, with all that the file held before its newest record."""
        depth = 3 if file.parent.name == SUBAGENTS else 1
        place = self._folder.joinpath(*file.parts[-depth:])
        if place == file or (place.exists() and not is_copy(place)):
            return None  # the session itself lies there, or one of another program
        copied = _CopiedFile(place)
        if not place.exists():
            make_private_folder(place.parent)
            copied.write({"type": MARK, "version": VERSION})
            known: set[str] = set()
        else:
            known = {str(line.get("uuid")) for line in read(place) if isinstance(line, dict)}
        before = [line for line in read(file) if isinstance(line, dict)]
        for line in before[:-1]:
            copied.add(line, known)
        copied.flush()  # an answer that another process did not finish
        return copied


class _CopiedFile:
    """
    One file of the copy. An answer and its results are held back until they join the history, or are void.

    `_instead` gives the line to go on from in place of one that is not in the copy.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._held: list[Mapping[str, Any]] = []
        self._last: str | None = None
        self._settled: str | None = None
        self._instead: dict[str | None, str | None] = {}

    def add(self, record: Mapping[str, Any], known: frozenset[str] | set[str] = frozenset()) -> None:
        """Write what a record means here, unless that line is `known` already."""
        event = record.get("event") if record["type"] == OWN else None
        if event == "settled":
            self.flush()
        elif event == "discarded":
            self._held = []
            self._instead[self._last] = self._settled
        elif event == "replaced" and not known:
            for value in record.get("messages", ()):
                if value.get("role") in ("user", "assistant"):
                    self._add_value(value, record)
        elif event == "title":
            self.write({"type": "custom-title", "customTitle": record.get("title"), **_about(record)})
        elif event is None and isinstance(record.get("uuid"), str):
            parent = record.get("parentUuid")
            if record["uuid"] not in known:
                line = {"isSidechain": False, **_plain(record), "parentUuid": self._instead.get(parent, parent)}
                self._held.append(line)
            self._last = record["uuid"]
            if all(line["type"] != "assistant" for line in self._held):
                self.flush()

    def flush(self) -> None:
        """Write what was held back."""
        held, self._held = self._held, []
        for line in held:
            self.write(line)
        self._settled = self._last

    def write(self, line: Mapping[str, Any]) -> None:
        """Append one line; only its owner can read the file."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        file = os.open(self._path, flags, 0o600)
        try:
            os.write(file, encode_line(line))
        finally:
            os.close(file)

    def _add_value(self, value: Mapping[str, Any], record: Mapping[str, Any]) -> None:
        """Write a message that came with a summary or another session, and go on from it."""
        line = {"type": value["role"], "uuid": new_id(), "parentUuid": self._instead.get(self._last, self._last)}
        meta = {"isMeta": True} if "attachment" in value else {}
        message = {name: value[name] for name in ("role", "content", "model", "stop_reason") if name in value}
        self.write({**line, **_about(record), "isSidechain": False, **meta, "message": message})
        self._instead[self._last] = line["uuid"]


def _about(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: record[name] for name in ("sessionId", "timestamp", "cwd") if name in record}


def _plain(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record without the fields that only we understand."""
    record = {name: value for name, value in record.items() if name != "ending"}
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(message, dict) or not isinstance(content, list):
        return record
    blocks = [
        {key: each for key, each in block.items() if key != OWN} if isinstance(block, dict) else block
        for block in content
    ]
    return {**record, "message": {**message, "content": blocks}}


def remove_copy(path: Path) -> None:
    """Delete a copy, with those of its sub-agents; a file that is none stays."""
    if not is_copy(path):
        return
    path.unlink()
    agents = path.with_suffix("") / SUBAGENTS
    for file in agents.glob("*.jsonl"):
        if is_copy(file):
            file.unlink()
    with suppress(OSError):  # another program has put something there
        agents.rmdir()
        agents.parent.rmdir()


def is_copy(path: Path) -> bool:
    """Whether a file is a copy that we have written."""
    try:
        with path.open("rb") as file:
            first = json.loads(file.readline(HEAD))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(first, dict) and first.get("type") == MARK

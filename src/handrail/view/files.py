"""Reads the record of a run from the files that its session left."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from handrail.errors import SessionError, UndoError
from handrail.files.undo import read as read_journal
from handrail.records import record
from handrail.transcripts.log import BrokenLine, read
from handrail.view.changes import change_data
from handrail.view.model import RunRecord
from handrail.view.reader import MAX_TEXT, RunReader

CLOCK_SLACK = 5.0


@record
class RunFiles:
    """Where the files of a session lie. Without `state`, only the conversation is known."""

    session: Path
    state: Path | None = None

    @property
    def id(self) -> str:
        """The session's id."""
        return self.session.stem

    @property
    def subagents(self) -> Path:
        """The folder of its sub-agents."""
        return self.session.with_suffix("") / "subagents"

    @property
    def journal(self) -> Path | None:
        """The folder of its undo journal."""
        return self.state / "undo" / self.id if self.state else None


def read_run(files: RunFiles, *, most: int = MAX_TEXT) -> RunRecord:
    """The record of a session. Texts are cut after `most` characters, 0 = never; SessionError if it cannot be read."""
    return open_run(files, most=most).record()


def open_run(files: RunFiles, *, most: int = MAX_TEXT) -> RunReader:
    """A reader that has read all there is by now, and can take more lines."""
    reader = RunReader(files.id, most)
    read_lines(reader, files.session)
    for path in agent_files(files):
        read_agent(reader, path)
    updated = files.session.stat().st_mtime
    for decision in decisions(files, reader.began or 0.0, updated):
        with suppress(KeyError, TypeError, ValueError):  # cut off when its process died, or not ours
            reader.add_decision(decision)
    read_changes(reader, files)
    return reader


def read_lines(reader: RunReader, path: Path) -> None:
    """Give every line of a session file to a reader."""
    for number, line in enumerate(read(path, decode_json), 1):
        if isinstance(line, BrokenLine):
            reader.problems.append(f"line {line.number}: {line.problem}")
        else:
            reader.add(line, number)


def decode_json(line: bytes) -> Any:
    """The JSON value of a line. The fast reader refuses halves of characters, which file names may bring."""
    try:
        return from_json(line, cache_strings="keys")
    except ValueError:
        return json.loads(line)


def agent_files(files: RunFiles) -> list[Path]:
    """The transcripts of the sub-agents, in the order in which they began."""
    found = [path for path in files.subagents.glob("*.jsonl") if path.is_file()] if files.subagents.is_dir() else []
    return sorted(found, key=lambda path: (first_stamp(path), path.name))


def first_stamp(path: Path) -> str:
    """When the first line of a session file was written."""
    with suppress(OSError, ValueError, AttributeError, RecursionError), path.open("rb") as file:
        return str(json.loads(file.readline(MAX_TEXT)).get("timestamp") or "")
    return ""


def read_agent(reader: RunReader, path: Path) -> None:
    """Read the conversation of a sub-agent, and what is kept of it besides."""
    with suppress(SessionError):
        read_lines(reader, path)
    describe_agent(reader, path)


def describe_agent(reader: RunReader, path: Path) -> None:
    """Read what is kept of a sub-agent beside its transcript, which may not be there."""
    with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
        reader.describe_agent(json.loads(path.with_suffix(".json").read_text("utf-8")))


def decisions(files: RunFiles, began: float, updated: float) -> Iterator[Mapping[str, Any]]:
    """The lines of the audit log that are about a session; of other processes' logs only the lines that name it."""
    if files.state is None:
        return
    needle = json.dumps(files.id).encode()
    for path in audit_logs(files.state, began, updated):
        yield from matching_lines(path, needle)


def audit_logs(state: Path, began: float, updated: float) -> list[Path]:
    """The logs that were begun before a session's last line and written to after its first."""
    newest = datetime.fromtimestamp(updated + CLOCK_SLACK, UTC).strftime("%Y%m%dT%H%M%S")
    found: list[Path] = []
    with suppress(OSError), os.scandir(state / "audit") as entries:
        for entry in entries:
            if entry.name.endswith(".jsonl") and entry.name[: len(newest)] <= newest:
                with suppress(OSError):  # logs are removed when there are too many
                    if entry.stat().st_mtime >= began - CLOCK_SLACK:
                        found.append(Path(entry.path))
    return sorted(found)


def matching_lines(path: Path, needle: bytes) -> Iterator[Mapping[str, Any]]:
    """The lines of a log that name a session."""
    with suppress(OSError), path.open("rb") as file:
        for line in file:
            if needle in line:
                with suppress(ValueError, RecursionError):
                    value = json.loads(line)
                    if isinstance(value, dict) and json.dumps(value.get("session")).encode() == needle:
                        yield value


def read_changes(reader: RunReader, files: RunFiles) -> None:
    """Read the changes of files from the undo journal, if there is one."""
    if files.journal is not None and files.journal.is_dir():
        with suppress(UndoError, OSError):
            reader.changes = change_data(read_journal(files.journal))

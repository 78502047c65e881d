"""Follows the files of a session while it runs: what was added since the last look becomes changes of its record."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from handrail.errors import SessionError
from handrail.transcripts.log import BrokenLine, parse_line
from handrail.view.files import (
    RunFiles,
    agent_files,
    audit_logs,
    decode_json,
    describe_agent,
)
from handrail.view.reader import MAX_TEXT, RunReader

LOOK_AROUND = 20
"""At every so many looks it also looks for new files, and whenever their folders have changed."""


class TailedFile:
    """A file that only grows. A line counts when it is whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = 0
        self._offset = 0
        self._identity: tuple[int, int] | None = None

    def take(self) -> Iterator[bytes]:
        """The whole lines since the last time; SessionError if another file has taken its place."""
        try:
            found = self.path.stat()
        except OSError:
            return
        identity = (found.st_dev, found.st_ino)
        if found.st_size < self._offset or (self._identity and identity != self._identity):
            raise SessionError(f"{self.path} was replaced while it was read. Open it again.")
        self._identity = identity
        if found.st_size == self._offset:
            return
        with self.path.open("rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._offset += len(line)
                self.lines += 1
                yield line


def _change_time(folder: Path | None) -> int:
    """When files were last added to a folder; 0 if it is not there."""
    try:
        return folder.stat().st_mtime_ns if folder else 0
    except OSError:
        return 0


class RunFollower:
    """The record of a session that may still grow. `look` is cheap when nothing has happened."""

    def __init__(self, files: RunFiles, *, most: int = MAX_TEXT) -> None:
        self.files = files
        self.reader = RunReader(files.id, most)
        self._session = TailedFile(files.session)
        self._agents: dict[Path, TailedFile] = {}
        self._logs: dict[Path, TailedFile] = {}
        self._looks = 0
        self._folders: list[int] = []
        if not files.session.is_file():
            raise SessionError(f"There is no session {files.id!r}. `handrail sessions list` lists the sessions.")

    def look(self) -> dict[str, Any]:
        """Read what is new; what it changed, by list and position, is empty if nothing was."""
        for line in self._session.take():
            self._add(line, self._session)
        folders = [
            _change_time(each) for each in (self.files.subagents, self.files.state and self.files.state / "audit")
        ]
        if self._looks % LOOK_AROUND == 0 or folders != self._folders:
            self._folders = folders
            self._look_around()
        self._looks += 1
        for tailed in self._agents.values():
            for line in tailed.take():
                self._add(line, tailed)
        for log in self._logs.values():
            self._read_log(log)
        changed = {name: each for name, each in self.reader.take_changed().items() if each}
        if changed:
            changed["facts"] = self.facts()
        return changed

    def facts(self) -> dict[str, Any]:
        """The parts of the record that are not lists of what happened."""
        record = self.reader.record()
        names = ("title", "model", "began", "ended", "outcome", "problem", "totals", "agents")
        return {name: getattr(record, name) for name in names}

    def _add(self, line: bytes, tailed: TailedFile) -> None:
        parsed = parse_line(line, tailed.lines, tailed.path, decode_json)
        if isinstance(parsed, BrokenLine):
            self.reader.problems.append(f"line {parsed.number}: {parsed.problem}")
        else:
            self.reader.add(parsed, tailed.lines)

    def _look_around(self) -> None:
        """Find files that have come since: of sub-agents, and logs of processes that went on with the session."""
        for path in agent_files(self.files):
            self._agents.setdefault(path, TailedFile(path))
            describe_agent(self.reader, path)
        if self.files.state is not None:
            updated = self.files.session.stat().st_mtime
            for path in audit_logs(self.files.state, self.reader.began or 0.0, updated):
                self._logs.setdefault(path, TailedFile(path))

    def _read_log(self, log: TailedFile) -> None:
        needle = f'"{self.files.id}"'.encode()
        with suppress(SessionError):  # a full log is moved aside and begun anew
            for line in log.take():
                if needle in line:
                    with suppress(ValueError, KeyError, TypeError, AttributeError):
                        value = decode_json(line)
                        if value["session"] == self.files.id:
                            self.reader.add_decision(value)

"""
The file of one transcript: append-only JSON lines.

Each record is one `write()`, so that it survives the end of the process at once. Reading tolerates what a killed
process or a full disk leaves behind.
"""

import fcntl
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias

from handrail.conversation.json_encoder import json_encoder
from handrail.errors import SessionError, advice_on
from handrail.files.private_folder import make_private_folder
from handrail.records import record

Record: TypeAlias = dict[str, Any]
Durability: TypeAlias = Literal["process", "power"]
Mirror: TypeAlias = Callable[[Path, Mapping[str, Any]], None]
"""Called with each record after it is written to a file."""

CHOOSE = "Resume it, fork it, or choose another id."
VERSION = 1
OWN = "handrail"
encode_json = json_encoder()


class Log:
    """
    One transcript file, locked by this process and readable by its owner alone.

    A new one comes with its first record: a session in which nothing is said leaves no file.

    `durability`: with "process" a record survives kill -9 of this program; with "power" also a power failure.

    Raises:
        SessionError: another process writes it, or it cannot be opened.
    """

    def __init__(self, path: Path, *, durability: Durability = "process", mirror: Mirror | None = None) -> None:
        self.path = path
        self._mirror = mirror
        self._durable = durability == "power"
        self._file = -1
        self._size = 0
        self._is_closed = False
        self.new = not _size_of(path)
        """Whether there was nothing in it when it was opened."""
        if self.new:
            _make_folder(path)
            return
        self._open()
        try:
            if self._size and os.pread(self._file, 1, self._size - 1) != b"\n":
                self._write(b"\n")  # the last writer was stopped in the middle of a line
        except SessionError:
            os.close(self._file)
            raise

    def add(self, value: Mapping[str, Any]) -> None:
        """Write one record. Raises SessionError if not all of it could be written; then the file is unchanged."""
        self._write(encode_line(value))
        if self._mirror is not None:
            self._mirror(self.path, value)

    def close(self) -> None:
        """Flush the file to disk and close it. A file without a record is deleted."""
        self._is_closed = True
        if self._file >= 0:
            file, self._file = self._file, -1
            try:
                if self._size:
                    os.fsync(file)
                else:
                    self.path.unlink(missing_ok=True)
            finally:
                os.close(file)

    def _open(self) -> None:
        self._file = _open_locked(self.path)
        self._size = os.fstat(self._file).st_size
        if self.new and self._size:
            os.close(self._file)
            self._file = -1
            raise SessionError(f"Another process has begun the session {self.path.stem!r} meanwhile. {CHOOSE}")

    def _write(self, data: bytes) -> None:
        if self._file < 0 and not self._is_closed:
            self._open()
        try:
            written = os.write(self._file, data)
            if written < len(data):
                os.ftruncate(self._file, self._size)
                raise SessionError(
                    f"The session {self.path} cannot be written: the disk is full or a quota is used up. Make room, "
                    "then resume the session."
                )
            if self._durable:
                os.fdatasync(self._file)
        except OSError as error:
            raise SessionError(
                f"The session {self.path} cannot be written: {error.strerror}. {advice_on(error)}"
            ) from error
        self._size += written


def _make_folder(path: Path) -> None:
    """Make the folder of a transcript, so that a place where nothing can be written is known at once."""
    try:
        make_private_folder(path.parent)
    except OSError as error:
        raise _unwritable(path, error) from error


def _size_of(path: Path) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def _unwritable(path: Path, error: OSError) -> SessionError:
    return SessionError(
        f"The session {path} cannot be written: {error.strerror}. "
        "Set HANDRAIL_STATE_DIR (state_dir of an Agent) to another folder, or keep none with --no-session-persistence."
    )


def _open_locked(path: Path) -> int:
    """The open file, locked by this process."""
    file = -1
    _make_folder(path)
    try:
        while True:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _still_there(path, file):
                return file
            os.close(file)  # deleted or repaired between opening and locking: what is written there would be lost
    except BlockingIOError as error:
        os.close(file)
        place = "is in use already, here or in another process"
        raise SessionError(
            f"The session {path.stem} {place}. Close it there, or continue it in a new one (--fork-session)."
        ) from error
    except OSError as error:
        raise _unwritable(path, error) from error


def _still_there(path: Path, file: int) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.fstat(file))
    except FileNotFoundError:
        return False


def encode_line(value: Mapping[str, Any]) -> bytes:
    """A record as one line."""
    try:
        return encode_json(value).encode() + b"\n"
    except UnicodeEncodeError:  # lone surrogates, for example of file names
        return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def transcript_files(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """The files of all transcripts below a folder, also the empty ones."""
    for place in list_folder(folder):
        if place.is_dir(follow_symlinks=False):
            for file in list_folder(place.path):
                if file.name.endswith(".jsonl") and file.is_file(follow_symlinks=False):
                    with suppress(OSError):  # it may just have been deleted
                        yield file.path, file.stat()


def list_folder(folder: str | Path) -> "list[os.DirEntry[str]]":
    """The entries of a folder; none if it is gone or unreadable."""
    try:
        return [*os.scandir(folder)]
    except OSError:
        return []


@record
class BrokenLine:
    """A line that is not a record, such as the last one of a process that was stopped while writing."""

    number: int
    problem: str


def read(path: Path, decode: Callable[[bytes], Any] = json.loads) -> Iterator[Record | BrokenLine]:
    """
    The records and broken lines of a file. `decode` may be a faster reader of JSON that raises ValueError as well.

    Raises:
        SessionError: it is unreadable, or of a newer handrail.
    """
    try:
        # without waiting for the other end of a pipe
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise SessionError(
                    f"{path} is not a file that could hold a session. Give the id of a session, or its .jsonl file."
                )
            for number, line in enumerate(file, 1):
                if not line.isspace():
                    yield parse_line(line, number, path, decode)
    except FileNotFoundError as error:
        raise SessionError(f"There is no file {str(path)!r}. Give the .jsonl file of a session.") from error
    except OSError as error:
        raise SessionError(f"The session {path} cannot be read: {error.strerror}. {advice_on(error)}") from error


def parse_line(
    line: bytes, number: int, path: Path, decode: Callable[[bytes], Any] = json.loads
) -> Record | BrokenLine:
    """The record of a line; SessionError if a newer handrail wrote it."""
    try:
        value = decode(line)
    except (ValueError, RecursionError) as error:
        whole = line.endswith(b"\n")
        return BrokenLine(number, f"it is not JSON: {error}" if whole else "its writer was stopped in the middle of it")
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return BrokenLine(number, "it is not a JSON object with a type")
    version = value.get("version")
    if value["type"] == OWN and isinstance(version, int) and version > VERSION:
        raise SessionError(
            f"The session {path} was written by a newer handrail (format {version}, this one reads up to {VERSION}). "
            "Use that version, or a newer one."
        )
    return value
